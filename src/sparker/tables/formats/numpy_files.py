"""NumPy's files: .npy, mapped into memory, and .npz, an archive of them."""

import functools
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from sparker.system.memmap import copied
from sparker.tables.errors import FileError, check_memory
from sparker.tables.format import Format
from sparker.tables.source import Source
from sparker.tables.stored import Stored, pick, stored_source

LARGEST_HEADER = 2**17
"""Characters that NumPy may parse as an array's header: some thousand named fields."""

PICKLED = "holds pickled Python objects, which can run code when loaded and never are; save numbers"


@contextmanager
def open_npy(path: Path, key: str | None) -> Iterator[Source]:
    """The one array of a file."""
    try:
        array: np.ndarray = np.lib.format.open_memmap(
            path, mode="r", max_header_size=LARGEST_HEADER
        )
    except ValueError as error:
        if "Python objects" in str(error):
            raise FileError(PICKLED) from error
        raise
    if array.ndim == 1 and array.dtype.names is None:
        array = array[:, None]
    if array.ndim not in (1, 2):
        raise FileError(f"has shape {array.shape}; bring it to rows and columns, two dimensions")
    yield stored_source({"": Stored(array.shape, array.dtype, partial(copied, array))}, [""])


@contextmanager
def open_npz(path: Path, key: str | None) -> Iterator[Source]:
    """The arrays of an archive, each loaded when it is first asked for."""
    with zipfile.ZipFile(path) as archive:
        arrays = {
            info.filename.removesuffix(".npy"): _member(archive, info)
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        chosen = pick(arrays, key)
        if all(arrays[name].dtype.hasobject for name in chosen):
            raise FileError(PICKLED)
        yield stored_source(arrays, chosen)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Stored:
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_2_0
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0
        shape, _, dtype = header(file, max_header_size=LARGEST_HEADER)
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if not dtype.hasobject and n_bytes != info.file_size - file.tell():
            raise FileError(f"has an array {info.filename} that is not of the size it claims")

    @functools.cache
    def load() -> np.ndarray:
        check_memory(n_bytes, f"an array {info.filename} of shape {shape}")
        with archive.open(info) as file:
            return np.lib.format.read_array(
                file, allow_pickle=False, max_header_size=LARGEST_HEADER
            )

    return Stored(shape, dtype, lambda lo, hi: load()[lo:hi])


FORMATS = {
    ".npy": Format("NumPy", open_npy, start=b"\x93NUMPY", looks_like="a NumPy array"),
    ".npz": Format(
        "NumPy archive", open_npz, has_keys=True, start=b"PK\x03\x04", looks_like="a zip archive"
    ),
}
