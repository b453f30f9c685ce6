"""What a scheme makes, and the pieces that all schemes make it of."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from sparker.engine.sample import AnyArray, TwoSample, pad, stack
from sparker.engine.toys import Toys
from sparker.nulls.inputs import Samples

Fitted = Callable[[np.ndarray], np.ndarray]
"""Rows as they are fitted: a ``Transform``, or one that remembers what it has done."""

OWN_STREAM = 0x70795


class ToySource(NamedTuple):
    """Experiments that share whatever is not refitted in each of them."""

    basis: np.ndarray  # the rows that may decide on it
    toys: Callable[[Fitted], Toys]  # the experiments, given the preprocessing
    n_rows: int  # of which the basis may be a part


class Experiments(NamedTuple):
    """The observed experiment, number 0, and the toys."""

    source: ToySource
    n_toys: int | None = None  # how many different ones there are, if no more than can be listed
    notes: tuple[str, ...] = ()  # what became of the samples


class Scheme(ABC):
    """What makes anomaly-free experiments."""

    @property
    def features(self) -> frozenset[str]:
        """What it brings that may not go with something else, see ``sparker.together``."""
        return frozenset()

    @abstractmethod
    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """The experiments around these samples."""

    def fingerprint(self) -> np.ndarray | None:
        """What tells it from another one with the same settings; None where settings tell all."""
        return None


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
