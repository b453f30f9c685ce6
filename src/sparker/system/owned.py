"""A file that one process at a time may read, change and write back."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sparker.system.atomic import whole_file


@contextmanager
def owned(path: str | os.PathLike[str]) -> Iterator[Callable[[bytes], None]]:
    """Lock a file, so that every other process that asks for it is refused.

    Args:
        path: an ordinary file.

    Yields:
        A function that writes new content, whole or not at all; the lock goes over to it.

    Raises:
        BlockingIOError: if another process has it.
    """
    import fcntl

    held = _locked(path)

    def write(content: bytes) -> None:
        nonlocal held
        with whole_file(path) as file:
            file.write(content)
            after = os.dup(file.fileno())
            fcntl.flock(after, fcntl.LOCK_EX)  # before it takes its place
        os.close(held)
        held = after

    try:
        yield write
    finally:
        os.close(held)


def _locked(path: str | os.PathLike[str]) -> int:
    """Return a descriptor of the file that is there now, with the lock on it."""
    import fcntl

    if Path(path).is_symlink():
        raise ValueError(
            f"{os.fspath(path)} is a link, which is not followed; name the file itself"
        )
    if Path(path).exists() and not Path(path).is_file():  # to open a pipe would wait
        raise ValueError(f"{path} is no ordinary file")
    while True:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # another process has written it meanwhile
