"""Powers of what was measured: shares of samples found, with exact intervals."""

import json
import re
from collections.abc import Iterable
from statistics import median
from typing import Any

from experiments.power.product_lines import Line, key_of
from experiments.power.product_problem import Problem
from experiments.record import share

LEVELS = {"5 %": 0.05, "1 %": 0.01}
ROUNDING = 1e-9
"""A p-value of 5 / 100 is not above 5 %, however it was computed."""

COMMAND = (
    "python -m experiments.power.product --data DIR --keep FOLDER"
    " && python -m experiments.power.product --keep FOLDER --summarise"
)


def summary(lines: Iterable[Line], problems: dict[str, Problem]) -> dict[str, Any]:
    """Of every problem, number of toys and method: powers, numbers of samples, and seconds."""
    measured = {key_of(line): line for line in lines if line["problem"] in problems}
    grouped: dict[str, dict[int, dict[str, list[Line]]]] = {}
    for key, line in sorted(measured.items()):
        of_toys = grouped.setdefault(key.problem, {}).setdefault(key.n_toys, {})
        of_toys.setdefault(key.method, []).append(line)
    made = [line["versions"] for line in measured.values()]
    return {
        "command": COMMAND,
        "hardware": sorted({versions["device"] for versions in made}),
        "versions": _different(made),
        "problems": {
            name: {
                **_described(problems[name]),
                "n_features": next(iter(next(iter(by_toys.values())).values()))[0]["n_features"],
                "toys": {
                    str(n_toys): {method: _judged(some) for method, some in by_method.items()}
                    for n_toys, by_method in by_toys.items()
                },
            }
            for name in problems
            if (by_toys := grouped.get(name))
        },
    }


def added(known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """What is known, with what is new in its place or beside it, cell by cell."""
    problems = dict(known["problems"])
    for name, found in new["problems"].items():
        cells = dict(problems.get(name, found)["toys"])
        for n_toys, by_method in found["toys"].items():
            cells[n_toys] = dict(sorted((cells.get(n_toys, {}) | by_method).items()))
        problems[name] = found | {"toys": cells}
    return known | {
        "hardware": sorted({*known["hardware"], *new["hardware"]}),
        "versions": _different([*known["versions"], *new["versions"]]),
        "problems": problems,
    }


def as_text(result: dict[str, Any]) -> str:
    """JSON with a line for each power."""
    text = json.dumps(result, indent=1)
    return re.sub(r"\{[^{}]*\}", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text) + "\n"


def _described(problem: Problem) -> dict[str, Any]:
    fields = ("table", "near_null", "n_reference", "n_data")
    return {field: getattr(problem, field) for field in fields}


def _judged(lines: list[Line]) -> dict[str, Any]:
    """Powers at all levels that so many toys can reach."""
    smallest = 1 / (lines[0]["n_toys"] + 1)
    p = [line["p_value"] for line in lines]
    found = {
        name: share(sum(value <= level + ROUNDING for value in p), len(p))
        for name, level in LEVELS.items()
        if smallest <= level + ROUNDING
    }
    # The first sample of a process compiles, the median does not.
    return {**found, "seconds": round(median(line["seconds"]["total"] for line in lines), 2)}


def _different(items: list[dict[str, str]]) -> list[dict[str, str]]:
    return [dict(one) for one in sorted({tuple(item.items()) for item in items})]
