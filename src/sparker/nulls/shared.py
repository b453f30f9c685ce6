"""Toys that many samples of one size share: none of their rows is in the reference or in a sample.

Every experiment, toy or sample, compares as many rows with one and the same reference. Given this
reference, anomaly-free samples and toys are independent and alike, and so are their statistics. A
sample is then as likely as a toy to have any rank among them, and that holds for all samples at
once: their p-values are those of split conformal prediction (Bates, Candes, Lei, Romano and Sesia,
Annals of Statistics 51, 149, 2023).

Relabelled toys cannot be shared: they are made of the rows of one sample. Nor can several toys that
are made of the same rows (``Resample``), which are more alike than a sample is to them.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from sparker.engine.sample import stack
from sparker.engine.toys import Toys
from sparker.nulls.experiments import Fitted, ToySource, against

Draw = Callable[[int, int], np.ndarray]
"""The number of a toy and the number of its rows -> (n, d)."""

SPLIT = 0x5B117


class HeldOut(NamedTuple):
    """Rows that are kept apart from a reference, for the toys."""

    reference: np.ndarray  # (N,) numbers of the rows that all are compared with
    others: np.ndarray  # (n,) numbers of the rows of the toys, in random order


def hold_out(n_reference: int, n_toys: int, size: int, seed: int) -> HeldOut:
    """Keep so many rows apart that each of the toys has rows of its own.

    >>> kept, others = hold_out(1000, 9, 50, seed=0)
    >>> len(kept), len(others), len(np.intersect1d(kept, others))
    (550, 450, 0)
    """
    n_others = n_toys * size
    if n_reference - n_others < size:
        most = max(0, n_reference // size - 1)
        raise ValueError(
            f"{n_toys} toys of {size} rows that no other has, and at least {size} rows to compare "
            f"them with, need {n_others + size:,} reference rows, and there are {n_reference:,}; "
            f"take more of them, no more than {most} toys, smaller samples, or shared=False "
            "(leave out --shared), which relabels each sample with the reference"
        )
    turn = np.random.default_rng([seed, SPLIT]).permutation(n_reference)
    return HeldOut(np.sort(turn[n_others:]), turn[:n_others])


def blocks_of(rows: np.ndarray) -> Draw:  # (n, d)
    """Toys that take their rows one after the other, none twice."""

    def draw(number: int, size: int) -> np.ndarray:
        block = rows[(number - 1) * size : number * size]
        if len(block) < size:
            raise ValueError(
                f"toy {number} of {size} rows is beyond the {len(rows):,} rows that are held out "
                "for toys; take more of them, fewer toys or smaller samples"
            )
        return block

    return draw


def shared_toys(
    reference: np.ndarray,  # (N, d)
    size: int,
    draw: Draw,
    samples: Mapping[int, np.ndarray],  # (size, d) each, by a number that is no toy's
) -> ToySource:
    """Toys and samples of one size as experiments; what they share is decided by the reference."""

    def toys(transform: Fitted) -> Toys:
        fitted = transform(reference)
        weights = np.ones(len(reference))

        def rows(number: int) -> np.ndarray:
            own = samples.get(number)
            return draw(number, size).astype(reference.dtype) if own is None else own

        return Toys(
            lambda numbers: stack(
                [against(fitted, weights, transform(rows(i)), None) for i in numbers]
            )
        )

    return ToySource(reference, toys)
