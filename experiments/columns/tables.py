"""The tables of README.md and docs/tables.md: ``python -m experiments.columns.tables``."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from experiments.columns.mixed import KINDS
from experiments.record import filled

from sparker.calibration.pvalues import clopper_pearson

HERE = Path(__file__).parent
README = HERE / "README.md"
PAGE = HERE.parents[1] / "docs" / "tables.md"
LEVELS = (0.01, 0.05, 0.1, 0.2)


def _totals(result: dict[str, Any], key: str) -> dict[str, tuple[int, int]]:
    """Hits and trials of each kind, over all tables."""
    tables = result["tables"].values()
    found = {}
    for kind in next(iter(tables))[key]:
        hits, n = zip(*(table[key][kind] for table in tables), strict=True)
        found[kind] = sum(hits), sum(n)
    return found


def counted(result: dict[str, Any]) -> list[str]:
    """Decisions about identifiers, over all kinds and tables."""
    lines = ["| | of | left out as identifier |", "|---|---|---|"]
    for name, key in (("columns of real tables", "taken for identifiers"),
                      ("planted identifiers", "planted identifiers found")):  # fmt: skip
        hits, n = np.sum([*_totals(result, key).values()], axis=0)
        lines.append(f"| {name} | {n:,} | {hits:,} |")
    return lines


def identifiers(result: dict[str, Any]) -> list[str]:
    """Columns taken for identifiers, and warnings about rows of real tables."""
    lines = ["| columns of real tables | taken for an identifier |", "|---|---|"]
    for kind, (hits, n) in _totals(result, "taken for identifiers").items():
        lines.append(f"| {kind} | {hits:,} of {n:,} |")
    lines += ["", "| planted beside them | found |", "|---|---|"]
    for kind, (hits, n) in _totals(result, "planted identifiers found").items():
        lines.append(f"| {kind} | {hits:,} of {n:,} |")
    lines += ["", "| rows of real tables | warnings, samples out of 20 |", "|---|---|"]
    kinds = next(iter(result["tables"].values()))
    for kind in kinds["samples with cautions"]:
        said = [
            f"{name} {code} {n}"
            for name, table in result["tables"].items()
            for code, n in table["samples with cautions"][kind].items()
        ]
        lines.append(f"| {kind} | {', '.join(said) or 'none'} |")
    return lines


def _share(hits: Iterable[bool], digits: int = 2) -> str:
    """A share with its exact 95 % interval."""
    found = [*hits]
    low, high = clopper_pearson(sum(found), len(found))
    shown = (f"{one:.{digits}f}" for one in (np.mean(found), low, high))
    return "{} ({} to {})".format(*shown)


def mixed(result: dict[str, Any]) -> list[str]:
    """Level and power on tables of all kinds of columns."""
    lines = [
        "| planted | samples | all columns | numbers alone | significant region names the column |",
        "|---|---|---|---|---|",
    ]
    alpha = result["settings"]["alpha"]
    for kind, columns in KINDS.items():
        units = [one for key, one in result["units"].items() if key.startswith(f"{kind}; ")]
        region = "-" if kind == "none" else _share(bool({*one["region"]} & {*columns})
                                                   for one in units)  # fmt: skip
        lines.append(
            f"| {kind} | {len(units)} | {_share(one['p_value'] <= alpha for one in units)} | "
            f"{_share(one['p_of_numbers'] <= alpha for one in units)} | {region} |"
        )
    return lines


def summary(result: dict[str, Any]) -> list[str]:
    """The table of ``mixed`` without regions, and the level on further samples."""
    lines = [line.rsplit("|", 2)[0] + "|" for line in mixed(result)]
    more = json.loads((HERE / "level.json").read_text())
    found = {
        side: [one[side] for one in more["units"].values() if side in one]
        for side in ("all columns", "numbers")
    }
    alpha = result["settings"]["alpha"]
    shares = " | ".join(_share(p <= alpha for p in one) for one in found.values())
    sizes = " and ".join(str(len(one)) for one in found.values())
    return [*lines[:3], f"| none, other seeds | {sizes} | {shares} |", *lines[3:]]


def level(result: dict[str, Any]) -> list[str]:
    """How often p-values are at or below a level, without anomalies."""
    lines = [f"| without anomalies | samples | {' | '.join(f'p <= {x:g}' for x in LEVELS)} |"]
    lines.append("|---" * (2 + len(LEVELS)) + "|")
    for side in ("numbers", "all columns"):
        found = [one[side] for one in result["units"].values() if side in one]
        cells = (_share((p <= level for p in found), 3) for level in LEVELS)
        lines.append(f"| {side} | {len(found)} | {' | '.join(cells)} |")
    return lines


def swapped(result: dict[str, Any]) -> list[str]:
    """Power on numbers that break a correlation, with categories and without."""
    lines = ["| compared | samples | found |", "|---|---|---|"]
    units, alpha = result["units"].values(), result["settings"]["alpha"]
    for name, key in (("all columns", "p_value"), ("the numbers alone", "p_of_numbers")):
        lines.append(f"| {name} | {len(units)} | {_share(one[key] <= alpha for one in units)} |")
    return lines


def spread(result: dict[str, Any]) -> list[str]:
    """Power by the spread of flags, on the samples that were tested with every spread."""
    found: dict[tuple[str, str], dict[str, bool]] = {}
    for unit, one in result["units"].items():
        plant, used, number = unit.split("; ")
        hit = one["p_value"] <= result["settings"]["alpha"]
        found.setdefault((plant, number), {})[used] = hit
    spreads = sorted({used for one in found.values() for used in one}, key=float)
    whole = {
        key: [one[x] for x in spreads] for key, one in found.items() if len(one) == len(spreads)
    }
    hits = {
        plant: [one for (of, _), one in whole.items() if of == plant]
        for plant in dict.fromkeys(of for of, _ in whole)
    }
    shares = {plant: np.mean(one, axis=0) for plant, one in hits.items()}
    lines = [f"| planted | samples | {' | '.join(spreads)} |", "|---" * (2 + len(spreads)) + "|"]
    for plant, share in shares.items():
        cells = " | ".join(f"{one:.2f}" for one in share)
        lines.append(f"| {plant} | {len(hits[plant])} | {cells} |")
    means = " | ".join(f"{one:.3f}" for one in np.mean([*shares.values()], axis=0))
    return [*lines, f"| mean | {sum(map(len, hits.values()))} | {means} |"]


Blocks = dict[str, tuple[str, Callable[[Any], list[str]]]]
BLOCKS: Blocks = {
    "identifiers": ("result.json", identifiers),
    "mixed": ("mixed.json", mixed),
    "level": ("level.json", level),
    "swapped": ("swapped.json", swapped),
    "spread": ("spread.json", spread),
}
SUMMARY: Blocks = {"counted": ("result.json", counted), "summary": ("mixed.json", summary)}
PAGES = {README: BLOCKS, PAGE: SUMMARY}


def page(path: Path) -> str:
    """Return a page with the tables of the committed results."""
    return filled(path.read_text(), HERE, PAGES[path])


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path))
