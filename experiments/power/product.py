"""The power of the product as users run it: two tables, relabelled, beside every other test.

    python -m experiments.power.product --keep FOLDER                 # what needs no files
    python -m experiments.power.product --data DIR --keep FOLDER      # and real tables
    python -m experiments.power.product --keep FOLDER --summarise     # product.json, of all lines
    python -m experiments.power.product --keep NEW --summarise --add  # what is new in its place

Every sample goes through ``sparker.test``, and its toys are relabellings of its rows, anomalies
and all; those of the paper's toys that are called so have a simulator and an expected number of
events instead. All
methods see the same samples and the same relabellings. Lines that are in the folder are not
measured again, so a run can be stopped, continued and split: ``--only``, ``--methods``,
``--samples``, ``--seconds``.
"""

import argparse
import json
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from experiments import workers
from experiments.power.product_lines import Line, Work, add, key_of, lines
from experiments.power.product_problem import Problem, sample
from experiments.power.product_problems import problems
from experiments.power.product_summary import added, as_text, summary

import sparker
from sparker.calibration.combine import Combination, minimum
from sparker.statistics import (
    MMD,
    NPLM,
    AndersonDarling,
    Frechet,
    KernelStatistic,
    KolmogorovSmirnov,
    Mahalanobis,
    Statistic,
)
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "product.json"
DEFAULT = "default"
N_TOYS, FEWER_TOYS, FEWEST_TOYS = 300, 99, 19


class Method(NamedTuple):
    """A test, and what it is for."""

    statistic: Statistic | None = None
    """None: as a user gets it who asks for nothing."""
    combine: Combination = minimum
    """Of its own readings, where it has several."""
    one_column: bool = False
    most_rows: int | None = None

    def suits(self, problem: Problem) -> bool:
        """Whether it can be had for this problem."""
        n_rows = problem.n_reference + problem.n_data
        return self.one_column <= problem.one_column and n_rows <= (self.most_rows or n_rows)


METHODS = {
    DEFAULT: Method(),
    "kernels and scans": Method(KernelStatistic()),
    "exact MMD": Method(MMD(n_bandwidths=5, fused=False), most_rows=20_000),
    "MMD-FUSE": Method(MMD()),
    "NPLM": Method(NPLM()),
    "Mahalanobis": Method(Mahalanobis()),
    "Frechet": Method(Frechet()),
    "Kolmogorov-Smirnov": Method(KolmogorovSmirnov(), one_column=True),
    "Anderson-Darling": Method(AndersonDarling(), one_column=True),
}
"""MMD is exact up to 20,000 rows only, and left out beyond."""


def measured(work: Work, folder: Path | None) -> Line:
    """What a method says of a sample, and what it costs."""
    problem = problems(folder)[work.problem]
    reference, data = sample(problem, work.sample)
    method = METHODS[work.method]
    asked = dict(problem.settings)
    if method.statistic is not None:
        asked |= {"statistic": method.statistic, "combine": method.combine}
    with warnings.catch_warnings():
        # Columns that are left out and the like: known, and the same for every sample.
        warnings.simplefilter("ignore", sparker.DataWarning)
        result = sparker.test(
            reference,
            data,
            seed=work.sample,
            n_toys=work.n_toys,
            explain=False,
            progress=False,
            **asked,
        )
    return {
        **work._asdict(),
        "p_value": float(result.p_value),
        "families": dict(zip(result.families, result.p_by_family.tolist(), strict=True)),
        "n_features": data.shape[1],
        "seconds": {name: round(seconds, 3) for name, seconds in result.timings.items()},
        "versions": versions(),
    }


def attempted(work: Work, folder: Path | None, until: float) -> Line | None:
    """A line; or what went wrong, which must not end a long run; or nothing, when time is up."""
    if time.time() > until:
        return None
    try:
        return measured(work, folder)
    except Exception:
        return {**work._asdict(), "error": traceback.format_exc()}


def wanted(options: argparse.Namespace) -> Iterator[Work]:
    """What is asked for, a problem at a time, whose programs are then compiled once.

    All methods of a sample before the next: where time is up, they have seen the same samples.
    """
    n_toys, *fewer = options.toys
    for problem in problems(options.data).values():
        if problem.name not in options.only or (problem.needs_files and options.data is None):
            continue
        for number in options.samples:
            for name in options.methods:
                if METHODS[name].suits(problem):
                    yield Work(problem.name, name, number, n_toys)
            if DEFAULT in options.methods:
                yield from (Work(problem.name, DEFAULT, number, few) for few in fewer)


def tried(todo: Sequence[Work], options: argparse.Namespace) -> Iterator[Line]:
    """The lines of all that is to be done, as they come."""
    until = time.time() + options.seconds
    attempt = partial(attempted, folder=options.data, until=until)
    if options.workers == 1:  # on all cores, or the accelerator
        yield from filter(None, map(attempt, todo))
        return
    with workers.pool(options.workers) as pool:
        # When time is up the rest is handed through, and samples under way are finished.
        yield from filter(None, pool.imap_unordered(attempt, todo))


def measure(options: argparse.Namespace) -> None:
    """Add the lines that are missing."""
    done = {key_of(line) for line in lines(options.keep)}
    todo = [work for work in wanted(options) if work not in done]
    n_failed = n_added = 0
    for line in tried(todo, options):
        name = "{problem}, {method}, sample {sample}, {n_toys} toys".format(**line)
        if "error" in line:
            n_failed += 1
            print(f"{name} failed:\n{line['error']}", file=sys.stderr, flush=True)
            continue
        add(options.keep, line)
        n_added += 1
        print(f"{name}: p = {line['p_value']:.4f}, {line['seconds']['total']:.1f} s", flush=True)
    print(f"{n_added} of {len(todo)} added")
    if n_failed:
        raise SystemExit(f"{n_failed} failed; the same command tries them again")


def numbers(text: str) -> range:
    """Sample numbers, ``A:B`` without B, or ``B`` alone from 0 on."""
    first, _, last = text.rpartition(":")
    return range(int(first or 0), int(last))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, or sum up what is there."""
    names = list(problems())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, required=True, help="folder of the lines")
    parser.add_argument("--data", type=Path, help="folder of the real tables")
    parser.add_argument(
        "--only", nargs="+", default=names, choices=names, metavar="PROBLEM", help="by name"
    )
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--samples", type=numbers, default=range(100), metavar="A:B")
    parser.add_argument(
        "--toys",
        nargs="+",
        type=int,
        default=[N_TOYS, FEWER_TOYS],
        help="of every method; further numbers are for the default alone",
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--workers", type=int, default=1, help="processes, with a core each")
    parser.add_argument("--summarise", action="store_true", help="write --output, measure nothing")
    parser.add_argument(
        "--add", action="store_true", help="keep what --output has of other problems and methods"
    )
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    if min(options.toys) < FEWEST_TOYS:
        parser.error(f"fewer than {FEWEST_TOYS} toys cannot say p <= 5 %")
    if options.summarise:
        found = summary(lines(options.keep), problems())
        if options.add:
            found = added(json.loads(options.output.read_text()), found)
        options.output.write_text(as_text(found))
    else:
        measure(options)


if __name__ == "__main__":
    main()
