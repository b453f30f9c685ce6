"""Content hashes: two arrays, or two plain values, with the same one are the same to the bit."""

import hashlib
import itertools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def digest(*arrays: np.ndarray | None) -> str:
    """A content hash: two sets of arrays with the same one are the same to the bit."""
    found = hashlib.sha256()
    for array in arrays:
        if array is None:
            found.update(b"none;")
            continue
        block = np.ascontiguousarray(array)
        found.update(f"{block.dtype.str}{np.shape(array)};".encode())
        found.update(block.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def digest_by_name(arrays: Mapping[str, np.ndarray]) -> str:
    """The same of arrays with names, in whatever order they come.

    >>> one, other = np.zeros(2), np.ones(2)
    >>> digest_by_name({"a": one, "b": other}) == digest_by_name({"b": other, "a": one})
    True
    >>> digest_by_name({"a": one, "b": other}) == digest_by_name({"a": other, "b": one})
    False
    """
    parts = ((np.frombuffer(name.encode(), np.uint8), arrays[name]) for name in sorted(arrays))
    return digest(*itertools.chain(*parts))


def digest_of_plain(value: Any) -> str:
    """The same of what JSON knows, in whatever order its keys come."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
