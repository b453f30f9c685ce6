"""Training: anneal the width, place idle kernels, let Adam move all of them, read the model off.

``train`` is the whole of it, for rows in memory and for rows that pass by in blocks: a ``Trainer``
says how sums over rows come about, and ``Loops`` whether the steps are traced into one program or
taken one at a time.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import optax
from jax import Array

from sparker.engine import gradient_gpu, scan
from sparker.engine.config import Design, Rates
from sparker.engine.distances import Features, features_of, sum_of
from sparker.engine.ensemble import Ensemble, kernel_values, parts
from sparker.engine.gradient import ROWS_AT_ONCE, Gradient, gradient, in_blocks
from sparker.engine.losses import deficit, excess, score_counts, statistic
from sparker.engine.measured import Measured
from sparker.engine.memory import in_lanes
from sparker.engine.sample import AnyArray, TwoSample
from sparker.engine.scan import Candidates

ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-12)
"""Acts on gradients per event and per width, numbers of order one; hence the small eps."""


class State(NamedTuple):
    """What one step carries to the next."""

    mu: Array  # (M, d)
    a: Array  # (M,)
    optimizer: Any


class Evaluation(NamedTuple):
    """What a model says of the sample it was fitted to, in double precision: sums over rows."""

    t: Array  # () the test statistic
    excess: Array  # () data events too many
    deficit: Array  # () data events missing
    score_counts: Array  # (SCORE_BINS,) data events by their anomaly score


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
    """Who sums over the rows of a sample, or of many samples at once."""

    def place(self, state: State, stage: Any, sigma: Array) -> tuple[State, Array]:
        """Scan at a new width: idle kernels placed anew, and the scan's statistics."""

    def step(self, state: State, sigma: Array, rates: Rates) -> State:
        """One step of Adam."""

    def evaluate(self, mu: Array, a: Array, sigma: AnyArray) -> Evaluation:
        """What the models say that were read off."""


class Loops(NamedTuple):
    """How the loops of the training run: traced into one program, or one step after the other."""

    over_stages: Callable[[Any, Any, Any], tuple[Any, Any]]  # as ``jax.lax.scan``
    over_steps: Callable[[Any, Any, Any, Any], Any]  # as ``jax.lax.fori_loop``


TRACED = Loops(jax.lax.scan, jax.lax.fori_loop)

Carry = tuple[State, Array, Array, Array]
"""The state, the locations and amplitudes read off so far, and what scans have found."""


def train(
    trainer: Trainer,
    first: State,
    sigma: AnyArray,  # (T,)
    read_off: AnyArray,  # (m,) steps after which the model is read off
    explored: AnyArray,  # (e,) steps before which idle kernels are placed anew
    stages: Any,  # e of what ``place`` needs at each
    rates: Rates,
    loops: Loops = TRACED,
) -> ReadOffs:
    """A whole fit: T annealed steps, the models read off on the way and what they say.

    To be run with JAX's 64-bit types enabled: the statistic is evaluated in double precision,
    whatever the training runs in.
    """
    batch, shape = first.mu.shape[:-2], first.mu.shape[-2:]
    m = len(read_off)
    read_mu = jnp.zeros((*batch, m, *shape), first.mu.dtype)
    read_a = jnp.zeros((*batch, m, shape[0]), first.a.dtype)
    scanned = jnp.zeros((*batch, m, len(scan.FAMILIES)), first.a.dtype)
    slot = jnp.searchsorted(read_off, jnp.arange(len(sigma)))  # (T,) the read-off each works for

    def stage(carry: Carry, span: tuple[Array, Array, Any]) -> tuple[Carry, None]:
        state, read_mu, read_a, scanned = carry
        begin, end, at = span

        def advance(t: Array, carry: Carry) -> Carry:
            state, read_mu, read_a, scanned = carry
            now = rates
            if len(explored):
                now = slowed(rates, ((end - t) / (end - begin)).astype(sigma.dtype))
            state = trainer.step(state, sigma[t], now)
            # Each step overwrites the slot it works towards: what stays is the step read off.
            read_mu = read_mu.at[..., slot[t], :, :].set(state.mu)
            read_a = read_a.at[..., slot[t], :].set(state.a)
            return state, read_mu, read_a, scanned

        if len(explored):
            state, found = trainer.place(state, at, sigma[begin])
            scanned = scanned.at[..., slot[begin], :].set(found)
        return loops.over_steps(begin, end, advance, (state, read_mu, read_a, scanned)), None

    begins = explored if len(explored) else jnp.zeros(1, jnp.int32)
    ends = jnp.append(begins[1:], len(sigma)).astype(begins.dtype)
    start = (first, read_mu, read_a, scanned)
    (_, mu, a, scanned), _ = loops.over_stages(stage, start, (begins, ends, stages))
    evaluation = trainer.evaluate(mu, a, sigma[read_off])
    statistics = evaluation.t[..., None]
    if len(explored):
        statistics = jnp.concatenate([statistics, scanned.astype(statistics.dtype)], -1)
    measured = Measured(statistics, *evaluation[1:])
    each = [
        jnp.all(jnp.isfinite(array), tuple(range(len(batch), array.ndim)))
        for array in (mu, a, *measured)
    ]
    return ReadOffs(mu, a, measured, jnp.all(jnp.stack(each), 0))


