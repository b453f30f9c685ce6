"""Two samples as one set of weighted points, checked where they come in.

A point is reference, data, or (both weights zero) padding. Batches of toys are the same three
arrays with a leading axis, in one of two forms that the engine tells apart by the shape:

* a *pool*: all toys share ``points`` of shape (N, d) and differ by their weights (B, N);
* *per toy*: every toy has points of its own, (B, N, d), short ones padded with zero weight.
"""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    AnyArray = jax.Array | np.ndarray
else:
    AnyArray = np.ndarray
    """What files give back."""


class TwoSample(NamedTuple):
    """Points, and how much each counts as reference and as data.

    NumPy arrays as this module makes them; the compiled training sees JAX arrays in their place.
    """

    points: AnyArray  # (N, d), or (B, N, d) per toy
    reference_weight: AnyArray  # (N,), or (B, N): w_R times the event's own weight
    data_weight: AnyArray  # (N,), or (B, N)

    @property
    def is_batch(self) -> bool:
        """Whether this holds many toys, in either form."""
        return self.data_weight.ndim == 2

    def toys(self, indices: Sequence[int]) -> "TwoSample":
        """The batch with only the toys of these indices."""
        if not self.is_batch:
            raise ValueError("this is a single sample; only a batch has toys to choose from")
        chosen = np.asarray(indices)
        shared = self.points.ndim == 2
        return TwoSample(
            self.points if shared else self.points[chosen],
            self.reference_weight[chosen],
            self.data_weight[chosen],
        )

    def alone(self, position: int) -> "TwoSample":
        """One toy of the batch as a single sample, with the rows it uses and no others."""
        points = np.asarray(self.points)
        reference, data = (np.asarray(weight)[position] for weight in self[1:])
        used = (reference > 0) | (data > 0)
        own = points[position] if points.ndim == 3 else points
        return TwoSample(own[used], reference[used], data[used])


def two_sample(
    reference: ArrayLike,
    data: ArrayLike,
    *,
    reference_weights: ArrayLike | None = None,
    expected: float | None = None,
) -> TwoSample:
    """One reference and one data sample, ready to fit.

    Every reference row gets the weight ``w_R = expected / sum(reference_weights)`` times its own,
    so that the reference adds up to the ``expected`` number of data rows. Left out, that is the
    number of rows in ``data``: only the shape is compared. A known expectation makes the test
    sensitive to the total count as well (the extended likelihood).

    >>> sample = two_sample([[0.0], [1.0], [2.0], [3.0]], [[1.5], [1.6]])
    >>> sample.reference_weight.tolist()
    [0.5, 0.5, 0.5, 0.5, 0.0, 0.0]
    """
    reference_points, data_points = as_alike("reference", reference, "data", data)
    points = np.concatenate([reference_points, data_points])
    weights = np.ones(len(points), points.dtype)
    if reference_weights is not None:
        weights[: len(reference_points)] = as_weights(
            "reference_weights", reference_weights, len(reference_points)
        )
    is_data = np.arange(len(points)) >= len(reference_points)
    return pool(points, is_data, weights=weights, expected=expected)


def pool(
    points: ArrayLike,
    is_data: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    expected: ArrayLike | None = None,
) -> TwoSample:
    """One set of points, labelled once or once per toy.

    ``is_data`` of shape (N,) labels a single sample, (B, N) labels B toys. ``weights`` are the
    events' own, used where a point is reference. ``expected`` is a number or one per toy, and
    defaults to each toy's number of data rows.
    """
    x = as_points("points", points)
    labels = np.asarray(is_data)
    if not np.all((labels == 0) | (labels == 1)):
        raise ValueError("is_data must be True or 1 for data, False or 0 for reference")
    labels = labels.astype(bool)
    if labels.ndim not in (1, 2) or labels.shape[-1] != len(x):
        raise ValueError(
            f"is_data must have shape ({len(x)},) or (toys, {len(x)}), got {labels.shape}"
        )
    own = np.ones(len(x), x.dtype) if weights is None else as_weights("weights", weights, len(x))
    n_data = labels.sum(-1)
    total = np.where(labels, 0, own).sum(-1, dtype=np.float64)
    if np.any(n_data == 0):
        raise ValueError(f"no data rows{_in_toy(n_data == 0)}; a test needs at least one")
    if np.any(total <= 0):
        raise ValueError(
            f"reference weights sum to zero{_in_toy(total <= 0)}; a test needs a reference "
            "with at least one row of positive weight"
        )
    count = n_data if expected is None else np.asarray(expected, dtype=np.float64)
    if count.shape not in ((), n_data.shape) or not np.all((count > 0) & np.isfinite(count)):
        raise ValueError(
            "expected must be a positive number of data rows"
            f"{' or one for each toy' if labels.ndim == 2 else ''}, got {expected!r}"
        )
    w_reference = np.asarray(count / total, dtype=x.dtype)[..., None]
    return TwoSample(x, np.where(labels, 0, own * w_reference), labels.astype(x.dtype))


def stack(samples: Sequence[TwoSample]) -> TwoSample:
    """Toys with points of their own as one batch, padded with weightless rows to the longest."""
    if not samples:
        raise ValueError("samples is empty; stack needs at least one")
    features = {sample.points.shape[1] for sample in samples}
    if len(features) != 1:
        raise ValueError(f"samples have {sorted(features)} features; all must have the same")
    n_rows = max(len(sample.points) for sample in samples)
    padded = [pad(sample, n_rows) for sample in samples]
    return TwoSample(*(np.stack(arrays) for arrays in zip(*padded, strict=True)))


