"""The tables of docs/embed.md, from the result: ``python -m experiments.embed.tables``."""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "embed.md"


def share(one: dict[str, Any]) -> str:
    """So many of so many, with the interval."""
    low, high = one["interval"]
    return f"{one['k']} of {one['n']} ({low:.2f} to {high:.2f})"


def level(result: dict[str, Any]) -> list[str]:
    """How often p is 0.05 or less where nothing differs."""
    lines = ["| `tfidf` learned | p at most 0.05 where nothing differs |", "|---|---|"]
    return lines + [f"| {name} | {share(one)} |" for name, one in result["level"].items()]


def power(result: dict[str, Any]) -> list[str]:
    """How often planted sentences are found."""
    n = result["settings"]["data"]
    lines = [
        f"| embedder | planted among {n} | p at most 0.05 | planted among as many highest rows |",
        "|---|---|---|---|",
    ]
    for name, cells in result["power"].items():
        lines += [
            f"| `{name}` | {planted} | {share(one)} | {one['planted among the highest']:.0%} |"
            for planted, one in cells.items()
        ]
    return lines


def page(text: str) -> str:
    """The page with both tables between their markers."""
    result = json.loads((HERE / "result.json").read_text())
    for name, lines in (("level", level(result)), ("power", power(result))):
        table = "\n".join([f"<!-- {name} -->", *lines, f"<!-- /{name} -->"])
        text = re.sub(
            rf"<!-- {name} -->.*?<!-- /{name} -->", lambda _, t=table: t, text, flags=re.S
        )
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
