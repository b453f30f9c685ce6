"""Tables from files: one row an event, one column a feature; the suffix tells the format.

Every format is opened as a ``_Source``, which knows its columns and hands out pieces of them. So
what is asked of a table (which columns, are they numbers, is a value missing) is asked once, for
all formats alike. Nothing is ever unpickled.
"""

import csv
import difflib
import errno
import functools
import gzip
import importlib
import itertools
import json
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from sparker.memory import free_in_container

Names = Sequence[str] | None
Cells = np.ndarray | Sequence[Any]
Piece = tuple[int, int, Cells]  # the number of a column asked for, a row, the cells from there on

BLOCK_ROWS, BLOCK_VALUES = 8192, 2**20
"""How much is read at a time: so many rows, and of wide tables no more than so many values."""

LONGEST_LINE = 2**26
"""Characters; what has no line breaks is no table, however much of it there is."""

LARGEST_HEADER = 2**17
"""Characters that NumPy may parse as an array's header: some thousand named fields."""

MISSING = frozenset({"", "na", "n/a", "<na>", "nan", "null", "none"})
"""What stands for a missing value in text, in small letters."""

PICKLED = "holds pickled Python objects, which can run code when loaded and never are; save numbers"

ROOT_VALUE = r"u?int\d+_t|float|double|bool|char|Float16_t|Double32_t|string|char\*|TString"
"""What ROOT calls one value; anything else is a list or an object."""

STARTS = {
    b"\x93NUMPY": ("a NumPy array", (".npy",)),
    b"PK\x03\x04": ("a zip archive", (".npz",)),
    b"PAR1\x15": ("Parquet", (".parquet",)),
    b"\x89HDF": ("HDF5", (".h5", ".hdf5")),
    b"root\x00": ("ROOT", (".root",)),
    b"\x1f\x8b": ("something compressed with gzip", (".gz",)),
    b"\x89PNG": ("a picture", ()),
    b"\xff\xd8\xff": ("a picture", ()),
    b"%PDF": ("a PDF", ()),
    b"<!DOCTY": ("a web page", ()),
    b"<!docty": ("a web page", ()),
    b"<html": ("a web page", ()),
}
"""How files of some formats begin, and the suffixes they may have."""


class FileError(ValueError):
    """A file that does not hold the table asked for; what is wrong with it and what to do."""


class Table(NamedTuple):
    """What was read from a file. Where arrays go in, its points go in with their names."""

    points: np.ndarray  # (N, d), finite; float32 if all of it is in the file, float64 otherwise
    columns: tuple[str, ...]  # (d,) names; empty where the file has none
    extra: dict[str, np.ndarray]  # (N,) each: numbers, or strings as objects

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.points, dtype, copy=copy)


class Column(NamedTuple):
    """One column of a file in brief."""

    name: str  # its number, where the file has no names
    kind: str  # "number", "text" (anything that is not a number), or "list" (not looked into)
    low: float | None  # the least and the greatest number
    high: float | None
    example: str | None  # the first text
    n_missing: int


class Info(NamedTuple):
    """A file in brief."""

    format: str
    rows: int
    columns: tuple[Column, ...]


