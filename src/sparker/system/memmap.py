"""Files in place of memory: mapped arrays that are let go of, and room on the disk."""

import mmap
import shutil
import tempfile
from typing import Any

import numpy as np


def forget(array: Any) -> None:
    """Let go of the pages of a mapped file: they count as memory in use, and are still there.

    What was written stays. Arrays that are not mapped, or whose changes have no file to go to, are
    left alone.
    """
    if not isinstance(array, np.memmap) or array.mode == "c":
        return
    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = base.base
    if base is not None and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def copied(array: Any, start: int, stop: int) -> np.ndarray:
    """Some rows of an array of any kind, in memory, and no others."""
    rows = np.array(array[start:stop])
    forget(array)
    return rows


def check_disk(n_bytes: int, what: str) -> None:
    """Refuse what has no room in the folder for temporary files."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise OSError(
            f"{what} take {n_bytes / 2**30:.3g} GiB of disk while they are worked on, "
            f"{free / 2**30:.3g} GiB are free in {folder}; set TMPDIR to a larger disk"
        )
