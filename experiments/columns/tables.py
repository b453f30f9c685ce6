"""The tables of docs/tables.md, from the results: ``python -m experiments.columns.tables``."""

from pathlib import Path
from typing import Any

from experiments.record import filled

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "tables.md"


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


def _share(one: dict[str, Any]) -> str:
    low, high = one["interval"]
    return f"{one['share']:.2f} ({low:.2f} to {high:.2f})"


def mixed(result: dict[str, Any]) -> list[str]:
    """Level and power on tables of all kinds of columns."""
    lines = [
        "| planted | samples | found | by numbers alone | a confirmed region names the column |",
        "|---|---|---|---|---|",
    ]
    for kind, one in result["kinds"].items():
        region = "-" if kind == "none" else _share(one["region_names_a_column_of_it"])
        lines.append(
            f"| {kind} | {one['found']['of']} | {_share(one['found'])} | "
            f"{_share(one['found_by_numbers'])} | {region} |"
        )
    return lines


def level(result: dict[str, Any]) -> list[str]:
    """How often p-values are at or below a level, without anomalies."""
    levels = list(result["levels"]["numbers"])
    lines = [f"| without anomalies | samples | {' | '.join(f'p <= {x}' for x in levels)} |"]
    lines.append("|---" * (2 + len(levels)) + "|")
    for side, found in result["levels"].items():
        cells = [f"{x['share']:.3f} ({x['interval'][0]:.3f} to {x['interval'][1]:.3f})"
                 for x in found.values()]  # fmt: skip
        n = next(iter(found.values()))["of"]
        lines.append(f"| {side} | {n} | {' | '.join(cells)} |")
    return lines


def swapped(result: dict[str, Any]) -> list[str]:
    """Power on numbers that break a correlation, with categories and without."""
    lines = ["| compared | samples | found |", "|---|---|---|"]
    for name, key in (("all columns", "found"), ("the numbers alone", "found_by_numbers")):
        one = result[key]
        lines.append(f"| {name} | {one['of']} | {_share(one)} |")
    return lines


def spread(result: dict[str, Any]) -> list[str]:
    """Power by the spread of flags."""
    spreads = list(result["mean"])
    lines = [f"| planted, {result['samples']} samples | {' | '.join(spreads)} |"]
    lines.append("|---" * (1 + len(spreads)) + "|")
    for plant, found in result["plants"].items():
        shares = " | ".join(f"{one['share']:.2f}" for one in found.values())
        lines.append(f"| {plant} | {shares} |")
    means = " | ".join(f"{one:.3f}" for one in result["mean"].values())
    return [*lines, f"| mean | {means} |"]


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
