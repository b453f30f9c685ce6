"""Training one ensemble on one sample: pure functions of arrays, ready to be batched.

Anneal the width, place idle kernels where a scan finds something, let Adam move all of them, read
the model off on the way.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from sparker import explore, fused
from sparker.design import Design, Rates
from sparker.distances import Features, features_of, sum_of
from sparker.ensemble import Ensemble, kernel_values, parts
from sparker.explore import Candidates
from sparker.gradient import ROWS_AT_ONCE, Gradient, gradient, in_blocks
from sparker.losses import deficit, excess, score_counts, statistic
from sparker.memory import in_lanes
from sparker.sample import AnyArray, TwoSample

ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-12)
"""Acts on gradients per event and per width, numbers of order one; hence the small eps."""


class State(NamedTuple):
    """What one step carries to the next."""

    mu: Array  # (M, d)
    a: Array  # (M,)
    optimizer: Any


class Evaluation(NamedTuple):
    """What a model says of the sample it was fitted to, in double precision."""

    t: Array  # () the test statistic
    excess: Array  # () data events too many
    deficit: Array  # () data events missing
    score_counts: Array  # (SCORE_BINS,) data events by their anomaly score


class ReadOffs(NamedTuple):
    """The models at the m widths read off, what they say, and whether all is finite."""

    mu: Array  # (m, M, d)
    a: Array  # (m, M)
    evidence: Array  # (m, r) see READINGS
    evaluation: Evaluation  # of (m,)
    finite: Array  # ()


Carry = tuple[State, Array, Array, Array]
"""The state, the locations and amplitudes read off so far, and what scans have found."""

READINGS = ("all kernels", *explore.EVIDENCE)
"""What is read off at each width: ``t`` of the model, and what the scan before training found.
Without exploration, the first alone."""


def at_rest(mu: Array, a: Array) -> State:
    """Kernels without momentum."""
    return State(mu, a, ADAM.init((mu, a)))


def slowed(rates: Rates, left: AnyArray) -> Rates:
    """Smaller steps towards the end of a width: few of them must settle around what is read off."""
    return rates._replace(location=rates.location * left, amplitude=rates.amplitude * left)


def init(key: Array, sample: TwoSample, n_kernels: int) -> State:
    """Zero amplitudes, and locations on distinct random data points.

    With fewer data points than kernels, some start from the same one and stay together.
    """
    is_data = jnp.asarray(sample.data_weight > 0)
    drawn = explore.draw(key, is_data, min(n_kernels, len(is_data)))
    n_drawn = jnp.clip(jnp.sum(is_data), 1, len(drawn))
    mu = sample.points[drawn[jnp.arange(n_kernels) % n_drawn]]
    return at_rest(mu, jnp.zeros(n_kernels, mu.dtype))


def gradient_of(sample: TwoSample, features: Features, design: Design) -> Gradient:
    """The gradient on this sample, by whichever way is fastest here."""
    if fused.pays(design.n_kernels, len(features.x), features.x.dtype):
        return fused.gradient_of(sample, features, design)
    n_features, n_rows = features.x.shape
    if in_lanes(n_features) and n_rows > ROWS_AT_ONCE:
        return in_blocks(sample, features, design)
    return functools.partial(gradient, sample=sample, features=features, design=design)


def step(state: State, sigma: Array, gradient: Gradient, per_event: Array, rates: Rates) -> State:
    """One step of Adam at width sigma, on gradients per expected event."""
    d_mu, d_a = gradient(Ensemble(state.mu, state.a, sigma))
    # Per expected event, and the locations in units of the width: nothing then depends on the
    # size of the sample or on a common scale of the features.
    scaled = (d_mu * (sigma * per_event), (d_a + 2 * rates.l2 * state.a) * per_event)
    (move_mu, move_a), optimizer = ADAM.update(scaled, state.optimizer)
    mu = state.mu - rates.location * sigma * move_mu
    a = jnp.clip(state.a - rates.amplitude * move_a, -rates.clip, rates.clip)
    return State(mu, a, optimizer)


def placed(
    model: Ensemble,
    seen: explore.Seen,
    centres: Array,  # (C, d)
    is_one: Array,  # (C,)
    log_weight: AnyArray,  # (C,)
    clip: AnyArray,
) -> tuple[State, Array]:
    """The state after a look, with idle kernels placed anew, and the look's evidence."""
    found = explore.scan(seen, jnp.where(is_one, log_weight, -jnp.inf))
    mu, a = explore.place(model, found, seen.t, centres, is_one, clip)
    # Kernels that moved have no use for the old momentum, and the others start alike.
    return at_rest(mu, a), found.evidence


