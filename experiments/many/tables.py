"""The tables of README.md and docs/many.md: ``python -m experiments.many.tables``."""

from pathlib import Path
from typing import Any

from experiments.many import summary
from experiments.record import filled

HERE = Path(__file__).parent
README = HERE / "README.md"
PAGE = HERE.parents[1] / "docs" / "many.md"
NAMES = {"own toys": "default", "own toys, means": "means"}


def _percent(one: dict[str, Any] | None) -> str:
    """A mean of tables and its error."""
    if one is None:
        return ""
    error = "" if one["error"] is None else f" ({100 * one['error']:.1f})"
    return f"{100 * one['mean']:.1f}{error}"


def _share(one: dict[str, Any] | None) -> str:
    """So many of so many, in percent, with the exact 95 % interval."""
    if one is None:
        return ""
    low, high = (100 * end for end in one["interval"])
    return f"{100 * one['k'] / one['n']:.0f} [{low:.0f}, {high:.0f}]"


def level(result: dict[str, Any]) -> list[str]:
    """How often p-values of samples without anomaly are at or below a level."""
    kinds, levels = summary.discoveries(result["units"]), summary.LEVELS
    heads = " | ".join(f"p <= {100 * x:.0f} %" for x in levels)
    lines = [f"| percent | anomalous | tables | {heads} |"]
    lines.append("|---" * (3 + len(levels)) + "|")
    for name, cases in kinds.items():
        for n_anomalous, found in cases.items():
            cells = " | ".join(_percent(found["level"][x]) for x in levels)
            n_tables = found["level"][levels[0]]["tables"]
            lines.append(f"| {NAMES[name]} | {n_anomalous} of 10 | {n_tables:,} | {cells} |")
    return lines


def discoveries(result: dict[str, Any]) -> list[str]:
    """False discoveries and power."""
    kinds, rates = summary.discoveries(result["units"]), summary.RATES
    heads = [f"{what}, at {100 * x:.0f} %" for what in ("false", "listed") for x in rates]
    lines = [f"| percent | anomalous | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for name, cases in kinds.items():
        for n_anomalous, found in cases.items():
            by_rate = found["rates"]
            cells = [_percent(by_rate[x]["false_discoveries"]) for x in rates]
            cells += [_percent(by_rate[x]["power"]) for x in rates]
            lines.append(f"| {NAMES[name]} | {n_anomalous} of 10 | {' | '.join(cells)} |")
    return lines


def listed(result: dict[str, Any]) -> list[str]:
    """False discoveries and power at 10 %, and the level at 5 %."""
    level, rate = 0.05, 0.1
    lines = [
        "| | anomalous | tables | p <= 5 % without anomaly | false discoveries at `fdr=0.1` "
        "| anomalous samples listed |",
        "|---" * 6 + "|",
    ]
    for name, cases in summary.discoveries(result["units"]).items():
        for n_anomalous, found in cases.items():
            by_rate = found["rates"][rate]
            cells = [
                f"{found['level'][level]['tables']:,}",
                _percent(found["level"][level]),
                _percent(by_rate["false_discoveries"]),
                _percent(by_rate["power"]),
            ]
            lines.append(f"| {NAMES[name]} | {n_anomalous} of 10 | {' | '.join(cells)} |")
    return lines


def distances(result: dict[str, Any]) -> list[str]:
    """How large distances are, and how often what is said of them holds."""
    lines = [
        "| data and generator | samples | truth | mean distance | covers its mean, % | lower end "
        "holds, % | covers the truth, % | significantly first of three alike, % "
        "| closer one first, % | significantly, % |",
        "|---" * 10 + "|",
    ]
    for name, one in summary.distances(result["units"]).items():
        error = "" if one["error"] is None else f" ({one['error']:.4f})"
        cells = [
            name,
            f"{one['covers_truth']['n']:,}",
            f"{one['truth']:.2f}",
            f"{one['mean']:.4f}{error}",
            _share(one["covers_its_mean"]),
            _share(one["low_end_holds"]),
            _share(one["covers_truth"]),
            _share(one["surely_first_of_three_alike"]),
            _share(one["a_before_c"]),
            _share(one["c_surely_behind"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


PAGES = {
    PAGE: {"summary": ("result.json", listed)},
    README: {
        "level": ("result.json", level),
        "discoveries": ("result.json", discoveries),
        "distances": ("distance.json", distances),
    },
}


def page(path: Path) -> str:
    """A page with the tables of the results as they are."""
    return filled(path.read_text(), HERE, PAGES[path])


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path))
