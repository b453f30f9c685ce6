"""What it costs to start: importing, asking for help, and compiling, the first time and again.

Every number is that of a process of its own; of starts it is the smallest of a few, of tests all
are given, one after the other: the first one compiles. ``--before`` measures an earlier package in
the same run, which may have another name for the option ``--toys``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import save

REPEATS = 3
SHAPES = {"3,000 + 400 rows, 8 features": (3000, 400, 8), "5,000 + 500, 2": (5000, 500, 2)}

MEASURED = """
import json, sys, time
began = time.perf_counter()
import jax
seconds = {"trace": 0.0, "compile": 0.0}
def listen(event, duration, **more):
    if event.startswith("/jax/core/compile/"):
        seconds["compile" if "backend" in event else "trace"] += duration
jax.monitoring.register_event_duration_secs_listener(listen)
sys.argv = json.loads(sys.argv[1])
try:
    from sparker.cli.main import main
except ImportError:
    from sparker.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps({"total": time.perf_counter() - began, **seconds}), file=sys.stderr)
"""


def smallest(command, environment):
    """Seconds of the quickest of a few processes."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        found.append(time.perf_counter() - began)
    return round(min(found), 3)


def measured(source, toys_option):
    """Seconds of starting, and of tests in processes that follow each other."""
    environment = {**os.environ, "SPARKER_CACHE": tempfile.mkdtemp()}
    if source:
        environment["PYTHONPATH"] = str(source)
    python = [sys.executable, "-c"]
    sparker = [sys.executable, "-m", "sparker"]
    starts = {
        "python": [*python, "pass"],
        "import sparker": [*python, "import sparker"],
        "sparker --help": [*sparker, "--help"],
        "sparker test --help": [*sparker, "test", "--help"],
    }
    found = {"start": {name: smallest(line, environment) for name, line in starts.items()}}
    print(found, flush=True)
    folder = Path(tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    for shape, (n_reference, n_data, d) in SHAPES.items():
        np.save(folder / "reference.npy", rng.normal(size=(n_reference, d)))
        np.save(folder / "data.npy", rng.normal(size=(n_data, d)))
        line = ["sparker", "test", str(folder / "reference.npy"), str(folder / "data.npy")]
        line += [toys_option, "20"]
        found[shape] = []
        for _ in range(REPEATS):
            done = subprocess.run(
                [*python, MEASURED, json.dumps(line)],
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            )
            seconds = json.loads(done.stderr.strip().splitlines()[-1])
            found[shape].append({name: round(value, 2) for name, value in seconds.items()})
        print(shape, found[shape], flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="where the result goes; results/ if not given")
    parser.add_argument("--before", type=Path, help="folder of an earlier sparker package")
    parser.add_argument(
        "--before-toys", default="--toys", help="what its option for toys is called"
    )
    options = parser.parse_args()
    found = {"now": measured(None, "--toys")}
    if options.before:
        found["before"] = measured(options.before, options.before_toys)
    sys.argv[1:] = [options.folder] if options.folder else []
    save("start_up", **found)


if __name__ == "__main__":
    main()
