"""A file as a table: its features column by column, and what is wanted beside them."""

import os
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from sparker.system.archive import ArraySpec
from sparker.tables.cells import (
    LARGEST,
    Cells,
    NotANumberError,
    as_objects,
    has_truths,
    loses_digits,
    n_bytes,
)
from sparker.tables.columns import NAMELESS, check_lists, choose, nameless
from sparker.tables.errors import FileError, check_memory, some
from sparker.tables.files import open_table
from sparker.tables.identifiers import numbers_rows
from sparker.tables.source import Source, block_rows

Column = Annotated[np.ndarray, ArraySpec("N", kinds="biufmMUSO", finite=False)]


class Table(NamedTuple):
    """Columns of any kind: what was read from a file, or came as a data frame.

    Where arrays go in, a table of numbers goes in with its names.
    """

    points: Annotated[np.ndarray, ArraySpec("N d", finite=False)]
    """The numbers; NaN where one is missing, and in columns that hold something else."""
    columns: tuple[str, ...] = ()
    """(d,) names; empty where there are none."""
    extra: dict[str, Column] = {}  # noqa: RUF012 (never changed)
    """Columns that are no features, as numbers or as strings."""
    others: dict[int, Column] = {}  # noqa: RUF012
    """The columns that are no numbers, by their places; see ``kinds``."""
    lists: dict[int, str] = {}  # noqa: RUF012
    """Columns of lists or objects, which are not read, and what they hold."""
    headless: bool = False
    """Whether the first row is a line of text that may have been meant as names."""
    rounded: frozenset[int] = frozenset()
    """Columns of whole numbers that are no floats: their last digits are lost."""
    percent: frozenset[int] = frozenset()
    """Columns of numbers that were written as percentages."""
    indexed: bool = False
    """Whether a first column without a name numbered the rows, and was left out."""
    folder: str | None = None
    """Where its file is: names of pictures in it are seen from there, and lead nowhere else."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.others:
            names = [self.name(i) for i in self.others]
            raise ValueError(f"these columns hold no numbers: {some(names)}")
        return np.array(self.points, dtype, copy=copy)

    def column(self, place: int) -> np.ndarray:  # (N,)
        """The values of one column."""
        return self.others[place] if place in self.others else self.points[:, place]

    @property
    def finite(self) -> np.ndarray:  # (d,)
        """Which columns are numbers, all of them there and below ``LARGEST``."""
        found = np.ones(self.points.shape[1], bool)
        most = self.points.dtype.type(min(LARGEST, float(np.finfo(self.points.dtype).max)))
        size = block_rows(self.points.shape[1])
        for start in range(0, len(self.points), size):  # by rows, as they lie in memory
            found &= np.all(np.abs(self.points[start : start + size]) <= most, axis=0)
        return found

    def name(self, place: int) -> str:
        """What a column is called."""
        return self.columns[place] if self.columns else f"column {place}"

    def take(self, places: Sequence[int]) -> "Table":
        """Only these columns, in this order."""
        points = self.points if list(places) == list(range(self.points.shape[1])) else (
            self.points[:, list(places)]
        )  # fmt: skip
        names = tuple(self.columns[i] for i in places) if self.columns else ()
        others = {new: self.others[old] for new, old in enumerate(places) if old in self.others}
        lists = {new: self.lists[old] for new, old in enumerate(places) if old in self.lists}
        rounded, percent = (
            frozenset(new for new, old in enumerate(places) if old in which)
            for which in (self.rounded, self.percent)
        )
        return self._replace(
            points=points,
            columns=names,
            others=others,
            lists=lists,
            rounded=rounded,
            percent=percent,
        )

    def rows(self, kept: np.ndarray | None) -> "Table":
        """Only these rows; all of them for None."""
        if kept is None:
            return self
        return self._replace(
            points=self.points[kept],
            extra={name: column[kept] for name, column in self.extra.items()},
            others={place: column[kept] for place, column in self.others.items()},
            headless=False,
        )


def read(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    extra: Sequence[str] = (),
    key: str | None = None,
) -> Table:
    r"""Read a table: its features as points, and the columns asked for beside them.

    Columns of files without names (.npy, .csv without a first line of names, 2-D datasets) go by
    their numbers, "0", "1", ... A column that is not all numbers is read as texts, or as True and
    False; what is missing is NaN or None. Where 1-D arrays of the same length lie beside a 2-D one
    in an .npz or HDF5 file, they can be asked for as ``extra``. Errors count rows from 0, lines
    from 1. A first column without a name that numbers the rows, as pandas writes its index, is left
    out.

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
    with open_table(path, key) as source:
        features, extras, has_index = choose(source, columns, ignore, extra)
        position = {name: i for i, name in enumerate(features)}
        single = all(name in source.single for name in features)
        dtype = np.dtype(np.float32 if single else np.float64)
        n_rows = source.n_rows or 0
        _check_room(n_rows, len(features), dtype.itemsize)
        points = np.empty((n_rows, len(features)), dtype)
        kept: dict[str, list[Cells]] = {name: [] for name in extras}
        index: list[np.ndarray] = []
        # Of each column, so far.
        rows = dict.fromkeys((*features, *extras, *[NAMELESS] * has_index), 0)
        no_numbers: set[str] = set()
        rounded: set[str] = set()
        for name, start, cells in source.pieces(tuple(rows), not extras):
            rows[name] = stop = start + len(cells)
            if name == NAMELESS and has_index:
                numbers = _numbers(source, name, cells)
                if numbers is None:
                    raise nameless(source)
                index.append(numbers.copy())
            if name in kept:
                check_memory(n_bytes(cells), f"column {name!r}")
                # A copy, since a part of a block would hold on to all of it.
                kept[name].append(cells.copy() if isinstance(cells, np.ndarray) else cells)
            if name in position:
                if stop > len(points):
                    _make_room(points, stop + stop // 4)
                numbers = None if name in no_numbers else _numbers(source, name, cells)
                if numbers is not None and name not in rounded and loses_digits(cells, numbers):
                    rounded.add(name)
                if numbers is None:
                    no_numbers.add(name)
                    numbers = np.full(len(cells), np.nan)
                points[start:stop, position[name]] = numbers
        n_rows, most = min(rows.values()), max(rows.values())
        if n_rows < most:
            raise FileError(f"is damaged: its columns end after {n_rows} to {most} rows")
        if not n_rows:
            raise FileError("has no rows; a test needs some")
        if has_index and not numbers_rows(np.concatenate(index)):
            raise nameless(source)
        points.resize((n_rows, len(features)), refcheck=False)
        typed = {name: source.typed(cells) for name, cells in kept.items()}
    others = {}
    for name, column in _others(path, key, [name for name in features if name in no_numbers]):
        if len(column) != n_rows:
            raise FileError(f"{path} changed while it was read; wait until it is written")
        others[position[name]] = column
        points[:, position[name]] = np.nan
    named = features if source.named else ()
    return Table(
        points,
        named,
        typed,
        others,
        headless=source.headless,
        rounded=frozenset(position[name] for name in rounded - no_numbers),
        indexed=has_index,
        folder=os.path.dirname(os.path.abspath(path)),
    )


def _others(
    path: str | os.PathLike[str], key: str | None, names: list[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """The columns that are no numbers, once more from the start: 007 is no 7 beside A12."""
    if not names:
        return
    if not os.path.isfile(path) and os.path.exists(path):
        raise FileError(
            f"{path} is no ordinary file and can be read only once, but {some(names)} must be read "
            "twice, not being all numbers; write it into a file first"
        )
    with open_table(path, key) as source:
        kept: dict[str, list[Any]] = {name: [] for name in names}
        for name, _, cells in source.pieces(tuple(names), False):
            if not isinstance(cells, np.ndarray):
                check_lists({name} if any(isinstance(cell, list | dict) for cell in cells) else ())
            check_memory(n_bytes(cells), f"column {name!r}")
            kept[name] += source.plain(cells)
    for name, cells in kept.items():
        yield name, as_objects(cells)


def _numbers(source: Source, name: str, cells: Cells) -> np.ndarray | None:
    """A piece of a feature as numbers, NaN where one is missing; None if it holds others."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "c":
        raise FileError(
            f"has complex numbers in {source.label(name)}; give their real and imaginary "
            "parts as columns"
        )
    if has_truths(cells):
        return None
    try:
        return source.numbers(cells)
    except NotANumberError:
        return None


def _make_room(points: np.ndarray, n_rows: int) -> None:
    """Lengthen an array in place, so that a table is never there twice."""
    n_before, d = points.shape
    _check_room(n_rows, d, points.itemsize, n_before)
    points.resize((n_rows, d), refcheck=False)


def _check_room(n_rows: int, d: int, itemsize: int, n_before: int = 0) -> None:
    per_row = d * itemsize
    what = f"{n_rows} rows and {d} columns"
    check_memory((n_rows - n_before) * per_row, what, per_row, n_before)
