"""The coordinates in which rows can be drawn: columns, principal coordinates, kernels.

Labels are ours and may enter the plots; names may be the user's and stand in the page.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparker.findings.result import Result
from sparker.report.kernels import strongest
from sparker.report.numbers import number, power

COLUMNS = 12  # of the data that can be chosen
COMPONENTS = 8  # kernels that can be chosen
SHARE = 0.3  # of a column in a principal direction, to be named
TELLING = 0.5  # what the named columns must make up of it together
PRINCIPAL = "first principal coordinate", "second principal coordinate"


class Axis(NamedTuple):
    """One coordinate of all rows."""

    key: str
    name: str
    label: str
    data: np.ndarray  # (N_D,)
    reference: np.ndarray  # (n,) of the rows in ``Result.reference``
    kernels: np.ndarray | None = None  # (M,) where kernels sit, if they do anywhere
    column: int | None = None
    unit: float = 1.0
    """What the column's values were divided by."""
    is_flag: bool = False


def axes(result: Result, telling: Sequence[int]) -> list[Axis]:
    """All that can be chosen; ``telling`` are columns, the most telling first."""
    kept = result.reference_rows
    found = [_column(result, int(i)) for i in telling[:COLUMNS]]
    if len(result.directions) > 2:
        sits = None
        if result.models is not None:
            sits = np.asarray(result.model.mu) @ result.directions
        found += [
            Axis(
                f"p{i}",
                name,
                name,
                result.data_plane[:, i],
                result.reference_plane[kept, i],
                None if sits is None else sits[:, i],
            )
            for i, name in enumerate(PRINCIPAL)
        ]
    data, reference = result.data_components, result.reference_components
    if data is not None and reference is not None:
        found.append(Axis("f", "f of all kernels", "f", data.sum(1), reference[kept].sum(1)))
        found += [
            Axis(f"k{i}", f"f of kernel {i}", f"f of kernel {i}", data[:, i], reference[kept, i])
            for i in strongest(result)[:COMPONENTS]
        ]
    return found


def first(found: Sequence[Axis], rule: Sequence[int]) -> list[tuple[Axis, Axis]]:
    """The planes to begin with: one in the columns, one as the kernels see the rows."""
    by_key = {axis.key: axis for axis in found}
    columns = [axis for axis in found if axis.column is not None]
    # Those of the rule, and else as they were; but yes and no make no plane.
    columns.sort(key=lambda axis: (axis.is_flag, axis.column not in rule))
    kernels = [axis for axis in found if axis.key.startswith("k")]
    pairs = []
    if len(columns) > 1:
        pairs.append((columns[0], columns[1]))
    elif columns and "f" in by_key:
        pairs.append((columns[0], by_key["f"]))
    if len(kernels) > 1:
        pairs.append((kernels[0], kernels[1]))
    elif kernels and columns:
        pairs.append((columns[0], kernels[0]))
    elif "p0" in by_key:
        pairs.append((by_key["p0"], by_key["p1"]))
    return pairs


def _column(result: Result, i: int) -> Axis:
    data, reference = result.data[:, i].astype(float), result.reference[:, i].astype(float)
    shift = exponent(np.concatenate([data, reference]))
    unit = 10.0**shift
    return Axis(
        f"c{i}",
        result.column_labels[i],
        # A user's string may look like a formula, for which charts load a font: none gets there.
        over("the column chosen above" if result.names else f"column {i}", shift),
        data / unit,
        reference / unit,
        None if result.models is None else result.locations[:, i] / unit,
        i,
        unit,
        result.encoding.features[i].is_flag,
    )


def exponent(values: np.ndarray) -> int:
    """The power of ten to take out of an axis: none, unless its numbers would be too long."""
    largest = float(np.abs(values).max(initial=0))
    return 0 if largest == 0 or 1e-3 <= largest < 1e5 else int(np.floor(np.log10(largest)))


def over(label: str, exponent: int) -> str:
    """The label of an axis whose numbers were divided by this power of ten."""
    return f"{label} / {power(exponent)}" if exponent else label


def directions(result: Result) -> list[str]:
    """What the principal coordinates mostly consist of, where a few columns do."""
    labels, kept = result.column_labels, result.transform.kept
    found = []
    for name, fitted in zip(PRINCIPAL, result.directions.T, strict=True):
        direction = result.transform.loadings(fitted)
        large = [i for i in np.argsort(-np.abs(direction)) if abs(direction[i]) >= SHARE]
        if large and np.sum(direction[large] ** 2) >= TELLING:
            terms = [f"{number(direction[i], 2)} {labels[kept[i]]}" for i in large]
            found.append(f"The {name} is mostly {', '.join(terms)}.")
    return found
