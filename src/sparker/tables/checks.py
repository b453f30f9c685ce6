"""What in two tables makes a p-value other than it seems, each in a sentence.

A permutation test holds if every row was drawn by itself. A table cannot prove that, but it often
shows the contrary. A caution that is often wrong is not read, so ordinary tables must not be
suspected: rows are equal in tables of few values, and files are sorted.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sparker.ordinary import MAX_VALUES, REACH, Ordinary, ordinary
from sparker.tables.copies import Repeats, Shared, repeats, row_hashes, shared
from sparker.tables.neighbours import Trace, trace

UNSEEN, LACKING = "unseen values", "missing values"
FINDINGS = (UNSEEN, LACKING)
"""What the data have and the reference never has."""


class Caution(NamedTuple):
    """What the reader of a p-value should know of the tables."""

    code: str
    """"shared rows", "duplicates", "order", "far values", "few digits", "few reference rows", "few
    rows", and what the module ``intake`` adds."""
    text: str

    @property
    def is_finding(self) -> bool:
        """Whether this is what one looks for, and no reason to doubt the samples."""
        return self.code in FINDINGS


def cautions(
    reference: np.ndarray, data: np.ndarray, names: Sequence[str], *, within: bool = True
) -> list[Caution]:
    """What is wrong with two samples, or may be.

    Args:
        reference: (N_R, d), finite, rows in the order of the file.
        data: (N_D, d).
        names: of the columns; may be empty.
        within: whether to look for copies and order within a sample, too; where rows are known to
            belong together, both are as they should be.

    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> [caution] = cautions(rows[:250], rows[200:], ())
    >>> caution.code, caution.text.partition(":")[0]
    ('shared rows', '50 of the 100 data rows stand in the reference, too')
    """
    samples = dict(zip(("reference", "data"), _alike(reference, data), strict=True))
    hashes = {kind: row_hashes(rows) for kind, rows in samples.items()}
    again = shared(*hashes.values())
    found = []
    if again is not None:
        found.append(Caution("shared rows", _shared(again, len(reference), len(data))))
    if within:
        for kind, rows in samples.items():
            if (twice := repeats(rows, hashes[kind])) is not None:
                found.append(Caution("duplicates", _repeated(twice, kind, len(rows))))
        traces = {kind: trace(rows) for kind, rows in samples.items()}
        signs = [_sign(one, kind, names) for kind, one in traces.items() if one is not None]
        if signs:
            found.append(Caution("order", _ordered(signs)))
    return found + _sizes(len(reference), len(data), data.shape[1])


def _alike(*samples: np.ndarray) -> list[np.ndarray]:
    """0.1 in float32 and in float64 tables are equal only with the digits of the first."""
    single = any(rows.dtype.itemsize < 8 for rows in samples)
    return [rows.astype(np.float32 if single else np.float64, copy=False) for rows in samples]


MAX_NAMED = 3
"""Columns that are named, those with most far values first."""


def values_out_of_line(*samples: np.ndarray, names: Sequence[str]) -> list[Caution]:
    """Columns with values far from all others, and columns of which few digits are left.

    >>> [caution] = values_out_of_line(2.0**60 + 500 * np.arange(30.0)[:, None], names=("time",))
    >>> caution.text.partition(":")[0]
    'few digits are left of column time'
    """
    every = 1 + sum(points.size for points in samples) // MAX_VALUES  # of large ones some rows tell
    limits = ordinary(np.concatenate([points[::every] for points in samples]))
    return _far(limits, samples, names) + _few(limits, samples[0].dtype, names)


def _far(limits: Ordinary, samples: Sequence[np.ndarray], names: Sequence[str]) -> list[Caution]:
    """Values so far from all others of their column that they are taken to be nearer.

    A long tail reaches as far, but without a gap, and is nothing to speak of.
    """
    n_rows = sum(map(len, samples))
    low = np.min([points.min(0) for points in samples], axis=0)
    high = np.max([points.max(0) for points in samples], axis=0)
    found = []
    for column in np.flatnonzero((low < limits.low) | (high > limits.high)):
        middle = (limits.low[column] + limits.high[column]) / 2
        values = [points[:, column] for points in samples]
        with np.errstate(over="ignore"):
            away = [abs(some - middle) / (limits.high[column] - middle) for some in values]
        far = [some[distance > 1] for some, distance in zip(values, away, strict=True)]
        gap = not any(np.any((distance > 1 / 2) & (distance <= 1)) for distance in away)
        own = np.concatenate(far)
        if gap and len(own):
            found.append((len(own), column, own))
    if not found:
        return []
    found.sort(key=lambda one: (-one[0], one[1]))
    said = [
        f"{n} of the {n_rows} in column {_called(names, column)} ({_most_common(far)})"
        for n, column, far in found[:MAX_NAMED]
    ]
    if len(found) > MAX_NAMED:
        said.append(f"some in {len(found) - MAX_NAMED} more")
    text = (
        f"far from all other values lie {', '.join(said)}: they do not count for the scale of a "
        "column, and how far away they are makes no difference; if they stand for missing values, "
        "leave these fields empty in both files"
    )
    return [Caution("far values", text)]


