"""Training: anneal the width, place idle kernels, let Adam move all of them, read the model off.

A fit is ``start``, the ``stages``, one for every width, and ``finish``.
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
from sparker.engine.distances import features_of
from sparker.engine.ensemble import Ensemble
from sparker.engine.fit import Fit
from sparker.engine.sample import AnyArray, TwoSample
from sparker.engine.step import State, at_rest, evaluate, gradient_of, step
from sparker.engine.widths import Schedule

N_STAGES = 10
"""Of a fit without scans."""

OnPart = Callable[[float], None]
"""Hears of every part of the training that is done, in toys."""


def ignore(part: float) -> None:
    """For callers that do not want to know."""


FAMILIES = ("kernels", *scan.FAMILIES)
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


def start(first: State, n_widths: int) -> Progress:
    """Nothing read off yet."""
    mu = jnp.zeros((n_widths, *first.mu.shape), first.mu.dtype)
    a = jnp.zeros((n_widths, *first.a.shape), first.a.dtype)
    return Progress(first, mu, a, jnp.zeros((n_widths, len(scan.FAMILIES)), first.a.dtype))


def stages(
    progress: Progress,
    sample: TwoSample,
    candidates: Candidates | None,  # (e, C) where to look; None where there are no scans
    steps: Steps,
    spans: Array,  # (stages, 2) the first step of each, and the one after its last
    numbers: Array,  # (2,)
    rates: Rates,
    design: Design,
    block: int,
) -> Progress:
    """Some stages of the training, from one number to another.

    Scan, ``block`` candidates at a time, and place idle kernels; then step after step, the models
    read off on the way.
    """
    features = features_of(sample.points)
    expected = jnp.sum(sample.reference_weight)
    per_event = 1 / jnp.where(expected > 0, expected, 1)  # only a padding toy expects none
    pull = gradient_of(sample, features, design)

    def explore(at: Candidates, state: State, sigma: Array) -> tuple[State, Array]:
        model = Ensemble(state.mu, state.a, sigma)
        chosen = jnp.asarray(at.rows)
        centres = jnp.asarray(sample.points)[chosen]
        is_there = (sample.data_weight > 0) | (sample.reference_weight > 0)
        is_one = jnp.asarray(is_there)[chosen] & (chosen != NONE)
        log_weight = jnp.where(is_one, at.log_weight, -jnp.inf)
        found = scan.scan(model, centres, log_weight, sample, features, design, block)
        # The old momentum means nothing to kernels that moved; the others are treated alike.
        placed = at_rest(*scan.place(model, found, centres, is_one, rates.clip))
        return placed, found.statistics

    def stage(number: Array, progress: Progress) -> Progress:
        begin, end = spans[number, 0], spans[number, 1]

        def advance(t: Array, progress: Progress) -> Progress:
            now = rates
            if candidates is not None:  # smaller steps, so that kernels settle before the read-off
                left = ((end - t) / (end - begin)).astype(steps.sigma.dtype)
                now = rates._replace(
                    location=rates.location * left, amplitude=rates.amplitude * left
                )
            state = step(progress.state, steps.sigma[t], pull, per_event, now)
            # Each step overwrites the slot it works towards: what stays is the step read off.
            slot = steps.slot[t]
            mu, a = progress.mu.at[slot].set(state.mu), progress.a.at[slot].set(state.a)
            return progress._replace(state=state, mu=mu, a=a)

        if candidates is not None:
            at = jax.tree.map(lambda array: array[number], candidates)
            state, found = explore(at, progress.state, steps.sigma[begin])
            scanned = progress.scanned.at[steps.slot[begin]].set(found)
            progress = progress._replace(state=state, scanned=scanned)
        return jax.lax.fori_loop(begin, end, advance, progress)

    return jax.lax.fori_loop(numbers[0], numbers[1], stage, progress)


def finish(
    sample: TwoSample, progress: Progress, steps: Steps, design: Design, *, scans: bool
) -> Fit:
    """What the models say; to be run with JAX's 64-bit types enabled."""
    _, mu, a, scanned = progress
    models = Ensemble(mu, a, steps.sigma[steps.read_off])
    t, score_counts = evaluate(models, sample, design)
    statistics = t[:, None]
    if scans:
        statistics = jnp.concatenate([statistics, scanned.astype(t.dtype)], -1)
    found = (mu, a, statistics, score_counts)
    finite = jnp.stack([jnp.all(jnp.isfinite(array)) for array in found])
    # Arrays of NumPy once they are out of the program.
    return Fit(models, statistics, score_counts, jnp.all(finite))  # type: ignore[arg-type]
