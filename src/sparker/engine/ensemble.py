"""The SparKer model: a handful of Gaussian kernels that compete for the points.

Symbols are the paper's: kernel locations ``mu``, amplitudes ``a``, one shared width ``sigma``. A
list ``k`` holds one array per kernel, all of the same shape: its values at the points.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from scipy.special import expit

from sparker.engine.compiled import compiled
from sparker.engine.distances import (
    power_of_two_near,
    squared_differences,
    squared_distances,
    sum_of,
)
from sparker.engine.sample import AnyArray, as_points
from sparker.system.archive import ArraySpec
from sparker.system.machine import check_process

Kernels = Sequence[Array]


class Ensemble(NamedTuple):
    """M Gaussian kernels of one width."""

    mu: Annotated[AnyArray, ArraySpec("M r")]
    """Locations."""
    a: Annotated[AnyArray, ArraySpec("M")]
    """Amplitudes."""
    sigma: Annotated[AnyArray, ArraySpec("")]
    """The width."""


class Competition(NamedTuple):
    """How the kernels share a point: the activation ``p`` and what it does to the gradient."""

    activation: Callable[[Kernels], list[Array]]
    """``p_i`` from the kernel values."""
    response: Callable[[AnyArray, Kernels, Kernels, Array], list[Array]]
    """``df / dlog k_i`` from the amplitudes, kernel values, activations and ``f``."""

    def fingerprint(self) -> np.ndarray:  # (2, 3, 4)
        """Values by which competitions of the same name differ: of three kernels at four points."""
        with jax.enable_x64(True):  # so that machines agree in more digits than are compared
            k = list(jnp.linspace(0.05, 0.95, 12).reshape(3, 4))
            p, a = self.activation(k), np.array([1.0, -0.5, 2.0])
            return np.array([p, self.response(a, k, p, sum_of(parts(a, k, p)))])


def _softmax_activation(k: Kernels) -> list[Array]:
    # Where every kernel underflows this is 0/tiny = 0, not the 0/0 of the formula. A kernel that
    # does not reach a point has no part in it, and f is 0 there in any case.
    total = sum_of(k) + np.finfo(k[0].dtype).tiny
    return [k_i / total for k_i in k]


def _softmax_response(a: AnyArray, k: Kernels, p: Kernels, f: Array) -> list[Array]:
    return [p_i * (2 * a[i] * k_i - f) for i, (k_i, p_i) in enumerate(zip(k, p, strict=True))]


def _independent_activation(k: Kernels) -> list[Array]:
    return [jnp.ones_like(k_i) for k_i in k]


def _independent_response(a: AnyArray, k: Kernels, p: Kernels, f: Array) -> list[Array]:
    return [a[i] * k_i for i, k_i in enumerate(k)]


softmax = Competition(_softmax_activation, _softmax_response)
"""The paper's SoftMax over negative squared distances: ``p_i = k_i / sum_j k_j``."""

independent = Competition(_independent_activation, _independent_response)
"""No competition, ``p_i = 1``: the alternative the paper compares with."""


def kernel_values(
    model: Ensemble, features: Array, norms: Array, precision: jax.lax.Precision
) -> list[Array]:  # (d, N) -> M x (N,)
    """``k_i(x) = exp(-|x - mu_i|^2 / (2 sigma^2))`` at every point."""
    return gaussian(squared_distances(features, norms, model.mu, precision), model.sigma)


def gaussian(squared: Kernels, sigma: AnyArray) -> list[Array]:
    """``exp(-r^2 / (2 sigma^2))`` of squared distances."""
    scale = -0.5 / sigma**2
    return [jnp.exp(r2 * scale) for r2 in squared]


def parts(a: AnyArray, k: Kernels, p: Kernels) -> list[Array]:
    """The components ``f_i = a_i p_i k_i``, one array per kernel."""
    return [a[i] * (p_i * k_i) for i, (k_i, p_i) in enumerate(zip(k, p, strict=True))]


def components(
    model: Ensemble, points: ArrayLike, competition: Competition = softmax
) -> np.ndarray:  # (N, d) -> (N, M)
    """``f_i(x)`` of every point: its M components, which sum to the log-ratio.

    >>> import numpy as np
    >>> model = Ensemble(mu=np.array([[0.0], [9.0]]), a=np.array([2.0, -1.0]), sigma=np.array(1.0))
    >>> abs(components(model, np.array([[0.0], [9.0], [100.0]]))).round(3).tolist()
    [[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    x = as_points("points", points)
    if x.shape[1] != model.mu.shape[1]:
        raise ValueError(f"points have {x.shape[1]} features, the model has {model.mu.shape[1]}")
    check_process()
    mu = np.asarray(model.mu)
    dtype = np.float64 if x.dtype == mu.dtype == np.float64 else np.float32
    # In units of the width, a power of two, so that the scale of the features costs no digits.
    unit = power_of_two_near(float(model.sigma))
    squared = squared_differences(x, mu, unit).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        r2, a, sigma = (
            jnp.asarray(array, dtype) for array in (squared, model.a, model.sigma / unit)
        )
        return np.asarray(_components(r2, a, sigma, competition))


@functools.partial(compiled, static_argnames="competition", compiler_options=None)
def _components(squared: Array, a: Array, sigma: Array, competition: Competition) -> Array:
    k = gaussian(list(squared), sigma)
    return jnp.stack(parts(a, k, competition.activation(k)), -1)


def log_ratio(
    model: Ensemble, points: ArrayLike, competition: Competition = softmax
) -> np.ndarray:  # (N, d) -> (N,)
    """``f(x)``: the log density ratio of data to reference that the ensemble has learned."""
    return components(model, points, competition).sum(-1)


def anomaly_score(
    model: Ensemble, points: ArrayLike, competition: Competition = softmax
) -> np.ndarray:  # (N, d) -> (N,)
    """``c(x) = Sigmoid(f(x))``: above 1/2 where there are more data than expected."""
    return expit(log_ratio(model, points, competition))
