"""The tables of docs/power.md and docs/peers.md, from the results beside this file."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from experiments.power.product import DEFAULT
from experiments.power.product_tables import UNSEEN, behind, powers
from experiments.power.run import WHOLE

METHODS = (DEFAULT, "exact MMD", "NPLM", "Mahalanobis", "Frechet")
KINDS = {
    UNSEEN: "hardly looked at while choosing",
    "twelve": "twelve real tables",
    "rest": "further real tables",
    "toys": "toy problems of the paper",
}
SIGNALS = {  # problem of result.json: its signals
    "1-D": ("bulk", "tail", "extreme tail", "excess"),
    "2-D": ("bulk", "extreme tail", "smearing", "squeezing"),
}
Found = dict[str, Any]
Table = list[str]


def made(problems: Found, product: Found, stopping: Found) -> dict[str, list[Table]]:
    """Every table of the page, by its name there."""
    found = {
        kind: {
            name: one
            for name, one in product["problems"].items()
            if one["table"] == kind and not one["near_null"]
        }
        for kind in KINDS
    }
    known = {name: one for kind in KINDS if kind != UNSEEN for name, one in found[kind].items()}
    return {
        "means": [means(found)],
        "peers": [peers(found)],
        "kinds": [kinds(found[UNSEEN]), [behind(found[UNSEEN])]],
        "twelve": [twelve(found["twelve"]), [behind(known)]],
        "toys": [toys(problems, found["toys"])],
        "stopping": [early(stopping)],
    }


def means(found: dict[str, Found]) -> Table:
    """The mean power of each method over each kind of problem."""
    lines = _head("mean power", "problems", *METHODS, f"{DEFAULT} at 1 %")
    for kind, title in KINDS.items():
        of_kind = [powers(one) for one in found[kind].values()]
        cells = [*(_mean(of_kind, name, "5 %") for name in METHODS), _mean(of_kind, DEFAULT, "1 %")]
        lines.append(_line([title, str(len(of_kind)), *cells]))
    return lines


def peers(found: dict[str, Found]) -> Table:
    """The means over the problems on which other tests were measured, at 5 %."""
    lines = _head("mean power at 5 %", *METHODS)
    titles = {
        UNSEEN: f"{len(found[UNSEEN])} problems hardly looked at while choosing",
        "twelve": "twelve real tables, on which the default was chosen",
    }
    for kind, title in titles.items():
        of_kind = [powers(one) for one in found[kind].values()]
        lines.append(_line([title, *(_mean(of_kind, name, "5 %") for name in METHODS)]))
    return lines


def _mean(of_kind: list[Found], name: str, level: str) -> str:
    """With its standard error: of the samples, the problems being fixed."""
    if not all(level in one.get(name, {}) for one in of_kind):
        return ""
    of = [one[name][level] for one in of_kind]
    error = sum(one["share"] * (1 - one["share"]) / one["n"] for one in of) ** 0.5 / len(of)
    return f"{sum(one['share'] for one in of) / len(of):.2f} ± {error:.2f}"


def kinds(unseen: dict[str, Found]) -> Table:
    """Problems of one kind together, in all dimensions."""
    of_kind: dict[str, list[Found]] = defaultdict(list)
    for name, one in unseen.items():
        kind = re.sub(r"^\d+-d |, hidden \d| \d+ %$", "", name)
        of_kind[kind].append(powers(one))
    lines = _head("power at 5 %", "problems", *METHODS)
    for kind, found in of_kind.items():
        share = [[one[name]["5 %"]["share"] for one in found] for name in METHODS]
        lines.append(_row([kind, str(len(found))], [sum(of) / len(of) for of in share]))
    return lines


def twelve(found: dict[str, Found]) -> Table:
    """Each of the real tables."""
    lines = _head("power at 5 %", *METHODS)
    for name, one in found.items():
        of = powers(one)
        lines.append(_row([name], [of[m]["5 %"]["share"] if m in of else None for m in METHODS]))
    return lines


def toys(problems: Found, relabelled: dict[str, Found]) -> Table:
    """The default with relabelled rows and with a simulator, and what no test can exceed."""
    columns = (f"{DEFAULT}, relabelled", f"{DEFAULT}, simulator", "NPLM, simulator", "oracle")
    lines = _head("power at 5 %", *columns)
    for problem, signals in SIGNALS.items():
        power = problems[problem]["power"]
        for signal in signals:
            name = f"{problem} {signal}"
            share = [powers(relabelled[name])[DEFAULT]["5 %"]["share"]]
            share += [power[way][signal]["power"] for way in (WHOLE, "NPLM", "oracle")]
            lines.append(_line([name, *(f"{one:.2f}" for one in share)]))
    return lines


def early(units: Found) -> Table:
    """The mean power over all problems, with all toys and with early stopping."""
    of: dict[str, list[Found]] = defaultdict(list)
    for name, one in units.items():
        of[name.split(";")[0]].append(one)
    every, stopped = (
        sum(sum(one[way] <= 0.05 + 1e-9 for one in found) / len(found) for found in of.values())
        / len(of)
        for way in ("all", "stopped")
    )
    samples = {len(found) for found in of.values()}
    return [
        f"Over {len(of)} problems (the twelve tables and the paper's toy problems), "
        f"{min(samples)} samples of each, the mean power at 5 % is {every:.3f} with all 300 toys "
        f"and {stopped:.3f} with `stop=Sequential()`."
    ]


def _row(first: list[str], shares: Iterable[float | None]) -> str:
    """The best in bold."""
    cells = ["" if one is None else f"{one:.2f}" for one in shares]
    return _line([*first, *(f"**{one}**" if one and one == max(cells) else one for one in cells)])


def _head(*titles: str) -> Table:
    return [_line(titles), "|---" * len(titles) + "|"]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
