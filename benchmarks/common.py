"""What every benchmark shares: toys to time, the machine's name, and where results go."""

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

import sparker

os.environ["SPARKER_CACHE"] = "off"  # a first call is timed with its compilation


def random_pool(rng: np.random.Generator, n_rows: int, n_data: int, d: int, n_toys: int):
    """A pool of normal points with ``n_toys`` random labellings, in single precision."""
    points = rng.normal(size=(n_rows, d)).astype(np.float32)
    is_data = np.zeros((n_toys, n_rows), bool)
    for labels in is_data:
        labels[rng.choice(n_rows, n_data, replace=False)] = True
    return sparker.engine.pool(points, is_data)


def machine() -> dict[str, Any]:
    """Where a benchmark ran."""
    device = jax.devices()[0]
    return {
        "device": device.device_kind if device.platform != "cpu" else cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "jax": version("jax"),
    }


def cpu_name() -> str:
    """The processor as Linux names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))


def save(name: str, **result: Any) -> None:
    """Write NAME-PLATFORM.json into the folder given on the command line, or ``results`` here."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "results"
    folder.mkdir(parents=True, exist_ok=True)
    command = f"python benchmarks/{name}.py"
    content = {"command": command, "machine": machine(), **result}
    (folder / f"{name}-{jax.default_backend()}.json").write_text(
        json.dumps(content, indent=1) + "\n"
    )
