"""The tables of README.md and docs/embed.md: ``python -m experiments.embed.tables``."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE / "README.md"
PAGE = HERE.parents[1] / "docs" / "embed.md"


def share(one: dict[str, Any]) -> str:
    """So many of so many, with the interval."""
    low, high = one["interval"]
    return f"{one['k']} of {one['n']} ({low:.2f} to {high:.2f})"


def level(result: dict[str, Any]) -> list[str]:
    """How often p is 0.05 or less where nothing differs."""
    lines = ["| `tfidf` learned | p <= 0.05 without a difference |", "|---|---|"]
    return lines + [f"| {name} | {share(one)} |" for name, one in result["level"].items()]


def power(result: dict[str, Any]) -> list[str]:
    """How often planted sentences are found."""
    n = result["settings"]["data"]
    lines = [
        f"| embedder | planted among {n} | p <= 0.05 | planted among as many highest rows |",
        "|---|---|---|---|",
    ]
    for name, cells in result["power"].items():
        lines += [
            f"| `{name}` | {planted} | {share(one)} | {one['planted among the highest']:.0%} |"
            for planted, one in cells.items()
        ]
    return lines


def weights(result: dict[str, Any], most: bool = False) -> list[str]:
    """Power by embedder, with weights and without; all cells, or those of the summary."""
    lines = [
        "| embedder | among the data | p <= 0.05 | of them among as many highest rows |",
        "|---|---|---|---|",
    ]
    for name, cells in result["embedders"].items():
        lines += [
            f"| {called(name)} | {number} {WHAT[kind]} | {share(cells[f'{kind}, {number}'])} "
            f"| {cells[f'{kind}, {number}']['among the highest']:.0%} |"
            for kind, number in (key.split(", ") for key in cells if ", " in key)
            if not most or (MOST.get(kind) == number and "logits" not in name)
        ]
    return lines


def speed(result: dict[str, Any]) -> list[str]:
    """How fast they are."""
    speeds = [
        f"{called(name)} {round(cells['a second'], -1 if cells['a second'] < 1000 else -3):,.0f}"
        if cells["a second"] >= 100
        else f"{called(name)} {cells['a second']:.0f}"
        for name, cells in result["embedders"].items()
        if "logits" not in name
    ]
    return [f"In a second of processor time: {', '.join(speeds)} lines or pictures (of 96 pixels)."]


def torch(result: dict[str, Any]) -> list[str]:
    """How far the logits are from PyTorch's."""
    differences = [
        f"{one['largest difference']:.0e} at {side} pixels, where they go up to "
        f"{one['largest logit']:.0f}"
        for side, one in result["pixels"].items()
    ]
    n = next(iter(result["pixels"].values()))["pictures"]
    return [
        f"The logits of `efficientnet-lite0` for {n} photographs differ from PyTorch's with the "
        f"same weights by at most {', and '.join(differences)} "
        "(`python -m experiments.embed.torch_check`)."
    ]


def called(name: str) -> str:
    """An embedder with the layer that was taken."""
    first, comma, rest = name.partition(",")
    return f"`{first}`{comma}{rest}"


WHAT = {
    "another book": "of 200 lines of another book",
    "a machine": "of 200 lines by a Markov chain",
    "stripes": "of 100 photographs striped",
}
MOST = {"another book": "40", "stripes": "10"}
PAGES: dict[Path, dict[str, tuple[str, Callable[[dict[str, Any]], list[str]]]]] = {
    PAGE: {
        "level": ("result", level),
        "summary": ("weights", partial(weights, most=True)),
        "speed": ("weights", speed),
    },
    README: {
        "level": ("result", level),
        "power": ("result", power),
        "weights": ("weights", weights),
        "speed": ("weights", speed),
        "torch": ("torch_check", torch),
    },
}


def page(path: Path) -> str:
    """A page with all tables between their markers."""
    text = path.read_text()
    for name, (file, made) in PAGES[path].items():
        assert f"<!-- {name} -->" in text, f"{name} does not stand on the page"
        lines = made(json.loads((HERE / f"{file}.json").read_text()))
        table = "\n".join([f"<!-- {name} -->", *lines, f"<!-- /{name} -->"])
        text = re.sub(
            rf"<!-- {name} -->.*?<!-- /{name} -->", lambda _, t=table: t, text, flags=re.S
        )
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path))
