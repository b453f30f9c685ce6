"""The memory of ``sparker watch`` over ten thousand batches.

    python -m experiments.reliability.endurance [--batches N]

A watch of files of 40 rows, one process from the first to the last; what it has in memory is asked
for after some of them, and written into ``endurance.json``.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from experiments.record import as_text
from experiments.reliability.box import Box, box, clean_up, stop

from sparker.system.versions import versions

RESULT = Path(__file__).parent / "endurance.json"
ROWS, COLUMNS = 40, 2
LOOKS = (1, 10, 100, 300, 1000)
"""After how many batches memory is asked for, and then after every thousand."""


def main() -> None:
    """As the options say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--output", type=Path, default=RESULT)
    wanted = parser.parse_args()
    try:
        with box() as here:
            found = watched(here, wanted.batches)
    finally:
        clean_up()
    command = "python -m experiments.reliability.endurance"
    wanted.output.write_text(as_text({"command": command, "versions": versions(), **found}))


def watched(here: Box, n_batches: int) -> dict[str, Any]:
    """Memory after so many batches, all of one size, and how the watch ended."""
    for name in ("monitor.npz",):
        here.copy(name)
    (here / "inbox").mkdir()
    rng = np.random.default_rng(20)
    for number in range(n_batches):
        np.save(here / f"inbox/{number:06d}.npy", rng.normal(size=(ROWS, COLUMNS)))
    process = here.begin(
        "watch", "monitor.npz", "inbox", "--journal", "journal.jsonl", stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    began, memory, alarms = time.monotonic(), [], 0
    try:
        for number, line in enumerate(process.stdout, 1):
            alarms += json.loads(line)["alarm"]
            if number in LOOKS or number % 1000 == 0:
                memory.append({"batches": number, "MiB": round(resident(process.pid))})
                print(memory[-1], f"{time.monotonic() - began:.0f} s", flush=True)
        code = process.wait()
    finally:
        stop(process)
    return {"rows": ROWS, "columns": COLUMNS, "memory": memory, "alarms": alarms, "exit_code": code}


def resident(process_id: int) -> float:
    """MiB that a process has in memory."""
    return float(psutil.Process(process_id).memory_info().rss / 2**20)


if __name__ == "__main__":
    main()
