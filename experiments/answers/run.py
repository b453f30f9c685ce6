"""Whether the answers hold: how many, where, which rows, measured on planted anomalies.

    python -m experiments.answers.run [--data DIR] [--samples 5] [--processes N] [--only PATTERN]

Every sample goes through ``sparker.test`` as users run it. Adds to ``result.json``, sample by
sample: a run that is interrupted goes on where it was. With ``--again`` samples that are there are
explained anew, as the code is now; their toys and p-values stay. ``python -m
experiments.answers.tables`` writes the tables of README.md and docs/answers.md.
"""

import argparse
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from experiments import workers
from experiments.answers.problems import Draw, problems

from sparker.system.atomic import whole_file

RESULT = Path(__file__).parent / "result.json"
FRACTIONS = (0.0, 0.01, 0.02, 0.05, 0.1)
N_REFERENCE, N_DATA, N_TOYS = 2000, 500, 99
BINS = np.linspace(0, 1, 11)
FDR, LEVEL = 0.2, 0.05

Work = tuple[str, float, int, str | None]
"""Problem, share of planted rows, number of the sample, folder of the real tables."""


@cache
def _problems(folder: str | None) -> dict[str, Draw]:
    return problems(None if folder is None else Path(folder))


def samples(work: Work) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reference, data, and which data rows are planted."""
    name, fraction, number, folder = work
    rng = np.random.default_rng([number, round(1000 * fraction), *name.encode()])
    n_planted = round(fraction * N_DATA)
    reference, data = _problems(folder)[name](rng, N_REFERENCE, N_DATA, n_planted)
    # In random order: where a row stands may not help.
    turn = rng.permutation(len(data))
    return reference, data[turn], turn < n_planted


def measured(work: Work) -> tuple[Work, dict[str, Any]]:
    """What is said of one sample, and what is true."""
    import sparker

    reference, data, planted = samples(work)
    result = sparker.test(reference, data, n_toys=N_TOYS, seed=work[2])
    assert result.answers is not None
    found: dict[str, Any] = {
        "n_planted": int(planted.sum()),
        "p_value": result.p_value,
        **_told(result.answers, result.p_value, planted),
        "seconds": {key: round(value, 2) for key, value in result.timings.items()},
    }
    if planted.any():
        first = np.argsort(-_log_ratio(result))[: planted.sum()]
        found["first"]["log ratio"] = _right(first, planted)[1]
    return work, found


def again(work: Work, before: dict[str, Any]) -> tuple[Work, dict[str, Any]]:
    """The same sample explained once more, without making its toys again."""
    from sparker.config import TestConfig
    from sparker.detect import prepare

    reference, data, planted = samples(work)
    experiment = prepare(reference, data, TestConfig(n_toys=N_TOYS, seed=work[2]))
    found = {**before, **_told(experiment.explain(None), before["p_value"], planted)}
    if planted.any():
        found["first"]["log ratio"] = before["first"]["log ratio"]
    return work, found


def _told(answers: Any, p_value: float, planted: np.ndarray) -> dict[str, Any]:
    """The answers of a sample at 5 %, beside what is true."""
    from sparker.findings.bound import AtLeast
    from sparker.findings.explain import agreeing
    from sparker.findings.rows import listed

    significant = p_value <= LEVEL
    bound = agreeing(answers.at_least, p_value, fewer=False) if significant else AtLeast(0, 0)
    probability, ranking = answers.probability, answers.ranking
    place = np.clip(np.digitize(probability, BINS) - 1, 0, len(BINS) - 2)
    return {
        "at_least": bound.too_many,
        "missing_at_least": bound.missing,
        "regions": [_region(region, planted) for region in answers.regions],
        "columns_differ": sum(one.p_value <= LEVEL for one in answers.columns),
        "listed": _right(np.flatnonzero(listed(answers.row_p_values, FDR)), planted),
        "probability": {
            "rows": np.bincount(place, minlength=10).tolist(),
            "sum": [round(x, 3) for x in np.bincount(place, probability, minlength=10)],
            "planted": np.bincount(place, planted, minlength=10).astype(int).tolist(),
        },
        "first": {"ranking": _right(ranking[: planted.sum()], planted)[1]},
    }


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
        "confirmed": region.is_significant(LEVEL),
        "planted": int(planted[list(region.rows)].sum()),
    }


def _log_ratio(result: Any) -> np.ndarray:
    """The log ratio alone, at the width at which all kernels together stand out most."""
    from sparker.engine.ensemble import Ensemble, log_ratio

    p = result.p_by_component_test[result.of_family(result.families[0])]
    beyond = result.t - np.nanmean(result.null_t, axis=0)
    width = int(np.argmax(np.where(p == p.min(), beyond, -np.inf)))
    model = Ensemble(*(array[width] for array in result.models))
    return log_ratio(model, result.transform(result.data))


def wanted(options: argparse.Namespace) -> list[Work]:
    """All samples asked for, problem by problem: a worker's programs are then compiled once."""
    folder = None if options.data is None else str(options.data)
    return [
        (name, fraction, number, folder)
        for name in sorted(problems(options.data))
        if re.search(options.only, name)
        for fraction in FRACTIONS
        for number in range(options.samples)
    ]


def key_of(name: str, fraction: float, number: int) -> str:
    """The name of a sample."""
    return f"{name}; {fraction:g}; {number}"


def main() -> None:
    """Measure what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the real tables")
    parser.add_argument("--samples", type=int, default=5, help="of each problem and share")
    parser.add_argument("--again", action="store_true", help="explain anew what was measured")
    parser.add_argument("--only", default="", help="only problems whose name this pattern finds")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
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
    done = record["samples"]
    work: list[tuple[Work, dict[str, Any] | None]] = [
        (one, done.get(key_of(*one[:3]))) for one in wanted(options)
    ]
    todo = [(one, before) for one, before in work if (before is not None) == options.again]
    with workers.pool(options.processes) as pool:
        each = max(1, min(5, len(todo) // (4 * options.processes)))
        for (name, fraction, number, _), found in pool.imap_unordered(_measured, todo, each):
            record["samples"][key_of(name, fraction, number)] = found
            write(options.output, record)


def _measured(both: tuple[Work, dict[str, Any] | None]) -> tuple[Work, dict[str, Any]]:
    work, before = both
    return measured(work) if before is None else again(work, before)


def write(path: Path, record: dict[str, Any]) -> None:
    """A line for every sample, in order."""
    samples = {key: record["samples"][key] for key in sorted(record["samples"])}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in samples.items()]
    head = json.dumps({key: value for key, value in record.items() if key != "samples"}, indent=1)
    text = head[:-2] + ',\n "samples": {\n' + ",\n".join(lines) + "\n }\n}\n"
    with whole_file(path) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()
