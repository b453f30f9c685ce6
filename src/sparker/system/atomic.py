"""Files that appear whole or not at all, even if the machine stops halfway."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write: it takes its place, and its predecessor's, once all is written.

    What is no plain file, such as /dev/stdout, is written to directly: it must not be replaced.
    """
    target = Path(path).resolve()  # the file that a link leads to, not the link
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    half = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with half.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        half.replace(target)
    except BaseException:
        with suppress(OSError):
            half.unlink()
        raise
