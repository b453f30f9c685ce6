"""Whether the interval of a p-value, and so that of its significance, and the tail's interval hold.

    python -m experiments.intervals.run [--quick] [--output DIR]

Rows of known p-value are taken for the data, other rows of the same large table for the toys
(``experiments.intervals.tables``). Measured are: how often the 95 % interval contains the p-value
that all rows give, beside Clopper and Pearson's; where no toy lies above, how often the lower end
of the significance is a bound; the same of the tail fit, and how far its estimate is off; what it
costs to add toys until p <= 5 %. Writes ``result.json``; twenty minutes on one core.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from experiments import record
from experiments.intervals.tables import KERNELS, OTHERS, QUICK, RULE, Known

from sparker.calibration.pvalues import clopper_pearson, rank
from sparker.calibration.tail import fit_tail
from sparker.system.versions import versions

P_INTERVAL = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5)
P_TAIL = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
TOYS_INTERVAL = (100, 300, 1000)
TOYS_TAIL = (200, 300, 1000)
ALPHA = 0.05
LOOKS = {"every 100 toys": range(99, 1000, 100), "every 20 toys": range(99, 1000, 20)}


def coverage(known: Known, n_toys: int, repeats: int) -> record.Result:
    """How often an interval contains the true p-value, by that p-value; and of a row outside."""
    rng = np.random.default_rng(n_toys)
    found = {}
    for p in P_INTERVAL:
        hits, plain, low, high, width = [], [], [], [], []
        for _ in range(repeats):
            row = known.row_at(p * rng.uniform(0.8, 1.25), known.p)
            ranked, truth = rank(known.table(rng, row, n_toys), RULE), known.p[row]
            ends, exact = ranked.interval, clopper_pearson(ranked.above, n_toys)
            hits.append(ends[0] <= truth <= ends[1])
            plain.append(exact[0] <= truth <= exact[1])
            low.append(truth < ends[0])
            high.append(truth > ends[1])
            width.append((ends[1] - ends[0]) / (exact[1] - exact[0]))
        found[f"{p:g}"] = {
            "covered": mean(hits),
            "too high": mean(low),
            "too low": mean(high),
            "clopper_pearson": mean(plain),
            "median times as wide": round(float(np.median(width)), 2),
        }
    return {"n": repeats, "all": mean([one["covered"] for one in found.values()]), "by p": found,
            "outside": outside(known, n_toys, repeats)}  # fmt: skip


def outside(known: Known, n_toys: int, repeats: int) -> float:
    """The same of a row beyond the whole table, whose p-value is none that the table resolves."""
    rng = np.random.default_rng(n_toys + 1)
    beyond = known.t.max(0) * 1.5
    lows = []
    for _ in range(repeats):
        t = known.table(rng, int(rng.integers(len(known.t))), n_toys)
        t[0] = beyond
        lows.append(rank(t, RULE).interval[0] <= 1 / (len(known.t) + 1))
    return mean(lows)


def bound(known: Known, n_toys: int, repeats: int) -> record.Result:
    """Of anomaly-free samples with no toy above, how many are as far out as is printed.

    Rows beyond 30 / n_toys are left out: none of them ever leads its toys.
    """
    rng = np.random.default_rng(n_toys)
    candidates = np.flatnonzero(known.p <= 30 / n_toys)
    true, naive = [], []
    for row in rng.choice(candidates, repeats):
        ranked = rank(known.table(rng, int(row), n_toys), RULE)
        if ranked.above == 0:
            true.append(known.p[row] <= ranked.interval[1])
            naive.append(known.p[row] <= 1 / (n_toys + 1))
    return {"n": len(true), "true": mean(true), "of 1 / (B + 1)": mean(naive)}


def tails(known: Known, n_toys: int, repeats: int) -> record.Result:
    """The upper end of the tail fit's interval, its estimate, and how many fits are refused."""
    rng = np.random.default_rng(n_toys)
    found = {}
    for p in P_TAIL:
        covered, ratios = [], []
        for _ in range(repeats):
            row = known.row_at(p * rng.uniform(0.8, 1.25), known.p_smooth)
            observed, *toys = known.table(rng, row, n_toys)
            try:
                fit = fit_tail(observed, np.array(toys), RULE.__name__)
            except ValueError:
                continue
            covered.append(known.p_smooth[row] <= fit.interval[1])
            ratios.append(fit.p_value / known.p_smooth[row])
        of = np.array(ratios)
        found[f"{p:g}"] = {
            "fitted": len(covered) / repeats,
            "upper end covers": mean(covered),
            "estimate below a tenth": mean(of < 0.1),
            "below a third": mean(of < 1 / 3),
            "above three times": mean(of > 3),
            "above ten times": mean(of > 10),
        }
    return {"n": repeats, "by p": found}


def repeated_looks(known: Known, repeats: int) -> record.Result:
    """Anomaly-free samples called anomalous if toys are added until they are."""
    rng = np.random.default_rng(0)
    numbers = sorted(set().union(*LOOKS.values()))
    p = []
    for row in rng.integers(len(known.t), size=repeats):
        t = known.table(rng, int(row), numbers[-1])
        p.append([rank(t[: n + 1], RULE).p_value for n in numbers])
    found = {"once, 999 toys": level(np.array(p)[:, -1])}
    for name, looks in LOOKS.items():
        at = [numbers.index(n) for n in looks]
        found[f"until p <= {ALPHA}, {name}"] = level(np.array(p)[:, at].min(1))
    return found


def level(p: np.ndarray) -> record.Result:
    """The share of these p-values at 5 % or below."""
    return record.share(int(np.sum(p <= ALPHA + 1e-12)), len(p))


def mean(hits: Sequence[float] | np.ndarray) -> float | None:
    """A share with four digits; none of nothing."""
    return round(float(np.mean(hits)), 4) if len(hits) else None


def measure(quick: bool) -> record.Result:
    """All of it."""
    n, few = (1500, 20) if quick else (20_000, 1)
    tables = KERNELS | OTHERS
    found: record.Result = {}
    for name in QUICK if quick else tables:
        began = time.perf_counter()
        known = Known.of(tables[name](n if name in KERNELS or quick else 2 * n))
        made = time.perf_counter() - began
        found[name] = {
            "rows": len(known.t),
            "interval": {b: coverage(known, b, 80 // few) for b in TOYS_INTERVAL},
            "bound": {b: bound(known, b, 3000 // few) for b in TOYS_INTERVAL},
            "tail": {b: tails(known, b, 30 // few) for b in TOYS_TAIL},
        }
        if name in KERNELS:
            found[name]["looks"] = repeated_looks(known, 400 // few)
        seconds = time.perf_counter() - began
        print(f"{name}: {made:.0f} s for the table, {seconds:.0f} s in all", flush=True)
    return {"settings": {"rule": RULE.__name__, "alpha": ALPHA}, "tables": found}


def main(arguments: Sequence[str] | None = None) -> Path:
    """Measure, write and return the path."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="under a minute, into quick.json")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="a folder")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    found = measure(options.quick)
    result = {
        "command": "python -m experiments.intervals.run" + " --quick" * options.quick,
        "hardware": jax.devices()[0].device_kind,
        "versions": versions(),
        "seconds": round(time.perf_counter() - began, 1),
    }
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / ("quick.json" if options.quick else "result.json")
    path.write_text(record.as_text(result | found))
    return path


if __name__ == "__main__":
    main()
