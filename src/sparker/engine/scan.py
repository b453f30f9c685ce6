"""Exploration: at a new width, look everywhere before training, and place idle kernels.

Training moves kernels downhill, so it finds what is near them. A few events in an empty corner are
near to no kernel. So before training at a width, points from all over the sample are *scanned*: for
each, how many events a kernel there would see and how many were expected. The scan is used twice.
Kernels that explain nothing move to the points that would explain most. And the scan as a whole is
judged in three ways, each of which is a statistic of its own (``FAMILIES``).

All of it happens in every toy as it does in the data.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import logsumexp

from sparker.engine.candidates import in_blocks
from sparker.engine.config import Design
from sparker.engine.distances import Features, distance_table, features_of, sum_of
from sparker.engine.ensemble import Ensemble, kernel_values, parts
from sparker.engine.losses import MAX_LOG_RATIO, statistic
from sparker.engine.sample import AnyArray, TwoSample

FAMILIES = ("isolated events", "excess scan", "shape scan")
"""The statistics of a scan at one width. Each is twice the log of a likelihood ratio that is
averaged over all points. One place that is far out makes it large, and so do many places that stand
out a little. The likelihood ratios are those of

* isolated: one kernel whose amplitude may go up to MAX_ISOLATED, so that a few events far from any
  reference outweigh everything else.
* bump: one kernel whose amplitude is taken to be normally distributed, as it is where there are
  many events.
* shape: two kernels at one place, likewise, the second wider by the square root of two. It sees a
  region that has become narrower, wider or hollow without gaining events.
