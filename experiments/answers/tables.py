"""The tables of README.md and of docs/answers.md: ``python -m experiments.answers.tables``."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from experiments.answers.oracle import RESULT as ORACLE
from experiments.answers.problems import SEEN
from experiments.answers.run import FRACTIONS, RESULT

from sparker.calibration.pvalues import clopper_pearson

README = RESULT.with_name("README.md")
PAGE = RESULT.parents[2] / "docs" / "answers.md"
LEVEL = 0.05
HIGH_POWER = 0.8
Sample = dict[str, Any]


class Samples:
    """All samples that were measured, by problem and share of planted rows."""

    def __init__(self, path: Path = RESULT) -> None:
        record = json.loads(path.read_text())
        self.by_key: dict[tuple[str, float], list[Sample]] = {}
        for key, sample in record["samples"].items():
            name, fraction, _ = key.split("; ")
            self.by_key.setdefault((name, float(fraction)), []).append(sample)

        self.known: dict[str, dict[str, float]] = json.loads(ORACLE.read_text())["median"]

    def where(self, chosen: Callable[[str, float], bool]) -> list[Sample]:
        """The samples of some problems and shares."""
        return [one for key, some in self.by_key.items() if chosen(*key) for one in some]

    @property
    def planted(self) -> list[Sample]:
        """Those with anomalies."""
        return self.where(lambda name, fraction: fraction > 0)

    @property
    def ordinary(self) -> list[Sample]:
        """Those without."""
        return self.where(lambda name, fraction: fraction == 0)


def share(k: int, n: int) -> str:
    """So many of so many in percent, with the exact 95 % interval."""
    if n == 0:
        return "-"
    low, high = clopper_pearson(k, n, 0.95)
    return f"{100 * k / n:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def claims(samples: Samples) -> list[str]:
    """What is claimed, and how often it held."""
    planted, ordinary = samples.planted, samples.ordinary
    every = [*planted, *ordinary]
    regions = [region for one in every for region in one["regions"] if not region["lack"]]
    shown = [
        region
        for one in every
        for region in one["regions"]
        if region["confirmed"] and not region["lack"] and one["p_value"] <= LEVEL
    ]
    detected = [one for one in every if one["p_value"] <= LEVEL]

    def covered(some: Sequence[dict[str, Any]]) -> str:
        inside = [one["interval"][0] <= one["planted"] <= one["interval"][1] for one in some]
        return share(sum(inside), len(inside))

    rows = [
        (
            "`at_least` above the truth, anomalies planted",
            "at most 5 %",
            share(sum(one["at_least"] > one["n_planted"] for one in planted), len(planted)),
            len(planted),
        ),
        (
            "`at_least` above 0, none planted",
            "at most 5 %",
            share(sum(one["at_least"] > 0 for one in ordinary), len(ordinary)),
            len(ordinary),
        ),
        (
            "both lower bounds 0 beside p <= 5 %",
            "never",
            share(
                sum(not one["at_least"] and not one["missing_at_least"] for one in detected),
                len(detected),
            ),
            len(detected),
        ),
        (
            "interval of a region contains its planted rows",
            "at least 95 %",
            covered(regions),
            len(regions),
        ),
        (
            "the same, significant regions beside p <= 5 %",
            "at least 95 %",
            covered(shown),
            len(shown),
        ),
        (
            "a region is significant, none planted",
            "at most 5 %",
            share(
                sum(any(region["confirmed"] for region in one["regions"]) for one in ordinary),
                len(ordinary),
            ),
            len(ordinary),
        ),
        (
            "mean share of false discoveries at FDR <= 0.2, planted",
            "at most 20 %",
            f"{100 * false_rate(planted):.1f} %",
            len(planted),
        ),
        (
            "the same, none planted",
            "at most 20 %",
            f"{100 * false_rate(ordinary):.1f} %",
            len(ordinary),
        ),
    ]
    lines = ["| claim | required | measured (95 % interval) | counted |", "|---|---|---|---|"]
    return lines + [f"| {what} | {aim} | {found} | {n:,} |" for what, aim, found, n in rows]


def main_claims(samples: Samples) -> list[str]:
    """Those of the summary."""
    return [line for line in claims(samples) if not line.startswith(("| both", "| the same"))]


def false_rate(samples: Sequence[Sample]) -> float:
    """The mean share of false discoveries among flagged rows; an empty list has none."""
    return float(
        np.mean([1 - right / n if n else 0 for n, right in (s["listed"] for s in samples)])
    )


def reliability(samples: Samples) -> list[str]:
    """Of the rows with such a probability, how many are planted."""
    counts = {
        name: np.sum([one["probability"][name] for one in samples.planted], axis=0)
        for name in ("rows", "sum", "planted")
    }
    lines = ["| probability | rows | mean probability | share planted |", "|---|---|---|---|"]
    for i, (n, total, planted) in enumerate(zip(*counts.values(), strict=True)):
        said = f"{i / 10:.1f} to {(i + 1) / 10:.1f}"
        lines.append(f"| {said} | {int(n):,} | {total / n:.2f} | {planted / n:.2f} |")
    error = np.abs(counts["sum"] - counts["planted"]).sum() / counts["rows"].sum()
    return [*lines, "", f"Expected calibration error: {error:.3f}."]


def problem_table(samples: Samples) -> list[str]:
    """Every problem at every share: power, the bound's median, and the rows that come first."""
    names = sorted({name for name, _ in samples.by_key}, key=lambda name: (name not in SEEN, name))
    fractions = [fraction for fraction in FRACTIONS if fraction > 0]
    lines = [
        "| problem | " + " | ".join(f"{fraction:.0%} planted" for fraction in fractions) + " |",
        "|---" * (len(fractions) + 1) + "|",
    ]
    for name in names:
        cells = []
        for fraction in fractions:
            some = samples.by_key.get((name, fraction))
            cells.append(_cell(some) if some else "-")
        lines.append(f"| {name}{'' if name in SEEN else ' *'} | " + " | ".join(cells) + " |")
    return lines


