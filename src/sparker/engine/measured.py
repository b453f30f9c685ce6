"""What is measured of an experiment: one row, from the fit through the store to the result."""

from typing import NamedTuple

import numpy as np

from sparker.engine.sample import AnyArray


class Measured(NamedTuple):
    """The statistics of an experiment at m widths; of many, with their axis in front.

    A statistic other than SparKer's has its own meaning for the m columns, and one family.
    """

    statistics: AnyArray  # (m, r): r families a width, larger where the samples differ more
    score_counts: AnyArray  # (m, bins) data events by anomaly score; no bins if it has none

    @property
    def t(self) -> AnyArray:  # (m,)
        """The first family: of kernels, the statistic of the whole model."""
        return self.statistics[..., 0]

    @property
    def columns(self) -> np.ndarray:  # (B, m * r)
        """All statistics of many experiments, side by side, as they are ranked."""
        return np.reshape(self.statistics, (len(self.statistics), -1))

    def at(self, index: int | slice) -> "Measured":
        """One experiment of many, or some."""
        return Measured(*(array[index] for array in self))


def stacked(rows: "list[Measured]") -> Measured:
    """Single experiments as many."""
    return Measured(*map(np.stack, zip(*rows, strict=True)))


def values_only(values: np.ndarray) -> Measured:  # (B, m)
    """Of a statistic that has one family and says nothing else."""
    return Measured(values[..., None], np.empty((*values.shape, 0)))
