"""Training: anneal the width, place idle kernels, let Adam move all of them, read the model off.

A fit is ``start``, a ``stage`` for every width and ``finish``, for rows in memory and for rows that
come in blocks. A ``Trainer`` makes the sums over rows.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine import scan
from sparker.engine.candidates import NONE, Candidates
from sparker.engine.compiled import compiled
from sparker.engine.config import Design, Rates
from sparker.engine.distances import Features, features_of
from sparker.engine.ensemble import Ensemble
from sparker.engine.gradient import Gradient
from sparker.engine.measured import Measured
from sparker.engine.sample import AnyArray, TwoSample
from sparker.engine.step import Evaluation, State, evaluate, gradient_of, placed, slowed, step
from sparker.engine.widths import Schedule

N_STAGES = 10
"""Of a fit without scans."""

OnPart = Callable[[float], None]
"""Hears of every part of the training that is done, in toys."""


def ignore(part: float) -> None:
    """For callers that do not want to know."""


class ReadOffs(NamedTuple):
    """The models at the m widths read off, what they say, and whether all is finite."""

    mu: Array  # (m, M, d)
    a: Array  # (m, M)
    measured: Measured
    finite: Array  # ()


FAMILIES = ("all kernels", *scan.FAMILIES)
"""What is read off at each width: ``t`` of the model, and what the scan before training found.
Without scans, the first alone."""


class Trainer(Protocol):
    """What makes the sums over the rows of a sample, or of many samples at once."""

    def place(self, state: State, at: Any, sigma: AnyArray) -> tuple[State, Array]:
        """Scan at a new width: idle kernels placed anew, and the scan's statistics."""

    def step(self, state: State, sigma: AnyArray, rates: Rates) -> State:
        """One step of Adam."""

    def evaluate(self, mu: Array, a: Array, sigma: AnyArray) -> Evaluation:
        """What the models that were read off say of the sample."""


class Progress(NamedTuple):
    """How far a fit has come."""

    state: State
    mu: Array  # (m, M, d) the locations read off so far
    a: Array  # (m, M) and the amplitudes
    scanned: Array  # (m, 3) what scans have found


class Steps(NamedTuple):
    """The numbers of a schedule, as training reads them."""

    sigma: AnyArray  # (T,)
    read_off: AnyArray  # (m,) steps after which the model is read off
    slot: AnyArray  # (T,) the read-off that each step works for


def steps_of(schedule: Schedule, unit: float, dtype: Any) -> Steps:
    """The widths in a unit of length."""
    sigma = np.asarray(schedule.sigma / unit, dtype)
    slot = np.searchsorted(schedule.read_off, np.arange(len(sigma)))
    return Steps(sigma, schedule.read_off.astype(np.int32), slot.astype(np.int32))


def spans_of(schedule: Schedule) -> list[tuple[int, int]]:
    """The stages of a fit, by their steps: a scan begins each, or there is none at all."""
    n_steps = len(schedule.sigma)
    begins = schedule.explore
    if not len(begins):  # as many stages as will show how far it has come
        begins = np.unique(np.linspace(0, n_steps, N_STAGES, endpoint=False, dtype=int))
    return list(zip(begins.tolist(), [*begins[1:].tolist(), n_steps], strict=True))


whole = functools.partial(compiled, inline=True, compiler_options=None)
"""What trainers do between their sums, as one program: where a sum is a pass over a file, each
operation would be compiled and started by itself. In a traced fit it makes no difference."""


@functools.partial(whole, static_argnames="n_widths")
def start(first: State, n_widths: int) -> Progress:
    """Nothing read off yet."""
    batch, shape = first.mu.shape[:-2], first.mu.shape[-2:]
    mu = jnp.zeros((*batch, n_widths, *shape), first.mu.dtype)
    a = jnp.zeros((*batch, n_widths, shape[0]), first.a.dtype)
    scanned = jnp.zeros((*batch, n_widths, len(scan.FAMILIES)), first.a.dtype)
    return Progress(first, mu, a, scanned)


