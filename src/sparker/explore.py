"""Exploration: at a new width, look everywhere before training, and place idle kernels.

Training moves kernels downhill and finds what is near. A few events alone in an empty corner are
near to nothing. So before training at a width, data points from all over the sample are *scanned*:
for each, how many events a kernel there would see and how many were expected. What the scan finds
serves twice: kernels that explain nothing move to the candidates that would explain most, and the
strongest candidate, judged in three ways, is evidence of its own (``EVIDENCE``).

All of it happens in every toy as it does in the data.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.design import Design
from sparker.distances import Features, distance_table, sum_of
from sparker.ensemble import Ensemble, kernel_values, parts
from sparker.losses import statistic
from sparker.sample import AnyArray, TwoSample

EVIDENCE = ("lonely", "bump", "shape")
"""What a scan says of a width, each the maximum over all candidates:

* lonely: twice the log-likelihood gain of one kernel whose amplitude may go up to MOST_LONELY: a
  few events far from any reference outweigh everything else.
* bump: the squared z-score of one kernel's amplitude.
* shape: the chi-squared of two kernels at one place, the second twice as wide: a region that has
  become narrower, wider or hollow without gaining events.
"""

MOST_LONELY = 20.0
MOST_DATA = 4096
"""Data points that candidates are chosen from: all of them, up to here."""

CROWD = 512
"""How many points stand for all when the crowd around each is estimated."""

LEAST_INDEPENDENT = 1e-3
"""Two kernels of a shape count as different down to this part of their information; wider than the
whole sample they are the same function, and the rest is rounding."""

APART = 2
"""Widths between kernels that are placed at once: nearer ones would see the same events."""

BLOCK = 2**18
"""Kernel values of candidates that a toy holds at once."""


class Scan(NamedTuple):
    """What one kernel of amplitude zero at each of C candidates would see."""

    data: Array  # (C,) data events
    tilted: Array  # (C,) events expected by the present model
    evidence: Array  # (3,) see EVIDENCE


class Field(NamedTuple):
    """Data points to choose candidates from, and a crowd of points that stands for all."""

    rows: Array  # (S,) indices of data points
    is_data: Array  # (S,) not so for what fills up where there are fewer
    crowd: Features  # of P points
    present: Array  # (P,) not so for what fills up
    in_crowd: Array  # (S,) whether a data point is one of them
    each: Array  # () how many points one of the crowd stands for


def survey(key: Array, sample: TwoSample, features: Features) -> Field:
    """Once for a fit: all data points up to MOST_DATA, and a random crowd."""
    data, reference = jnp.asarray(sample.data_weight), jnp.asarray(sample.reference_weight)
    is_data, is_there = data > 0, (data > 0) | (reference > 0)
    # Integers, so that every device and precision draws the same points.
    tickets = (jax.random.bits(key, (2, len(data)), jnp.uint32) >> 1).astype(jnp.int32)
    _, rows = jax.lax.top_k(jnp.where(is_data, tickets[0], -1), min(MOST_DATA, len(data)))
    _, crowd = jax.lax.top_k(jnp.where(is_there, tickets[1], -1), min(CROWD, len(data)))
    there = is_there[crowd]
    each = jnp.sum(is_there) / jnp.maximum(jnp.sum(there), 1)
    dtype = features.x.dtype
    return Field(
        rows,
        is_data[rows],
        Features(features.x[:, crowd], features.norms[crowd]),
        there.astype(dtype),
        jnp.zeros(len(data), dtype).at[crowd].set(1)[rows],
        each.astype(dtype),
    )


def choose(
    key: Array, field: Field, features: Features, sigma: Array, design: Design
) -> tuple[Array, Array]:  # (C, d), (C,)
    """Candidates at this width, and whether each is one: where data are few, the rest fills up.

    Distinct data points, the rather the fewer others are around. A point among hundreds is
    represented by any of them, a lonely one only by itself. So points are drawn with a probability
    that falls with the number of points under a kernel there.
    """
    points = features.x[:, field.rows].T

    def count(part: Array) -> Array:  # (b, d) -> (b,)
        table = distance_table(*field.crowd, part, design.precision)
        return jnp.exp(table * (-0.5 / sigma**2)) @ field.present

    n_crowd = len(field.present)
    around = jax.lax.map(count, _in_blocks(points, n_crowd)).reshape(-1)[: len(points)]
    others = jnp.maximum(around - field.in_crowd, 0) * field.each
    bits = jax.random.bits(key, others.shape, jnp.uint32)
    uniform = (bits >> 8).astype(others.dtype) * 2.0**-24 + 2.0**-25
    # A race in which the time to arrive is exponential, of a mean that grows with the crowd.
    arrival = jnp.where(field.is_data, -jnp.log(uniform) * (1 + others), jnp.inf)
    time, winners = jax.lax.top_k(-arrival, min(design.n_candidates, len(points)))
    return points[winners], jnp.isfinite(time)


def scan(
    centres: Array,  # (C, d)
    is_one: Array,  # (C,) whether this is a candidate; the rest fills up
    sample: TwoSample,
    features: Features,
    sigma: Array,
    tilt: Array,  # (N,) e^f of the present model
    design: Design,
) -> Scan:
    """Look at every candidate."""
    data, reference = jnp.asarray(sample.data_weight), jnp.asarray(sample.reference_weight)
    n_points = features.x.shape[1]
    is_there = ((data > 0) | (reference > 0)).astype(data.dtype)[:, None]
    excess_weight = (data - reference)[:, None]
    seen = jnp.stack([data, reference, reference * tilt], -1)  # (N, 3)

    def block(part: Array) -> Array:  # (b, d) -> (b, 7)
        table = distance_table(features.x, features.norms, part, design.precision)
        wide = jnp.exp(table * (-0.125 / sigma**2))  # the kernel of twice the width
        k = (wide * wide) ** 2
        # Products with vectors: plain sums over rows are slower, unvectorised on CPUs.
        return jnp.concatenate(
            [
                jnp.matmul(values, vectors, precision=jax.lax.Precision.HIGHEST)
                for values, vectors in (
                    (k, seen),
                    (wide, excess_weight),
                    (k * k, is_there),
                    (k * wide, is_there),
                    (wide * wide, is_there),
                )
            ],
            -1,
        )

    sums = jax.lax.map(block, _in_blocks(centres, n_points))
    kd, kr, tilted, wide_excess, *squares = sums.reshape(-1, sums.shape[-1])[: len(centres)].T
    total = jnp.sum(reference)
    # The weight of a reference event: by as much its own count varies beside that of the data.
    weight = jnp.sum(reference**2) / jnp.where(total > 0, total, 1)
    each = jnp.where(weight > 0, weight, 1)
    q11, q12, q22 = (each * (square + np.finfo(kd.dtype).tiny) for square in squares)
    excess = kd - kr
    independent = jnp.maximum(q11 * q22 - q12**2, LEAST_INDEPENDENT * q11 * q22)
    shape = excess**2 * q22 - 2 * excess * wide_excess * q12 + wide_excess**2 * q11
    found = jnp.stack([gain(kd, kr, MOST_LONELY)[0], excess**2 / q11, shape / independent])
    return Scan(kd, tilted, jnp.max(jnp.where(is_one, found, 0), 1))


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
    sample: TwoSample,
    features: Features,
    clip: AnyArray,
    design: Design,
) -> tuple[Array, Array]:  # mu (M, d), a (M,)
    """Move the kernels whose loss would cost less than a candidate would gain.

    The weakest kernel is compared with the best candidate, the next with the best one that is not
    near the first, and so on.
    """
    mu, a, sigma = (jnp.asarray(array) for array in model)
    k = kernel_values(model, *features, design.precision)

    def t_without(i: Array) -> Array:
        # A kernel that is zero everywhere has no share in any point.
        others = [jnp.where(i == j, 0, k_j) for j, k_j in enumerate(k)]
        return statistic(sum_of(parts(a, others, design.competition.share(others))), sample)

    t = jax.lax.map(t_without, jnp.arange(-1, len(k)))  # the first without none
    worth = t[0] - t[1:]
    gained, amplitude = gain(found.data, found.tilted, clip)
    norms = jnp.sum(centres**2, -1)

    def pick(left: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        best = jnp.argmax(left)
        product = jnp.matmul(centres, centres[best], precision=jax.lax.Precision.HIGHEST)
        near = norms + norms[best] - 2 * product < (APART * sigma) ** 2
        return jnp.where(near, -jnp.inf, left).at[best].set(-jnp.inf), (best, left[best])

    left = jnp.where(is_one, gained, -jnp.inf)
    _, (best_first, offered) = jax.lax.scan(pick, left, None, length=len(k))
    weakest_first = jnp.argsort(worth)
    better = (offered > worth[weakest_first]) & (offered > 0)
    new_mu = jnp.where(better[:, None], centres[best_first], mu[weakest_first])
    new_a = jnp.where(better, amplitude[best_first], a[weakest_first])
    return mu.at[weakest_first].set(new_mu), a.at[weakest_first].set(new_a)


def _in_blocks(centres: Array, n_points: int) -> Array:  # (C, d) -> (blocks, b, d)
    """Centres in blocks of one size, the last one filled up with zeros."""
    size = max(1, min(len(centres), BLOCK // n_points))
    missing = -len(centres) % size
    return jnp.pad(centres, [(0, missing), (0, 0)]).reshape(-1, size, centres.shape[1])
