"""What cannot be read, in plain words."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from sparker.system import extras
from sparker.system.machine import free_on_machine


class FileError(ValueError):
    """A file that does not hold the table asked for; what is wrong with it and what to do."""


class DataWarning(UserWarning):
    """Something about the samples that one should know before one believes the answer."""


class ColumnsError(ValueError):
    """Columns that cannot be compared; what is wrong with each, and what to do."""


def some(names: Iterable[str], most: int = 12) -> str:
    """Names as errors list them: the first ones, and how many there are."""
    every = [name or "''" for name in names]
    if len(every) <= most:
        return ", ".join(every)
    return f"{', '.join(every[:most])}, ... ({len(every)} in all)"


def near(name: str, names: Sequence[str]) -> str:
    """Which of these names may be meant, as a hint behind the error."""
    close = [other for other in names if other.lower() == name.lower()]
    close += difflib.get_close_matches(name, names, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def short(text: str, most: int = 40) -> str:
    """The beginning of a text that may be long."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def check_memory(n_bytes: int, what: str, per_row: int = 0, n_before: int = 0) -> None:
    """Refuse what cannot fit, before the machine starts to swap; a small file may claim it.

    Of a table it is said how many rows fit, of so many bytes each, beside those that are there.
    """
    free = free_on_machine()
    if n_bytes > free:
        rows = "rows"
        if per_row:
            rows = f"a uniform random sample of {n_before + int(free / per_row):,} rows"
        raise FileError(
            f"needs {n_bytes / 2**30:.3g} GiB for {what}, while {free / 2**30:.3g} GiB are free; "
            f"take fewer columns or {rows}"
        )


MAX_RATIO, ALWAYS_FINE = 200, 2**28
"""How many times its size a file may unpack to, and bytes that any may."""


def max_unpacked(n_bytes: int) -> int:
    """Bytes that a file of this size may unpack to.

    Free memory alone is no measure: a file of a few kB that fits would still take all there is.
    Measured values hardly shrink to a half, counts and categories to a tenth.
    """
    return max(MAX_RATIO * n_bytes, ALWAYS_FINE)


def bomb(n_bytes: int, unpacked: int) -> FileError:
    """What is said of a file that unpacks to more."""
    return FileError(
        f"has {n_bytes:,} bytes and unpacks to {unpacked / 2**30:.3g} GiB or more, which no table "
        "of values does; if it is one, write it without compression, as .npy say"
    )


def need(module: str, extra: str) -> Any:
    """A module that comes with one of sparker's extras, imported only where a file needs it."""
    return extras.need("reading this file", module, extra)
