"""The table of README.md beside this file: ``python -m experiments.kernels.tables``."""

import json
from typing import Any

from experiments.kernels.run import RESULT
from experiments.kernels.summary import NOW
from experiments.power.tables import put

README = RESULT.with_name("README.md")
TITLES = {
    "without": "no trained kernels at all",
    "family isolated": "family isolated events",
    "family bump": "family excess scan",
    "family shape": "family shape scan",
    "family neighbours": "family k-NN counts",
    "family lonely": "family k-NN distance",
    "family edges": "family marginal tails",
    "family shifts": "family mean and variance shift",
}


def table(result: dict[str, Any]) -> list[str]:
    """One line a way, the strongest alone first."""
    samples = result["n_samples"].values()
    first = f"{len(samples)} problems, {min(samples)} to {max(samples)} samples of each"
    titles = [first, "alone", "gain over `t`", "in the default", "newly found, lost"]
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    ways = sorted(result["ways"].items(), key=lambda way: -_mean(way[1], "alone"))
    for name, found in ways:
        title = TITLES.get(name, name.removeprefix("trained: "))
        cells = [*_alone(found.get("alone"), name), *_together(found.get("in company"), name)]
        lines.append("| " + " | ".join([title, *cells]) + " |")
    return lines


def _mean(found: dict[str, Any], place: str) -> float:
    return float(found[place]["mean"]) if place in found else -1.0


def _alone(found: dict[str, Any] | None, name: str) -> list[str]:
    if found is None:
        return ["", ""]
    gain = "" if name == NOW else f"{found['gain']:+.3f} ± {found['error']:.3f}"
    return [f"{found['mean']:.3f}", gain]


def _together(found: dict[str, Any] | None, name: str) -> list[str]:
    """Counts, not an error: so few samples change there that an error would say nothing."""
    if found is None:
        return ["", ""]
    changed = "" if name == NOW else f"{found['newly_found']}, {found['lost']}"
    return [f"{found['mean']:.3f}", changed]


def page(text: str, result: dict[str, Any]) -> str:
    """The page with this table made anew."""
    return put(text, "kernels", [table(result)])


if __name__ == "__main__":
    README.write_text(page(README.read_text(), json.loads(RESULT.read_text())))