class Rows(NamedTuple):
    """A ``Trainer`` whose rows are all there: one sample, to be traced."""

    sample: TwoSample
    features: Features
    gradient: Gradient
    per_event: Array
    clip: AnyArray
    design: Design
    block: int  # candidates that are looked at at a time

    def place(self, state: State, stage: Candidates, sigma: Array) -> tuple[State, Array]:
        """Look at the candidates of a stage."""
        model = Ensemble(state.mu, state.a, sigma)
        rows = jnp.asarray(stage.rows)
        centres = jnp.asarray(self.sample.points)[rows]
        is_there = (self.sample.data_weight > 0) | (self.sample.reference_weight > 0)
        is_one = jnp.asarray(is_there)[rows] & (rows != scan.NONE)
        seen = scan.look(model, centres, self.sample, self.features, self.design, self.block)
        return placed(model, seen, centres, is_one, stage.log_weight, self.clip)

    def step(self, state: State, sigma: Array, rates: Rates) -> State:
        """Step along the gradient of all rows."""
        return step(state, sigma, self.gradient, self.per_event, rates)

    def evaluate(self, mu: Array, a: Array, sigma: AnyArray) -> Evaluation:
        """Evaluate all models read off."""
        return evaluate(Ensemble(mu, a, sigma), self.sample, self.design)


def train_rows(
    key: Array,
    sample: TwoSample,
    sigma: Array,
    read_off: Array,
    explored: Array,
    candidates: Candidates,  # where to look, at each of ``explored``
    rates: Rates,
    design: Design,
    block: int,
) -> ReadOffs:
    """``train`` on one sample in memory; ``block`` candidates are looked at at a time."""
    features = features_of(sample.points)
    expected = jnp.sum(sample.reference_weight)
    per_event = 1 / jnp.where(expected > 0, expected, 1)  # only a padding toy expects none
    pull = gradient_of(sample, features, design)
    rows = Rows(sample, features, pull, per_event, rates.clip, design, block)
    if not len(explored):
        candidates = Candidates(*jnp.zeros((2, 1, 0)))
    first = init(key, sample, design.n_kernels)
    return train(rows, first, sigma, read_off, explored, candidates, rates)


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
    drawn = scan.draw(key, is_data, min(n_kernels, len(is_data)))
    n_drawn = jnp.clip(jnp.sum(is_data), 1, len(drawn))
    mu = sample.points[drawn[jnp.arange(n_kernels) % n_drawn]]
    return at_rest(mu, jnp.zeros(n_kernels, mu.dtype))


def gradient_of(sample: TwoSample, features: Features, design: Design) -> Gradient:
    """The gradient on this sample, by whichever way is fastest here."""
    if gradient_gpu.pays(design.n_kernels, len(features.x), features.x.dtype):
        return gradient_gpu.gradient_of(sample, features, design)
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
    seen: scan.Seen,
    centres: Array,  # (C, d)
    is_one: Array,  # (C,)
    log_weight: AnyArray,  # (C,)
    clip: AnyArray,
) -> tuple[State, Array]:
    """The state after a look, with idle kernels placed anew, and the look's statistics."""
    found = scan.scan(seen, jnp.where(is_one, log_weight, -jnp.inf))
    mu, a = scan.place(model, found, seen.t, centres, is_one, clip)
    # Kernels that moved have no use for the old momentum, and the others start alike.
    return at_rest(mu, a), found.statistics


def evaluate(models: Ensemble, sample: TwoSample, design: Design) -> Evaluation:  # of (m,)
    """The statistic and the effect sizes of several models, in double precision.

    In single precision the product form would lose the short distances around a kernel far out in
    the tails to rounding.
    """
    models, sample = jax.tree.map(lambda array: array.astype(jnp.float64), (models, sample))
    features = features_of(sample.points)

    def one(model: Ensemble) -> Evaluation:
        k = kernel_values(model, *features, jax.lax.Precision.HIGHEST)
        f = sum_of(parts(model.a, k, design.competition.activation(k)))
        return Evaluation(*(of(f, sample) for of in (statistic, excess, deficit, score_counts)))

    return jax.lax.map(one, models)
