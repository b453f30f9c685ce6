"""Whatever holds rows and columns as a table: arrays, lists, data frames of any library, files."""

import os
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np

from sparker.tables.cells import Cells, as_objects, is_large, loses_digits, percentages
from sparker.tables.columns import NAMELESS
from sparker.tables.errors import some
from sparker.tables.identifiers import numbers_rows
from sparker.tables.kinds import MICROSECONDS
from sparker.tables.picture_files import as_rows
from sparker.tables.table import Table, read

_Part = tuple[np.ndarray | None, np.ndarray | None, str, Cells]
"""Numbers, or something else; or neither, where rows hold lists of some kind; and the cells."""

HISTOGRAM = "values", "variances"
"""What histograms of hist, boost-histogram and uproot answer to, beside their axes."""


def as_table(name: str, given: Any) -> Table:
    """Rows and columns, with names where they have any; a single column may come as it is.

    >>> as_table("data", [1.5, 2.5]).points.tolist()
    [[1.5], [2.5]]
    """
    if isinstance(given, Table):
        found = given
    elif isinstance(given, str | PathLike):
        found = as_rows(given) if os.path.isdir(given) else read(given)
    elif isinstance(given, Mapping):
        found = _from_mapping(name, given)
    elif nw.dependencies.is_into_series(given):
        series = nw.from_native(given, series_only=True)
        found = _from_frame(series.to_frame())
        found = found if series.name else found._replace(columns=())
    elif _is_frame(given):
        found = _from_frame(_frame(name, given))
    else:
        found = _from_array(name, given)
    if not len(found.points) or not found.points.shape[1]:
        raise ValueError(f"{name} is empty, shape {found.points.shape}; at least one row is needed")
    return _in_numbers(_without_index(found))


def _without_index(table: Table) -> Table:
    """The index that pandas wrote, which other libraries read as a first column without a name."""
    d = table.points.shape[1]
    if table.columns[:1] != (NAMELESS,) or d == 1 or not numbers_rows(table.points[:, 0]):
        return table
    return table.take(range(1, d))._replace(indexed=True)


def _in_numbers(table: Table) -> Table:
    """Columns of percentages as the numbers that they are."""
    found = {place: percentages(cells) for place, cells in table.others.items()}
    numbers = {place: column for place, column in found.items() if column is not None}
    if not numbers:
        return table
    points = table.points.copy()
    for place, column in numbers.items():
        points[:, place] = column
    others = {place: cells for place, cells in table.others.items() if place not in numbers}
    return table._replace(points=points, others=others, percent=table.percent | numbers.keys())


def library_of(samples: Any) -> str | None:
    """The library of a data frame or series, by name; None for anything else."""
    if not nw.dependencies.is_into_series(samples) and not _is_frame(samples):
        return None
    try:
        return nw.from_native(samples, allow_series=True).implementation.name.lower()
    except (TypeError, ValueError):  # such as columns of the same name
        return None


def is_frame(given: Any) -> bool:
    """Whether this is a data frame whose rows are there."""
    return bool(nw.dependencies.is_into_dataframe(given))


def _is_frame(given: Any) -> bool:
    return is_frame(given) or hasattr(given, "collect_schema")


def _frame(name: str, given: Any) -> nw.DataFrame[Any]:
    try:
        found = nw.from_native(given)
        return found.collect() if isinstance(found, nw.LazyFrame) else found
    except (TypeError, ValueError, nw.exceptions.NarwhalsError) as error:
        names = [str(column) for column in getattr(given, "columns", ())]
        twice = sorted({column for column in names if names.count(column) > 1})
        why = f"it has several columns named {some(twice)}" if twice else str(error)
        raise ValueError(f"{name} is a data frame that cannot be read: {why}") from error


def _from_frame(frame: nw.DataFrame[Any]) -> Table:
    def parts() -> Iterator[_Part]:
        for column in frame.iter_columns():
            numbers, other = _from_series(column)
            whole = numbers is not None and column.dtype.is_integer() and is_large(numbers)
            yield numbers, other, str(column.dtype), column.to_list() if whole else []

    return _assembled(parts(), tuple(map(str, frame.columns)), len(frame))


def _assembled(parts: Iterable[_Part], names: tuple[str, ...], n_rows: int) -> Table:
    """Columns one by one as a table."""
    points, others, lists, rounded = [], {}, {}, set()
    for place, (numbers, other, holds, cells) in enumerate(parts):
        if numbers is None and other is None:
            lists[place] = holds
        if other is not None:
            others[place] = other
        if numbers is not None and loses_digits(cells, numbers):
            rounded.add(place)
        points.append(np.full(n_rows, np.nan) if numbers is None else numbers)
    # Single precision only where all columns have it: what one column is does not change others.
    single = all(column.dtype.itemsize <= 4 for column in points)
    matrix = np.empty((n_rows, len(points)), np.float32 if single else np.float64)
    for place, values in enumerate(points):
        matrix[:, place] = values
    return Table(matrix, names, others=others, lists=lists, rounded=frozenset(rounded))


