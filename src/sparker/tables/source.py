"""A table that is open: the one thing that formats make, and that readers ask."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparker.tables.cells import Cells, numbers_from_values, plain_values, typed_from_values
from sparker.tables.errors import FileError

Piece = tuple[str, int, Cells]  # a column, a row, the cells from there on

BLOCK_ROWS, BLOCK_VALUES = 8192, 2**20
"""How much is read at a time: so many rows, and of wide tables no more than so many values."""

MAX_COLUMNS = 2**20


class Source(NamedTuple):
    """What columns a table has, and how to get at them."""

    names: tuple[str, ...]
    pieces: Callable[[tuple[str, ...], bool], Iterator[Piece]]
    """Of these columns; whether only numbers are wanted of them, which text gives much faster."""
    format: str = ""
    named: bool = True  # otherwise the names are the columns' numbers
    headless: bool = False  # whether text begins with numbers, which may be meant as names
    n_rows: int | None = None  # None where only reading tells
    beside: tuple[str, ...] = ()  # columns that are never features
    lists: Collection[str] = ()  # columns with more or other than one value a row
    single: Collection[str] = ()  # columns of floats of single precision or less
    numbers: Callable[[Cells], np.ndarray] = numbers_from_values
    typed: Callable[[Sequence[Cells]], np.ndarray] = typed_from_values
    plain: Callable[[Cells], list[Any]] = plain_values
    """Cells of a column that is no numbers: texts, True and False, None for missing ones."""

    @property
    def every(self) -> tuple[str, ...]:
        """All columns, features or not."""
        return self.names + self.beside

    def label(self, name: str) -> str:
        """The column as errors call it."""
        return f"column {name!r}" if self.named or name in self.beside else f"column {name}"


def check_width(n_columns: int) -> None:
    """Refuse more columns than are sensible, before each has a name."""
    if n_columns > MAX_COLUMNS:
        raise FileError(
            f"has {n_columns:,} columns, and at most {MAX_COLUMNS:,} can be distinguished; take "
            "fewer of them, or check whether rows and columns have changed places"
        )


def block_rows(width: int) -> int:
    """How many rows of so many columns to read at a time."""
    return max(min(BLOCK_ROWS, BLOCK_VALUES // max(width, 1)), 1)
