"""What each kernel found, for its card in the report."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sparker.findings.result import Result
from sparker.report.axes import feature_names
from sparker.report.rows import Extras

CARDS = 24  # kernels with a card
WITH_ROWS = 10  # of them with examples
EXAMPLES = 12  # rows a card shows
FEATURES = 8  # features and observables whose values a card shows
MIN_OBSERVABLES = 3  # that a card shows, though they say nothing
STANDARD_ERRORS = 2  # by which an observable is off, to say something
IDLE = 0.1  # a kernel that changes no row's density by more than about this share says nothing
BROAD = 0.9  # of both samples: who claims them, claims no place
TELLS = ("many", "few", "broad")
BALANCED = 0.25  # of a kernel's own f at its rows: if all kernels leave less, others undo it
SCALED = ("decorrelate", "standardise", "whiten")  # units are the features' spreads


class Claim(NamedTuple):
    """Which rows a kernel claims, and the largest |f_i| of any row."""

    data: np.ndarray  # (N_D,) of bool
    reference: np.ndarray  # (N_R,)
    peak: float


class Card(NamedTuple):
    """One kernel: where it sits, what it claims and what its rows have in common."""

    kernel: int
    says: str
    """``"many"`` or ``"few"`` data; or why neither: ``"idle"``, ``"broad"``, ``"same"`` as another,
    ``"balanced"`` by another."""
    other: int | None
    amplitude: float
    peak: float  # the largest |f_i| of any row
    span: tuple[float, float]  # of f_i at the data
    claimed: int  # data rows
    expected: float  # data rows that the reference rows in the same place stand for
    location: list[tuple[str, float]]  # feature, value
    farthest: bool  # whether location is a choice of the features farthest from the centre
    rows: list[int]
    observables: list[tuple[str, float, float, float]]  # name, mean here, mean of all, in spreads

    @property
    def tells(self) -> bool:
        """Whether it has something of its own to say."""
        return self.says in TELLS


def claims(result: Result) -> dict[int, Claim]:
    """What every kernel claims, the strongest first.

    A row is claimed where |f_i| is more than half of the largest of any row. Not half of the
    amplitude: with many features no row may come that near to a kernel's centre. A kernel at a
    place that the data left has its largest at reference rows; those that weigh nothing are no
    rows.
    """
    assert result.data_components is not None
    assert result.reference_components is not None
    counts = result.reference_counts > 0
    data, reference = np.abs(result.data_components), np.abs(result.reference_components)
    peaks = np.maximum(data.max(0), reference[counts].max(0))
    return {
        int(i): Claim(data[:, i] > peaks[i] / 2, reference[:, i] > peaks[i] / 2, float(peaks[i]))
        for i in np.argsort(-peaks, kind="stable")
    }


def cards(result: Result, extras: Extras, claimed: Mapping[int, Claim]) -> list[Card]:
    """The cards of the strongest kernels."""
    found: list[Card] = []
    for kernel in list(claimed)[:CARDS]:
        earlier = [card.kernel for card in found if card.says in ("many", "few")]
        says, other = _says(result, claimed, kernel, earlier)
        found.append(_card(result, extras, claimed, kernel, says, other, len(found) < WITH_ROWS))
    return found


def axes(found: list[Card], order: list[int]) -> list[int]:
    """The kernels to draw first: the strongest, and the next with something else to say."""
    strongest, *others = order
    says = {card.kernel: card.says for card in found}
    others.sort(key=lambda kernel: says.get(kernel) in ("same", "idle"))  # and else as they were
    return [strongest, *others[:1]]


def _says(
    result: Result, claimed: Mapping[int, Claim], kernel: int, earlier: list[int]
) -> tuple[str, int | None]:
    """What a kernel says, and which other one it has to do with; ``earlier`` ones said theirs."""
    data, reference, peak = claimed[kernel]
    sign = np.sign(result.model.a)
    if peak < IDLE:
        return "idle", None
    for other in earlier:
        same = np.array_equal(data, claimed[other].data) and np.array_equal(
            reference, claimed[other].reference
        )
        if same and sign[kernel] == sign[other]:
            return "same", other
    counts = result.reference_counts
    if data.mean() >= BROAD and counts[reference].sum() >= BROAD * counts.sum():
        return "broad", None
    assert result.data_components is not None
    assert result.reference_components is not None
    # What all kernels say of the rows that this one claims.
    at_rows = sign[kernel] * (
        result.data_components[data].sum(0)
        + counts[reference] @ result.reference_components[reference]
    )
    if at_rows.sum() < BALANCED * at_rows[kernel]:
        return "balanced", int(np.argmin(at_rows))
    return "many" if sign[kernel] > 0 else "few", None


def _card(
    result: Result,
    extras: Extras,
    claimed: Mapping[int, Claim],
    kernel: int,
    says: str,
    other: int | None,
    examples: bool,
) -> Card:
    assert result.data_components is not None
    in_data, in_reference, peak = claimed[kernel]
    own = result.data_components[:, kernel]
    strength = np.abs(own)
    tells = says in TELLS
    location, farthest = _location(result, kernel) if tells else ([], False)
    strongest = np.argsort(-strength, kind="stable")
    rows = strongest[in_data[strongest]][:EXAMPLES] if tells and examples else []
    return Card(
        kernel=kernel,
        says=says,
        other=other,
        amplitude=float(result.model.a[kernel]),
        peak=peak,
        span=(float(own.min()), float(own.max())),
        claimed=int(in_data.sum()),
        expected=float(result.reference_counts[in_reference].sum()),
        location=location,
        farthest=farthest,
        rows=[int(row) for row in rows],
        observables=_telling(observed(extras, strength), strength) if tells else [],
    )


def _location(result: Result, kernel: int) -> tuple[list[tuple[str, float]], bool]:
    """Where a kernel sits, in the user's units: all features if few, the most telling if named."""
    values = result.locations[kernel]
    names = feature_names(result)
    if len(values) <= FEATURES:
        return list(zip(names, values.tolist(), strict=True)), False
    transform = result.transform
    if not result.names or result.preprocess not in SCALED:
        return [], False
    # In units of each feature's spread, or nearly.
    far = np.zeros(len(values))
    far[transform.kept] = np.abs((values - transform.centre)[transform.kept]) / transform.units
    chosen = np.argsort(-far, kind="stable")[:FEATURES]
    return [(names[i], float(values[i])) for i in chosen], True


def observed(extras: Extras, weight: np.ndarray) -> list[tuple[str, float, float, float]]:
    """The means of the observables where a kernel acts and anywhere, by how far they are apart."""
    found = []
    for name, values in extras.observables.items():
        known = np.isfinite(values)
        if not known.any() or weight[known].sum() == 0:
            continue
        here = float(np.average(values[known], weights=weight[known]))
        mean, spread = float(values[known].mean()), float(values[known].std())
        found.append((name, here, mean, (here - mean) / spread if spread > 0 else 0.0))
    return sorted(found, key=lambda row: -abs(row[3]))


def _telling(
    found: list[tuple[str, float, float, float]], weight: np.ndarray
) -> list[tuple[str, float, float, float]]:
    """Those that are off by more than a few rows of any kind would be; a few in any case."""
    off = STANDARD_ERRORS * np.sqrt(weight @ weight) / (weight.sum() or 1)
    n = max(MIN_OBSERVABLES, sum(abs(shift) > off for *_, shift in found))
    return found[: min(n, FEATURES)]
