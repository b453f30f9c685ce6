"""A kind of file; the module of each kind declares its ``FORMATS``, and ``files`` finds them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from sparker.tables.source import Source


class Format(NamedTuple):
    """A kind of file, and how its table is opened."""

    name: str
    opener: Callable[[Path, str | None], AbstractContextManager[Source]]
    has_keys: bool = False  # may hold several tables
    is_text: bool = False  # may be compressed, with .gz behind the suffix
    apart: bool = False  # read in a process of its own, since damaged files may crash the reader
    start: bytes | None = None  # how its files begin, if they all do
    looks_like: str = ""  # what to call a file that begins so, whatever its suffix
