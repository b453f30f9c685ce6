"""How often anomaly-free samples are called anomalous, for every scheme, statistic and population.

    python -m experiments.levels.run [--tests 2000] [--kernels] [--only PATTERN] [--processes N]

Adds to ``result.json``, cell by cell: a run that is interrupted goes on where it was, and one with
more tests adds those that are missing. For every cell and statistic it keeps how many of the tests
had p <= alpha; ``python -m experiments.levels.tables`` makes the tables of README.md and
docs/calibration.md of it, with exact bounds.
"""

import argparse
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from experiments import workers
from experiments.levels.cells import CELLS, CONFIG, EARLY, MISTAKES, N_TOYS, WIDTHS, p_values
from experiments.levels.populations import POPULATIONS

from sparker.calibration.settings import plain
from sparker.system.atomic import whole_file
from sparker.system.versions import versions

ALPHAS = (0.01, 0.05, 0.10)
AT_ONCE = 500
"""Tests of a cell that one process makes in a row."""

RESULT = Path(__file__).parent / "result.json"

Work = tuple[str, str, bool, int, int]
"""Scheme, population, whether kernels, and the numbers of the first test and of the last."""


def rejected(work: Work) -> tuple[Work, dict[str, list[int]]]:
    """How many of some tests have p <= alpha, by statistic."""
    name, population, kernels, first, last = work
    found = p_values(name, population, kernels=kernels, numbers=range(first, last))
    # A p-value is a number of rows over that of all: no rounding may decide whether it is alpha.
    counts = {s: [int(np.sum(p <= a + 1e-9)) for a in ALPHAS] for s, p in found.items()}
    return work, counts


def missing(cells: dict[str, Any], options: argparse.Namespace) -> Iterator[Work]:
    """What has to be done, for all cells asked for, in parts."""
    for name in [*CELLS, *MISTAKES]:
        for population in POPULATIONS:
            key = key_of(name, population, options.kernels)
            if re.search(options.only, key):
                done = cells.get(key, {"n_tests": 0})["n_tests"]
                for first in range(done, options.tests, AT_ONCE):
                    last = min(first + AT_ONCE, options.tests)
                    yield name, population, options.kernels, first, last


def key_of(name: str, population: str, kernels: bool) -> str:
    """The name of a cell."""
    return f"{name}; {population}; {'kernels' if kernels else 'plain'}"


def main() -> None:
    """Run the cells asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=2000)
    parser.add_argument("--kernels", action="store_true", help="of kernels, not plain statistics")
    parser.add_argument("--only", default="", help="only cells whose name this pattern finds")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    whole = json.loads(options.output.read_text()) if options.output.exists() else {"cells": {}}
    cells = whole["cells"]
    waiting: dict[str, dict[int, tuple[Work, dict[str, list[int]]]]] = {}
    with workers.pool(options.processes, maxtasksperchild=8) as pool:
        for work, counts in pool.imap_unordered(rejected, list(missing(cells, options))):
            key = key_of(*work[:3])
            cell = cells.setdefault(
                key, {"right": work[0] in CELLS, "n_tests": 0, "rejected": {}, "versions": {}}
            )
            # In the order of their numbers, so that what is kept is what comes first.
            waiting.setdefault(key, {})[work[3]] = (work, counts)
            while cell["n_tests"] in waiting[key]:
                done, new = waiting[key].pop(cell["n_tests"])
                for statistic, n in new.items():
                    old = cell["rejected"].get(statistic, [0] * len(ALPHAS))
                    cell["rejected"][statistic] = [a + b for a, b in zip(old, n, strict=True)]
                cell["n_tests"], cell["versions"] = done[4], versions()
                shown = {s: [round(k / done[4], 4) for k in n] for s, n in cell["rejected"].items()}
                print(f"{key}: {done[4]} tests, {shown}", flush=True)
            save(options.output, cells)


def save(path: Path, cells: dict[str, Any]) -> None:
    """Write what there is so far."""
    result = {
        "command": "python -m experiments.levels.run --tests N [--kernels], N each n_tests",
        "alphas": ALPHAS,
        "n_toys": N_TOYS,
        "stopped early": plain(EARLY),
        "config": plain(CONFIG),
        "widths": plain(WIDTHS),
        "cells": dict(sorted(cells.items())),
    }
    with whole_file(path) as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
