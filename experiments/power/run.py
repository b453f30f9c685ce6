"""The power of the default, of kernels and scans and their parts, of other tests; by a simulator.

    python -m experiments.power.run                      # the toys
    python -m experiments.power.run --data DIR           # and real embeddings, see README.md
    python -m experiments.power.run --quick              # a minute on a laptop, into quick.json
    python -m experiments.power.run --keep FOLDER ...    # judges anew what was fitted before

One setting for everything; each row of the table is one way to depart from it, or another test.
"""

import argparse
import dataclasses
import functools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.power.kept import kept
from experiments.power.problems import Problem, embeddings, on_pool, toys

from sparker import FitConfig, WidthConfig
from sparker.calibration.combine import Combination, harmonic, minimum, minimum_and_product
from sparker.calibration.pvalues import clopper_pearson, graded_p_values, graded_score, p_values
from sparker.calibration.settings import plain
from sparker.engine import Toys, TwoSample, geometric, independent
from sparker.presets import annealed
from sparker.statistics import (
    MMD,
    NPLM,
    AndersonDarling,
    ClassifierTwoSample,
    Frechet,
    KolmogorovSmirnov,
    Mahalanobis,
    Portfolio,
)
from sparker.statistics.contract import Chunk, Prepared, Statistic, families_of
from sparker.statistics.kernels import KernelStatistic

ALPHA = 0.05
SEED = 0
N_EXPERIMENTS = (400, 200, 200)
QUICK = (60, 20, 20)
"""Experiments that calibrate, that measure the level, and of each signal."""
HERE = Path(__file__).parent

Reader = Callable[[np.ndarray], np.ndarray]  # statistics (n, m, r) -> (n, columns)


class Setting(NamedTuple):
    """One way to fit, and what is made of it."""

    config: FitConfig = FitConfig()
    widths: WidthConfig = WidthConfig()
    combine: Combination = minimum
    on_pool: bool = False

    @property
    def statistic(self) -> Statistic:
        """What is evaluated."""
        return KernelStatistic(config=self.config, widths=self.widths)


class Peer(NamedTuple):
    """A test as it is; columns, where there are several, are combined by their smallest p-value."""

    statistic: Statistic
    most_features: int | None = None
    most_rows: int | None = None
    combine: Combination = minimum
    on_pool: bool = True
    """Whether experiments share the points of embeddings, and most of the work on them; SparKer
    looks at shared points in another way."""


def but(*, widths: dict[str, Any] | None = None, **config: Any) -> Setting:
    """The kernels with something else."""
    return Setting(FitConfig(**config), WidthConfig(**(widths or {})))


DEFAULT = "kernels and scans"
SETTINGS = {
    DEFAULT: Setting(),
    "no exploration, geometric annealing": but(widths={"annealing": geometric}),
    "no exploration, 1,000 steps": but(widths={"annealing": geometric, "steps": 1000}),
    "annealed": Setting(**annealed()),
    "no SoftMax": but(competition=independent),
    "clip 20": but(clip=20.0),
    "1 kernel": but(n_kernels=1),
    "10 kernels": but(n_kernels=10),
    "1,000 steps": but(widths={"steps": 1000}),
    "5 widths": but(widths={"n_widths": 5}),
    "128 candidates": but(n_candidates=128),
    "2,048 candidates": but(n_candidates=2048),
}


WHOLE = "default"
PEERS = {
    WHOLE: Peer(Portfolio(kernels=KernelStatistic()), combine=harmonic, on_pool=False),
    "exact MMD": Peer(MMD(n_bandwidths=5, fused=False), most_rows=20_000),
    "NPLM": Peer(NPLM(), most_rows=50_000),
    "MMD-FUSE": Peer(MMD()),
    "Frechet": Peer(Frechet()),
    "Mahalanobis": Peer(Mahalanobis()),
    "Kolmogorov-Smirnov": Peer(KolmogorovSmirnov(), most_features=1),
    "Anderson-Darling": Peer(AndersonDarling(), most_features=1),
    "C2ST": Peer(ClassifierTwoSample(), most_rows=50_000),
}
"""C2ST is slow on the toys: give it fewer --experiments."""
WAYS: dict[str, Setting | Peer] = SETTINGS | PEERS


def some(*families: int) -> Reader:
    """Only these statistics of every width."""
    return lambda values: values[..., list(families)].reshape(len(values), -1)


