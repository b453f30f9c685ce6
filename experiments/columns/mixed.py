"""Tables of numbers, categories, times, yes and no, and missing values: level and power.

    python -m experiments.columns.mixed [--samples 160] [--processes N]

A table of customers as a company has it, against 300 new rows of which 4 % are strange in one way
or another. Every sample goes through ``sparker.test`` as a table, and once more with its numbers
alone, as a test that knows nothing else would have to. Writes ``mixed.json``.
"""

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from experiments import workers

from sparker.calibration.pvalues import clopper_pearson
from sparker.system.atomic import whole_file

RESULT = Path(__file__).parent / "mixed.json"
N_REFERENCE, N_DATA, N_PLANTED, N_TOYS, ALPHA = 1500, 300, 12, 99, 0.05
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


Work = tuple[str, int]


def measured(work: Work) -> tuple[Work, dict[str, Any]]:
    """What is said of one sample."""
    import sparker

    kind, number = work
    reference, data = pair(kind, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)
        whole = sparker.test(reference, data, n_toys=N_TOYS, seed=number)
        numbers = sparker.test(
            reference, data, n_toys=N_TOYS, seed=number, ignore=NO_NUMBERS, explain=False
        )
    assert whole.answers is not None
    confirmed = [region for region in whole.answers.regions if region.confirmed]
    named = {
        whole.encoding.features[one.column].column
        for region in confirmed[:1]
        for one in region.conditions
    }
    codes = [one.code for one in whole.warnings]
    return work, {
        "p_value": whole.p_value,
        "p_of_numbers": numbers.p_value,
        "region": sorted(named),
        "left_out": [one.name for one in whole.encoding.left_out],
        "unseen_said": "unseen values" in codes,
        "warnings": sorted(codes),
    }


def rate(hits: int, n: int) -> dict[str, Any]:
    """A share with its exact 95 % interval."""
    return {"share": hits / n, "interval": list(clopper_pearson(hits, n)), "of": n}


def main() -> None:
    """Measure everything, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=160, help="without anomalies; of others 1/4")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    from sparker.system.versions import versions

    work: list[Work] = [
        (kind, number)
        for kind in KINDS
        for number in range(options.samples if kind == "none" else options.samples // 4)
    ]
    with workers.pool(options.processes) as pool:
        found = dict(pool.imap_unordered(measured, work, 4))
    table = {}
    for kind, columns in KINDS.items():
        own = [value for (of, _), value in found.items() if of == kind]
        n = len(own)
        table[kind] = {
            "found": rate(sum(one["p_value"] <= ALPHA for one in own), n),
            "found_by_numbers": rate(sum(one["p_of_numbers"] <= ALPHA for one in own), n),
            "region_names_a_column_of_it": rate(
                sum(bool({*one["region"]} & {*columns}) for one in own), n
            ),
            "unseen_said": sum(one["unseen_said"] for one in own),
            "identifier_left_out": sum("customer_id" in one["left_out"] for one in own),
            "others_left_out": sum(len(one["left_out"]) > 1 for one in own),
            "other_warnings": sum(
                bool({*one["warnings"]} - {"identifier", "unseen values"}) for one in own
            ),
        }
    record = {
        "command": "python -m experiments.columns.mixed",
        "versions": versions(),
        "n_reference": N_REFERENCE,
        "n_data": N_DATA,
        "n_planted": N_PLANTED,
        "n_toys": N_TOYS,
        "alpha": ALPHA,
        "kinds": table,
    }
    with whole_file(options.output) as file:
        file.write((json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
