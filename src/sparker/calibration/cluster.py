"""Toys on the workers of a Dask cluster.

The samples are sent once, each worker process makes its plan of them once, and each chunk of toys
is a task. Finished chunks are stored like those made in this process. So if a worker, the scheduler
or the client dies, nothing that was finished is lost, and the rest is handed out again.
"""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

from sparker.calibration.plan import Plan, Recipe
from sparker.calibration.toys import ChunkResult, ClusterError
from sparker.statistics.contract import Chunk
from sparker.system.versions import versions

try:
    import cloudpickle
    from distributed import CancelledError, Client, Future, KilledWorker, as_completed, get_worker
    from distributed.comm import backends, parse_address, parse_host_port
except ImportError as missing:
    raise ImportError(
        f'a cluster needs {missing.name}, which is not installed; pip install "sparker[cluster]"'
    ) from missing

ALIKE = ("sparker", "jax", "numpy")
"""What client and workers must have the same version of: it decides the bits of a toy."""

MAX_LOSSES = 3
"""How often in a row all tasks may be lost, without one of them being finished."""

TIMEOUT = 10.0
"""Seconds in which a scheduler must answer."""

BACK = 120.0
"""Seconds in which a worker must be there again after all that workers had was lost."""


@contextmanager
def connected(address: str, timeout: float = TIMEOUT) -> Iterator[Client]:
    """A client of the scheduler at this address."""
    try:
        # Checked before a client is made: one that fails to connect takes long to close.
        scheme, place = parse_address(address)
        if scheme not in backends:
            raise ValueError(f"{scheme}:// is none of {', '.join(sorted(backends))}")
        parse_host_port(place)
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address} ({error}); `dask scheduler` starts one and "
            "prints its address"
        ) from error
    with client:
        yield client


Packed = tuple[str, dict[str, str], bytes]
"""A recipe to be sent: its digest, what it was made by, and the recipe itself, unpacked only where
the versions are the same."""


class Workers:
    """The workers that make the experiments of one recipe: an ``Executor`` of ``toys.run``."""

    def __init__(self, client: Client, recipe: Recipe) -> None:
        if not isinstance(client, Client) or client.asynchronous:
            raise ValueError(
                f"cluster must be a distributed.Client, and not an asynchronous one, got {client!r}"
            )
        self._client = client
        self._recipe = recipe
        self._address = client.scheduler.address if client.scheduler else "an unknown address"
        self._scattered: Future | None = None
        self._patience: float | None = None  # seconds to wait for a worker; at first, without end

    def chunk_size(self, toy: int, n_toys: int) -> int:
        """The chunk size that is best for the workers; for this machine another may be."""
        (size,) = self._each(choose_chunk, [(toy, n_toys)])
        return int(size)

    def __call__(self, numbers: Sequence[int], size: int) -> Generator[ChunkResult, None, None]:
        """Hand out these experiments, and give out each chunk when it is done."""
        tasks = [
            (list(numbers[start : start + size]), size) for start in range(0, len(numbers), size)
        ]
        with closing(self._each(make_chunk, tasks)) as results:
            for chunks, made_by in results:
                for chunk in chunks:
                    yield ChunkResult(chunk, made_by)

    def _each(
        self, function: Callable[..., Any], tasks: Sequence[Any]
    ) -> Generator[Any, None, None]:
        """The results of all tasks, in the order in which they are done."""
        left = dict(enumerate(tasks))
        losses = 0
        while left:
            try:
                with closing(self._attempt(function, left)) as results:
                    for number, result in results:
                        del left[number]
                        losses = 0
                        yield result
            except _LostError as error:
                losses += 1
                self._scattered, self._patience = None, BACK
                self._wait_for_scheduler()
                if losses == MAX_LOSSES:
                    raise ClusterError(
                        f"all that the workers had was lost {losses} times in a row ({error}); if "
                        "they ran out of memory, take a smaller chunk or workers with more"
                    ) from error

    def _attempt(
        self, function: Callable[..., Any], tasks: dict[int, Any]
    ) -> Generator[tuple[int, Any], None, None]:
        """The results of these tasks, until all are done or the rest is lost."""
        with _noticing_loss():
            futures = dict(zip(self._submit(function, list(tasks.values())), tasks, strict=True))
        try:
            for future in as_completed(list(futures), loop=self._client.loop):
                with _noticing_loss(future):
                    result = future.result()
                future.release()
                yield futures.pop(future), result
        finally:  # stopped early, interrupted or lost: the rest is not needed
            if futures:
                with suppress(Exception):
                    self._client.cancel(list(futures))

    def _submit(self, function: Callable[..., Any], tasks: list[Any]) -> list[Future]:
        if self._client.status != "running":
            raise _LostError("the client is closed")
        if self._scattered is None:
            contents = cloudpickle.dumps(self._recipe)
            packed: Packed = hashlib.sha256(contents).hexdigest(), versions(), contents
            # A first task waits for a worker, for hours if there is a queue; some clusters start
            # workers only when there are tasks.
            try:
                self._client.submit(os.getpid, pure=False).result(timeout=self._patience)
            except TimeoutError:
                raise ClusterError(
                    f"all workers were lost, and none came back within {self._patience:.0f} s; "
                    "start workers, and call again with a store to keep what was finished"
                ) from None
            (self._scattered,) = self._client.scatter([packed], broadcast=True, hash=False)
        return self._client.map(function, tasks, packed=self._scattered, pure=False)

    def _wait_for_scheduler(self) -> None:
        """Wait while the client tries to reconnect, which it does until its timeout."""
        time.sleep(0.5)  # it may not have noticed yet
        while self._client.status == "connecting":
            time.sleep(0.1)
        if self._client.status != "running":
            raise ClusterError(
                f"the connection to the Dask scheduler at {self._address} is lost; start it anew, "
                "or connect another client"
            )


