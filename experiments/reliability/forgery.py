"""Files of ours with something else in them, made by somebody who knows how the digest is made."""

from pathlib import Path
from typing import Any

import numpy as np

from sparker.system import archive

Rng = np.random.Generator

STRANGE = [
    None, True, False, 0, -1, 1, 7, 10**9, 10**30, 0.5, -0.5, 1e300, float("nan"), float("inf"), "",
    "x", "../../etc/passwd", "<script>alert(1)</script>", "\ud800", [], [0], [None], ["x", 1], {},
    {"option": "softmax"}, {"is": []}, [[[]]], [1e308] * 3,
]  # fmt: skip


def forge_value(rng: Rng, value: Any) -> Any:
    """Something else somewhere inside a value of JSON."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[rng.integers(len(keys))]
        changed = dict(value) if isinstance(value, dict) else list(value)
        if rng.random() < 0.1:
            del changed[key]
        else:
            changed[key] = forge_value(rng, value[key])
        return changed
    return STRANGE[rng.integers(len(STRANGE))]


def forge_array(rng: Rng, array: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """Another shape, another kind, other values, or another array altogether."""
    way = rng.integers(8)
    if way == 0:
        return array[:-1] if array.ndim and len(array) else np.zeros(2)
    if way == 1:
        return array[..., None]
    if way == 2:
        return np.zeros(array.shape, rng.choice(["U3", "c16", "M8[s]", "i8", "?", "u1", "S2"]))
    if way == 3 and array.dtype.kind in "fiu" and array.size:
        changed = array.copy()
        kinds = [-1, 0, 2**31 - 1] if array.dtype.kind in "iu" else [np.nan, np.inf, -5, 1e30, 0]
        changed.flat[rng.integers(array.size)] = np.array(rng.choice(kinds)).astype(array.dtype)
        return changed
    if way == 4:
        return array.ravel()
    if way == 5:
        return np.zeros((0, *array.shape[1:]), array.dtype)
    if way == 6:
        return np.zeros((), array.dtype)
    return others[rng.integers(len(others))]


def forged(rng: Rng, kind: str, path: Path, to: Path) -> None:
    """The file with something else in it, and the digest that belongs to that."""
    header, arrays = archive.read(path, kind)
    for _ in range(rng.integers(1, 3)):
        if rng.random() < 0.5:
            header = forge_value(rng, header)
            header = {**(header if isinstance(header, dict) else {}), "kind": kind}
        else:
            name = list(arrays)[rng.integers(len(arrays))]
            arrays[name] = forge_array(rng, arrays[name], list(arrays.values()))
    archive.write(to, header, arrays)
