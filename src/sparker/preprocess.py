"""Features brought to comparable scales before the fit: its kernels are round.

Each option is a function of points that never sees who is data: it returns a ``Transform``, which
the result keeps and applies to new rows. Columns that do not vary are dropped: they tell nothing
and have no scale.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Transform(NamedTuple):
    """A shift and a linear map of the columns kept, and the way back."""

    kept: np.ndarray  # (k,) the columns that vary
    centre: np.ndarray  # (d,) what is subtracted; of a column not kept, its constant value
    matrix: np.ndarray  # (k,) one factor a column, or (k, r)
    back: np.ndarray  # its inverse where the points vary, (k,) or (r, k)

    @property
    def dropped(self) -> np.ndarray:
        """The columns that did not vary."""
        return np.setdiff1d(np.arange(len(self.centre)), self.kept)

    def __call__(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N, r)
        """The rows as they are fitted, in the precision they came in."""
        if points.shape[1] != len(self.centre):
            raise ValueError(
                f"rows have {points.shape[1]} features, the test was made with {len(self.centre)}"
            )
        shifted = points[:, self.kept] - self.centre[self.kept].astype(points.dtype)
        matrix = self.matrix.astype(points.dtype)
        return shifted * matrix if matrix.ndim == 1 else shifted @ matrix

    def inverse(self, fitted: np.ndarray) -> np.ndarray:  # (..., r) -> (..., d)
        """Fitted coordinates, of a kernel for instance, back in the user's units."""
        back = fitted * self.back if self.back.ndim == 1 else fitted @ self.back
        points = np.broadcast_to(self.centre, (*fitted.shape[:-1], len(self.centre))).copy()
        points[..., self.kept] += back
        return points

    def strays(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (d - k,)
        """For each dropped column, how many rows differ from the value it always had."""
        dropped = self.dropped
        same = np.isclose(points[:, dropped], self.centre[dropped], rtol=1e-5, atol=0)
        return np.sum(~same, axis=0)


Preprocess = Callable[[np.ndarray], Transform]


def standardise(points: np.ndarray) -> Transform:
    """Zero mean and unit variance in every column.

    >>> import numpy as np
    >>> transform = standardise(np.array([[1.0, 7.0, 0.0], [3.0, 7.0, 0.5]]))
    >>> transform(np.array([[1.0, 7.0, 0.25]])).tolist(), transform.dropped.tolist()
    ([[-1.0, 0.0]], [1])
    """
    kept, centre = _varying(points)
    scale = points[:, kept].std(0, dtype=np.float64)
    return Transform(kept, centre, 1 / scale, scale)


def unchanged(points: np.ndarray) -> Transform:
    """The columns as they are, for features that share a scale already."""
    kept, centre = _varying(points)
    centre[kept] = 0
    return Transform(kept, centre, np.ones(len(kept)), np.ones(len(kept)))


def whiten(points: np.ndarray) -> Transform:
    """Unit variance in every direction, and no correlations.

    Directions in which the points do not vary, such as those beyond the number of rows, are left
    out.
    """
    kept, centre = _varying(points)
    scale = points[:, kept].std(0, dtype=np.float64)  # units must not decide what counts as flat
    standardised = (points[:, kept] - centre[kept]) / scale
    variance, directions = np.linalg.eigh(standardised.T @ standardised / len(points))
    # What rounding alone leaves of a direction without variance.
    floor = len(kept) * np.finfo(points.dtype).eps * variance[-1]
    solid = variance > floor
    matrix = directions[:, solid] / np.sqrt(variance[solid])
    back = directions[:, solid] * np.sqrt(variance[solid])
    return Transform(kept, centre, matrix / scale[:, None], back.T * scale)


def principal_directions(
    points: np.ndarray, n: int, weights: np.ndarray | None = None
) -> np.ndarray:  # (N, d) -> (d, n)
    """The directions of largest variance; zeros for those that the points do not have."""
    centred = points - np.average(points, axis=0, weights=weights).astype(points.dtype)
    if weights is not None:
        centred *= np.sqrt(weights / weights.max())[:, None]
    found = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :n]
    # Of the two signs an eigenvector may have, the one whose largest entry is positive.
    largest = np.argmax(np.abs(found), axis=0)
    found = found * np.sign(found[largest, np.arange(found.shape[1])])
    return np.pad(found, [(0, 0), (0, n - found.shape[1])])


def _varying(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (k,), (d,)
    """The columns that vary by more than rounding, and where each column's middle is."""
    low, high = points.min(0), points.max(0)
    noise = 8 * np.finfo(points.dtype).eps * np.maximum(np.abs(low), np.abs(high))
    kept = np.flatnonzero(high - low > noise)
    if len(kept) == 0:
        raise ValueError(
            f"none of the {points.shape[1]} columns varies; there is nothing to compare"
        )
    return kept, points.mean(0, dtype=np.float64)
