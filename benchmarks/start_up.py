"""What it costs to start: importing, asking for help, and compiling, the first time and again.

    python benchmarks/start_up.py [--source PATH]

Every number is that of a process of its own, and the smallest of a few. ``--source`` measures
another copy of the package, of an earlier commit for instance, whose option for toys may have
another name (``--toys-option``).
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, help="folder that holds the package to measure")
    parser.add_argument("--toys-option", default="--toys")
    parser.add_argument("--name", default="start_up", help="of the result")
    options = parser.parse_args()
    environment = {**os.environ, "SPARKER_CACHE": tempfile.mkdtemp()}
    if options.source:
        environment["PYTHONPATH"] = str(options.source)
    python = [sys.executable, "-c"]
    found = {
        "python": smallest([*python, "pass"], environment),
        "import sparker": smallest([*python, "import sparker"], environment),
        "import sparker; sparker.test": smallest(
            [*python, "import sparker; sparker.test"], environment
        ),
        "sparker --help": smallest([sys.executable, "-m", "sparker", "--help"], environment),
        "sparker test --help": smallest(
            [sys.executable, "-m", "sparker", "test", "--help"], environment
        ),
    }
    print(found, flush=True)
    folder = Path(tempfile.mkdtemp())
    rng = np.random.default_rng(0)
    tests = {}
    for shape, (n_reference, n_data, d) in SHAPES.items():
        np.save(folder / "reference.npy", rng.normal(size=(n_reference, d)))
        np.save(folder / "data.npy", rng.normal(size=(n_data, d)))
        line = ["sparker", "test", str(folder / "reference.npy"), str(folder / "data.npy")]
        line += [options.toys_option, "20"]
        tests[shape] = []
        for _ in range(REPEATS):
            done = subprocess.run(
                [*python, MEASURED, json.dumps(line)],
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            )
            seconds = json.loads(done.stderr.strip().splitlines()[-1])
            tests[shape].append({name: round(value, 2) for name, value in seconds.items()})
        print(shape, tests[shape], flush=True)
    save(options.name, seconds=found, tests=tests)


if __name__ == "__main__":
    main()
