"""Samples with a known nuisance parameter: an exponential spectrum, jets, and a threshold.

The spectrum has one column, exponential, whose scale is uncertain by 10 %. The jets are those of
``jets_particlenet_169d.npz``: pt, eta, energy, mass and number of constituents, with an energy
scale (of pt, energy and mass) that is uncertain by 3 %. Energies above a threshold were cut on
before a scale of 3 % is applied, which moves the threshold.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sparker import Systematic

ROWS = {"spectrum": (2000, 600), "jets": (2500, 1500), "selected": (1400, 900),
        "threshold": (2500, 1500)}  # fmt: skip
"""Of the reference and of the data. Up and down are as large as the reference."""
CUTS = 550.0, 900.0
"""Between which pt lies of jets that are selected after their energies were scaled, as an analysis
does it: their edges stay where they are, and jets come in and go out there."""
N_REFERENCE, N_DATA = ROWS["spectrum"]
PER_SIGMA = {"spectrum": 0.1, "jets": 0.03, "selected": 0.03, "threshold": 0.03}
ENERGIES = [0, 2, 3]
"""The columns of a jet that its energy scale changes: pt, energy, mass."""

BUMP = 2.5, 0.1
"""Where the planted rows of the spectrum are, and how wide they are spread."""

Rows = np.ndarray


class Sample(NamedTuple):
    """A reference and data at some value of the nuisance parameter."""

    reference: Rows
    data: Rows
    up: Rows  # other rows, as the reference would be at +1
    down: Rows  # and at -1


def scaled(rows: Rows, nu: float) -> Rows:
    """The spectrum with its scale at this value."""
    return rows * (1 + PER_SIGMA["spectrum"] * nu)


def rescaled(rows: Rows, nu: float) -> Rows:
    """Jets with their energy scale at this value."""
    found = np.array(rows)
    found[:, ENERGIES] *= 1 + PER_SIGMA["jets"] * nu
    return found


def spectrum(rng: np.random.Generator, nu: float, n_planted: int, other: bool) -> Sample:
    """The exponential; ``other`` is a shift that nobody declared."""
    reference = rng.exponential(size=(N_REFERENCE, 1))
    data = scaled(rng.exponential(size=(N_DATA - n_planted, 1)), nu)
    planted = rng.normal(*BUMP, size=(n_planted, 1))
    both = np.concatenate([data, planted]) + 0.08 * other
    ends = (scaled(rng.exponential(size=(N_REFERENCE, 1)), end) for end in (1, -1))
    return Sample(reference, rng.permutation(both), *ends)


@cache
def _jets(folder: Path) -> tuple[Rows, Rows]:
    with np.load(folder / "jets_particlenet_169d.npz") as file:
        return file["reference_obs"].astype(float), file["anomaly_obs"].astype(float)


def jets(folder: Path, rng: np.random.Generator, nu: float, n_planted: int, other: bool) -> Sample:
    """Jets of quarks, tops and W bosons, Higgs bosons planted; ``other``: more constituents."""
    ordinary, anomalous = _jets(folder)
    n_reference, n_data = ROWS["jets"]
    turn = rng.permutation(len(ordinary))
    three = np.split(ordinary[turn[: 3 * n_reference]], 3)
    data = rescaled(ordinary[turn[3 * n_reference :][: n_data - n_planted]], nu)
    planted = anomalous[rng.choice(len(anomalous), n_planted, replace=False)]
    both = np.concatenate([data, planted])
    if other:
        both[:, 4] = np.round(1.1 * both[:, 4])
    return Sample(three[0], rng.permutation(both), rescaled(three[1], 1), rescaled(three[2], -1))


def selected(
    folder: Path, rng: np.random.Generator, nu: float, n_planted: int, other: bool
) -> Sample:
    """Jets within cuts on pt; those of up and down are other ones than those of the reference."""
    ordinary, anomalous = _jets(folder)
    n_reference, n_data = ROWS["selected"]
    low, high = CUTS
    quarters = np.array_split(ordinary[rng.permutation(len(ordinary))], [2400, 4800, 7200])

    def within(rows: Rows, nu: float, n: int) -> Rows:
        there = rescaled(rows, nu)
        chosen = there[(there[:, 0] > low) & (there[:, 0] < high)][:n]
        assert len(chosen) == n
        return chosen

    reference, up, down = (
        within(rows, at, n_reference) for rows, at in zip(quarters, (0, 1, -1), strict=False)
    )
    data = within(quarters[3], nu, n_data - n_planted)
    planted = within(anomalous[rng.permutation(len(anomalous))], 0, n_planted)
    both = np.concatenate([data, planted])
    if other:
        both[:, 4] = np.round(1.1 * both[:, 4])
    return Sample(reference, rng.permutation(both), up, down)


def threshold(rng: np.random.Generator, nu: float, n_planted: int, other: bool) -> Sample:
    """Energies from 500 on, whose scale moves this edge, a column beside, and a count.

    Planted rows have other counts; ``other``: a second column that is wider.
    """
    n_reference, n_data = ROWS["threshold"]

    def rows(n: int, nu: float) -> Rows:
        energy = (1 + PER_SIGMA["threshold"] * nu) * (500 + rng.exponential(100, n))
        return np.column_stack([energy, rng.normal(size=n), rng.poisson(20, n)])

    reference, data = rows(n_reference, 0), rows(n_data, nu)
    data[:n_planted] = np.column_stack(
        [
            rng.normal(700, 10, n_planted),
            rng.normal(1, 0.2, n_planted),
            rng.poisson(30, n_planted),
        ]
    )
    if other:
        data[:, 1] *= 1.15
    return Sample(reference, rng.permutation(data), rows(n_reference, 1), rows(n_reference, -1))


def above(rows: Rows, nu: float) -> Rows:
    """Energies above a threshold, which moves with the scale."""
    return rows * [1 + PER_SIGMA["threshold"] * nu, 1, 1]


def declared(problem: str, form: str, sample: Sample) -> list[Systematic]:
    """The systematic of a problem as a function, as shifted samples, or as weights."""
    functions: dict[str, Callable[[Rows, float], Rows]] = {
        "spectrum": scaled, "jets": rescaled, "threshold": above,
    }  # fmt: skip
    if form == "function":
        return [Systematic("scale", function=functions[problem])]
    if form == "samples":
        return [Systematic("scale", up=sample.up, down=sample.down)]
    if form == "the same rows":  # nobody says so
        own, move = sample.reference, functions[problem]
        return [Systematic("scale", up=move(own, 1), down=move(own, -1))]
    assert form == "weights"
    assert problem == "spectrum"
    x = sample.reference[:, 0]
    up, down = (np.exp(x - x / scale) / scale for scale in (1.1, 0.9))
    return [Systematic("scale", up=up, down=down)]
