"""Cells of one column, as numbers or as strings: what counts as one, and what as missing.

Cells are *values* where the format knows numbers from strings, or *text* where all are strings.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np

Cells = np.ndarray | Sequence[Any]

MISSING = frozenset({"", "na", "n/a", "<na>", "nan", "null", "none"})
"""What stands for a missing value in text, in small letters."""

LARGEST = 1e150
"""Of larger numbers, squares are infinite."""

PERCENTAGE = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*%\s*")
"""A number with the sign behind it, as in 12.5%."""

EXACT = 2**53
"""Up to here, every whole number is a float."""

MAX_LOOKED_AT = 1000
"""Whole numbers of a piece that are compared with what they are as floats."""


class NotANumberError(Exception):
    """The first cell that is neither a number nor missing."""

    def __init__(self, value: object, index: int) -> None:
        self.value, self.index = value, index


def numbers_from_values(cells: Cells) -> np.ndarray:
    """Numbers from arrays or Python values, NaN where one is missing; strings are no numbers."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iubf":
        return cells
    values = as_values(cells)
    if set(map(type, values)) <= {int, float}:
        with suppress(OverflowError):  # of an integer beyond all floats
            return np.array(values, np.float64)
    return np.array([_from_value(index, value) for index, value in enumerate(values)], np.float64)


def _from_value(index: int, value: object) -> float:
    if value is None:
        return np.nan
    if not isinstance(value, int | float | Decimal | np.bool_ | np.number):
        raise NotANumberError(value, index)
    try:
        return float(value)
    except OverflowError:  # of an integer beyond all floats
        return np.inf if value > 0 else -np.inf
    except TypeError:  # of a complex number
        raise NotANumberError(value, index) from None


def numbers_from_text(cells: Cells) -> np.ndarray:
    """Numbers from the cells of a text file, NaN where one is missing."""
    if isinstance(cells, np.ndarray):
        return cells
    with suppress(ValueError):
        if "_" not in "".join(cells):  # 1_000 is a number in Python, but hardly in a file
            return np.array(list(map(float, cells)), np.float64)
    return np.array([_from_text(index, cell) for index, cell in enumerate(cells)], np.float64)


def _from_text(index: int, cell: str) -> float:
    if is_missing(cell):
        return np.nan
    if not is_number(cell):
        raise NotANumberError(cell, index)
    return float(cell)


def is_number(cell: str) -> bool:
    """Whether a cell of text is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def percentages(cells: Iterable[Any]) -> np.ndarray | None:  # (N,)
    """Cells of texts as the numbers before their percent signs, NaN where one is missing.

    None where any is not a percentage, or all are missing.

    >>> percentages(["12.5%", None, "7 %"]).tolist(), percentages(["12.5%", "0.1"])
    ([12.5, nan, 7.0], None)
    """
    found = []
    for cell in cells:
        known = PERCENTAGE.fullmatch(cell) if isinstance(cell, str) else None
        if known is None and cell is not None:
            return None
        found.append(np.nan if known is None else float(known[1]))
    numbers = np.array(found, np.float64)
    return None if np.isnan(numbers).all() else numbers


def is_missing(value: object) -> bool:
    """Whether a cell stands for a value that is not there."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or (isinstance(value, float) and value != value)


def typed_from_values(pieces: Sequence[Cells]) -> np.ndarray:
    """A column that is no feature: as it is if it is an array of numbers or times, else strings."""
    if all(isinstance(piece, np.ndarray) and piece.dtype.kind in "iubfcMm" for piece in pieces):
        return np.concatenate(pieces)
    values = [value for piece in pieces for value in as_values(piece)]
    if all(type(value) is int and abs(value) < 2**63 for value in values):
        return np.array(values, np.int64)
    try:
        numbers = numbers_from_values(values)
    except NotANumberError:
        return _strings(values)
    # Ids that are too long, or with gaps among them: floats would make different ones alike.
    return _strings(values) if loses_digits(values, numbers) else numbers


