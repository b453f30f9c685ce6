"""Settings as plain values: what a result says of how it was made, and what a store compares."""

import dataclasses
import enum
import hashlib
import platform
from importlib import metadata
from typing import Any

import jax
import numpy as np

from sparker import combine, ensemble, losses, preprocess, widths

_NAMED = [
    (name, value)
    for module in (combine, ensemble, losses, preprocess, widths)
    for name, value in vars(module).items()
    if not name.startswith("_") and (callable(value) or isinstance(value, tuple))
]


def plain(value: Any) -> Any:
    """A setting as JSON knows it: functions by name, arrays by what they hold or their digest."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    for name, known in _NAMED:
        if value is known:
            return name
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"is": type(value).__name__, **fields}
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()] if value.size <= 64 else digest(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{getattr(value, '__module__', type(value).__module__)}.{name}"


def digest(*arrays: np.ndarray | None) -> str:
    """A content hash: two sets of arrays with the same one are the same to the bit."""
    whole = hashlib.sha256()
    for array in arrays:
        if array is None:
            whole.update(b"none;")
            continue
        block = np.ascontiguousarray(array)
        whole.update(f"{block.dtype.str}{block.shape};".encode())
        whole.update(block.reshape(-1).view(np.uint8).data)
    return whole.hexdigest()


def versions() -> dict[str, str]:
    """What made a result: packages, Python, machine and device."""
    from sparker import __version__  # here: the package imports this module first

    found = {name: metadata.version(name) for name in ("jax", "numpy", "scipy", "optax")}
    device = jax.devices()[0]
    return {
        "sparker": __version__,
        **found,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "device": f"{device.platform} {device.device_kind}",
    }
