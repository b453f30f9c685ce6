"""Columns that name pictures: which files these are, and whether they may be opened."""

import os
import re
from pathlib import Path

import numpy as np

from sparker.tables.errors import FileError, short
from sparker.tables.kinds import as_texts, is_missing
from sparker.tables.table import Table

SUFFIXES = {".png", ".jpg", ".jpeg"}
PICTURE = "picture"
"""The column of a folder of pictures."""


def in_folder(folder: str | os.PathLike[str]) -> list[Path]:
    """The pictures of a folder in the order of their names, 2.png before 10.png; no pipes."""
    named = (file for file in Path(folder).iterdir() if file.suffix.lower() in SUFFIXES)
    files = [file for file in named if file.is_file()]
    return sorted(files, key=_in_order)


def _in_order(file: Path) -> list[str | int]:
    parts = re.split("([0-9]+)", file.name)
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def as_rows(folder: str | os.PathLike[str]) -> Table:
    """A folder of pictures as a table of their names."""
    names = [file.name for file in in_folder(folder)]
    if not names:
        raise FileError(f"{folder} is a folder without pictures (.png, .jpg)")
    points = np.full((len(names), 1), np.nan)
    return Table(
        points, (PICTURE,), others={0: np.array(names, object)}, folder=os.path.abspath(folder)
    )


def picture_files(table: Table, place: int, of: str) -> np.ndarray:  # (N,)
    """The paths that a column names, None where a name is missing; all of them are there.

    Names in a file are seen from its folder, and must stay inside: whoever wrote a table must not
    have other pictures of its reader's looked at.
    """
    column = table.column(place)
    gone = is_missing(column)
    names = as_texts(column[~gone])
    paths = [os.path.join(table.folder or "", name) for name in names]
    numbers = np.flatnonzero(~gone).tolist()
    problems = []
    lost = [i for i, path in enumerate(paths) if not os.path.isfile(path)]
    if lost:
        problems.append(_said(lost, numbers, names, of, "is not there"))
    if table.folder is not None:
        inside = os.path.join(os.path.realpath(table.folder), "")  # where links lead to counts
        out = [i for i, path in enumerate(paths) if not os.path.realpath(path).startswith(inside)]
        if out:
            problems.append(_said(out, numbers, names, of, f"lies outside of {table.folder}"))
    if problems:
        raise ValueError(
            "; ".join(problems)
            + "; the column must hold the names of PNG or JPEG files, as seen from "
            + (table.folder or "the working folder")
        )
    found = np.full(len(column), None, object)
    found[~gone] = paths
    return found


def _said(which: list[int], numbers: list[int], names: list[str], of: str, what: str) -> str:
    others = f", and {len(which) - 1} more rows are like it" if len(which) > 1 else ""
    return f"row {numbers[which[0]]} of {of} names {short(names[which[0]])!r}, which {what}{others}"
