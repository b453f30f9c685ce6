"""How long alibi-detect's online MMD takes to notice the same changes.

    pip install alibi-detect torch numpy     # in an environment of its own; sparker is not needed
    python -m experiments.anytime.online_mmd [--streams 10] [--seconds 900]

``MMDDriftOnline`` takes one row at a time, and an expected run-time (ERT) until a false alarm, here
as many rows as 20 batches have, 5,000: two of five streams would raise one before the change.
A chance of 5 % in the whole stream would need an ERT of 250,000, and its thresholds at least as
many simulations. So it may raise alarms far more often than the others; how often it did before the
change is recorded beside. Writes ``online_mmd.json``.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from experiments.anytime import streams

RESULT = Path(__file__).parent / "online_mmd.json"
WINDOW = 50
N_BOOTSTRAPS = 5_200
ERT = 20 * streams.BATCH
N_SHOWN = 500
"""Reference rows: thresholds are simulated with a kernel matrix of all of them."""


def alarms(number: int, cells: list[tuple[str, float]]) -> dict[str, int | None]:
    """The look of the first alarm in each of the streams of one reference."""
    from alibi_detect.cd import MMDDriftOnline

    reference = streams.reference(number)[:N_SHOWN].astype("float32")
    detector: Any = MMDDriftOnline(
        reference, ERT, WINDOW, backend="pytorch", n_bootstraps=N_BOOTSTRAPS, verbose=False
    )
    found = {}
    for anomaly, fraction in cells:
        detector.reset_state()
        found[f"{anomaly} {fraction}"] = next(
            (
                look
                for look, batch in enumerate(streams.batches(anomaly, fraction, number), 1)
                if any(detector.predict(row)["data"]["is_drift"] for row in batch.astype("float32"))
            ),
            None,
        )
    return found


def main() -> None:
    """Measure, and write after every reference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=900)
    options = parser.parse_args()
    import alibi_detect
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    cells = [(a, f) for a in streams.ANOMALIES for f in streams.FRACTIONS]
    units: dict[str, list[int | None]] = {f"{a} {f}": [] for a, f in cells}
    began = time.monotonic()
    for number in range(options.streams):
        if time.monotonic() - began > options.seconds:
            break
        for cell, look in alarms(number, cells).items():
            units[cell].append(look)
        record = {
            "command": "python -m experiments.anytime.online_mmd",
            "versions": {"alibi-detect": alibi_detect.__version__, "torch": torch.__version__},
            "window": WINDOW,
            "ert": ERT,
            "bootstraps": N_BOOTSTRAPS,
            "reference": N_SHOWN,
            "seconds": round(time.monotonic() - began, 1),
            "units": units,
        }
        RESULT.write_text(json.dumps(record) + "\n")
        print(number, {cell: looks[-1] for cell, looks in units.items()}, flush=True)


if __name__ == "__main__":
    main()
