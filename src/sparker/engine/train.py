"""Training: anneal the width, place idle kernels, let Adam move all of them, read the model off.

A fit is ``start``, a ``stage`` for every width and ``finish``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine import scan
from sparker.engine.candidates import NONE, Candidates
from sparker.engine.config import Design, Rates
from sparker.engine.distances import Features, features_of
from sparker.engine.ensemble import Ensemble
from sparker.engine.gradient import Gradient
from sparker.engine.sample import AnyArray, TwoSample
from sparker.engine.step import State, at_rest, evaluate, gradient_of, slowed, step
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
    statistics: Array  # (m, r) see FAMILIES
    score_counts: Array  # (m, bins)
    finite: Array  # ()


FAMILIES = ("all kernels", *scan.FAMILIES)
"""What is read off at each width: ``t`` of the model, and what the scan before training found.
Without scans, the first alone."""


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


class Rows(NamedTuple):
    """One sample, and what all sums over its rows share."""

    sample: TwoSample
    features: Features
    gradient: Gradient
    per_event: Array
    clip: AnyArray
    design: Design
    block: int  # candidates that are looked at at a time


def rows_of(sample: TwoSample, clip: AnyArray, design: Design, block: int) -> Rows:
    """A sample, ready to be trained on; ``block`` candidates are looked at at a time."""
    features = features_of(sample.points)
    expected = jnp.sum(sample.reference_weight)
    per_event = 1 / jnp.where(expected > 0, expected, 1)  # only a padding toy expects none
    pull = gradient_of(sample, features, design)
    return Rows(sample, features, pull, per_event, clip, design, block)


def start(first: State, n_widths: int) -> Progress:
    """Nothing read off yet."""
    mu = jnp.zeros((n_widths, *first.mu.shape), first.mu.dtype)
    a = jnp.zeros((n_widths, *first.a.shape), first.a.dtype)
    return Progress(first, mu, a, jnp.zeros((n_widths, len(scan.FAMILIES)), first.a.dtype))


def stage(
    rows: Rows,
    progress: Progress,
    steps: Steps,
    span: tuple[Array, Array],  # its first step, and the one after its last
    at: Candidates | None,  # where to look; None where there are no scans
    rates: Rates,
) -> Progress:
    """Scan and place idle kernels, then step after step, the models read off on the way."""
    begin, end = span

    def advance(t: Array, progress: Progress) -> Progress:
        now = rates
        if at is not None:
            now = slowed(rates, ((end - t) / (end - begin)).astype(steps.sigma.dtype))
        state = step(progress.state, steps.sigma[t], rows.gradient, rows.per_event, now)
        # Each step overwrites the slot it works towards: what stays is the step read off.
        slot = steps.slot[t]
        mu, a = progress.mu.at[slot].set(state.mu), progress.a.at[slot].set(state.a)
        return progress._replace(state=state, mu=mu, a=a)

    if at is not None:
        state, found = explore(rows, progress.state, at, steps.sigma[begin])
        scanned = progress.scanned.at[steps.slot[begin]].set(found)
        progress = progress._replace(state=state, scanned=scanned)
    return jax.lax.fori_loop(begin, end, advance, progress)


def explore(rows: Rows, state: State, at: Candidates, sigma: AnyArray) -> tuple[State, Array]:
    """Look at the candidates of a stage: idle kernels placed anew, and the scan's statistics."""
    model, sample = Ensemble(state.mu, state.a, sigma), rows.sample
    chosen = jnp.asarray(at.rows)
    centres = jnp.asarray(sample.points)[chosen]
    is_there = (sample.data_weight > 0) | (sample.reference_weight > 0)
    is_one = jnp.asarray(is_there)[chosen] & (chosen != NONE)
    seen = scan.look(model, centres, sample, rows.features, rows.design, rows.block)
    found = scan.scan(seen, jnp.where(is_one, at.log_weight, -jnp.inf))
    mu, a = scan.place(model, found, seen.t, centres, is_one, rows.clip)
    # The old momentum means nothing to kernels that moved; the others are treated alike.
    return at_rest(mu, a), found.statistics


def finish(
    sample: TwoSample, progress: Progress, steps: Steps, design: Design, *, scans: bool
) -> ReadOffs:
    """What the models say; to be run with JAX's 64-bit types enabled."""
    _, mu, a, scanned = progress
    models = Ensemble(mu, a, steps.sigma[steps.read_off])
    t, score_counts = evaluate(models, sample, design)
    statistics = t[:, None]
    if scans:
        statistics = jnp.concatenate([statistics, scanned.astype(t.dtype)], -1)
    found = mu, a, statistics, score_counts
    finite = jnp.stack([jnp.all(jnp.isfinite(array)) for array in found])
    return ReadOffs(*found, jnp.all(finite))
