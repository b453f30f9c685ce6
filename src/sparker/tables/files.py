"""Opening a file by its suffix, and saying why it cannot be read."""

import errno
import importlib
import os
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sparker.tables import formats
from sparker.tables.apart import open_apart
from sparker.tables.errors import FileError, bomb, max_unpacked, short, some
from sparker.tables.format import Format
from sparker.tables.source import Source


def _formats() -> dict[str, Format]:
    found: dict[str, Format] = {}
    for module in pkgutil.iter_modules(formats.__path__):
        found |= importlib.import_module(f"{formats.__name__}.{module.name}").FORMATS
    return found


FORMATS = _formats()
"""By suffix: those of all modules of this room."""

STARTS = {
    **{
        kind.start: (
            kind.looks_like,
            tuple(suffix for suffix, other in FORMATS.items() if other.start == kind.start),
        )
        for kind in FORMATS.values()
        if kind.start is not None
    },
    b"\x1f\x8b": ("something compressed with gzip", (".gz",)),
    b"\x89PNG": ("a picture", ()),
    b"\xff\xd8\xff": ("a picture", ()),
    b"%PDF": ("a PDF", ()),
    b"<!DOCTY": ("a web page", ()),
    b"<!docty": ("a web page", ()),
    b"<html": ("a web page", ()),
}
"""How files of some formats begin, and the suffixes they may have."""


VALUE = 8
"""Bytes of a value, once it is read."""


@contextmanager
def open_table(path: str | os.PathLike[str], key: str | None) -> Iterator[Source]:
    """The table in a file; whatever goes wrong while it is open becomes one plain sentence."""
    file, key = _split(path, key)
    suffix = _suffix(file)
    try:
        if not file.exists():
            raise FileNotFoundError(f"there is no file {file}; check its name and folder")
        if file.is_dir():
            raise FileError("is a folder; name a file in it")
        if suffix not in FORMATS:
            raise FileError(f"has none of the suffixes that can be read: {some(FORMATS)}")
        if key is not None and not FORMATS[suffix].has_keys:
            raise FileError(f"holds a single table; leave out the key {key!r}")
        _check_kind(file, suffix)
        _check_start(file, suffix)
        with _opened(suffix, file, key) as source:
            name, count = Counter(source.names).most_common(1)[0] if source.names else ("", 0)
            if count > 1:
                raise FileError(f"has {count} columns named {name!r}; give each its own name")
            _check_unpacked(source, file.stat().st_size)
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
            f"{file} is no {FORMATS[suffix].name} file, or a damaged one: {short(reason, 120)}; "
            "write it anew, or give it the suffix of its format"
        ) from error


def _opened(suffix: str, file: Path, key: str | None) -> AbstractContextManager[Source]:
    kind = FORMATS[suffix]
    # A program that Python is built into may have no interpreter to start.
    is_apart = kind.apart and sys.executable
    return open_apart(suffix, file, key) if is_apart else kind.opener(file, key)


def _split(path: str | os.PathLike[str], key: str | None) -> tuple[Path, str | None]:
    """The file, and what is meant within it by ``file.root:tree``."""
    text = os.fspath(path)
    suffixes = "|".join(re.escape(suffix) for suffix, kind in FORMATS.items() if kind.has_keys)
    match = re.fullmatch(rf"(.+(?:{suffixes})):(.*)", text, re.IGNORECASE)
    if match is None or os.path.exists(text):
        return Path(text), key
    if key is not None:
        raise FileError(f"{text} and the key {key!r} name two tables; leave one of them out")
    return Path(match[1]), match[2]


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    is_packed = suffix == ".gz" and inner in FORMATS and FORMATS[inner].is_text
    return inner if is_packed else suffix


def _check_kind(path: Path, suffix: str) -> None:
    """Refuse what is no file: of a pipe only text can be read, of a device nothing has an end."""
    if not path.is_file() and not (path.is_fifo() and FORMATS[suffix].is_text):
        raise FileError("is no ordinary file; write what it holds into one first")


def _check_unpacked(source: Source, size: int) -> None:
    """Refuse what is far larger than its file; of text, its lines are counted as they come."""
    unpacked = VALUE * (source.n_rows or 0) * len(source.every)
    if unpacked > max_unpacked(size):
        raise bomb(size, unpacked)


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
