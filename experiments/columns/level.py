"""The level on tables of all kinds of columns, without anomalies.

    python -m experiments.columns.level [--seconds 280] [--processes N]

Samples of ``mixed``: each is tested by its numbers, every third one by all of its columns as well.
Adds to ``level.json``.
"""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from experiments import units
from experiments.columns.mixed import N_DATA, N_REFERENCE, N_TOYS, NO_NUMBERS, customers

RESULT = Path(__file__).parent / "level.json"
SETTINGS = {"n_reference": N_REFERENCE, "n_data": N_DATA, "n_toys": N_TOYS}
N_SAMPLES = 660


def measured(number: int) -> dict[str, float]:
    """The p-values of one sample: by its numbers, and by all columns."""
    import sparker

    rng = np.random.default_rng([7777, number])
    reference, data = customers(rng, N_REFERENCE), customers(rng, N_DATA)
    data["customer_id"] += N_REFERENCE
    how: dict[str, Any] = {"n_toys": N_TOYS, "seed": number, "explain": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)
        found = {"numbers": sparker.test(reference, data, ignore=NO_NUMBERS, **how).p_value}
        if number % 3 == 0:
            found["all columns"] = sparker.test(reference, data, **how).p_value
    return found


def main() -> None:
    """Measure what is missing."""
    options = units.options(__doc__ or "", RESULT).parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    todo = [(number,) for number in range(N_SAMPLES)]
    units.run(options, "python -m experiments.columns.level", SETTINGS, todo, measured)


if __name__ == "__main__":
    main()