def evaluate(models: Ensemble, sample: TwoSample, design: Design) -> Evaluation:  # of (m,)
    """The statistic and the effect sizes of several models, in double precision.

    In single precision the product form would lose the short distances around a kernel far out in
    the tails to rounding.
    """
    models, sample = jax.tree.map(lambda array: array.astype(jnp.float64), (models, sample))
    features = features_of(sample.points)

    def one(model: Ensemble) -> Evaluation:
        k = kernel_values(model, *features, jax.lax.Precision.HIGHEST)
        f = sum_of(parts(model.a, k, design.competition.share(k)))
        return Evaluation(*(of(f, sample) for of in (statistic, excess, deficit, score_counts)))

    return jax.lax.map(one, models)


def train(
    key: Array,
    sample: TwoSample,
    sigma: Array,  # (T,)
    read_off: Array,  # (m,)
    explored: Array,  # (e,) steps before which idle kernels are placed anew
    candidates: Candidates,  # where to look there
    rates: Rates,
    design: Design,
    block: int,
) -> ReadOffs:
    """A whole fit: T annealed steps, the models read off on the way and their statistic.

    ``block`` candidates are looked at at a time.

    To be traced with JAX's 64-bit types enabled: the statistic is evaluated in double precision,
    whatever the training runs in.
    """
    features = features_of(sample.points)
    expected = jnp.sum(sample.reference_weight)
    per_event = 1 / jnp.where(expected > 0, expected, 1)  # only a padding toy expects none
    downhill = gradient_of(sample, features, design)
    first = init(key, sample, design.n_kernels)
    read_mu = jnp.zeros((len(read_off), *first.mu.shape), first.mu.dtype)
    read_a = jnp.zeros((len(read_off), *first.a.shape), first.a.dtype)
    scanned = jnp.zeros((len(read_off), len(explore.EVIDENCE)), first.a.dtype)

    points = jnp.asarray(sample.points)
    is_there = jnp.asarray((sample.data_weight > 0) | (sample.reference_weight > 0))
    slot = jnp.searchsorted(read_off, jnp.arange(len(sigma)))  # (T,) the read-off each works for

    def look(state: State, scanned: Array, t: Array, at: Candidates) -> tuple[State, Array]:
        model = Ensemble(state.mu, state.a, sigma[t])
        rows = jnp.asarray(at.rows)
        centres, is_one = points[rows], is_there[rows] & (rows != explore.NONE)
        seen = explore.look(model, centres, sample, features, design, block)
        state, evidence = placed(model, seen, centres, is_one, at.log_weight, rates.clip)
        return state, scanned.at[slot[t]].set(evidence)

    def stage(carry: Carry, span: tuple[Array, Array, Candidates]) -> tuple[Carry, None]:
        state, read_mu, read_a, scanned = carry
        begin, end, at = span

        def advance(t: Array, carry: Carry) -> Carry:
            state, read_mu, read_a, scanned = carry
            now = rates
            if len(explored):
                now = slowed(rates, ((end - t) / (end - begin)).astype(sigma.dtype))
            state = step(state, sigma[t], downhill, per_event, now)
            # Each step overwrites the slot it works towards: what stays is the step read off.
            read_mu, read_a = read_mu.at[slot[t]].set(state.mu), read_a.at[slot[t]].set(state.a)
            return state, read_mu, read_a, scanned

        if len(explored):
            state, scanned = look(state, scanned, begin, at)
        return jax.lax.fori_loop(begin, end, advance, (state, read_mu, read_a, scanned)), None

    begins = explored
    if not len(explored):
        begins, candidates = jnp.zeros(1, jnp.int32), Candidates(*jnp.zeros((2, 1, 0)))
    ends = jnp.append(begins[1:], len(sigma)).astype(begins.dtype)
    start = (first, read_mu, read_a, scanned)
    (_, mu, a, scanned), _ = jax.lax.scan(stage, start, (begins, ends, candidates))
    evaluation = evaluate(Ensemble(mu, a, sigma[read_off]), sample, design)
    evidence = evaluation.t[:, None]
    if len(explored):
        evidence = jnp.concatenate([evidence, scanned.astype(evidence.dtype)], -1)
    finite = [jnp.all(jnp.isfinite(array)) for array in (mu, a, evidence, *evaluation)]
    return ReadOffs(mu, a, evidence, evaluation, jnp.all(jnp.stack(finite)))