def everything(values: np.ndarray) -> np.ndarray:
    """All statistics."""
    return values.reshape(len(values), -1)


class Verdict(NamedTuple):
    """One way to make a p-value of the same fits."""

    read: Reader
    combine: Combination = minimum
    graded: bool = True
    families: tuple[str, ...] = ()
    """Of all columns, where they are combined in two stages."""

    def score(self, table: np.ndarray, ranked: np.ndarray, graded: np.ndarray) -> np.ndarray:
        """Of every row, from its statistics and their p-values, (n, m, r) each."""
        if self.families:
            return graded_score(self.combine, self.read(table), self.families)
        return self.combine(self.read(graded if self.graded else ranked))


VERDICTS = {
    "all kernels only (t)": Verdict(some(0)),
    "isolated only": Verdict(some(1)),
    "bump only": Verdict(some(2)),
    "shape only": Verdict(some(3)),
    "scan only": Verdict(some(1, 2, 3)),
    "without isolated": Verdict(some(0, 2, 3)),
    "without bump": Verdict(some(0, 1, 3)),
    "without shape": Verdict(some(0, 1, 2)),
    "minimum of ranks, not graded": Verdict(everything, graded=False),
    "paper's combination": Verdict(everything, minimum_and_product, graded=False),
}


def verdicts(name: str, families: tuple[str, ...] = ()) -> dict[str, Verdict]:
    """What is made of the fits of a setting: of the kernels and scans everything that can be."""
    staged = families if name == WHOLE else ()
    whole = {name: Verdict(everything, WAYS[name].combine, families=staged)}
    if name in PEERS:
        return whole
    return whole | (VERDICTS if name == DEFAULT else {f"{name}, t only": Verdict(some(0))})


def power(
    null: np.ndarray, tested: np.ndarray, verdicts: dict[str, Verdict]
) -> dict[str, dict[str, Any]]:  # (B, m, r), (n, m, r)
    """How often experiments are found at ALPHA by each verdict, with the exact 68 % interval.

    As ``pvalues.rank`` does for one test; columns are ranked once for all verdicts.
    """
    found = dict.fromkeys(verdicts, 0)
    for row in tested:
        table = np.concatenate([row[None], null])
        flat = table.reshape(len(table), -1)
        ranked, graded = (of(flat).reshape(table.shape) for of in (p_values, graded_p_values))
        for name, verdict in verdicts.items():
            found[name] += p_values(verdict.score(table, ranked, graded))[0] <= ALPHA
    return {name: _share(int(k), len(tested)) for name, k in found.items()}


def _share(k: int, n: int) -> dict[str, Any]:
    low, high = clopper_pearson(k, n, 0.68)
    return {"power": round(k / n, 4), "low": round(low, 4), "high": round(high, 4), "n": n}


def measured(
    way: Setting | Peer, problem: Problem, signal: str | None, numbers: range
) -> np.ndarray:
    """The statistics of experiments, (n, m, r)."""

    def draw(some: Sequence[int]) -> TwoSample:
        if way.on_pool and problem.points is not None:
            return on_pool(problem, [(signal, number) for number in some])
        return problem.draw(signal, some)

    experiments = Toys(draw)
    prepared = prepare(way, problem)
    chunk = prepared.chunk_size(experiments, numbers[0], len(numbers))
    chunks = prepared.chunks(SEED, experiments, numbers, chunk)
    return by_family(prepared, chunks)


def prepare(way: Setting | Peer, problem: Problem) -> Prepared:
    """A statistic with its settings fixed by anomaly-free rows."""
    return way.statistic.prepare(problem.basis, problem.transform)


def by_family(prepared: Prepared, chunks: Iterable[Chunk]) -> np.ndarray:  # (n, m, r)
    """What kernels read off, r statistics at each of m widths; of others, m numbers of one kind."""
    values = np.concatenate([np.asarray(chunk.statistics) for chunk in chunks])
    counts = Counter(families_of(prepared.component_tests)).values()
    n_families = max(1, len(counts)) if len(set(counts)) <= 1 else 1
    return values.reshape(len(values), -1, n_families)


