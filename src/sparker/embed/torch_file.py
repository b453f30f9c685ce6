"""Tensors from a file that PyTorch wrote, without PyTorch and without running what it says.

Such a file is a pickle, which may name any function to be called. Here it may name two things: a
plain dictionary, and the making of a tensor of the numbers that follow. Everything else is refused:
attributes that it sets, and sizes beyond the file.
"""

import io
import math
import pickle
import pickletools
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
TYPES: dict[str, np.dtype[Any]] = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _Storage(NamedTuple):
    """A run of numbers that is still to come."""

    key: str
    dtype: np.dtype[Any]
    size: int


class _Tensor(NamedTuple):
    """Where a tensor lies in such a run."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Named(OrderedDict[str, Any]):
    """A dictionary whose state, of which PyTorch writes the versions of layers, is not kept."""

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, dict) or state.keys() - {"_metadata"}:
            raise pickle.UnpicklingError("it sets attributes of a dictionary")


class _Rebuild:
    """The making of a tensor; a function would take any attribute that the file gives it."""

    __slots__ = ()

    def __call__(self, storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Tensor:
        if not isinstance(storage, _Storage):
            raise pickle.UnpicklingError("a tensor without numbers")
        return _Tensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, strides)))


class _Tensors(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return _Named
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Rebuild()
        if module == "torch" and name in TYPES:
            return name  # no class: a word that persistent_load understands
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no tensor")

    def persistent_load(self, pid: Any) -> _Storage:
        word, kind, key, _, size, *_ = pid
        if word != "storage" or kind not in TYPES:
            raise pickle.UnpicklingError("it refers to something that is no tensor")
        return _Storage(str(key), TYPES[kind], int(size))


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """All tensors of a file of the older format, by name; a ``ValueError`` for anything else."""
    content = io.BytesIO(path.read_bytes())
    try:
        magic, protocol, system = (_load(content) for _ in range(3))
        if magic != MAGIC or protocol != PROTOCOL or not system["little_endian"]:
            raise ValueError("it is of another format")
        named = _load(content)
        order = _load(content)
        sizes = {one.storage.key: one.storage for one in named.values()}
        numbers = {}
        for key in order:
            (size,) = np.frombuffer(content.read(8), "<i8")
            storage = sizes[key]
            n_bytes, left = int(size) * storage.dtype.itemsize, len(content.getbuffer())
            if size != storage.size or not 0 <= n_bytes <= left - content.tell():
                raise ValueError("its tensors do not have the size they claim")
            numbers[key] = np.frombuffer(content.read(n_bytes), storage.dtype)
        return {name: _placed(one, numbers[one.storage.key]) for name, one in named.items()}
    except Exception as error:  # a file made to do harm may raise anything
        raise ValueError(f"{path} is no file of tensors: {error}") from error


def _load(content: io.BytesIO) -> Any:
    """The next pickle, if the places in which it keeps what comes again are no more than bytes."""
    start, n_bytes = content.tell(), len(content.getbuffer())
    for opcode, argument, _ in pickletools.genops(content):
        if "PUT" in opcode.name and (argument or 0) > n_bytes:
            raise pickle.UnpicklingError("it keeps more than there is")
    content.seek(start)
    return _Tensors(content).load()


def _placed(one: _Tensor, numbers: np.ndarray) -> np.ndarray:
    """A tensor out of its run of numbers, none of which lies outside."""
    reach = one.offset + sum((n - 1) * s for n, s in zip(one.shape, one.strides, strict=True))
    is_outside = one.offset < 0 or reach >= len(numbers) or math.prod(one.shape) > len(numbers)
    if is_outside or min((*one.strides, *one.shape), default=1) < 0:
        raise ValueError("a tensor reaches beyond its numbers")
    strides = [s * numbers.itemsize for s in one.strides]
    view = np.lib.stride_tricks.as_strided(numbers[one.offset :], one.shape, strides)
    return np.ascontiguousarray(view)
