"""Many samples by name, whatever they came as; what goes wrong with one costs no other."""

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from sparker.config import TestConfig
from sparker.system.digest import digest_of_plain
from sparker.tables.errors import DataWarning
from sparker.tables.frames import is_frame

MAX_SAMPLES = 10**6

FAULTS = ValueError, OSError, ImportError, MemoryError, FloatingPointError
"""What a sample may be the cause of; it costs none of the others."""


def named(samples: Any) -> Mapping[str, Any]:
    """The samples by name, in the order given; what a mapping holds is asked for one by one."""
    found: Mapping[str, Any]
    if isinstance(samples, Mapping):
        found, n_given = samples, len(samples)
        strange = [name for name in samples if not isinstance(name, str)]
        if strange:
            found = {str(name): samples[name] for name in samples}
    elif (
        isinstance(samples, str | os.PathLike)
        or is_frame(samples)
        or not hasattr(samples, "__len__")
    ):
        raise ValueError(
            "samples must be several: by name, {'monday': rows, ...}, or one after the other, "
            f"[rows, ...]; got a single {type(samples).__name__}"
        )
    elif isinstance(samples, np.ndarray) and samples.ndim != 3:
        raise ValueError(
            "samples must be several, and an array of them (K, n, d), K samples of n rows; got "
            f"shape {samples.shape}"
        )
    else:
        names = [
            os.fspath(one) if isinstance(one, str | os.PathLike) else f"sample {number}"
            for number, one in enumerate(samples, 1)
        ]
        found, n_given = dict(zip(names, samples, strict=True)), len(samples)
    if not 1 <= n_given <= MAX_SAMPLES:
        raise ValueError(f"samples must be from 1 to {MAX_SAMPLES:,}, got {n_given:,}")
    if len(found) < n_given:
        raise ValueError("two samples have the same name; give each a name of its own")
    return found


def seed_of(config: TestConfig, name: str) -> int:
    """The seed of a sample, by its name: so toys of different samples are drawn independently.

    ``sparker.test`` with this seed gives what stands in the sample's line.
    """
    return int(digest_of_plain([int(config.seed), name])[:8], 16)


def folder_of(name: str) -> str:
    """A folder of its own for each name, by which people know it.

    >>> folder_of("runs/2024-05 b.csv")
    'runs-2024-05-b.csv-c0359874'
    """
    readable = re.sub(r"[^\w.-]+", "-", name)[:60].strip(".-") or "sample"
    return f"{readable}-{digest_of_plain(name)[:8]}"


@contextmanager
def quietly() -> Iterator[None]:
    """What looks suspicious goes into the line of its sample, and is not said hundreds of times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield
