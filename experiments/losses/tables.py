"""The table of docs/reproduction.md: ``python -m experiments.losses.tables``."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.losses.drawing import N_REFERENCES
from experiments.losses.variants import RESULT, variants

PAGE = Path(__file__).parents[2] / "docs" / "reproduction.md"
TITLES = {
    "settings": "settings",
    "training": "training",
    "experiments": "sampling",
    "five signal events": "five signal events in every sample, and another loss or competition",
}
COMPARED = "paper's combination"
Powers = dict[str, dict[str, Any]]


def cells(found: dict[str, Any]) -> str:
    """Power with its interval, and the best single width's."""
    power, best = found[COMPARED], found["best width"]
    return f"{power['power']:.2f} [{power['low']:.2f}, {power['high']:.2f}] | {best['power']:.2f}"


def table(powers: Powers) -> Iterator[str]:
    """Every variant, by what is changed; references one by one say too little."""
    yield "| changed | power [68 % interval] | best single width, chosen afterwards |"
    yield "|---|---|---|"
    for group, of_group in variants().items():
        yield f"| **{TITLES[group]}** | | |"
        single = [name for name in of_group if name.startswith("one reference for all")]
        for name in of_group:
            if name not in single:
                yield f"| {name} | {cells(powers[name])} |"
        if single:
            yield f"| one reference for all, ten of them | {spread(powers, single)} |"


def spread(powers: Powers, names: list[str]) -> str:
    """The smallest to the largest power, and the mean."""
    assert len(names) == N_REFERENCES

    def of(reading: str) -> str:
        each = [powers[name][reading]["power"] for name in names]
        return f"{min(each):.2f} to {max(each):.2f}, mean {sum(each) / len(each):.2f}"

    return f"{of(COMPARED)} | {of('best width')}"


def page(text: str, powers: Powers) -> str:
    """The page with its table made anew."""
    made = "\n".join(table(powers))
    return re.sub(
        r"(<!-- variants -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{made}\n{found[2]}",
        text,
        flags=re.S,
    )


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULT.read_text())["power"]))
