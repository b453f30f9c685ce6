"""Many samples against one reference: levels, false discoveries and power.

    python -m experiments.many.run --keep FOLDER [--only NAME ...] [--tables A:B] [--seconds S]
    python -m experiments.many.run --keep FOLDER --summarise        # result.json, of all lines

A table is one reference and ten samples, of which none, one or three are anomalous. It is tested by
``sparker.test_many``, once with toys for each sample and once with toys that all share. The default
statistic is the first half; the other half is the difference of means, with a reference no larger
than a sample: what is peculiar to the reference then shows in all samples alike, and p-values
depend on each other as much as they can. Lines that are in the folder are not made again, so a run
can be stopped, continued and split. ``python -m experiments.many.tables`` writes the tables of
docs/many.md.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.power.product import numbers
from experiments.power.product_lines import add, lines

import sparker
from sparker.calibration.false_discovery import q_values
from sparker.calibration.pvalues import clopper_pearson
from sparker.shared import TABLE
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "result.json"
N_SAMPLES, N_COMPARED = 10, 99
ANOMALOUS = (0, 1, 3)
RATES = (0.05, 0.1, 0.2)
LEVELS = (0.01, 0.05, 0.1, 0.2)
N_TABLES = 5_000


class Case(NamedTuple):
    """What is tested, and how."""

    shared: bool
    n_reference: int  # that samples are compared with
    n_data: int
    anomalous: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    settings: dict[str, Any]


def _cluster(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    """Five rows of fifty close together, inside the distribution."""
    rows[:5] = [1.5, 1.5] + 0.1 * rng.normal(size=(5, 2))
    return rows


def _shift(rng: np.random.Generator, rows: np.ndarray) -> np.ndarray:
    return rows + 0.45


def difference_of_means(rng: np.random.Generator, sample: Any) -> float:
    """How far the two means are apart."""
    points = np.asarray(sample.points)
    data, reference = (
        weight @ points / weight.sum()
        for weight in map(np.asarray, (sample.data_weight, sample.reference_weight))
    )
    return float(np.linalg.norm(data - reference))


MEANS = {"statistic": difference_of_means, "preprocess": sparker.unchanged}
CASES = {
    "own toys": Case(False, 400, 50, _cluster, {}),
    "shared toys": Case(True, 400, 50, _cluster, {}),
    "own toys, means": Case(False, 50, 50, _shift, MEANS),
    "shared toys, means": Case(True, 50, 50, _shift, MEANS),
}


def ranks(name: str, n_anomalous: int, number: int) -> list[int]:
    """The places of all samples among their toys; the anomalous ones come first."""
    case = CASES[name]
    rng = np.random.default_rng([number, n_anomalous, *name.encode()])
    n_toys = N_COMPARED + TABLE * case.shared
    n_reference = case.n_reference + n_toys * case.n_data * case.shared
    reference = rng.normal(size=(n_reference, 2))
    samples = [rng.normal(size=(case.n_data, 2)) for _ in range(N_SAMPLES)]
    samples[:n_anomalous] = [case.anomalous(rng, rows) for rows in samples[:n_anomalous]]
    found = sparker.test_many(
        reference,
        samples,
        shared=case.shared,
        fdr=0.1,
        n_toys=n_toys,
        seed=number,
        explain=False,
        progress=False,
        **case.settings,
    )
    return [round(one.p_value * (N_COMPARED + 1)) for one in found]


def measure(options: argparse.Namespace) -> None:
    """Add the tables that are missing, a few of each kind in turn, until time is up."""
    done = {(line["case"], line["anomalous"], line["number"]) for line in lines(options.keep)}
    until = time.time() + options.seconds
    for number in options.tables:
        for name in options.only:
            for n_anomalous in options.anomalous:
                if time.time() > until:
                    return
                if (name, n_anomalous, number) not in done:
                    found = ranks(name, n_anomalous, number)
                    kind = {"case": name, "anomalous": n_anomalous, "number": number}
                    add(options.keep, {**kind, "ranks": found})


def _share(hits: np.ndarray) -> dict[str, Any]:
    k, n = int(hits.sum()), int(hits.size)
    return {"k": k, "n": n, "interval": [round(end, 4) for end in clopper_pearson(k, n)]}


def _mean(values: np.ndarray) -> dict[str, Any]:
    """A mean of tables, which are independent, and its standard error."""
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(values.mean()), "error": error, "tables": len(values)}


def summarise(folder: Path) -> dict[str, Any]:
    """What the tables of each kind showed."""
    by_kind: dict[tuple[str, int], dict[int, list[int]]] = {}
    for line in lines(folder):
        kind = by_kind.setdefault((line["case"], line["anomalous"]), {})
        kind[line["number"]] = line["ranks"]
    found: dict[str, Any] = {}
    for name in CASES:
        found[name] = {}
        for n_anomalous in ANOMALOUS:
            rows = by_kind.get((name, n_anomalous))
            if not rows:
                continue
            p = np.array(list(rows.values())) / (N_COMPARED + 1)  # (tables, samples)
            q = np.stack([q_values(row) for row in p])
            fine = np.arange(N_SAMPLES) >= n_anomalous
            by_rate = {}
            for rate in RATES:
                listed = q <= rate
                false = listed[:, fine].sum(1) / np.maximum(listed.sum(1), 1)
                by_rate[str(rate)] = {
                    "false_discoveries": _mean(false),
                    "any": _share(listed.any(1)),
                    "power": _mean(listed[:, ~fine].mean(1)) if n_anomalous else None,
                }
            # Samples of a table depend on each other: the error is that of tables.
            found[name][str(n_anomalous)] = {
                "level": {str(x): _mean((p[:, fine] <= x).mean(1)) for x in LEVELS},
                "rates": by_rate,
            }
    return {
        "command": "python -m experiments.many.run --keep FOLDER, then --summarise",
        "versions": versions(),
        "settings": {"samples": N_SAMPLES, "toys compared": N_COMPARED},
        "cases": found,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, or sum up what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, required=True, help="folder of the lines")
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--anomalous", nargs="+", type=int, default=ANOMALOUS, choices=ANOMALOUS)
    parser.add_argument("--tables", type=numbers, default=range(N_TABLES), metavar="A:B")
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
