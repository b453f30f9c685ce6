"""Readings of experiments on disk: what is made of them can be judged anew without fitting again.

A verdict is a matter of seconds, a fit is not, and fits may be spread over several processes. A
file knows the settings that made it, and readings of others are not mistaken for these; of a change
to the code that fits it knows nothing, so take a new folder then.
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


def readings(
    folder: Path | None,
    name: tuple[str, ...],
    settings: Any,
    n: int,
    make: Callable[[range], np.ndarray],
) -> tuple[np.ndarray, dict[str, Any]]:
    """The readings of n experiments and what made them, from the folder where they are there."""
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
            kept, known = file["evidence"], json.loads(str(file["made"]))
        if known["settings"] == made["settings"] and len(kept) >= n:
            return kept[:n], known
    evidence = make(range(n))
    with whole_file(path) as file:
        np.savez_compressed(file, evidence=evidence, made=json.dumps(made))
    return evidence, made
