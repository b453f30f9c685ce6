"""Gaussian kernels with centres among the points: bandwidths, values, Nystrom's approximation.

With centres c_1 ... c_M, Nystrom's kernel is ``k(x, C) K^-1 k(C, y)`` where K is the centres' own
kernel matrix. It is the inner product of the features ``phi(x) = L^-1 k(C, x)`` with K = L L^T, and
is exact where x or y is a centre.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist

from sparker.engine.distances import distance_table, features_of
from sparker.engine.sample import as_points

MAX_POINTS = 2000
"""Quantiles of distances are taken on so many points."""

JITTER = 1e-9
"""Added to the diagonal of the centres' kernel matrix, whose smallest eigenvalues are zero up to
rounding; no value of the approximate kernel changes by more."""

EXACT = jax.lax.Precision.HIGHEST
"""Of products: short distances and small differences of means would drown in TF32."""


def distance_quantiles(points: np.ndarray, shares: ArrayLike) -> np.ndarray:
    """Quantiles of the distances between points, blind to labels; repeated points left out."""
    x = as_points("points", points)
    if len(x) > MAX_POINTS:
        x = x[np.random.default_rng(0).choice(len(x), MAX_POINTS, replace=False)]
    distances = pdist(x - x.mean(0, dtype=np.float64))
    apart = distances[distances > 0]
    if not len(apart):
        raise ValueError("all points are the same; bandwidths need points that differ")
    return np.quantile(apart, np.asarray(shares, np.float64))


def squared_distances(points: Array, centres: Array) -> Array:  # (N, d), (M, d) -> (M, N)
    """|x - c|^2 of every point to every centre."""
    return distance_table(*features_of(points), centres, EXACT)


def gaussian(squared: Array, width: Array) -> Array:
    """``exp(-|x - c|^2 / (2 width^2))``."""
    return jnp.exp(squared * (-0.5 / width**2).astype(squared.dtype))


def choose_centres(key: Array, used: Array, n_centres: int) -> Array:  # (N,) -> (M,) rows
    """Rows at random, those that are used first; fewer where there are fewer rows.

    Random whole numbers are ordered, so that the device does not matter.
    """
    lots = jax.random.bits(key, used.shape, jnp.uint32)
    return jnp.lexsort((lots, ~used))[: min(n_centres, len(used))]


def whitening(
    centres: Array, real: Array, width: Array, jitter: float = JITTER
) -> Array:  # (M, d), (M,) -> (M, M)
    """``L^-1``, in double precision; a centre that is not real is on its own."""
    both = real[:, None] & real
    kernel = jnp.where(both, gaussian(squared_distances(centres, centres), width), 0)
    # Products leave a centre at some distance from itself.
    kernel = jnp.where(jnp.eye(len(kernel), dtype=bool), 1 + jitter, kernel)
    factor = jnp.linalg.cholesky(kernel)
    return solve_triangular(factor, jnp.eye(len(kernel)), lower=True)


def to_centres(points: Array, centres: Array, real: Array, width: Array) -> Array:  # -> (M, N)
    """The kernel of every point and every centre, zero for centres that are not real."""
    return jnp.where(real[:, None], gaussian(squared_distances(points, centres), width), 0)


def in_blocks(array: Array, block: int) -> Array:  # (..., N) -> (blocks, ..., block)
    """The last axis cut into blocks, the last one filled up with zeros."""
    missing = -array.shape[-1] % block
    padded = jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])
    return jnp.moveaxis(padded.reshape(*array.shape[:-1], -1, block), -2, 0)


def effective_size(weight: Array) -> Array:  # (B, N) -> (B,)
    """How many rows of equal weight would fluctuate as much, ``(sum w)^2 / sum w^2``."""
    return jnp.sum(weight, -1) ** 2 / jnp.sum(weight**2, -1)
