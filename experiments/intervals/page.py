"""The tables of README.md beside this file, and their summary in docs/calibration.md.

python -m experiments.intervals.page           # writes them into both
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from experiments.intervals.run import TOYS_INTERVAL, TOYS_TAIL
from experiments.intervals.tables import KERNELS

HERE = Path(__file__).parent
RESULT, README = HERE / "result.json", HERE / "README.md"
PAGE = HERE.parents[1] / "docs" / "calibration.md"
BEGIN, END = "<!--{}-->\n", "<!--end-->\n"

Found = dict[str, Any]  # of each large table


def coverage(found: Found) -> Iterator[str]:
    """How often the 95 % interval contains the true p-value."""
    yield from header("table", "toys", *COVERAGE)
    for name, n, row in cells(found, "interval", TOYS_INTERVAL):
        all_p, worst, above, plain, width = covered(row)
        shown = f"{all_p:.1f} | {worst:.0f} | {above:.1f} | {plain:.0f} | {width:.1f}"
        yield f"| {name} | {n} | {shown} |"


COVERAGE = (
    "covered, %",
    "at the worst of seven p",
    "above the upper end",
    "Clopper-Pearson",
    "times as wide",
)


def covered(row: Found) -> tuple[float, ...]:
    """Percent covered, at the worst p, above the upper end, by Clopper-Pearson; relative width."""
    by_p = list(row["by p"].values())
    return (
        100 * row["all"],
        100 * min(one["covered"] for one in by_p),
        100 * float(np.mean([one["too low"] for one in by_p])),
        100 * float(np.mean([one["clopper_pearson"] for one in by_p])),
        float(np.median([one["median times as wide"] for one in by_p])),
    )


def bounds(found: Found) -> Iterator[str]:
    """Where no toy lies above: whether the sample is as far out as the bound says."""
    first, *others = TOYS_INTERVAL
    yield from header("table", f"{first} toys", *map(str, others))
    for name, one in found.items():
        shown = (
            f"{100 * b['true']:.0f} % of {b['n']} ({100 * b['of 1 / (B + 1)']:.0f} %)"
            for b in (one["bound"][str(n)] for n in TOYS_INTERVAL)
        )
        yield f"| {name} | {' | '.join(shown)} |"


def tails(found: Found) -> Iterator[str]:
    """How far the extrapolated p-value is off."""
    yield from header(
        *("table", "toys", "fitted, %", "upper end covers", "estimate below 1/10 of the truth"),
        *("below 1/3", "above 3 times", "above 10 times"),
    )
    for name, n, row in cells(found, "tail", TOYS_TAIL):
        yield f"| {name} | {n} | {' | '.join(f'{value:.0f}' for value in fitted(row))} |"


TAIL = (
    "upper end covers",
    "estimate below a tenth",
    "below a third",
    "above three times",
    "above ten times",
)


def fitted(row: Found) -> list[float]:
    """Percent of the fits that were not refused, then TAIL as percent of those."""
    by_p = list(row["by p"].values())
    share = np.array([one["fitted"] for one in by_p])
    of = [[one[name] or 0 for one in by_p] for name in TAIL]
    return [100 * share.mean(), *(100 * share @ np.array(of).T / share.sum())]


def looks(found: Found) -> Iterator[str]:
    """What adding toys until p <= 5 % does to the level."""
    yield from header("table", "once, with 999 toys", "looked at every 100 toys", "every 20")
    of = {name: list(found[name]["looks"].values()) for name in KERNELS}
    for name, row in of.items():
        shares = (f"{100 * one['share']:.1f}" for one in row)
        yield f"| {name} | {' | '.join(shares)} |"
    yield f"| together | {' | '.join(f'{share:.1f}' for share in together(found))} |"


def together(found: Found) -> list[float]:
    """Percent with p <= 5 % over all tables: once, every 100 toys, every 20."""
    of = [found[name]["looks"].values() for name in KERNELS]
    counts = np.array([[(one["k"], one["n"]) for one in row] for row in of]).sum(0)
    return list(100 * counts[:, 0] / counts[:, 1])


def interval(found: Found) -> Iterator[str]:
    """The summary of the interval's coverage."""
    all_p, worst, _, plain, _ = np.transpose(
        [covered(row) for _, _, row in cells(found, "interval", TOYS_INTERVAL)]
    )
    bound = [one["bound"][str(n)] for one in found.values() for n in TOYS_INTERVAL]
    n = sum(one["n"] for one in bound)
    true, naive = (sum(one["n"] * one[of] for one in bound) for of in ("true", "of 1 / (B + 1)"))
    yield (
        f"Coverage in {len(all_p)} settings: {span(all_p, '.1f')} %, at the worst p "
        f"{worst.min():.0f} % (Clopper-Pearson: {span(plain)} %). With no toy above the data, "
        f"{100 * true / n:.1f} % of {n:,} samples were as far out as its upper end, "
        f"{100 * naive / n:.0f} % as far out as 1/(B + 1)."
    )


def tail(found: Found) -> Iterator[str]:
    """The summary of the extrapolation."""
    rows = np.array([fitted(row) for _, _, row in cells(found, "tail", TOYS_TAIL)])
    _, upper, tenth, third, three, ten = rows.T
    yield (
        f"In {len(rows)} settings, {span(third)} % of the estimates were below a third of the "
        f"truth, {span(three)} % above three times, {span(tenth + ten)} % off by a factor of ten. "
        f"The toys' interval, printed beside, held in {span(upper)} %."
    )


def repeated(found: Found) -> Iterator[str]:
    """The summary of repeated looks."""
    once, hundred, twenty = together(found)
    yield (
        f"Checking p after every 100 of 999 toys gives p <= 5 % in {hundred:.1f} % of samples "
        f"without anomalies, after every 20 in {twenty:.1f} %, once in {once:.1f} %."
    )


def span(values: np.ndarray, form: str = ".0f") -> str:
    """From the smallest to the largest."""
    low, high = (format(value, form) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


def header(*titles: str) -> Iterator[str]:
    """The two lines that begin a table."""
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"


def cells(found: Found, kind: str, toys: Iterable[int]) -> Iterator[tuple[str, int, Found]]:
    """Every table with every number of toys."""
    return ((name, n, one[kind][str(n)]) for name, one in found.items() for n in toys)


TABLES = {"coverage": coverage, "bounds": bounds, "tails": tails, "looks": looks}
SUMMARY = {"interval": interval, "tail": tail, "repeated": repeated}


def page(text: str, tables: dict[str, Any]) -> str:
    """A page with these blocks made anew."""
    found = json.loads(RESULT.read_text())["tables"]
    for name, table in tables.items():
        begin = BEGIN.format(name)
        before, there, after = text.partition(begin)
        assert there, f"the page has no place for {name}"
        _, _, rest = after.partition(END)
        text = f"{before}{begin}\n{chr(10).join(table(found))}\n\n{END}{rest}"
    return text


if __name__ == "__main__":
    README.write_text(page(README.read_text(), TABLES))
    PAGE.write_text(page(PAGE.read_text(), SUMMARY))
