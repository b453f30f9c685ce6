"""The user's cache folder: where it is, and whether others could put something into it.

``SPARKER_CACHE`` names another folder, or is ``off``.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

VARIABLE = "SPARKER_CACHE"


class CacheWarning(UserWarning):
    """Something that could not be kept for the next time."""


def is_off() -> bool:
    """Whether nothing is to be kept."""
    return os.environ.get(VARIABLE) == "off"


def root() -> Path:
    """The folder, whether it is there or not."""
    given = os.environ.get(VARIABLE)
    found = Path(given).expanduser() if given else user_cache_path("sparker")
    if not given and not found.is_absolute():
        raise FileNotFoundError("the user has no home")  # and no folder shall be called ~
    return found


def private_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, if it is not there, and refuse one that others could put something into.

    Returns:
        The folder's path without links, which others cannot redirect.

    Raises:
        PermissionError: If others may write to the folder or to one above it, or own one of them.
            Above it, folders like ``/tmp`` are fine: in them nobody replaces what is not theirs.
    """
    path = Path(path).expanduser().resolve()
    for part in (*reversed(path.parents), path):
        with suppress(FileExistsError):
            if not part.is_dir():
                part.mkdir(mode=0o700)
        if os.name != "nt":  # where the folders of a user are, and modes say nothing
            _check(part, part.lstat(), is_above=part != path)
    return path


def _check(part: Path, found: os.stat_result, *, is_above: bool) -> None:
    if not stat.S_ISDIR(found.st_mode):  # a link that was made since
        raise NotADirectoryError(f"{part} is no folder")
    if found.st_uid not in (0, os.getuid()):
        raise PermissionError(f"{part} belongs to another user; name another folder")
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if shared and not (is_above and found.st_mode & stat.S_ISVTX):
        raise PermissionError(
            f"others may write to {part}; take their right to (chmod go-w) or name another folder"
        )


def keep_last_used(paths: Iterable[Path], max_bytes: int) -> None:
    """Remove those files that were not used for longest, beyond so many bytes in all."""
    known = []
    for path in paths:
        with suppress(OSError):  # removed by another process since
            found = path.stat()
            known.append((found.st_atime, found.st_size, path))
    total = 0
    for _, size, path in sorted(known, reverse=True):
        total += size
        if total > max_bytes:
            with suppress(OSError):
                path.unlink()
