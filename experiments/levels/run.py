"""How often anomaly-free samples are called anomalous, for every null scheme and rule.

    python -m experiments.levels.run [--tests 1000] [--only TEXT] [--skip TEXT] [--processes N]

Writes ``result.json``, or adds to it: for every case, rule and alpha the share of tests with
p <= alpha, its exact 95 % interval, and the two-sided binomial probability of a share that far from
alpha.
"""

import argparse
import json
import multiprocessing
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from experiments.levels.cases import CASES, CONFIG, N_DATA, N_REFERENCE, WIDTHS, WRONG
from scipy.stats import binomtest

from sparker.pvalues import clopper_pearson
from sparker.record import plain, versions

N_CALIBRATION = 99
ALPHAS = (0.01, 0.05, 0.10)


def level(p: np.ndarray, alpha: float) -> dict[str, Any]:
    """The measured level of these p-values at alpha."""
    rejected = int(np.sum(p <= alpha))
    return {
        "alpha": alpha,
        "level": rejected / len(p),
        "interval": clopper_pearson(rejected, len(p)),
        "binomial_p": binomtest(rejected, len(p), alpha).pvalue,
    }


def one_core() -> None:
    """Keep a worker to a core of its own, before it starts JAX: the fits are small."""
    cores = sorted(os.sched_getaffinity(0))
    number = multiprocessing.current_process()._identity[0]
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def some(work: tuple[str, int, int]) -> dict[str, np.ndarray]:
    """The p-values of some tests of one case."""
    name, n_tests, first = work
    case = (CASES | WRONG)[name]
    return case.many(n_tests, N_CALIBRATION + case.set_aside, first)


def many(pool: Any, name: str, n_tests: int, n_parts: int) -> dict[str, np.ndarray]:
    """The p-values of all tests of one case, by rule, made in parts side by side."""
    edges = np.linspace(0, n_tests, n_parts + 1).astype(int)
    parts = pool.map(some, [(name, b - a, a) for a, b in pairwise(edges.tolist())], chunksize=1)
    return {rule: np.concatenate([part[rule] for part in parts]) for rule in parts[0]}


def main() -> None:
    """Run the cases asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=1000)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--skip", help="no cases whose name contains this")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # in the workers, which have a core each
    names = [name for name in CASES | WRONG if options.only in name]
    if options.skip:
        names = [name for name in names if options.skip not in name]
    known = options.output / "result.json"
    cases: dict[str, Any] = json.loads(known.read_text())["cases"] if known.exists() else {}
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, initializer=one_core) as pool:
        for name in names:
            began = time.perf_counter()
            by_rule = many(pool, name, options.tests, options.processes)
            seconds = time.perf_counter() - began
            levels = {rule: [level(p, a) for a in ALPHAS] for rule, p in by_rule.items()}
            kind = "right" if name in CASES else "wrong"
            cases[name] = {
                "kind": kind,
                "n_tests": options.tests,
                "seconds": round(seconds, 1),
                "versions": versions(),
                "levels": levels,
            }
            shown = {rule: [x["level"] for x in found] for rule, found in levels.items()}
            print(f"{name}: {shown} ({seconds:.0f} s)", flush=True)
            save(options, cases)


def save(options: argparse.Namespace, cases: dict[str, Any]) -> None:
    """Write what there is so far."""
    result = {
        "command": "python -m experiments.levels.run --tests N, N the n_tests of a case",
        "n_calibration": N_CALIBRATION,
        "n_reference": N_REFERENCE,
        "n_data": N_DATA,
        "config": plain(CONFIG),
        "widths": plain(WIDTHS),
        "cases": cases,
    }
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "result.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
