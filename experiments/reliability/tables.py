"""The tables of README.md and docs/reliability.md.

python -m experiments.reliability.tables            # writes them into the pages
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.reliability.attack import ATTACKS, GROUPS
from experiments.reliability.endurance import RESULT as ENDURANCE
from experiments.reliability.fuzz import RESULT as FUZZ
from experiments.reliability.run import RESULT

README = RESULT.with_name("README.md")
PAGE = RESULT.parents[2] / "docs" / "reliability.md"
PAGES = (PAGE, README)
BEGIN, END = "<!-- table: {} -->\n", "<!-- end of table -->\n"

Groups = dict[str, dict[str, Any]]


def total(groups: Groups) -> Iterator[str]:
    """A line for each group, and one for all."""
    yield "| | attacks | times | handled | not handled | longest work (s) | most memory (MiB) |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    every = []
    for name, what in GROUPS.items():
        if name in groups:
            every += groups[name]["attacks"]
            yield line(what, groups[name]["attacks"])
    yield line("**all**", every)


def line(name: str, attacks: list[dict[str, Any]]) -> str:
    """Sums over attacks."""
    tried = sum(one["tried"] for one in attacks)
    handled = sum(one["handled"] for one in attacks)
    slowest = max(one["slowest_s"] for one in attacks)
    peak = max(one["peak_MiB"] for one in attacks)
    return (
        f"| {name} | {len(attacks)} | {tried:,} | {handled:,} | {tried - handled:,} | "
        f"{slowest:.0f} | {peak:,.0f} |"
    )


def fuzzed(found: dict[str, Any]) -> Iterator[str]:
    """A line for each kind of file or folder that was changed at random, and one for all."""
    yield "| | cases | commands | of these refused | failed |"
    yield "|---|--:|--:|--:|--:|"
    every = Counter[str]()
    for name, kind in found["kinds"].items():
        codes = kind["exit_codes"]
        counts = {
            "cases": kind["cases"],
            "commands": sum(codes.values()),
            "refused": sum(n for code, n in codes.items() if code[-1] in "245"),
            "short": kind["fell_short"],
        }
        every.update(counts)
        yield f"| {name} | " + " | ".join(f"{n:,}" for n in counts.values()) + " |"
    yield "| **all** | " + " | ".join(f"{n:,}" for n in every.values()) + " |"


def open_ends(groups: Groups) -> Iterator[str]:
    """What was not handled, in its own words, and what was not tried."""
    found = [
        f"- {one['name']}: {case['what']}"
        for group in groups.values()
        for one in group["attacks"]
        for case in one["failed"]
    ]
    yield from found or ["- Nothing."]
    tried = {(name, one["name"]) for name, group in groups.items() for one in group["attacks"]}
    every = Counter(one.group for one in ATTACKS)
    rest = Counter(one.group for one in ATTACKS if (one.group, one.name) not in tried)
    if rest:
        yield ""
        listed = ", ".join(f"{n} of {every[name]} of `{name}`" for name, n in rest.items())
        yield f"Attacks that are there and were not tried in it: {listed}."


def memory(looks: list[dict[str, int]], of: str) -> Iterator[str]:
    """What a process has in memory after so many batches, or sizes."""
    yield f"| {of} | " + " | ".join(f"{one[of]:,}" for one in looks) + " |"
    yield "|---|" + "--:|" * len(looks)
    yield "| MiB | " + " | ".join(f"{one['MiB']:,}" for one in looks) + " |"


def fuzz_sum(found: dict[str, Any]) -> Iterator[str]:
    """The last line of that table."""
    *_, line = fuzzed(found)
    _, cases, _, _, short = (cell.strip() for cell in line.strip("|").split("|"))
    yield f"Files and folders changed at random: {cases} cases, of which {short} failed."


def page(path: Path) -> str:
    """A page with its tables made anew."""
    groups = json.loads(RESULT.read_text())["groups"]
    found, endurance = (json.loads(one.read_text()) for one in (FUZZ, ENDURANCE))
    if path == PAGE:
        tables = {"all": total(groups), "fuzz sum": fuzz_sum(found)}
    else:
        tables = {
            "all": total(groups),
            "open": open_ends(groups),
            "fuzz": fuzzed(found),
            "sizes": memory(endurance["sizes"], "sizes"),
        }
    text = path.read_text()
    for name, lines in tables.items():
        head, _, rest = text.partition(BEGIN.format(name))
        _, end, tail = rest.partition(END)
        assert end, f"{name} does not stand on the page"
        text = head + BEGIN.format(name) + "\n" + "\n".join(lines).rstrip() + "\n\n" + END + tail
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(page(path))
