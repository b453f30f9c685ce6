"""Toys for batches of one size, split off a reference; a monitor has them for several sizes."""

from collections.abc import Collection
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from sparker.calibration import toys
from sparker.calibration.plan import describe, prepare
from sparker.engine.preprocess import Preprocess
from sparker.nulls import Resample, samples
from sparker.statistics.contract import Statistic
from sparker.system.progress import OnProgress

N_SHOWN = 6  # sizes that are named one by one


class Calibration(NamedTuple):
    """What batches of one size are compared with."""

    null: np.ndarray
    """(B, K) what the toys gave."""
    settings: dict[str, Any]
    """All that decided them."""


def for_size(
    reference: np.ndarray,
    batch_size: int,
    *,
    expected: float | None,
    preprocess: Preprocess,
    statistic: Statistic,
    n_toys: int,
    seed: int,
    chunk: int | None,
    store: str | PathLike[str] | None,
    on_progress: OnProgress,
) -> Calibration:
    """Make the toys for batches of so many rows: splits of the reference."""
    prepared = prepare(
        Resample(reference, batch_size, expected, seed).toys(), preprocess, statistic
    )
    nobody = reference[:1]  # stands in for data: the toys take none
    description = {
        **describe(prepared, samples(reference, nobody, expected=expected), preprocess, seed),
        "null": "resampled",
        "batch_size": batch_size,
    }
    del description["data"]
    table = toys.run(
        prepared,
        range(1, n_toys + 1),
        seed=seed,
        chunk=chunk,
        manifest=description,
        store=store,
        on_progress=on_progress,
    )
    return Calibration(
        table.first(n_toys + 1, start=1),
        {
            **description,
            "n_toys": n_toys,
            "labellings": None,
            "stop": None,
            "notes": [*table.notes],
        },
    )


def in_words(sizes: Collection[int]) -> str:
    """Sizes as a sentence names them.

    >>> in_words([60]), in_words([60, 100, 80])
    ('60', '60, 80 and 100')
    >>> in_words(range(60, 100))
    '40 sizes from 60 to 99'
    """
    if len(sizes) > N_SHOWN:
        return f"{len(sizes)} sizes from {min(sizes)} to {max(sizes)}"
    *others, last = (str(size) for size in sorted(sizes))
    return f"{', '.join(others)} and {last}" if others else last
