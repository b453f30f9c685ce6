"""Settings as plain values: for the record in a result, and for comparing stores."""

import dataclasses
from typing import Any

import jax
import numpy as np

from sparker.calibration import combine
from sparker.engine import ensemble, losses, preprocess, widths
from sparker.statistics.contract import rounded
from sparker.system.digest import digest


def _by_name(*functions: Any) -> dict[str, Any]:
    return {function.__name__: function for function in functions}


BY_SETTING: dict[str, dict[str, Any]] = {
    "combine": _by_name(*combine.RULES),
    "preprocess": _by_name(
        preprocess.decorrelate, preprocess.standardise, preprocess.whiten, preprocess.unchanged
    ),
    "annealing": _by_name(widths.linear, widths.geometric),
    "span": _by_name(widths.resolvable_range, widths.width_range),
    "competition": {"softmax": ensemble.softmax, "independent": ensemble.independent},
    "loss": {
        "neyman_pearson": losses.neyman_pearson,
        "binary_cross_entropy": losses.binary_cross_entropy,
        "mean_squared_error": losses.mean_squared_error,
    },
    "dtype": _by_name(np.float32, np.float64),
    "precision": {precision.name: precision for precision in jax.lax.Precision},
}
"""Settings that are functions, or anything else that JSON does not have: what each may be."""

OPTIONS = {name: value for options in BY_SETTING.values() for name, value in options.items()}
"""All of them by their names."""


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
    """The other way round; each option is one that its setting has."""

    def value(key: str, given: Any) -> Any:
        if key not in BY_SETTING or (key == "annealing" and given is None):  # which it may be
            return given
        return option(key, given["option"])

    return {key: value(key, given) for key, given in named.items()}


def option_name(what: str, value: Any) -> str:
    """The name of a built-in option; only these can be written to a file."""
    for name, known in BY_SETTING[what].items():
        if value is known:
            return name
    raise ValueError(f"{what} is {value!r}; only sparker's own options can be saved")


def option(what: str, name: str) -> Any:
    """The option of a setting by its name."""
    if name not in BY_SETTING[what]:
        raise ValueError(f"there is no {what} {name!r}; it is one of {', '.join(BY_SETTING[what])}")
    return BY_SETTING[what][name]
