"""The tables of docs/systematics.md: ``python -m experiments.systematics.tables``."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from experiments.systematics.oracle import RESULT as ORACLE
from experiments.systematics.run import NONE, RESULT, VALUES
from experiments.systematics.worst import RESULT as WORST
from experiments.systematics.worst import STEPS
from experiments.systematics.worst import VALUES as WORST_VALUES

from sparker.calibration.pvalues import clopper_pearson

PAGE = Path(__file__).parents[2] / "docs" / "systematics.md"
LEVEL = 0.05
TITLES = {
    "spectrum": "spectrum, scale 10 %",
    "jets": "jets, energy scale 3 %",
    "selected": "selected jets, energy scale 3 %",
    "threshold": "energies above a threshold, scale 3 %",
}
WORST_TITLES = {
    "data alone": "where the data alone suggest, the default",
    "best": "at the best values",
}
Sample = dict[str, Any]
Cells = dict[tuple[str, str, float, str], dict[int, Sample]]


def cells(path: Path = RESULT) -> Cells:
    """All samples, by problem, kind, value of the nuisance, and how it was declared."""
    found: Cells = defaultdict(dict)
    for key, sample in json.loads(path.read_text())["units"].items():
        problem, kind, nu, form, number = key.split("; ")
        if "refused" not in sample:
            found[problem, kind, float(nu), form][int(number)] = sample
    return found


def refused(found: Cells) -> list[str]:
    """How often shifted samples were refused."""
    counts: dict[str, list[bool]] = defaultdict(list)
    for key, sample in json.loads(RESULT.read_text())["units"].items():
        problem, _, _, form, _ = key.split("; ")
        if form == "samples":
            counts[problem].append("refused" in sample)
    said = (f"{TITLES[one]}, {sum(counts[one])} of {len(counts[one])}" for one in TITLES
            if one in counts)  # fmt: skip
    return [f"Refused, of all tests with shifted samples: {'; '.join(said)}."]


def small(some: dict[int, Sample]) -> set[int]:
    """The samples that are called anomalous."""
    return {number for number, one in some.items() if one["p_value"] <= LEVEL}


def share(k: int, n: int) -> str:
    """So many of so many in percent, with exact 95 % bounds."""
    if n == 0:
        return "-"
    low, high = clopper_pearson(k, n)
    return f"{k} of {n}: {100 * k / n:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def level(found: Cells) -> list[str]:
    """How often shifted samples without anomaly are called anomalous."""
    values = (*VALUES, "all")
    lines = [
        "| declared as | " + " | ".join(_nu(nu) for nu in values) + " |",
        "|---" * (len(values) + 1) + "|",
    ]
    kinds = dict.fromkeys((problem, form) for problem, kind, _, form in found if kind == "level")
    for problem, form in sorted(kinds, key=lambda one: ([*TITLES].index(one[0]), one[1])):
        counted = []
        for nu in VALUES:
            some = found.get((problem, "level", nu, form), {})
            counted.append((len(small(some)), len(some)))
        total = sum(k for k, _ in counted), sum(n for _, n in counted)
        cell = " | ".join(share(*one) for one in [*counted, total])
        lines.append(f"| {TITLES[problem]}: {form} | {cell} |")
    return lines


def _nu(nu: float | str) -> str:
    return nu if isinstance(nu, str) else f"nu = {nu:+g}" if nu else "nu = 0"


def power(found: Cells) -> list[str]:
    """What is found with the systematic declared, of what is found without."""
    lines = [
        "| | declared as | found | without, same samples | of those found without, still found |",
        "|---" * 5 + "|",
    ]
    for (problem, kind, _, form), some in sorted(found.items(), key=lambda one: one[0][::-1]):
        if kind == "level" or form == NONE:
            continue
        before = found[problem, kind, 0.0, NONE]
        both = some.keys() & before.keys()
        what = "planted rows" if kind == "anomaly" else "a shift nobody declared"
        with_it, without = (small(one) & both for one in (some, before))
        lines.append(
            f"| {TITLES[problem]}, {what} | {form} "
            f"| {share(len(with_it), len(both))} | {share(len(without), len(both))} "
            f"| {share(len(with_it & without), len(without))} |"
        )
    return lines


def pulls(found: Cells) -> list[str]:
    """How well the nuisance value is found."""
    lines = [
        "| | samples | error, on average | spread of (pull - truth) | within one error "
        "| spread of (pull - exact likelihood) |",
        "|---" * 6 + "|",
    ]
    kinds = dict.fromkeys((problem, form) for problem, kind, _, form in found if kind == "level")
    for problem, form in sorted(kinds, key=lambda one: ([*TITLES].index(one[0]), one[1])):
        if form == NONE:
            continue
        rows = [
            (nu, *one["pull"], one.get("known", np.nan))
            for nu in VALUES
            for one in found.get((problem, "level", nu, form), {}).values()
        ]
        nu, value, error, known = np.array(rows).T
        off = value - nu
        exact = "" if np.isnan(known).all() else f"{np.sqrt(np.mean((value - known) ** 2)):.3f}"
        within = share(int(np.sum(np.abs(off) <= error)), len(off))
        lines.append(
            f"| {TITLES[problem]}: {form} | {len(off)} | {error.mean():.2f} | "
            f"{np.sqrt(np.mean(off**2)):.2f} | {within} | {exact} |"
        )
    return lines


def oracle(found: Cells) -> list[str]:
    """What the best test loses."""
    known = json.loads(ORACLE.read_text())
    with_it, without = (
        share(known[name]["found"], known[name]["samples"]) for name in ("fitted", "known")
    )
    return [
        f"Any test has something to lose. Where the shape of the bump is known, no test is better "
        f"than the likelihood ratio: of {known['planted']} planted rows it finds {without} where "
        f"the scale is known, and {with_it} where it is fitted."
    ]


def worst(found: Cells) -> list[str]:
    """The level of a statistic that sees nothing but the nuisance parameter."""
    by_cell: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for key, one in json.loads(WORST.read_text())["units"].items():
        name, nu, _ = key.split("; ")
        by_cell[name, nu].append(one)
    heads = ["nu from the prior" if nu is None else _nu(nu) for nu in WORST_VALUES]
    lines = [
        "| the data constrain it | toys | " + " | ".join(heads) + " |",
        "|---" * (len(heads) + 2) + "|",
    ]
    for name in STEPS:
        cells = [by_cell[name, str(nu)] for nu in WORST_VALUES]
        error = np.mean([one["error"] for some in cells for one in some])
        for way, title in WORST_TITLES.items():
            counted = [(sum(one[way] <= LEVEL for one in some), len(some)) for some in cells]
            shares = " | ".join(share(*one) for one in counted)
            lines.append(f"| {name} (error {error:.2f}) | {title} | {shares} |")
    return lines


TABLES: dict[str, Callable[[Cells], list[str]]] = {
    "level": level,
    "refused": refused,
    "power": power,
    "pulls": pulls,
    "oracle": oracle,
    "worst": worst,
}


def page(text: str, found: Cells | None = None) -> str:
    """The page with its tables made anew; each stands between two comments that name it."""
    found = cells() if found is None else found
    for name, table in TABLES.items():
        made = "\n".join(table(found))
        parts = re.split(rf"(<!-- {name} -->\n).*?(\n?<!-- end -->)", text, flags=re.S)
        assert len(parts) == 4, f"{name} does not stand on the page once"
        text = parts[0] + parts[1] + made + "\n<!-- end -->" + parts[3]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
