"""What a look of an ``AnytimeMonitor`` costs: batches of 500 x 10 rows, a reference of 5,000.

    python -m benchmarks.anytime

After 20 batches, the time of each of 100 more, the half of which holds a cluster of anomalies; and
with the monitor written to its file after each, as ``sparker watch`` does. Writes
``results/anytime.json``.
"""

import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import sparker
from sparker.system.versions import versions

ROWS, FEATURES, REFERENCE = 500, 10, 5000
WARM_UP, MEASURED = 20, 100
RESULT = Path(__file__).parent / "results" / "anytime.json"


def batch(rng: np.random.Generator, share: float) -> np.ndarray:
    """Some rows lie close together."""
    rows = rng.normal(size=(ROWS, FEATURES))
    strange = rng.random(ROWS) < share
    rows[strange] = 1 + 0.2 * rows[strange]
    return rows


def main() -> None:
    """Measure, print, write."""
    rng = np.random.default_rng(0)
    began = time.perf_counter()
    monitor = sparker.AnytimeMonitor.start(rng.normal(size=(REFERENCE, FEATURES)))
    start = time.perf_counter() - began
    for _ in range(WARM_UP):
        monitor.look(batch(rng, 0))
    looks, kept, processor = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(MEASURED):
            rows = batch(rng, 0.02 if number >= MEASURED // 2 else 0)
            began, used = time.perf_counter(), time.process_time()
            monitor.look(rows)
            looks.append(time.perf_counter() - began)
            monitor.save(Path(folder) / "monitor.sparker")
            kept.append(time.perf_counter() - began)
            processor.append(time.process_time() - used)
    milliseconds = {
        "start": round(1e3 * start, 1),
        **{
            what: {f"{q} %": round(1e3 * float(np.percentile(times, q)), 1) for q in (50, 95, 100)}
            for what, times in (
                ("look", looks),
                ("look and save", kept),
                ("processor time", processor),
            )
        },
    }
    record = {
        "command": "python -m benchmarks.anytime",
        "rows": ROWS,
        "features": FEATURES,
        "reference": REFERENCE,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions(),
        "milliseconds": milliseconds,
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(milliseconds, indent=1))


if __name__ == "__main__":
    main()
