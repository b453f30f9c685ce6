"""What files of arrays share: which of them make up the table, and how its rows are read."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparker.tables.errors import FileError, check_memory, some
from sparker.tables.source import Piece, Source, block_rows, check_width


class Stored(NamedTuple):
    """An array in a file, of which rows can be read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rows: Callable[[int, int], np.ndarray]
    step: int = 1  # rows that are best read together
    is_text: bool = False
    is_there: bool = True  # otherwise it was declared, but nothing was ever written

    @property
    def row_bytes(self) -> int:
        """Of one row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    @property
    def is_table(self) -> bool:
        """Whether it has rows and columns in itself."""
        return len(self.shape) == 2 or (len(self.shape) == 1 and self.dtype.names is not None)

    @property
    def is_column(self) -> bool:
        """Whether it can be one column among others."""
        return len(self.shape) == 1 and self.dtype.names is None


def is_within(name: str, key: str | None) -> bool:
    """Whether a key names this, what it lies in, or what would lie in it."""
    key = (key or "").strip("/")
    return not key or f"{name}/".startswith(f"{key}/") or key.startswith(f"{name}/")


def pick(arrays: Mapping[str, Stored], key: str | None) -> list[str]:
    """The arrays that make up the table of this key, or the only table there is."""
    tables = _tables(arrays)
    found = tables
    if key is not None:
        key = key.strip("/") or "/"
        if key in tables:
            return tables[key]
        if key in arrays and arrays[key].is_column:
            return [key]
        if key in arrays:
            raise FileError(
                f"has {key} of shape {arrays[key].shape}; bring it to rows and columns, two "
                "dimensions"
            )
        found = {name: parts for name, parts in tables.items() if name.startswith(f"{key}/")}
    if len(found) == 1:
        return next(iter(found.values()))
    listed = some(
        f"{name} {arrays[name].shape}" if name in arrays else name
        for name in found or tables or arrays
    )
    if found:
        raise FileError(f"holds several tables; name one of them as the key: {listed}")
    what = "table of rows and columns" if key is None else repr(key)
    raise FileError(f"holds no {what}; it holds {listed or 'nothing'}")


def _tables(arrays: Mapping[str, Stored]) -> dict[str, list[str]]:
    """All tables by name: a 2-D or compound array, or the 1-D arrays of a group."""
    groups: dict[str, list[str]] = {}
    for name in arrays:
        groups.setdefault(_group(name), []).append(name)
    tables: dict[str, list[str]] = {}
    for group, members in groups.items():
        whole = [name for name in members if arrays[name].is_table]
        columns = [name for name in members if arrays[name].is_column]
        if columns and not whole and len({arrays[name].shape for name in columns}) == 1:
            tables[group or "/"] = columns
        else:
            tables |= {name: [name] for name in whole or columns}
    return tables


def stored_source(arrays: Mapping[str, Stored], chosen: Sequence[str]) -> Source:
    """The table that the chosen arrays make up, with the columns that lie beside them."""
    main = arrays[chosen[0]]
    n_rows = main.shape[0]
    parts: dict[str, tuple[str, Any]]  # for every column, the array it is in and where there
    if main.is_column:
        parts = {_leaf(name): (name, ...) for name in chosen}
    elif main.dtype.names is not None:
        parts = {field: (chosen[0], field) for field in main.dtype.names}
    else:
        check_width(main.shape[1])
        parts = {str(i): (chosen[0], (slice(None), i)) for i in range(main.shape[1])}
    names = tuple(parts)
    for name, array in arrays.items():
        is_near = _group(name) == _group(chosen[0])
        if is_near and array.is_column and array.shape[0] == n_rows:
            parts.setdefault(_leaf(name), (name, ...))
    types = {
        name: arrays[array].dtype[where] if isinstance(where, str) else arrays[array].dtype
        for name, (array, where) in parts.items()
    }
    texts = {name for name, (array, _) in parts.items() if arrays[array].is_text}
    lists = {
        name
        for name, dtype in types.items()
        if dtype.shape or dtype.names or (dtype.hasobject and name not in texts)
    }
    read = {parts[name][0] for name in parts.keys() - lists}
    empty = sorted(name for name in read if not arrays[name].is_there)
    if empty and n_rows:
        raise FileError(
            f"has room for {some(empty)}, but nothing was ever written there; write it anew"
        )
    step = max([block_rows(len(names)), *(arrays[array].step for array, _ in parts.values())])

    def pieces(wanted: tuple[str, ...], only_numbers: bool) -> Iterator[Piece]:
        used = {parts[name][0] for name in wanted}
        check_memory(sum(arrays[name].row_bytes for name in used) * min(step, n_rows), "one block")
        for lo in range(0, n_rows, step):
            blocks: dict[str, np.ndarray] = {}
            for name in wanted:
                array, where = parts[name]
                if array not in blocks:
                    blocks[array] = arrays[array].rows(lo, min(lo + step, n_rows))
                yield name, lo, blocks[array][where]

    return Source(
        names,
        pieces,
        named=main.is_column or main.dtype.names is not None,
        n_rows=n_rows,
        beside=tuple(parts)[len(names) :],
        lists=lists,
        single={name for name, dtype in types.items() if dtype.kind == "f" and dtype.itemsize <= 4},
    )


def _group(name: str) -> str:
    return name.rpartition("/")[0]


def _leaf(name: str) -> str:
    return name.rpartition("/")[2]
