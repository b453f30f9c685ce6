"""A file in brief: what is in it, column by column."""

import os
from typing import NamedTuple

import numpy as np

from sparker.tables.cells import Cells, NotANumberError, as_string, as_values, is_missing
from sparker.tables.files import open_table
from sparker.tables.source import Source


class Column(NamedTuple):
    """One column of a file in brief."""

    name: str  # its number, where the file has no names
    kind: str = "number"  # or "text" (whatever is no number), or "list" (not looked into)
    low: float | None = None  # the least and the greatest number
    high: float | None = None
    example: str | None = None  # the first text
    n_missing: int = 0


class Info(NamedTuple):
    """A file in brief."""

    format: str
    rows: int
    columns: tuple[Column, ...]


def describe(path: str | os.PathLike[str], key: str | None = None) -> Info:
    """What a file holds, column by column, without ever holding all of it."""
    with open_table(path, key) as source:
        found = {
            name: Column(name, "list" if name in source.lists else "number")
            for name in source.every
        }
        names = tuple(name for name in source.every if name not in source.lists)
        rows = source.n_rows or 0
        for name, start, cells in source.pieces(names, True) if names else ():
            rows = max(rows, start + len(cells))
            found[name] = _updated(found[name], source, cells)
    return Info(source.format, rows, tuple(found.values()))


def _updated(column: Column, source: Source, cells: Cells) -> Column:
    """A column in brief with one more piece of it."""
    if column.kind == "number":
        try:
            numbers = source.numbers(cells)
        except NotANumberError as error:
            column = Column(
                column.name, "text", example=as_string(error.value), n_missing=column.n_missing
            )
        else:
            there = numbers[~np.isnan(numbers)]
            ends = [value for value in (column.low, column.high) if value is not None]
            ends += [float(there.min()), float(there.max())] if len(there) else []
            return column._replace(
                low=min(ends, default=None),
                high=max(ends, default=None),
                n_missing=column.n_missing + len(numbers) - len(there),
            )
    return column._replace(n_missing=column.n_missing + sum(map(is_missing, as_values(cells))))