MIN_STEPS = 100
"""Between neighbouring numbers of its precision, that a column's ordinary values should span."""


def _few(limits: Ordinary, kind: np.dtype[Any], names: Sequence[str]) -> list[Caution]:
    """Columns whose values differ by little more than neighbouring numbers of their precision.

    Whole numbers beyond 2^53 may do so, times in nanoseconds, and small numbers on a large offset.
    What was rounded when the numbers were read, or before, is gone.
    """
    with np.errstate(invalid="ignore"):  # columns without limits
        span, middle = (limits.high - limits.low) / (2 * REACH), (limits.low + limits.high) / 2
        step = np.maximum(np.spacing(np.abs(middle).astype(kind)), np.finfo(kind).tiny)
    found = np.flatnonzero(span < MIN_STEPS * step)
    said = [_called(names, column) for column in found[:MAX_NAMED]]
    if len(found) > MAX_NAMED:
        said.append(f"{len(found) - MAX_NAMED} more")
    if not said:
        return []
    text = (
        f"few digits are left of column{'s' * (len(said) > 1)} {', '.join(said)}: neighbouring "
        f"numbers of this precision lie {step[found[0]]:.2g} apart there, the values differ by "
        "little more, and what is finer was lost; subtract what all of them have in common before "
        "they become floating-point numbers, or take another unit"
    )
    return [Caution("few digits", text)]


def _called(names: Sequence[str], column: int | np.integer) -> str:
    return names[int(column)] if len(names) else str(column)


def _most_common(values: np.ndarray) -> str:
    different, counts = np.unique(values, return_counts=True)
    example = f"{different[np.argmax(counts)]:.6g}"
    return example if len(different) == 1 else f"{example}, for instance"


def _shared(found: Shared, n_reference: int, n_data: int) -> str:
    if found.n_rows == n_data:
        which = "itself" if n_reference == n_data else "a file that contains it"
        return (
            f"all {n_data} data rows stand in the reference, too: the file is tested against "
            f"{which}, and the p-value says nothing; take a reference without these rows"
        )
    by_chance = found.by_chance if 1 <= found.by_chance < found.n_rows else 0  # no other copies
    chance = f" (about {by_chance:.0f} of them by chance)" if by_chance else ""
    return (
        f"{found.n_rows} of the {n_data} data rows stand in the reference, too{chance}: with rows "
        "in both, the samples look more alike than they are, and the p-value is not what it "
        "seems; take these rows out of one of the two"
    )


def _repeated(found: Repeats, kind: str, n: int) -> str:
    if found.one_row:
        return (
            f"{found.n_rows} of the {n} {kind} rows are one and the same row, and the others "
            "hardly ever repeat: if it was measured so often, the p-value holds; if it stands for "
            "missing values, take it out of both files"
        )
    return (
        f"{found.n_rows} of the {n} {kind} rows repeat an earlier {kind} row exactly, more than "
        "the values of the columns explain: rows that were copied count several times, and the "
        "p-value is too small; keep one of each, or give rows that belong together as groups"
    )


def _sign(found: Trace, kind: str, names: Sequence[str]) -> str:
    column = f"column {_called(names, found.column)}"
    size = f"{abs(found.correlation):.2f}"
    if found.n_columns > 1:
        size += f", and {found.n_columns - 1} more of {found.n_looked_at} columns"
    if found.alike:
        return (
            f"neighbouring {kind} rows are alike (rank correlation of a row and the next in "
            f"{column} {size})"
        )
    way = "rises" if found.correlation > 0 else "falls"
    return f"{column} {way} along the {kind} rows (rank correlation {size})"


def _ordered(signs: list[str]) -> str:
    return (
        f"{'; '.join(signs)}: if the rows were only sorted, nothing is wrong; if neighbours belong "
        "together (a time series, several rows of one source), the p-value is too small; give "
        "rows that belong together as groups"
    )


def _sizes(n_reference: int, n_data: int, d: int) -> list[Caution]:
    found = []
    # Halves of a file, with a few rows more in one of them, are no reason to speak.
    if n_data > 1.1 * n_reference:
        text = (
            f"the data have {n_data} rows, and the reference only {n_reference}: the p-value "
            "holds, but so few reference rows limit what can be found; take more of them"
        )
        found.append(Caution("few reference rows", text))
    if 2 * (n_reference + n_data) < d:
        text = (
            f"the tables have {d} columns and together only {n_reference + n_data} rows: the "
            "p-value holds, but only gross differences can be found; take more rows, or fewer "
            "columns"
        )
        found.append(Caution("few rows", text))
    return found
