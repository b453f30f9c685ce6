"""Many samples against one reference: levels, false discoveries and power.

    python -m experiments.many.run [--processes 2] [--seconds 2400] [--only PATTERN]

A table is one reference and ten samples, of which none, one or three are anomalous. It is tested by
``sparker.test_many`` with all toys. The default statistic is the first half; the other half is the
difference of means, with a reference no larger than a sample: what is peculiar to the reference
then shows in all samples alike, and p-values depend on each other as much as they can. Adds to
``result.json``: an interrupted run goes on where it was. ``python -m experiments.many.tables``
writes the tables of README.md and docs/many.md.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments import units

import sparker

RESULT = Path(__file__).parent / "result.json"
N_SAMPLES, N_COMPARED = 10, 99
ANOMALOUS = (0, 1, 3)
N_TABLES = 5_000
SETTINGS = {"samples": N_SAMPLES, "toys compared": N_COMPARED}


class Case(NamedTuple):
    """What is tested, and how."""

    n_reference: int
    n_data: int
    anomalous: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    settings: dict[str, Any]


def _cluster(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Five rows of fifty close together, inside the distribution."""
    rows[:5] = [1.5, 1.5] + 0.1 * rng.normal(size=(5, 2))
    return rows


def _shift(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    return rows + 0.45


def difference_of_means(rng: np.random.Generator, sample: Any) -> float:
    """How far the two means are apart."""
    points = np.asarray(sample.points)
    data, reference = (
        weight @ points / weight.sum()
        for weight in map(np.asarray, (sample.data_weight, sample.reference_weight))
    )
    return float(np.linalg.norm(data - reference))


MEANS = {"statistic": difference_of_means, "preprocess": sparker.unchanged}
CASES = {
    "own toys": Case(400, 50, _cluster, {}),
    "own toys, means": Case(50, 50, _shift, MEANS),
}


def measured(name: str, n_anomalous: int, number: int) -> dict[str, Any]:
    """The places of all samples among their toys; the anomalous ones come first."""
    case = CASES[name]
    rng = np.random.default_rng([number, n_anomalous, *name.encode()])
    reference = rng.normal(size=(case.n_reference, 2))
    samples = [rng.normal(size=(case.n_data, 2)) for _ in range(N_SAMPLES)]
    samples[:n_anomalous] = [case.anomalous(rng, rows) for rows in samples[:n_anomalous]]
    found = sparker.test_many(
        reference,
        samples,
        fdr=0.1,
        n_toys=N_COMPARED,
        stop=None,
        seed=number,
        explain=False,
        progress=False,
        **case.settings,
    )
    return {"ranks": [round(one.p_value * (N_COMPARED + 1)) for one in found]}


def tables() -> Iterator[units.Unit]:
    """One of each kind after the other."""
    for number in range(N_TABLES):
        for name in CASES:
            for n_anomalous in ANOMALOUS:
                yield name, n_anomalous, number


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing."""
    options = units.options(__doc__, RESULT).parse_args(arguments)
    units.run(options, "python -m experiments.many.run", SETTINGS, tables(), measured)


if __name__ == "__main__":
    main()
