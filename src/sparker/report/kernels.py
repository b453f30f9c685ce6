"""The table of kernels."""

from typing import NamedTuple

import numpy as np

from sparker.findings.result import Result

KERNELS = 24  # in the table
COLUMNS = 6  # whose values the table shows; of more columns, those farthest from average
IDLE = 0.1  # a kernel that changes no row's density by more than about this share is negligible


class Kernel(NamedTuple):
    """One kernel: its effect, and its location in the user's units."""

    number: int
    effect: str
    amplitude: float
    location: list[tuple[str, float]]


def peaks(result: Result) -> np.ndarray:  # (M,)
    """The largest |f_i| of any row; reference rows that weigh nothing are no rows."""
    assert result.data_components is not None
    assert result.reference_components is not None
    counts = result.reference_counts > 0
    data, reference = np.abs(result.data_components), np.abs(result.reference_components)
    return np.asarray(np.maximum(data.max(0), reference[counts].max(0)))


def strongest(result: Result) -> list[int]:
    """All kernels, those with the largest effect on a row first."""
    return [int(i) for i in np.argsort(-peaks(result), kind="stable")]


def table(result: Result) -> list[Kernel]:
    """The strongest kernels first."""
    found, labels = peaks(result), result.column_labels
    kept = result.transform.kept
    kernels = []
    for i in strongest(result)[:KERNELS]:
        a, place = float(result.model.a[i]), result.locations[i]
        far = np.zeros(len(place))
        far[kept] = np.abs((place - result.transform.centre)[kept]) / result.transform.units
        chosen = np.sort(np.argsort(-far, kind="stable")[:COLUMNS])
        effect = "negligible" if found[i] < IDLE else "excess" if a > 0 else "deficit"
        kernels.append(Kernel(i, effect, a, [(labels[j], float(place[j])) for j in chosen]))
    return kernels
