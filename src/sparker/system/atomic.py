"""Files that appear whole or not at all, even if the machine stops halfway."""

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

STREAMS = 1, 2
"""The descriptors of stdout and stderr."""
N_KEPT = 40
"""Characters of a file's name that its unfinished successor takes over: names cannot be longer
than 255 bytes."""

_being_written: set[str] = set()
"""The unfinished files of this process, in which some file systems do not tell locks apart."""


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
    _tidy(target)
    mode = 0o666 if found is None else stat.S_IMODE(found.st_mode)  # private stays private
    half, descriptor = _begin(target, mode)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":  # where no open file can be renamed
                file.close()
            if new and _linked(half, target):
                half.unlink()
            else:
                half.replace(target)
    except BaseException:
        with suppress(OSError):
            half.unlink()
        raise
    finally:
        _being_written.discard(half.name)


def _begin(target: Path, mode: int) -> tuple[Path, int]:
    """A new file beside the target, held until it is closed."""
    while True:
        # Nobody can guess the name, and nothing may have it yet: threads, and containers whose only
        # process has the same number, do not meet, and no link leads elsewhere.
        half = target.with_name(f".{target.name[:N_KEPT]}.{os.urandom(8).hex()}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(half, flags, mode)
        _being_written.add(half.name)
        _hold(descriptor, wait=True)
        if half.exists():  # or somebody has tidied it away before it was held
            return half, descriptor
        os.close(descriptor)


def _tidy(target: Path) -> None:
    """Remove what processes that were killed have left of this file; those that live hold theirs.

    A number of a process would not do: it may be another one's by now, or one of another container
    or machine that shares the folder.
    """
    half = re.compile(rf"\.{re.escape(target.name[:N_KEPT])}\.[0-9a-f]{{16}}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if not half.fullmatch(entry.name) or entry.name in _being_written:
                continue
            with suppress(OSError):
                if not entry.is_file(follow_symlinks=False):
                    continue
                descriptor = os.open(entry.path, os.O_RDWR)
                try:
                    if _hold(descriptor, wait=False):
                        os.unlink(entry.path)
                finally:
                    os.close(descriptor)


def _hold(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed, by whatever end of its process; whether it worked."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or on a file system without locks
        return False
    return True


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
