"""Training one ensemble on one sample: pure functions of arrays, ready to be batched.

Anneal the width, let Adam move the kernels, read the model off on the way.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from sparker.distances import pull_back, squared_norms, sum_of
from sparker.ensemble import Competition, Ensemble, kernel_values, parts
from sparker.losses import Loss, deficit, excess, score_counts, statistic
from sparker.sample import AnyArray, TwoSample

ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-12)
"""Acts on gradients per event and per width, numbers of order one; hence the small eps."""


class Design(NamedTuple):
    """What shapes the program: a change here compiles anew."""

    n_kernels: int
    loss: Loss
    competition: Competition
    precision: jax.lax.Precision  # of the matrix products in training


class Rates(NamedTuple):
    """The numbers of a fit: these may change without compiling anew."""

    clip: AnyArray
    l2: AnyArray
    location: AnyArray
    amplitude: AnyArray


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
    evaluation: Evaluation  # of (m,)
    finite: Array  # ()


def init(key: Array, sample: TwoSample, n_kernels: int) -> State:
    """Zero amplitudes, and locations on distinct random data points.

    With fewer data points than kernels, some start from the same one and stay together.
    """
    is_data = sample.data_weight > 0
    # Integers, so that every device and precision draws the same points.
    bits = jax.random.bits(key, is_data.shape, jnp.uint32)
    tickets = jnp.where(is_data, (bits >> 1).astype(jnp.int32), -1)
    _, drawn = jax.lax.top_k(tickets, min(n_kernels, len(is_data)))
    n_drawn = jnp.clip(jnp.sum(is_data), 1, len(drawn))
    mu = sample.points[drawn[jnp.arange(n_kernels) % n_drawn]]
    a = jnp.zeros(n_kernels, mu.dtype)
    return State(mu, a, ADAM.init((mu, a)))


class Features(NamedTuple):
    """The points as training reads them: feature by feature, with their squared norms."""

    x: Array  # (d, N)
    norms: Array  # (N,)


def features_of(points: AnyArray) -> Features:  # (N, d)
    """Lay points out for training."""
    x = jnp.asarray(points).T
    return Features(x, squared_norms(x))


def gradient(
    model: Ensemble, sample: TwoSample, features: Features, design: Design
) -> tuple[Array, Array]:  # (M, d), (M,)
    """``dL/dmu`` and ``dL/da`` in one pass over the points.

    Written out rather than left to autodiff, which divides by the square of the SoftMax sum and
    so makes NaN of the points that no kernel sees.
    """
    k = kernel_values(model, *features, design.precision)
    p = design.competition.share(k)
    f = sum_of(parts(model.a, k, p))
    slope = design.loss.slope(f, sample)
    # df/da_i = p_i k_i
    d_a = jnp.stack([jnp.sum(slope * (p_i * k_i)) for p_i, k_i in zip(p, k, strict=True)])
    # df/dmu_i = A_i(x) (x - mu_i), radial, with A_i = (df/dlog k_i) / sigma^2
    pull = [slope * response for response in design.competition.response(model.a, k, p, f)]
    d_mu = pull_back(pull, features.x, model.mu, design.precision) / model.sigma**2
    return d_mu, d_a


def step(
    state: State,
    sigma: Array,
    sample: TwoSample,
    features: Features,
    per_event: Array,
    rates: Rates,
    design: Design,
) -> State:
    """One step of Adam at width sigma, on gradients per expected event."""
    d_mu, d_a = gradient(Ensemble(state.mu, state.a, sigma), sample, features, design)
    # Per expected event, and the locations in units of the width: nothing then depends on the
    # size of the sample or on a common scale of the features.
    scaled = (d_mu * (sigma * per_event), (d_a + 2 * rates.l2 * state.a) * per_event)
    (move_mu, move_a), optimizer = ADAM.update(scaled, state.optimizer)
    mu = state.mu - rates.location * sigma * move_mu
    a = jnp.clip(state.a - rates.amplitude * move_a, -rates.clip, rates.clip)
    return State(mu, a, optimizer)


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
    rates: Rates,
    design: Design,
) -> ReadOffs:
    """A whole fit: T annealed steps, the models read off on the way and their statistic.

    To be traced with JAX's 64-bit types enabled: the statistic is evaluated in double precision,
    whatever the training runs in.
    """
    features = features_of(sample.points)
    expected = jnp.sum(sample.reference_weight)
    per_event = 1 / jnp.where(expected > 0, expected, 1)  # only a padding toy expects none
    start = init(key, sample, design.n_kernels)
    read_mu = jnp.zeros((len(read_off), *start.mu.shape), start.mu.dtype)
    read_a = jnp.zeros((len(read_off), *start.a.shape), start.a.dtype)
    slot = jnp.searchsorted(read_off, jnp.arange(len(sigma)))  # (T,)

    def advance(
        carry: tuple[State, Array, Array], now: tuple[Array, Array]
    ) -> tuple[tuple[State, Array, Array], None]:
        state, read_mu, read_a = carry
        sigma_t, slot_t = now
        state = step(state, sigma_t, sample, features, per_event, rates, design)
        # Each step overwrites the slot it works towards: what stays is the step read off.
        return (state, read_mu.at[slot_t].set(state.mu), read_a.at[slot_t].set(state.a)), None

    (_, mu, a), _ = jax.lax.scan(advance, (start, read_mu, read_a), (sigma, slot))
    evaluation = evaluate(Ensemble(mu, a, sigma[read_off]), sample, design)
    finite = jnp.stack([jnp.all(jnp.isfinite(array)) for array in (mu, a, *evaluation)])
    return ReadOffs(mu, a, evaluation, jnp.all(finite))
