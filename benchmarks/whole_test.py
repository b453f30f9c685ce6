"""What a user waits for: ``sparker.test`` with default settings, a calibrated p-value.

The first test includes compilation; the second, of other rows, is what a test costs from then on.
"fits" is the share of it that is training; the rest draws, ranks and interprets.
"""

import sys
import time

import jax
import numpy as np
from common import save

import sparker

#            reference rows, data rows, features, toys
SHAPES = {
    "cpu": {"1-D": (20_000, 2_000, 1, 300), "digits": (1_600, 200, 64, 300)},
    "gpu": {
        "1-D": (20_000, 2_000, 1, 300),
        "jets": (50_000, 10_000, 128, 300),
        "CIFAR-10 vs 5m": (100_000, 10_000, 1000, 300),
    },
}


def main():
    rows = []
    for name, (n_reference, n_data, d, n_toys) in SHAPES[jax.default_backend()].items():
        times = []
        for seed in range(2):
            rng = np.random.default_rng(seed)
            reference, data = (
                rng.normal(size=(n, d)).astype(np.float32) for n in (n_reference, n_data)
            )
            began = time.perf_counter()
            result = sparker.test(reference, data, n_toys=n_toys, progress=False)
            times.append(time.perf_counter() - began)
        row = {
            "shape": name,
            "reference": n_reference,
            "data": n_data,
            "features": d,
            "toys": n_toys,
            "first_seconds": round(times[0], 2),
            "seconds": round(times[1], 2),
            "fits_seconds": round(result.timings["toys"], 2),
        }
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
        save("whole_test", rows=rows)


if __name__ == "__main__":
    main()
