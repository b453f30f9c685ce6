"""The paper's compute table: microseconds per toy and training step, beside the paper's.

The cost of a step is what 1,000 steps take longer than 200, so that, as in the paper's fits of
100,000 steps, what a fit costs once does not count; the whole annealed fit of all toys through
``fit_many``, transfers and read-offs included, stands beside it, and so does the first call with
its compilation. Meant for a GPU, where DEFAULT multiplies in bfloat16 and HIGH in TF32;
"XLA" is DEFAULT without the kernel of our own (``sparker.engine.gradient_gpu``), in TF32.
"""

import time
from unittest import mock

import jax
import numpy as np
from common import random_pool, save

from sparker import FitConfig
from sparker.engine import fit_many, gradient_gpu, schedule, width_range
from sparker.engine.distances import MAX_DIRECT_FEATURES

STEPS = 1000
TOYS = 256
ROUNDS = 3
#               rows, data rows, features, the paper's seconds and steps (M = 5, one GPU)
SHAPES = {
    "gravitational waves": (24_000, 4_000, 4, 125.0, 100_000),
    "particle jets": (60_000, 10_000, 128, 350.1, 100_000),
    "butterfly hybrids": (1_100, 100, 1000, 1589.0, 100_000),
    "Divine Comedy": (15_000, 1_000, 384, 269.0, 100_000),
    "ImageNet OOD": (11_000, 1_000, 1000, 3455.0, 40_000),
    "CIFAR-10 vs 5m": (110_000, 10_000, 1000, 33576.0, 40_000),
}
MANY_TOYS = {"butterfly hybrids": 1024}  # small enough that 256 do not fill the device


def seconds(samples, widths, config, seed):
    start = time.perf_counter()
    result = fit_many(seed, samples, widths, config, chunk=len(samples.data_weight))
    assert result.finite.all()
    return time.perf_counter() - start


def measure(samples, config):
    """Microseconds per toy and step, seconds of all toys and of the first call."""
    ends = width_range(samples.points)
    short, long = schedule(*ends, steps=STEPS // 5), schedule(*ends, steps=STEPS)
    first = seconds(samples, short, config, 0)
    seconds(samples, long, config, 0)  # compiles for this number of steps
    few = min(seconds(samples, short, config, seed) for seed in range(1, 1 + ROUNDS))
    many = min(seconds(samples, long, config, seed) for seed in range(1, 1 + ROUNDS))
    extra = len(long.sigma) - len(short.sigma)
    return (many - few) * 1e6 / extra / len(samples.data_weight), many, first


def main():
    rows = []
    titles = ("products", "toys", "paper us", "ours us", "ratio", "fit s", "first s")
    print(" " * 22, *(f"{title:>9}" for title in titles))
    for name, (n, n_data, d, paper_seconds, paper_steps) in SHAPES.items():
        paper = paper_seconds * 1e6 / paper_steps
        ways = ["XLA", "DEFAULT"] + (["HIGH"] if d > MAX_DIRECT_FEATURES else [])
        for n_toys in (TOYS, MANY_TOYS.get(name)):
            if n_toys is None:
                continue
            samples = random_pool(np.random.default_rng(0), n, n_data, d, n_toys)
            for way in ways if n_toys == TOYS else ways[:2]:
                precision = jax.lax.Precision["DEFAULT" if way == "XLA" else way]
                config = FitConfig(precision=precision)
                jax.clear_caches()
                with mock.patch.object(
                    gradient_gpu, "pays", (lambda *_: False) if way == "XLA" else gradient_gpu.pays
                ):
                    ours, fit, first = measure(samples, config)
                numbers = (n_toys, paper, ours, paper / ours, fit, first)
                print(f"{name:22} {way:>9}", *(f"{number:9.2f}" for number in numbers), flush=True)
                rows.append(
                    {
                        "application": name,
                        "rows": n,
                        "features": d,
                        "toys": n_toys,
                        "products": way,
                        "paper_us_per_step": round(paper),
                        "us_per_toy_step": round(ours, 3),
                        "ratio": round(paper / ours),
                        "seconds_all_toys_end_to_end": round(fit, 2),
                        "first_call_seconds": round(first, 1),
                    }
                )
                save("compute_table", steps=STEPS, kernels=5, rows=rows)


if __name__ == "__main__":
    main()