def read(
    path: str | os.PathLike[str],
    *,
    columns: Names = None,
    ignore: Sequence[str] = (),
    extra: Sequence[str] = (),
    key: str | None = None,
) -> Table:
    r"""Read a table: its features as points, and the columns asked for beside them.

    Columns of files without names (.npy, .csv without a first line of names, 2-D datasets) go by
    their numbers, "0", "1", ... Where 1-D arrays of the same length lie beside a 2-D one in an .npz
    or HDF5 file, they can be asked for as ``extra``. Errors count rows from 0, lines from 1.

    Args:
        path: a .npy, .npz, .csv, .tsv, .jsonl (.ndjson), .parquet, .h5 (.hdf5) or .root file; text
            may be compressed (.csv.gz). "file.root:tree" names the ``key`` as well.
        columns: the features, in this order; all columns but ``ignore`` and ``extra`` if left out.
        ignore: columns that are no features.
        extra: columns that are not features but are wanted: weights, groups, texts. A missing value
            is NaN among numbers and empty among strings. One named in ``columns``, too, is both.
        key: which dataset or group of an HDF5 file, array of an .npz or tree of a ROOT file, where
            there are several.

    Raises:
        FileNotFoundError: if there is no such file.
        FileError: a ``ValueError``, whatever else is wrong with the file.
        ImportError: if the package that reads this format is not installed.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "events.csv"
    >>> _ = file.write_text("pt,eta,weight\n31.5,0.2,1.0\n48.0,-1.1,0.9\n")
    >>> table = read(file, extra=["weight"])
    >>> table.columns, table.points.tolist(), table.extra["weight"].tolist()
    (('pt', 'eta'), [[31.5, 0.2], [48.0, -1.1]], [1.0, 0.9])
    """
    with _open(path, key) as source:
        features, extras = _choose(source, _listed(columns), _listed(ignore), _listed(extra))
        d = len(features)
        single = all(name in source.single for name in features)
        points = np.empty((0, d), np.float32 if single else np.float64)
        _make_room(points, source.n_rows or 0)
        kept: list[list[Cells]] = [[] for _ in extras]
        rows = [0] * (d + len(extras))  # of each column, so far
        for column, start, cells in source.pieces(features, extras):
            rows[column] = stop = start + len(cells)
            if column >= d:
                # A copy, since a part of a block would hold on to all of it.
                kept[column - d].append(cells.copy() if isinstance(cells, np.ndarray) else cells)
                continue
            if stop > len(points):
                _make_room(points, stop + stop // 4)
            points[start:stop, column] = _finite(source, features[column], start, cells)
        if len(set(rows)) > 1:
            raise FileError(f"is damaged: its columns end after {min(rows)} to {max(rows)} rows")
        if not rows[0]:
            raise FileError("has no rows; a test needs some")
        points.resize((rows[0], d), refcheck=False)
        typed = {name: source.typed(cells) for name, cells in zip(extras, kept, strict=True)}
    return Table(points, features if source.named else (), typed)


def describe(path: str | os.PathLike[str], key: str | None = None) -> Info:
    """What a file holds, column by column, without ever holding all of it."""
    with _open(path, key) as source:
        names = tuple(name for name in source.names + source.beside if name not in source.lists)
        found = {name: Column(name, "number", None, None, None, 0) for name in names}
        rows = source.n_rows or 0
        for column, start, cells in source.pieces(names, ()) if names else ():
            rows = max(rows, start + len(cells))
            found[names[column]] = _updated(found[names[column]], source, cells)
        found |= {name: Column(name, "list", None, None, None, 0) for name in source.lists}
        columns = tuple(found[name] for name in source.names + source.beside)
    return Info(source.format, rows, columns)


def _updated(column: Column, source: "_Source", cells: Cells) -> Column:
    """A column in brief with one more piece of it."""
    if column.kind == "number":
        try:
            numbers = source.numbers(cells)
        except _NotANumberError as error:
            example = _string(error.value)
            column = Column(column.name, "text", None, None, example, column.n_missing)
        else:
            there = numbers[~np.isnan(numbers)]
            bounds = [value for value in (column.low, column.high) if value is not None]
            bounds += [float(there.min()), float(there.max())] if len(there) else []
            return column._replace(
                low=min(bounds, default=None),
                high=max(bounds, default=None),
                n_missing=column.n_missing + len(numbers) - len(there),
            )
    return column._replace(n_missing=column.n_missing + sum(map(_is_missing, _values(cells))))


# --- What is asked of every table -----------------------------------------------------------------


class _NotANumberError(Exception):
    def __init__(self, value: object, index: int = 0) -> None:
        self.value, self.index = value, index


def _numbers_from_values(cells: Cells) -> np.ndarray:
    """Numbers from arrays or Python values, NaN where one is missing; strings are no numbers."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iubf":
        return cells
    values = _values(cells)
    if set(map(type, values)) <= {int, float}:
        with suppress(OverflowError):  # of an integer beyond all floats
            return np.array(values, np.float64)
    return np.array([_from_value(index, value) for index, value in enumerate(values)])


def _from_value(index: int, value: object) -> float:
    if value is None:
        return np.nan
    if not isinstance(value, int | float | Decimal | np.bool_ | np.number):
        raise _NotANumberError(value, index)
    try:
        return float(value)
    except (OverflowError, TypeError):  # the latter from complex numbers
        raise _NotANumberError(value, index) from None


def _numbers_from_text(cells: Cells) -> np.ndarray:
    """Numbers from the cells of a text file, NaN where one is missing."""
    if isinstance(cells, np.ndarray):
        return cells
    with suppress(ValueError):
        if "_" not in "".join(cells):  # 1_000 is a number in Python, but hardly in a file
            return np.array(list(map(float, cells)), np.float64)
    return np.array([_from_text(index, cell) for index, cell in enumerate(cells)], np.float64)


def _from_text(index: int, cell: str) -> float:
    if _is_missing(cell):
        return np.nan
    if not _is_number(cell):
        raise _NotANumberError(cell, index)
    return float(cell)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _is_missing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    return value is None or (isinstance(value, float) and value != value)


def _typed_from_values(pieces: Sequence[Cells]) -> np.ndarray:
    """A column that is no feature: as it is if it is an array of numbers or times, else strings."""
    arrays = [piece for piece in pieces if isinstance(piece, np.ndarray)]
    if arrays and len(arrays) == len(pieces) and all(a.dtype.kind in "iubfcMm" for a in arrays):
        return np.concatenate(arrays)
    values = [value for piece in pieces for value in _values(piece)]
    if all(type(value) is int and abs(value) < 2**63 for value in values):
        return np.array(values, np.int64)
    try:
        return _numbers_from_values(values)
    except _NotANumberError:
        return _strings(values)


def _typed_from_text(pieces: Sequence[Cells]) -> np.ndarray:
    """A column that is no feature: integers, lest long ids lose digits, else floats or strings."""
    cells = [cell for piece in pieces for cell in piece]
    with suppress(OverflowError, ValueError):
        if all(re.fullmatch(r"[+-]?\d+", cell) for cell in cells):
            return np.array(list(map(int, cells)), np.int64)
    # Ids that are too long, or with gaps among them: floats would make different ones alike.
    if any(len(cell) > 15 and cell.isdigit() for cell in cells):
        return _strings(cells)
    try:
        return _numbers_from_text(cells)
    except _NotANumberError:
        return _strings(cells)


def _strings(values: Iterable[Any]) -> np.ndarray:
    # As objects: in an array of fixed width all would be as long as the longest text.
    return np.array([_string(value) for value in values], object)


def _string(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return "" if value is None else str(value)


def _values(cells: Cells) -> Sequence[Any]:
    if not isinstance(cells, np.ndarray):
        return cells
    if cells.dtype.kind in "Mm":  # as a list, times in nanoseconds would be mere integers
        return [None if np.isnat(time) else str(time) for time in cells]
    return cells.tolist()


class _Source(NamedTuple):
    """A table that is open: what columns it has, and how to get at them."""

    names: tuple[str, ...]
    pieces: Callable[[tuple[str, ...], tuple[str, ...]], Iterator[Piece]]  # of features and extras
    format: str = ""
    named: bool = True  # otherwise the names are the columns' numbers
    n_rows: int | None = None  # None where only reading tells
    beside: tuple[str, ...] = ()  # columns that are never features
    lists: Collection[str] = ()  # columns with more or other than one value a row
    single: Collection[str] = ()  # columns of floats of single precision or less
    numbers: Callable[[Cells], np.ndarray] = _numbers_from_values
    typed: Callable[[Sequence[Cells]], np.ndarray] = _typed_from_values
    where: Callable[[int], str] = "row {}".format

    def label(self, name: str) -> str:
        """The column as errors call it."""
        return f"column {name!r}" if self.named or name in self.beside else f"column {name}"


def _choose(
    source: _Source, columns: Names, ignore: Sequence[str], extra: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the features and of the columns beside them."""
    for name in columns or ():
        _must_exist(name, source.names, source)
    for name in (*ignore, *extra):
        _must_exist(name, source.names + source.beside, source)
    if columns is None:
        others = {*ignore, *extra}
        columns = [name for name in source.names if name not in others]
    elif set(columns) & set(ignore):
        both = next(name for name in columns if name in ignore)
        raise FileError(f"is to be read with {source.label(both)} and without it; decide for one")
    if not columns:
        raise FileError(f"has no column left to test; it has {_some(source.names + source.beside)}")
    if len(set(columns)) < len(columns):
        raise FileError("is to be read with one column named twice; name it once")
    if "" in columns:
        raise FileError(
            f"has no name for its column number {source.names.index('')}; name it, or leave it out "
            "with --ignore '' (pandas writes row numbers like this, unless told index=False)"
        )
    lists = [name for name in dict.fromkeys((*columns, *extra)) if name in source.lists]
    if lists:
        raise FileError(
            f"has lists or objects instead of one number a row in {_some(lists)}; make columns of "
            "them (the first entry, the largest, how many, ...), or leave them out with --ignore"
        )
    return tuple(columns), tuple(dict.fromkeys(extra))


def _must_exist(name: str, names: tuple[str, ...], source: _Source) -> None:
    if name in names:
        return
    if not source.named and not source.beside:
        raise FileError(
            f"has no column {name!r}; its columns have no names and go by their numbers, 0 to "
            f"{len(names) - 1}"
        )
    close = [other for other in names if other.lower() == name.lower()]
    close += difflib.get_close_matches(name, names, 1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise FileError(f"has no column {name!r}{hint}; it has {_some(names)}")


def _finite(source: _Source, name: str, start: int, cells: Cells) -> np.ndarray:
    """A piece of a feature as numbers, all there and all finite."""
    try:
        numbers = source.numbers(cells)
    except _NotANumberError as error:
        value = _short(repr(error.value))
        hint = ""
        if isinstance(error.value, str) and re.fullmatch(r"[+-]?\d+,\d+", error.value.strip()):
            hint = "write decimals with a point, "
        raise FileError(
            f"has {value} in {source.where(start + error.index)}, {source.label(name)}, which is "
            f"not a number; {hint}encode it as numbers, or leave the column out with --ignore "
            f"{name}"
        ) from None
    fine = np.isfinite(numbers)
    if not fine.all():
        index = int(np.argmin(fine))
        what = "no value" if np.isnan(numbers[index]) else "an infinite value"
        raise FileError(
            f"has {what} in {source.where(start + index)}, {source.label(name)}; drop or fill in "
            f"such rows, or leave the column out with --ignore {name}"
        )
    return numbers


def _make_room(points: np.ndarray, n_rows: int) -> None:
    """Lengthen an array in place, so that a table is never there twice."""
    d = points.shape[1]
    _check_memory((n_rows - len(points)) * d * points.itemsize, f"{n_rows} rows and {d} columns")
    points.resize((n_rows, d), refcheck=False)


def _check_memory(n_bytes: int, what: str) -> None:
    """Refuse what cannot fit, before the machine starts to swap; a small file may claim it."""
    free = min(psutil.virtual_memory().available, free_in_container())
    if n_bytes > free:
        raise FileError(
            f"needs {n_bytes / 2**30:.3g} GiB for {what}, while {free / 2**30:.3g} GiB are free; "
            "take fewer columns or rows"
        )


def _listed(names: Names) -> Any:
    """Names as a list; a single one may come as a string, and a column's number as a number."""
    if names is None:
        return None
    return [names] if isinstance(names, str) else [str(name) for name in names]


def _some(names: Iterable[str], most: int = 12) -> str:
    every = [name or "''" for name in names]
    if len(every) <= most:
        return ", ".join(every)
    return f"{', '.join(every[:most])}, ... ({len(every)} in all)"


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


# --- Opening a file, and saying why it cannot be read ---------------------------------------------


@contextmanager
def _open(path: str | os.PathLike[str], key: str | None) -> Iterator[_Source]:
    """The table in a file; whatever goes wrong while it is open becomes one plain sentence."""
    file, key = _split(path, key)
    suffix = _suffix(file)
    try:
        if not file.exists():
            raise FileNotFoundError(f"there is no file {file}; check its name and folder")
        if file.is_dir():
            raise FileError("is a folder; name a file in it")
        if suffix not in FORMATS:
            raise FileError(f"has none of the suffixes that can be read: {_some(FORMATS)}")
        if key is not None and suffix not in (".npz", ".h5", ".hdf5", ".root"):
            raise FileError(f"holds a single table; leave out the key {key!r}")
        _check_start(file, suffix)
        with FORMATS[suffix].opener(file, key) as source:
            name, count = Counter(source.names).most_common(1)[0] if source.names else ("", 0)
            if count > 1:
                raise FileError(f"has {count} columns named {name!r}; give each its own name")
            yield source._replace(format=FORMATS[suffix].name)
    except FileError as error:
        raise FileError(f"{file} {error}") from error.__cause__
    except (FileNotFoundError, ImportError):
        raise
    except MemoryError as error:
        raise FileError(f"{file} does not fit into memory; take fewer columns or rows") from error
    except Exception as error:  # readers of damaged files raise whatever they stumble over
        # Not so an "invalid argument": that is a damaged file sending its reader to nowhere.
        if isinstance(error, OSError) and error.strerror and error.errno != errno.EINVAL:
            raise FileError(f"{file} cannot be read: {error.strerror}") from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FileError(
            f"{file} is no {FORMATS[suffix].name} file, or a damaged one: {_short(reason, 120)}; "
            "write it anew, or give it the suffix of its format"
        ) from error


def _split(path: str | os.PathLike[str], key: str | None) -> tuple[Path, str | None]:
    """The file, and what is meant within it by ``file.root:tree``."""
    text = os.fspath(path)
    match = re.fullmatch(r"(.+\.(?:npz|h5|hdf5|root)):(.*)", text, re.IGNORECASE)
    if match is None or os.path.exists(text):
        return Path(text), key
    if key is not None:
        raise FileError(f"{text} and the key {key!r} name two tables; leave one of them out")
    return Path(match[1]), match[2]


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    return inner if suffix == ".gz" and inner in (".csv", ".tsv", ".jsonl", ".ndjson") else suffix


def _check_start(path: Path, suffix: str) -> None:
    """Refuse what is empty, or plainly another format than its name says."""
    if not path.is_file():
        return  # a pipe can be read only once
    with path.open("rb") as file:
        start = file.read(8)
    if not start:
        raise FileError("is empty; a test needs some rows")
    own = ".gz" if path.suffix.lower() == ".gz" else suffix
    for magic, (name, suffixes) in STARTS.items():
        if start.startswith(magic) and own not in suffixes:
            raise FileError(
                f"looks like {name}, whatever its name says; give it the suffix of its format, or "
                "another file"
            )


def _need(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"reading this file needs {module.split('.')[0]}, which is not installed; "
            f'pip install "sparker[{extra}]"'
        ) from error


# --- Text: CSV, TSV, JSON lines -------------------------------------------------------------------


@contextmanager
def _text(path: Path) -> Iterator[Iterator[str]]:
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        yield _lines(file)


def _lines(file: Any) -> Iterator[str]:
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
        if not line:
            return
        yield line


def _text_source(
    names: Sequence[str],
    blocks: Callable[[bool], Iterator[tuple[Sequence[int], Sequence[Cells]]]],
    **how: Any,
) -> _Source:
    """A source from blocks of rows: the lines they stand in, and their columns.

    Blocks are told whether numbers are all that is wanted of them.
    """
    block: tuple[int, Sequence[int]] = (0, ())

    def pieces(features: tuple[str, ...], extras: tuple[str, ...]) -> Iterator[Piece]:
        nonlocal block
        numbers = {name: number for number, name in enumerate(names)}
        start = 0
        for lines, columns in blocks(not extras):
            block = start, lines
            for position, name in enumerate((*features, *extras)):
                yield position, start, columns[numbers[name]]
            start += len(lines)

    def where(row: int) -> str:
        start, lines = block
        return f"line {lines[row - start]}"

    return _Source(tuple(names), pieces, where=where, **how)


@contextmanager
def _open_csv(path: Path, key: str | None) -> Iterator[_Source]:
    with _text(path) as lines:
        top = list(itertools.islice(lines, 100))
        delimiter = "\t" if _suffix(path) == ".tsv" else _delimiter(top)
        reader = csv.reader(top, delimiter=delimiter, skipinitialspace=True)
        records = [(row, reader.line_num) for row in reader if any(map(str.strip, row))]
        if not records:
            raise FileError("is blank; a test needs some rows")
        first, end = records[0]
        named = _is_header(first, records[1][0] if len(records) > 1 else None)
        end = end if named else 0
        names = [cell.strip() for cell in first] if named else list(map(str, range(len(first))))
        if named:
            names[0] = names[0].removeprefix("# ")  # as numpy.savetxt writes it
        rest = itertools.chain(top[end:], lines)
        yield _text_source(
            names,
            lambda fast: _csv_blocks(rest, end + 1, delimiter, len(names), fast),
            named=named,
            numbers=_numbers_from_text,
            typed=_typed_from_text,
        )


def _delimiter(top: Sequence[str]) -> str:
    line = next((line for line in top if line.strip()), "")
    unquoted = re.sub('"[^"]*"', "", line)
    return max(",;\t", key=unquoted.count)


def _is_header(first: Sequence[str], second: Sequence[str] | None) -> bool:
    """Whether the first line names the columns."""
    words = [not _is_number(cell) and not _is_missing(cell) for cell in first]
    if all(words) or (any(words) and not any(map(_is_number, first))):
        return True
    if not any(words):
        # Names that pandas gives by itself, over what is clearly no count.
        counted = list(first) == list(map(str, range(len(first))))
        return counted and second is not None and not any(map(str.isdigit, second))
    if any(word and _is_number(cell) for word, cell in zip(words, second or (), strict=False)):
        return True
    raise FileError(
        "has both names and numbers in its first line; put a line above that names every column"
    )


def _csv_blocks(
    lines: Iterator[str], number: int, delimiter: str, width: int, fast: bool
) -> Iterator[tuple[Sequence[int], Sequence[Cells]]]:
    while block := list(itertools.islice(lines, _block_rows(width))):
        matrix = _matrix(block, delimiter) if fast else None
        if matrix is not None and matrix.shape == (len(block), width):
            yield range(number, number + len(block)), list(matrix.T)
            number += len(block)
            continue
        # The long way: whatever is quoted, blank, missing or wrong is dealt with row by row. A
        # quoted cell may go on beyond the block.
        reader = csv.reader(
            itertools.chain(block, lines), delimiter=delimiter, skipinitialspace=True, strict=True
        )
        rows, numbers = [], []
        try:
            for row in reader:
                if len(row) == width:
                    rows.append(row)
                    numbers.append(number + reader.line_num - 1)
                elif any(map(str.strip, row)):
                    raise FileError(
                        f"has {len(row)} cells in line {number + reader.line_num - 1}, but {width} "
                        "in the first; give every line the same"
                    )
                if reader.line_num >= len(block):
                    break
        except csv.Error as error:
            raise FileError(
                f"cannot be split into cells in line {number + reader.line_num - 1}: {error}; "
                "check the quotes"
            ) from error
        number += reader.line_num
        if rows:
            yield numbers, list(zip(*rows, strict=True))


def _matrix(lines: list[str], delimiter: str) -> np.ndarray | None:
    """Lines of nothing but numbers, several times as fast as cell by cell."""
    if not lines[0].strip():
        return None
    try:
        return np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError:
        return None


@contextmanager
def _open_json_lines(path: Path, key: str | None) -> Iterator[_Source]:
    with _text(path) as lines:
        records = (
            (number, _parsed(number, line)) for number, line in enumerate(lines, 1) if line.strip()
        )
        first = next(records, None)
        if first is None:
            raise FileError("is blank; a test needs some rows")
        _, record = first
        named = isinstance(record, dict)
        names = list(record) if named else list(map(str, range(len(record))))
        rest = itertools.chain([first], records)
        yield _text_source(
            names,
            lambda fast: _json_blocks(rest, names, named),
            named=named,
            lists={
                name
                for name, value in zip(names, record.values() if named else record, strict=True)
                if isinstance(value, list | dict)
            },
        )


def _parsed(number: int, line: str) -> Any:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"has no JSON in line {number} ({error}); put one object or one list in every line"
        ) from error
    if not isinstance(record, dict | list):
        raise FileError(
            f"has neither an object nor a list in line {number}; put one of them in every line"
        )
    return record


def _json_blocks(
    records: Iterator[tuple[int, Any]], names: list[str], named: bool
) -> Iterator[tuple[Sequence[int], Sequence[Cells]]]:
    while block := list(itertools.islice(records, _block_rows(len(names)))):
        rows = [_json_row(number, record, names, named) for number, record in block]
        yield [number for number, _ in block], list(zip(*rows, strict=True))


def _json_row(number: int, record: Any, names: list[str], named: bool) -> Sequence[Any]:
    if isinstance(record, dict) != named:
        raise FileError(
            f"has {'a list' if named else 'an object'} in line {number}, unlike the first line; "
            "put the same in every line"
        )
    if not named:
        if len(record) != len(names):
            raise FileError(
                f"has {len(record)} values in line {number}, but {len(names)} in the first; give "
                "every line the same"
            )
        return list(record)
    if list(record) == names:
        return list(record.values())
    new = [name for name in record if name not in names]
    if new:
        raise FileError(
            f"has {new[0]!r} in line {number}, but not in the first; give every line the same names"
        )
    return [record.get(name) for name in names]


# --- Arrays: .npy, .npz, HDF5 ---------------------------------------------------------------------


class _Stored(NamedTuple):
    """An array in a file, of which rows can be read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: Callable[[int, int], np.ndarray]
    step: int = 1  # rows that are best read together
    is_text: bool = False

    @property
    def is_table(self) -> bool:
        """Whether it has rows and columns in itself."""
        return len(self.shape) == 2 or (len(self.shape) == 1 and self.dtype.names is not None)

    @property
    def is_column(self) -> bool:
        return len(self.shape) == 1 and self.dtype.names is None


@contextmanager
def _open_npy(path: Path, key: str | None) -> Iterator[_Source]:
    try:
        array: np.ndarray = np.lib.format.open_memmap(
            path, mode="r", max_header_size=LARGEST_HEADER
        )
    except ValueError as error:
        if "Python objects" in str(error):
            raise FileError(PICKLED) from error
        raise
    if array.ndim == 1 and array.dtype.names is None:
        array = array[:, None]
    if array.ndim not in (1, 2):
        raise FileError(f"has shape {array.shape}; bring it to rows and columns, two dimensions")
    yield _stored_source({"": _Stored(array.shape, array.dtype, lambda lo, hi: array[lo:hi])}, [""])


@contextmanager
def _open_npz(path: Path, key: str | None) -> Iterator[_Source]:
    with zipfile.ZipFile(path) as archive:
        arrays = {
            info.filename.removesuffix(".npy"): _member(archive, info)
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        chosen = _pick(arrays, key)
        if all(arrays[name].dtype.hasobject for name in chosen):
            raise FileError(PICKLED)
        yield _stored_source(arrays, chosen)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Stored:
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_2_0
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0
        shape, _, dtype = header(file, max_header_size=LARGEST_HEADER)
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if not dtype.hasobject and n_bytes != info.file_size - file.tell():
            raise FileError(f"has an array {info.filename} that is not of the size it claims")

    @functools.cache
    def load() -> np.ndarray:
        if dtype.hasobject:
            raise FileError(PICKLED)
        _check_memory(n_bytes, f"an array {info.filename} of shape {shape}")
        with archive.open(info) as file:
            return np.lib.format.read_array(
                file, allow_pickle=False, max_header_size=LARGEST_HEADER
            )

    return _Stored(shape, dtype, lambda lo, hi: load()[lo:hi])


@contextmanager
def _open_hdf5(path: Path, key: str | None) -> Iterator[_Source]:
    h5py = _need("h5py", "files")
    with h5py.File(path, "r") as file:
        arrays: dict[str, _Stored] = {}
        by_pandas: list[str] = []

        def visit(name: str, item: Any) -> None:
            if "pandas_type" in item.attrs:
                by_pandas.append(name)
            if isinstance(item, h5py.Dataset) and item.shape:
                arrays[name] = _dataset(h5py, item)

        file.visititems(visit)
        if by_pandas:
            raise FileError(
                f"has {by_pandas[0]!r} in the layout of pandas' to_hdf, which only pandas reads; "
                "save it with to_parquet"
            )
        yield _stored_source(arrays, _pick(arrays, key))


def _dataset(h5py: Any, dataset: Any) -> _Stored:
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    readable = dataset.asstr(errors="replace") if is_text else dataset
    return _Stored(
        dataset.shape,
        dataset.dtype,
        lambda lo, hi: readable[lo:hi],
        step=dataset.chunks[0] if dataset.chunks else 1,  # half a chunk costs as much as all of it
        is_text=is_text,
    )


def _pick(arrays: Mapping[str, _Stored], key: str | None) -> list[str]:
    """The arrays that make up the table: a 2-D or compound one, or the 1-D ones of a group."""
    groups: dict[str, list[str]] = {}
    for name in arrays:
        groups.setdefault(name.rpartition("/")[0], []).append(name)
    tables: dict[str, list[str]] = {}
    for group, members in groups.items():
        whole = [name for name in members if arrays[name].is_table]
        columns = [name for name in members if arrays[name].is_column]
        if columns and not whole and len({arrays[name].shape for name in columns}) == 1:
            tables[group or "/"] = columns
        else:
            tables |= {name: [name] for name in whole or columns}
    if key is None:
        found = tables
    else:
        key = key.strip("/") or "/"
        if key not in tables and key in arrays:
            if not arrays[key].is_column:
                raise FileError(
                    f"has {key} of shape {arrays[key].shape}; bring it to rows and columns, two "
                    "dimensions"
                )
            return [key]
        found = {key: tables[key]} if key in tables else {}
        found = found or {
            name: parts for name, parts in tables.items() if name.startswith(f"{key}/")
        }
    if len(found) == 1:
        return next(iter(found.values()))
    listed = _some(_shaped(name, arrays) for name in found or tables or arrays)
    if found:
        raise FileError(f"holds several tables; name one of them as the key: {listed}")
    if key is not None:
        raise FileError(f"holds no {key!r}; it holds {listed or 'nothing'}")
    raise FileError(f"holds no table of rows and columns; it holds {listed or 'nothing'}")


def _shaped(name: str, arrays: Mapping[str, _Stored]) -> str:
    return f"{name} {arrays[name].shape}" if name in arrays else name


def _stored_source(arrays: Mapping[str, _Stored], chosen: Sequence[str]) -> _Source:
    main = arrays[chosen[0]]
    n_rows = main.shape[0]
    parts: dict[str, tuple[str, Any]]  # for every column, the array it is in and where there
    if main.is_column:
        parts = {name.rpartition("/")[2]: (name, ...) for name in chosen}
    elif main.dtype.names is not None:
        parts = {field: (chosen[0], field) for field in main.dtype.names}
    else:
        parts = {str(i): (chosen[0], (slice(None), i)) for i in range(main.shape[1])}
    names = tuple(parts)
    group = chosen[0].rpartition("/")[0]
    siblings = {
        name.rpartition("/")[2]: (name, ...)
        for name, array in arrays.items()
        if name.rpartition("/")[0] == group and array.is_column and array.shape[0] == n_rows
    }
    beside = {name: part for name, part in siblings.items() if name not in parts}
    parts |= beside
    types = {
        name: arrays[array].dtype[where] if isinstance(where, str) else arrays[array].dtype
        for name, (array, where) in parts.items()
    }
    texts = {name for name, (array, _) in parts.items() if arrays[array].is_text}
    step = max([_block_rows(len(names)), *(arrays[name].step for name, _ in parts.values())])

    def pieces(features: tuple[str, ...], extras: tuple[str, ...]) -> Iterator[Piece]:
        for lo in range(0, n_rows, step):
            blocks: dict[str, np.ndarray] = {}
            for position, name in enumerate((*features, *extras)):
                array, where = parts[name]
                if array not in blocks:
                    blocks[array] = arrays[array].rows(lo, min(lo + step, n_rows))
                yield position, lo, blocks[array][where]

    return _Source(
        names,
        pieces,
        named=main.is_column or main.dtype.names is not None,
        n_rows=n_rows,
        beside=tuple(beside),
        lists={
            name
            for name, dtype in types.items()
            if dtype.shape or dtype.names or (dtype.hasobject and name not in texts)
        },
        single={name for name, dtype in types.items() if _is_single(dtype)},
    )


def _is_single(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and dtype.itemsize <= 4


def _block_rows(width: int) -> int:
    return max(min(BLOCK_ROWS, BLOCK_VALUES // max(width, 1)), 1)


# --- Parquet and ROOT -----------------------------------------------------------------------------


@contextmanager
def _open_parquet(path: Path, key: str | None) -> Iterator[_Source]:
    parquet = _need("pyarrow.parquet", "files")
    types = _need("pyarrow.types", "files")
    with parquet.ParquetFile(path) as file:
        # What pandas keeps of an index is no column of its table.
        fields = [
            field
            for field in file.schema_arrow
            if not re.fullmatch(r"__index_level_\d+__", field.name)
        ]

        def pieces(features: tuple[str, ...], extras: tuple[str, ...]) -> Iterator[Piece]:
            wanted = (*features, *extras)
            start = 0
            for batch in file.iter_batches(_block_rows(len(wanted)), columns=list(set(wanted))):
                for position, name in enumerate(wanted):
                    yield position, start, batch.column(name).to_numpy(zero_copy_only=False)
                start += len(batch)

        yield _Source(
            tuple(field.name for field in fields),
            pieces,
            n_rows=file.metadata.num_rows,
            lists={field.name for field in fields if types.is_nested(field.type)},
            single={
                field.name
                for field in fields
                if types.is_float32(field.type) or types.is_float16(field.type)
            },
        )


@contextmanager
def _open_root(path: Path, key: str | None) -> Iterator[_Source]:
    uproot = _need("uproot", "root")
    with uproot.open(path) as file:
        if file.file.fEND > path.stat().st_size:
            raise FileError(f"is cut short: it should be {file.file.fEND} bytes; copy it again")
        tree = file[_tree(file.classnames(cycle=False), key)]
        kinds = {name: kind.removeprefix("std::") for name, kind in tree.typenames().items()}
        names = tuple(  # of a branch that is split only the ends
            name for name in kinds if not any(other.startswith(f"{name}/") for other in kinds)
        )

        def pieces(features: tuple[str, ...], extras: tuple[str, ...]) -> Iterator[Piece]:
            for position, name in enumerate((*features, *extras)):
                yield position, 0, tree[name].array(library="np")

        yield _Source(
            names,
            pieces,
            n_rows=tree.num_entries,
            lists={name for name in names if not re.fullmatch(ROOT_VALUE, kinds[name])},
            single={name for name in names if kinds[name] == "float"},
        )


def _tree(classes: Mapping[str, str], key: str | None) -> str:
    trees = [name for name, kind in classes.items() if re.search("T(Ntuple|Tree)|RNTuple", kind)]
    if key is not None:
        key = key.strip("/").partition(";")[0]
        if key not in trees:
            raise FileError(f"holds no tree {key!r}; it holds {_some(trees) or 'none'}")
        return key
    if len(trees) != 1:
        raise FileError(
            f"holds several trees; name one of them as the key: {_some(trees)}"
            if trees
            else "holds no tree"
        )
    return trees[0]


class _Format(NamedTuple):
    name: str
    opener: Callable[[Path, str | None], AbstractContextManager[_Source]]


FORMATS = {
    ".npy": _Format("NumPy", _open_npy),
    ".npz": _Format("NumPy archive", _open_npz),
    ".csv": _Format("CSV", _open_csv),
    ".tsv": _Format("TSV", _open_csv),
    ".jsonl": _Format("JSON lines", _open_json_lines),
    ".ndjson": _Format("JSON lines", _open_json_lines),
    ".parquet": _Format("Parquet", _open_parquet),
    ".h5": _Format("HDF5", _open_hdf5),
    ".hdf5": _Format("HDF5", _open_hdf5),
    ".root": _Format("ROOT", _open_root),
}
"""By suffix; the text formats also with .gz behind it."""
