"""What text formats share: lines, and rows that errors find by their line."""

import gzip
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparker.tables.cells import Cells
from sparker.tables.errors import FileError, bomb, check_memory, max_unpacked
from sparker.tables.source import Piece, Source

Block = Sequence[Cells]  # the columns of some rows

LONGEST_LINE = 2**26
"""Characters; what has no line breaks is no table, however much of it there is."""

BLOCK_CHARACTERS = 2**24
"""Of the lines that are read at a time: few rows, where they are long."""

BYTES_PER_CHARACTER = 24
"""Of a block, with the cells it is split into, which are there together: [[],[],[], ... of JSON."""


@contextmanager
def open_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a file, compressed or not."""
    is_packed = path.suffix.lower() == ".gz"
    opener = gzip.open if is_packed else open
    size = path.stat().st_size
    most = max_unpacked(size) if is_packed and path.is_file() else math.inf
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        yield _lines(file, size, most)


def _lines(file: Any, size: int, most: float) -> Iterator[str]:
    n_characters = 0
    for number in itertools.count(1):
        try:
            line = file.readline(LONGEST_LINE)
        except UnicodeDecodeError as error:
            raise FileError(
                f"is not UTF-8 text near line {number}; save it as UTF-8, or give it the suffix of "
                "its format"
            ) from error
        if len(line) == LONGEST_LINE:
            raise FileError(f"has a line {number} without end; is it a table at all?")
        if "\0" in line:
            raise FileError(
                f"has a null byte in line {number}, which no text has; it is damaged, or of "
                "another format: write it anew"
            )
        n_characters += len(line)
        if n_characters > most:
            raise bomb(size, n_characters)
        if not line:
            return
        yield line


def block_of(lines: Iterator[str], most: int) -> list[str]:
    """The next lines, up to so many; none at the end.

    A small file may unpack to any size, so what is there of it is counted line by line.
    """
    found: list[str] = []
    n_characters = 0
    for line in itertools.islice(lines, most):
        found.append(line)
        n_characters += len(line)
        if n_characters > BLOCK_CHARACTERS:
            check_memory(BYTES_PER_CHARACTER * n_characters, "lines as long as these")
            break
    return found


def text_source(
    names: Sequence[str], blocks: Callable[[bool], Iterator[Block]], *, named: bool, **how: Any
) -> Source:
    """A source from blocks of rows, which are told whether only numbers are wanted of them."""

    def pieces(wanted: tuple[str, ...], only_numbers: bool) -> Iterator[Piece]:
        position = {name: i for i, name in enumerate(names)}
        start = 0
        for columns in blocks(only_numbers):
            for name in wanted:
                yield name, start, columns[position[name]]
            start += len(columns[0])

    return Source(tuple(names), pieces, named=named, headless=not named, **how)
