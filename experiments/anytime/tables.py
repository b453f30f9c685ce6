"""The tables of README.md and docs/anytime.md: ``python -m experiments.anytime.tables``."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sparker.calibration.pvalues import clopper_pearson

HERE = Path(__file__).parent
README = HERE / "README.md"
PAGE = HERE.parents[1] / "docs" / "anytime.md"
COST = HERE.parents[1] / "benchmarks" / "results" / "anytime.json"
NO_ALARM = np.inf

QUIET = {
    "never": "{quiet_looks:,} batches",
    "shorter": "1,000 batches",
}


def read(name: str = "result.json") -> dict[str, Any]:
    """A result of this folder."""
    found: dict[str, Any] = json.loads((HERE / name).read_text())
    return found


def cells(result: dict[str, Any], part: str) -> dict[str, list[dict[str, Any]]]:
    """All streams of a part of the study, by cell."""
    found: dict[str, list[dict[str, Any]]] = {}
    for unit, one in result["units"].items():
        first, *cell, _ = unit.split("; ")
        if first == part:
            found.setdefault(*cell, []).append(one)
    return found


def quiet() -> list[str]:
    """How many streams without change raised an alarm."""
    result = read()
    lines = ["| | rows | streams | alarms | share, 95 % interval |", "|---|---|---|---|---|"]
    for part, title in QUIET.items():
        by_cell = cells(result, part)
        done = [(cell, one) for cell, some in by_cell.items() for one in some]
        for cell in (*by_cell, "all"):
            alarms = [one["alarm"] for name, one in done if cell in (name, "all")]
            k, n = sum(look is not None for look in alarms), len(alarms)
            low, high = clopper_pearson(k, n, 0.95)
            what = title.format(**result["settings"])
            lines.append(f"| {what} | {cell} | {n} | {k} | {k / n:.3f} ({low:.3f} to {high:.3f}) |")
    return [*lines, "", *_changes(result)]


def _changes(result: dict[str, Any]) -> list[str]:
    """How many looks until the first alarm of those that look for changes."""
    most = result["settings"]["change_looks"]
    lines = [
        "| for changes | streams | an alarm before look 100 | mean looks until it, at least |",
        "|---|---|---|---|",
    ]
    by_cell = cells(result, "change")
    for cell in (*by_cell, "all"):
        some = [one for name, ones in by_cell.items() if cell in (name, "all") for one in ones]
        looks = [most if one["alarm"] is None else one["alarm"] for one in some]
        early = sum(look < 100 for look in looks)
        lines.append(f"| {cell} | {len(looks)} | {early} | {np.mean(looks):,.0f} |")
    return lines


def false_alarms() -> list[str]:
    """The sums of the longest streams and of those for changes."""
    result = read()
    lines = ["| monitor | streams | false alarms (95 % interval) |", "|---|---|---|"]
    alarms = [one["alarm"] for some in cells(result, "never").values() for one in some]
    k, n = sum(look is not None for look in alarms), len(alarms)
    low, high = clopper_pearson(k, n, 0.95)
    what = QUIET["never"].format(**result["settings"])
    lines.append(f"| {what} | {n} | {k}: {100 * low:.1f} to {100 * high:.1f} % |")
    *_, total = _changes(result)
    _, n, early, mean = (cell.strip() for cell in total.strip("|").split("|"))
    found = f"{early} before look 100; mean looks until one at least {mean}"
    return [*lines, f"| `change=True` | {n} | {found} |"]


def delay(short: bool = False) -> list[str]:
    """Batches from the change to the alarm, of each method."""
    result, online = read(), read("online_mmd.json")
    delays = cells(result, "delay")
    methods = {
        "`AnytimeMonitor`": lambda cell: [one["anytime"] for one in delays[cell]],
        "the same, `change=True`": lambda cell: [one["anytime, change"] for one in delays[cell]],
        "CUSUM on the best column": lambda cell: [one["cusum"] for one in delays[cell]],
        "online MMD, more false alarms": lambda cell: online["units"][cell],
    }
    names = [f"{cell.split()[0]}, {100 * float(cell.split()[1]):.0f} %" for cell in delays]
    lines = [f"| | {' | '.join(names)} | before the change |", "|---" * (len(delays) + 2) + "|"]
    for method, looks_of in methods.items():
        found = {cell: looks_of(cell) for cell in delays}
        early = sum(_is_early(look, result) for looks in found.values() for look in looks)
        n = sum(len(looks) for looks in found.values())
        shown = [_delays(looks, result, short) for looks in found.values()]
        lines.append(f"| {method} | {' | '.join(shown)} | {early} of {n} |")
    return lines


def _is_early(look: int | None, result: dict[str, Any]) -> bool:
    return look is not None and look <= result["settings"]["quiet"]


def _delays(looks: list[int | None], result: dict[str, Any], short: bool) -> str:
    """Median and quartiles, of streams without an earlier alarm."""
    quiet = result["settings"]["quiet"]
    rest = [look for look in looks if not _is_early(look, result)]
    if not rest:
        return "-"
    delays = np.sort([NO_ALARM if look is None else look - quiet for look in rest])
    low, middle, high = (float(delays[int(q * (len(delays) - 1))]) for q in (0.25, 0.5, 0.75))
    said = [f"over {result['settings']['horizon'] - quiet}" if np.isinf(x) else f"{x:.0f}"
            for x in (middle, low, high)]  # fmt: skip
    return f"{said[0]} ({said[1]} to {said[2]}{'' if short else f'; {len(rest)} streams'})"


def cost() -> list[str]:
    """Milliseconds."""
    found = json.loads(COST.read_text())
    ms = found["milliseconds"]
    return [
        "| milliseconds a batch | median | 95 % |",
        "|---|---|---|",
        *(
            f"| {what} | {ms[what]['50 %']:.0f} | {ms[what]['95 %']:.0f} |"
            for what in ("look", "look and state", "processor time")
        ),
        "",
        f"({found['cores']} cores, and {found['load']:.1f} processes at work on them. Processor "
        "time is that of look and state together.)",
    ]


def short_cost() -> list[str]:
    """The first line of that table."""
    ms = json.loads(COST.read_text())["milliseconds"]["look"]
    return [
        f"A look at 500 x 10 rows with a reference of 5,000 takes {ms['50 %']:.0f} ms (median; "
        f"95 % of looks at most {ms['95 %']:.0f} ms)."
    ]


PAGES: dict[Path, dict[str, Callable[[], list[str]]]] = {
    PAGE: {
        "false alarms": false_alarms,
        "short delay": partial(delay, short=True),
        "short cost": short_cost,
    },
    README: {"quiet": quiet, "delay": delay, "cost": cost},
}


def page(path: Path) -> str:
    """A page with the tables of the results as they are."""
    text = path.read_text()
    for name, table in PAGES[path].items():
        before, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        assert end, f"{name} does not stand on the page"
        made = "\n".join(table())
        text = f"{before}<!-- {name} -->\n{made}\n{end}{after}"
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path))
