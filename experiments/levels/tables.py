"""The tables of docs/calibration.md, from the JSON files beside this one.

python -m experiments.levels.tables            # writes them into the page
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from experiments.levels import default, weighted_pools
from experiments.levels.cells import CELLS, MISTAKES
from experiments.levels.populations import POPULATIONS
from experiments.levels.run import ALPHAS, RESULT, key_of
from scipy.stats import binom

from sparker.calibration.pvalues import clopper_pearson

PAGE = RESULT.parents[2] / "docs" / "calibration.md"
BEGIN, END = "<!-- tables: {} -->\n", "<!-- end of tables -->\n"
STATISTICS = ("mean", "maximum", "Kolmogorov-Smirnov", "deficit", "all four", "kernels")
SHOWN = ALPHAS.index(0.05)
UNLIKELY = 0.01

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


def pooled(found: dict[str, Count]) -> str:
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
    """What would be seen: the population and statistic that show each mistake most."""
    yield "| mistake | seen most clearly by | in | percent with p <= 5 % |"
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


def of_default(found: dict[str, Any]) -> Iterator[str]:
    """The whole default, at several levels."""
    n_rows = found["sizes"]["toys"] + 1
    percent = " | ".join(f"p <= {100 * alpha:.0f} %" for alpha in default.ALPHAS)
    yield f"| rows | tests | {percent} |"
    yield "|---" * (2 + len(default.ALPHAS)) + "|"
    for name, ranks in found["ranks"].items():
        n = sum(ranks)
        row = [Count(sum(ranks[: round(alpha * n_rows)]), n) for alpha in default.ALPHAS]
        yield f"| {name} | {n:,} | {' | '.join(map(str, row))} |"


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


TABLES = {"levels": levels, "summary": summary, "mistakes": mistakes}


def page(text: str, cells: Cells) -> str:
    """The page with its tables made anew."""
    measured = json.loads(default.RESULT.read_text())
    made = {name: table(cells) for name, table in TABLES.items()}
    made["default"] = of_default(measured)
    pools = json.loads(weighted_pools.RESULT.read_text())["units"]
    made["weighted pools"] = of_weighted_pools(pools)
    for name, table in made.items():
        begin = BEGIN.format(name)
        before, there, after = text.partition(begin)
        assert there, f"the page has no place for {name}"
        _, _, rest = after.partition(END)
        text = f"{before}{begin}\n{chr(10).join(table)}\n\n{END}{rest}"
    return text


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(), json.loads(RESULT.read_text())["cells"]))


if __name__ == "__main__":
    main()
