"""Features brought to comparable scales before the fit, since its kernels are round.

Each option is a function of points, blind to which are data. It returns a ``Transform``,
which the result keeps and applies to new rows. Columns that do not vary are dropped: they tell
nothing and have no scale. Values far beyond all others (``sparker.ordinary``) are left where a
column's ordinary values end: they would otherwise decide how wide everything else is.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

import numpy as np
from scipy.linalg import eigh

from sparker.ordinary import Ordinary, ordinary
from sparker.system.archive import ArraySpec


class Transform(NamedTuple):
    """A shift and a linear map of the columns kept, and the way back."""

    kept: Annotated[np.ndarray, ArraySpec("k", kinds="iu", low=0)]
    """The columns that vary."""
    centre: Annotated[np.ndarray, ArraySpec("d")]
    """What is subtracted; of a column not kept, its constant value."""
    matrix: Annotated[np.ndarray, ArraySpec("k | k r")]
    """(k,) one factor a column, or (k, r)."""
    back: Annotated[np.ndarray, ArraySpec("k | r k")]
    """Its inverse where the points vary, (k,) or (r, k)."""
    low: Annotated[np.ndarray, ArraySpec("d", finite=False)]
    """Values further out are taken to be here."""
    high: Annotated[np.ndarray, ArraySpec("d", finite=False)]

    @property
    def dropped(self) -> np.ndarray:
        """The columns that did not vary."""
        return np.setdiff1d(np.arange(len(self.centre)), self.kept)

    @property
    def units(self) -> np.ndarray:  # (k,)
        """The unit of each column: how far it changes when the fitted coordinates change by one."""
        if self.back.ndim == 1:
            return self.back
        largest = np.abs(self.back).max(0)  # whose square may be zero
        return largest * np.linalg.norm(self.back / largest, axis=0)

    def loadings(self, direction: np.ndarray) -> np.ndarray:  # (r,) -> (k,)
        """A direction of the fit in the columns, each in its unit."""
        if self.matrix.ndim == 1:
            return direction
        found = self.units * (self.matrix @ direction)
        return found / (np.linalg.norm(found) or 1)

    def principal(
        self, fitted: np.ndarray, n: int, weights: np.ndarray | None = None
    ) -> np.ndarray:  # (N, r) -> (r, n)
        """Directions of the fit along which the columns, each in its unit, vary most.

        Where directions were stretched, the fitted points vary equally in all of them, and their
        own principal directions would be random.
        """
        if self.matrix.ndim == 1:
            return principal_directions(fitted, n, weights)
        from_fit = self.back / self.units  # (r, k)
        along = from_fit @ principal_directions(fitted @ from_fit, n, weights)
        found, signs = np.linalg.qr(along[:, : min(n, len(along))])
        found = found * np.where(np.diagonal(signs) < 0, -1, 1)
        return np.pad(found, [(0, 0), (0, n - found.shape[1])])

    def __call__(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N, r)
        """The rows as they are fitted, in the precision they came in."""
        if points.shape[1] != len(self.centre):
            raise ValueError(
                f"rows have {points.shape[1]} features, the test was made with {len(self.centre)}"
            )
        limits = Ordinary(self.low[self.kept], self.high[self.kept])
        centre = self.centre[self.kept].astype(points.dtype)
        matrix = self.matrix.astype(points.dtype)
        product = np.multiply if matrix.ndim == 1 else np.matmul
        fitted = np.empty((len(points), matrix.shape[-1]), points.dtype)
        for some in _blocks(points):
            rows = limits.clipped(_columns(points[some], self.kept))
            rows -= centre
            product(rows, matrix, out=fitted[some])
        return fitted

    def inverse(self, fitted: np.ndarray) -> np.ndarray:  # (..., r) -> (..., d)
        """Fitted coordinates, of a kernel for instance, back in the user's units."""
        back = fitted * self.back if self.back.ndim == 1 else fitted @ self.back
        points = np.broadcast_to(self.centre, (*fitted.shape[:-1], len(self.centre))).copy()
        points[..., self.kept] += back
        return points

    def deviations(self, fitted: np.ndarray, some: np.ndarray) -> np.ndarray:  # (N, r) -> (N, s)
        """Fitted coordinates back in some of the columns that vary, each in its unit."""
        if self.back.ndim == 1:
            return fitted[:, some]
        return fitted @ (self.back / self.units)[:, some].astype(fitted.dtype)

    def strays(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (d - k,)
        """For each dropped column, how many rows differ from the value it always had."""
        dropped = self.dropped
        same = np.isclose(points[:, dropped], self.centre[dropped], rtol=1e-5, atol=0)
        return np.sum(~same, axis=0)


Preprocess = Callable[..., Transform]
"""A function of points; one with an argument ``is_numeric`` is also given which columns are
numbers."""


def fit_transform(
    preprocess: Preprocess, points: np.ndarray, is_numeric: np.ndarray | None
) -> Transform:
    """Call a preprocessing with what it takes."""
    if "is_numeric" in inspect.signature(preprocess).parameters:
        return preprocess(points, is_numeric=is_numeric)
    return preprocess(points)


def standardise(points: np.ndarray) -> Transform:
    """Zero mean and unit variance in every column.

    >>> import numpy as np
    >>> transform = standardise(np.array([[1.0, 7.0, 0.0], [3.0, 7.0, 0.5]]))
    >>> transform(np.array([[1.0, 7.0, 0.25]])).tolist(), transform.dropped.tolist()
    ([[-1.0, 0.0]], [1])
    """
    return _standardised(points)[0]


def _standardised(points: np.ndarray) -> tuple[Transform, np.ndarray]:
    """And the points without values far beyond all others."""
    limits = ordinary(points)
    usual = limits.without(points)
    kept, centre, scale = _varying(usual)
    return Transform(kept, centre, 1 / scale, scale, *limits), usual


BLOCK_VALUES = 2**20
"""Values that are worked on at a time: in double precision, they then stay in the caches."""

MAX_DIRECTIONS = 10
"""Kernels can cover up to this many directions."""

MAX_TURNED = 2**13
"""Columns that are freed of correlations at most: the map has a number for every pair of them."""

FLATTEST = 1e-3
"""A share of the variance of a column. Directions with less are stretched as if they had this."""


COPY = 1e-6
"""Columns whose correlation differs from 1 by less are the same in other units."""

MAX_GRADES = 20
"""Values at most of a number that may stand aside, as a grade or a weekday."""

FLAG_SPREAD = 0.7
"""Standard deviation of flags beside numbers of 1: the larger, the more rows of different levels
are apart, and the less rows that break a correlation of numbers (experiments/columns/spread.py)."""


def decorrelate(
    points: np.ndarray,
    is_numeric: np.ndarray | None = None,
    *,
    flag_spread: float = FLAG_SPREAD,
) -> Transform:
    """Unit variance in every direction, as long as no more than MAX_DIRECTIONS then count.

    Correlated columns leave thin directions. Rows that break the correlation stand out there, but a
    round kernel does not see it. So directions are stretched. But kernels have to cover each
    direction that is stretched, and in many dimensions most of them hold noise. The number of
    directions that count is ``(sum v)^2 / sum v^2`` of their variances v. Each v is divided by a
    power of itself, the largest one up to 1 with which no more than MAX_DIRECTIONS count. In few
    dimensions all directions then have the same variance; where too many count from the start, or
    there are more than MAX_TURNED columns, columns are only standardised (``left_correlated``).

    Numbers are decorrelated by themselves, whatever stands beside them; so are coordinates of an
    embedding, and flags: columns of two values, such as one for each level of a category. Numbers
    of at most MAX_GRADES values stand apart if the others are MAX_DIRECTIONS at most only then.

    Args:
        points: (N, d) rows of both samples.
        is_numeric: (d,) True for numbers and times, False for flags and coordinates of an embedding
            (default: all True).
        flag_spread: Standard deviation of flags beside other columns, which have 1.

    Returns:
        The transform of the columns.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(1000, 2))
    >>> x[:, 1] = x[:, 0] + 0.1 * x[:, 1]
    >>> abs(np.cov(decorrelate(x)(x).T)).round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    plain, usual = _standardised(points)
    k = len(plain.kept)
    if not 1 < k <= MAX_TURNED:
        return plain
    standardised = plain(usual)
    blocks = _kinds(usual, plain.kept, is_numeric)
    stretched = [
        (np.ix_(block, block), found)
        for block in blocks
        if len(block) > 1 and (found := _stretched(_columns(standardised, block))) is not None
    ]
    if not stretched:
        return plain
    forth, back = np.eye(k), np.eye(k)
    for block, found in stretched:
        forth[block], back[block] = found
    if len(blocks.flags) < k:
        forth[blocks.flags] *= flag_spread
        back[:, blocks.flags] /= flag_spread
    return plain._replace(matrix=plain.matrix[:, None] * forth, back=back * plain.back)


def _stretched(standardised: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The map that decorrelates and its inverse; None where too many directions count already."""
    covariance = _covariance(standardised)
    if np.trace(covariance) ** 2 >= MAX_DIRECTIONS * np.sum(covariance**2):
        return None
    variance, axes = np.linalg.eigh(covariance)
    variance = np.maximum(variance, FLATTEST)
    power = _flattening(variance[_n_copies(covariance) :])  # copies are the flattest directions
    if power == 0:
        return None
    # Stretched along the axes and turned back, so that each coordinate stays close to a column.
    stretch = variance ** (-power / 2)
    return (axes * stretch) @ axes.T, (axes / stretch) @ axes.T


def _covariance(standardised: np.ndarray) -> np.ndarray:
    return (standardised.T @ standardised).astype(np.float64) / len(standardised)


def _n_copies(covariance: np.ndarray) -> int:
    """Standardised columns that are an earlier one over again, whatever its unit and sign."""
    return int(np.any(np.abs(np.triu(covariance, 1)) > 1 - COPY, axis=0).sum())


class _Kinds(NamedTuple):
    """Columns that are decorrelated together, by their places among those that are kept."""

    numbers: np.ndarray
    grades: np.ndarray  # numbers of few values that stand aside
    flags: np.ndarray  # columns of two values
    coordinates: np.ndarray  # of embeddings


def _kinds(points: np.ndarray, kept: np.ndarray, is_numeric: np.ndarray | None) -> _Kinds:
    n_values = _counted(points[:1000, kept])  # most columns that have many values show it there
    few = np.flatnonzero(n_values <= MAX_GRADES)
    n_values[few] = _counted(points[:, kept[few]])
    is_flag = n_values == 2
    numeric = np.ones(len(kept), bool) if is_numeric is None else is_numeric[kept]
    numbers = numeric & ~is_flag
    grades = numbers & (n_values <= MAX_GRADES)
    if not 1 < np.sum(numbers & ~grades) <= MAX_DIRECTIONS < numbers.sum():
        grades[:] = False
    parts = (numbers & ~grades, grades, is_flag, ~numeric & ~is_flag)
    return _Kinds(*map(np.flatnonzero, parts))


def _counted(points: np.ndarray) -> np.ndarray:  # (N, d) -> (d,)
    """How many values each column has."""
    return 1 + np.count_nonzero(np.diff(np.sort(points, axis=0), axis=0), axis=0)


def left_correlated(
    transform: Transform, points: np.ndarray, is_numeric: np.ndarray | None = None
) -> tuple[str, ...]:
    """Return notes on numbers that ``decorrelate`` has not decorrelated, or only in part."""
    k = len(transform.kept)
    if k > MAX_TURNED:
        return (f"no column is decorrelated: there are more than {MAX_TURNED:,}. {THEN}",)
    kinds = _kinds(points, transform.kept, is_numeric)

    def alike(block: np.ndarray) -> np.ndarray:
        plain, usual = _standardised(points[:, transform.kept[block]])
        return _covariance(plain(usual))

    notes = []
    if len(kinds.grades):
        notes.append(
            f"{len(kinds.grades)} numeric columns of at most {MAX_GRADES} values are decorrelated "
            f"apart from the {len(kinds.numbers)} others: together they are more than "
            f"{MAX_DIRECTIONS}. {THEN}"
        )
    for what, block in (("", kinds.numbers), (f" of at most {MAX_GRADES} values", kinds.grades)):
        if len(block) < 2:
            continue
        turned = transform.matrix.ndim == 2 and transform.matrix[np.ix_(block, block)]
        some = np.count_nonzero(turned) > len(block)
        if not some or len(block) - _n_copies(alike(block)) > MAX_DIRECTIONS:
            notes.append(
                f"the {len(block)} numeric columns{what} are "
                f"{'decorrelated in part: in full,' if some else 'not decorrelated:'} more than "
                f"{MAX_DIRECTIONS} directions count. {THEN}"
            )
    return tuple(notes)


THEN = "Rows that break a correlation stand out less; compare fewer columns to look for them"


def _flattening(variance: np.ndarray) -> float:
    """The largest power up to 1 by which variances may be divided."""

    def directions(power: float) -> float:
        left = variance ** (1 - power)
        return float(left.sum() ** 2 / (left**2).sum())

    if directions(0) >= MAX_DIRECTIONS:
        return 0.0
    if directions(1) <= MAX_DIRECTIONS:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if directions(middle) < MAX_DIRECTIONS else (low, middle)
    return low


def unchanged(points: np.ndarray) -> Transform:
    """The columns as they are, for features that share a scale already."""
    kept, centre, _ = _varying(points)
    centre[kept] = 0
    return Transform(kept, centre, np.ones(len(kept)), np.ones(len(kept)), *ordinary(points))


def whiten(points: np.ndarray) -> Transform:
    """Unit variance in every direction, and no correlations.

    Directions in which the points do not vary, such as those beyond the number of rows, are left
    out.
    """
    limits = ordinary(points)
    points = limits.without(points)
    kept, centre, scale = _varying(points)  # which direction is flat must not depend on units
    standardised = (_columns(points, kept) - centre[kept]) / scale
    wide = len(points) < len(kept)  # the products of few rows are the smaller matrix
    products = standardised @ standardised.T if wide else standardised.T @ standardised
    variance, directions = np.linalg.eigh(products / len(points))
    # What rounding alone leaves of a direction without variance.
    floor = len(kept) * np.finfo(points.dtype).eps * variance[-1]
    solid = variance > floor
    variance, directions = variance[solid], directions[:, solid]
    if wide:
        directions = standardised.T @ directions / np.sqrt(len(points) * variance)
    matrix = directions / np.sqrt(variance)
    back = directions * np.sqrt(variance)
    return Transform(kept, centre, matrix / scale[:, None], back.T * scale, *limits)


def principal_directions(
    points: np.ndarray, n: int, weights: np.ndarray | None = None
) -> np.ndarray:  # (N, d) -> (d, n)
    """The directions of largest variance; zeros for those that the points do not have."""
    centred = points - np.average(points, axis=0, weights=weights).astype(points.dtype)
    if weights is not None:
        centred *= np.sqrt(weights / weights.max())[:, None]
    wide = len(centred) < len(centred.T)  # the products of few rows are the smaller matrix
    products = centred @ centred.T if wide else centred.T @ centred
    some = (max(0, len(products) - n), len(products) - 1)
    found = eigh(products, subset_by_index=some)[1][:, ::-1]
    if wide:
        found = centred.T @ found
        lengths = np.linalg.norm(found, axis=0)
        there = lengths > np.sqrt(np.finfo(found.dtype).eps) * lengths.max()
        found = np.where(there, found / np.where(there, lengths, 1), 0)
    # Of the two signs an eigenvector may have, the one whose largest entry is positive.
    largest = np.argmax(np.abs(found), axis=0)
    found = found * np.sign(found[largest, np.arange(found.shape[1])])
    return np.pad(found, [(0, 0), (0, n - found.shape[1])])


def _blocks(points: np.ndarray) -> Iterator[slice]:
    """Rows that stay in the caches together."""
    size = max(1, BLOCK_VALUES // points.shape[1])
    for start in range(0, len(points), size):
        yield slice(start, start + size)


def _columns(points: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """These columns; all of them are not copied."""
    return points if len(kept) == points.shape[1] else points[:, kept]


TINIEST = 2.0**20
"""Times the smallest number of full precision: columns that vary by less have few digits, and the
inverse of their spread may be infinite."""


def _varying(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (k,), (d,), (k,)
    """The columns that vary by more than rounding, every column's mean, and the kept ones' spread.

    In double precision, and block by block.
    """
    low, high = points.min(0), points.max(0)
    kind = np.finfo(points.dtype)
    noise = 8 * kind.eps * np.maximum(np.abs(low), np.abs(high))
    kept = np.flatnonzero(high - low > np.maximum(noise, kind.tiny * TINIEST))
    if len(kept) == 0:
        raise ValueError(
            f"none of the {points.shape[1]} columns varies by more than rounding; there is nothing "
            "to compare"
        )
    centre = points.mean(0, dtype=np.float64)
    # In a power of two as unit, which is exact: squares of very small numbers are zero.
    unit = np.ldexp(1.0, np.frexp((high - low)[kept].astype(np.float64))[1])
    total = np.zeros(len(kept))
    for some in _blocks(points):
        away = _columns(points[some], kept) - centre[kept]
        away /= unit
        total += np.einsum("ij,ij->j", away, away)
    return kept, centre, np.sqrt(total / len(points)) * unit
