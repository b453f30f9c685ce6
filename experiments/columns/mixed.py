"""Tables of numbers, categories, times, yes and no, and missing values: level and power.

    python -m experiments.columns.mixed [--processes N] [--seconds 2400]

A table of customers as a company has it, against 300 new rows of which 4 % are strange in one way
or another. Every sample goes through ``sparker.test`` as a table, and once more with its numbers
alone, as a test that knows nothing else would have to. Adds to
``mixed.json``.
"""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from experiments import units

RESULT = Path(__file__).parent / "mixed.json"
N_REFERENCE, N_DATA, N_PLANTED, N_TOYS, ALPHA = 1500, 300, 12, 99, 0.05
N_SAMPLES, N_NONE = 40, 160
"""With something planted, of each kind, and without."""
NO_NUMBERS = ("city", "plan", "active", "when")
START = np.datetime64("2026-03-02", "s")


def customers(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ordinary rows, as a table with named columns."""
    amount = rng.lognormal(3, 0.5, n)
    plan = np.where(amount + rng.normal(0, 8, n) > 22, "pro", "basic").astype("U20")
    plan[rng.random(n) < 0.1] = "trial"
    common = [f"city {i}" for i in range(8)]
    city = rng.choice(common, n, p=np.arange(8, 0, -1) / 36).astype("U20")
    rare = rng.random(n) < 0.05
    city[rare] = [f"village {i}" for i in rng.integers(0, 60, rare.sum())]
    age = rng.normal(45, 12, n).round()
    age[rng.random(n) < 0.05] = np.nan
    seconds = rng.integers(0, 28, n) * 86400 + np.clip(rng.normal(14, 3, n), 0, 23.9) * 3600
    columns = {
        "customer_id": np.arange(n),
        "amount": amount.round(2),
        "visits": rng.poisson(4, n),
        "age": age,
        "score": rng.normal(size=n) + 0.3 * np.log(amount),
        "plan": plan,
        "city": city,
        "active": rng.random(n) < 0.7,
        "when": START + seconds.round().astype("timedelta64[s]"),
    }
    table = np.empty(n, [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        table[name] = column
    return table


def plant(kind: str, rng: np.random.Generator, data: np.ndarray) -> None:
    """Make some rows strange, in place."""
    rows = slice(N_PLANTED)
    if kind == "a new value":
        data["city"][rows] = "Atlantis"
    elif kind == "a value too often":
        data["city"][rows], data["plan"][rows] = "city 7", "trial"
    elif kind == "value and number":
        data["plan"][rows] = "basic"
        data["amount"][rows] = rng.lognormal(3.7, 0.1, N_PLANTED).round(2)
    elif kind == "missing values":
        data["age"][rows] = np.nan
    elif kind == "at night":
        seconds = rng.integers(0, 28, N_PLANTED) * 86400 + rng.integers(7200, 10800, N_PLANTED)
        data["when"][rows] = START + seconds.astype("timedelta64[s]")
    elif kind == "numbers alone":
        data["age"][rows] = 70.0
        data["score"][rows] = rng.normal(-1.5, 0.1, N_PLANTED)


KINDS = {
    "none": (),
    "a new value": ("city",),
    "a value too often": ("city", "plan"),
    "value and number": ("plan", "amount"),
    "missing values": ("age",),
    "at night": ("when",),
    "numbers alone": ("age", "score"),
}
"""What is planted, and the columns it is in."""


def pair(kind: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """A reference and data with something planted, rows and columns in any order."""
    rng = np.random.default_rng([number, *kind.encode()])
    reference, data = customers(rng, N_REFERENCE), customers(rng, N_DATA)
    data["customer_id"] += N_REFERENCE
    plant(kind, rng, data)
    return reference, data[rng.permutation(N_DATA)][rng.permutation(data.dtype.names).tolist()]


SETTINGS = {"n_reference": N_REFERENCE, "n_data": N_DATA, "n_planted": N_PLANTED,
            "n_toys": N_TOYS, "alpha": ALPHA}  # fmt: skip


def measured(kind: str, number: int) -> dict[str, Any]:
    """What is said of one sample."""
    import sparker

    reference, data = pair(kind, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)
        whole = sparker.test(reference, data, n_toys=N_TOYS, seed=number)
        numbers = sparker.test(
            reference, data, n_toys=N_TOYS, seed=number, ignore=NO_NUMBERS, explain=False
        )
    assert whole.answers is not None
    confirmed = [region for region in whole.answers.regions if region.is_significant(ALPHA)]
    named = {
        whole.encoding.features[one.column].column
        for region in confirmed[:1]
        for one in region.conditions
    }
    return {
        "p_value": whole.p_value,
        "p_of_numbers": numbers.p_value,
        "region": sorted(named),
        "left_out": [one.name for one in whole.encoding.left_out],
        "warnings": sorted({one.code for one in whole.warnings}),
    }


def main() -> None:
    """Measure what is missing."""
    options = units.options(__doc__ or "", RESULT).parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    todo = [
        (kind, number)
        for number in range(N_NONE)
        for kind in KINDS
        if kind == "none" or number < N_SAMPLES
    ]
    units.run(options, "python -m experiments.columns.mixed", SETTINGS, todo, measured)


if __name__ == "__main__":
    main()
