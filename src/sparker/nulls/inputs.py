"""The two samples as given, checked: every scheme starts from them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sparker.engine.sample import as_alike, as_weights
from sparker.nulls.tilt import Tilt
from sparker.system.numbers import counted

Weights = ArrayLike | tuple[ArrayLike, ArrayLike] | Callable[[Any], ArrayLike]
"""Weights of the reference rows; those and the weights of the data rows; or a function of rows."""


class Samples(NamedTuple):
    """The two samples as given, checked."""

    reference: np.ndarray  # (N_R, d)
    data: np.ndarray  # (N_D, d)
    weights: np.ndarray | None  # (N_R,) of the reference rows
    expected: float | None  # data rows; None where only the shape is compared
    groups: tuple[np.ndarray, np.ndarray] | None
    """(N_R,), (N_D,): the groups of the rows, numbered from 0 through both."""
    data_weights: np.ndarray | None = None
    """(N_D,) the weights that data rows would have as reference rows, where these are known."""
    strata: tuple[np.ndarray, np.ndarray] | None = None
    """(N_R,), (N_D,): the strata of the rows, numbered from 0 through both."""
    tilt: Tilt | None = None
    """What nuisance parameters do to the rows, of the reference and then of the data."""

    @property
    def own_weights(self) -> np.ndarray:  # (N_R,)
        """The weights of the reference rows, ones if none were given."""
        return np.ones(len(self.reference)) if self.weights is None else self.weights

    def with_reference_rows(self, rows: np.ndarray) -> "Samples":
        """The same with only some reference rows."""
        strata = None if self.strata is None else (self.strata[0][rows], self.strata[1])
        weights = None if self.weights is None else self.weights[rows]
        tilt = None
        if self.tilt is not None:
            of_data = len(self.reference) + np.arange(len(self.data))
            tilt = self.tilt.of(np.concatenate([rows, of_data]))
        return self._replace(
            reference=self.reference[rows], weights=weights, strata=strata, tilt=tilt
        )

    def check_rows(self, n: int) -> None:
        """Refuse samples of fewer rows."""
        for name, rows in (("reference", self.reference), ("data", self.data)):
            if len(rows) < n:
                raise ValueError(
                    f"{name} has {counted(len(rows), 'row')}, fewer than the {n} kernels; take "
                    "more rows or a config with fewer kernels"
                )


def samples(
    reference: ArrayLike,
    data: ArrayLike,
    *,
    reference_weights: Weights | None = None,
    expected: float | None = None,
    groups: tuple[ArrayLike, ArrayLike] | None = None,
    strata: tuple[ArrayLike, ArrayLike] | None = None,
) -> Samples:
    """Check both samples and what belongs to them; ``together`` checks what goes together."""
    points, data_points = as_alike("reference", reference, "data", data)
    n_reference, n_data = len(points), len(data_points)
    weights, data_weights = _weights(reference_weights, reference, data, n_reference, n_data)
    numbered = numbered_strata = None
    if groups is not None:
        numbered = _numbered("groups", groups, n_reference, n_data)
        _check_groups(groups, numbered)
    if strata is not None:
        numbered_strata = _numbered("strata", strata, n_reference, n_data)
        _check_strata(strata, numbered_strata, numbered)
    return Samples(
        points,
        data_points,
        weights,
        None if expected is None else float(expected),
        numbered,
        data_weights,
        numbered_strata,
    )


def is_pair(given: Any) -> bool:
    """Whether weights are those of the reference rows and of the data rows."""
    if isinstance(given, tuple):
        return True
    return isinstance(given, list) and len(given) == 2 and np.ndim(given[0]) == 1


def _weights(
    given: Weights | None, reference: Any, data: Any, n_reference: int, n_data: int
) -> tuple[np.ndarray | None, np.ndarray | None]:  # (N_R,), (N_D,)
    """The weights of reference rows and, where these are known, of data rows."""
    if given is None:
        return None, None
    name, of_data_name = "reference_weights", "reference_weights of the data rows"
    if callable(given):
        given = evaluated(given, reference, data, n_reference, n_data)
    if not is_pair(given):
        weights = as_weights(name, given, n_reference)  # type: ignore[arg-type]
        return (None, None) if np.all(weights == weights[0]) else (weights, None)
    parts = list(given)  # type: ignore[arg-type]
    if len(parts) != 2:
        raise ValueError(
            f"{name} must be one a reference row, a function of rows, or a pair: of the reference "
            f"rows and of the data rows; got {len(parts)} of them"
        )
    weights = as_weights(name, parts[0], n_reference)
    of_data = as_weights(of_data_name, parts[1], n_data)
    if np.any(of_data == 0):
        raise ValueError(
            f"{name} is 0 at {np.sum(of_data == 0)} data rows, the first of them row "
            f"{int(np.argmin(of_data))}: with such weights no reference row could ever be there. "
            "Leave these rows out and look at them on their own, or mend the weights"
        )
    if np.all(weights == weights[0]) and np.all(of_data == weights[0]):
        return None, None
    return weights, of_data


def evaluated(
    function: Callable[[Any], ArrayLike], reference: Any, data: Any, n_reference: int, n_data: int
) -> tuple[np.ndarray, np.ndarray]:
    """A function's weights of the rows as they were given."""

    def of(rows: Any, n_rows: int) -> np.ndarray:
        found = function(np.asarray(rows) if isinstance(rows, list) else rows)
        return as_weights("what the function reference_weights gives", found, n_rows)

    of_reference, of_data = of(reference, n_reference), of(data, n_data)
    alone = np.asarray(function(np.asarray(data)[:1] if isinstance(data, list) else data[:1]))
    if not np.allclose(alone, of_data[:1], rtol=1e-6, atol=0):
        raise ValueError(
            "the function reference_weights gives a row another weight beside other rows than "
            "alone; it must depend on each row by itself, so leave normalising to the test"
        )
    return of_reference, of_data


