"""What a scheme makes, and the pieces that all schemes make it of."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from sparker.nulls.given import Samples
from sparker.sample import AnyArray, TwoSample, pad, stack

Fitted = Callable[[np.ndarray], np.ndarray]
"""Rows as they are fitted: a ``Transform``, or one that remembers what it has done."""

Draw = Callable[[Sequence[int]], Any]
"""Experiments by number: a ``TwoSample``, or the ``Labels`` of rows that are streamed."""


OWN_STREAM = 0x70795


class Arm(NamedTuple):
    """Experiments that share whatever is not refitted in each of them."""

    basis: np.ndarray  # the rows that may decide on it
    draw: Callable[[Fitted], Draw]  # the experiments, given the preprocessing
    n_rows: int | None = None  # of which the basis is a part, if it is


class Experiments(NamedTuple):
    """The observed experiment and the toys; for most schemes the same arm."""

    observed: Arm
    toys: Arm
    n_toys: int | None = None  # how many different ones there are, if no more than can be listed
    notes: tuple[str, ...] = ()  # what became of the samples


class Scheme(Protocol):
    """What makes anomaly-free experiments."""

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """The experiments around these samples."""


def toy_rng(seed: int, number: int) -> np.random.Generator:
    """All that a toy may draw from.

    No stream that a user would take for the samples: ``default_rng(seed)`` is ``[seed, 0, 0 ...]``,
    and chances that are the very numbers which made the rows are none.
    """
    return np.random.default_rng([seed, number, OWN_STREAM])


def most_rows(n_data: int, expected: float | None) -> int:
    """So many data rows that no toy in 10^15 has more."""
    return n_data if expected is None else max(n_data, int(expected + 8 * np.sqrt(expected) + 8))


def largest_toy(expected: float | None, n_toys: int, seed: int) -> int:
    """The number of the toy with the most data rows."""
    if expected is None:
        return 1
    # The count is the first thing that a toy draws, whatever the scheme.
    counts = [toy_rng(seed, number).poisson(expected) for number in range(1, n_toys + 1)]
    return 1 + int(np.argmax(counts))


def against(
    reference: np.ndarray, weights: np.ndarray, data: np.ndarray, expected: float | None
) -> TwoSample:
    """Data against a reference weighted to as many rows, or to the expected number."""
    scaled = weights * ((expected or len(data)) / weights.sum())
    return TwoSample(
        np.concatenate([reference, data]),
        np.concatenate([scaled, np.zeros(len(data))]),
        np.repeat([0.0, 1.0], [len(reference), len(data)]),
    )


def relabelled(points: np.ndarray, weights: Iterable[tuple[AnyArray, AnyArray]]) -> TwoSample:
    """Toys that share their points and differ by the weights, as reference and as data."""
    return TwoSample(points, *map(np.stack, zip(*weights, strict=True)))


def own_rows(batch: TwoSample, n_rows: int) -> TwoSample:
    """Every toy with a copy of the rows it uses and no others, padded to a common number."""
    return stack([pad(batch.alone(i), n_rows) for i in range(len(batch.data_weight))])
