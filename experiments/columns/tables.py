"""The tables of docs/tables.md, from the results: ``python -m experiments.columns.tables``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from experiments.columns.mixed import KINDS
from experiments.record import filled

from sparker.calibration.pvalues import clopper_pearson

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "tables.md"
LEVELS = (0.01, 0.05, 0.1, 0.2)


def identifiers(result: dict[str, Any]) -> list[str]:
    """What was taken for an identifier, and what is said of rows of real tables."""
    tables = result["tables"].values()

    def total(key: str, kind: str) -> tuple[int, int]:
        hits, n = zip(*(table[key][kind] for table in tables), strict=True)
        return sum(hits), sum(n)

    kinds = next(iter(tables))
    lines = ["| columns of real tables | taken for an identifier |", "|---|---|"]
    for kind in kinds["taken for identifiers"]:
        hits, n = total("taken for identifiers", kind)
        lines.append(f"| {kind} | {hits:,} of {n:,} |")
    lines += ["", "| planted beside them | found |", "|---|---|"]
    for kind in kinds["planted identifiers found"]:
        hits, n = total("planted identifiers found", kind)
        lines.append(f"| {kind} | {hits:,} of {n:,} |")
    lines += ["", "| rows of real tables | warnings, samples out of 20 |", "|---|---|"]
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
        "| planted | samples | found | by numbers alone | a confirmed region names the column |",
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


BLOCKS = {
    "identifiers": ("result.json", identifiers),
    "swapped": ("swapped.json", swapped),
    "spread": ("spread.json", spread),
    "mixed": ("mixed.json", mixed),
    "level": ("level.json", level),
}


def page(text: str) -> str:
    """The page with the tables of the results as they are."""
    return filled(text, HERE, BLOCKS)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
