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
    percentages,
)
from sparker.tables.columns import NAMELESS
from sparker.tables.files import open_table
from sparker.tables.identifiers import NUMBERS, numbers_rows
from sparker.tables.picture_files import SUFFIXES
from sparker.tables.problems import judged
from sparker.tables.rows import INDICATOR
from sparker.tables.source import Source

MAX_DISTINCT = 1000
"""Different values that are counted; beyond it there are just many."""

HEAD = 20_000
"""Rows that decide what a column is taken for."""

MAX_TEXT = 500
"""Characters of a text that are looked at."""

FILE = "the file"
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
        self.is_number, self.is_list, self.is_percent = True, False, True
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
            known = [value for value in values if value is not None]
            self.n_missing += len(values) - len(known)
            if known and self.is_percent:
                shares = percentages(known)
                self.is_percent = shares is not None
                self._widen(shares)
        else:
            there = numbers[~np.isnan(numbers)]
            self.n_missing += len(numbers) - len(there)
            self.is_percent &= not len(there)
            self._widen(there)
            values = numbers.tolist()
        if len(self.head) >= HEAD and not self.distinct:  # nothing was there so far
            self.head = []
        if len(self.head) < HEAD:
            self.head += values
        if len(self.distinct) <= MAX_DISTINCT:
            new = set(values) if numbers is None else {*np.unique(there).tolist()}
            self.distinct |= {as_string(value) for value in new if value is not None}

    def _widen(self, numbers: np.ndarray | None) -> None:
        if numbers is not None and len(numbers):
            self.ends += [float(numbers.min()), float(numbers.max())]
            self.ends = [min(self.ends), max(self.ends)]

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
        is_number = self.is_number or self.is_percent
        low, high = self.ends if is_number and self.ends else (None, None)
        distinct = min(len(self.distinct), MAX_DISTINCT + 1)
        return Column(self.name, kind, low, high, self.example, self.n_missing, distinct, role)

    def _judged(self) -> tuple[str, str]:
        part = self._part()
        named = self.source.named
        found = judged(self.name if named else "", {FILE: part}, INDICATOR, own=[FILE])
        kind = str(found.kind)
        if self.name in self.source.beside:
            return kind, "beside the table"
        if self.name == NAMELESS and named:
            is_index = self.name == self.source.names[0] and part.dtype.kind == "f"
            if is_index and numbers_rows(part):
                return kind, f"left out: it {NUMBERS}"
            return kind, "has no name: name it, or leave it out"
        if found.left_out:
            return kind, f"left out: it {found.left_out}"
        if found.to_embed:
            return kind, PICTURES if _are_pictures(part) else TEXTS
        if found.problem:
            return kind, f"cannot be compared: {found.problem}"
        if len(self.distinct) == 1 and not self.n_missing:
            return kind, "left out: it does not vary"
        return kind, FEATURE

    def _part(self) -> np.ndarray:
        if self.is_number:
            return np.array(self.head, np.float64)
        cells = as_objects([_cell(value) for value in self.head])
        shares = percentages(cells) if self.is_percent else None
        return cells if shares is None else shares


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
