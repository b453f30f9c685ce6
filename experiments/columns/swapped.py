"""Numbers that break a correlation, beside categories: power of the default test.

    python -m experiments.columns.swapped [--processes N] [--seconds 2400]

Seven correlated, skewed numbers and three categories of 5, 7 and 8 levels. In 3 % of the data rows
two of the numbers come from another row, so that no column changes by itself. Each pair of samples
is tested by ``sparker.test`` with default settings and 39 toys, with all columns and with the
numbers alone. Adds to ``swapped.json``.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from experiments import units
from experiments.columns.mixed import ALPHA

RESULT = Path(__file__).parent / "swapped.json"
N_REFERENCE, N_DATA, N_TOYS = 2000, 400, 39
N_SWAPPED = 12  # 3 % of the data rows
NUMBERS = [f"number {i}" for i in range(7)]
LEVELS = (5, 7, 8)
NOISE = 0.05
"""Of each number, in units of the factors that it shares with others."""
FIRST_SEED, N_SAMPLES = 100, 40
SETTINGS = {"n_reference": N_REFERENCE, "n_data": N_DATA, "n_swapped": N_SWAPPED,
            "n_toys": N_TOYS, "alpha": ALPHA}  # fmt: skip


def rows(rng: np.random.Generator, n: int, noise: float) -> dict[str, np.ndarray]:
    """Ordinary rows: log-normal numbers that share two factors, and independent categories."""
    angles = np.linspace(0, np.pi / 2, len(NUMBERS))
    shared = rng.normal(size=(n, 2)) @ np.array([np.cos(angles), np.sin(angles)])
    numbers = np.exp(0.5 * (shared + noise * rng.normal(size=shared.shape)))
    table = dict(zip(NUMBERS, numbers.T, strict=True))
    for n_levels in LEVELS:
        often = np.arange(n_levels, 0, -1)
        level = rng.choice(n_levels, n, p=often / often.sum())
        table[f"category of {n_levels}"] = np.char.add("level ", level.astype(str))
    return table


def pair(seed: int, noise: float = NOISE) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A reference, and data in which some rows have two numbers of another row."""
    rng = np.random.default_rng(seed)
    reference, data = rows(rng, N_REFERENCE, noise), rows(rng, N_DATA, noise)
    for row in rng.choice(N_DATA, N_SWAPPED, replace=False):
        other = rng.integers(N_DATA)
        for name in rng.choice(NUMBERS, 2, replace=False):
            data[name][row] = data[name][other]
    return reference, data


def measured(number: int) -> dict[str, Any]:
    """The p-values of one pair of samples, and the notes of the test with all columns."""
    import sparker

    reference, data = pair(FIRST_SEED + number)
    how: dict[str, Any] = {"n_toys": N_TOYS, "seed": number, "explain": False}
    whole = sparker.test(reference, data, **how)
    alone = sparker.test(reference, data, columns=NUMBERS, **how)
    return {"p_value": whole.p_value, "p_of_numbers": alone.p_value, "notes": list(whole.notes)}


def main() -> None:
    """Measure what is missing."""
    options = units.options(__doc__ or "", RESULT).parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    todo = [(number,) for number in range(N_SAMPLES)]
    units.run(options, "python -m experiments.columns.swapped", SETTINGS, todo, measured)


if __name__ == "__main__":
    main()
