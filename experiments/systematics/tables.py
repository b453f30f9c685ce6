"""The tables of README.md and docs/systematics.md: ``python -m experiments.systematics.tables``."""

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

README = RESULT.with_name("README.md")
PAGE = RESULT.parents[2] / "docs" / "systematics.md"
LEVEL = 0.05
TITLES = {
    "spectrum": "spectrum, scale 10 %",
    "jets": "jets, energy scale 3 %",
    "selected": "selected jets, energy scale 3 %",
    "threshold": "energies above a threshold, scale 3 %",
}
WORST_TITLES = {
    "data alone": "fitted without the prior (default)",
    "best": "best-fit values",
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
    each = (f"{_short_title(one)}, {sum(counts[one])} of {len(counts[one])}" for one in TITLES
            if one in counts)  # fmt: skip
    return [f"Refused, of tests with samples: {'; '.join(each)}."]


def small(some: dict[int, Sample]) -> set[int]:
    """The samples with p <= 5 %."""
    return {number for number, one in some.items() if one["p_value"] <= LEVEL}


def share(k: int, n: int) -> str:
    """So many of so many in percent, with exact 95 % bounds."""
    return f"{k} of {n}: {_short(k, n)}" if n else "-"


def level(found: Cells) -> list[str]:
    """How often p <= 5 % without an anomaly."""
    values = (*VALUES, "all")
    lines = [
        "| declared as | " + " | ".join(_nu(nu) for nu in values) + " |",
        "|---" * (len(values) + 1) + "|",
    ]
    for problem, form in _kinds(found):
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
        what = "planted rows" if kind == "anomaly" else "an undeclared shift"
        with_it, without = (small(one) & both for one in (some, before))
        lines.append(
            f"| {TITLES[problem]}, {what} | {form} "
            f"| {share(len(with_it), len(both))} | {share(len(without), len(both))} "
            f"| {share(len(with_it & without), len(without))} |"
        )
    return lines


def _kinds(found: Cells) -> list[tuple[str, str]]:
    """Problems and the ways in which they were declared."""
    kinds = {(problem, form) for problem, kind, _, form in found if kind == "level"}
    return sorted(kinds, key=lambda one: ([*TITLES].index(one[0]), one[1]))


def summary(found: Cells) -> list[str]:
    """Level over all values and power, a line for each way to declare."""
    lines = [
        "| declared as | samples | level | not declared | planted rows found | not declared |",
        "|---" * 6 + "|",
    ]
    for problem, form in _kinds(found):
        if form == NONE:
            continue
        planted, bare = (found.get((problem, "anomaly", 0.0, f), {}) for f in (form, NONE))
        both = planted.keys() & bare.keys()
        cells = [
            *(_total(found, problem, f) for f in (form, NONE)),
            *((len(small(some) & both), len(both)) for some in (planted, bare)),
        ]
        shown = " | ".join(_short(*one) for one in cells)
        lines.append(f"| {_short_title(problem)}: {form} | {cells[0][1]} | {shown} |")
    return lines


def _short_title(problem: str) -> str:
    return TITLES[problem].split(",")[0]


def _total(found: Cells, problem: str, form: str) -> tuple[int, int]:
    """Samples without anomaly with p <= 5 %, and how many there are, over all values."""
    some = [found.get((problem, "level", nu, form), {}) for nu in VALUES]
    return sum(len(small(one)) for one in some), sum(len(one) for one in some)


def _short(k: int, n: int) -> str:
    if n == 0:
        return "-"
    low, high = clopper_pearson(k, n)
    return f"{100 * k / n:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def highest(found: Cells) -> list[str]:
    """The single value whose level is above 5 % most clearly, if any is."""
    cells = [
        (key, len(small(some)), len(some))
        for key, some in found.items()
        if key[1] == "level" and key[3] != NONE
    ]
    (problem, _, nu, form), k, n = max(cells, key=lambda one: clopper_pearson(*one[1:])[0])
    return [
        f"Largest at a single true value: {_short_title(problem)} by {form} at {_nu(nu)}, "
        f"{share(k, n)}, lower end {100 * clopper_pearson(k, n)[0]:.1f} %."
    ]


def pulls(found: Cells) -> list[str]:
    """How well the nuisance value is found."""
    lines = [
        "| | samples | error, on average | spread of (pull - truth) | within one error "
        "| spread of (pull - exact likelihood) |",
        "|---" * 6 + "|",
    ]
    for problem, form in _kinds(found):
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
        f"The best test also loses power. With the shape of the bump known, the likelihood ratio "
        f"finds {known['planted']} planted rows in {without} where the scale is known, and in "
        f"{with_it} where it is fitted."
    ]


def _worst() -> dict[tuple[str, str], list[Sample]]:
    by_cell: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for key, one in json.loads(WORST.read_text())["units"].items():
        name, nu, _ = key.split("; ")
        by_cell[name, nu].append(one)
    return by_cell


def hardest(found: Cells) -> list[str]:
    """The largest share of that table."""
    counts = (
        (sum(one["data alone"] <= LEVEL for one in some), len(some)) for some in _worst().values()
    )
    largest = max(counts, key=lambda counted: counted[0] / counted[1])
    return [
        "A statistic that depends on the nuisance parameter alone, at any true value up to two "
        f"priors: at most {share(*largest)}."
    ]


def worst(found: Cells) -> list[str]:
    """The level of a statistic that depends on the nuisance parameter alone."""
    by_cell = _worst()
    heads = ["nu from the prior" if nu is None else _nu(nu) for nu in WORST_VALUES]
    lines = [
        "| constraint by the data | toys at | " + " | ".join(heads) + " |",
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


PAGES: dict[Path, dict[str, Callable[[Cells], list[str]]]] = {
    PAGE: {"summary": summary, "highest": highest, "hardest": hardest},
    README: {
        "level": level,
        "refused": refused,
        "power": power,
        "oracle": oracle,
        "pulls": pulls,
        "worst": worst,
    },
}


def page(path: Path, found: Cells | None = None) -> str:
    """A page with its tables made anew; each stands between two comments that name it."""
    found = cells() if found is None else found
    text = path.read_text()
    for name, table in PAGES[path].items():
        made = "\n".join(table(found))
        parts = re.split(rf"(<!-- {name} -->\n).*?(\n?<!-- end -->)", text, flags=re.S)
        assert len(parts) == 4, f"{name} does not stand on the page once"
        text = parts[0] + parts[1] + made + "\n<!-- end -->" + parts[3]
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path))
