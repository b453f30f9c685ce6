"""The power of the default with early stopping, as monitors and many samples have it.

    python -m experiments.power.stopping --data DIR [--processes 2] [--seconds 2400]

The 20 known problems of docs/power.md. One table of 300 toys for each sample is ranked twice: all
toys at once, as ``sparker.test`` does, and in turn, with the first toys as the scale
(``sparker.Sequential``). Adds to ``stopping.json``, and prints the mean power of both.
"""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from experiments import units
from experiments.power.product_problem import sample
from experiments.power.product_problems import problems

import sparker
from sparker.calibration.pvalues import rank
from sparker.statistics.contract import families_of

RESULT = Path(__file__).parent / "stopping.json"
N_TOYS, N_SAMPLES, ALPHA = 300, 40, 0.05
SETTINGS = {"toys": N_TOYS, "alpha": ALPHA}
TABLES = ("twelve", "toys")
SCALES = (30, 60, 100)
"""Toys that set the scale."""


def both(name: str, number: int) -> dict[str, Any]:
    """Return the p-values of one sample: of all toys, and with early stopping."""
    reference, data = sample(problems(Path(os.environ["DATA"]))[name], number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)
        result = sparker.test(
            reference, data, seed=number, n_toys=N_TOYS, explain=False, progress=False
        )
    table = np.vstack([result.statistics, result.null_statistics])
    families = families_of(result.readings)
    found = {"all": rank(table, sparker.harmonic, families).p_value}
    for scale in SCALES:
        stop = sparker.Sequential(table=scale)
        ranked = stop.rank(table, sparker.harmonic, complete=True, families=families)
        assert ranked is not None
        found[f"{scale}"] = ranked.p_value
        found[f"toys {scale}"] = ranked.n_toys + scale
    return found


def main() -> None:
    """Measure what is missing, and print the mean power."""
    parser = units.options(__doc__ or "", RESULT)
    parser.add_argument("--data", type=Path, required=True, help="folder of the real tables")
    options = parser.parse_args()
    os.environ["DATA"] = str(options.data.resolve())  # for the workers
    names = [one.name for one in problems(options.data).values() if one.table in TABLES]
    todo = [(name, number) for number in range(N_SAMPLES) for name in names]
    units.run(options, "python -m experiments.power.stopping --data DIR", SETTINGS, todo, both)
    found = units.read(options.output, SETTINGS)
    for way in ("all", *map(str, SCALES)):
        power = [
            np.mean([one[way] <= ALPHA for key, one in found.items() if key.startswith(f"{name};")])
            for name in names
        ]
        print(f"{way}: mean power {np.mean(power):.3f}")


if __name__ == "__main__":
    main()
