"""Embedders with weights beside the one without: what they see, and how fast they are.

    python -m experiments.embed.weights [--seconds 90] [--only minilm] [--more]

The inputs are those of two recipes: lines of *Paradise Lost*, or of a Markov chain that has read
the Bible, among lines of the Bible (``examples/planted_text.py``); photographs with faint stripes
among others (``examples/striped_images.py``). What these need is in ``examples/requirements``.
Embedders that do not learn see every line and picture once; samples are then drawn from what they
gave. As many samples as fit into the time; writes ``weights.json``.
"""

import argparse
import ast
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from experiments.embed.run import ALPHA, MAX_POWER, N_TOYS, rate, tested, until
from experiments.record import as_text

from sparker.embed import TEXT, Embedder, choose
from sparker.embed.efficientnet import EfficientNet
from sparker.system.versions import versions

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
RESULT = HERE / "weights.json"
LINES, PHOTOGRAPHS = (800, 200), (400, 100)
"""Rows of reference and data. A test of 1,280 columns takes longer."""
PLANTED, STRIPED, WRITTEN = (40, 20), (10, 5), 40
POOL, STRANGERS, TIMED = 2500, 500, 256
"""Things that samples are drawn from, ordinary and strange; those of a timing."""
TEXTS = "tfidf", "wordllama", "minilm"
PICTURES = {
    "efficientnet-lite0": EfficientNet(side=96, progress=False),
    "efficientnet-lite0, logits": EfficientNet(side=96, logits=True, progress=False),
}


class Pool:
    """Ordinary things and strange ones, and samples of them."""

    def __init__(self, ordinary: Any, strange: Any, sizes: tuple[int, int]) -> None:
        self.ordinary, self.strange = np.asarray(ordinary), np.asarray(strange)
        self.sizes = sizes

    def drawn(self, number: int, n_strange: int) -> tuple[np.ndarray, np.ndarray]:
        """Reference and data; the strange ones come first."""
        rng = np.random.default_rng([22, number, n_strange])
        n_reference, n_data = self.sizes
        n = n_reference + n_data - n_strange
        some = self.ordinary[rng.choice(len(self.ordinary), n, replace=False)]
        others = self.strange[rng.choice(len(self.strange), n_strange, replace=False)]
        return some[:n_reference], np.concatenate([others, some[n_reference:]])


def recipe(name: str, *wanted: str) -> list[Any]:
    """Functions of a recipe, which is a page and not meant to be imported."""
    sys.path.append(str(EXAMPLES))
    body = ast.parse((EXAMPLES / f"{name}.py").read_text()).body
    kept = [one for one in body if isinstance(one, ast.FunctionDef) and one.name in wanted]
    import _recipe

    space: dict[str, Any] = {"np": np, "json": json, "_recipe": _recipe}
    exec(compile(ast.Module(list(kept), []), name, "exec"), space)
    return [space[one] for one in wanted]


@functools.cache
def texts() -> dict[str, Pool]:
    """Lines of the Bible; of another book, and of a machine."""
    lines, bible, milton, chain = recipe("planted_text", "lines", "bible", "milton", "chain")
    rng = np.random.default_rng(22)
    book, other = rng.permutation(lines(bible())), rng.permutation(lines(milton()))
    return {
        "another book": Pool(book[:POOL], other[:STRANGERS], LINES),
        "a machine": Pool(book[:POOL], chain(book[POOL:].tolist(), rng, STRANGERS), LINES),
    }


@functools.cache
def photographs() -> Pool:
    """Files of photographs, and of others with stripes."""
    (striped,) = recipe("striped_images", "striped")
    import _cifar
    import _recipe

    some = np.random.default_rng(22).permutation(
        _cifar.photographs(_recipe.fetched("striped_images"))
    )
    folder = Path(tempfile.mkdtemp(prefix="sparker-"))
    _cifar.write(folder / "plain", some[:POOL])
    _cifar.write(folder / "striped", striped(some[POOL : POOL + STRANGERS]))
    files = [sorted(map(str, (folder / one).iterdir())) for one in ("plain", "striped")]
    return Pool(*files, PHOTOGRAPHS)


