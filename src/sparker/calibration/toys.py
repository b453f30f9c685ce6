"""The toys of a test, made or taken from a store, as one table."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from sparker.calibration.plan import PreparedToys
from sparker.calibration.store import Store, begun
from sparker.engine.ensemble import Ensemble
from sparker.engine.memory import MIN_TOYS, is_out_of_memory
from sparker.statistics.contract import COUNTED, Chunk, Component
from sparker.system.versions import versions


class ChunkResult(NamedTuple):
    """Experiments that were measured together, and what made them."""

    chunk: Chunk
    made_by: dict[str, str]


Executor = Callable[[Sequence[int], int], Generator[ChunkResult, None, None]]
"""Makes the experiments of these numbers in chunks of this size. It yields each chunk when it is
done, and ends when it is closed."""


class ClusterError(ConnectionError):
    """The cluster cannot go on; says why, and what is kept."""


def run_locally(prepared: PreparedToys, seed: int, made_by: dict[str, str]) -> Executor:
    """Make experiments in this process, in the order of their numbers."""

    def execute(numbers: Sequence[int], size: int) -> Generator[ChunkResult, None, None]:
        for chunk in prepared.statistic.chunks(seed, prepared.toys, numbers, size):
            yield ChunkResult(chunk, made_by)

    return execute


@dataclass
class Table:
    """The experiments finished so far, by number."""

    rows: dict[int, np.ndarray] = field(default_factory=dict)  # (K,) each
    models: Ensemble | None = None  # of the observed experiment, (m, ...)
    score_counts: dict[int, np.ndarray] = field(default_factory=dict)
    """(m, bins) each, of the first experiments, see ``contract.COUNTED``."""
    lowered_to: int | None = None
    """Toys at a time in the end, where memory ran out for more."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of how the toys were made."""
        if self.lowered_to is None:
            return ()
        return (
            f"memory ran out, and toys were then made {self.lowered_to} at a time; they are the "
            "same up to rounding",
        )

    def add(self, chunk: Chunk) -> None:
        """Take in a chunk, as it was trained or as it was stored."""
        numbers, statistics, models, counts = chunk
        self.rows |= dict(zip(numbers, statistics, strict=True))
        self.models = self.models if models is None else models
        if counts is not None:
            counted = [number for number in numbers if number <= COUNTED]
            self.score_counts |= dict(zip(counted, counts, strict=True))

    def first(self, n: int, start: int = 0) -> np.ndarray:  # (n - start, K)
        """The statistics of experiments 0 to n - 1; or from another one on."""
        return np.stack([self.rows[i] for i in range(start, n)])

    @property
    def n_in_a_row(self) -> int:
        """How many experiments are there, from number 0 on, without a gap."""
        n = 0
        while n in self.rows:
            n += 1
        return n


def run(
    prepared: PreparedToys,
    numbers: Sequence[int],
    *,
    seed: int,
    chunk: int | Callable[[], int] | None = None,
    manifest: dict[str, Any] | None = None,
    store: str | PathLike[str] | None = None,
    on_progress: Callable[[float], None] = lambda done: None,
    should_stop: Callable[[Table], bool] = lambda table: False,
    executor: Executor | None = None,
) -> Table:
    """Make the experiments of these numbers, 0 the observed one, that the store does not have.

    ``chunk`` may be a function that returns it. ``on_progress`` is told how many are done,
    ``should_stop`` may end it early. ``executor`` makes the experiments elsewhere.
    """
    table = Table()
    toys = [number for number in numbers if number > 0]
    if chunk is None and toys:
        chunk = prepared.statistic.chunk_size(prepared.toys, toys[0], len(numbers))
    elif callable(chunk):  # a store knows it already
        chunk = (None if store is None else begun(store)) or chunk()
    chunk = chunk or MIN_TOYS
    kept = None
    if store is not None:
        kept = Store(store, manifest or {}, chunk)
        chunk = kept.chunk  # toys are the same to the bit only in chunks of one size
        for stored in kept.read():
            table.add(stored)
        check_readings(table, prepared.statistic.component_tests, store)
    wanted = set(numbers)
    reported = 0.0

    def report(done: float) -> None:
        nonlocal reported
        reported = max(reported, min(done, len(wanted)))
        on_progress(reported)

    def on_part(part: float) -> None:  # of those at work; they are finished when they come back
        report(reported + part)

    watched = prepared._replace(toys=replace(prepared.toys, on_part=on_part))
    execute = executor or run_locally(watched, seed, versions() if kept else {})

    def n_done() -> int:
        return len(wanted & table.rows.keys())

    def make(at_a_time: int) -> None:
        missing = [number for number in numbers if number not in table.rows]
        if kept is not None and missing:  # one that has everything may be read-only
            kept.check_writable()
        with closing(execute(missing, at_a_time)) as results:
            for done, made_by in results:
                if kept is not None:
                    kept.write(done, made_by)
                table.add(done)
                if 0 in done.numbers:
                    check_finite(table.rows[0])
                report(n_done())
                if should_stop(table):
                    break

    try:
        report(n_done())
        if not should_stop(table):
            in_the_end = _within_memory(make, chunk)
            if in_the_end < chunk:
                table.lowered_to = in_the_end
    except (KeyboardInterrupt, ClusterError) as stop:
        note = f"{n_done()} of {len(wanted)} experiments were finished"
        if kept is None:
            note += "; with a store they would be kept, and the same call continue"
        else:
            note += f" and are kept in {store}; the same call continues there"
        if isinstance(stop, ClusterError):
            raise ClusterError(f"{stop}. {note}") from stop
        stop.add_note(note)
        raise
    return table


def check_readings(table: Table, component_tests: Sequence[Component], store: object) -> None:
    """Refuse stored experiments of which something else was read off than is now."""
    n = len(next(iter(table.rows.values()), component_tests))  # all have the same
    if component_tests and n != len(component_tests):
        raise ValueError(
            f"the store {store} holds {n} statistics of each experiment, and this test has "
            f"{len(component_tests)}; choose another folder"
        )


def _within_memory(make: Callable[[int], None], chunk: int) -> int:
    """Make toys, fewer at a time where memory runs out for more; how many at a time in the end."""
    while True:
        try:
            make(chunk)
            return chunk
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if chunk == 1:
                why = (str(error) or type(error).__name__).splitlines()[0]
                raise MemoryError(
                    f"memory does not suffice for a single toy ({why}); take a uniform random "
                    "sample of the reference, fewer columns, or a machine with more memory"
                ) from error
        chunk //= 2  # not before the error, and all that it holds, is gone


def check_finite(t: np.ndarray) -> None:
    """Refuse data of which no reading is finite; such a toy is only counted."""
    if not np.any(np.isfinite(t)):
        raise FloatingPointError(
            "the statistic of the data is not finite, so there is nothing to compare; look for "
            "extreme values in the data or too few rows, or lower the amplitude clip of the kernels"
        )