def _from_series(column: nw.Series[Any]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Numbers, or something else: of the two, one is None; both are where rows hold lists."""
    dtype = column.dtype
    if dtype.is_numeric():
        small = dtype in (nw.Float32, getattr(nw, "Float16", nw.Float32))
        try:
            values = column.cast(nw.Float32 if small else nw.Float64).to_numpy()
        except ValueError:  # integers that are no floats, which pyarrow does not round
            return _from_values(column.to_list())
        return np.array(values, np.float32 if small else np.float64), None
    if isinstance(dtype, nw.Datetime):
        if dtype.time_zone is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return None, _as_times(column)
    if dtype == nw.Date:
        return None, _as_times(column.cast(nw.Datetime("us")))
    if dtype == nw.Duration:
        return column.dt.total_microseconds().cast(nw.Float64).to_numpy() / 1e6, None
    if dtype.is_nested():
        return None, None
    cells = column.to_list()
    if dtype in (nw.Categorical, nw.Enum):  # categories, also those that are called by numbers
        cells = [None if _is_gone(value) else _text(value) for value in cells]
    return _from_values(cells)


def _as_times(column: nw.Series[Any]) -> np.ndarray:
    return np.array(column.to_numpy(), MICROSECONDS)


def _from_values(values: list[Any]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Python values: numbers if all of them are, else texts, times, True and False."""
    plain = [None if _is_gone(value) else value for value in values]
    there = [value for value in plain if value is not None]
    if any(isinstance(value, list | dict | tuple | set | np.ndarray) for value in there):
        return None, None
    if not any(isinstance(value, bool | np.bool_ | str | bytes) for value in there):
        try:
            return np.array([np.nan if v is None else float(v) for v in plain], np.float64), None
        except (TypeError, ValueError, OverflowError):
            pass
    return None, as_objects(
        [value if value is None or isinstance(value, bool) else _text(value) for value in plain]
    )


def _text(value: Any) -> str | bool:
    if isinstance(value, np.bool_):
        return bool(value)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _is_gone(value: Any) -> bool:
    """Whether this is None, NaN, or a library's own sign for a missing value."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # neither true nor false, as pandas has it; or an array
        return not isinstance(value, np.ndarray)


def _from_array(name: str, given: Any) -> Table:
    if hasattr(given, "axes") and all(callable(getattr(given, one, None)) for one in HISTOGRAM):
        raise ValueError(
            f"{name} is a histogram, of which the rows are gone; give the rows it was filled with, "
            "an array of shape (rows, features)"
        )
    if hasattr(given, "toarray"):
        raise ValueError(f"{name} is a sparse matrix; give its rows as an array, .toarray()")
    try:
        array = given if np.ma.isMaskedArray(given) else np.asarray(given)
    except ValueError as error:
        raise ValueError(
            f"{name} must be rows of the same number of columns; it is not: {error}"
        ) from error
    if array.dtype.names:
        return _from_fields(name, array)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        hint = "; flatten what belongs to one row" if array.ndim > 2 else ""
        raise ValueError(f"{name} must be 2-D (rows, features), got shape {array.shape}{hint}")
    if array.dtype.kind in "OUSM" or (array.dtype.kind == "V" and _floats(array) is None):
        return _from_columns(name, list(array.T), ())
    numbers = _numbers(name, array)
    places = range(array.shape[1]) if array.dtype.kind in "iu" and is_large(numbers) else ()
    rounded = frozenset(i for i in places if loses_digits(array[:, i], numbers[:, i]))
    return Table(numbers, rounded=rounded)


def _from_fields(name: str, array: np.ndarray) -> Table:
    """A structured array, such as results give back."""
    names = array.dtype.names or ()
    flat = np.ravel(array)
    # What has several values in a row becomes objects, and is then told as lists.
    columns = [c if c.ndim == 1 else as_objects(list(c)) for c in (flat[field] for field in names)]
    return _from_columns(name, columns, names)


def _from_mapping(name: str, given: Mapping[Any, Any]) -> Table:
    """Columns by their names."""
    if not given:
        raise ValueError(f"{name} is empty: it has no columns")
    columns = [np.asarray(column) for column in given.values()]
    lengths = {column.shape[0] if column.ndim else 0 for column in columns}
    if len(lengths) > 1 or any(column.ndim != 1 for column in columns):
        shapes = ", ".join(f"{key} {np.shape(column)}" for key, column in given.items())
        raise ValueError(f"{name} must be columns of the same number of rows, got {shapes}")
    return _from_columns(name, columns, tuple(map(str, given)))


def _from_columns(name: str, columns: list[np.ndarray], names: tuple[str, ...]) -> Table:
    def parts() -> Iterator[_Part]:
        found: tuple[np.ndarray | None, np.ndarray | None]
        for column in columns:
            if column.dtype.kind == "M":
                found = None, column.astype(MICROSECONDS)
            elif column.dtype.kind in "iufm":
                found = _numbers(name, column), None
            else:
                found = _from_values(column.tolist())
            yield *found, "lists", column

    return _assembled(parts(), names, len(columns[0]))


def _numbers(name: str, array: np.ndarray) -> np.ndarray:
    """Single precision stays, half goes up to it, everything else numeric becomes double."""
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind == "m":
        return array / np.timedelta64(1, "s")
    found = _floats(array)
    if found is None:
        raise ValueError(
            f"{name} must be numeric, got dtype {array.dtype}; encode or drop other columns"
        )
    return found


def _floats(array: np.ndarray) -> np.ndarray | None:
    if array.dtype.kind == "f":
        wanted = np.float32 if array.dtype.itemsize <= 4 else np.float64
        return np.asarray(array.astype(wanted, copy=False))
    # The short floats of machine learning, which NumPy does not know by kind.
    if "float" in array.dtype.name:
        return np.asarray(array.astype(np.float32))
    return None
