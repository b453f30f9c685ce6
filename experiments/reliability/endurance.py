"""The memory of ``sparker watch`` over ten thousand batches, and of tests of many sizes.

    python -m experiments.reliability.endurance [--batches N] [--sizes N]

A watch of files of 40 rows, one process from the first to the last, and one process that tests
samples of ever other sizes. What they have in memory is asked for now and then, and written into
``endurance.json``; ``--batches 0`` or ``--sizes 0`` keeps what is there.
"""

import argparse
import json
import os
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
SIZES = (1, 5, 10)
"""After how many sizes, and then after every twenty."""


def main() -> None:
    """As the options say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--sizes", type=int, default=60)
    parser.add_argument("--output", type=Path, default=RESULT)
    wanted = parser.parse_args()
    found = json.loads(wanted.output.read_text()) if wanted.output.exists() else {}
    command = "python -m experiments.reliability.endurance"
    found |= {"command": command, "versions": versions()}
    try:
        if wanted.batches:
            with box() as here:
                found |= watched(here, wanted.batches)
    finally:
        clean_up()
    if wanted.sizes:
        found["sizes"] = tested(wanted.sizes)
    wanted.output.write_text(as_text(found))


def tested(n_sizes: int) -> list[dict[str, int]]:
    """Memory of this process after tests of so many sizes, each another one."""
    import sparker

    rng, memory = np.random.default_rng(21), []
    for number in range(1, n_sizes + 1):
        reference, data = (rng.normal(size=(rows + number, COLUMNS)) for rows in (200, 50))
        sparker.test(reference, data, n_toys=9, explain=False, progress=False)
        if number in SIZES or number % 20 == 0:
            memory.append({"sizes": number, "MiB": round(resident(os.getpid()))})
            print(memory[-1], flush=True)
    return memory


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
