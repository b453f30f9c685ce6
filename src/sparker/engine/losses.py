"""The Neyman-Pearson loss and the two classifiers' losses the paper compares it with.

Each is a sum over points: ``sum_R w_R reference(f) + sum_D data(f)``. A ``Loss`` therefore holds
the two terms for one point and their slopes in ``f``, which the training uses directly.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine.sample import TwoSample

MAX_LOG_RATIO = 20.0
"""Above this log-ratio on a *reference* point, ``exp(f)`` goes on as its tangent.

Paper: plain ``exp(f)``. With its amplitude clips of 100 to 10,000 that overflows in single
precision as soon as f passes 88, and 0 * inf then gives NaN at points that carry no weight. Where f
is above 20 at a reference point, training at once moves it down. So the tangent changes the way to
the solution and not the solution, and the loss stays convex in f and finite.
"""


class Loss(NamedTuple):
    """The two terms of a loss at one point with log-ratio f, and their derivatives in f."""

    reference: Callable[[Array], Array]
    data: Callable[[Array], Array]
    reference_slope: Callable[[Array], Array]
    data_slope: Callable[[Array], Array]

    def __call__(self, f: Array, sample: TwoSample) -> Array:  # (N,) -> ()
        """The loss of a sample whose points have the log-ratios f."""
        reference, data = (jnp.asarray(weight) for weight in sample[1:])
        return jnp.sum(reference * self.reference(f)) + jnp.sum(data * self.data(f))

    def slope(self, f: Array, sample: TwoSample) -> Array:  # (N,) -> (N,)
        """dL/df at every point; zero where the sample gives a point no weight."""
        reference, data = (jnp.asarray(weight) for weight in sample[1:])
        return reference * self.reference_slope(f) + data * self.data_slope(f)

    def fingerprint(self) -> np.ndarray:  # (4, 9)
        """Values by which losses of the same name differ."""
        with jax.enable_x64(True):  # so that machines agree in more digits than are compared
            f = jnp.linspace(-4.0, 4.0, 9)
            return np.stack([np.broadcast_to(term(f), f.shape) for term in self])


def _np_reference(f: Array) -> Array:
    below = jnp.minimum(f, MAX_LOG_RATIO)
    return jnp.expm1(below) + jnp.exp(MAX_LOG_RATIO) * jnp.maximum(f - MAX_LOG_RATIO, 0)


def _np_reference_slope(f: Array) -> Array:
    return jnp.exp(jnp.minimum(f, MAX_LOG_RATIO))


def _np_data(f: Array) -> Array:
    return -f


def _np_data_slope(f: Array) -> Array:
    return -jnp.ones_like(f)


def _bce_reference(f: Array) -> Array:
    return jax.nn.softplus(f)


def _bce_data(f: Array) -> Array:
    return jax.nn.softplus(-f)


def _bce_reference_slope(f: Array) -> Array:
    return jax.nn.sigmoid(f)


def _bce_data_slope(f: Array) -> Array:
    return -jax.nn.sigmoid(-f)


def _mse_reference(f: Array) -> Array:
    return jax.nn.sigmoid(f) ** 2


def _mse_data(f: Array) -> Array:
    return jax.nn.sigmoid(-f) ** 2


def _mse_reference_slope(f: Array) -> Array:
    c = jax.nn.sigmoid(f)
    return 2 * c**2 * (1 - c)


def _mse_data_slope(f: Array) -> Array:
    c = jax.nn.sigmoid(f)
    return -2 * c * (1 - c) ** 2


# Plain functions rather than lambdas: settings travel to other processes, where they must be the
# same functions again.
neyman_pearson = Loss(_np_reference, _np_data, _np_reference_slope, _np_data_slope)
"""``sum_R w_R (e^f - 1) - sum_D f``: the extended likelihood ratio, unbounded below."""

binary_cross_entropy = Loss(_bce_reference, _bce_data, _bce_reference_slope, _bce_data_slope)
"""``-sum_R w_R log(1 - c) - sum_D log c`` with ``c = Sigmoid(f)``."""

mean_squared_error = Loss(_mse_reference, _mse_data, _mse_reference_slope, _mse_data_slope)
"""``sum_R w_R c^2 + sum_D (1 - c)^2`` with ``c = Sigmoid(f)``."""


def statistic(f: Array, sample: TwoSample) -> Array:  # (N,) -> ()
    """``t = -2 L_NP``: twice the log likelihood ratio, whichever loss trained f."""
    return -2 * neyman_pearson(f, sample)


SCORE_BINS = 20


def score_counts(f: Array, sample: TwoSample) -> Array:  # (N,) -> (SCORE_BINS,)
    """How many data events have an anomaly score ``c = Sigmoid(f)`` in each of equal bins."""
    bins = jnp.clip((jax.nn.sigmoid(f) * SCORE_BINS).astype(jnp.int32), 0, SCORE_BINS - 1)

    # One bin at a time: scattered additions would differ in the last bits, and all bins at once
    # would take much memory.
    def one(i: Array) -> Array:
        return jnp.sum(jnp.where(bins == i, sample.data_weight, 0))

    return jax.lax.map(one, jnp.arange(SCORE_BINS))