def _cell(some: list[Sample]) -> str:
    power = np.mean([one["p_value"] <= LEVEL for one in some])
    n = some[0]["n_planted"]
    least = np.median([one["at_least"] for one in some])
    first, plain = (
        np.mean([one["first"][kind] for one in some]) / n for kind in ("ranking", "log ratio")
    )
    return f"{power:.1f}; {least:.0f} of {n}; {first:.2f} ({plain:.2f})"


def ranking(samples: Samples) -> list[str]:
    """The rows ranked first beside those that f alone ranks first, over all problems."""
    lines = [
        "| problems | number | planted among the first | by f alone | difference |",
        "|---" * 5 + "|",
    ]
    kinds: list[tuple[str, Callable[[str], bool]]] = [
        ("all", lambda name: True),
        ("on which the design was chosen", lambda name: name in SEEN),
        ("measured after it was fixed", lambda name: name not in SEEN),
    ]
    for label, chosen in kinds:
        cells = {key: some for key, some in samples.by_key.items() if key[1] > 0 and chosen(key[0])}
        first, plain = (
            np.array(
                [
                    np.mean([s["first"][kind] / s["n_planted"] for s in some])
                    for some in cells.values()
                ]
            )
            for kind in ("ranking", "log ratio")
        )
        n = len({name for name, _ in cells})
        means = f"{first.mean():.3f} | {plain.mean():.3f} | {(first - plain).mean():+.3f}"
        lines.append(f"| {label} | {n} | {means} |")
    return lines


def half(samples: Samples) -> str:
    """What share of the truth the bound's median reaches where power is high: in all, by cells."""
    shares = [
        [one["at_least"] / one["n_planted"] for one in some]
        for (_, fraction), some in samples.by_key.items()
        if fraction and np.mean([one["p_value"] <= LEVEL for one in some]) > HIGH_POWER
    ]
    every = np.concatenate(shares)
    reached = sum(np.median(cell) >= 0.5 for cell in shares)
    return (
        f"Over the {len(every)} samples of the {len(shares)} cells with a power above {HIGH_POWER}"
        f" the median of `at_least` is {100 * np.median(every):.0f} % of what was planted; in"
        f" {reached} of these cells it is half or more."
    )


def knowing(samples: Samples) -> list[str]:
    """The bound beside that of a supervised classifier."""
    fractions = [fraction for fraction in FRACTIONS if fraction > 0]
    lines = [
        "| table | " + " | ".join(f"{fraction:.0%} planted" for fraction in fractions) + " |",
        "|---" * (len(fractions) + 1) + "|",
    ]
    for name, medians in sorted(samples.known.items()):
        cells = []
        for fraction in fractions:
            some = samples.by_key.get((name, fraction), [])
            own = f"{np.median([one['at_least'] for one in some]):.0f}" if some else "-"
            cells.append(f"{own} ({medians[str(fraction)]:.0f})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


Table = Callable[[Samples], list[str]]
PAGES: dict[Path, dict[str, Table]] = {
    PAGE: {"main claims": main_claims, "half": lambda samples: [half(samples)]},
    README: {
        "claims": claims,
        "knowing": knowing,
        "reliability": reliability,
        "ranking": ranking,
        "problems": problem_table,
    },
}


def page(path: Path, samples: Samples) -> str:
    """A page with its tables made anew; each stands between two comments that name it."""
    text = path.read_text()
    for name, table in PAGES[path].items():
        made = "\n".join(table(samples))
        pattern = rf"(<!-- {name} -->\n).*?(\n?<!-- end -->)"
        parts = re.split(pattern, text, flags=re.S)
        assert len(parts) == 4, f"{name} does not stand on the page once"
        text = parts[0] + parts[1] + made + "\n<!-- end -->" + parts[3]
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path, Samples()))