class _LostError(Exception):
    """Neither a result nor an error of the task: its input, or the connection, is lost."""


@contextmanager
def _noticing_loss(future: Future | None = None) -> Iterator[None]:
    try:
        yield
    except ClusterError:
        raise
    except KilledWorker as error:
        raise ClusterError(
            f"workers died one after another of the same toys ({error}); if they ran out of "
            "memory, take a smaller chunk or workers with more"
        ) from error
    except (CancelledError, OSError) as error:
        if future is not None and future.status == "error":  # the task's own
            raise
        raise _LostError(str(error)) from error


# What follows runs on the workers.

_one_at_a_time = threading.Lock()  # a chunk fills the device, and the memory it was sized for
_plans: dict[str, tuple[Plan, int, dict[str, str]]] = {}


def make_chunk(task: tuple[list[int], int], packed: Packed) -> tuple[list[Chunk], dict[str, str]]:
    """The experiments of a chunk, and what made them."""
    numbers, size = task
    with _one_at_a_time:
        plan, seed, made_by = _unpacked(packed)
        _, statistic, toys = plan.prepared
        return list(statistic.chunks(seed, toys, numbers, size)), made_by


def choose_chunk(task: tuple[int, int], packed: Packed) -> int:
    """How many toys like this one a worker should make at once, out of so many."""
    with _one_at_a_time:
        _, statistic, toys = _unpacked(packed)[0].prepared
        return statistic.chunk_size(toys, *task)


def _unpacked(packed: Packed) -> tuple[Plan, int, dict[str, str]]:
    """The plan of a recipe, made once; only the latest is kept, since pools can be large."""
    token, made_by, contents = packed
    if token not in _plans:
        own = versions()
        _check_alike(own, made_by)
        recipe: Recipe = cloudpickle.loads(contents)
        _plans.clear()
        _plans[token] = (recipe.plan(), recipe.seed, own)
    return _plans[token]


def _check_alike(worker: dict[str, str], client: dict[str, str]) -> None:
    different = [
        f"{name} {worker.get(name)} (the client has {client[name]})"
        for name in ALIKE
        if worker.get(name) != client[name]
    ]
    if different:
        raise ClusterError(
            f"the worker {get_worker().address} has {', '.join(different)}, so its toys would be "
            "of another test; install the same versions everywhere"
        )
