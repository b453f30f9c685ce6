"""The paper's compute table: microseconds per toy and training step, beside the paper's.

The cost of a step is what 1,000 steps take longer than 200, so that, as in the paper's fits of
100,000 steps, what a fit costs once does not count; the whole default fit of all toys through
``fit_many``, transfers and read-offs included, stands beside it, and so does the first call with
its compilation. Meant for a GPU, where DEFAULT precision is TF32 and HIGHEST full float32. (The
device's own matrix precision in training; the statistic is evaluated in double either way.)
"""

import time

import jax
import numpy as np
from record import random_pool, save

from sparker import FitConfig, fit_many, schedule, width_range
from sparker.distances import MAX_DIRECT_FEATURES

STEPS = 1000
TOYS = 256
#               rows, data rows, features, the paper's seconds and steps (M = 5, one GPU)
SHAPES = {
    "gravitational waves": (24_000, 4_000, 4, 125.0, 100_000),
    "particle jets": (60_000, 10_000, 128, 350.1, 100_000),
    "butterfly hybrids": (1_100, 100, 1000, 1589.0, 100_000),
    "Divine Comedy": (15_000, 1_000, 384, 269.0, 100_000),
    "ImageNet OOD": (11_000, 1_000, 1000, 3455.0, 40_000),
    "CIFAR-10 vs 5m": (110_000, 10_000, 1000, 33576.0, 40_000),
}


def seconds(samples, widths, config, seed):
    start = time.perf_counter()
    result = fit_many(seed, samples, widths, config, chunk=TOYS)
    assert result.finite.all()
    return time.perf_counter() - start


def main():
    rows = []
    titles = ("precision", "paper us", "ours us", "ratio", "fit s", "first s")
    print(" " * 22, *(f"{title:>9}" for title in titles))
    for name, (n, n_data, d, paper_seconds, paper_steps) in SHAPES.items():
        samples = random_pool(np.random.default_rng(0), n, n_data, d, TOYS)
        ends = width_range(samples.points)
        short, long = schedule(*ends, steps=STEPS // 5), schedule(*ends, steps=STEPS)
        for precision in ("HIGHEST",) if d <= MAX_DIRECT_FEATURES else ("DEFAULT", "HIGHEST"):
            config = FitConfig(precision=jax.lax.Precision[precision])
            first = seconds(samples, short, config, 0)
            seconds(samples, long, config, 0)  # compiles for this number of steps
            few = min(seconds(samples, short, config, seed) for seed in range(1, 8))
            many = min(seconds(samples, long, config, seed) for seed in range(1, 8))
            ours = (many - few) * 1e6 / (len(long.sigma) - len(short.sigma)) / TOYS
            paper = paper_seconds * 1e6 / paper_steps
            print(
                f"{name:22} {precision:>9} {paper:9.0f} {ours:9.2f} {paper / ours:9.0f}"
                f" {many:9.2f} {first:9.1f}",
                flush=True,
            )
            rows.append(
                {
                    "application": name,
                    "rows": n,
                    "features": d,
                    "precision": precision,
                    "paper_us_per_step": round(paper),
                    "us_per_toy_step": round(ours, 3),
                    "ratio": round(paper / ours),
                    "seconds_all_toys_end_to_end": round(many, 2),
                    "first_call_seconds": round(first, 1),
                }
            )
    save("compute_table", steps=STEPS, toys=TOYS, kernels=5, rows=rows)


if __name__ == "__main__":
    main()
