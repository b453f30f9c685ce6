"""References larger than memory, streamed: how long a test takes, and how much memory.

Rows are written to a file, which is mapped and never read whole. By how much the process grows
is held to what was allowed and a gibibyte for the rows kept to be shown.

On a CPU a few toys and steps are enough to see what memory does and what a step costs; on a GPU it
is the whole default test.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from common import save

import sparker
from sparker.streaming.reference import needed

MEMORY = {"cpu": 2**30, "gpu": 2**36}
"""Of the device."""
HOST = {"cpu": 2**31, "gpu": 2**32}
"""By how much the process may grow."""
TOYS = {"cpu": 3, "gpu": 100}
SHAPES = {"50 million x 4": (50_000_000, 4), "2 million x 512": (2_000_000, 512)}
N_DATA, N_PLANTED = 100_000, 500


def settings():
    if jax.default_backend() != "cpu":
        return {}
    annealed = sparker.presets.annealed()
    return annealed | {
        "widths": sparker.WidthConfig(annealing=sparker.engine.geometric, steps=10, n_widths=2)
    }


def written(path, n_rows, n_features):
    """A file of normal rows, mapped."""
    rng = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, n_rows, 100_000):
            size = (min(100_000, n_rows - start), n_features)
            file.write(rng.standard_normal(size, np.float32).data)
    return np.memmap(path, np.float32, "r", shape=(n_rows, n_features))


def main():
    backend = jax.default_backend()
    memory, n_toys = MEMORY[backend], TOYS[backend]
    rows = []
    for name, (n_rows, n_features) in SHAPES.items():
        rng = np.random.default_rng(1)
        data = rng.standard_normal((N_DATA, n_features), np.float32)
        data[:N_PLANTED] = 2.5 / n_features**0.5 + 0.1 * data[:N_PLANTED]
        small = rng.standard_normal((20_000, n_features), np.float32)
        # What there is in memory anyway: the program, compiled once, and the data.
        sparker.test(sparker.stream(small, memory=memory), data, n_toys=1, **settings())
        before = peak()
        with tempfile.TemporaryDirectory() as folder:
            reference = written(Path(folder) / "rows", n_rows, n_features)
            began = time.perf_counter()
            result = sparker.test(
                sparker.stream(reference, memory=memory), data, n_toys=n_toys,
                progress=False, **settings(),
            )  # fmt: skip
            seconds = time.perf_counter() - began
        grown = peak() - before
        row = {
            "shape": name,
            "toys": n_toys,
            "steps": result.settings["statistic"]["steps"],
            "file_gib": gib(n_rows * n_features * 4),
            "in_memory_gib": gib(needed(n_rows + N_DATA, n_features)),
            "allowed_gib": gib(memory),
            "resident_before_gib": gib(before),
            "resident_grown_gib": gib(grown),
            "prepare_seconds": round(result.timings["prepare"], 1),
            "seconds": round(seconds, 1),
            "p_value": round(result.p_value, 4),
        }
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
        save("larger_than_memory", rows=rows)
        assert grown < HOST[backend], row


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def gib(n_bytes):
    return round(n_bytes / 2**30, 2)


if __name__ == "__main__":
    main()