def stage(
    trainer: Trainer,
    progress: Progress,
    steps: Steps,
    span: tuple[Any, Any],  # its first step, and the one after its last
    at: Any,  # what ``place`` needs; None where there are no scans
    rates: Rates,
    over_steps: Callable[..., Any] = jax.lax.fori_loop,
) -> Progress:
    """Scan and place idle kernels, then step after step, the models read off on the way."""
    begin, end = span

    def advance(t: AnyArray, progress: Progress) -> Progress:
        now = rates
        if at is not None:
            now = slowed(rates, ((end - t) / (end - begin)).astype(steps.sigma.dtype))
        state = trainer.step(progress.state, steps.sigma[t], now)
        return _read_off(progress, state, steps.slot[t])

    if at is not None:
        state, found = trainer.place(progress.state, at, steps.sigma[begin])
        progress = _keep_found(progress, state, found, steps.slot[begin])
    return over_steps(begin, end, advance, progress)


@whole
def _read_off(progress: Progress, state: State, slot: AnyArray) -> Progress:
    """Each step overwrites the slot it works towards: what stays is the step read off."""
    mu = progress.mu.at[..., slot, :, :].set(state.mu)
    return Progress(state, mu, progress.a.at[..., slot, :].set(state.a), progress.scanned)


@whole
def _keep_found(progress: Progress, state: State, found: Array, slot: AnyArray) -> Progress:
    """What a scan has found, and the kernels it has placed."""
    scanned = progress.scanned.at[..., slot, :].set(found)
    return progress._replace(state=state, scanned=scanned)


def finish(trainer: Trainer, progress: Progress, steps: Steps, *, scans: bool) -> ReadOffs:
    """What the models say; to be run with JAX's 64-bit types enabled."""
    evaluation = trainer.evaluate(progress.mu, progress.a, steps.sigma[steps.read_off])
    return _finished(progress, evaluation, scans=scans)


@functools.partial(whole, static_argnames="scans")
def _finished(progress: Progress, evaluation: Evaluation, *, scans: bool) -> ReadOffs:
    _, mu, a, scanned = progress
    statistics = evaluation.t[..., None]
    if scans:
        statistics = jnp.concatenate([statistics, scanned.astype(statistics.dtype)], -1)
    measured = Measured(statistics, *evaluation[1:])
    n_batch = mu.ndim - 3
    each = [
        jnp.all(jnp.isfinite(array), tuple(range(n_batch, array.ndim)))
        for array in (mu, a, *measured)
    ]
    return ReadOffs(mu, a, measured, jnp.all(jnp.stack(each), 0))


class Rows(NamedTuple):
    """A ``Trainer`` for one sample in memory, to be traced."""

    sample: TwoSample
    features: Features
    gradient: Gradient
    per_event: Array
    clip: AnyArray
    design: Design
    block: int  # candidates that are looked at at a time

    def place(self, state: State, at: Candidates, sigma: AnyArray) -> tuple[State, Array]:
        """Look at the candidates of a stage."""
        model = Ensemble(state.mu, state.a, sigma)
        rows = jnp.asarray(at.rows)
        centres = jnp.asarray(self.sample.points)[rows]
        is_there = (self.sample.data_weight > 0) | (self.sample.reference_weight > 0)
        is_one = jnp.asarray(is_there)[rows] & (rows != NONE)
        seen = scan.look(model, centres, self.sample, self.features, self.design, self.block)
        return placed(model, seen, centres, is_one, at.log_weight, self.clip)

    def step(self, state: State, sigma: AnyArray, rates: Rates) -> State:
        """Step along the gradient of all rows."""
        return step(state, sigma, self.gradient, self.per_event, rates)

    def evaluate(self, mu: Array, a: Array, sigma: AnyArray) -> Evaluation:
        """Evaluate all models read off."""
        return evaluate(Ensemble(mu, a, sigma), self.sample, self.design)


def rows_of(sample: TwoSample, clip: AnyArray, design: Design, block: int) -> Rows:
    """A sample, ready to be trained on; ``block`` candidates are looked at at a time."""
    features = features_of(sample.points)
    expected = jnp.sum(sample.reference_weight)
    per_event = 1 / jnp.where(expected > 0, expected, 1)  # only a padding toy expects none
    pull = gradient_of(sample, features, design)
    return Rows(sample, features, pull, per_event, clip, design, block)