def embedded(embedder: Embedder, pool: Pool) -> Pool:
    """The numbers of all things."""
    numbers = [embedder.encode(part.tolist()) for part in (pool.ordinary, pool.strange)]
    return Pool(*numbers, pool.sizes)


def found(pool: Pool, n_strange: int, number: int, **how: Any) -> tuple[float, float]:
    """The p-value, and the strange share of as many rows as are strange, the highest first."""
    reference, data = pool.drawn(number, n_strange)
    if how:
        result = tested({"line": reference}, {"line": data}, number, explain=True, **how)
    else:
        result = tested(reference, data, number, explain=True)
    return result.p_value, float(np.mean(result.ranking[:n_strange] < n_strange))


def power(
    seconds: float, measure: Callable[[int], tuple[float, float]], before: dict[str, Any] | None
) -> dict[str, Any]:
    """How often it is noticed, how well the rows are named; samples are added to earlier ones."""
    k, n = (before["k"], before["n"]) if before else (0, 0)
    both = until(seconds, MAX_POWER - n, lambda i: measure(n + i)) if n < MAX_POWER else []
    p_values = [0.0] * k + [1.0] * (n - k) + [p for p, _ in both]
    shares = [before["among the highest"]] * n if before else []
    shares += [share for _, share in both]
    return {**rate(p_values), "among the highest": round(float(np.mean(shares)), 3)}


def speed(embedder: Embedder, things: list[str]) -> float:
    """Things a second of processor time, the second time round."""
    some = things[:TIMED]
    ready = embedder.fitted(some)
    ready.encode(some[:16])
    began = time.process_time()
    ready.encode(some)
    return round(len(some) / (time.process_time() - began), 1)


def measured(name: str, seconds: float, before: dict[str, Any]) -> dict[str, Any]:
    """All cells of one embedder."""
    cells: dict[str, Any] = {}

    def cell(what: str, pool: Pool, n: int, **how: Any) -> None:
        key = f"{what}, {n}"
        cells[key] = power(seconds, functools.partial(found, pool, n, **how), before.get(key))

    if name in PICTURES:
        pool = photographs()
        cells["a second"] = speed(PICTURES[name], pool.ordinary.tolist())
        own = embedded(PICTURES[name], pool)
        for n in STRIPED:
            cell("stripes", own, n)
        return cells
    embedder = choose(name, TEXT, progress=False)
    cells["a second"] = speed(embedder, texts()["another book"].ordinary.tolist())
    for kind, sizes in (("another book", PLANTED), ("a machine", (WRITTEN,))):
        pool, how = texts()[kind], {"text": "line", "embed": name}
        if not embedder.learns:
            pool, how = embedded(embedder, pool), {}
        for n in sizes:
            cell(kind, pool, n, **how)
    return cells


def main() -> None:
    """Measure, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=90, help="for each cell")
    parser.add_argument("--only", help="one embedder")
    parser.add_argument("--more", action="store_true", help="add samples to those of before")
    options = parser.parse_args()
    os.environ["SPARKER_CACHE"] = "off"
    for name in [options.only] if options.only else [*TEXTS, *PICTURES]:
        result = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        before = result.get("embedders", {}).get(name, {}) if options.more else {}
        cells = measured(name, options.seconds, before)
        command = "python -m experiments.embed.weights"
        if options.more:
            command = f"{result['command']}, then --only {name!r} --more"
        result |= {
            "command": command,
            "settings": {"lines": LINES, "photographs": PHOTOGRAPHS, "toys": N_TOYS,
                         "alpha": ALPHA, "drawn from": POOL},
            "versions": versions(),
        }  # fmt: skip
        result.setdefault("embedders", {})[name] = cells
        RESULT.write_text(as_text(result))
        print(name, cells, flush=True)


if __name__ == "__main__":
    main()
