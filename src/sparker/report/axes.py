"""What the plane is in which all rows are drawn: its axes, in numbers and in words."""

from typing import NamedTuple

import numpy as np

from sparker.findings.result import Result
from sparker.report.words import number, power

SHARE = 0.3  # of a feature in a principal direction, to be named
TELLING = 0.5  # what the named features must make up of it together


class Plane(NamedTuple):
    """Both samples in two coordinates. Labels are ours; only ``notes`` may hold users' names."""

    data: np.ndarray  # (N_D, 2)
    reference: np.ndarray  # (N_R, 2)
    labels: tuple[str, str]
    heading: str
    notes: list[str]
    features: list[tuple[str, np.ndarray, np.ndarray]]
    """Name, data and reference values of the features, where there are no more than two."""


def feature_names(result: Result) -> list[str]:
    """The user's names of the columns, or numbers."""
    n = len(result.transform.centre)
    return list(result.names) or [f"feature {i}" for i in range(n)]


def plane(result: Result) -> Plane:
    """One or two features as they are; of more, the plane in which the reference varies most."""
    n_fitted, kept = len(result.directions), result.transform.kept
    names = feature_names(result)
    if n_fitted > 2 or n_fitted != len(kept):
        notes = ["of the reference, in the coordinates of the fit", *_directions(result, names)]
        labels = "first principal coordinate", "second principal coordinate"
        heading = "In the plane of largest variance"
        data, reference = result.data_plane, result.reference_plane
        if n_fitted == 1:
            data, reference = _against_f(result, data, reference)
            labels = labels[0], "f"
        return Plane(data, reference, labels, heading, notes, [])

    data, reference = (
        result.transform.inverse(rows.astype(np.float64) @ result.directions.T)[:, kept]
        for rows in (result.data_plane, result.reference_plane)
    )
    own = [names[column] for column in kept]
    features = [(name, data[:, i], reference[:, i]) for i, name in enumerate(own)]
    exponents = [exponent(np.concatenate(values)) for _, *values in features]
    data, reference = (rows / 10.0 ** np.array(exponents) for rows in (data, reference))
    across, *up = (over(f"feature {i}", n) for i, n in zip(kept, exponents, strict=True))
    heading = "In the features themselves"
    if not up:
        data, reference = _against_f(result, data, reference)
        own, up, heading = [*own, "f"], ["f"], "Along the feature"
    notes = [f"across: {own[0]}, up: {own[1]}"]
    return Plane(data, reference, (across, up[0]), heading, notes, features)


def exponent(values: np.ndarray) -> int:
    """The power of ten to take out of an axis: none, unless its numbers would be too long."""
    largest = float(np.abs(values).max(initial=0))
    return 0 if largest == 0 or 1e-3 <= largest < 1e5 else int(np.floor(np.log10(largest)))


def over(label: str, exponent: int) -> str:
    """The label of an axis whose numbers were divided by this power of ten."""
    return f"{label} / {power(exponent)}" if exponent else label


def _against_f(
    result: Result, data: np.ndarray, reference: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    assert result.data_log_ratio is not None
    assert result.reference_log_ratio is not None
    return (
        np.column_stack([data[:, 0], result.data_log_ratio]),
        np.column_stack([reference[:, 0], result.reference_log_ratio]),
    )


def _directions(result: Result, names: list[str]) -> list[str]:
    """What the principal coordinates mostly consist of, where a few features do."""
    found = []
    for axis, fitted in zip(("across", "up"), result.directions.T, strict=True):
        direction = result.transform.loadings(fitted)
        large = [i for i in np.argsort(-np.abs(direction)) if abs(direction[i]) >= SHARE]
        if np.sum(direction[large] ** 2) >= TELLING:
            terms = [f"{number(direction[i], 2)} {names[result.transform.kept[i]]}" for i in large]
            found.append(f"{axis}, mostly: {', '.join(terms)}")
    return found
