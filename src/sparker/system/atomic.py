"""Files that appear whole or not at all, even if the machine stops halfway."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

STREAMS = 1, 2
"""The descriptors of stdout and stderr."""
N_KEPT = 40
"""Characters of a file's name that its unfinished successor takes over: names cannot be longer
than 255 bytes."""


@contextmanager
def whole_file(path: str | os.PathLike[str], *, new: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write: it takes its place, and its predecessor's, once all is written.

    What is no plain file, such as a pipe, or the file that stdout goes to, is written to directly:
    it must not be replaced. A ``new`` file replaces none: where there is one by then, that is a
    ``FileExistsError``.
    """
    found = _state(path)
    if found is not None:
        direct = _in_place(path, found)
        if direct is not None:
            with open(direct, "wb") as file:
                yield file
            return
    target = Path(path).resolve()  # the file that a link leads to, not the link
    # Nobody can guess the name, and nothing may have it yet: threads, and containers whose only
    # process has the same number, do not meet, and no link leads elsewhere.
    half = target.with_name(f".{target.name[:N_KEPT]}.{os.urandom(8).hex()}.part")
    mode = 0o666 if found is None else stat.S_IMODE(found.st_mode)  # private stays private
    descriptor = os.open(
        half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode
    )
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if new and _linked(half, target):
            half.unlink()
        else:
            half.replace(target)
    except BaseException:
        with suppress(OSError):
            half.unlink()
        raise


def _linked(half: Path, target: Path) -> bool:
    """Give a file one more name, if nobody has it; False where a file can have one name only."""
    try:
        os.link(half, target)
    except FileExistsError:
        raise
    except OSError:
        if target.exists():
            raise FileExistsError(target) from None
        return False
    return True


def _state(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _in_place(path: str | os.PathLike[str], found: os.stat_result) -> int | None:
    """A descriptor of what must not be replaced; None for a plain file."""
    for stream in STREAMS:
        with suppress(OSError):  # a stream may be closed
            if os.path.samestat(found, os.fstat(stream)):
                return os.dup(stream)  # goes on where the stream is
    return None if stat.S_ISREG(found.st_mode) else os.open(path, os.O_WRONLY)
