"""Exact MMD where all experiments draw on the same points: one Gram matrix serves all of them."""

import jax
import jax.numpy as jnp
import numpy as np
from experiments.power.problems import Problem
from jax import Array

from sparker.widths import distance_range

N_BANDWIDTHS = 5


@jax.jit
def _squared(points: Array, weights: Array, sigma: Array) -> Array:  # (N, d), (B, N) -> (B,)
    norms = jnp.sum(points**2, 1)
    product = jnp.matmul(points, points.T, precision=jax.lax.Precision.HIGHEST)
    gram = jnp.exp(-0.5 * jnp.maximum(norms[:, None] + norms - 2 * product, 0) / sigma**2)
    return jnp.sum((weights @ gram) * weights, 1)


def statistic(problem: Problem, signal: str | None, numbers: range) -> np.ndarray:
    """The squared MMD at several bandwidths, (n, bandwidths, 1)."""
    assert problem.rows is not None
    assert problem.points is not None
    one = problem.draw(signal, numbers[:1])
    share = one.data_weight[0] / one.data_weight.sum() - (
        one.reference_weight[0] / one.reference_weight.sum()
    )
    weights = np.zeros((len(numbers), len(problem.points)), np.float32)
    for row, number in zip(weights, numbers, strict=True):
        row[problem.rows(signal, number)] = share
    low, high = distance_range(problem.basis)
    points, labels = jnp.asarray(problem.points), jnp.asarray(weights)
    widths = np.geomspace(low / 2, high, N_BANDWIDTHS)
    return np.stack([np.asarray(_squared(points, labels, width)) for width in widths], 1)[..., None]
