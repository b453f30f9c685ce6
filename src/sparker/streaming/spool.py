"""A scratch file of rows as they are fitted."""

import tempfile
import threading
import weakref
from typing import NamedTuple

import numpy as np

from sparker.system.memmap import check_disk


class Spool:
    """Rows as they are fitted, in single precision, in a temporary file without a name."""

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
        """Rows, read and not mapped: a mapped file counts as memory in use."""
        rows = np.empty((stop - start, self.shape[1]), np.float32)
        with self._reading:
            self._file.seek(start * self._row_bytes)
            if self._file.readinto(rows.reshape(-1).view(np.uint8).data) < rows.nbytes:
                raise OSError("the scratch file is cut short; look after the disk it is on")
        return rows


class StreamedPool(NamedTuple):
    """Rows that all toys share, in a scratch file."""

    rows: Spool
    origin: np.ndarray  # (1, d) of the coordinates in there
    weights: np.ndarray | None  # (N,) how much rows count as reference; None for ones
    memory: float | None  # bytes that passes over them may take
