"""Files that appear whole or not at all, even if the machine stops halfway."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str], *, new: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write: it takes its place, and its predecessor's, once all is written.

    What is no plain file, such as /dev/stdout, is written to directly: it must not be replaced. A
    ``new`` file replaces none: where there is one by then, that is a ``FileExistsError``.
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
