"""Other ways to train the same kernels than the engine's, in one dimension.

The paper does not state optimiser, rates or their units. The engine has Adam, steps of the
locations in widths, and momentum that is kept while the width shrinks. Here a plain loop over
``jax.grad`` does it in every way that came to mind; ``variants`` measures what each is worth.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from sparker.engine import TwoSample, neyman_pearson
from sparker.engine.widths import Schedule

AT_ONCE = 50  # experiments

Start = Callable[[Array, TwoSample, int], Array]  # (M,)
"""Where the kernels begin, from a key, a sample and their number."""


def on_data(key: Array, sample: TwoSample, n: int) -> Array:
    """Random data points, as the paper says."""
    weight = jnp.asarray(sample.data_weight)
    return jax.random.choice(key, sample.points[:, 0], (n,), replace=False, p=weight / weight.sum())


def on_reference(key: Array, sample: TwoSample, n: int) -> Array:
    """Random points of the reference."""
    weight = jnp.asarray(sample.reference_weight)
    return jax.random.choice(key, sample.points[:, 0], (n,), replace=False, p=weight / weight.sum())


def over_range(key: Array, sample: TwoSample, n: int) -> Array:
    """Anywhere between the smallest and the largest data point."""
    x = jnp.where(sample.data_weight > 0, sample.points[:, 0], 0)
    return jax.random.uniform(key, (n,), maxval=jnp.max(x))


class Training(NamedTuple):
    """One way to train; these are the engine's, with the rates of ``presets.annealed``."""

    optimiser: optax.GradientTransformation = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-12)
    location_rate: float = 0.01
    amplitude_rate: float = 0.05
    in_widths: bool = True
    """Whether the locations' rate is in widths, or in the units of the data."""
    forgetful: bool = False
    """Whether momentum is forgotten at every read-off."""
    start: Start = on_data
    amplitude: float = 0.0
    """Spread of the amplitudes at the start."""
    clip: float = 5.0
    of_kernels: bool = False
    """Whether the SoftMax is of the kernels' values, and not of their exponents."""
    n_kernels: int = 5

    def log_ratio(self, mu: Array, a: Array, width: Array, x: Array) -> Array:
        """The model f, whose gradient is finite where all kernels are too far to be told from 0."""
        exponent = -0.5 * ((x - mu[:, None]) / width) ** 2
        k = jnp.exp(exponent)
        share = jax.nn.softmax(k if self.of_kernels else exponent, axis=0)
        return jnp.sum(a[:, None] * share * k, 0)


def trained(
    samples: TwoSample, plan: Schedule, way: Training, seed: int = 0
) -> tuple[Array, Array]:
    """Locations and amplitudes at every width read off, of every sample: twice (B, m, M)."""
    sigma = jnp.asarray(plan.sigma, jnp.float32)
    slot = jnp.asarray(np.searchsorted(plan.read_off, np.arange(len(plan.sigma))))
    begins = jnp.asarray(np.isin(np.arange(len(plan.sigma)) - 1, plan.read_off))
    n_widths = len(plan.read_off)

    def one(given: tuple[Array, TwoSample]) -> tuple[Array, Array]:
        key, sample = given
        x = jnp.asarray(sample.points)[:, 0]
        where, height = jax.random.split(key)
        mu = way.start(where, sample, way.n_kernels)
        a = way.amplitude * jax.random.normal(height, (way.n_kernels,))
        per_event = 1 / jnp.sum(sample.reference_weight)
        fresh = way.optimiser.init((mu, a))

        def loss(parameters: tuple[Array, Array], width: Array) -> Array:
            return per_event * neyman_pearson(way.log_ratio(*parameters, width, x), sample)

        def step(t: Array, carried: Any) -> Any:
            mu, a, state, all_mu, all_a = carried
            if way.forgetful:
                state = jax.tree.map(lambda new, old: jnp.where(begins[t], new, old), fresh, state)
            d_mu, d_a = jax.grad(loss)((mu, a), sigma[t])
            unit = sigma[t] if way.in_widths else jnp.float32(1)
            (move_mu, move_a), state = way.optimiser.update((d_mu * unit, d_a), state)
            mu = mu - way.location_rate * unit * move_mu
            a = jnp.clip(a - way.amplitude_rate * move_a, -way.clip, way.clip)
            return mu, a, state, all_mu.at[slot[t]].set(mu), all_a.at[slot[t]].set(a)

        empty = jnp.zeros((n_widths, way.n_kernels), x.dtype)
        return jax.lax.fori_loop(0, len(sigma), step, (mu, a, fresh, empty, empty))[-2:]

    keys = jax.random.split(jax.random.key(seed), len(samples.points))
    run = jax.jit(lambda given: jax.lax.map(one, given, batch_size=AT_ONCE))
    return run((keys, TwoSample(*map(jnp.asarray, samples))))


@jax.enable_x64(True)
def statistics(
    samples: TwoSample, plan: Schedule, way: Training, mu: Array, a: Array
) -> np.ndarray:  # (B, m)
    """``t`` of these models, in double precision."""

    def one(given: tuple[TwoSample, Array, Array]) -> Array:
        sample, mu, a = given
        x = sample.points[:, 0]

        def at_width(width: Array, mu: Array, a: Array) -> Array:
            return -2 * neyman_pearson(way.log_ratio(mu, a, width, x), sample)

        return jax.vmap(at_width)(jnp.asarray(plan.widths), mu, a)

    given = jax.tree.map(lambda array: jnp.asarray(array, float), (samples, mu, a))
    return np.asarray(jax.jit(lambda given: jax.lax.map(one, given))(given))


def ways() -> dict[str, Training]:
    """What is tried, one change at a time."""
    ours = Training()
    descent = ours._replace(optimiser=optax.identity(), in_widths=False)
    in_data_units = ours._replace(in_widths=False)
    return {
        "the engine's way, plainly written": ours,
        **{
            f"locations in the data's units, rate {rate}": in_data_units._replace(
                location_rate=rate
            )
            for rate in (0.001, 0.01, 0.1)
        },
        **{
            f"one rate for all in the data's units, {rate}": in_data_units._replace(
                location_rate=rate, amplitude_rate=rate
            )
            for rate in (0.001, 0.01)
        },
        **{
            f"gradient descent, rate {rate} a mean event": descent._replace(
                location_rate=rate, amplitude_rate=rate
            )
            for rate in (1.0, 10.0, 100.0)
        },
        "momentum forgotten at each read-off": ours._replace(forgetful=True),
        "Adam without momentum": ours._replace(
            optimiser=optax.scale_by_adam(b1=0.0, b2=0.999, eps=1e-12)
        ),
        "amplitudes start at random": ours._replace(amplitude=1.0),
        "kernels start on the reference": ours._replace(start=on_reference),
        "kernels start anywhere": ours._replace(start=over_range),
        "SoftMax of the kernels' values": ours._replace(of_kernels=True),
    }
