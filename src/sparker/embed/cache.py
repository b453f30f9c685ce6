"""Embeddings kept between runs in the user's cache folder, by the hash of what was embedded.

One file a block, of plain numbers, written whole or not at all. ``SPARKER_CACHE`` names another
folder, or is ``off``. A folder that cannot be used, or that others may write to or replace, is left
alone.
"""

import os
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np

from sparker.system.atomic import whole_file
from sparker.system.cache_folder import CacheWarning, is_off, keep_last_used, private_folder, root

MAX_BYTES = 2**30
"""Above this size, the embeddings that were not used for longest are removed."""
SUFFIX = ".npy"


def get(key: str, shape: tuple[int, int]) -> np.ndarray | None:
    """What is kept under this key; None where nothing is, or something else."""
    if is_off():
        return None
    with suppress(OSError, ValueError, EOFError):
        path = _folder() / f"{key}{SUFFIX}"
        with open(path, "rb") as file:
            found = np.load(file, allow_pickle=False)
        if found.shape == shape and found.dtype == np.float32 and np.isfinite(found).all():
            os.utime(path)  # used now
            return np.asarray(found)
    return None


def put(key: str, found: np.ndarray) -> None:
    """Keep it, if there is a place for it."""
    if is_off():
        return
    try:
        folder = _folder()
        with whole_file(folder / f"{key}{SUFFIX}") as file:
            np.save(file, found, allow_pickle=False)
        keep_last_used(folder.glob(f"*{SUFFIX}"), MAX_BYTES)
    except OSError as error:
        warnings.warn(f"embeddings are not kept: {error}", CacheWarning, stacklevel=2)


def _folder() -> Path:
    return private_folder(root() / "embeddings")