def _numbered(
    name: str, given: tuple[ArrayLike, ArrayLike], n_reference: int, n_data: int
) -> tuple[np.ndarray, np.ndarray]:
    """Groups or strata of any names by numbers."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(
            f"{name} must be a pair: the {name} of the reference rows and those of the data rows"
        )
    names = [np.asarray(part) for part in given]
    for of, part, n_rows in zip(("reference", "data"), names, (n_reference, n_data), strict=True):
        if part.shape != (n_rows,):
            raise ValueError(
                f"the {name} of {of} must have shape ({n_rows},), one a row, got {part.shape}"
            )
    numeric = [part.dtype.kind in "iufb" for part in names]
    if names[0].dtype.kind != names[1].dtype.kind and any(numeric) and not all(numeric):
        raise ValueError(
            f"{name} must be of one kind, got {names[0].dtype} for reference and {names[1].dtype} "
            "for data"
        )
    if not any(numeric) and any(part.dtype == object for part in names):
        names = [part.astype(object) for part in names]
    both = np.concatenate(names)
    n_missing = sum(map(_is_missing, both)) if both.dtype.kind not in "biu" else 0
    if n_missing:
        raise ValueError(
            f"{name} are missing for {n_missing} rows; leave these rows out, or give them {name} "
            "of their own"
        )
    try:
        numbers = np.unique(both, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"{name} must be all numbers or all strings ({error})") from error
    return numbers[:n_reference], numbers[n_reference:]


def _is_missing(value: Any) -> bool:
    """Whether this is None, NaN, an empty text, or a table's own sign for a missing value."""
    try:
        return value is None or value == "" or bool(value != value)
    except TypeError:  # neither true nor false: as pandas has it
        return True


def _check_groups(
    groups: tuple[ArrayLike, ArrayLike], numbered: tuple[np.ndarray, np.ndarray]
) -> None:
    shared = np.intersect1d(*numbered)
    if len(shared):
        one = np.asarray(groups[1])[numbered[1] == shared[0]][0]
        raise ValueError(
            f"group {one!s} has rows in both reference and data, as have {len(shared) - 1} "
            "others; a group is relabelled whole, so give groups of different samples different "
            "names"
        )


def _check_strata(
    strata: tuple[ArrayLike, ArrayLike],
    numbered: tuple[np.ndarray, np.ndarray],
    groups: tuple[np.ndarray, np.ndarray] | None,
) -> None:
    alone = np.setdiff1d(numbered[1], numbered[0])
    if len(alone):
        one = np.asarray(strata[1])[numbered[1] == alone[0]][0]
        raise ValueError(
            f"{len(alone)} strata have data rows but no reference rows, {one!s} for one; "
            "there is nothing to compare these rows with. Leave them out, or use coarser strata"
        )
    if groups is not None:
        of_group, of_row = np.concatenate(groups), np.concatenate(numbered)
        first = np.unique(of_group, return_index=True)[1]
        torn = np.flatnonzero(of_row != of_row[first][of_group])
        if len(torn):
            raise ValueError(
                f"groups lie within strata, but {len(np.unique(of_group[torn]))} of them have rows "
                "in several; make strata of whole groups, or name the parts of a group by its "
                "stratum"
            )
