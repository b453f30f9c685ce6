"""CSV and TSV: cells between commas, semicolons or tabs, with or without a line of names."""

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from sparker.tables.cells import is_large, is_missing, is_number, numbers_from_text, typed_from_text
from sparker.tables.errors import FileError
from sparker.tables.format import Format
from sparker.tables.source import Source, block_rows, check_width
from sparker.tables.text import Block, block_of, open_lines, text_source


@contextmanager
def open_delimited(path: Path, key: str | None, delimiter: str | None = None) -> Iterator[Source]:
    """A table of cells; what stands between them shows in the first line, unless it is given."""
    with open_lines(path) as lines:
        top = block_of(lines, 100)
        between = delimiter or _delimiter(top)
        filled = ((n, row) for n, row in _records(top, between) if not _is_blank(row))
        records = list(itertools.islice(filled, 2))
        if not records:
            raise FileError("is blank; a test needs some rows")
        n_lines, first = records[0]
        named = _is_header(first, records[1][1] if len(records) > 1 else None)
        if named:
            names = [cell.strip() for cell in first]
            names[0] = names[0].removeprefix("# ")  # as numpy.savetxt writes it
        else:
            names = list(map(str, range(len(first))))
            n_lines = 0
        rest = itertools.chain(top[n_lines:], lines)
        yield text_source(
            names,
            lambda only_numbers: _blocks(rest, n_lines, between, len(names), only_numbers),
            named=named,
            numbers=numbers_from_text,
            typed=typed_from_text,
        )


def _delimiter(top: Sequence[str]) -> str:
    line = next((line for line in top if line.strip()), "")
    unquoted = re.sub('"[^"]*"', "", line)
    return max(",;\t", key=unquoted.count)


def _records(
    lines: Iterable[str], delimiter: str, n_before: int = 0, *, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Lines as cells, each with the number of its last line."""
    reader = csv.reader(
        _sensible(lines, delimiter), delimiter=delimiter, skipinitialspace=True, strict=strict
    )
    try:
        for row in reader:
            yield n_before + reader.line_num, row
    except csv.Error as error:
        raise FileError(
            f"cannot be split into cells in line {n_before + reader.line_num}: {error}; check the "
            "quotes"
        ) from error


def _sensible(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    for line in lines:
        check_width(1 + line.count(delimiter))  # before each of its cells is a text of its own
        yield line


def _is_blank(row: Sequence[str]) -> bool:
    return not any(map(str.strip, row))


def _is_header(first: Sequence[str], second: Sequence[str] | None) -> bool:
    """Whether the first line names the columns."""
    words = [not is_number(cell) and not is_missing(cell) for cell in first]
    if all(words) or (any(words) and not any(map(is_number, first))):
        return True
    if not any(words):
        # Names that pandas gives by itself, over what is clearly no count.
        counted = list(first) == list(map(str, range(len(first))))
        return counted and second is not None and not any(map(str.isdigit, second))
    if any(word and is_number(cell) for word, cell in zip(words, second or (), strict=False)):
        return True
    raise FileError(
        "has both names and numbers in its first line; put a line above that names every column"
    )


def _blocks(
    lines: Iterator[str], n_before: int, delimiter: str, width: int, only_numbers: bool
) -> Iterator[Block]:
    """Blocks of rows from the lines after the first ``n_before``."""
    while block := block_of(lines, block_rows(width)):
        matrix = _matrix(block, delimiter) if only_numbers else None
        if matrix is not None and matrix.shape == (len(block), width):
            n_before += len(block)
            yield list(matrix.T)
            continue
        rows, n_before = _rows(block, lines, n_before, delimiter, width)
        if rows:
            yield list(zip(*rows, strict=True))


def _matrix(lines: list[str], delimiter: str) -> np.ndarray | None:
    """Lines of nothing but numbers, several times as fast as cell by cell."""
    if not lines[0].strip():
        return None
    try:
        found = np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError:
        return None
    # Of larger whole numbers only the text has all digits.
    return None if is_large(found) else found


def _rows(
    block: list[str], lines: Iterator[str], n_before: int, delimiter: str, width: int
) -> tuple[list[list[str]], int]:
    """The long way: whatever is quoted, blank, missing or wrong is dealt with row by row.

    The rows, and how many lines there were up to here.
    """
    rows, last = [], n_before + len(block)
    # A quoted cell may go on beyond the block.
    every = itertools.chain(block, lines)
    for number, row in _records(every, delimiter, n_before, strict=True):
        if len(row) == width:
            rows.append(row)
        elif not _is_blank(row):
            raise FileError(
                f"has {len(row)} cells in line {number}, but {width} in the first; give every line "
                "the same"
            )
        if number >= last:
            last = number
            break
    return rows, last


FORMATS = {
    ".csv": Format("CSV", open_delimited, is_text=True),
    ".tsv": Format("TSV", partial(open_delimited, delimiter="\t"), is_text=True),
}
