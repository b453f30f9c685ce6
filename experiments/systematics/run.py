"""Nuisance parameters: is the level held, is power kept, is what was not declared found?

    python -m experiments.systematics.run [--data DIR] [--rounds 40] [--minutes 40] [--only PATTERN]

Every round makes one sample of each cell and tests it as users would, with 19 toys. The samples
with anomalies are tested with and without the systematic declared, the same samples. Adds to
``result.json``, sample by sample: a run that is interrupted goes on where it was. ``python -m
experiments.systematics.tables`` makes the tables of docs/systematics.md of it.
"""

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.systematics.oracle import best_value
from experiments.systematics.problems import N_DATA, N_REFERENCE, declared, jets, spectrum

from sparker.system.atomic import whole_file
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "result.json"
N_TOYS = 19
VALUES = (-1.5, -1.0, 0.0, 1.0, 1.5)
PLANTED = {"spectrum": 36, "jets": 120}
NONE = "not declared"


class Cell(NamedTuple):
    """What is tested how."""

    problem: str
    kind: str  # level, anomaly, or other: a shift that nobody declared
    nu: float
    form: str  # how the systematic is declared
    maximise: bool = False

    def key(self, number: int) -> str:
        """Its name in the record."""
        how = self.form + ", maximised" * self.maximise
        return f"{self.problem}; {self.kind}; {self.nu:g}; {how}; {number}"


def cells(number: int) -> list[Cell]:
    """Those of a round; what takes longer, or needs fewer samples, is not in all of them."""
    ends, forms = (-1.5, 0.0, 1.5), ("samples", "weights")
    found = [Cell(problem, "level", nu, "function") for problem in PLANTED for nu in VALUES]
    for problem in PLANTED:
        found += [Cell(problem, "anomaly", 0.0, form) for form in (NONE, "function")]
    if number % 3 == 0:
        found += [Cell("spectrum", "level", nu, form) for form in forms for nu in ends]
        found += [Cell("jets", "level", nu, "samples") for nu in ends]
    if number % 3 == 1:
        found += [Cell(problem, "level", nu, NONE) for problem in PLANTED for nu in (-1.0, 1.0)]
        found += [Cell("spectrum", "anomaly", 0.0, form) for form in forms]
    if number % 3 == 2:
        found += [
            Cell(problem, "other", 0.0, form) for problem in PLANTED for form in (NONE, "function")
        ]
    if number % 6 == 5:
        found += [Cell("spectrum", "level", nu, "function", True) for nu in (-1.5, 1.5)]
        found += [Cell(problem, "anomaly", 0.0, "function", True) for problem in PLANTED]
    return found


def measured(cell: Cell, number: int, folder: Path | None) -> dict[str, Any]:
    """What the test says of one sample."""
    import sparker

    kinds = ("level", "anomaly", "other")
    rng = np.random.default_rng([number, kinds.index(cell.kind), round(10 * cell.nu) + 100])
    n_planted = PLANTED[cell.problem] * (cell.kind == "anomaly")
    arguments = rng, cell.nu, n_planted, cell.kind == "other"
    if cell.problem == "spectrum":
        sample = spectrum(*arguments)
    else:
        assert folder is not None
        sample = jets(folder, *arguments)
    systematics = []
    if cell.form != NONE:
        systematics = declared(cell.problem, cell.form, sample)
    began = time.perf_counter()
    result = sparker.test(
        sample.reference,
        sample.data,
        systematics=systematics,
        maximise=cell.maximise,
        n_toys=N_TOYS,
        explain=False,
        seed=number,
    )
    found: dict[str, Any] = {"p_value": result.p_value}
    if result.nuisances:
        (pull,) = result.nuisances
        found["pull"] = [round(pull.value, 4), round(pull.error, 4)]
        if cell.problem == "spectrum":
            found["known"] = round(best_value(sample.reference, sample.data), 4)
    return found | {"seconds": round(time.perf_counter() - began, 1)}


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of jets_particlenet_169d.npz")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--only", default="", help="a pattern that the names of cells must have")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    record: dict[str, Any] = {"samples": {}}
    if RESULT.exists():
        record = json.loads(RESULT.read_text())
    record |= {
        "command": "python -m experiments.systematics.run --data DIR",
        "versions": versions(),
        "rows": [N_REFERENCE, N_DATA],
        "toys": N_TOYS,
        "planted": PLANTED,
    }
    for number in range(options.rounds):
        for cell in cells(number):
            key = cell.key(number)
            skip = key in record["samples"] or not re.search(options.only, key)
            if skip or (cell.problem == "jets" and options.data is None):
                continue
            if time.monotonic() > end:
                return
            record["samples"][key] = measured(cell, number, options.data)
            with whole_file(RESULT) as file:
                file.write((json.dumps(record, indent=0) + "\n").encode())
            print(key, record["samples"][key], flush=True)


if __name__ == "__main__":
    main()
