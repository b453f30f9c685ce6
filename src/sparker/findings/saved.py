"""A result in a file: what is written part by part, and checked when it is read."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sparker.engine.ensemble import Ensemble
from sparker.engine.measured import Measured
from sparker.engine.preprocess import Transform
from sparker.engine.sample import as_weights

KIND = "test result"


TUPLES = Ensemble | Measured | Transform
"""What is written to a file part by part."""


PARTS: dict[str, Any] = {
    "transform": Transform,
    "models": Ensemble,
    "observed": Measured,
    "null": Measured,
}


def restore(
    names: Iterable[str], header: Mapping[str, Any], contents: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """The fields of a result by these names, checked as far as others rely on them."""
    values: dict[str, Any] = {}
    for name in names:
        if name in contents:
            values[name] = contents[name]
        elif name in PARTS and f"{name}.{PARTS[name]._fields[0]}" in contents:
            kind = PARTS[name]
            values[name] = kind(*(contents[f"{name}.{part}"] for part in kind._fields))
        else:
            values[name] = header[name]
    low, high = values["interval"]
    values["interval"] = float(low), float(high)
    for name in ("columns", "notes", "families"):
        values[name] = tuple(str(item) for item in values[name])
    n_widths, n_families = len(values["widths"]), len(values["families"])
    observed, null = values["observed"], values["null"]
    _check_shape("p_by_statistic", values["p_by_statistic"], (n_widths, n_families))
    for name, shape in (
        ("statistics", (n_widths, n_families)),
        ("excess", (n_widths,)),
        ("deficit", (n_widths,)),
        ("score_counts", (n_widths, np.shape(observed.score_counts)[-1])),
    ):
        _check_shape(name, getattr(observed, name), shape)
        _check_shape(f"null {name}", getattr(null, name), (len(null.statistics), *shape))
    for name, end in (("best", n_widths), ("best_family", n_families)):
        if not 0 <= values[name] < end:
            raise ValueError(f"{name} is {values[name]}")
    n_fitted = values["transform"].matrix.shape[-1]
    if values["directions"].shape != (n_fitted, 2):
        raise ValueError(f"directions has shape {values['directions'].shape}, not ({n_fitted}, 2)")
    weights = values["reference_weights"]
    if weights is not None:
        n_reference = len(values["reference_plane"])
        values["reference_weights"] = as_weights("reference_weights", weights, n_reference)
    return values


def _check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, not {shape}")


def same(one: Any, other: Any) -> bool:
    """Whether two fields are equal to the bit."""
    if isinstance(one, TUPLES):
        return isinstance(other, type(one)) and all(
            same(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and bool(
            one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)
        )
    return bool(one == other)
