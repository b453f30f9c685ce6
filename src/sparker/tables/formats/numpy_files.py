"""NumPy's files: .npy, an array, and .npz, an archive of them."""

import functools
import io
import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from sparker.tables.errors import FileError, check_memory
from sparker.tables.format import Format
from sparker.tables.source import Source, check_width
from sparker.tables.stored import Stored, pick, stored_source

LARGEST_HEADER = 2**17
"""Characters that NumPy may parse as an array's header: some thousand named fields."""

PICKLED = "holds pickled Python objects, which can run code when loaded and never are; save numbers"


@contextmanager
def open_npy(path: Path, key: str | None) -> Iterator[Source]:
    """The one array of a file, read and not mapped: whoever cuts off a mapped file ends us."""
    with path.open("rb") as file:
        array = _array(file, path.stat().st_size, "an array", lambda: file)
        if array.dtype.hasobject:
            raise FileError(PICKLED)
        if array.is_column:
            column = array.rows
            array = array._replace(
                shape=(*array.shape, 1), rows=lambda lo, hi: column(lo, hi)[:, None]
            )
        if not array.is_table:
            raise FileError(
                f"has shape {array.shape}; bring it to rows and columns, two dimensions"
            )
        yield stored_source({"": array}, [""])


@contextmanager
def open_npz(path: Path, key: str | None) -> Iterator[Source]:
    """The arrays of an archive, each opened when it is first asked for."""
    with zipfile.ZipFile(path) as archive, ExitStack() as opened:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        check_width(len(members))
        if len({info.filename for info in members}) < len(members):
            raise FileError("has an array twice under one name; write it anew")
        arrays = {}
        for info in members:
            again = partial(_opened, opened, archive, info)
            with archive.open(info) as file:
                arrays[info.filename.removesuffix(".npy")] = _array(
                    file, info.file_size, f"an array {info.filename}", again
                )
        chosen = pick(arrays, key)
        if all(arrays[name].dtype.hasobject for name in chosen):
            raise FileError(PICKLED)
        yield stored_source(arrays, chosen)


def _opened(opened: ExitStack, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    return opened.enter_context(archive.open(info))


def _array(file: IO[bytes], size: int, called: str, again: Callable[[], IO[bytes]]) -> Stored:
    """The array in an open file of so many bytes, whose rows are read when it is open again."""
    shape, by_columns, dtype = _header(file)
    begin, n_bytes = file.tell(), math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and (n_bytes != size - begin or min(shape, default=0) < 0):
        raise FileError(f"has {called} that is not of the size it claims")

    @functools.cache
    def content() -> Any:
        opened = again()
        if not (by_columns and isinstance(opened, zipfile.ZipExtFile)):
            return opened
        # Parts of each column are far apart, and to go back there would mean to unpack it anew.
        check_memory(n_bytes, f"{called} of shape {shape}, which is stored column by column")
        return io.BytesIO(opened.read())

    def part(first: int, *part_shape: int) -> np.ndarray:
        values = np.empty(part_shape, dtype)
        content().seek(begin + first * dtype.itemsize)
        if content().readinto(values.reshape(-1).view(np.uint8)) < values.nbytes:
            raise FileError("was cut short while it was read; wait until it is written")
        return values

    def rows(lo: int, hi: int) -> np.ndarray:
        if not by_columns or len(shape) == 1:
            return part(lo * math.prod(shape[1:]), hi - lo, *shape[1:])
        return np.stack([part(lo + i * shape[0], hi - lo) for i in range(shape[1])], axis=1)

    return Stored(shape, dtype, rows)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of an array, whether it is stored column by column, and what its values are."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_2_0
    if version == (1, 0):
        read = np.lib.format.read_array_header_1_0
    shape, by_columns, dtype = read(file, max_header_size=LARGEST_HEADER)
    if version == (3, 0) and dtype.names:  # in UTF-8, which is all that is new
        dtype.names = tuple(name.encode("latin-1").decode() for name in dtype.names)
    return shape, by_columns, dtype


FORMATS = {
    ".npy": Format("NumPy", open_npy, start=b"\x93NUMPY", looks_like="a NumPy array"),
    ".npz": Format(
        "NumPy archive", open_npz, has_keys=True, start=b"PK\x03\x04", looks_like="a zip archive"
    ),
}