def typed_from_text(pieces: Sequence[Cells]) -> np.ndarray:
    """A column that is no feature: integers, lest long ids lose digits, else floats or strings."""
    cells = [cell for piece in pieces for cell in piece]
    with suppress(OverflowError, ValueError):
        if all(re.fullmatch(r"[+-]?\d+", cell) for cell in cells):
            return np.array(list(map(int, cells)), np.int64)
    # Ids that are too long, or with gaps among them: floats would make different ones alike.
    if any(len(cell) > 15 and cell.isdigit() for cell in cells):
        return _strings(cells)
    try:
        return numbers_from_text(cells)
    except NotANumberError:
        return _strings(cells)


def plain_values(cells: Cells) -> list[Any]:
    """Cells of a column that is no numbers: texts, True and False, None for missing ones."""
    return [
        None
        if is_missing(value)
        else bool(value)
        if isinstance(value, bool | np.bool_)
        else as_string(value)
        for value in as_values(cells)
    ]


def out_of_range(part: np.ndarray, of: str) -> str:  # (N,)
    """Numbers of a column that cannot be compared, for their size, and how to mend that."""
    if part.dtype.kind != "f":
        return ""
    for bad, what, advice in (
        (
            np.isinf(part),
            "infinite value{s}",
            "write a number there, or nothing if it is not known (what is beyond "
            f"{np.finfo(np.float64).max:.1e} counts as infinite)",
        ),
        (
            np.abs(part) > np.float64(LARGEST),
            f"value{{s}} beyond {LARGEST:g}, whose square is beyond all numbers,",
            "divide the column by a constant; or if they stand for what is not known, write "
            "nothing there",
        ),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            what = what.format(s="s" * (len(rows) > 1))
            return f"{len(rows)} {what} in {of}, the first in row {rows[0]}; {advice}"
    return ""


def is_large(numbers: np.ndarray) -> bool:
    """Whether there are numbers so large that not every whole one is a float."""
    return bool((np.abs(numbers) >= np.float64(EXACT)).any())  # beyond all half floats


def loses_digits(cells: Cells, numbers: np.ndarray) -> bool:
    """Whether whole numbers among the cells, values or text, are others as these floats."""
    if not is_large(numbers):
        return False
    large: list[int]
    if isinstance(cells, np.ndarray) and cells.dtype.kind != "O":
        if cells.dtype.kind not in "iu":
            return False
        large = cells[(cells > EXACT) | (cells < -EXACT)][:MAX_LOOKED_AT].tolist()
    else:
        whole = [
            int(cell) if type(cell) is str and len(cell) < 400 and cell.isdecimal() else cell
            for cell in cells
        ]
        large = [one for one in whole if type(one) is int and EXACT < abs(one) < 10**308]
    return any(int(float(one)) != one for one in large)


def n_bytes(cells: Cells) -> int:
    """How much memory cells take, about."""
    if isinstance(cells, np.ndarray) and not cells.dtype.hasobject:
        return cells.nbytes
    texts = sum(len(cell) for cell in cells if isinstance(cell, str | bytes))
    return texts + 64 * len(cells)


def as_objects(values: Sequence[Any]) -> np.ndarray:
    """Values of any kind as an array of them, whatever NumPy would make of them."""
    found = np.empty(len(values), object)
    found[:] = values
    return found


def has_truths(cells: Cells) -> bool:
    """Whether True or False is among the cells: then they are no numbers."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind != "O":
        return cells.dtype.kind == "b"
    return any(type(value) is bool for value in cells)


def _strings(values: Iterable[Any]) -> np.ndarray:
    # As objects: in an array of fixed width all would be as long as the longest text.
    return np.array([as_string(value) for value in values], object)


def as_string(value: Any) -> str:
    """A cell as text, empty where it is missing."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return "" if value is None else str(value)


def as_values(cells: Cells) -> Sequence[Any]:
    """Cells as Python values."""
    if not isinstance(cells, np.ndarray):
        return cells
    if cells.dtype.kind in "Mm":  # as a list, times in nanoseconds would be mere integers
        return [None if np.isnat(time) else str(time) for time in cells]
    return cells.tolist()
