"""How often anomaly-free data are called anomalous where pool and reference have weights.

    python -m experiments.levels.weighted_pools [--processes N] [--seconds S] [--only PATTERN]

Adds to ``weighted_pools.json``: a run that is interrupted goes on where it was. Reference and pool
are two parts of one weighted Monte Carlo sample, the data have no weights, and ``sparker.test`` has
its default settings. ``python -m experiments.levels.tables`` writes the table of
README.md.
"""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from experiments import units

import sparker

RESULT = Path(__file__).parent / "weighted_pools.json"
N_REFERENCE, N_DATA, N_TOYS = 600, 100, 39
N_POOL = {
    "all the same": 800,
    "a function of the row": 3000,
    "random, independent of the row": 3000,
}
"""By the weights: 800 rows, 750 and 400 are left of them."""
N_TESTS = 200
ALPHAS = (0.05, 0.1, 0.2)
SETTINGS = {"reference": N_REFERENCE, "pools": N_POOL, "data": N_DATA, "toys": N_TOYS}
FLATTER = 2.0
WEIGHTS = tuple(N_POOL)
COUNTS = ("shape", "with `expected`")


def draw(rng: np.random.Generator, n: int, scale: float = 1.0) -> np.ndarray:  # (n, 2)
    """An energy that falls exponentially, and a second column whose width depends on it."""
    energy = rng.exponential(scale, n)
    return np.column_stack([energy, rng.normal(size=n) / (1 + energy)])


def simulated(
    rng: np.random.Generator, weights: str, n: int
) -> tuple[np.ndarray, np.ndarray]:  # (n, 2), (n,)
    """Monte Carlo rows whose weights make them rows of ``draw``."""
    if weights == WEIGHTS[1]:
        rows = draw(rng, n, FLATTER)
        return rows, np.exp(-rows[:, 0] * (1 - 1 / FLATTER))
    rows = draw(rng, n)
    return rows, np.full(n, 0.5) if weights == WEIGHTS[0] else rng.gamma(4, 1 / 4, n)


def measured(weights: str, counts: str, number: int) -> units.Found:
    """The p-value of an anomaly-free sample, and what was said of the pool."""
    rng = np.random.default_rng([number, WEIGHTS.index(weights), COUNTS.index(counts)])
    expected = None if counts == COUNTS[0] else float(N_DATA)
    (reference, own), (pool, of_pool) = (
        simulated(rng, weights, n) for n in (N_REFERENCE, N_POOL[weights])
    )
    data = draw(rng, N_DATA if expected is None else rng.poisson(N_DATA))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)  # kept in the result
        result = sparker.test(
            reference,
            data,
            null=sparker.Simulator(pool, pool_weights=of_pool, weights=own),
            expected=expected,
            n_toys=N_TOYS,
            seed=number,
            explain=False,
            progress=False,
        )
    return {
        "rank": round(result.p_value * (N_TOYS + 1)),
        "warned": any(one.code == "pool" for one in result.warnings),
        "seconds": round(time.perf_counter() - began, 1),
    }


def tests() -> Iterator[units.Unit]:
    """One of each cell after the other."""
    for number in range(N_TESTS):
        for weights in WEIGHTS:
            for counts in COUNTS:
                yield weights, counts, number


def main() -> None:
    """Measure what is missing."""
    options = units.options(__doc__, RESULT).parse_args()
    units.run(options, "python -m experiments.levels.weighted_pools", SETTINGS, tests(), measured)


if __name__ == "__main__":
    main()
