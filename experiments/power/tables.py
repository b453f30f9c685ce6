"""The tables of README.md, docs/power.md and docs/peers.md, from the JSON files beside this one.

python -m experiments.power.tables            # writes them into all
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from experiments.power import product_tables, summary_tables
from experiments.power.product import RESULT as PRODUCT
from experiments.power.run import DEFAULT, HERE, SETTINGS, VERDICTS, WHOLE
from experiments.power.stopping import RESULT as STOPPING

README = HERE / "README.md"
PAGE = HERE.parents[1] / "docs" / "power.md"
PEERS = PAGE.with_name("peers.md")
BEGIN, END = "<!--{}-->\n", "<!--end-->\n"
TITLES = {
    "1-D": "One dimension: 2,000 data, 20,000 reference",
    "2-D": "Two dimensions: 2,000 data, 20,000 reference",
    "2-D, five times the events": "Two dimensions: 10,000 data, 100,000 reference",
    "jets": "Jets (169 features): 1,000 data, 6,000 reference",
    "stripes": "Striped images (1,000 logits): 600 data, 2,200 reference",
    "LIGO": "Detector noise (4 features): 1,000 data, 6,000 reference",
    "MAGIC": "Telescope events (10 features): 2,000 data, 10,000 reference",
    "Dante": "Lines of Dante (384 features): 1,500 data, 10,000 reference",
    "CIFAR": "Corrupted images (1,000 logits): 600 data, 2,200 reference",
}
FAMILIES = {"all kernels": "kernels", "isolated": "isolated events", "bump": "excess scan"}
FAMILIES |= {"shape": "shape scan"}
"""What the families of kernels and scans are called, by their names in result.json."""

Powers = dict[str, dict[str, Any]]


def rows(power: Powers, names: list[str], title: str) -> list[str]:
    """A Markdown table: one line a way to test, one column a signal."""
    signals = list(power[DEFAULT])
    lines = [
        f"| {title} | " + " | ".join(s.replace("none", "level") for s in signals) + " |",
        "|---" * (len(signals) + 1) + "|",
    ]
    for name in names:
        shares = (power[name].get(signal) for signal in signals)
        cells = (f"{share['power']:.2f}" if share else "" for share in shares)
        lines.append(f"| {named(name)} | " + " | ".join(cells) + " |")
    return lines


def named(way: str) -> str:
    """A row's name, with the families' names of today."""
    for old, new in FAMILIES.items():
        if way in (f"{old} only", f"without {old}", f"{old} only (t)"):
            return way.replace(old, new)
    return way


def results(problems: dict[str, Any]) -> Iterator[list[str]]:
    """The default, and the kernels and scans, beside everything that is not SparKer."""
    for problem, title in TITLES.items():
        if problem in problems:
            power = problems[problem]["power"]
            ours = {*VERDICTS, *(way for way in power if way.split(", t only")[0] in SETTINGS)}
            first = [way for way in (WHOLE, DEFAULT) if way in power]
            others = [way for way in power if way not in {*ours, *first}]
            yield rows(power, [*first, *sorted(others, key=lambda way: way == "oracle")], title)


def ingredients(problems: dict[str, Any]) -> Iterator[list[str]]:
    """The kernels' fits judged otherwise, and fitted otherwise, on the paper's toys."""
    toys = {name: problems[name] for name in ("1-D", "2-D") if name in problems}
    for problem, found in toys.items():
        yield rows(found["power"], [DEFAULT, *VERDICTS], TITLES[problem])
    for problem, found in toys.items():
        fits = [way for way in SETTINGS if way in found["power"]]
        if len(fits) > 1:
            kernels = [f"{way}, t only" for way in fits if f"{way}, t only" in found["power"]]
            yield rows(found["power"], [*fits, *kernels], TITLES[problem])


def page(text: str, problems: dict[str, Any], product: dict[str, Any] | None = None) -> str:
    """The README with its tables made anew; those of the product stay as they are without it."""
    for name, tables in (("results", results), ("ingredients", ingredients)):
        text = put(text, name, tables(problems))
    if product is not None:
        for name, unseen in (("unseen", True), ("product", False)):
            text = put(text, name, product_tables.tables(product, unseen=unseen))
    return text


def summary(text: str, problems: dict[str, Any], product: dict[str, Any]) -> str:
    """A page with those of the summary's tables made anew that it has marks for."""
    units = json.loads(STOPPING.read_text())["units"]
    for name, tables in summary_tables.made(problems, product, units).items():
        if BEGIN.format(name) in text:
            text = put(text, name, tables)
    return text


def put(text: str, name: str, tables: Iterable[list[str]]) -> str:
    """The page with other tables between the marks of this name."""
    begin = BEGIN.format(name)
    before, found, after = text.partition(begin)
    if not found:
        raise ValueError(f"the page has no place for these tables: {begin.strip()}")
    _, _, rest = after.partition(END)
    blocks = "\n\n".join("\n".join(table) for table in tables)
    return f"{before}{begin}\n{blocks}\n\n{END}{rest}"


def main() -> None:
    """Write the README and the pages."""
    problems = json.loads((HERE / "result.json").read_text())["problems"]
    product = json.loads(PRODUCT.read_text()) if PRODUCT.exists() else None
    README.write_text(page(README.read_text(), problems, product))
    if product is not None:
        for path in (PAGE, PEERS):
            path.write_text(summary(path.read_text(), problems, product))


if __name__ == "__main__":
    main()
