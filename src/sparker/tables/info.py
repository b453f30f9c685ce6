"""A file in brief: what is in it, column by column, and what a test would make of each."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sparker.tables.cells import (
    Cells,
    NotANumberError,
    as_objects,
    as_string,
    as_values,
    has_truths,
    is_missing,
)
from sparker.tables.files import open_table
from sparker.tables.identifiers import identifier
from sparker.tables.kinds import Kind, kind_of
from sparker.tables.picture_files import SUFFIXES
from sparker.tables.source import Source

MAX_DISTINCT = 1000
"""Different values that are counted; beyond it there are just many."""

HEAD = 20_000
"""Rows that decide what a column is taken for."""

MAX_TEXT = 500
"""Characters of a text that are looked at."""

FEATURE, LIST = "feature", "list"
TEXTS = "text: embed it, or leave it out"
PICTURES = "names of pictures: embed them, or leave them out"


class Column(NamedTuple):
    """One column of a file in brief."""

    name: str  # its number, where the file has no names
    kind: str = "number"  # or another ``Kind``, or "list" (not looked into)
    low: float | None = None  # the least and the greatest number
    high: float | None = None
    example: str | None = None  # the first text
    n_missing: int = 0
    distinct: int = 0  # different values, MAX_DISTINCT + 1 if there are more than MAX_DISTINCT
    role: str = FEATURE  # what a test makes of it, or why it leaves it out


class Info(NamedTuple):
    """A file in brief."""

    format: str
    rows: int
    columns: tuple[Column, ...]


def describe(path: str | os.PathLike[str], key: str | None = None) -> Info:
    """What a file holds, column by column, without ever holding all of it."""
    with open_table(path, key) as source:
        names = tuple(name for name in source.every if name not in source.lists)
        found = {name: _Seen(source, name) for name in names}
        rows = source.n_rows or 0
        for name, start, cells in source.pieces(names, True) if names else ():
            rows = max(rows, start + len(cells))
            found[name].add(cells)
        columns = tuple(
            found[name].column() if name in found else _lists(name) for name in source.every
        )
    return Info(source.format, rows, columns)


class _Seen:
    """A column, piece by piece."""

    def __init__(self, source: Source, name: str) -> None:
        self.source, self.name = source, name
        self.is_number, self.is_list = True, False
        self.ends: list[float] = []
        self.example: str | None = None
        self.n_missing = 0
        self.distinct: set[Any] = set()
        self.head: list[Any] = []

    def add(self, cells: Cells) -> None:
        numbers = self._numbers(cells)
        values: Any
        if numbers is None:
            values = [None if is_missing(value) else _cut(value) for value in as_values(cells)]
            if any(isinstance(value, list | dict) for value in values):
                self.is_list = True
                return
            self.n_missing += sum(value is None for value in values)
        else:
            there = numbers[~np.isnan(numbers)]
            self.n_missing += len(numbers) - len(there)
            if len(there):
                self.ends += [float(there.min()), float(there.max())]
                self.ends = [min(self.ends), max(self.ends)]
            values = numbers.tolist()
        if len(self.head) < HEAD:
            self.head += values
        if len(self.distinct) <= MAX_DISTINCT:
            new = set(values) if numbers is None else {*np.unique(there).tolist()}
            self.distinct |= {as_string(value) for value in new if value is not None}

    def _numbers(self, cells: Cells) -> np.ndarray | None:
        if self.is_number and not has_truths(cells):
            try:
                return self.source.numbers(cells).astype(np.float64)
            except NotANumberError as error:
                self.example = as_string(_cut(error.value))
        self.is_number = False
        return None

    def column(self) -> Column:
        """What is known of it in the end."""
        if self.is_list:
            return _lists(self.name)
        kind, role = self._judged()
        low, high = self.ends if self.is_number and self.ends else (None, None)
        distinct = min(len(self.distinct), MAX_DISTINCT + 1)
        return Column(self.name, kind, low, high, self.example, self.n_missing, distinct, role)

    def _judged(self) -> tuple[str, str]:
        head = self.head[:HEAD]
        if self.is_number:
            part = np.array(head, np.float64)
        else:
            part = as_objects([_cell(value) for value in head])
        kind = kind_of([part]) if self.distinct else Kind.NUMBER
        if self.name in self.source.beside:
            return str(kind), "beside the table"
        if not self.distinct:
            return str(kind), "left out: it has no values"
        why = identifier(self.name if self.source.named else "", [part])
        if why is not None:
            return str(kind), f"left out: it {why}"
        if kind == Kind.TEXT:
            return str(kind), PICTURES if _are_pictures(part) else TEXTS
        if len(self.distinct) == 1 and not self.n_missing:
            return str(kind), "left out: it does not vary"
        if self.ends and not np.isfinite(self.ends).all():
            return str(kind), "has infinite values"
        return str(kind), FEATURE


def _are_pictures(part: np.ndarray) -> bool:
    """Whether all values of a column end as files of pictures do."""
    known = [str(value) for value in part if not is_missing(value)]
    return all(Path(value).suffix.lower() in SUFFIXES for value in known)


def _cut(value: Any) -> Any:
    """Of a long text only so much as tells that it is one."""
    return value[:MAX_TEXT] if isinstance(value, str | bytes) else value


def _lists(name: str) -> Column:
    return Column(name, LIST, role="cannot be compared")


def _cell(value: Any) -> str | bool | None:
    if value is None or value != value:
        return None
    return bool(value) if isinstance(value, bool | np.bool_) else as_string(value)
