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


def make_private(path: Path) -> None:
    """Make a folder inside the root; refuse one that others could put something into."""
    for part in (path.parent.parent, path.parent, path):
        if not part.is_dir():
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
    for part in (path.parent, path):
        check_private(part)


def check_private(path: Path) -> None:
    """Refuse a folder that others may write to."""
    if os.name == "nt":  # where the folders of a user are, and modes say nothing
        return
    found = path.stat()
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others may write to {path}")


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
