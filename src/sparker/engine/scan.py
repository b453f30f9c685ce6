"""Exploration: at a new width, look everywhere before training, and place idle kernels.

Training moves kernels downhill and finds what is near. A few events alone in an empty corner are
near to nothing. So before training at a width, points from all over the sample are *scanned*: for
each, how many events a kernel there would see and how many were expected. What the scan finds
serves twice: kernels that explain nothing move to the candidates that would explain most, and the
scan as a whole, judged in three ways, is evidence of its own (``FAMILIES``).

All of it happens in every toy as it does in the data.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.random import threefry_2x32
from jax.nn import logsumexp

from sparker.engine.config import Design
from sparker.engine.distances import Features, distance_table, features_of, sum_of
from sparker.engine.ensemble import Ensemble, kernel_values, parts
from sparker.engine.losses import MAX_LOG_RATIO, statistic
from sparker.engine.sample import AnyArray, TwoSample

FAMILIES = ("isolated", "bump", "shape")
"""What a scan says of a width: twice the log of a likelihood ratio, averaged over all points that
the candidates stand for. One place that is far out makes it large, and so do many that stand out a
little. The ratios are those of

* isolated: one kernel whose amplitude may go up to MAX_ISOLATED: a few events far from any
  reference outweigh everything else.
* bump: one kernel, where there are enough events for its amplitude to be normally distributed.
* shape: two kernels at one place, likewise, the second wider by the square root of two: a region
  that has become narrower, wider or hollow without gaining events.
"""

MAX_ISOLATED = 20.0

SHARED = 4
"""Where toys share their points, so many times more candidates: kernel values serve all toys."""

MAX_DATA = 4096
"""Where they do not, candidates come from so many of a toy's data points."""

LANDMARKS = 512, 2048
"""How many points, at least and at most, stand for all when densities are estimated."""

LANDMARK_PAIRS = 2**26
"""More of them while there are no more pairs of a point and one of the landmarks."""

MIN_INDEPENDENT = 1e-3
"""Two kernels of a shape count as different down to this part of their information; wider than the
whole sample they are the same function, and the rest is rounding."""

NONE = -1
"""Stands for a row where there are fewer candidates than places."""

APART = 2
"""Widths between kernels that are placed at once: nearer ones would see the same events."""


class Candidates(NamedTuple):
    """Where to look at each of e widths."""

    rows: AnyArray  # (e, C) or NONE
    log_weight: AnyArray  # (e, C) the log of how many points each stands for


class Seen(NamedTuple):
    """What a look needs of the rows: sums over them, so that rows may come in blocks."""

    at: Array  # (C, 7) what kernels at the candidates see
    reference: Array  # (2,) the reference weights and their squares
    t: Array  # (M + 1,) the statistic of the present model, and without each of its kernels


class Scan(NamedTuple):
    """What one kernel of amplitude zero at each of C candidates would see."""

    data: Array  # (C,) data events
    tilted: Array  # (C,) events expected by the present model
    chance: Array  # () what the best of all places gains by chance
    statistics: Array  # (3,) see FAMILIES


def own_candidates(
    key: Array, sample: TwoSample, sigma: Array, design: Design, block: int
) -> Candidates:  # (e,) -> (e, C)
    """Where to look, at each width, in a toy with points of its own: at some of its data."""
    features = features_of(sample.points)
    data, reference = jnp.asarray(sample.data_weight), jnp.asarray(sample.reference_weight)
    n_points = len(data)
    some, other = jax.random.split(key)
    rows = draw(some, data > 0, min(MAX_DATA, n_points))
    landmarks = draw(other, (data > 0) | (reference > 0), min(LANDMARKS[0], n_points))
    n_candidates = min(design.n_candidates, len(rows))
    return _choose(
        key, features, rows, data[rows] > 0, landmarks, sigma, n_candidates, design, block
    )


