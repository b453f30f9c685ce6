"""Plain statistics, quick to evaluate, each with a weakness that a wrong null would show.

All four are columns of one table and each is ranked on its own: one run measures four tests.
"""

from dataclasses import dataclass

import numpy as np

from sparker.engine import TwoSample
from sparker.engine.memory import Need
from sparker.engine.preprocess import Transform
from sparker.statistics.batched import PreparedBatches
from sparker.statistics.contract import Statistic

NAMES = ("mean", "maximum", "Kolmogorov-Smirnov", "deficit")


@dataclass(frozen=True)
class Plain(Statistic):
    """The four, of samples as they are."""

    high: float
    """Where the upper tail begins, in which data may be missing."""

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Nothing depends on the points."""
        return PreparedBatches(
            settings={"plain": NAMES, "high": self.high},
            start=lambda seed, chunk: lambda numbers, batch: plain(batch, self.high),
            room=lambda sample: Need(0, 80 * sample.points.shape[-2] * sample.points.shape[-1]),
        )


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
