"""What a scheme makes, and the pieces that schemes have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from sparker.engine.sample import AnyArray, TwoSample, pad, stack
from sparker.engine.toys import Toys
from sparker.nulls.inputs import Samples

Fitted = Callable[[np.ndarray], np.ndarray]
"""From rows to rows as they are fitted: a ``Transform``, or one that remembers its last result."""

OWN_STREAM = 0x70795


class ToySource(NamedTuple):
    """Experiments that share all that is not fitted again in each of them."""

    basis: np.ndarray  # the rows that decide on what they share
    toys: Callable[[Fitted], Toys]  # the experiments, given the preprocessing


class Experiments(NamedTuple):
    """The observed experiment, number 0, and the toys."""

    source: ToySource
    n_toys: int | None = None  # how many different ones there are, if no more than can be listed
    notes: tuple[str, ...] = ()  # what became of the samples


class Scheme(ABC):
    """What makes anomaly-free experiments."""

    group_rows: int | None = None
    """Of larger groups only this many rows take part, where rows are relabelled."""

    @property
    def features(self) -> frozenset[str]:
        """Names of what may not go with other settings, see ``sparker.together``."""
        return frozenset()

    @abstractmethod
    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """The experiments around these samples."""

    def fingerprint(self) -> np.ndarray | None:
        """What tells it from one with the same settings; None where settings tell everything."""
        return None


def toy_rng(seed: int, number: int) -> np.random.Generator:
    """The random numbers of a toy; it may draw from nothing else.

    They differ from those of ``default_rng(seed)``, which is ``[seed, 0, 0 ...]``. A user may have
    drawn the samples from that, and labels must not depend on the numbers that made the rows.
    """
    return np.random.default_rng([seed, number, OWN_STREAM])


def most_rows(n_data: int, expected: float | None) -> int:
    """A number of data rows that less than one toy in 10^15 exceeds."""
    return n_data if expected is None else max(n_data, int(expected + 8 * np.sqrt(expected) + 8))


def largest_toy(expected: float | None, n_toys: int, seed: int) -> int:
    """The number of the toy with the most data rows."""
    if expected is None:
        return 1
    # In every scheme the count is the first number that a toy draws.
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
    """Each toy with its own copy of the rows it uses, padded to a common number of rows."""
    return stack([pad(batch.alone(i), n_rows) for i in range(len(batch.data_weight))])
