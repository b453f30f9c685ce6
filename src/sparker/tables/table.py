"""A file as a table: its features as points, all of them finite, and what is wanted beside."""

import os
import re
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sparker.system.memmap import check_disk, forget
from sparker.tables.cells import Cells, NotANumberError
from sparker.tables.columns import choose
from sparker.tables.errors import FileError, check_memory, short
from sparker.tables.files import open_table
from sparker.tables.source import Source


class Table(NamedTuple):
    """What was read from a file. Where arrays go in, its points go in with their names."""

    points: np.ndarray  # (N, d), finite; float32 if all of it is in the file, float64 otherwise
    columns: tuple[str, ...]  # (d,) names; empty where the file has none
    extra: dict[str, np.ndarray]  # (N,) each: numbers, or strings as objects

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.points, dtype, copy=copy)


def read(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    extra: Sequence[str] = (),
    key: str | None = None,
    on_disk: bool = False,
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
        on_disk: keep the points in a file for temporary ones (``TMPDIR``) and not in memory, to
            ``sparker.stream`` them; for files that know how many rows they have.

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
        features, extras = choose(source, columns, ignore, extra)
        position = {name: i for i, name in enumerate(features)}
        single = all(name in source.single for name in features)
        dtype = np.dtype(np.float32 if single else np.float64)
        if on_disk:
            points = _mapped(source, len(features), dtype)
        else:
            points = np.empty((0, len(features)), dtype)
            _make_room(points, source.n_rows or 0)
        kept: dict[str, list[Cells]] = {name: [] for name in extras}
        rows = dict.fromkeys((*features, *extras), 0)  # of each column, so far
        for name, start, cells in source.pieces(tuple(rows), not extras):
            rows[name] = stop = start + len(cells)
            if name in kept:
                # A copy, since a part of a block would hold on to all of it.
                kept[name].append(cells.copy() if isinstance(cells, np.ndarray) else cells)
            if name in position:
                if stop > len(points):
                    _make_room(points, stop + stop // 4)
                if name == features[0]:  # a new block of rows
                    forget(points)
                points[start:stop, position[name]] = _finite(source, name, start, cells)
        n_rows, most = min(rows.values()), max(rows.values())
        if n_rows < most:
            raise FileError(f"is damaged: its columns end after {n_rows} to {most} rows")
        if not n_rows:
            raise FileError("has no rows; a test needs some")
        if not on_disk:
            points.resize((n_rows, len(features)), refcheck=False)
        typed = {name: source.typed(cells) for name, cells in kept.items()}
    return Table(points, features if source.named else (), typed)


def _mapped(source: Source, n_features: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Points in a file that is gone when nobody needs it any more."""
    n_rows = source.n_rows
    if n_rows is None or source.format == "NumPy archive":
        why = "does not say how many rows it has" if n_rows is None else "is read whole"
        raise FileError(
            f"{why}, so it cannot be streamed; convert it to .npy, .parquet, .h5 or .root"
        )
    if not n_rows:
        raise FileError("has no rows; a test needs some")
    try:
        check_disk(n_rows * n_features * dtype.itemsize, f"{n_rows} rows and {n_features} columns")
    except OSError as error:
        raise FileError(f"cannot be streamed: {error}") from error
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype, "w+", shape=(n_rows, n_features))


def _finite(source: Source, name: str, start: int, cells: Cells) -> np.ndarray:
    """A piece of a feature as numbers, all there and all finite."""
    try:
        numbers = source.numbers(cells)
    except NotANumberError as error:
        hint = ""
        if isinstance(error.value, str) and re.fullmatch(r"[+-]?\d+,\d+", error.value.strip()):
            hint = "write decimals with a point, "
        raise FileError(
            f"has {short(repr(error.value))} in {source.where(start + error.index)}, "
            f"{source.label(name)}, which is not a number; {hint}encode it as numbers, or leave "
            f"the column out with --ignore {name}"
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
    check_memory((n_rows - len(points)) * d * points.itemsize, f"{n_rows} rows and {d} columns")
    points.resize((n_rows, d), refcheck=False)
