"""Any function of one sample as a statistic."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.engine.toys import Toys
from sparker.statistics.contract import (
    Chunk,
    Reading,
    Statistic,
    one_by_one,
    rounded,
    value_chunks,
)


@dataclass(frozen=True)
class EachSample(Statistic):
    """A statistic from a function ``(rng, sample) -> t``, one experiment at a time.

    ``sample`` is a ``TwoSample`` of preprocessed points without padding, ``t`` a number or an array
    of m numbers, larger where the samples differ more.
    """

    function: Callable[[np.random.Generator, TwoSample], Any]

    def prepare(
        self, points: np.ndarray, transform: Transform | None = None
    ) -> "_PreparedFunction":
        """Nothing to prepare; one value tells functions of the same name apart."""
        half = (np.arange(len(points)) % 2).astype(float)
        prepared = _PreparedFunction(self.function, [])
        value = prepared._one(np.random.default_rng(0), TwoSample(points, 1 - half, half))
        return _PreparedFunction(self.function, rounded(value))


class _PreparedFunction(NamedTuple):
    function: Callable[[np.random.Generator, TwoSample], Any]
    example: list[str]  # its value on some sample

    @property
    def readings(self) -> tuple[Reading, ...]:
        return ()

    @property
    def widths(self) -> np.ndarray:
        return np.empty(0)

    @property
    def settings(self) -> dict[str, Any]:
        return {"function": self.function, "example": self.example}

    def chunk_size(self, toys: Toys, number: int, n_toys: int) -> int:
        return 16

    def chunks(self, seed: int, toys: Toys, numbers: Sequence[int], chunk: int) -> Iterator[Chunk]:
        def evaluate(now: Sequence[int], batch: TwoSample) -> np.ndarray:
            return np.stack([self._one(*toy) for toy in one_by_one(seed, now, batch)])

        return value_chunks(toys, numbers, chunk, evaluate)

    def _one(self, rng: np.random.Generator, sample: TwoSample) -> np.ndarray:
        t = np.atleast_1d(np.asarray(self.function(rng, sample), np.float64))
        if t.ndim != 1:
            raise ValueError(
                f"a statistic must return a number or a 1-D array of them, got shape {t.shape}"
            )
        return t
