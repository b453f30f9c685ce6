"""Rows of a table as numbers, in the way that an encoding says; further rows in the same way."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparker.tables.cells import out_of_range
from sparker.tables.checks import LACKING, UNSEEN, Caution
from sparker.tables.encoding import NOTHING, Encoding, fit
from sparker.tables.errors import ColumnsError, near, some
from sparker.tables.frames import as_table
from sparker.tables.headers import headers
from sparker.tables.kinds import Kind, is_missing
from sparker.tables.picture_files import picture_files
from sparker.tables.table import Table

INDICATOR, DROP, ERROR = MISSING_VALUES = "indicator", "drop", "error"
"""What to do where values are missing."""

N_NAMED = 5
"""Values of a column that a sentence names."""


class Encoded(NamedTuple):
    """Rows as numbers."""

    points: np.ndarray  # (N, d)
    rows: np.ndarray | None
    """(N,) which of the user's rows they are; None where they are all."""
    given: dict[str, np.ndarray]
    """(N,) each: the columns that are no plain numbers, as they came."""
    pictures: list[str] | None = None
    """(N,) the files of pictures, where some are compared; an empty name where one is missing."""


def more_rows(
    name: str, rows: Any, encoding: Encoding, missing: str
) -> tuple[Encoded, tuple[Caution, ...]]:
    """Further rows, encoded as those before; what is new in them is said."""
    table = as_table(name, rows)
    wanted = [column.name for column in encoding.columns]
    n_columns = table.points.shape[1]
    if encoding.named and table.columns:
        places = by_name(table, name, wanted)
    elif n_columns == encoding.n_columns:
        places = [column.place for column in encoding.columns]
    elif n_columns == len(wanted):
        places = list(range(n_columns))
    else:
        raise ColumnsError(
            f"{name} has {n_columns} columns, the test was made with {encoding.n_columns}"
        )
    names_rows = {
        one.name: table.column(table.columns.index(one.name))
        for one in encoding.left_out
        if one.name in table.columns
    }
    table = table.take(places)
    problems = [
        f"- {wanted[i]}: holds {what}, not one value a row" for i, what in table.lists.items()
    ]
    problems += [
        f"- {column.name}: {said}"
        for i, column in enumerate(encoding.columns)
        if (said := out_of_range(table.column(i), name))
    ]
    if missing == ERROR:
        problems += [
            f"- {column.name}: values are missing"
            for i, column in enumerate(encoding.columns)
            if is_missing(table.column(i)).any()
        ]
    if problems:
        raise ColumnsError(f"{name} cannot be compared as it is:\n" + "\n".join(problems))
    encoded = encode(encoding, table, missing, name)
    rows = slice(None) if encoded.rows is None else encoded.rows
    given = {of: column[rows] for of, column in names_rows.items()}
    dropped = rows_dropped({name: encoded}, {name: len(table.points)})
    found = changes(encoding, None, table.rows(encoded.rows))
    noted = (*headers({name: table}), *digits_lost({name: table}), *found, *dropped)
    return encoded._replace(given=given | encoded.given), noted


def by_name(table: Table, of: str, wanted: Sequence[str]) -> list[int]:
    """Where these columns are in a table."""
    places = {name: place for place, name in enumerate(table.columns)}
    absent = [name for name in wanted if name not in places]
    if absent:
        lines = [f"- {one}: {of} has no such column{near(one, table.columns)}" for one in absent]
        raise ColumnsError(
            "all samples must have the same columns, in any order:\n"
            + "\n".join(lines)
            + f"\n{of} has {some(table.columns)}; columns and ignore (--columns, --ignore) choose "
            "which are compared"
        )
    return [places[name] for name in wanted]


