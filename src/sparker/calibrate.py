"""The toys of a test, made or taken from a store, as one table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from sparker.ensemble import Ensemble
from sparker.memory import FEWEST_TOYS
from sparker.nulls import Arm, Draw, Experiments, Samples, Scheme
from sparker.preprocess import Preprocess, Transform
from sparker.record import digest, plain, versions
from sparker.statistic import Outcome, Prepared, Statistic
from sparker.store import Store

FORMAT = 1
"""Of a store; one with another number is not continued."""


class Ready(NamedTuple):
    """Experiments with everything fixed that is not refitted in each of them."""

    transform: Transform
    statistic: Prepared
    draw: Draw


class Plan(NamedTuple):
    """All experiments of a test, ready to run; most schemes have one way for all."""

    observed: Ready
    toys: Ready


def ready(arm: Arm, preprocess: Preprocess, statistic: Statistic) -> Ready:
    """Fix the preprocessing and the statistic's settings, on rows without labels."""
    transform = preprocess(arm.basis)
    return Ready(transform, statistic.prepare(transform(arm.basis)), arm.draw(transform))


def plan(experiments: Experiments, preprocess: Preprocess, statistic: Statistic) -> Plan:
    """Make all experiments of a test ready."""
    toys = ready(experiments.toys, preprocess, statistic)
    if experiments.observed is experiments.toys:
        return Plan(toys, toys)
    return Plan(ready(experiments.observed, preprocess, statistic), toys)


@dataclass
class Table:
    """The experiments finished so far, by number."""

    rows: dict[int, tuple[np.ndarray, ...]] = field(default_factory=dict)  # of an Outcome
    models: Ensemble | None = None  # of the observed experiment, (m, ...)

    def add(self, numbers: Sequence[int], outcome: Outcome) -> None:
        """Take in a chunk as it was trained."""
        self.rows |= zip(numbers, zip(*outcome[:-1], strict=True), strict=True)
        if 0 in numbers and outcome.models is not None:
            row = list(numbers).index(0)
            self.models = Ensemble(*(array[row] for array in outcome.models))

    def add_stored(self, numbers: np.ndarray, outcome: Outcome) -> None:
        """Take in a chunk as it was stored: with the model of the observed experiment only."""
        self.rows |= zip(numbers.tolist(), zip(*outcome[:-1], strict=True), strict=True)
        if outcome.models is not None:
            self.models = outcome.models

    def first(self, n: int, start: int = 0) -> Outcome:
        """What experiments 0 to n - 1 gave, without models; or from another one on."""
        rows = zip(*(self.rows[i] for i in range(start, n)), strict=True)
        return Outcome._make([*map(np.stack, rows), None])

    @property
    def n_in_a_row(self) -> int:
        """How many experiments are there, from number 0 on, without a gap."""
        n = 0
        while n in self.rows:
            n += 1
        return n


def run(
    plan: Plan,
    numbers: Sequence[int],
    *,
    seed: int,
    chunk: int | None = None,
    manifest: dict[str, Any] | None = None,
    store: str | PathLike[str] | None = None,
    tell: Callable[[int], None] = lambda done: None,
    enough: Callable[[Table], bool] = lambda table: False,
) -> Table:
    """Make the experiments of these numbers, 0 the observed one, that the store does not have.

    ``tell`` hears how many are done, ``enough`` may end it early.
    """
    table = Table()
    toys = [number for number in numbers if number > 0]
    if chunk is None and toys:
        chunk = plan.toys.statistic.chunk_size(plan.toys.draw(toys[:1]), len(numbers))
    chunk = chunk or FEWEST_TOYS
    kept = None
    if store is not None:
        kept = Store(store, {**(manifest or {}), "chunk": chunk})
        chunk = kept.chunk  # toys are the same to the bit only in chunks of one size
        for stored in kept.read():
            table.add_stored(*stored)
    made_by = versions() if kept else {}
    wanted = set(numbers)
    try:
        for ready, part, size in _parts(plan, numbers, chunk):
            missing = [number for number in part if number not in table.rows]
            tell(len(wanted & table.rows.keys()))
            if enough(table):
                break
            for done, outcome in ready.statistic.chunks(seed, ready.draw, missing, size):
                if kept is not None:
                    kept.write(done, outcome, made_by)
                table.add(done, outcome)
                if 0 in done:
                    check_finite(table.rows[0][0])
                tell(len(wanted & table.rows.keys()))
                if enough(table):
                    break
    except KeyboardInterrupt as stop:
        n_done = len(wanted & table.rows.keys())
        note = f"{n_done} of {len(wanted)} experiments were finished"
        if kept is None:
            stop.add_note(f"{note}; with a store they would be kept, and the same call continue")
        else:
            stop.add_note(f"{note} and are kept in {store}; the same call continues there")
        raise
    return table


def check_finite(t: np.ndarray) -> None:
    """Of the data alone: a toy that is not finite is counted, but here there is nothing to rank."""
    if not np.all(np.isfinite(t)):
        raise FloatingPointError(
            "the statistic of the data is not finite, so there is nothing to compare; look for "
            "extreme values in the data, or lower the amplitude clip"
        )


def _parts(
    plan: Plan, numbers: Sequence[int], chunk: int
) -> list[tuple[Ready, Sequence[int], int]]:
    if plan.observed is plan.toys:
        return [(plan.toys, numbers, chunk)]
    observed = [number for number in numbers if number == 0]
    toys = [number for number in numbers if number > 0]
    return [(plan.observed, observed, min(chunk, FEWEST_TOYS)), (plan.toys, toys, chunk)]


def describe(
    statistic: Prepared, observed: Samples, scheme: Scheme, preprocess: Preprocess, seed: int
) -> dict[str, Any]:
    """What makes one toy what it is: toys that agree in all of this belong to the same test."""
    fingerprint = scheme.fingerprint() if hasattr(scheme, "fingerprint") else None
    return {
        "format": FORMAT,
        "sparker": versions()["sparker"],
        "seed": seed,
        "null": plain(scheme),
        "null_source": None if fingerprint is None else digest(fingerprint),
        "statistic": plain(statistic.settings),
        "preprocess": plain(preprocess),
        "expected": observed.expected,
        "reference": digest(observed.reference, observed.weights),
        "data": digest(observed.data),
        "groups": None if observed.groups is None else digest(*observed.groups),
    }
