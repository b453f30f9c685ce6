"""Statistics of experiments on disk, which can be judged anew without fitting again.

A verdict is a matter of seconds, a fit is not, and fits may be spread over several processes. A
file knows the settings that made it, and is not mistaken for one of other settings; of a change to
the code that fits it knows nothing, so take a new folder then.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sparker.calibration.settings import plain
from sparker.system.atomic import whole_file
from sparker.system.versions import versions


def kept(
    folder: Path | None,
    name: tuple[str, ...],
    settings: Any,
    n: int,
    make: Callable[[range], np.ndarray],
) -> tuple[np.ndarray, dict[str, Any]]:
    """The statistics of n experiments and what made them, from the folder if they are in it."""
    made: dict[str, Any] = {
        "settings": plain(settings),
        "hardware": jax.devices()[0].device_kind,
        "versions": versions(),
    }
    if folder is None:
        return make(range(n)), made
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ("-".join(name).replace(" ", "_").replace("/", "_") + ".npz")
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            stored, known = file["statistics"], json.loads(str(file["made"]))
        if known["settings"] == made["settings"] and len(stored) >= n:
            return stored[:n], known
    statistics = make(range(n))
    with whole_file(path) as file:
        np.savez_compressed(file, statistics=statistics, made=json.dumps(made))
    return statistics, made
