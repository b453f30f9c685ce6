"""The power of the default with early stopping, as monitors and many samples have it.

    python -m experiments.power.stopping --data DIR [--processes 2] [--seconds 2400]

The 20 known problems of docs/power.md. One table of 300 toys for each sample is ranked twice: all
toys at once, as ``sparker.test`` does, and with ``sparker.Sequential``. Adds to ``stopping.json``,
and prints the mean power of both and their difference.
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
from sparker.calibration.settings import plain
from sparker.statistics.contract import families_of

RESULT = Path(__file__).parent / "stopping.json"
N_TOYS, N_SAMPLES, ALPHA = 300, 40, 0.05
STOP = sparker.Sequential()
SETTINGS = {"toys": N_TOYS, "alpha": ALPHA, "stop": plain(STOP)}
TABLES = ("twelve", "toys")


def both(name: str, number: int) -> dict[str, Any]:
    """Return the p-values of one sample: of all toys, and with early stopping."""
    reference, data = sample(problems(Path(os.environ["DATA"]))[name], number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)
        result = sparker.test(
            reference, data, seed=number, n_toys=N_TOYS, explain=False, progress=False
        )
    table = np.vstack([result.statistics, result.null_statistics])
    families = families_of(result.component_tests)
    ranked = STOP.rank(table, sparker.harmonic, complete=True, families=families)
    assert ranked is not None
    everything = rank(table, sparker.harmonic, families)
    return {"all": everything.p_value, "stopped": ranked.p_value, "toys": ranked.n_toys}


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
    hits = {
        name: np.array(
            [
                [one[way] <= ALPHA for way in ("all", "stopped")]
                for key, one in found.items()
                if key.startswith(f"{name};")
            ]
        )
        for name in names
    }
    measured = [of.astype(float) for of in hits.values() if len(of)]
    power = np.mean([of.mean(0) for of in measured], axis=0)
    lost = [of[:, 0] - of[:, 1] for of in measured]
    error = np.sqrt(sum(one.var() / len(one) for one in lost)) / len(lost)
    print(
        f"{len(found)} samples of {len(measured)} problems: mean power {power[0]:.3f} of all toys, "
        f"{power[1]:.3f} with early stopping, {power[0] - power[1]:.3f} +- {error:.3f} less"
    )


if __name__ == "__main__":
    main()
