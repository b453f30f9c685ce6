"""The level on tables of all kinds of columns, without anomalies.

    python -m experiments.columns.level [--seconds 280] [--processes N]

As many samples of ``mixed`` as fit into the time: each is tested by its numbers, every third one
by all of its columns as well. Writes ``level.json``.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from experiments import workers
from experiments.columns.mixed import N_DATA, N_REFERENCE, N_TOYS, NO_NUMBERS, customers, rate

from sparker.system.atomic import whole_file

RESULT = Path(__file__).parent / "level.json"
LEVELS = (0.01, 0.05, 0.1, 0.2)
MOST = 100_000


def measured(number: int) -> list[float]:
    """The p-values of one sample: by its numbers, and by all columns."""
    import sparker

    rng = np.random.default_rng([7777, number])
    reference, data = customers(rng, N_REFERENCE), customers(rng, N_DATA)
    data["customer_id"] += N_REFERENCE
    how: dict[str, Any] = {"n_toys": N_TOYS, "seed": number, "explain": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)
        found = [sparker.test(reference, data, ignore=NO_NUMBERS, **how).p_value]
        if number % 3 == 0:
            found.append(sparker.test(reference, data, **how).p_value)
    return found


def main() -> None:
    """Measure until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    began, found = time.monotonic(), []
    with workers.pool(options.processes) as pool:
        for values in pool.imap_unordered(measured, range(MOST), 5):
            found.append(values)
            if time.monotonic() - began > options.seconds:
                pool.terminate()
                break
    write(options.output, found)


def write(path: Path, found: list[list[float]]) -> None:
    """How often p-values were at or below each level."""
    from sparker.system.versions import versions

    sides = {
        "numbers": [values[0] for values in found],
        "all columns": [values[1] for values in found if len(values) > 1],
    }
    record = {
        "command": "python -m experiments.columns.level",
        "versions": versions(),
        "n_reference": N_REFERENCE,
        "n_data": N_DATA,
        "n_toys": N_TOYS,
        "levels": {
            side: {f"{level:g}": rate(sum(p <= level for p in values), len(values))
                   for level in LEVELS}
            for side, values in sides.items()
        },
    }  # fmt: skip
    with whole_file(path) as file:
        file.write((json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
