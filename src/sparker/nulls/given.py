"""The two samples as given: what every scheme starts from, checked."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sparker.rows import Rows
from sparker.sample import as_alike, as_weights, check_columns, column_names


class Samples(NamedTuple):
    """The two samples as given, checked."""

    reference: np.ndarray  # (N_R, d); some of them where they are streamed
    data: np.ndarray  # (N_D, d)
    weights: np.ndarray | None  # (N_R,) of the reference rows
    expected: float | None  # data rows; None where only the shape is compared
    groups: tuple[np.ndarray, np.ndarray] | None
    """(N_R,), (N_D,): the groups of the rows, numbered from 0 through both."""
    columns: tuple[str, ...] = ()  # names, where the reference has any
    rows: Rows | None = None  # the whole reference, where it is streamed
    row_weights: np.ndarray | None = None  # and the weights of all of it

    @property
    def n_reference(self) -> int:
        """How many reference rows there are."""
        return len(self.reference) if self.rows is None else len(self.rows)

    @property
    def own_weights(self) -> np.ndarray:  # (N_R,)
        """The weights of the reference rows, ones if none were given."""
        return np.ones(len(self.reference)) if self.weights is None else self.weights

    @property
    def n_units(self) -> int:
        """How many data rows there are, or groups of them: what is relabelled as one."""
        return len(self.data) if self.groups is None else len(np.unique(self.groups[1]))


def samples(
    reference: ArrayLike | Rows,
    data: ArrayLike,
    *,
    reference_weights: ArrayLike | None = None,
    expected: float | None = None,
    groups: tuple[ArrayLike, ArrayLike] | None = None,
    may_stream: bool = False,
) -> Samples:
    """Check everything a scheme starts from."""
    rows = None
    if may_stream and isinstance(reference, Rows):
        # All that can be known before it is read, which may take a while.
        nobody = np.zeros((1, reference.shape[1]))
        data_points = as_alike("reference", nobody, "data", data)[1]
        check_columns("data", column_names(data), "reference", reference.columns)
        check_whole(reference, len(data_points), reference_weights, expected, groups)
        rows = reference
        reference_points = rows.survey.points
    else:
        reference_points, data_points = as_alike("reference", reference, "data", data)
    weights = None
    if reference_weights is not None:
        n_weights = len(reference_points) if rows is None else len(rows)
        weights = as_weights("reference_weights", reference_weights, n_weights)
        if np.all(weights == weights[0]):
            weights = None
    if expected is not None and not 0 < expected < np.inf:
        raise ValueError(f"expected must be a positive number of data rows, got {expected}")
    numbered = None
    if groups is not None:
        if expected is not None or weights is not None:
            raise ValueError(
                f"groups cannot be used with {'expected' if expected else 'reference_weights'}: "
                "rows that belong together neither count as Poisson nor carry weights of their own"
            )
        numbered = _numbered(groups, len(reference_points), len(data_points))
    count = None if expected is None else float(expected)
    some = weights if rows is None or weights is None else weights[rows.survey.rows]
    names = column_names(reference)
    return Samples(
        reference_points,
        data_points,
        some,
        count,
        numbered,
        names,
        rows,
        None if rows is None else weights,
    )


MOST_ROWS = 10**9
"""That can be relabelled by bits: where NumPy's hypergeometric numbers end."""


def check_whole(
    reference: Rows, n_data: int, weights: object, expected: object, groups: object
) -> None:
    """Refuse what a streamed reference does not go with, before it is read."""
    if groups is not None:
        raise ValueError("groups need all rows in memory; leave them out, or stream no reference")
    if weights is not None and expected is not None:
        raise ValueError(
            "a streamed reference takes reference_weights or expected, not both; leave one out, or "
            "stream no reference"
        )
    if len(reference) + n_data >= MOST_ROWS:
        raise ValueError(
            f"reference and data have {len(reference) + n_data:,} rows, and fewer than "
            f"{MOST_ROWS:,} can be relabelled; take a part of the reference, five to ten times the "
            "data tell as much"
        )


def _numbered(
    groups: tuple[ArrayLike, ArrayLike], n_reference: int, n_data: int
) -> tuple[np.ndarray, np.ndarray]:
    """Groups of any names by numbers."""
    if not isinstance(groups, tuple | list) or len(groups) != 2:
        raise ValueError(
            "groups must be a pair: the groups of the reference rows and those of the data rows"
        )
    names = [np.asarray(part) for part in groups]
    for name, part, n_rows in zip(("reference", "data"), names, (n_reference, n_data), strict=True):
        if part.shape != (n_rows,):
            raise ValueError(
                f"the groups of {name} must have shape ({n_rows},), one a row, got {part.shape}"
            )
    if names[0].dtype.kind != names[1].dtype.kind:
        raise ValueError(
            f"groups must be of one kind, got {names[0].dtype} for reference and {names[1].dtype} "
            "for data"
        )
    shared = np.intersect1d(names[0], names[1])
    if len(shared):
        raise ValueError(
            f"group {shared[0]!s} has rows in both reference and data, as have {len(shared) - 1} "
            "others; a group is relabelled whole, so give groups of different samples different "
            "names"
        )
    numbers = np.unique(np.concatenate(names), return_inverse=True)[1]
    return numbers[:n_reference], numbers[n_reference:]
