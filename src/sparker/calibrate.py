"""The toys of a test, made or taken from a store, as one table."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from sparker.ensemble import Ensemble
from sparker.memory import FEWEST_TOYS
from sparker.nulls import Arm, Draw, Experiments, Samples, Scheme
from sparker.preprocess import Preprocess, Transform
from sparker.record import digest, plain, versions
from sparker.statistic import KernelStatistic, Outcome, Prepared, Statistic
from sparker.store import Store, begun

FORMAT = 2
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
    n_toys: int | None = None  # how many different toys there are, where they are few
    notes: tuple[str, ...] = ()  # what became of the samples


def ready(arm: Arm, preprocess: Preprocess, statistic: Statistic) -> Ready:
    """Fix the preprocessing and the statistic's settings, on rows without labels."""
    transform = preprocess(arm.basis)
    fitted = transform(arm.basis)

    def once(rows: np.ndarray) -> np.ndarray:
        return fitted if rows is arm.basis else transform(rows)

    if isinstance(statistic, KernelStatistic):
        prepared: Prepared = statistic.prepare(fitted, arm.n_rows)
    else:
        prepared = statistic.prepare(fitted)
    return Ready(transform, prepared, arm.draw(once))


def plan(experiments: Experiments, preprocess: Preprocess, statistic: Statistic) -> Plan:
    """Make all experiments of a test ready."""
    observed = toys = ready(experiments.toys, preprocess, statistic)
    if experiments.observed is not experiments.toys:
        observed = ready(experiments.observed, preprocess, statistic)
    return Plan(observed, toys, experiments.n_toys, experiments.notes)


@dataclass(frozen=True)
class Recipe:
    """All that a plan follows from, as it travels to other processes."""

    observed: Samples
    scheme: Scheme
    preprocess: Preprocess
    statistic: Statistic
    seed: int

    def plan(self) -> Plan:
        """Make all experiments ready."""
        experiments = self.scheme.experiments(self.observed, self.seed)
        return plan(experiments, self.preprocess, self.statistic)


class Part(NamedTuple):
    """Experiments of one kind, made in chunks of one size."""

    observed: bool  # made ready as the observed one, where that differs from the toys
    numbers: Sequence[int]
    size: int


Made = tuple[Sequence[int], Outcome, dict[str, str]]
"""The numbers of a chunk, what they gave, and what made it."""

Makers = Callable[[Sequence[Part]], Generator[Made, None, None]]
"""Who makes experiments: gives out each chunk once it is done, and ends when it is closed."""


class ClusterError(ConnectionError):
    """Other processes cannot go on; says why, and what is kept."""


def here(plan: Plan, seed: int, made_by: dict[str, str]) -> Makers:
    """Make experiments in this process, in the order of their numbers."""

    def make(parts: Sequence[Part]) -> Generator[Made, None, None]:
        for observed, numbers, size in parts:
            arm = plan.observed if observed else plan.toys
            for done, outcome in arm.statistic.chunks(seed, arm.draw, numbers, size):
                yield done, outcome, made_by

    return make


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
    chunk: int | Callable[[], int] | None = None,
    manifest: dict[str, Any] | None = None,
    store: str | PathLike[str] | None = None,
    tell: Callable[[int], None] = lambda done: None,
    enough: Callable[[Table], bool] = lambda table: False,
    makers: Makers | None = None,
) -> Table:
    """Make the experiments of these numbers, 0 the observed one, that the store does not have.

    ``chunk`` may be a function that finds out. ``tell`` hears how many are done, ``enough`` may end
    it early. ``makers`` are other processes than this one.
    """
    table = Table()
    toys = [number for number in numbers if number > 0]
    if chunk is None and toys:
        chunk = plan.toys.statistic.chunk_size(plan.toys.draw(toys[:1]), len(numbers))
    elif callable(chunk):  # a store knows, and needs no one to ask
        chunk = (None if store is None else begun(store)) or chunk()
    chunk = chunk or FEWEST_TOYS
    kept = None
    if store is not None:
        kept = Store(store, {**(manifest or {}), "chunk": chunk})
        chunk = kept.chunk  # toys are the same to the bit only in chunks of one size
        for stored in kept.read():
            table.add_stored(*stored)
    make = makers or here(plan, seed, versions() if kept else {})
    wanted = set(numbers)

    def n_done() -> int:
        return len(wanted & table.rows.keys())

    try:
        tell(n_done())
        if enough(table):
            return table
        missing = [number for number in numbers if number not in table.rows]
        with closing(make(_parts(plan, missing, chunk))) as chunks:
            for done, outcome, made_by in chunks:
                if kept is not None:
                    kept.write(done, outcome, made_by)
                table.add(done, outcome)
                if 0 in done:
                    check_finite(table.rows[0][0])
                tell(n_done())
                if enough(table):
                    break
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


def check_finite(t: np.ndarray) -> None:
    """Of the data alone: a toy that is not finite is counted, but here there is nothing to rank."""
    if not np.all(np.isfinite(t)):
        raise FloatingPointError(
            "the statistic of the data is not finite, so there is nothing to compare; look for "
            "extreme values in the data or too few rows, or lower the amplitude clip of the kernels"
        )


def _parts(plan: Plan, numbers: Sequence[int], chunk: int) -> list[Part]:
    if plan.observed is plan.toys:
        return [Part(False, numbers, chunk)] if numbers else []
    observed = [number for number in numbers if number == 0]
    toys = [number for number in numbers if number > 0]
    parts = [Part(True, observed, min(chunk, FEWEST_TOYS)), Part(False, toys, chunk)]
    return [part for part in parts if part.numbers]


def describe(
    statistic: Prepared, observed: Samples, scheme: object, preprocess: Preprocess, seed: int
) -> dict[str, Any]:
    """What makes one toy what it is: toys that agree in all of this belong to the same test."""
    if observed.rows is None:
        reference = digest(observed.reference, observed.weights)
    else:
        reference = f"{observed.rows.survey.digest} {digest(observed.row_weights)}"
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
        "reference": reference,
        "reference_rows": observed.n_reference,
        "data": digest(observed.data),
        "groups": None if observed.groups is None else digest(*observed.groups),
        "strata": None if observed.strata is None else digest(*observed.strata),
        "data_weights": None if observed.data_weights is None else digest(observed.data_weights),
    }
