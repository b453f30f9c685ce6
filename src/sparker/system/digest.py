"""Content hashes of arrays: two with the same one are the same to the bit."""

import hashlib

import numpy as np


def digest(*arrays: np.ndarray | None) -> str:
    """A content hash: two sets of arrays with the same one are the same to the bit."""
    whole = Digest()
    for array in arrays:
        whole.add(array)
    return str(whole)


class Digest:
    """A content hash in the making, one array after another."""

    def __init__(self) -> None:
        self._whole = hashlib.sha256()

    def add(self, array: np.ndarray | None) -> None:
        """Take in one more."""
        if array is None:
            self._whole.update(b"none;")
            return
        block = np.ascontiguousarray(array)
        self._whole.update(f"{block.dtype.str}{block.shape};".encode())
        self._whole.update(block.reshape(-1).view(np.uint8).data)

    def __str__(self) -> str:
        return self._whole.hexdigest()
