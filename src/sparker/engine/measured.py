"""What is measured of an experiment: one row, from the fit through the store to the result."""

from typing import Annotated, NamedTuple

import numpy as np

from sparker.engine.sample import AnyArray
from sparker.system.archive import ArraySpec


class Measured(NamedTuple):
    """The statistics of an experiment; of many, with their axis in front.

    A fit has r statistics at each of m widths. A test ranks K readings, whatever their kind: of
    kernels these are the m * r side by side.
    """

    statistics: Annotated[AnyArray, ArraySpec("K", finite=False)]
    """(K,), or (m, r) of a fit: larger where the samples differ more."""
    score_counts: Annotated[AnyArray, ArraySpec("m bins", "fiu", 0, 1e15, finite=False)]
    """Data events by anomaly score; none if there is no model."""

    @property
    def t(self) -> AnyArray:  # (m,)
        """Of a fit: the statistic of the whole model."""
        return self.statistics[..., 0]

    def at(self, index: int | slice) -> "Measured":
        """One experiment of many, or some."""
        return Measured(*(array[index] for array in self))


def stacked(rows: "list[Measured]") -> Measured:
    """Single experiments as many."""
    return Measured(*map(np.stack, zip(*rows, strict=True)))


def values_only(values: np.ndarray) -> Measured:  # (B, K)
    """Of a statistic that fits no models."""
    return Measured(values, np.empty((len(values), 0, 0)))
