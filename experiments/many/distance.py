"""How far generators are from the data, where that is known, and which is closer.

    python -m experiments.many.distance --keep FOLDER [--only NAME ...] [--seconds S]
    python -m experiments.many.distance --keep FOLDER --summarise     # distance.json, of all lines

Data are normal in two columns. Generators a and b are the same, normal rows shifted by ``delta`` in
the first column, so that the true distance, twice the Kullback-Leibler divergence, is delta^2; c is
shifted by another amount. Each is as large as the data. Lines that are in the folder are not made
again. ``python -m experiments.many.tables`` writes the tables of docs/many.md.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.power.product import numbers
from experiments.power.product_lines import add, lines

import sparker
from sparker.calibration.pvalues import clopper_pearson
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "distance.json"
N_SAMPLES = 5_000
LEVEL = 0.05


class Case(NamedTuple):
    """How many rows there are, and how far the generators are off."""

    n_rows: int
    delta: float  # of a and b
    further: float  # of c


CASES = {
    f"{n} rows, {name}": Case(n, delta, further)
    for n in (500, 2000)
    for name, delta, further in (
        ("perfect", 0.0, 0.0),
        ("shifted by 0.3", 0.3, 0.3),
        ("shifted by 0.6", 0.6, 0.8),
    )
}


def measured(name: str, number: int) -> dict[str, list[float]]:
    """Distance, its interval and its p-value beside the closest, of a, b and c."""
    n_rows, delta, further = CASES[name]
    rng = np.random.default_rng([number, *name.encode()])
    data = rng.normal(size=(n_rows, 2))
    generated = {
        one: rng.normal((shift, 0.0), 1.0, size=(n_rows, 2))
        for one, shift in (("a", delta), ("b", delta), ("c", further))
    }
    found = sparker.closest(data, generated, seed=number, n_resamples=399, progress=False)
    return {
        one.name: [round(x, 6) for x in (one.distance, *one.interval, one.p_value)]
        for one in found.candidates
    }


def measure(options: argparse.Namespace) -> None:
    """Add the samples that are missing, one of each case in turn, until time is up."""
    done = {(line["case"], line["number"]) for line in lines(options.keep)}
    until = time.time() + options.seconds
    for number in options.samples:
        for name in options.only:
            if time.time() > until:
                return
            if (name, number) not in done:
                add(options.keep, {"case": name, "number": number, **measured(name, number)})


def _share(hits: np.ndarray) -> dict[str, Any]:
    k, n = int(hits.sum()), int(hits.size)
    return {"k": k, "n": n, "interval": [round(end, 4) for end in clopper_pearson(k, n)]}


def summarise(folder: Path) -> dict[str, Any]:
    """How large distances are, how often intervals hold, how often the first is surely closer."""
    by_case: dict[str, dict[int, Any]] = {}
    for line in lines(folder):
        by_case.setdefault(line["case"], {})[line["number"]] = line
    found = {}
    for name, case in CASES.items():
        rows = list(by_case.get(name, {}).values())
        if not rows:
            continue
        a, b, c = (np.array([row[one] for row in rows]) for one in "abc")  # (n, 4)
        truth, mean = case.delta**2, float(a[:, 0].mean())
        distances = np.stack([a, b, c], axis=1)
        p = distances[:, :, 3]
        second = np.argsort(distances[:, :, 0], axis=1)[:, 1]
        sure = p[np.arange(len(p)), second] <= LEVEL
        all_alike = case.delta == case.further
        found[name] = {
            "truth": truth,
            "mean": mean,
            "error": float(a[:, 0].std(ddof=1) / np.sqrt(len(a))) if len(a) > 1 else None,
            "covers_its_mean": _share((a[:, 1] <= mean) & (mean <= a[:, 2])),
            "covers_truth": _share((a[:, 1] <= truth) & (truth <= a[:, 2])),
            "low_end_holds": _share(a[:, 1] <= truth),
            "surely_first_of_three_alike": _share(sure) if all_alike else None,
            "a_before_c": None if all_alike else _share(a[:, 0] < c[:, 0]),
            "c_surely_behind": None if all_alike else _share(p[:, 2] <= LEVEL),
        }
    return {
        "command": "python -m experiments.many.distance --keep FOLDER, then --summarise",
        "versions": versions(),
        "cases": found,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, or sum up what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="folder of the lines")
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--samples", type=numbers, default=range(N_SAMPLES), metavar="A:B")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--summarise", action="store_true", help="write --output, measure nothing")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    if options.summarise:
        options.output.write_text(json.dumps(summarise(options.keep), indent=1) + "\n")
    else:
        measure(options)


if __name__ == "__main__":
    main()