"""

MAX_ISOLATED = 20.0


MIN_INDEPENDENT = 1e-3
"""Below this share of independent information, the two kernels of a shape count as having this
share: where they are wider than the whole sample they are the same function, and what is left of
their difference is rounding."""


APART = 2
"""Widths between kernels that are placed together: nearer ones would see the same events."""


class Scan(NamedTuple):
    """What one kernel of amplitude zero at each of C candidates would see."""

    data: Array  # (C,) data events
    tilted: Array  # (C,) events expected by the present model
    chance: Array  # () what the best of all places gains by chance
    statistics: Array  # (3,) see FAMILIES
    t: Array  # (M + 1,) the statistic of the present model, and without each of its kernels


def scan(
    model: Ensemble,
    centres: Array,  # (C, d)
    log_weight: Array,
    sample: TwoSample,
    features: Features,
    design: Design,
    block: int,
) -> Scan:
    """Look at ``block`` candidates at a time.

    ``log_weight`` (C,) says how many points a candidate stands for; minus infinity for none.
    """
    k = kernel_values(model, *features, design.precision)
    f = sum_of(parts(model.a, k, design.competition.activation(k)))
    tilt = jnp.exp(jnp.minimum(f, MAX_LOG_RATIO))
    data, reference = jnp.asarray(sample.data_weight), jnp.asarray(sample.reference_weight)
    is_there = ((data > 0) | (reference > 0)).astype(data.dtype)
    vectors = jnp.stack([data, reference, reference * tilt, is_there], -1)  # (N, 4)

    def sums(part: Array) -> Array:  # (b, d) -> (b, 7)
        table = distance_table(features.x, features.norms, part, design.precision)
        wide = jnp.exp(table * (-0.25 / model.sigma**2))  # the kernel wider by the root of two
        k = wide * wide
        # Products with vectors: plain sums over rows are slower, unvectorised on CPUs, and where
        # toys share their points this is one product for all of them.
        return jnp.concatenate(
            [
                jnp.matmul(values, vectors, precision=jax.lax.Precision.HIGHEST)
                for values, vectors in (
                    (wide, (data - reference)[:, None]),
                    (k, vectors),
                    (k * wide, is_there[:, None]),
                    (k * k, is_there[:, None]),
                )
            ],
            -1,
        )

    def t_without(i: Array) -> Array:
        # A kernel that is zero everywhere has no part in any point: it is left out.
        others = [jnp.where(i == j, 0, k_j) for j, k_j in enumerate(k)]
        return statistic(
            sum_of(parts(model.a, others, design.competition.activation(others))), sample
        )

    found = jax.lax.map(sums, in_blocks(centres, block)).reshape(-1, 7)[: len(centres)]
    t = jax.lax.map(t_without, jnp.arange(-1, len(k)))  # the first leaves none out
    wide_excess, kd, kr, tilted, under, q12, q11 = found.T
    # The weight of a reference event: the variance of the reference's count beside the data's.
    total = jnp.sum(reference)
    weight = jnp.sum(reference**2) / jnp.where(total > 0, total, 1)
    each = jnp.where(weight > 0, weight, 1)
    q11, q12, q22 = (each * (square + np.finfo(kd.dtype).tiny) for square in (q11, q12, under))
    excess = kd - kr
    independent = jnp.maximum(q11 * q22 - q12**2, MIN_INDEPENDENT * q11 * q22)
    shape = excess**2 * q22 - 2 * excess * wide_excess * q12 + wide_excess**2 * q11
    ratios = jnp.stack([gain(kd, kr, MAX_ISOLATED)[0], excess**2 / q11, shape / independent])
    # Points under one kernel are one place. The largest of n squared normal numbers is 2 log n.
    n_places = jnp.sum(jnp.exp(log_weight) / jnp.maximum(under, 1))
    chance = 2 * jnp.log(jnp.maximum(n_places, 1))
    # Where there is no candidate there may be no point at all, and ratios are 0 / 0.
    is_one = log_weight > -jnp.inf
    total_ratio = logsumexp(jnp.where(is_one, ratios / 2 + log_weight, -jnp.inf), 1)
    mean_ratio = total_ratio - logsumexp(log_weight)
    return Scan(kd, tilted, chance, jnp.where(jnp.any(is_one), 2 * mean_ratio, 0), t)


def gain(seen: Array, expected: Array, clip: AnyArray | float) -> tuple[Array, Array]:
    """Twice the log-likelihood gained by one kernel, if it were a box, and its amplitude."""
    least = np.finfo(seen.dtype).tiny ** 0.25
    a = jnp.clip(jnp.log((seen + least) / (expected + least)), -clip, clip)
    return 2 * (a * seen - jnp.expm1(a) * expected), a


def place(
    model: Ensemble,
    found: Scan,
    centres: Array,  # (C, d)
    is_one: Array,  # (C,)
    clip: AnyArray,
) -> tuple[Array, Array]:  # mu (M, d), a (M,)
    """Move kernels that are worth less than a candidate would gain, if that is beyond chance.

    The weakest kernel is compared with the best candidate, the next kernel with the best candidate
    that is not near the first, and so on. A place is taken if a kernel near it is worth at least
    half of what there is to gain: where that kernel's amplitude is at the clip, a second one seems
    to gain as much again, but the two would only share the same events.
    """
    mu, a, sigma = (jnp.asarray(array) for array in model)
    worth = found.t[0] - found.t[1:]
    gained, amplitude = gain(found.data, found.tilted, clip)
    places = features_of(centres)

    def near(some: Features, centres: Array) -> Array:  # (d, N), (C, d) -> (C, N)
        squared = distance_table(*some, centres, jax.lax.Precision.HIGHEST)
        return squared < (APART * sigma) ** 2

    def pick(left: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        best = jnp.argmax(left)
        beside = near(places, centres[best][None])[0]
        return jnp.where(beside, -jnp.inf, left).at[best].set(-jnp.inf), (best, left[best])

    taken = near(features_of(mu), centres) & (2 * worth >= gained[:, None])  # (C, M)
    free = ~jnp.any(taken, -1)
    left = jnp.where(is_one & free, gained, -jnp.inf)
    _, (best_first, offered) = jax.lax.scan(pick, left, None, length=len(a))
    weakest_first = jnp.argsort(worth)
    better = (offered > worth[weakest_first]) & (offered > found.chance)
    new_mu = jnp.where(better[:, None], centres[best_first], mu[weakest_first])
    new_a = jnp.where(better, amplitude[best_first], a[weakest_first])
    return mu.at[weakest_first].set(new_mu), a.at[weakest_first].set(new_a)
