"""The tables of README.md and of docs/calibration.md, from the JSON files beside this one.

python -m experiments.levels.tables            # writes them into both
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from experiments.levels import default, monitor, weighted_pools
from experiments.levels.cells import CELLS, MISTAKES
from experiments.levels.populations import POPULATIONS
from experiments.levels.run import ALPHAS, RESULT, key_of
from scipy.stats import binom

from sparker.calibration.pvalues import clopper_pearson

README = RESULT.with_name("README.md")
PAGE = RESULT.parents[2] / "docs" / "calibration.md"
BEGIN, END = "<!--{}-->\n", "<!--end-->\n"
STATISTICS = ("mean", "maximum", "Kolmogorov-Smirnov", "deficit", "all four", "kernels")
SHOWN = ALPHAS.index(0.05)
UNLIKELY = 0.01
SCHEMES = {
    "permutation": ("permutation, 3", "permutation, 1"),
    "permutation, stopped early": ("permutation, stopped",),
    "strata, pairs": ("strata", "pairs"),
    "groups, also within strata": ("groups",),
    "weights of both samples": ("weights, a function", "weights within strata"),
    "weights of the reference alone": ("weights of the reference", "weights of two"),
    "counts, relabelled": ("counts",),
    "simulator, a function": ("simulator, a function",),
    "simulator, rows": tuple(f"simulator, {n}" for n in (150, 30, 600, 300)),
}
"""How the names of the cells begin that a line of the summary pools."""

IN_SHORT = {
    "null drawn from the reference": "null drawn from the reference",
    "a pool of 150 kept apart": "pool and data not exchanged",
    "splits of the reference": "splits of the reference",
    "groups of three, ignored": "groups ignored",
    "groups of 2 and of 20, alike": "groups of 2 and 20 exchanged",
    "strata, ignored": "strata ignored",
    "weights, as chances": "weights as label probabilities",
}
"""Of the mistakes, those in the summary."""

Cells = dict[str, Any]


class Count(NamedTuple):
    """So many of so many tests rejected at the level that is shown."""

    k: int
    n: int

    def __str__(self) -> str:
        low, high = clopper_pearson(self.k, self.n)
        return f"{100 * self.k / self.n:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def counts(cells: Cells, name: str, statistic: str, alpha: int = SHOWN) -> dict[str, Count]:
    """The tests of a scheme with one statistic, by population."""
    found = {}
    for population in POPULATIONS:
        cell = cells.get(key_of(name, population, statistic == "kernels"))
        if cell and statistic in cell["rejected"]:
            found[population] = Count(cell["rejected"][statistic][alpha], cell["n_tests"])
    return found


def pooled(found: Mapping[Any, Count]) -> str:
    """All populations together."""
    if not found:
        return ""
    return str(Count(sum(c.k for c in found.values()), sum(c.n for c in found.values())))


def levels(cells: Cells) -> Iterator[str]:
    """Every scheme with every statistic, over all populations."""
    yield f"| percent with p <= 5 % | {' | '.join(STATISTICS)} |"
    yield "|---" * (len(STATISTICS) + 1) + "|"
    for name in CELLS:
        row = [pooled(counts(cells, name, statistic)) for statistic in STATISTICS]
        yield f"| {name} | {' | '.join(row)} |"


def schemes(cells: Cells) -> Iterator[str]:
    """The default; then the schemes, similar ones together, with all four statistics."""
    yield "| tested | percent |"
    yield "|---|---|"
    for name, (count, *_) in levels_of_default(json.loads(default.RESULT.read_text())):
        yield f"| default: {name} | {count} |"
    for scheme, parts in SCHEMES.items():
        found = {
            (name, population): count
            for name in CELLS
            if name.startswith(parts)
            for population, count in counts(cells, name, "all four").items()
        }
        yield f"| {scheme} | {pooled(found)} |"


def comparisons(cells: Cells) -> list[tuple[float, str, str, float, Count]]:
    """Every count that could be too large: its chance to be as large, and whose it is."""
    return [
        (float(binom.sf(count.k - 1, count.n, alpha)), f"{name}; {population}", s, alpha, count)
        for name in CELLS
        for s in STATISTICS
        for i, alpha in enumerate(ALPHAS)
        for population, count in counts(cells, name, s, i).items()
    ]


def summary(cells: Cells) -> Iterator[str]:
    """How many counts are too large, and how many would be by chance."""
    found = sorted(comparisons(cells))
    n_tests = sum(cell["n_tests"] for cell in cells.values() if cell["right"])
    few = [one for one in found if one[0] < UNLIKELY]
    yield (
        f"These are {n_tests:,} anomaly-free tests and {len(found):,} counts of p <= 1, 5, 10 %, "
        "one for each scheme, population and statistic. Where p-values are exact and untied, "
        f"{UNLIKELY * len(found):.0f} of the counts would be among their largest "
        f"{100 * UNLIKELY:.0f} % by chance; {len(few)} are. The least likely of all:"
    )
    yield ""
    yield "| scheme; population | statistic | at | percent | chance to be as large |"
    yield "|---|---|---|---|---|"
    for chance, where, statistic, alpha, count in found[:5]:
        yield f"| {where} | {statistic} | {100 * alpha:.0f} % | {count} | {chance:.2g} |"


def mistakes(cells: Cells) -> Iterator[str]:
    """The population and statistic that show each mistake most."""
    yield "| mistake | statistic | population | percent with p <= 5 % |"
    yield "|---|---|---|---|"
    for name in MISTAKES:
        found = [
            (count.k / count.n, statistic, population, count)
            for statistic in STATISTICS
            for population, count in counts(cells, name, statistic).items()
        ]
        if found:
            _, statistic, population, count = max(found)
            yield f"| {name} | {statistic} | {population} | {count} |"


def mistakes_in_short(cells: Cells) -> Iterator[str]:
    """The largest level of each mistake."""
    found = {
        what: max(
            100 * count.k / count.n
            for statistic in STATISTICS
            for count in counts(cells, name, statistic).values()
        )
        for name, what in IN_SHORT.items()
    }
    listed = sorted(found.items(), key=lambda one: -one[1])
    yield "; ".join(f"{what} {percent:.0f} %" for what, percent in listed) + "."


def levels_of_default(found: dict[str, Any]) -> Iterator[tuple[str, list[Count]]]:
    """Of each kind of rows, at every level of default.ALPHAS."""
    n_rows = found["sizes"]["toys"] + 1
    for name, ranks in found["ranks"].items():
        up_to = (round(alpha * n_rows) for alpha in default.ALPHAS)
        yield name, [Count(sum(ranks[:n]), sum(ranks)) for n in up_to]


def of_default(found: dict[str, Any]) -> Iterator[str]:
    """The whole default, at several levels."""
    percent = " | ".join(f"p <= {100 * alpha:.0f} %" for alpha in default.ALPHAS)
    yield f"| rows | tests | {percent} |"
    yield "|---" * (2 + len(default.ALPHAS)) + "|"
    for name, row in levels_of_default(found):
        yield f"| {name} | {row[0].n:,} | {' | '.join(map(str, row))} |"


def of_weighted_pools(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Pool and reference with weights."""
    n_rows = weighted_pools.N_TOYS + 1
    percent = " | ".join(f"p <= {100 * alpha:.0f} %" for alpha in weighted_pools.ALPHAS)
    yield f"| weights | tested | tests | {percent} | warned |"
    yield "|---" * (4 + len(weighted_pools.ALPHAS)) + "|"
    for weights in weighted_pools.WEIGHTS:
        for counts in weighted_pools.COUNTS:
            cell = [one for key, one in found.items() if key.startswith(f"{weights}; {counts};")]
            row = [
                Count(sum(one["rank"] <= alpha * n_rows + 1e-9 for one in cell), len(cell))
                for alpha in weighted_pools.ALPHAS
            ]
            warned = sum(one["warned"] for one in cell)
            yield f"| {weights} | {counts} | {len(cell)} | {' | '.join(map(str, row))} | {warned} |"


