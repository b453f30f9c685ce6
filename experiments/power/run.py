"""The power of the exploring test, of its parts, and of exact MMD, on the same experiments.

    python -m experiments.power.run                      # the toys
    python -m experiments.power.run --data DIR           # and real embeddings, see README.md
    python -m experiments.power.run --quick              # a minute on a laptop, into quick.json

One setting for everything; each row of the table is one way to depart from it.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from experiments.power import mmd
from experiments.power.problems import Problem, embeddings, toys

from sparker import FitConfig, WidthConfig, exploring, geometric, independent
from sparker.combine import Combination, minimum, minimum_and_product
from sparker.pvalues import clopper_pearson, p_values, rank
from sparker.record import plain, versions
from sparker.statistic import KernelStatistic

ALPHA = 0.05
SEED = 0
N_TOYS = (400, 200, 200)
N_EMBEDDED = (200, 100, 100)
QUICK = (60, 20, 20)
"""Experiments that calibrate, that measure the level, and of each signal."""
HERE = Path(__file__).parent

Reader = Callable[[np.ndarray], np.ndarray]  # evidence (n, m, r) -> (n, columns)


class Setting(NamedTuple):
    """One way to fit."""

    config: FitConfig
    widths: WidthConfig


EXPLORING = Setting(exploring()["config"], exploring()["widths"])


def but(*, widths: dict[str, Any] | None = None, **config: Any) -> Setting:
    """The exploring setting with something else."""
    return Setting(replace(EXPLORING.config, **config), replace(EXPLORING.widths, **(widths or {})))


DEFAULT = "exploring"
SETTINGS = {
    DEFAULT: EXPLORING,
    "no SoftMax": but(competition=independent),
    "no exploration": but(widths={"annealing": geometric}),
    "sparker's default": Setting(FitConfig(), WidthConfig()),
    "clip 20": but(clip=20.0),
    "1 kernel": but(n_kernels=1),
    "10 kernels": but(n_kernels=10),
    "1,000 steps": but(widths={"steps": 1000}),
    "1,024 candidates": but(n_candidates=1024),
    "5 widths": but(widths={"n_widths": 5}),
}


def some(*readings: int) -> Reader:
    """Only these readings of every width."""
    return lambda evidence: evidence[..., list(readings)].reshape(len(evidence), -1)


def everything(evidence: np.ndarray) -> np.ndarray:
    """All readings."""
    return evidence.reshape(len(evidence), -1)


class Verdict(NamedTuple):
    """One way to make a p-value of the same fits."""

    read: Reader
    combine: Combination = minimum
    graded: bool = True


VERDICTS = {
    "all kernels only (t)": Verdict(some(0)),
    "strongest kernel only": Verdict(some(1)),
    "all and strongest kernel": Verdict(some(0, 1)),
    "scan only": Verdict(some(2, 3, 4)),
    "without all kernels (t)": Verdict(some(1, 2, 3, 4)),
    "without strongest kernel": Verdict(some(0, 2, 3, 4)),
    "without lonely": Verdict(some(0, 1, 3, 4)),
    "without bump": Verdict(some(0, 1, 2, 4)),
    "without shape": Verdict(some(0, 1, 2, 3)),
    "minimum of ranks, not graded": Verdict(everything, graded=False),
    "paper's combination": Verdict(everything, minimum_and_product, graded=False),
}


def p_value(row: np.ndarray, null: np.ndarray, verdict: Verdict) -> float:
    """Of one experiment among anomaly-free ones."""
    table = np.concatenate([row[None], null])
    if verdict.graded:
        return rank(table, verdict.combine).p_value
    return float(p_values(verdict.combine(p_values(table)))[0])


def power(null: np.ndarray, tested: np.ndarray, verdict: Verdict) -> dict[str, Any]:
    """How often experiments are found at ALPHA, with the exact 68 % interval."""
    null, tested = verdict.read(null), verdict.read(tested)
    found = int(sum(p_value(row, null, verdict) <= ALPHA for row in tested))
    low, high = clopper_pearson(found, len(tested), 0.68)
    share = round(found / len(tested), 4)
    return {"power": share, "low": round(low, 4), "high": round(high, 4), "n": len(tested)}


def evidence(setting: Setting, problem: Problem, signal: str | None, numbers: range) -> np.ndarray:
    """The readings of experiments, (n, m, r)."""
    prepared = KernelStatistic(config=setting.config, widths=setting.widths).prepare(problem.basis)
    chunk = prepared.chunk_size(problem.draw(signal, numbers[:1]), len(numbers))
    chunks = prepared.chunks(SEED, lambda some: problem.draw(signal, some), numbers, chunk)
    return np.concatenate([outcome.evidence for _, outcome in chunks])


def judge(
    problem: Problem,
    run: Callable[[str | None, range], np.ndarray],
    verdicts: dict[str, Verdict],
    n: tuple[int, int, int],
) -> dict[str, dict[str, Any]]:
    """All verdicts on all signals of a problem; "none" is the measured level."""
    n_null, n_level, n_signal = n
    anomaly_free = run(None, range(n_null + n_level))
    null, level = anomaly_free[:n_null], anomaly_free[n_null:]
    table: dict[str, dict[str, Any]] = {name: {} for name in verdicts}
    for signal in ("none", *problem.signals):
        tested = level if signal == "none" else run(signal, range(n_signal))
        for name, verdict in verdicts.items():
            table[name][signal] = power(null, tested, verdict)
    return table


def oracle(problem: Problem, n: tuple[int, int, int]) -> dict[str, Any]:
    """The power of the likelihood ratio with the signal known."""
    assert problem.oracle is not None
    table = {}
    for signal in problem.signals:
        null, tested = problem.oracle(signal, range(max(n[0], n[2])))
        table[signal] = power(
            null[: n[0], None, None], tested[: n[2], None, None], Verdict(everything)
        )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and add it to the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of embeddings")
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--problems", nargs="*", help="names of problems, all if left out")
    parser.add_argument("--quick", action="store_true", help="few experiments, exploring only")
    parser.add_argument(
        "--experiments", nargs=3, type=int, help="that calibrate, for the level, of each signal"
    )
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    output = options.output or HERE / ("quick.json" if options.quick else "result.json")
    settings = [DEFAULT] if options.quick else options.settings
    problems = toys()[:2] if options.quick else toys()
    if options.data:
        problems += embeddings(options.data)
    if options.problems is not None:
        problems = [problem for problem in problems if problem.name in options.problems]
    result: dict[str, Any] = {"alpha": ALPHA, "seed": SEED, "problems": {}}
    if output.exists():
        result = json.loads(output.read_text())
    for problem in problems:
        n = QUICK if options.quick else N_EMBEDDED if problem.rows else N_TOYS
        n = tuple(options.experiments or n)
        began = time.perf_counter()
        found: dict[str, Any] = {}
        large = len(problem.basis) > 50_000 or problem.oracle is None
        for name in settings[:1] if large else settings:
            verdicts = {name: Verdict(everything), **(VERDICTS if name == DEFAULT else {})}
            found |= judge(problem, partial(evidence, SETTINGS[name], problem), verdicts, n)
        if problem.oracle is not None:
            found["oracle"] = oracle(problem, n)
        else:
            way = {"exact MMD": Verdict(everything)}
            found |= judge(problem, partial(mmd.statistic, problem), way, n)
        result["problems"][problem.name] = {
            "experiments that calibrate, for the level, of each signal": n,
            "settings": {name: plain(SETTINGS[name]._asdict()) for name in settings},
            "hardware": jax.devices()[0].device_kind,
            "versions": versions(),
            "seconds": round(time.perf_counter() - began, 1),
            "power": found,
        }
        output.write_text(json.dumps(result, indent=1) + "\n")
        show(problem.name, found)


def show(name: str, found: dict[str, dict[str, Any]]) -> None:
    """One table on the screen."""
    signals = list(next(iter(found.values())))
    print(f"\n{name}: {', '.join(signals)}")
    for way, table in found.items():
        cells = (f"{table[s]['power']:.3f}" if s in table else "  -  " for s in signals)
        print("  ", *cells, way, flush=True)


if __name__ == "__main__":
    main()