def shared_candidates(
    key: Array, points: Array, sigma: Array, design: Design, block: int
) -> Candidates:  # (N, d), (e,) -> (e, C)
    """Where to look, at each width, in all toys of a pool: it knows nothing of the labels."""
    n_points = len(points)
    n_landmarks = landmark_count(n_points)
    rows, there = jnp.arange(n_points), jnp.ones(n_points, bool)
    landmarks = draw(key, there, n_landmarks)
    n_candidates = min(SHARED * design.n_candidates, n_points)
    return _choose(
        key, features_of(points), rows, there, landmarks, sigma, n_candidates, design, block
    )


def landmark_count(n_points: int) -> int:
    """How many points stand for all of a pool."""
    return min(n_points, max(LANDMARKS[0], min(LANDMARKS[1], LANDMARK_PAIRS // n_points)))


def draw(key: Array, among: Array, n: int) -> Array:  # (N,) -> (n,)
    """Distinct random rows; where there are too few, others fill up."""
    return jax.lax.top_k(random_priorities(key, jnp.arange(len(among)), among), n)[1]


def random_priorities(key: Array, rows: Array, among: Array) -> Array:  # (N,), (N,) -> (N,)
    """A number for each row that may be drawn, -1 for the others: the largest ones win.

    Integers, so that every device and precision draws the same ones.
    """
    return jnp.where(among, (bits(key, rows) >> 1).astype(jnp.int32), -1)


def random_key(seed: int) -> Array:
    """A key of the kind that ``bits`` knows, whatever JAX was told to prefer."""
    return jax.random.key(seed, impl="threefry2x32")


def bits(key: Array, rows: Array) -> Array:  # (N,) -> (N,)
    """Random bits of these rows: those of ``jax.random.bits`` for all rows, of some of them."""
    counts = jnp.stack([jnp.zeros(rows.shape, jnp.uint32), rows.astype(jnp.uint32)])
    high, low = threefry_2x32(jax.random.key_data(key), counts)
    return high ^ low


def _choose(
    key: Array,
    features: Features,
    rows: Array,  # (S,) to choose from
    among: Array,  # (S,) not so for those that fill up
    landmarks: Array,  # (P,) rows that stand for all
    sigma: Array,  # (e,)
    n_candidates: int,
    design: Design,
    block: int,
) -> Candidates:
    """Distinct rows at each width, with a probability that falls with the local density.

    A point among hundreds is represented by any of them, an isolated one only by itself. So points
    are drawn with a probability that falls with the number of points under a kernel there, and each
    stands for one over that probability of them.
    """
    points = features.x[:, rows].T
    near = Features(features.x[:, landmarks], features.norms[landmarks])
    n_rows = features.x.shape[1]
    itself = jnp.zeros(n_rows, points.dtype).at[landmarks].set(1)[rows]
    n_wanted = min(n_candidates + 1, len(rows))
    at_once = block * n_rows // len(landmarks)

    def at_width(width: tuple[Array, Array]) -> Candidates:
        sigma, number = width
        around = count_around(points, near, itself, sigma, n_rows, design, at_once)
        turn = jax.random.fold_in(key, number)
        minus_time = -race_times(turn, jnp.arange(len(rows)), among, around)
        minus_time, order = jax.lax.top_k(minus_time, n_wanted)
        log_weight = inclusion_weights(minus_time, around[order], n_candidates)
        finished = jnp.isfinite(minus_time[:n_candidates])
        return Candidates(jnp.where(finished, rows[order[:n_candidates]], NONE), log_weight)

    return jax.lax.map(at_width, (sigma, jnp.arange(len(sigma))))


def count_around(
    points: Array,  # (S, d)
    landmarks: Features,  # of P points
    itself: Array,  # (S,) one for those of the landmarks
    sigma: Array,
    n_rows: int,
    design: Design,
    at_once: int,
) -> Array:  # (S,)
    """How many other rows are under a kernel at each point, estimated from the landmarks."""
    n_landmarks = landmarks.x.shape[1]

    def count(part: Array) -> Array:  # (b, d) -> (b,)
        table = distance_table(*landmarks, part, design.precision)
        return jnp.sum(jnp.exp(table * (-0.5 / sigma**2)), -1)

    blocks = _in_blocks(points, at_once)
    around = jax.lax.map(count, blocks).reshape(-1)[: len(points)]
    return jnp.maximum(around - itself, 0) * (n_rows / n_landmarks)


def race_times(key: Array, rows: Array, among: Array, around: Array) -> Array:  # (S,) -> (S,)
    """When each arrives in a race: an exponential time, of a mean that grows with the landmarks."""
    uniform = (bits(key, rows) >> 8).astype(around.dtype) * 2.0**-24 + 2.0**-25
    return jnp.where(among, -jnp.log(uniform) * (1 + around), jnp.inf)


def inclusion_weights(minus_time: Array, around: Array, n: int) -> Array:  # (n + 1,) or all -> (n,)
    """How many points each of the first n stands for, in logarithms.

    Given when the first loser arrives, each winner had a known chance to be there before.
    """
    end = -minus_time[-1] if len(minus_time) > n else jnp.inf
    return -jnp.log(-jnp.expm1(-end / (1 + around[:n])))


def look(
    model: Ensemble,
    centres: Array,  # (C, d)
    sample: TwoSample,
    features: Features,
    design: Design,
    block: int,
) -> Seen:
    """All that is summed over rows, ``block`` candidates at a time."""
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
        # A kernel that is zero everywhere has no share in any point.
        others = [jnp.where(i == j, 0, k_j) for j, k_j in enumerate(k)]
        return statistic(
            sum_of(parts(model.a, others, design.competition.activation(others))), sample
        )

    found = jax.lax.map(sums, _in_blocks(centres, block)).reshape(-1, 7)[: len(centres)]
    t = jax.lax.map(t_without, jnp.arange(-1, len(k)))  # the first without none
    return Seen(found, jnp.stack([jnp.sum(reference), jnp.sum(reference**2)]), t)


def scan(seen: Seen, log_weight: Array) -> Scan:
    """What to make of a look.

    ``log_weight`` (C,) says how many points a candidate stands for; minus infinity for none.
    """
    wide_excess, kd, kr, tilted, under, q12, q11 = seen.at.T
    total, total_square = seen.reference
    # The weight of a reference event: by as much its own count varies beside that of the data.
    weight = total_square / jnp.where(total > 0, total, 1)
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
    return Scan(kd, tilted, chance, jnp.where(jnp.any(is_one), 2 * mean_ratio, 0))


def gain(seen: Array, expected: Array, clip: AnyArray | float) -> tuple[Array, Array]:
    """Twice the log-likelihood gained by one kernel, if it were a box, and its amplitude."""
    least = np.finfo(seen.dtype).tiny ** 0.25
    a = jnp.clip(jnp.log((seen + least) / (expected + least)), -clip, clip)
    return 2 * (a * seen - jnp.expm1(a) * expected), a


def place(
    model: Ensemble,
    found: Scan,
    t: Array,  # (M + 1,) of the model, and without each of its kernels
    centres: Array,  # (C, d)
    is_one: Array,  # (C,)
    clip: AnyArray,
) -> tuple[Array, Array]:  # mu (M, d), a (M,)
    """Move the kernels whose loss would cost less than a candidate would gain, beyond chance.

    The weakest kernel is compared with the best candidate, the next with the best one that is not
    near the first, and so on. A place that a kernel near it explains already, by half of what there
    is to gain or more, is taken: where that kernel's amplitude is at the clip, another one seems to
    gain as much again, but they would only share.
    """
    mu, a, sigma = (jnp.asarray(array) for array in model)
    worth = t[0] - t[1:]
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


def _in_blocks(centres: Array, size: int) -> Array:  # (C, d) -> (blocks, b, d)
    """Centres in blocks of one size, the last one filled up with zeros."""
    size = max(1, min(len(centres), size))
    missing = -len(centres) % size
    return jnp.pad(centres, [(0, missing), (0, 0)]).reshape(-1, size, centres.shape[1])
