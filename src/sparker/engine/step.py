"""What training does to one model on one sample: start, step, move idle kernels, evaluate."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from sparker.engine import gradient_gpu
from sparker.engine.candidates import draw
from sparker.engine.config import Design, Rates
from sparker.engine.distances import Features, features_of, sum_of
from sparker.engine.ensemble import Ensemble, kernel_values, parts
from sparker.engine.gradient import ROWS_AT_ONCE, Gradient, gradient, in_blocks
from sparker.engine.losses import score_counts, statistic
from sparker.engine.memory import in_lanes
from sparker.engine.sample import AnyArray, TwoSample

ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-12)
"""Its gradients are per event and per width, so they are of order one; hence the small eps."""


class State(NamedTuple):
    """What one step carries to the next."""

    mu: Array  # (M, d)
    a: Array  # (M,)
    optimizer: Any


def at_rest(mu: Array, a: Array) -> State:
    """Kernels without momentum."""
    return State(mu, a, ADAM.init((mu, a)))


def init(key: Array, sample: TwoSample, n_kernels: int) -> State:
    """Zero amplitudes, and locations on distinct random data points.

    With fewer data points than kernels, some start from the same one and stay together.
    """
    is_data = jnp.asarray(sample.data_weight > 0)
    drawn = draw(key, is_data, min(n_kernels, len(is_data)))
    n_drawn = jnp.clip(jnp.sum(is_data), 1, len(drawn))
    mu = sample.points[drawn[jnp.arange(n_kernels) % n_drawn]]
    return at_rest(mu, jnp.zeros(n_kernels, mu.dtype))


def gradient_of(sample: TwoSample, features: Features, design: Design) -> Gradient:
    """The gradient on this sample, computed in the way that is fastest on this device."""
    if gradient_gpu.pays(design.n_kernels, len(features.x), features.x.dtype):
        return gradient_gpu.gradient_of(sample, features, design)
    n_features, n_rows = features.x.shape
    if in_lanes(n_features) and n_rows > ROWS_AT_ONCE:
        return in_blocks(sample, features, design)
    return functools.partial(gradient, sample=sample, features=features, design=design)


def step(
    state: State, sigma: AnyArray, gradient: Gradient, per_event: Array, rates: Rates
) -> State:
    """One step of Adam at width sigma, on gradients per expected event."""
    d_mu, d_a = gradient(Ensemble(state.mu, state.a, sigma))
    # Per expected event, and the locations in units of the width: nothing then depends on the
    # size of the sample or on a common scale of the features.
    scaled = (d_mu * (sigma * per_event), (d_a + 2 * rates.l2 * state.a) * per_event)
    (move_mu, move_a), optimizer = ADAM.update(scaled, state.optimizer)
    mu = state.mu - rates.location * sigma * move_mu
    a = jnp.clip(state.a - rates.amplitude * move_a, -rates.clip, rates.clip)
    return State(mu, a, optimizer)


def evaluate(
    models: Ensemble, sample: TwoSample, design: Design
) -> tuple[Array, Array]:  # (m,) -> (m,), (m, SCORE_BINS)
    """The statistic and the counts of scores of several models, in double precision.

    In single precision the product form would lose the short distances around a kernel far out in
    the tails to rounding.
    """
    models, sample = jax.tree.map(lambda array: array.astype(jnp.float64), (models, sample))
    features = features_of(sample.points)

    def one(model: Ensemble) -> tuple[Array, Array]:
        k = kernel_values(model, *features, jax.lax.Precision.HIGHEST)
        f = sum_of(parts(model.a, k, design.competition.activation(k)))
        return statistic(f, sample), score_counts(f, sample)

    t, counts = jax.lax.map(one, models)
    return t, counts
