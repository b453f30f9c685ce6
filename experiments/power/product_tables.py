"""The tables of product.json: every method on the same samples, the best of a row in bold."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from experiments.power.product import DEFAULT, METHODS

UNSEEN = "unseen"
TITLES = {
    UNSEEN: "Problems hardly looked at while choosing",
    "twelve": "Twelve real tables",
    "rest": "Further real tables",
    "toys": "Toys, relabelled",
    "simulated": "Toys, with a simulator and the expected number of events",
}
NEAR_NULL = "†"
Found = dict[str, Any]  # of one problem
Powers = dict[str, Found]  # of each method: levels, seconds


def tables(product: dict[str, Any], *, unseen: bool) -> Iterator[list[str]]:
    """A table of each kind of problem, unseen or not, then what they come to."""
    problems = {
        name: found
        for name, found in product["problems"].items()
        if (found["table"] == UNSEEN) == unseen
    }
    if not problems:
        return
    for kind, title in TITLES.items():
        of_kind = {name: found for name, found in problems.items() if found["table"] == kind}
        if of_kind:
            yield table(title, of_kind)
        if _to_find(of_kind):
            yield [means(title, of_kind)]
    yield notes(problems)
    if said := behind(problems):
        yield [said]


def shown_toys(found: Found) -> str:
    """The number of toys that most methods have; of several, the largest."""
    by_toys = found["toys"]
    return max(by_toys, key=lambda n_toys: (len(by_toys[n_toys]), int(n_toys)))


def powers(found: Found) -> Powers:
    """Of every method, with this number of toys."""
    return found["toys"][shown_toys(found)]


def otherwise(found: Found) -> dict[tuple[str, str], float]:
    """The default's power with fewer toys, and at 1 % with more, by number of toys and level."""
    shown = shown_toys(found)
    powers = {
        (n_toys, "5 %" if int(n_toys) < int(shown) else "1 %"): by_method[DEFAULT]
        for n_toys, by_method in found["toys"].items()
        if n_toys != shown and DEFAULT in by_method
    }
    return {key: by_level[key[1]]["share"] for key, by_level in powers.items()}


def table(title: str, problems: dict[str, Found]) -> list[str]:
    """One line a problem, one column a method; then the means."""
    present = {name for found in problems.values() for name in powers(found)}
    methods = [name for name in METHODS if name in present]
    others = list(dict.fromkeys(key for found in problems.values() for key in otherwise(found)))
    titles = [f"{n_toys} toys{' at 1 %' * (level == '1 %')}" for n_toys, level in others]
    columns = [*methods, f"{DEFAULT} at 1 %", *titles]
    lines = [_line([title, *columns]), "|---" * (len(columns) + 1) + "|"]
    for name, found in problems.items():
        at_5, at_1 = (_shares(powers(found), level) for level in ("5 %", "1 %"))
        row = [at_5.get(method) for method in methods]
        last = [at_1.get(DEFAULT), *map(otherwise(found).get, others)]
        bold = _plain if found["near_null"] else _best(row)
        lines.append(_line([_label(name, found), *map(bold, row), *map(_plain, last)]))
    for level in ("5 %", "1 %"):
        shares = [_shares(powers(one), level) for one in _to_find(problems)]
        row = [_mean(shares, method) for method in methods]
        shares = [otherwise(one) for one in _to_find(problems)]
        last = [None, *(_mean(shares, other) if other[1] == level else None for other in others)]
        lines.append(_line([f"mean at {level}", *map(_best(row), row), *map(_plain, last)]))
    return lines


def _shares(by_name: dict[str, Found], level: str) -> dict[str, float]:
    return {name: found[level]["share"] for name, found in by_name.items() if level in found}


def _to_find(problems: dict[str, Found]) -> list[Found]:
    """The problems with something to find."""
    return [found for found in problems.values() if not found["near_null"]]


def _mean(shares: Sequence[dict[Any, float]], of: Any) -> float | None:
    """Over all problems; none of what was not measured on all of them."""
    if not shares or not all(of in by_name for by_name in shares):
        return None
    return sum(by_name[of] for by_name in shares) / len(shares)


def means(title: str, problems: dict[str, Found]) -> str:
    """The means at 5 % with their standard errors: of the samples, the problems being fixed."""
    found = _to_find(problems)
    text = []
    for method in METHODS:
        if all("5 %" in powers(one).get(method, {}) for one in found):
            of = [powers(one)[method]["5 %"] for one in found]
            mean = sum(one["share"] for one in of) / len(of)
            error = sum(one["share"] * (1 - one["share"]) / one["n"] for one in of) ** 0.5 / len(of)
            text.append(f"{method} {mean:.2f} ± {error:.2f}")
    return f"{title}, mean power at 5 % and its standard error: {', '.join(text)}."


def notes(problems: dict[str, Found]) -> list[str]:
    """How many samples and toys, and what the mark means."""
    shown = [powers(found) for found in problems.values()]
    n = [one["5 %"]["n"] for by_method in shown for one in by_method.values()]
    toys = sorted({shown_toys(found) for found in problems.values()}, key=int)
    samples = f"{min(n)}" if min(n) == max(n) else f"{min(n)} to {max(n)}"
    text = [f"{samples} samples of each problem, {' or '.join(toys)} toys of each sample."]
    if any(found["near_null"] for found in problems.values()):
        text.append(f"{NEAR_NULL} nothing should be found; not counted in means.")
    return text


def behind(problems: dict[str, Found]) -> str:
    """In how many problems a single other test is better, and by how much."""
    judged = {
        name: powers(found)
        for name, found in problems.items()
        if not found["near_null"] and DEFAULT in powers(found) and len(powers(found)) > 1
    }
    if not judged:
        return ""  # no other test was measured
    better = {name: other for name, found in judged.items() if (other := best_other(found))}
    text = f"On {len(better)} of {len(judged)} problems a single other test is better than the "
    text += "default by more than the 68 % intervals"
    listed = (
        f"{name} ({other} {judged[name][other]['5 %']['share']:.2f} against "
        f"{judged[name][DEFAULT]['5 %']['share']:.2f})"
        for name, other in better.items()
    )
    return text + (": " + ", ".join(listed) if better else "") + "."


def best_other(found: Powers) -> str | None:
    """The best of the tests whose interval is all above the default's, if there is one."""
    most = found[DEFAULT]["5 %"]["high"]
    above = [name for name in found if name != DEFAULT and found[name]["5 %"]["low"] > most]
    return max(above, key=lambda name: found[name]["5 %"]["share"], default=None)


def _label(name: str, found: Found) -> str:
    marks = NEAR_NULL * found["near_null"]
    sizes = f"{found['n_reference']:,} + {found['n_data']:,} x {found['n_features']}"
    return f"{name}{marks} ({sizes})"


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _best(row: Sequence[float | None]) -> Callable[[float | None], str]:
    """Writes a number of this row, bold if none that is shown is larger."""
    largest = max(map(_plain, row))
    return lambda value: f"**{largest}**" if largest and _plain(value) == largest else _plain(value)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
