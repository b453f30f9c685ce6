"""Settings as plain values: for the record in a result, and for comparing stores."""

import dataclasses
from typing import Any

import jax
import numpy as np

from sparker.calibration import combine
from sparker.engine import ensemble, losses, preprocess, widths
from sparker.statistics.contract import rounded
from sparker.system.digest import digest

OPTIONS: dict[str, Any] = {
    **{rule.__name__: rule for rule in combine.RULES},
    "decorrelate": preprocess.decorrelate,
    "standardise": preprocess.standardise,
    "whiten": preprocess.whiten,
    "unchanged": preprocess.unchanged,
    "linear": widths.linear,
    "geometric": widths.geometric,
    "resolvable_range": widths.resolvable_range,
    "width_range": widths.width_range,
    "softmax": ensemble.softmax,
    "independent": ensemble.independent,
    "neyman_pearson": losses.neyman_pearson,
    "binary_cross_entropy": losses.binary_cross_entropy,
    "mean_squared_error": losses.mean_squared_error,
    "float32": np.float32,
    "float64": np.float64,
    **{precision.name: precision for precision in jax.lax.Precision},
}
"""Settings that are functions, or anything else that JSON does not have, by their names."""


def plain(value: Any) -> Any:
    """A setting as JSON knows it: functions by name, arrays by what they hold or their digest."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    for name, known in OPTIONS.items():
        if value is known:
            return name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"is": type(value).__name__, **fields}
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()] if value.size <= 64 else digest(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        named = {"is": type(value).__name__, **plain(value._asdict())}
        if hasattr(value, "fingerprint"):  # it holds functions, and names do not tell what they do
            named["values"] = fingerprint(value.fingerprint())
        return named
    if isinstance(value, tuple | list):
        if len(value) > 64:
            return digest(np.asarray(value))
        return [plain(item) for item in value]
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{getattr(value, '__module__', type(value).__module__)}.{name}"


def fingerprint(*values: np.ndarray) -> str:
    """What tells values from others, not to the last bit, which another machine may round."""
    return digest(*(np.array(rounded(array.ravel())) for array in values))


def to_names(settings: Any) -> dict[str, Any]:
    """The fields of a settings object, for a file: options by name, marked as such."""
    named: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value is None or isinstance(value, int | float):
            named[field.name] = value
        else:
            named[field.name] = {"option": option_name(field.name, value)}
    return named


def from_names(named: dict[str, Any]) -> dict[str, Any]:
    """The other way round."""
    return {
        key: option(value["option"]) if isinstance(value, dict) else value
        for key, value in named.items()
    }


def option_name(what: str, value: Any) -> str:
    """The name of a built-in option; only these can be written to a file."""
    for name, known in OPTIONS.items():
        if value is known:
            return name
    raise ValueError(f"{what} is {value!r}; only sparker's own options can be saved")


def option(name: str) -> Any:
    """The option of a name."""
    if name not in OPTIONS:
        raise ValueError(f"there is no option {name!r}")
    return OPTIONS[name]