def pad(sample: TwoSample, n_rows: int) -> TwoSample:
    """A single sample lengthened to ``n_rows`` by rows of zero weight.

    They are put at the mean of the points, so that the mean does not change; up to rounding no
    result changes.
    """
    missing = n_rows - len(sample.points)
    if missing < 0:
        raise ValueError(f"n_rows must be at least {len(sample.points)}, got {n_rows}")
    points = np.asarray(sample.points)
    middle = np.broadcast_to(points.mean(0, np.float64), (missing, points.shape[1]))
    return TwoSample(
        np.concatenate([points, middle.astype(points.dtype)]),
        np.pad(sample.reference_weight, (0, missing)),
        np.pad(sample.data_weight, (0, missing)),
    )


def as_points(name: str, values: ArrayLike) -> np.ndarray:
    """Rows of finite features as a float array, or a ``ValueError`` that says what is wrong.

    An array that is fine already comes back as it is.
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values; drop these rows or fill them")
    array = np.asarray(values)
    if array.ndim != 2:
        remedy = "; for a single feature use np.asarray(x)[:, None]" if array.ndim == 1 else ""
        raise ValueError(f"{name} must be 2-D (rows, features), got shape {array.shape}{remedy}")
    if 0 in array.shape:
        raise ValueError(f"{name} is empty, shape {array.shape}; at least one row is needed")
    array = _as_float(name, array)
    if not np.all(np.isfinite(array)):
        bad = np.argwhere(~np.isfinite(array))
        row, column = bad[0]
        raise ValueError(
            f"{name} has {len(bad)} NaN or infinite value{'s' * (len(bad) > 1)}, the first in row "
            f"{row}, column {column}; drop or impute these rows"
        )
    return array


def as_alike(
    name: str, values: ArrayLike, other_name: str, other: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of rows with the same columns, see ``as_points``."""
    points, other_points = as_points(name, values), as_points(other_name, other)
    if points.shape[1] != other_points.shape[1]:
        raise ValueError(
            f"{other_name} has {other_points.shape[1]} features, {name} has {points.shape[1]}; "
            "both must have the same columns"
        )
    check_columns(other_name, column_names(other), name, column_names(values))
    points, other_points = in_one_precision({name: points, other_name: other_points})
    return points, other_points


def in_one_precision(rows: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Rows by their names in the lowest precision that any of them has.

    0.1 is another number in single precision than in double. Samples of different precision would
    differ by this alone.
    """
    lowest = min((array.dtype for array in rows.values()), key=lambda dtype: dtype.itemsize)
    with np.errstate(over="ignore"):
        found = {name: array.astype(lowest, copy=False) for name, array in rows.items()}
    for name, array in found.items():
        if array is not rows[name] and not np.all(np.isfinite(array)):
            raise ValueError(
                f"{name} has values too large for the single precision that the other rows have; "
                "give all of them in double precision"
            )
    return tuple(found.values())


def column_names(table: object) -> tuple[str, ...]:
    """The names of a table's columns, where it has any."""
    named = getattr(table, "column_names", None)  # of pyarrow, whose columns are arrays
    return tuple(str(name) for name in (getattr(table, "columns", ()) if named is None else named))


def check_columns(
    name: str, columns: tuple[str, ...], other_name: str, other_columns: tuple[str, ...]
) -> None:
    """Refuse tables whose columns have other names, or another order; either may have no names."""
    if columns and other_columns and columns != other_columns:
        raise ValueError(
            f"{name} has the columns {list(columns)}, {other_name} has {list(other_columns)}; "
            "features are compared place by place, so give both the same, in the same order"
        )


def as_weights(name: str, values: ArrayLike, n_rows: int) -> np.ndarray:
    """One finite weight of at least zero for each row, not all zero."""
    array = _as_float(name, np.asarray(values))
    if array.shape != (n_rows,):
        raise ValueError(f"{name} must have shape ({n_rows},), one a row, got {array.shape}")
    if not np.all(np.isfinite(array)) or not np.any(array):
        raise ValueError(f"{name} must be finite, none negative and not all zero")
    if np.any(array < 0):
        raise ValueError(
            f"{name} must be finite, none negative and not all zero, but {np.sum(array < 0)} of "
            f"{n_rows} are negative: where they outweigh the others no density is left, and no "
            "toy can be drawn from them. Merge each with near rows of positive weight (cell "
            "resampling), or generate with positive weights"
        )
    return array


def _as_float(name: str, array: np.ndarray) -> np.ndarray:
    """Single precision stays, half goes up to it, everything else numeric becomes double."""
    if array.dtype == object:  # what tables with columns of several types give
        with contextlib.suppress(TypeError, ValueError):
            if not any(isinstance(value, str) for value in array.flat):
                array = array.astype(np.float64)
    is_float = jnp.issubdtype(array.dtype, np.floating)  # unlike NumPy's, knows bfloat16
    if not is_float and array.dtype.kind not in "iub":
        raise ValueError(
            f"{name} must be numeric, got dtype {array.dtype}; encode or drop other columns"
        )
    single = is_float and array.dtype.itemsize <= 4
    return array.astype(np.float32 if single else np.float64, copy=False)


def _in_toy(is_bad: np.ndarray) -> str:
    return f" in toy {int(np.argmax(is_bad))}" if is_bad.ndim else ""
