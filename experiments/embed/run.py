"""Texts: the level of ``embed="tfidf"`` as it learns, and as it must not; what embedders see.

    python -m experiments.embed.run [--seconds 150] [--embedders tfidf,minilm]

Sentences of Python's own documentation (``pydoc_data``), split at random into reference and data.
Planted are sentences of scikit-learn's descriptions of data sets. Both come with packages that
sparker needs. The level is that of nearest rows (``statistics.Neighbours``), which an embedder that
treats the two samples differently disturbs most; power is that of the default. As many samples as
fit into the time; writes ``result.json``.
"""

import argparse
import functools
import json
import re
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import sklearn
from experiments.record import as_text

import sparker
from sparker.calibration.pvalues import clopper_pearson
from sparker.embed import Tfidf
from sparker.statistics import Neighbours
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "result.json"
N_REFERENCE, N_DATA, N_TOYS, ALPHA = 400, 100, 39, 0.05
PLANTED = 20, 10
MAX_LEVEL, MAX_POWER = 400, 40


def sentences(texts: list[str]) -> list[str]:
    """The different sentences of some texts, without marks of markup."""
    found = set()
    for text in texts:
        plain = re.sub(r"[*`|=-]{2,}|[*`|]", "", re.sub(r"\s+", " ", text))
        found |= {one.strip() for one in re.split(r"(?<=[.:])\s+", plain)}
    return sorted(one for one in found if 40 <= len(one) <= 300)


@functools.cache
def sources() -> tuple[list[str], list[str]]:
    """Ordinary sentences, and those that are planted."""
    folder = Path(sklearn.__file__).parent / "datasets" / "descr"
    other = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.rst"))]
    return sentences(list(topics.values())), sentences(other)


def drawn(number: int, n_planted: int = 0) -> tuple[list[str], list[str]]:
    """Reference and data, the planted ones first."""
    rng = np.random.default_rng([22, number, n_planted])
    ordinary, other = sources()
    n = N_REFERENCE + N_DATA - n_planted
    some = [ordinary[i] for i in rng.choice(len(ordinary), n, replace=False)]
    planted = [other[i] for i in rng.choice(len(other), n_planted, replace=False)]
    return some[:N_REFERENCE], planted + some[N_REFERENCE:]


def pooled(number: int) -> float:
    """As sparker does it: learned from both samples together."""
    reference, data = drawn(number)
    how: dict[str, Any] = {"text": "line", "embed": "tfidf", "statistic": Neighbours()}
    return tested({"line": reference}, {"line": data}, number, **how).p_value


def reference_alone(number: int) -> float:
    """The mistake: learned from the reference, and applied to both."""
    reference, data = drawn(number)
    learned = Tfidf.fit(reference)
    rows = learned.encode(reference), learned.encode(data)
    return tested(*rows, number, statistic=Neighbours()).p_value


def apart(number: int) -> float:
    """Learned from further rows that are used nowhere else, as monitors and simulators need it."""
    reference, data = drawn(number)
    used = {*reference, *data}
    learned = Tfidf.fit([one for one in sources()[0] if one not in used][:N_REFERENCE])
    how: dict[str, Any] = {"text": "line", "embed": learned, "statistic": Neighbours()}
    return tested({"line": reference}, {"line": data}, number, **how).p_value


def tested(reference: Any, data: Any, number: int, **how: Any) -> Any:
    """A test with few toys."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparker.DataWarning)
        return sparker.test(
            reference, data, n_toys=N_TOYS, seed=number, progress=False, **{"explain": False, **how}
        )


def found_by(embedder: str, n_planted: int, number: int) -> tuple[float, float]:
    """The p-value, and the planted share of as many rows as are planted, the highest first."""
    reference, data = drawn(number, n_planted)
    how: dict[str, Any] = {"text": "line", "embed": embedder, "explain": True}
    result = tested({"line": reference}, {"line": data}, number, **how)
    return result.p_value, float(np.mean(result.ranking[:n_planted] < n_planted))


def rate(p_values: list[float]) -> dict[str, Any]:
    """How many are at or below the level, with the exact 95 % interval."""
    k, n = sum(p <= ALPHA + 1e-9 for p in p_values), len(p_values)
    low, high = clopper_pearson(k, n, 0.95)
    return {"k": k, "n": n, "interval": [round(low, 4), round(high, 4)]}


def until(seconds: float, most: int, measure: Callable[[int], Any]) -> list[Any]:
    """As many samples as fit into the time."""
    began, found = time.perf_counter(), []
    while len(found) < most and (not found or time.perf_counter() - began < seconds):
        found.append(measure(len(found)))
    return found


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=150, help="for each line of the tables")
    parser.add_argument("--embedders", default="tfidf", help="separated by commas, for the power")
    parser.add_argument("--more", help="only add samples to this line of the table of levels")
    options = parser.parse_args()
    began = time.perf_counter()
    result: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    result |= {
        "command": f"python -m experiments.embed.run --embedders {options.embedders}",
        "settings": {
            "reference": N_REFERENCE, "data": N_DATA, "toys": N_TOYS, "alpha": ALPHA,
            "sentences": [len(some) for some in sources()],
        },
        "versions": versions(),
    }  # fmt: skip
    cells = {
        "on both samples": pooled,
        "on the reference": reference_alone,
        "on further rows": apart,
    }
    if options.more:
        before = result["level"][options.more]
        added = until(options.seconds, MAX_LEVEL, lambda i: cells[options.more](before["n"] + i))
        ones = [0.0] * before["k"] + [1.0] * (before["n"] - before["k"])
        result = json.loads(RESULT.read_text())  # another process may have written meanwhile
        result["command"] += f", then --more {options.more!r} --seconds {options.seconds:g}"
        result["level"][options.more] = rate([*ones, *added])
        RESULT.write_text(as_text(result))
        return
    if "tfidf" in options.embedders.split(","):
        result["level"] = {}
        for name, measure in cells.items():
            result["level"][name] = rate(until(options.seconds, MAX_LEVEL, measure))
            print(name, result["level"][name], flush=True)
            RESULT.write_text(as_text(result))
    power = result.setdefault("power", {})
    for name in options.embedders.split(","):
        power[name] = {}
        for n_planted in PLANTED:
            both = until(
                options.seconds, MAX_POWER, lambda i, e=name, n=n_planted: found_by(e, n, i)
            )
            power[name][str(n_planted)] = {
                **rate([p for p, _ in both]),
                "planted among the highest": round(float(np.mean([s for _, s in both])), 3),
            }
            print(name, n_planted, power[name][str(n_planted)], flush=True)
            RESULT.write_text(as_text(result))
    result["seconds"] = round(time.perf_counter() - began, 1)
    RESULT.write_text(as_text(result))


if __name__ == "__main__":
    main()
