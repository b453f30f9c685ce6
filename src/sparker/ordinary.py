"""Between which values a column ordinarily lies, so that a few far away do not set its scale.

A code for "not measured" (-999), a slip of the decimal point or an overflow can be a thousand times
larger than all other values. Neither where such a value lies nor how many there are tells how wide
the column is.
"""

from typing import NamedTuple

import numpy as np

REACH = 20.0
"""Times the range of the middle nine tenths of a column: of normal values, 66 standard deviations.

Of exponential and log-normal columns next to no value is that far away.
"""

MAX_VALUES = 2**20
"""Values from which ranges are taken; of larger tables, random rows."""


class Ordinary(NamedTuple):
    """The limits of each column; infinite where nothing can be said."""

    low: np.ndarray  # (d,)
    high: np.ndarray

    def far(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N, d)
        """Which values lie beyond."""
        return (points < self.low) | (points > self.high)

    def clipped(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N, d)
        """The points with values that lie beyond brought to the limits, in their precision."""
        with np.errstate(over="ignore"):  # beyond what the precision can hold: no limit
            low, high = self.low.astype(points.dtype), self.high.astype(points.dtype)
        clipped = np.maximum(points, low)
        return np.minimum(clipped, high, out=clipped)

    def without(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N, d)
        """The points with values that lie beyond brought to the middle, where they tell nothing."""
        if np.all(points.min(0) >= self.low) and np.all(points.max(0) <= self.high):
            return points
        with np.errstate(invalid="ignore"):  # columns without limits
            middle = ((self.low + self.high) / 2).astype(points.dtype)
        return np.where(self.far(points), middle, points)


def ordinary(points: np.ndarray) -> Ordinary:
    """The limits of each column, which does not depend on which rows are data.

    >>> values = np.append(np.linspace(0, 1, 99), -999.0)[:, None]
    >>> int(ordinary(values).far(values).sum())
    1
    """
    n_rows = max(1000, MAX_VALUES // points.shape[1])
    if len(points) > n_rows:
        rows = np.random.default_rng(0).choice(len(points), n_rows, replace=False)
        points = points[rows]
    # Values that are there, and none between two of them: a flag is 0 or 1.
    low, middle, high = np.quantile(points, [0.05, 0.5, 0.95], axis=0, method="inverted_cdf")
    low, middle, high = (ends.astype(np.float64) for ends in (low, middle, high))
    for column in np.flatnonzero(low == high):
        # Nine tenths are one value: the others tell how far a column reaches.
        others = points[points[:, column] != middle[column], column]
        if len(others):
            ends = np.quantile(others, [0.05, 0.95])
            low[column] = min(ends[0], middle[column])
            high[column] = max(ends[1], middle[column])
    with np.errstate(over="ignore"):
        reach = REACH * (high - low)
        reach[reach == 0] = np.inf
        return Ordinary(middle - reach, middle + reach)
