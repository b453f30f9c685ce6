"""How the cost of a default test grows with rows, features, kernels, toys and widths.

One quantity at a time is doubled, again and again, from a common start; times are per toy without
compilation. A slope of 1 in the double-logarithmic plot is linear growth.

    python benchmarks/scaling.py
    python benchmarks/scaling.py --draw benchmarks/results/scaling-gpu.json docs/images/scaling.png
"""

import json
import sys
import time
from pathlib import Path

import jax
import numpy as np
from common import random_pool, save

from sparker import FitConfig, WidthConfig
from sparker.engine import fit_many

START = {
    "cpu": {"rows": 5_000, "features": 8, "kernels": 5, "toys": 16, "widths": 5},
    "gpu": {"rows": 20_000, "features": 16, "kernels": 5, "toys": 128, "widths": 5},
}
DOUBLINGS = {"cpu": 3, "gpu": 5}
MOST = {"kernels": 40, "widths": 40}
STEPS_A_WIDTH = 20
ROUNDS = 2


def seconds(rows, features, kernels, toys, widths):
    samples = random_pool(np.random.default_rng(0), rows, rows // 10, features, toys)
    plan = WidthConfig(n_widths=widths, steps=STEPS_A_WIDTH * widths).schedule(samples.points)
    config = FitConfig(n_kernels=kernels)

    def once(seed):
        began = time.perf_counter()
        assert fit_many(seed, samples, plan, config).finite.all()
        return time.perf_counter() - began

    once(0)
    return min(once(seed) for seed in range(1, 1 + ROUNDS))


def main():
    backend = jax.default_backend()
    start, results = START[backend], {}
    for quantity, first in start.items():
        results[quantity] = []
        for doubling in range(DOUBLINGS[backend] + 1):
            value = first * 2**doubling
            if value > MOST.get(quantity, value):
                break
            try:
                took = seconds(**{**start, quantity: value})
            except Exception as error:
                # What breaks first is a result, too.
                results[quantity].append({"value": value, "error": f"{type(error).__name__}"})
                print(quantity, value, repr(error)[:200], file=sys.stderr, flush=True)
                break
            print(f"{quantity:10} {value:10,} {took:8.3f} s", flush=True)
            results[quantity].append({"value": value, "seconds": round(took, 4)})
            save("scaling", start=start, results=results)


def draw(measured: Path, path: Path) -> None:
    """One line a quantity, beside the slope of linear growth."""
    from matplotlib.figure import Figure

    results = json.loads(measured.read_text())["results"]

    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    for quantity, found in results.items():
        times = [(one["value"], one["seconds"]) for one in found if "seconds" in one]
        value, took = np.array(times).T
        axes.loglog(value / value[0], took / took[0], "o-", label=quantity)
    ends = np.array(axes.get_xlim())
    axes.loglog(ends, ends, color="black", lw=0.8, ls=":", label="linear")
    axes.set(xlabel="times as many", ylabel="times as long")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--draw"]:
        draw(*map(Path, sys.argv[2:4]))
    else:
        main()
