"""Memory of a watch over thousands of batches: ``python -m benchmarks.watch_memory``.

Batches come one after the other, are tested, kept in a journal, drawn now and then, and removed.
Prints the resident memory on the way, as JSON.
"""

import argparse
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import psutil

import sparker
from sparker.cli.batches import named
from sparker.cli.journal import Journal
from sparker.cli.session import Session

BATCH = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--drawn-every", type=int, default=100)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    process = psutil.Process()
    resident = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        monitor = sparker.Monitor.calibrate(
            rng.normal(size=(500, 2)), BATCH, n_toys=99, progress=False
        )
        monitor.save(folder / "monitor.npz")
        journal = Journal(folder / "lines.jsonl")
        session = Session(folder / "monitor.npz", 0.01, None, None, None, None, True, journal)
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            for number in range(1, options.batches + 1):
                batch = folder / f"{number}.npy"
                np.save(batch, rng.normal(size=(BATCH, 2)))
                session.picture = (
                    folder / "trend.png" if number % options.drawn_every == 0 else None
                )
                session.look(named(str(batch)), comes_again=True)
                batch.unlink()
                journal.tested.pop(str(batch))  # as following a folder does
                if number in (1, 100) or number % (options.batches // 10) == 0:
                    resident[number] = round(process.memory_info().rss / 2**20, 1)
                    print(number, resident[number], file=sys.stderr, flush=True)
        journal.close()
    print(json.dumps({"resident_MiB_after_batches": resident}))


if __name__ == "__main__":
    main()
