"""The largest shape of the paper, 300 toys of 110,000 x 1000: how much memory does it take?

A few steps are enough to allocate all that a whole fit does. Toys are drawn as they are needed.
"""

import resource

import numpy as np
import psutil
from common import save

from sparker.engine import fit_chunks, pool, schedule, width_range

N, N_DATA, D, TOYS, STEPS = 110_000, 10_000, 1000, 300, 3


def main():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((N, D), np.float32)
    widths = schedule(*width_range(points), steps=STEPS, n_widths=2)

    def draw(toys):
        is_data = np.zeros((len(toys), N), bool)
        for labels, toy in zip(is_data, toys, strict=True):
            labels[np.random.default_rng([0, toy]).choice(N, N_DATA, replace=False)] = True
        return pool(points, is_data)

    sizes = []
    for toys, result in fit_chunks(0, draw, range(TOYS), widths):
        assert result.finite.all()
        sizes.append(len(toys))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    total = psutil.virtual_memory().total
    print(f"chunks of {sizes[0]}; peak {peak / 2**30:.1f} GiB of {total / 2**30:.1f} GiB")
    save(
        "peak_memory",
        rows=N,
        features=D,
        toys=sum(sizes),
        chunk=sizes[0],
        peak_gib=round(peak / 2**30, 2),
        machine_gib=round(total / 2**30, 1),
    )


if __name__ == "__main__":
    main()
