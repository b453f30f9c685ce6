"""References larger than memory: rows that are read in blocks, and a scratch file of them.

``stream`` wraps whatever can be sliced: a memory-mapped array, an HDF5 dataset. It is read twice,
once to check it and to set some rows aside, and once to write all of it as it is fitted into a
scratch file, from which every step of every fit then reads.
"""

import tempfile
import threading
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sparker.mapped import check_disk, copied
from sparker.memory import USABLE, free_memory, points_bytes
from sparker.record import Digest
from sparker.sample import as_points, column_names

BLOCK_BYTES = 2**25
"""Of the source, read at a time."""

MOST_SHOWN = 100_000
MOST_SHOWN_VALUES = 2**23
"""Rows, and values in them, that stand for all in pictures and where settings are chosen."""


class Survey(NamedTuple):
    """What one pass over all rows has shown."""

    rows: np.ndarray  # (n,) numbers of some rows, at random and in order
    points: np.ndarray  # (n, d) these rows
    digest: str  # of all


class Rows:
    """Rows that are never all in memory."""

    def __init__(self, source: Any, memory: float | None) -> None:
        shape = getattr(source, "shape", None)
        if shape is None or not hasattr(source, "__getitem__"):
            raise ValueError(
                "stream needs an array that can be sliced, such as np.load(file, mmap_mode='r') or "
                f"a dataset of an HDF5 file, got {type(source).__name__}"
            )
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"stream needs rows and features, at least one each, got {shape}")
        if memory is not None and not memory >= 2**20:
            raise ValueError(f"memory must be a number of bytes, at least 2**20, got {memory}")
        self.source = source
        self.shape: tuple[int, int] = tuple(shape)
        self.columns = column_names(source)
        self.memory = memory

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Rows of shape {self.shape}>"

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise ValueError("only sparker.test takes a streamed reference; give an array here")

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """All rows in order, block by block, checked, each with the number of its first row."""
        n_rows, n_features = self.shape
        size = max(1, BLOCK_BYTES // (8 * n_features))
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            if np.ma.isMaskedArray(self.source) and np.ma.is_masked(self.source[start:stop]):
                raise ValueError("reference has masked values; drop these rows or fill them")
            block = copied(self.source, start, stop)
            yield start, as_points(f"reference, from row {start} on,", block)

    @cached_property
    def survey(self) -> Survey:
        """Some rows of them, at random, and what tells them from others."""
        rng = np.random.default_rng([0, 0, 0x2095])  # no stream that a user would draw rows from
        n_shown = min(len(self), n_kept(self.shape[1]))
        chosen = np.sort(rng.choice(len(self), n_shown, replace=False, shuffle=False))
        digest = Digest()
        shown = []
        for start, block in self.blocks():
            digest.add(block)
            first, last = np.searchsorted(chosen, [start, start + len(block)])
            shown.append(block[chosen[first:last] - start])
        return Survey(chosen, np.concatenate(shown), str(digest))


def n_kept(n_features: int) -> int:
    """How many rows may stand for all."""
    return min(MOST_SHOWN, max(1000, MOST_SHOWN_VALUES // n_features))


def stream(source: Any, *, memory: float | None = None) -> Rows:
    """A reference that is read in blocks instead of being held in memory, for ``sparker.test``.

    Args:
        source: an array that can be sliced: ``np.load(file, mmap_mode="r")``, an HDF5 dataset, or
            any array, if there is no room for what training needs beside it.
        memory: bytes that training may take; a quarter of what is free, and at most 4 GiB on CPUs,
            if left out.

    Relabelling (``null="permutation"``) and SparKer's own statistic are what streams; the data fit
    into memory. A scratch file of four bytes a value goes into the folder for temporary files
    (``TMPDIR``).

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(0)
    >>> reference, data = rng.normal(size=(3000, 2)), rng.normal(size=(200, 2))
    >>> data[:12] = [2, 2] + 0.1 * rng.normal(size=(12, 2))
    >>> result = sparker.test(sparker.stream(reference), data, n_calibration=10)
    >>> round(result.p_value, 4)
    0.0909
    """
    return Rows(source, memory)


def streamed(reference: Any) -> Any:
    """A memory-mapped array that is too large to be held as rows to stream; others as they are."""
    if not isinstance(reference, np.memmap) or reference.ndim != 2:
        return reference
    return Rows(reference, None) if needed(*reference.shape) > USABLE * free_memory() else reference


def needed(n_rows: int, n_features: int) -> float:
    """Bytes to hold a sample and train two toys on it, roughly."""
    return points_bytes(n_rows, n_features, 4) + 500 * n_rows


class Spool:
    """Rows as they are fitted, in single precision, in a file that nobody else sees."""

    def __init__(self, n_rows: int, n_features: int) -> None:
        self.shape = n_rows, n_features
        self._row_bytes = 4 * n_features
        check_disk(n_rows * self._row_bytes, "the rows as they are fitted")
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # open for as long as this lives
        weakref.finalize(self, self._file.close)
        self._reading = threading.Lock()

    def write(self, start: int, rows: np.ndarray) -> None:
        """Put rows where they belong."""
        self._file.seek(start * self._row_bytes)
        self._file.write(np.ascontiguousarray(rows, np.float32).data)
        self._file.flush()

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows, read and not mapped: what is mapped counts as memory in use."""
        rows = np.empty((stop - start, self.shape[1]), np.float32)
        with self._reading:
            self._file.seek(start * self._row_bytes)
            if self._file.readinto(rows.reshape(-1).view(np.uint8).data) < rows.nbytes:
                raise OSError("the scratch file is cut short; look after the disk it is on")
        return rows
