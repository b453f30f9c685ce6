"""Power by the spread of flags: what rows of different levels should be apart, beside numbers.

    python -m experiments.columns.spread [--samples 40] [--processes N]

The plants of ``mixed`` and the swapped numbers of ``swapped``, with seeds of their own, for several
values of ``flag_spread`` of ``sparker.decorrelate``. The numbers have twice the noise, since with
less nearly all are found with any spread. Writes ``spread.json``.
"""

import argparse
import json
import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments import workers
from experiments.columns import mixed, swapped
from experiments.columns.mixed import ALPHA, KINDS, rate

from sparker.system.atomic import whole_file

RESULT = Path(__file__).parent / "spread.json"
SPREADS = (0.35, 0.5, 0.7, 1.0, 1.4)
SWAPPED = "swapped numbers"
PLANTS = (*[kind for kind in KINDS if kind != "none"], SWAPPED)
FIRST_SEED = 1000

Work = tuple[str, float, int]


def measured(work: Work) -> tuple[Work, float]:
    """The p-value of one pair of samples with one spread."""
    import sparker

    plant, spread, number = work
    seed = FIRST_SEED + number
    if plant == SWAPPED:
        reference: Any
        data: Any
        (reference, data), n_toys = swapped.pair(seed, 2 * swapped.NOISE), swapped.N_TOYS
    else:
        (reference, data), n_toys = mixed.pair(plant, seed), mixed.N_TOYS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)
        result = sparker.test(
            reference,
            data,
            n_toys=n_toys,
            seed=number,
            preprocess=partial(sparker.decorrelate, flag_spread=spread),
            explain=False,
        )
    return work, result.p_value


def main() -> None:
    """Measure all, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    from sparker.system.versions import versions

    work = [
        (plant, spread, number)
        for plant in PLANTS
        for spread in SPREADS
        for number in range(options.samples)
    ]
    with workers.pool(options.processes) as pool:
        found = dict(pool.imap_unordered(measured, work, 2))
    table = {
        plant: {
            f"{spread:g}": rate(
                sum(found[plant, spread, i] <= ALPHA for i in range(options.samples)),
                options.samples,
            )
            for spread in SPREADS
        }
        for plant in PLANTS
    }
    record = {
        "command": "python -m experiments.columns.spread",
        "versions": versions(),
        "samples": options.samples,
        "alpha": ALPHA,
        "plants": table,
        "mean": {
            f"{spread:g}": float(np.mean([one[f"{spread:g}"]["share"] for one in table.values()]))
            for spread in SPREADS
        },
    }
    with whole_file(options.output) as file:
        file.write((json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
