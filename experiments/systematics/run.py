"""Nuisance parameters: is the level held, is power kept, is what was not declared found?

    python -m experiments.systematics.run --data DIR [--processes 2] [--seconds S] [--only PATTERN]

Every round makes one sample of each cell and tests it as users would, with 39 toys: the level one
standard deviation away in 200 rounds, the rest in the first 24. The samples with anomalies are
tested with and without the systematic declared, the same samples. Adds to
``result.json``: a run that is interrupted goes on where it was. ``python -m
experiments.systematics.tables`` writes the tables of README.md and docs/systematics.md.
"""

import time
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments import units
from experiments.systematics.oracle import best_value
from experiments.systematics.problems import (
    ROWS,
    declared,
    jets,
    selected,
    spectrum,
    threshold,
)

RESULT = Path(__file__).parent / "result.json"
N_TOYS, N_ROUNDS, N_FEW = 39, 200, 24
VALUES = (-1.5, -1.0, 0.0, 1.0, 1.5)
PLANTED = {"spectrum": 36, "jets": 250, "selected": 150, "threshold": 30}
NONE = "not declared"
USUAL = {"spectrum": "function", "jets": "function", "threshold": "function",
         "selected": "samples"}  # fmt: skip
AT_ONE = (("spectrum", "samples"), ("jets", "function"), ("threshold", "function"),
          ("selected", "samples"), ("jets", "samples"), ("threshold", "samples"))  # fmt: skip
"""What is tested most often, at -1 and +1; the last two are to be refused."""
SETTINGS = {"rows": {name: list(rows) for name, rows in ROWS.items()},
            "toys": N_TOYS, "planted": PLANTED}  # fmt: skip


class Cell(NamedTuple):
    """What is tested how."""

    problem: str
    kind: str  # level, anomaly, or other: a shift that nobody declared
    nu: float
    form: str  # how the systematic is declared


def cells(number: int) -> list[Cell]:
    """Those of a round; what takes longer, or needs fewer samples, is not in all of them."""
    found = [Cell(problem, "level", nu, form) for problem, form in AT_ONE for nu in (-1.0, 1.0)]
    if number >= N_FEW:
        return found
    found += [Cell(problem, "level", nu, "function") for problem in ("spectrum", "jets")
              for nu in VALUES]  # fmt: skip
    for problem, usually in USUAL.items():
        found += [Cell(problem, "anomaly", 0.0, form) for form in (NONE, usually)]
    if number % 3 == 0:
        found += [Cell("spectrum", "level", nu, form) for form in ("samples", "weights")
                  for nu in VALUES]  # fmt: skip
        found += [Cell("jets", "level", nu, "the same rows") for nu in (-1.0, 1.0)]
    if number % 3 == 1:
        found += [Cell(problem, "level", nu, NONE) for problem in PLANTED for nu in (-1.0, 1.0)]
        found += [Cell("spectrum", "anomaly", 0.0, form) for form in ("samples", "weights")]
    if number % 3 == 2:
        for problem, usually in USUAL.items():
            found += [Cell(problem, "other", 0.0, form) for form in (NONE, usually)]
    return list(dict.fromkeys(found))


def rounds() -> Iterator[units.Unit]:
    """One sample of each cell after the other."""
    for number in range(N_ROUNDS):
        for cell in cells(number):
            yield *cell, number


def measured(
    folder: Path, problem: str, kind: str, nu: float, form: str, number: int
) -> dict[str, Any]:
    """What the test says of one sample."""
    import sparker

    kinds = ("level", "anomaly", "other")
    rng = np.random.default_rng([number, kinds.index(kind), round(10 * nu) + 100])
    n_planted = PLANTED[problem] * (kind == "anomaly")
    arguments = rng, nu, n_planted, kind == "other"
    draw = {
        "spectrum": spectrum,
        "threshold": threshold,
        "jets": partial(jets, folder),
        "selected": partial(selected, folder),
    }
    sample = draw[problem](*arguments)
    warnings.simplefilter("ignore", sparker.DataWarning)  # of edges that are to move
    began = time.perf_counter()
    try:
        result = sparker.test(
            sample.reference,
            sample.data,
            systematics=[] if form == NONE else declared(problem, form, sample),
            n_toys=N_TOYS,
            explain=False,
            seed=number,
        )
    except ValueError as error:
        if form != "samples" or "systematic scale: " not in str(error):
            raise
        return {"refused": "edges" if "move no edge" in str(error) else "left over"}
    found: dict[str, Any] = {"p_value": result.p_value}
    if result.nuisances:
        (pull,) = result.nuisances
        found["pull"] = [round(pull.value, 4), round(pull.error, 4)]
        if problem == "spectrum":
            found["known"] = round(best_value(sample.reference, sample.data), 4)
    return found | {"seconds": round(time.perf_counter() - began, 1)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing."""
    parser = units.options(__doc__, RESULT)
    parser.add_argument("--data", type=Path, help="folder of jets_particlenet_169d.npz",
                        required=True)  # fmt: skip
    options = parser.parse_args(arguments)
    command = "python -m experiments.systematics.run --data DIR"
    units.run(options, command, SETTINGS, rounds(), partial(measured, options.data))


if __name__ == "__main__":
    main()
