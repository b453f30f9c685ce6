"""The level of a monitor's looks from reference to reference.

    python -m experiments.levels.monitor [--processes 2] [--seconds 2400] [--only PATTERN]

A monitor has one reference, and every look relabels a batch with it. Averaged over references the
share of alarms is alpha exactly; for a given reference it scatters, since all its batches meet the
same rows. Each unit is one reference of 10, 30 or 100 times a batch's rows, and 100 batches without
anomalies, tested as ``Monitor`` does by default. Adds to ``monitor.json``.
"""

from pathlib import Path
from typing import Any

import numpy as np
from experiments import units
from experiments.levels.populations import POPULATIONS

import sparker

RESULT = Path(__file__).parent / "monitor.json"
N_DATA, N_BATCHES, N_REFERENCES, N_FEATURES = 30, 100, 30, 2
TIMES = (10, 30, 100)
LEVELS = (0.01, 0.05, 0.1)
SETTINGS = {"batch_rows": N_DATA, "batches": N_BATCHES, "features": N_FEATURES}


def level(times: int, number: int) -> dict[str, Any]:
    """Return the share of batches with p-values at or below each level."""
    rng = np.random.default_rng([12, times, number])
    draw = POPULATIONS["exponential"].draw
    monitor = sparker.Monitor(
        np.column_stack([draw(rng, times * N_DATA) for _ in range(N_FEATURES)]),
        seed=number,
        progress=False,
        explain=False,
    )
    p = np.array(
        [
            monitor.test(np.column_stack([draw(rng, N_DATA) for _ in range(N_FEATURES)])).p_value
            for _ in range(N_BATCHES)
        ]
    )
    return {str(level): float(np.mean(p <= level)) for level in LEVELS}


def main() -> None:
    """Measure what is missing."""
    parser = units.options(__doc__ or "", RESULT)
    todo = [(times, number) for number in range(N_REFERENCES) for times in TIMES]
    units.run(parser.parse_args(), "python -m experiments.levels.monitor", SETTINGS, todo, level)


if __name__ == "__main__":
    main()
