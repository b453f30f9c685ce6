"""Power by the spread of flags: what rows of different levels should be apart, beside numbers.

    python -m experiments.columns.spread [--processes N] [--seconds 2400]

The plants of ``mixed`` and the swapped numbers of ``swapped``, with seeds of their own, for several
values of ``flag_spread`` of ``sparker.decorrelate``. The swapped numbers have twice the noise,
since with less nearly all are found with any spread. Adds to ``spread.json``.
"""

import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from experiments import units
from experiments.columns import mixed, swapped
from experiments.columns.mixed import ALPHA, KINDS

RESULT = Path(__file__).parent / "spread.json"
SPREADS = (0.35, 0.5, 0.7, 1.0, 1.4)
SWAPPED = "swapped numbers"
PLANTS = (*[kind for kind in KINDS if kind != "none"], SWAPPED)
N_SAMPLES, FIRST_SEED = 100, 1000
SETTINGS = {"alpha": ALPHA, "first_seed": FIRST_SEED}


def measured(plant: str, spread: float, number: int) -> dict[str, Any]:
    """Return the p-value of one pair of samples with one spread."""
    import sparker

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
    return {"p_value": result.p_value}


def main() -> None:
    """Measure what is missing."""
    options = units.options(__doc__ or "", RESULT).parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    todo = [
        (plant, spread, number)
        for number in range(N_SAMPLES)
        for plant in PLANTS
        for spread in SPREADS
    ]
    units.run(options, "python -m experiments.columns.spread", SETTINGS, todo, measured)


if __name__ == "__main__":
    main()
