"""What a problem is to the study of the product: two tables drawn by number, as a user has them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from experiments.answers.problems import Draw

Sample = tuple[np.ndarray, np.ndarray]  # reference (N_R, d), data (N_D, d)
Table = Literal["unseen", "twelve", "rest", "toys", "simulated"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Two tables, one of them with something hidden in it."""

    name: str
    table: Table
    """The one of docs/power.md in which it stands."""
    n_reference: int
    n_data: int
    draw: Callable[[np.random.Generator], Sample]
    one_column: bool = False
    needs_files: bool = False
    near_null: bool = False
    """Whether nothing should be found: what is hidden cannot be told from the rest."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What a user would ask for beside the statistic."""


def sample(problem: Problem, number: int) -> Sample:
    """The sample of this number: the same for every method, on every machine, at any time."""
    return problem.draw(np.random.default_rng(seed_of(problem.name, number)))


def seed_of(name: str, number: int) -> int:
    """A seed of its own for every sample. Python's own hash differs from process to process."""
    return int.from_bytes(hashlib.sha256(f"{name}; {number}".encode()).digest()[:8], "big")


def planted(
    draw: Draw, n_reference: int, n_data: int, share: float
) -> Callable[[np.random.Generator], Sample]:
    """This share of the data rows planted, always the same number of them."""

    def drawn(rng: np.random.Generator) -> Sample:
        reference, data = draw(rng, n_reference, n_data, round(share * n_data))
        if (len(reference), len(data)) != (n_reference, n_data):
            raise ValueError(f"too few rows for {n_reference} of the reference and {n_data} data")
        # In random order: where a row stands may not help.
        return reference, rng.permutation(data)

    return drawn
