"""Processes that measure side by side, each on a core of its own."""

import multiprocessing
import os
from multiprocessing.pool import Pool
from typing import Any


def pool(n_processes: int, **options: Any) -> Pool:
    """So many workers; ``options`` are those of ``multiprocessing.Pool``."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"  # in the workers, which have a core each
    return multiprocessing.get_context("spawn").Pool(n_processes, one_core, **options)


def one_core() -> None:
    """Keep a worker to a core of its own, before it starts JAX: the fits are small."""
    cores = sorted(os.sched_getaffinity(0))
    number = multiprocessing.current_process()._identity[0]
    os.sched_setaffinity(0, {cores[number % len(cores)]})
