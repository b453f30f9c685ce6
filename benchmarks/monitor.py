"""The time of a look of a ``Monitor``: ordinary batches, and an alarm, which costs all toys.

    python -m benchmarks.monitor

Batches of 50 x 5 rows, a reference of 2,000, 100 looks planned at alpha = 5 % (1,999 toys). After
one look that compiles, the times of five ordinary batches and of one that raises an alarm and is
explained. Writes ``results/monitor.json``.
"""

import json
import os
import time
from pathlib import Path

import numpy as np

import sparker
from sparker.system.versions import versions

ROWS, FEATURES, REFERENCE, ORDINARY = 50, 5, 2000, 5
RESULT = Path(__file__).parent / "results" / "monitor.json"


def main() -> None:
    rng = np.random.default_rng(0)
    monitor = sparker.Monitor(
        rng.normal(size=(REFERENCE, FEATURES)), alpha=0.05, looks=100, progress=False
    )

    def seconds(shift: float) -> tuple[float, bool]:
        began = time.perf_counter()
        look = monitor.look(rng.normal(shift, 1, size=(ROWS, FEATURES)))
        return round(time.perf_counter() - began, 1), look.alarm

    first, *ordinary = (seconds(0)[0] for _ in range(1 + ORDINARY))
    alarm, raised = seconds(0.9)
    assert raised
    found = {"first": first, "ordinary": sorted(ordinary), "alarm": alarm}
    record = {
        "command": "python -m benchmarks.monitor",
        "toys": int(monitor.config.n_toys),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions(),
        "seconds": found,
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
