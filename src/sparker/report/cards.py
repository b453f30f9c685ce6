"""What each kernel found, for its card in the report."""

from typing import NamedTuple

import numpy as np

from sparker.report.rows import Extras
from sparker.result import TestResult

CARDS = 24  # kernels with a card
WITH_ROWS = 10  # of them with examples
EXAMPLES = 12  # rows a card shows
FEATURES = 8  # features whose values a card shows
IDLE = 0.1  # a kernel that changes no row's density by more than about this share says nothing


class Card(NamedTuple):
    """One kernel: where it sits, what it claims and what its rows have in common."""

    kernel: int
    amplitude: float
    peak: float  # the largest |f_i| of any row
    claimed: int  # data rows
    expected: float  # data rows that the reference rows in the same place stand for
    location: list[tuple[str, float]]  # feature, value
    farthest: bool  # whether location is a choice of the features farthest from the centre
    rows: list[int]
    observables: list[tuple[str, float, float, float]]  # name, mean here, mean of all, in spreads

    @property
    def over(self) -> bool:
        """Whether there are too many data, not too few."""
        return self.amplitude > 0

    @property
    def idle(self) -> bool:
        """Whether it says next to nothing about any row."""
        return self.peak < IDLE


def claimed_rows(result: TestResult, kernel: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Which data and reference rows a kernel claims, and the largest |f_i| of any.

    A row is claimed where |f_i| is more than half of that. Not half of the amplitude: with many
    features no row may come that near to a kernel's centre. Rows that weigh nothing are no rows.
    """
    data, reference = (
        np.abs(components[:, kernel])
        for components in (result.data_components, result.reference_components)
        if components is not None
    )
    peak = float(max(data.max(), reference[result.reference_counts > 0].max()))
    return data > peak / 2, reference > peak / 2, peak


def cards(result: TestResult, extras: Extras, order: list[int]) -> list[Card]:
    """The cards of the strongest kernels."""
    return [
        _card(result, extras, kernel, place < WITH_ROWS)
        for place, kernel in enumerate(order[:CARDS])
    ]


def _card(result: TestResult, extras: Extras, kernel: int, examples: bool) -> Card:
    assert result.data_components is not None
    in_data, in_reference, peak = claimed_rows(result, kernel)
    strength = np.abs(result.data_components[:, kernel])
    location, farthest = _location(result, kernel)
    strongest = np.argsort(-strength, kind="stable")[: EXAMPLES if examples else 0]
    return Card(
        kernel=kernel,
        amplitude=float(result.model.a[kernel]),
        peak=peak,
        claimed=int(in_data.sum()),
        expected=float(result.reference_counts[in_reference].sum()),
        location=location,
        farthest=farthest,
        rows=[int(row) for row in strongest if strength[row] > 0],
        observables=_observables(extras, strength),
    )


def _location(result: TestResult, kernel: int) -> tuple[list[tuple[str, float]], bool]:
    """Where a kernel sits, in the user's units: all features if few, the most telling if named."""
    values = result.locations[kernel]
    names = result.columns or tuple(f"feature {i}" for i in range(len(values)))
    if len(values) <= FEATURES:
        return list(zip(names, values.tolist(), strict=True)), False
    transform = result.transform
    if not result.columns or result.settings.get("preprocess") != "standardise":
        return [], False
    # Standardised, so in units of each feature's spread.
    far = np.zeros(len(values))
    far[transform.kept] = np.abs(np.asarray(result.model.mu)[kernel])
    chosen = np.argsort(-far, kind="stable")[:FEATURES]
    return [(names[i], float(values[i])) for i in chosen], True


def _observables(extras: Extras, weight: np.ndarray) -> list[tuple[str, float, float, float]]:
    found = []
    for name, values in extras.observables.items():
        known = np.isfinite(values)
        if not known.any() or weight[known].sum() == 0:
            continue
        here = float(np.average(values[known], weights=weight[known]))
        mean, spread = float(values[known].mean()), float(values[known].std())
        found.append((name, here, mean, (here - mean) / spread if spread > 0 else 0.0))
    return sorted(found, key=lambda row: -abs(row[3]))[:FEATURES]
