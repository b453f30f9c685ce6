"""How a monitor's level scatters from reference to reference.

    python -m experiments.levels.monitor [--monitors 48] [--batches 150] [--references N N ...]

A monitor is calibrated on one reference and then asked about many anomaly-free batches. Averaged
over references it should raise alpha false alarms; for a given reference it may be off, because all
its batches and toys share that reference. Writes ``monitor.json``: the mean level, its scatter over
monitors, and the scatter that counting batches, and that so few toys, would give by themselves.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from experiments import workers
from experiments.levels.cells import CONFIG, WIDTHS
from experiments.levels.populations import POPULATIONS

from sparker import Monitor
from sparker.calibration.settings import plain
from sparker.system.versions import versions

N_TOYS = 199
ALPHA = 0.05
N_DATA = 60
N_REFERENCES = (150, 300, 600)


def level(work: tuple[int, int, int]) -> float:
    """The share of anomaly-free batches that one monitor calls anomalous."""
    number, n_reference, n_batches = work
    rng = np.random.default_rng([12, number])
    exponential = POPULATIONS["exponential"].draw
    monitor = Monitor.calibrate(
        exponential(rng, n_reference),
        N_DATA,
        n_toys=N_TOYS,
        seed=number,
        config=CONFIG,
        widths=WIDTHS,
        progress=False,
    )
    batches = (exponential(rng, N_DATA) for _ in range(n_batches))
    p = [monitor.test(batch, explain=False).p_value for batch in batches]
    return float(np.mean(np.array(p) <= ALPHA))


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--monitors", type=int, default=48)
    parser.add_argument("--batches", type=int, default=150)
    parser.add_argument("--references", type=int, nargs="+", default=N_REFERENCES)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    with workers.pool(options.processes) as pool:
        for n_reference in options.references:
            work = [(i, n_reference, options.batches) for i in range(options.monitors)]
            levels = np.array(pool.map(level, work, chunksize=1))
            mean = float(levels.mean())
            found.append(
                {
                    "n_reference": n_reference,
                    "mean_level": mean,
                    "standard_error": float(levels.std(ddof=1) / np.sqrt(len(levels))),
                    "scatter": float(levels.std(ddof=1)),
                    "scatter_of_counting": float(np.sqrt(mean * (1 - mean) / options.batches)),
                    "scatter_of_few_toys": float(np.sqrt(mean * (1 - mean) / N_TOYS)),
                    "largest": float(levels.max()),
                }
            )
            print(found[-1], flush=True)
    command = "python -m experiments.levels.monitor"
    result = {
        "command": f"{command} --monitors {options.monitors} --batches {options.batches} "
        f"--references {' '.join(map(str, options.references))}",
        "alpha": ALPHA,
        "batch_size": N_DATA,
        "n_toys": N_TOYS,
        "config": plain(CONFIG),
        "widths": plain(WIDTHS),
        "versions": versions(),
        "references": found,
    }
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "monitor.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
