"""A line of names that are numbers: read as the first row, it is a row that nobody measured.

Text does not say whether its first line names the columns. Where that line is numbers, it is taken
for a row; but a table whose columns are called 0, 1, 2 or by years begins in the same way. It is
suspected only for what a row would hardly do: ordinary tables begin with numbers, too.
"""

from collections.abc import Mapping

import numpy as np

from sparker.tables.cells import is_number
from sparker.tables.checks import Caution
from sparker.tables.copies import row_hashes
from sparker.tables.source import block_rows
from sparker.tables.table import Table

MIN_COUNTED, MIN_STEPS = 3, 5
"""Columns at least that look counted: from 0 or 1, or in equal steps from anywhere (2015, 2020)."""

MIN_PAIRS = 1000
"""Pairs of rows of two tables, of which only the first are equal."""

WHAT_TO_DO = (
    "If it names the columns, write names there that are no numbers; if not, write such a line "
    "above it"
)


def headers(tables: Mapping[str, Table]) -> list[Caution]:
    """Whether the first row of these tables may be the names of their columns."""
    found = [_of_one(of, table) for of, table in tables.items() if table.headless]
    texts = [text for text in found if text] or _of_all(tables)
    return [Caution("header", text) for text in texts]


def _of_one(of: str, table: Table) -> str:
    """Where the first row is of another kind than all others."""
    why = ""
    words = next((i for i, part in table.others.items() if _only_first_is_number(part)), None)
    if words is not None:
        why = f"is all numbers, while column {words} holds words"
    elif _only_first_counts(table.points):
        why = "counts the columns, which no other row does"
    return f"the first line of {of} {why}. {WHAT_TO_DO}" if why else ""


def _only_first_is_number(part: np.ndarray) -> bool:
    texts = [text for text in part if isinstance(text, str)]
    return (
        len(texts) > 1
        and texts[0] is part[0]
        and is_number(texts[0])
        and not any(map(is_number, texts[1:]))
    )


def _only_first_counts(points: np.ndarray) -> bool:
    """Whether it, and no other row, is whole numbers in equal steps."""
    n_rows, width = points.shape
    begins = points[0, :2].tolist() in ([0, 1], [1, 2])
    least = MIN_COUNTED if begins else MIN_STEPS
    if n_rows < 2 or width < least or not _counts(points[:1]).any():
        return False
    size = block_rows(width)
    return not any(_counts(points[lo : lo + size]).any() for lo in range(1, n_rows, size))


def _counts(rows: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
    steps = np.diff(rows, axis=1)
    whole = np.all(rows == np.round(rows), axis=1)
    return whole & (steps[:, 0] != 0) & np.all(steps == steps[:, :1], axis=1)


def _of_all(tables: Mapping[str, Table]) -> list[str]:
    """Where two begin with the same row, and that is the only one they share."""
    if len(tables) != 2 or not all(table.headless for table in tables.values()):
        return []
    first, second = (table.points for table in tables.values())
    # One pair of rows is equal by chance, and it is these: one time in so many.
    likely = len(first) * len(second) < MIN_PAIRS
    are_names = len(np.unique(first[0])) == first.shape[1]  # unlike 0, 0, 0, where things began
    if likely or not are_names or not np.array_equal(first[0], second[0]):
        return []
    if (
        np.isin(row_hashes(first[1:]), row_hashes(second)).any()
        or np.isin(row_hashes(second[1:]), row_hashes(first)).any()
    ):
        return []
    return [f"{' and '.join(tables)} begin with the same line of numbers. {WHAT_TO_DO}"]
