"""What the file of a monitor holds: plain settings, the reference, and the toys of each size."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparker.calibration.settings import from_names, option, option_name, to_names
from sparker.calibration.sizes import Calibration
from sparker.engine.config import FitConfig
from sparker.engine.measured import Measured
from sparker.engine.sample import as_points, as_weights
from sparker.engine.widths import WidthConfig
from sparker.statistics.kernels import KernelStatistic
from sparker.tables.encoding import Encoding

DAMAGE = ArithmeticError, AttributeError, LookupError, TypeError, ValueError
"""What ``unpack`` may raise of a file that was made by others."""


def pack(fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a monitor with these fields."""
    statistic, calibrations = fields["statistic"], fields["calibrations"]
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
    arrays = {"reference": fields["reference"]}
    if fields["weights"] is not None:
        arrays["weights"] = fields["weights"]
    for size, (null, _) in calibrations.items():
        arrays |= {_name(part, size): np.asarray(array) for part, array in null._asdict().items()}
    return header, arrays


def unpack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a monitor; one of ``DAMAGE`` where they cannot be those of any."""
    reference = as_points("reference", arrays["reference"])
    calibrations = _calibrations(header["settings"], arrays, len(reference))
    null, _ = next(iter(calibrations.values()))
    expected, weights, chunk = header["expected"], arrays.get("weights"), header["chunk"]
    encoding = Encoding.from_dict(header["encoding"])
    if len(encoding.features) != reference.shape[1]:
        raise ValueError("its encoding is of other columns")
    if expected is not None and len(calibrations) > 1:
        raise ValueError("it expects one size, and has several")
    return {
        "reference": reference,
        "weights": None if weights is None else as_weights("weights", weights, len(weights)),
        "expected": None if expected is None else float(expected),
        "calibrations": calibrations,
        "n_toys": len(null.statistics),
        "seed": int(header["seed"]),
        "encoding": encoding,
        "missing": str(header["missing"]),
        "statistic": KernelStatistic(
            config=FitConfig(**from_names(header["config"])),
            widths=WidthConfig(**from_names(header["widths"])),
        ),
        "preprocess": option(header["preprocess"]),
        "combine": option(header["combine"]),
        "chunk": None if chunk is None else int(chunk),
        "notes": tuple(str(note) for note in header["notes"]),
    }


def _calibrations(
    settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], n_reference: int
) -> dict[int, Calibration]:
    """Those of all sizes: settings by size, as JSON has them, and the tables of the toys."""
    found = {}
    for size, own in settings.items():
        null = Measured(*(arrays[_name(part, int(size))] for part in Measured._fields))
        found[int(size)] = Calibration(null, dict(own))
    if not found or not 1 <= min(found) <= max(found) < n_reference:
        raise ValueError(f"it has toys of {sorted(found)} of {n_reference} reference rows")
    nulls = [Measured(*map(np.asarray, null)) for null, _ in found.values()]
    tables = [table for null in nulls for table in null]
    shape = nulls[0].statistics.shape
    counts = [null.score_counts.shape for null in nulls]
    if (
        any(null.statistics.shape != shape for null in nulls)
        or len(shape) != 2
        or 0 in shape
        or any(len(each) != 3 or each[:2] != shape for each in counts)
    ):
        raise ValueError("its tables do not have the same shape")
    if any(table.dtype.kind not in "fiu" for table in tables):
        raise ValueError("its tables do not hold numbers")
    return found


def _name(part: str, size: int) -> str:
    return f"{part}_of_{size}"
