"""How often ``sparker.test`` as it is calls anomaly-free samples anomalous.

    python -m experiments.levels.default --keep FOLDER [--only NAME ...] [--tests A:B] [--seconds S]
    python -m experiments.levels.default --keep FOLDER --summarise     # default.json, of all lines
    python -m experiments.levels.default --keep NEW --summarise --add  # of further numbers

``run.py`` has every scheme, with plain statistics and small fits. Here it is the whole default: all
families, all stages, two tables relabelled. Lines that are in the folder are not made again, so a
run can be stopped, continued and split. ``python -m experiments.levels.tables`` writes the table of
README.md and docs/calibration.md.
"""

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from experiments.levels.populations import POPULATIONS, Draw
from experiments.power.product import numbers
from experiments.power.product_lines import add, lines

import sparker

RESULT = Path(__file__).parent / "default.json"
N_REFERENCE, N_DATA, N_TOYS = 300, 100, 39
N_TESTS = 5_000
ALPHAS = (0.05, 0.1, 0.2)


def _correlated(rng: np.random.Generator, n: int) -> np.ndarray:  # (n, 10)
    mixing = np.random.default_rng(10).normal(size=(10, 10))
    return rng.standard_t(4, size=(n, 10)) @ mixing


DRAWS: dict[str, Draw] = {
    "1-D, normal": POPULATIONS["normal"].draw,
    "10-d, correlated, heavy tails": _correlated,
    "64-d, two clusters": POPULATIONS["64-d"].draw,
    "three columns of small integers": lambda rng, n: rng.poisson(2, size=(n, 3)).astype(float),
}


def rank(name: str, number: int) -> int:
    """The place of an anomaly-free sample among its toys, 1 if it is the most different."""
    rng = np.random.default_rng([number, *name.encode()])
    reference, data = (DRAWS[name](rng, n) for n in (N_REFERENCE, N_DATA))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)  # of rows that are alike
        result = sparker.test(
            reference, data, n_toys=N_TOYS, seed=number, explain=False, progress=False
        )
    return round(result.p_value * (N_TOYS + 1))


def measure(options: argparse.Namespace) -> None:
    """Add the tests that are missing, until time is up."""
    done = {(line["population"], line["number"]) for line in lines(options.keep)}
    until = time.time() + options.seconds
    for name in options.only:
        for number in options.tests:
            if time.time() > until:
                return
            if (name, number) not in done:
                line = {"population": name, "number": number, "rank": rank(name, number)}
                add(options.keep, line)


def summarise(folder: Path, known: dict[str, list[int]]) -> dict[str, object]:
    """How many tests had each rank, those that are known added."""
    ranks: dict[str, dict[int, int]] = {name: {} for name in DRAWS}
    for line in lines(folder):
        ranks[line["population"]][line["number"]] = line["rank"]
    counts = {
        name: np.bincount(list(found.values()), minlength=N_TOYS + 2)[1:]
        for name, found in ranks.items()
    }
    return {
        "command": "python -m experiments.levels.default --keep FOLDER, then --summarise",
        "sizes": {"reference": N_REFERENCE, "data": N_DATA, "toys": N_TOYS},
        "ranks": {
            name: (count + np.array(known.get(name, 0))).tolist()
            for name, count in counts.items()
            if count.any() or name in known
        },
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, or sum up what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="folder of the lines")
    parser.add_argument("--only", nargs="+", default=list(DRAWS), choices=list(DRAWS))
    parser.add_argument("--tests", type=numbers, default=range(N_TESTS), metavar="A:B")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--summarise", action="store_true", help="write --output, measure nothing")
    parser.add_argument(
        "--add", action="store_true", help="to what --output has, which are tests of other numbers"
    )
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    if options.summarise:
        known = json.loads(options.output.read_text())["ranks"] if options.add else {}
        options.output.write_text(json.dumps(summarise(options.keep, known)) + "\n")
    else:
        measure(options)


if __name__ == "__main__":
    main()
