"""What the test costs beyond its fits: ``sparker.test`` against ``fit_many`` on the same work.

The paper's 1-D shape: 20,000 reference and 2,000 data rows, 100 toys, default settings. The first
test includes compilation; then test and bare fits take turns, and the ratio is of their medians.
"""

import time

import numpy as np
from record import save

import sparker

N_TOYS = 100
ROUNDS = 1


def main():
    rng = np.random.default_rng(0)
    reference, data = rng.exponential(size=(20_000, 1)), rng.exponential(size=(2_000, 1))
    labels = np.zeros((N_TOYS + 1, 22_000), bool)
    labels[0, 20_000:] = True
    for row in labels[1:]:
        row[rng.choice(22_000, 2_000, replace=False)] = True
    pool = sparker.pool(
        sparker.standardise(both := np.concatenate([reference, data]))(both), labels
    )
    widths = sparker.schedule(*sparker.width_range(pool.points))

    def test():
        sparker.test(reference, data, n_calibration=N_TOYS, progress=False)

    def fits():
        sparker.fit_many(0, pool, widths)

    times = {"first_test": [seconds(test)], "test": [], "fit_many": []}
    for _ in range(ROUNDS):
        times["fit_many"].append(seconds(fits))
        times["test"].append(seconds(test))
    ratio = np.median(times["test"]) / np.median(times["fit_many"])
    print(times, f"ratio {ratio:.2f}")
    save("whole_test", n_toys=N_TOYS, seconds=times, ratio=float(ratio))


def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