def alarms(found: dict[str, dict[str, float]], times: int) -> np.ndarray:
    """The share of alarms at 5 % of each reference of this size."""
    return np.array([one["0.05"] for key, one in found.items() if key.startswith(f"{times};")])


def of_monitors(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """The shares of alarms of monitors with references of several sizes."""
    heads = ("references", "p <= 5 %, mean", "scatter", "of that, by counting", "largest")
    yield f"| reference rows, in batches | {' | '.join(heads)} |"
    yield "|---" * 6 + "|"
    for times in monitor.TIMES:
        share = alarms(found, times)
        mean, spread = share.mean(), share.std(ddof=1)
        counted = np.sqrt(mean * (1 - mean) / monitor.N_BATCHES)
        cells = (f"{100 * x:.1f}" for x in (spread, counted, share.max()))
        error = spread / np.sqrt(len(share))
        shown = f"{100 * mean:.1f} ± {100 * error:.1f} | {' | '.join(cells)}"
        yield f"| {times} | {len(share)} | {shown} |"


def monitors_in_short(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """The mean share of alarms, and that of the worst reference."""
    shares = [alarms(found, times) for times in monitor.TIMES]
    error = (share.std(ddof=1) / np.sqrt(len(share)) for share in shares)
    means = ", ".join(
        f"{100 * share.mean():.1f} ± {100 * e:.1f}" for share, e in zip(shares, error, strict=True)
    )
    largest = ", ".join(f"{100 * share.max():.0f}" for share in shares)
    yield (
        f"References of {', '.join(map(str, monitor.TIMES))} batches' rows: {means} % on average, "
        f"{largest} % for the worst of {len(shares[0])} references each."
    )


def made(cells: Cells) -> dict[str, Iterator[str]]:
    """Every table there is."""
    pools = json.loads(weighted_pools.RESULT.read_text())["units"]
    looks = json.loads(monitor.RESULT.read_text())["units"]
    return {
        "default": of_default(json.loads(default.RESULT.read_text())),
        "schemes": schemes(cells),
        "levels": levels(cells),
        "summary": summary(cells),
        "mistakes": mistakes(cells),
        "mistakes-in-short": mistakes_in_short(cells),
        "weighted-pools": of_weighted_pools(pools),
        "monitors": of_monitors(looks),
        "monitors-in-short": monitors_in_short(looks),
    }


def page(text: str, cells: Cells) -> str:
    """A page with those of the tables made anew that it has marks for."""
    for name, table in made(cells).items():
        begin = BEGIN.format(name)
        before, there, after = text.partition(begin)
        if there:
            _, _, rest = after.partition(END)
            text = f"{before}{begin}\n{chr(10).join(table)}\n\n{END}{rest}"
    return text


def main() -> None:
    """Write the README and the page."""
    cells = json.loads(RESULT.read_text())["cells"]
    for path in (README, PAGE):
        path.write_text(page(path.read_text(), cells))


if __name__ == "__main__":
    main()
