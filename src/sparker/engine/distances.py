"""Squared distances between points and kernels, and the pull-back onto the kernels.

Two forms of the same mathematics, chosen by the number of features alone:

* few features: sum the squared differences, feature by feature. Nothing is lost to
  cancellation, and the compiler fuses it into the kernels.
* many features: ``|x|^2 - 2 x.mu + |mu|^2``. The middle term is one matrix product, which for a
  batch of toys on a shared pool is as wide as all their kernels together.

The kernel axis is a Python sequence, not an array axis: there are only a few kernels, and written
out one by one they are fused into a single pass over the points. For the same reason points come
feature by feature, (d, N): each feature is then a contiguous row.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine.sample import AnyArray

MAX_DIRECT_FEATURES = 4
"""Up to here the squared differences are summed feature by feature; past it products are faster."""


class Features(NamedTuple):
    """The points as training reads them: feature by feature, with their squared norms."""

    x: Array  # (d, N)
    norms: Array  # (N,)


def features_of(points: AnyArray) -> Features:  # (N, d)
    """Lay points out for training."""
    x = jnp.asarray(points).T
    return Features(x, jnp.sum(x**2, 0))  # norms that the product form needs, computed once


def squared_distances(
    features: Array, norms: Array, mu: AnyArray, precision: jax.lax.Precision
) -> list[Array]:  # (d, N), (N,), (M, d) -> M x (N,)
    """|x - mu_i|^2 for every kernel i."""
    if len(features) <= MAX_DIRECT_FEATURES:
        columns = rows(features)
        return [
            sum_of((x_j - mu_ij) ** 2 for x_j, mu_ij in zip(columns, rows(mu_i), strict=True))
            for mu_i in rows(mu)
        ]
    products = rows(jnp.matmul(mu, features, precision=precision))  # M x (N,)
    kernel_norms = rows(jnp.sum(mu**2, -1))
    # Rounding can push the distance of a point to itself below zero.
    return [
        jnp.maximum(norms - 2 * product + norm, 0)
        for product, norm in zip(products, kernel_norms, strict=True)
    ]


def distance_table(
    features: Array, norms: Array, centres: Array, precision: jax.lax.Precision
) -> Array:  # (d, N), (N,), (C, d) -> (C, N)
    """|x - c|^2 of every point to every one of many centres, as one array."""
    if len(features) <= MAX_DIRECT_FEATURES:
        return sum_of(
            (x_j[None, :] - c_j[:, None]) ** 2
            for x_j, c_j in zip(rows(features), rows(centres.T), strict=True)
        )
    product = jnp.matmul(centres, features, precision=precision)
    return jnp.maximum(norms - 2 * product + jnp.sum(centres**2, -1)[:, None], 0)


BLOCK_VALUES = 2**18
"""Differences that are squared at a time: they stay in the caches."""


def squared_differences(
    points: np.ndarray, mu: np.ndarray, unit: float
) -> np.ndarray:  # (N, d), (M, d) -> (M, N)
    """|x - mu_i|^2 in a unit of length, by differences for any number of features.

    Slower than products, but without cancellation. With NumPy, for rows that are used only once.
    """
    squared = np.empty((len(mu), len(points)), np.result_type(points, mu))
    size = max(1, BLOCK_VALUES // points.shape[1])
    for start in range(0, len(points), size):
        for i, mu_i in enumerate(mu):
            away = (points[start : start + size] - mu_i) / squared.dtype.type(unit)
            squared[i, start : start + size] = np.einsum("ij,ij->i", away, away)
    return squared


def pull_back(
    weights: Sequence[Array], features: Array, mu: AnyArray, precision: jax.lax.Precision
) -> Array:  # M x (N,), (d, N), (M, d) -> (M, d)
    """sum_x w_i(x) (x - mu_i) for every kernel i: how the points, so weighted, pull it."""
    if len(features) <= MAX_DIRECT_FEATURES:
        columns = rows(features)
        return jnp.stack(
            [
                jnp.stack(
                    [jnp.sum(w * (x_j - m)) for x_j, m in zip(columns, rows(mu_i), strict=True)]
                )
                for w, mu_i in zip(weights, rows(mu), strict=True)
            ]
        )
    stacked = jnp.stack(list(weights))  # (M, N)
    towards = jnp.matmul(stacked, features.T, precision=precision)
    return towards - mu * jnp.sum(stacked, -1, keepdims=True)


def power_of_two_near(length: float) -> float:
    """A unit of length to measure in: dividing by it is exact."""
    return 2.0 ** round(math.log2(length))


def rows(array: AnyArray) -> list[Array]:
    """The entries along the first axis as a list, so that a loop over them is unrolled."""
    return [jnp.asarray(array[i]) for i in range(len(array))]


def sum_of(terms: Iterable[Array]) -> Array:
    """The sum of a few arrays, written out term by term."""
    first, *rest = terms
    for term in rest:
        first = first + term
    return first
