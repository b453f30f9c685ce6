"""Plain statistics, quick to evaluate, each with a weakness that a wrong null would show.

All four are columns of one table and each is ranked on its own: one run measures four tests.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparker.engine import Toys, TwoSample
from sparker.engine.preprocess import Transform
from sparker.statistics.contract import Chunk, Reading, Statistic, value_chunks

NAMES = ("mean", "maximum", "Kolmogorov-Smirnov", "deficit")


@dataclass(frozen=True)
class Plain(Statistic):
    """The four, of samples as they are."""

    high: float
    """Where the upper tail begins, in which data may be missing."""

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> "_Prepared":
        """Nothing depends on the points."""
        return _Prepared(self.high)


@dataclass(frozen=True)
class _Prepared:
    high: float
    readings: tuple[Reading, ...] = ()
    widths = np.empty(0)

    @property
    def settings(self) -> dict[str, Any]:
        return {"plain": NAMES, "high": self.high}

    def chunk_size(self, toys: Toys, number: int, n_toys: int) -> int:
        return n_toys

    def chunks(self, seed: int, toys: Toys, numbers: Sequence[int], chunk: int) -> Iterator[Chunk]:
        return value_chunks(toys, numbers, chunk, lambda _, batch: plain(batch, self.high))


def plain(batch: TwoSample, high: float) -> np.ndarray:  # -> (B, 4)
    """The difference of means, the largest value, Kolmogorov-Smirnov's, and a deficit's.

    The last is a likelihood ratio: twice the log of how much more likely so few data rows in the
    upper tail are if their rate is free than if it is the reference's.
    """
    points = np.asarray(batch.points)
    reference, data = (np.asarray(weight, float) for weight in batch[1:])
    totals = reference.sum(1), data.sum(1)
    means = [
        np.einsum("bn,...nd->bd" if points.ndim == 2 else "bn,bnd->bd", weight, points)
        / total[:, None]
        for weight, total in zip((reference, data), totals, strict=True)
    ]
    x = points[..., 0]
    length = np.linalg.norm(points, axis=-1) if points.shape[-1] > 1 else x
    largest = np.where(data > 0, length, -np.inf).max(1)
    order = np.broadcast_to(np.argsort(x, axis=-1), data.shape)
    x = np.take_along_axis(np.broadcast_to(x, data.shape), order, 1)
    steps = [
        np.cumsum(np.take_along_axis(weight, order, 1), 1) / total[:, None]
        for weight, total in zip((reference, data), totals, strict=True)
    ]
    ends = np.pad(x[:, 1:] != x[:, :-1], [(0, 0), (0, 1)], constant_values=True)
    distance = np.max(np.abs(steps[1] - steps[0]) * ends, 1)
    in_tail = points[..., 0] > high
    seen, expected = (np.sum(np.where(in_tail, weight, 0), 1) for weight in (data, reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.where(seen > 0, seen * np.log(seen / expected), 0) - (seen - expected)
    missing = np.where(seen < expected, 2 * log_ratio, 0)
    difference = np.linalg.norm(means[1] - means[0], axis=1)
    return np.stack([difference, np.where(totals[1] > 0, largest, 0), distance, missing], 1)