def judge(
    problem: Problem,
    run: Callable[[str | None, int], np.ndarray],
    verdicts: dict[str, Verdict],
    n: tuple[int, int, int],
) -> dict[str, dict[str, Any]]:
    """All verdicts on all signals of a problem; "none" is the measured level."""
    n_null, n_level, n_signal = n
    anomaly_free = run(None, n_null + n_level)
    null, level = anomaly_free[:n_null], anomaly_free[n_null:]
    table: dict[str, dict[str, Any]] = {name: {} for name in verdicts}
    for signal in ("none", *problem.signals):
        tested = level if signal == "none" else run(signal, n_signal)
        for name, share in power(null, tested, verdicts).items():
            table[name][signal] = share
    return table


def oracle(problem: Problem, n: tuple[int, int, int]) -> dict[str, Any]:
    """The power of the likelihood ratio with the signal known."""
    assert problem.oracle is not None
    table = {}
    for signal in problem.signals:
        values = problem.oracle(signal, range(max(n[0], n[2])))
        null, tested = (column[:, None, None] for column in values)
        table |= {signal: power(null[: n[0]], tested[: n[2]], {"": Verdict(everything)})[""]}
    return table


def remembered(problem: Problem) -> Problem:
    """A small problem that keeps its experiments for the next setting."""
    draw = functools.cache(lambda signal, numbers: problem.draw(signal, numbers))
    return dataclasses.replace(problem, draw=lambda signal, numbers: draw(signal, tuple(numbers)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for and add it to the result: kernels and scans first, then the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of embeddings")
    parser.add_argument("--settings", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--problems", nargs="*", help="names of problems, all if left out")
    parser.add_argument(
        "--quick", action="store_true", help="few experiments, the kernels and scans"
    )
    parser.add_argument(
        "--experiments", nargs=3, type=int, help="that calibrate, for the level, of each signal"
    )
    parser.add_argument("--keep", type=Path, help="folder of statistics, to judge them again")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    output = options.output or HERE / ("quick.json" if options.quick else "result.json")
    settings = [DEFAULT] if options.quick else options.settings
    small, large = [remembered(problem) for problem in toys()[:2]], toys()[2:]
    problems = small if options.quick else small + large
    if options.data:
        problems += embeddings(options.data)
    if options.problems is not None:
        problems = [problem for problem in problems if problem.name in options.problems]
    result: dict[str, Any] = {"alpha": ALPHA, "seed": SEED, "problems": {}}
    if output.exists():
        result = json.loads(output.read_text())

    def add(problem: Problem, name: str, n: tuple[int, int, int]) -> None:
        began = time.perf_counter()
        way = WAYS[name]
        made: dict[str, Any] = {}

        def run(signal: str | None, n: int) -> np.ndarray:
            nonlocal made
            label = (problem.name, name, signal or "none")
            fit = partial(measured, way, problem, signal)
            found, made = kept(options.keep, label, way.statistic, n, fit)
            return found

        families = tuple(families_of(prepare(way, problem).component_tests))
        found = judge(problem, run, verdicts(name, families), n)
        if name == DEFAULT and problem.oracle is not None:
            found["oracle"] = oracle(problem, n)
        known = result["problems"].setdefault(problem.name, {"power": {}, "runs": {}})
        known["power"] |= found
        known["runs"][name] = {
            "experiments that calibrate, for the level, of each signal": n,
            **made,
            "combine": plain(way.combine),
            "seconds": round(time.perf_counter() - began, 1),
        }
        output.write_text(json.dumps(result, indent=1) + "\n")
        show(problem.name, found)

    for name in settings:
        for problem in problems:
            if (
                suits(PEERS[name], problem)
                if name in PEERS
                else name == DEFAULT or problem in small
            ):
                n = QUICK if options.quick else N_EXPERIMENTS
                add(problem, name, tuple(options.experiments or n))


def suits(peer: Peer, problem: Problem) -> bool:
    """Whether this test can be had for this problem."""
    n_rows, n_features = problem.draw(None, [0]).points.shape[-2:]
    return n_features <= (peer.most_features or n_features) and n_rows <= (peer.most_rows or n_rows)


def show(name: str, found: dict[str, dict[str, Any]]) -> None:
    """One table on the screen."""
    signals = list(next(iter(found.values())))
    print(f"\n{name}: {', '.join(signals)}")
    for way, table in found.items():
        cells = (f"{table[s]['power']:.3f}" if s in table else "  -  " for s in signals)
        print("  ", *cells, way, flush=True)


if __name__ == "__main__":
    main()