def encode(encoding: Encoding, table: Table, missing: str, of: str = "rows") -> Encoded:
    """The rows of a table as numbers."""
    rows = complete(of, table) if missing == DROP else None
    table = table.rows(rows)
    if encoding.plain and not np.isnan(table.points).any():
        return Encoded(table.points, rows, {})
    parts, problems, pictures = [], [], None
    for i, one in enumerate(encoding.columns):
        try:
            column = table.column(i)
            if one.kind == Kind.IMAGE:
                column = picture_files(table, i, of)
                pictures = [name or NOTHING for name in column]
            parts.append(one.encode(column))
        except ValueError as error:
            problems.append(f"- {one.name}: {error}")
    if problems:
        again = all(one.embedder is None for one in encoding.columns)
        what = "do not hold what they held before" if again else f"of {of} cannot be encoded"
        raise ColumnsError(f"columns {what}:\n" + "\n".join(problems))
    given = {
        one.name: table.column(i)
        for i, one in enumerate(encoding.columns)
        if one.kind != Kind.NUMBER or one.missing
    }
    times = any(one.kind == Kind.TIME for one in encoding.columns)
    single = all(one.embedder is not None for one in encoding.columns)
    dtype: Any = np.float32 if single else table.points.dtype
    dtype = np.float64 if times else dtype  # seconds need many digits
    return Encoded(np.hstack(parts).astype(dtype, copy=False), rows, given, pictures)


def complete(of: str, table: Table) -> np.ndarray | None:
    """The rows that lack no value; None where these are all."""
    gone = np.any([is_missing(table.column(i)) for i in range(table.points.shape[1])], axis=0)
    if gone.all():
        raise ColumnsError(
            f"every row of {of} lacks a value, and none is left with missing='drop' (--missing "
            "drop); leave out the columns with most of the gaps by ignore (--ignore)"
        )
    return np.flatnonzero(~gone) if gone.any() else None


def changes(encoding: Encoding, reference: Table | None, data: Table) -> list[Caution]:
    """Values of the data that the reference never has, and whether more of them are missing."""
    found = []
    for i, column in enumerate(encoding.columns):
        part = data.column(i)
        before = column
        if reference is not None and column.kind == Kind.CATEGORY:
            before = fit(column.name, column.place, column.kind, [reference.column(i)])
        new = before.unseen(part)
        if new:
            said = ", ".join(f"{text} ({n:,})" for text, n in new.most_common(N_NAMED))
            more = ", ..." if len(new) > N_NAMED else ""
            n = new.total()
            found.append(
                Caution(
                    UNSEEN,
                    f"{n:,} data row{'s' * (n != 1)} {'has' if n == 1 else 'have'} values of "
                    f"{column.name} that the reference never has: {said}{more}",
                )
            )
        n_missing = 0 if column.missing else int(is_missing(part).sum())
        if n_missing:
            found.append(
                Caution(
                    LACKING,
                    f"{n_missing:,} data row{' lacks' if n_missing == 1 else 's lack'} "
                    f"{column.name}, which is never missing in the reference; the test itself does "
                    "not see that",
                )
            )
    return found


def digits_lost(tables: Mapping[str, Table]) -> list[Caution]:
    """Which columns of whole numbers have more digits than a float keeps."""
    found = {of: [table.name(i) for i in sorted(table.rounded)] for of, table in tables.items()}
    return [
        Caution(
            "rounded",
            f"{of} has whole numbers beyond 2^53 in {some(names)}, of which only the first 15 "
            "digits are compared; if they are identifiers leave them out by ignore (--ignore), "
            "otherwise subtract a constant",
        )
        for of, names in found.items()
        if names
    ]


def rows_dropped(encoded: dict[str, Encoded], n_rows: dict[str, int]) -> list[Caution]:
    """How many rows missing="drop" took away."""
    found = []
    for of, one in encoded.items():
        n = n_rows[of] - len(one.points)
        if n:
            found.append(
                Caution(
                    "dropped rows",
                    f"{n:,} of the {n_rows[of]:,} rows of {of} lack a value and were dropped; what "
                    "is missing more often in one sample is not seen then",
                )
            )
    return found
