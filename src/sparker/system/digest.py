"""Content hashes: two arrays, or two plain values, with the same one are the same to the bit."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def digest(*arrays: np.ndarray | None) -> str:
    """A content hash: two sets of arrays with the same one are the same to the bit."""
    whole = Digest()
    for array in arrays:
        whole.add(array)
    return str(whole)


def digest_by_name(arrays: Mapping[str, np.ndarray]) -> str:
    """The same of arrays with names, in whatever order they come.

    >>> one, other = np.zeros(2), np.ones(2)
    >>> digest_by_name({"a": one, "b": other}) == digest_by_name({"b": other, "a": one})
    True
    >>> digest_by_name({"a": one, "b": other}) == digest_by_name({"a": other, "b": one})
    False
    """
    whole = Digest()
    for name in sorted(arrays):
        whole.add(np.frombuffer(name.encode(), np.uint8))
        whole.add(arrays[name])
    return str(whole)


def digest_of_plain(value: Any) -> str:
    """The same of what JSON knows, in whatever order its keys come."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


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
        self._whole.update(f"{block.dtype.str}{np.shape(array)};".encode())
        self._whole.update(block.reshape(-1).view(np.uint8).data)

    def __str__(self) -> str:
        return self._whole.hexdigest()
