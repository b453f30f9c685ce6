"""The gradient of the loss in the kernels' locations and amplitudes, in one pass over the points.

Written out, not left to autodiff: autodiff divides by the square of the SoftMax sum, and this gives
NaN at points that no kernel sees.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from sparker.engine.config import Design
from sparker.engine.distances import Features, pull_back, rows, squared_distances, sum_of
from sparker.engine.ensemble import Ensemble, gaussian, parts
from sparker.engine.sample import AnyArray, TwoSample

Gradient = Callable[[Ensemble], tuple[Array, Array]]
"""Of a model: ``dL/dmu`` (M, d) and ``dL/da`` (M,)."""


def terms(
    a: AnyArray,
    squared: Sequence[Array],
    sigma: AnyArray,
    sample: TwoSample,
    design: Design,
) -> tuple[list[Array], list[Array]]:  # M x (N,) -> M x (N,), M x (N,)
    """What every point adds to ``dL/da_i``, and how strongly it pulls kernel i.

    ``df/da_i = p_i k_i``, and ``df/dmu_i = A_i(x) (x - mu_i)`` is radial with
    ``A_i = (df/dlog k_i) / sigma^2``; the pull leaves the width out.
    """
    k = gaussian(squared, sigma)
    p = design.competition.activation(k)
    f = sum_of(parts(a, k, p))
    slope = design.loss.slope(f, sample)
    d_a = [slope * (p_i * k_i) for p_i, k_i in zip(p, k, strict=True)]
    return d_a, [slope * response for response in design.competition.response(a, k, p, f)]


def gradient(
    model: Ensemble, sample: TwoSample, features: Features, design: Design
) -> tuple[Array, Array]:  # (M, d), (M,)
    """``dL/dmu`` and ``dL/da``."""
    squared = squared_distances(*features, model.mu, design.precision)
    d_a, pull = terms(model.a, squared, model.sigma, sample, design)
    d_mu = pull_back(pull, features.x, model.mu, design.precision) / model.sigma**2
    return d_mu, jnp.stack([jnp.sum(each) for each in d_a])


ROWS_AT_ONCE = 512
"""Rows of a block in ``in_blocks``."""


def in_blocks(sample: TwoSample, features: Features, design: Design) -> Gradient:
    """The same as a function of the model, for few features on a CPU: some rows at a time.

    Intermediate values then stay in the caches, which is twice as fast.
    """
    n_rows = features.x.shape[1]
    n_blocks = -(-n_rows // ROWS_AT_ONCE)

    def blocks(row: AnyArray) -> Array:
        return jnp.pad(row, (0, n_blocks * ROWS_AT_ONCE - n_rows)).reshape(n_blocks, -1)

    # Feature by feature: each feature is then read from contiguous memory.
    columns = [blocks(x_j) for x_j in rows(features.x)]
    weights = [blocks(weight) for weight in sample[1:]]

    def of(model: Ensemble) -> tuple[Array, Array]:
        def add(
            total: tuple[Array, Array], block: tuple[list[Array], list[Array]]
        ) -> tuple[tuple[Array, Array], None]:
            columns, (reference, data) = block
            x = jnp.stack(columns)
            some = TwoSample(x.T, reference, data)
            part = gradient(model, some, Features(x, jnp.zeros_like(data)), design)
            return (total[0] + part[0], total[1] + part[1]), None

        nothing = jnp.zeros_like(model.mu), jnp.zeros_like(model.a)
        return jax.lax.scan(add, nothing, (columns, weights))[0]

    return of
