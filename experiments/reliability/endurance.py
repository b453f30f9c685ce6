"""The memory of a process that tests samples of ever other sizes.

    python -m experiments.reliability.endurance [--sizes N]

What it has in memory is asked for now and then, and written into ``endurance.json``.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import psutil
from experiments.record import as_text

from sparker.system.versions import versions

RESULT = Path(__file__).parent / "endurance.json"
COLUMNS = 2
SIZES = (1, 5, 10)
"""After how many sizes, and then after every twenty."""


def main() -> None:
    """As the options say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, default=60)
    parser.add_argument("--output", type=Path, default=RESULT)
    wanted = parser.parse_args()
    command = "python -m experiments.reliability.endurance"
    found = {"command": command, "versions": versions(), "sizes": tested(wanted.sizes)}
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


def resident(process_id: int) -> float:
    """MiB that a process has in memory."""
    return float(psutil.Process(process_id).memory_info().rss / 2**20)


if __name__ == "__main__":
    main()
