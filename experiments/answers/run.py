"""Whether the answers hold: how many, where, which rows, measured on planted anomalies.

    python -m experiments.answers.run [--data DIR] [--samples 5] [--processes N] [--only PATTERN]

Every sample goes through ``sparker.test`` as users run it. Adds to ``result.json``, sample by
sample: a run that is interrupted goes on where it was. ``python -m experiments.answers.tables``
makes the tables of docs/answers.md of it.
"""

import argparse
import json
import multiprocessing
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from experiments.answers.problems import Draw, problems

RESULT = Path(__file__).parent / "result.json"
FRACTIONS = (0.0, 0.01, 0.02, 0.05, 0.1)
N_REFERENCE, N_DATA, N_TOYS = 2000, 500, 99
MOST_OF_TABLE = 0.3
"""Of tables with few rows, at most this share becomes data."""

BINS = np.linspace(0, 1, 11)
FDR = 0.2

Work = tuple[str, float, int, str | None]
"""Problem, share of planted rows, number of the sample, folder of the real tables."""


@cache
def _problems(folder: str | None) -> dict[str, Draw]:
    return problems(None if folder is None else Path(folder))


def measured(work: Work) -> tuple[Work, dict[str, Any]]:
    """What is said of one sample, and what is true."""
    import sparker

    name, fraction, number, folder = work
    rng = np.random.default_rng([number, round(1000 * fraction), *name.encode()])
    n_planted = round(fraction * N_DATA)
    reference, data = _problems(folder)[name](rng, N_REFERENCE, N_DATA, n_planted)
    # In random order: where a row stands may not help.
    turn = rng.permutation(len(data))
    data, planted = data[turn], turn < n_planted
    result = sparker.test(reference, data, n_toys=N_TOYS, seed=number)
    assert result.answers is not None
    found: dict[str, Any] = {
        "n_planted": n_planted,
        "p_value": result.p_value,
        "at_least": result.at_least,
        "missing_at_least": result.missing_at_least,
        "regions": [_region(region, planted) for region in result.answers.regions],
        "columns_differ": sum(one.differs for one in result.answers.columns),
        "seconds": {key: round(value, 2) for key, value in result.timings.items()},
    }
    found["listed"] = _right(np.flatnonzero(result.listed(FDR)), planted)
    probability = result.answers.probability
    place = np.clip(np.digitize(probability, BINS) - 1, 0, len(BINS) - 2)
    found["probability"] = {
        "rows": np.bincount(place, minlength=10).tolist(),
        "sum": [round(x, 3) for x in np.bincount(place, probability, minlength=10)],
        "planted": np.bincount(place, planted, minlength=10).astype(int).tolist(),
    }
    if n_planted:
        found["first"] = {
            "ranking": _right(result.ranking[:n_planted], planted)[1],
            "log ratio": _right(np.argsort(-_log_ratio(result))[:n_planted], planted)[1],
        }
    return work, found


def _right(rows: np.ndarray, planted: np.ndarray) -> tuple[int, int]:
    """How many rows these are, and how many of them are planted."""
    return len(rows), int(planted[rows].sum())


def _region(region: Any, planted: np.ndarray) -> dict[str, Any]:
    return {
        "n_conditions": len(region.conditions),
        "lack": region.lack,
        "n_data": region.n_data,
        "expected": round(region.expected, 3),
        "interval": list(region.interval),
        "p_value": region.p_value,
        "confirmed": region.confirmed,
        "planted": int(planted[list(region.rows)].sum()),
    }


def _log_ratio(result: Any) -> np.ndarray:
    """The log ratio alone, at the width at which all kernels together stand out most."""
    from sparker.engine.ensemble import Ensemble, log_ratio

    p = result.p_by_statistic[:, 0]
    beyond = result.t - np.nanmean(result.null_t, axis=0)
    width = int(np.argmax(np.where(p == p.min(), beyond, -np.inf)))
    model = Ensemble(*(array[width] for array in result.models))
    return log_ratio(model, result.transform(result.data))


def missing(done: dict[str, Any], options: argparse.Namespace) -> Iterator[Work]:
    """The samples that are not there yet."""
    folder = None if options.data is None else str(options.data)
    for number in range(options.samples):
        for name in problems(options.data):
            for fraction in FRACTIONS:
                if re.search(options.only, name) and key_of(name, fraction, number) not in done:
                    yield name, fraction, number, folder


def key_of(name: str, fraction: float, number: int) -> str:
    """The name of a sample."""
    return f"{name}; {fraction:g}; {number}"


def one_core() -> None:
    """Keep a worker to a core of its own, before it starts JAX: the fits are small."""
    cores = sorted(os.sched_getaffinity(0))
    number = multiprocessing.current_process()._identity[0]
    os.sched_setaffinity(0, {cores[number % len(cores)]})


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real tables")
    parser.add_argument("--samples", type=int, default=5, help="of each problem and share")
    parser.add_argument("--only", default="", help="only problems whose name this pattern finds")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"  # in the workers, which have a core each
    os.environ["JAX_PLATFORMS"] = "cpu"
    from sparker.system.versions import versions

    record: dict[str, Any] = {"samples": {}}
    if options.output.exists():
        record = json.loads(options.output.read_text())
    record |= {
        "command": "python -m experiments.answers.run --data DIR",
        "versions": versions(),
        "n_reference": N_REFERENCE,
        "n_data": N_DATA,
        "n_toys": N_TOYS,
        "fdr": FDR,
    }
    # A worker keeps to one problem as long as it can: its programs are compiled once.
    todo = sorted(missing(record["samples"], options), key=lambda work: (work[0], work[1:3]))
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, one_core) as pool:
        each = max(1, min(25, len(todo) // (4 * options.processes)))
        for (name, fraction, number, _), found in pool.imap_unordered(measured, todo, each):
            record["samples"][key_of(name, fraction, number)] = found
            write(options.output, record)


def write(path: Path, record: dict[str, Any]) -> None:
    """A line for every sample, in order."""
    samples = {key: record["samples"][key] for key in sorted(record["samples"])}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in samples.items()]
    head = json.dumps({key: value for key, value in record.items() if key != "samples"}, indent=1)
    text = head[:-2] + ',\n "samples": {\n' + ",\n".join(lines) + "\n }\n}\n"
    temporary = path.with_suffix(".part")
    temporary.write_text(text)
    temporary.replace(path)


if __name__ == "__main__":
    main()
