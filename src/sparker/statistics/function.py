"""Any function of one sample as a statistic."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparker.engine.memory import Need
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches
from sparker.statistics.contract import Statistic, one_by_one, rounded

AT_ONCE = 16
"""Toys of a chunk, which go one by one: often enough to see them advance."""


@dataclass(frozen=True)
class EachSample(Statistic):
    """A statistic from a function ``(rng, sample) -> t``, one experiment at a time.

    ``sample`` is a ``TwoSample`` of preprocessed points without padding, ``t`` a number or an array
    of m numbers, larger where the samples differ more.
    """

    function: Callable[[np.random.Generator, TwoSample], Any]

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Nothing to prepare; one value tells functions of the same name apart."""
        half = (np.arange(len(points)) % 2).astype(float)
        example = self._one(np.random.default_rng(0), TwoSample(points, 1 - half, half))
        return PreparedBatches(
            settings={"function": self.function, "example": rounded(example)},
            start=lambda seed, chunk: functools.partial(self._each, seed),
            room=lambda sample: Need(0, 24 * sample.points.shape[-2] * sample.points.shape[-1]),
            most=AT_ONCE,
        )

    def _each(self, seed: int, numbers: Sequence[int], batch: TwoSample) -> np.ndarray:
        return np.stack([self._one(*toy) for toy in one_by_one(seed, numbers, batch)])

    def _one(self, rng: np.random.Generator, sample: TwoSample) -> np.ndarray:
        t = np.atleast_1d(np.asarray(self.function(rng, sample), np.float64))
        if t.ndim != 1:
            raise ValueError(
                f"a statistic must return a number or a 1-D array of them, got shape {t.shape}"
            )
        return t
