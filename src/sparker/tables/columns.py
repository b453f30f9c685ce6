"""Which columns are features, and which are wanted beside them."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sparker.tables.errors import FileError, near, some
from sparker.tables.source import Source

NAMELESS = ""
"""The name of a column that has none."""


class Chosen(NamedTuple):
    """What is to be read."""

    features: tuple[str, ...]
    extra: tuple[str, ...]
    has_index: bool
    """Whether the first column has no name, and must number the rows to be left out for that."""


def choose(
    source: Source, columns: Sequence[str] | None, ignore: Sequence[str], extra: Sequence[str]
) -> Chosen:
    """The names of the features and of the columns beside them."""
    ignore, extra = listed(ignore), listed(extra)
    index = columns is None and source.names[:1] == (NAMELESS,) and NAMELESS not in ignore + extra
    ignore += [NAMELESS] * index
    features = _features(source, None if columns is None else listed(columns), ignore, extra)
    check_lists([name for name in dict.fromkeys((*features, *extra)) if name in source.lists])
    return Chosen(tuple(features), tuple(dict.fromkeys(extra)), index)


def check_lists(names: Collection[str]) -> None:
    """Refuse columns that hold more than one value a row."""
    if names:
        raise FileError(
            f"has lists or objects instead of one value a row in {some(names)}; make columns of "
            "them (the first entry, the largest, how many, ...), or leave them out with --ignore"
        )


def _features(
    source: Source, columns: list[str] | None, ignore: list[str], extra: list[str]
) -> list[str]:
    _must_exist(columns or (), source.names, source)
    _must_exist((*ignore, *extra), source.every, source)
    if columns is None:
        others = {*ignore, *extra}
        columns = [name for name in source.names if name not in others]
    both = next(iter({*ignore} & {*columns}), None)
    if both is not None:
        raise FileError(f"is to be read with {source.label(both)} and without it; decide for one")
    if not columns:
        raise FileError(f"has no column left to test; it has {some(source.every)}")
    if len(set(columns)) < len(columns):
        raise FileError("is to be read with one column named twice; name it once")
    if NAMELESS in columns:
        raise nameless(source)
    return columns


def nameless(source: Source) -> FileError:
    """A column without a name is no feature."""
    return FileError(
        f"has no name for its column number {source.names.index(NAMELESS)}, which is not the index "
        "that pandas writes; name it, or leave it out with --ignore ''"
    )


def _must_exist(wanted: Sequence[str], names: tuple[str, ...], source: Source) -> None:
    known = {*names}
    name = next((name for name in wanted if name not in known), None)
    if name is None:
        return
    if name == NAMELESS:
        raise FileError(
            "has no column without a name, which an empty name between commas means; it has "
            f"{some(names)}"
        )
    if not source.named and not source.beside:
        raise FileError(
            f"has no column {name!r}; its columns have no names and go by their numbers, 0 to "
            f"{len(names) - 1}"
        )
    raise FileError(f"has no column {name!r}{near(name, names)}; it has {some(names)}")


def listed(names: Sequence[str] | None) -> list[str]:
    """Names as a list; a single one may come as a string, and a column's number as a number."""
    if names is None:
        return []
    return [names] if isinstance(names, str) else [str(name) for name in names]
