"""What this machine has: cores that may be used, and memory that is free."""

import functools
import os
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Any

import psutil


@functools.cache
def _first_process() -> int:
    """The process that computed first: a fork of it remembers this number, and has another."""
    return os.getpid()


def check_process() -> None:
    """Refuse a process that was forked from one that had computed: it would wait forever."""
    if os.getpid() != _first_process():
        raise RuntimeError(
            "this process was forked from one in which sparker had computed already, and the "
            "threads of JAX that compute did not come along; start processes anew, with "
            "multiprocessing.get_context('spawn') or 'forkserver' (mp_context of a "
            "ProcessPoolExecutor), or fork before the first test"
        )


def n_cores() -> int:
    """Cores that this process may use, also where a container has a part of them."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(n, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no control groups, or no limit: "max"
        return n


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let small products of NumPy run in one thread.

    On a busy machine several would wait for each other for much longer than the product takes.
    """
    found: AbstractContextManager[Any] = _pools().limit(limits=1, user_api="blas")
    return found


@functools.cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def free_memory(n_chunks: int = 1) -> float:
    """Bytes free for each of so many chunks: what the machine leaves, or less on the device."""
    import jax  # here, so that who only reads files does not wait for it

    free = free_on_machine() / n_chunks
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        free = min(free, stats["bytes_limit"] - stats["bytes_in_use"])
    return free


def free_on_machine() -> float:
    """Bytes that the machine, the container this runs in and the process's own limit leave."""
    return min(psutil.virtual_memory().available, free_in_container(), _free_in_limit())


def _free_in_limit() -> float:
    """What ``ulimit -d`` leaves to this process. Infinite where there is no limit."""
    try:
        import resource  # not on Windows
    except ImportError:
        return float("inf")
    most, _ = resource.getrlimit(resource.RLIMIT_DATA)
    used = getattr(psutil.Process().memory_info(), "data", None)  # on Linux
    return float("inf") if most == resource.RLIM_INFINITY or used is None else most - used


def free_in_container(
    groups: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> float:
    """What Linux control groups, of a container or a batch system, leave to this process.

    Every group on the way up may set a limit. Infinite where there is none.
    """
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return float("inf")
    free = float("inf")
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            root, limit, used, cache = mount, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit, used = mount / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache = "total_inactive_file"
        else:
            continue
        inside = PurePosixPath(path.lstrip("/"))
        for group in (inside, *inside.parents):
            free = min(free, _free_in_group(root / group, limit, used, cache))
    return free


def _free_in_group(group: Path, limit: str, used: str, cache: str) -> float:
    try:
        most = (group / limit).read_text().strip()
        if most == "max":
            return float("inf")
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # Files that the kernel may drop at any time count as used, but are not.
        return int(most) - int((group / used).read_text()) + int(stat.get(cache, 0))
    except (OSError, ValueError):
        return float("inf")
