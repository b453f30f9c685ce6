"""What the file of a monitor holds: plain settings, the reference, and the toys of each size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparker.calibration.settings import from_names, option, option_name, plain, to_names
from sparker.calibration.sizes import Calibration
from sparker.calibration.store import MAX_CHUNK
from sparker.embed import restored
from sparker.engine.config import FitConfig
from sparker.engine.sample import as_points, as_weights
from sparker.engine.widths import MAX_STEPS, WidthConfig
from sparker.nulls import toy_rng
from sparker.nulls.unweighted import keep_by_weight
from sparker.statistics.kernels import KernelStatistic
from sparker.system.digest import digest
from sparker.tables.encoding import Encoding
from sparker.tables.rows import MISSING_VALUES

MAX_CANDIDATES = 2**20
"""Points that a scan looks at; 512 are usual."""


def pack(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a monitor with these fields."""
    statistic, calibrations = fields["statistic"], fields["calibrations"]
    _check_limits(statistic, fields["chunk"], fields["seed"])
    header = {
        "expected": fields["expected"],
        "seed": fields["seed"],
        "encoding": fields["encoding"].to_dict(),
        "missing": fields["missing"],
        "config": to_names(statistic.config),
        "widths": to_names(statistic.widths),
        "preprocess": option_name("preprocess", fields["preprocess"]),
        "combine": option_name("combine", fields["combine"]),
        "chunk": fields["chunk"],
        "settings": {size: calibrations[size].settings for size in sorted(calibrations)},
        "notes": fields["notes"],
    }
    arrays = {"reference": fields["reference"], **fields["encoding"].arrays}
    if fields["weights"] is not None:
        arrays["weights"] = fields["weights"]
    for size, (null, _) in calibrations.items():
        arrays[_name(size)] = null
    return header, arrays


def unpack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a monitor; one of ``archive.DAMAGE`` where they cannot be those of any."""
    reference = as_points("reference", arrays["reference"])
    weights, notes = arrays.get("weights"), header["notes"]
    if weights is not None:
        weights = as_weights("weights", weights, len(weights))
    if not isinstance(notes, list):
        raise ValueError("its notes are no list")
    encoding = Encoding.from_dict(header["encoding"], restored, arrays)
    if len(encoding.features) != reference.shape[1]:
        raise ValueError("its encoding is of other columns")
    if header["missing"] not in MISSING_VALUES:
        raise ValueError(f"missing is {header['missing']!r}")
    statistic = KernelStatistic(
        config=FitConfig(**from_names(header["config"])),
        widths=WidthConfig(**from_names(header["widths"])),
    )
    _check_limits(statistic, header["chunk"], header["seed"])
    calibrations = _calibrations(header["settings"], arrays, len(reference))
    found = {
        "reference": reference,
        "weights": weights,
        "expected": header["expected"],
        "calibrations": calibrations,
        "n_toys": len(next(iter(calibrations.values())).null),
        "seed": header["seed"],
        "encoding": encoding,
        "missing": header["missing"],
        "statistic": statistic,
        "preprocess": option("preprocess", header["preprocess"]),
        "combine": option("combine", header["combine"]),
        "chunk": header["chunk"],
        "notes": tuple(str(note) for note in notes),
    }
    _check_toys(found)
    return found


def _check_limits(statistic: KernelStatistic, chunk: Any, seed: Any) -> None:
    """Nothing that a test of a batch takes time or memory for is beyond all measure."""
    for name, value, least, most in (
        ("steps", statistic.widths.steps, 1, MAX_STEPS),
        ("n_candidates", statistic.config.n_candidates, 1, MAX_CANDIDATES),
        ("chunk", 1 if chunk is None else chunk, 1, MAX_CHUNK),
        ("seed", seed, 0, 2**32 - 1),
    ):
        if not isinstance(value, int | np.integer) or not least <= value <= most:
            raise ValueError(f"{name} is {value!r:.40}, no whole number from {least} to {most}")


def _check_toys(found: Mapping[str, Any]) -> None:
    """That the toys of each size were made of this reference, with these settings."""
    reference, weights, expected = found["reference"], found["weights"], found["expected"]
    statistic: KernelStatistic = found["statistic"]
    sizes = list(found["calibrations"])
    if expected is not None and expected != sizes[0]:
        raise ValueError(f"it expects batches of {expected!r:.40}, and has toys of {sizes[0]}")
    if expected is not None and len(sizes) > 1:
        raise ValueError("it expects one size, and has several")
    if min(sizes) < statistic.min_rows:
        raise ValueError(f"it has toys of {min(sizes)} rows for {statistic.min_rows} kernels")
    if weights is not None:
        kept = keep_by_weight(toy_rng(found["seed"], 0), weights, min(sizes))
        if np.sum(kept) != len(reference):
            raise ValueError("its weights are of another reference")
    described = {
        "seed": found["seed"],
        "expected": expected,
        "preprocess": plain(found["preprocess"]),
        "reference": digest(reference),
        "reference_rows": len(reference),
        "n_toys": found["n_toys"],
    }
    fitted = {"kernels": plain(statistic.config), "steps": statistic.widths.steps}
    for size, (null, settings) in found["calibrations"].items():
        different = [
            name
            for name, value in {**described, "batch_size": size}.items()
            if settings[name] != value
        ]
        different += [
            name for name, value in fitted.items() if settings["statistic"][name] != value
        ]
        if null.shape[1] != statistic.widths.n_widths:
            different.append("n_widths")
        if different:
            raise ValueError(
                f"its toys for batches of {size} were made with other {' and '.join(different)}"
            )


def _calibrations(
    settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], n_reference: int
) -> dict[int, Calibration]:
    """Those of all sizes: settings by size, as JSON has them, and the tables of the toys."""
    found = {}
    for size, own in settings.items():
        found[int(size)] = Calibration(arrays[_name(int(size))], dict(own))
    if not found or not 1 <= min(found) <= max(found) < n_reference:
        raise ValueError(f"it has toys of {sorted(found)} of {n_reference} reference rows")
    shapes = {null.shape for null, _ in found.values()}
    if len(shapes) > 1 or any(len(shape) != 2 or 0 in shape for shape in shapes):
        raise ValueError("its tables do not have the same shape")
    if any(null.dtype.kind != "f" for null, _ in found.values()):
        raise ValueError("its tables do not hold numbers")
    return found


def _name(size: int) -> str:
    return f"statistics_of_{size}"
