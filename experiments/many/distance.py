"""How far generators are from the data, where that is known, and which is closer.

    python -m experiments.many.distance [--processes 2] [--seconds 2400] [--only PATTERN]

Data are normal in two columns. Generators a and b are the same, normal rows shifted by ``delta`` in
the first column, so that the true distance, twice the Kullback-Leibler divergence, is delta^2; c is
shifted by another amount. Each is as large as the data. Adds to ``distance.json``: a run that is
interrupted goes on where it was. ``python -m experiments.many.tables`` writes the tables of
README.md.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from experiments import units

import sparker

RESULT = Path(__file__).parent / "distance.json"
N_SAMPLES = 5_000


class Case(NamedTuple):
    """How many rows there are, and how far the generators are off."""

    n_rows: int
    delta: float  # of a and b
    further: float  # of c


CASES = {
    f"{n} rows, {name}": Case(n, delta, further)
    for n in (500, 2000)
    for name, delta, further in (
        ("perfect", 0.0, 0.0),
        ("shifted by 0.3", 0.3, 0.3),
        ("shifted by 0.6", 0.6, 0.8),
    )
}


def measured(name: str, number: int) -> dict[str, list[float]]:
    """Distance, its interval and its p-value beside the closest, of a, b and c."""
    n_rows, delta, further = CASES[name]
    rng = np.random.default_rng([number, *name.encode()])
    data = rng.normal(size=(n_rows, 2))
    generated = {
        one: rng.normal((shift, 0.0), 1.0, size=(n_rows, 2))
        for one, shift in (("a", delta), ("b", delta), ("c", further))
    }
    found = sparker.closest(data, generated, seed=number, progress=False)
    return {
        one.name: [round(x, 6) for x in (one.distance, *one.interval, one.p_value)]
        for one in found.candidates
    }


def samples() -> Iterator[units.Unit]:
    """One of each case after the other."""
    for number in range(N_SAMPLES):
        for name in CASES:
            yield name, number


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing."""
    options = units.options(__doc__, RESULT).parse_args(arguments)
    settings = {"splits": 10}
    units.run(options, "python -m experiments.many.distance", settings, samples(), measured)


if __name__ == "__main__":
    main()
