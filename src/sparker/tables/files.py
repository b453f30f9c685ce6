"""Opening a file by its suffix, and saying why it cannot be read."""

import errno
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sparker.tables.delimited import open_delimited
from sparker.tables.errors import FileError, short, some
from sparker.tables.hdf5 import open_hdf5
from sparker.tables.json_lines import open_json_lines
from sparker.tables.numpy_files import open_npy, open_npz
from sparker.tables.parquet import open_parquet
from sparker.tables.root import open_root
from sparker.tables.source import Source


class Format(NamedTuple):
    """A kind of file, and how its table is opened."""

    name: str
    opener: Callable[[Path, str | None], AbstractContextManager[Source]]
    has_keys: bool = False  # may hold several tables
    is_text: bool = False  # may be compressed, with .gz behind the suffix


FORMATS = {
    ".npy": Format("NumPy", open_npy),
    ".npz": Format("NumPy archive", open_npz, has_keys=True),
    ".csv": Format("CSV", open_delimited, is_text=True),
    ".tsv": Format("TSV", partial(open_delimited, delimiter="\t"), is_text=True),
    ".jsonl": Format("JSON lines", open_json_lines, is_text=True),
    ".ndjson": Format("JSON lines", open_json_lines, is_text=True),
    ".parquet": Format("Parquet", open_parquet),
    ".h5": Format("HDF5", open_hdf5, has_keys=True),
    ".hdf5": Format("HDF5", open_hdf5, has_keys=True),
    ".root": Format("ROOT", open_root, has_keys=True),
}
"""By suffix."""

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
            f"{file} is no {FORMATS[suffix].name} file, or a damaged one: {short(reason, 120)}; "
            "write it anew, or give it the suffix of its format"
        ) from error


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
