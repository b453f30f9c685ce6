"""Where to look at a width: rows drawn with a probability that falls with the local density."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.random import threefry_2x32

from sparker.engine.config import Design
from sparker.engine.distances import Features, distance_table, features_of
from sparker.engine.sample import AnyArray, TwoSample

SHARED = 4
"""Times more candidates where toys share their points: one kernel value then serves all toys."""


MAX_DATA = 4096
"""Where toys do not share points, candidates are chosen among this many of a toy's data points."""


LANDMARKS = 512, 2048
"""How many points, at least and at most, stand for all when densities are estimated."""


LANDMARK_PAIRS = 2**26
"""Within these limits, as many landmarks as make this many pairs of a point and a landmark."""


NONE = -1
"""In place of a row number, where there are fewer candidates than room for them."""


class Candidates(NamedTuple):
    """Where to look at each of e widths."""

    rows: AnyArray  # (e, C) or NONE
    log_weight: AnyArray  # (e, C) the log of how many points each stands for


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
    n_landmarks = min(n_points, max(LANDMARKS[0], min(LANDMARKS[1], LANDMARK_PAIRS // n_points)))
    rows, there = jnp.arange(n_points), jnp.ones(n_points, bool)
    landmarks = draw(key, there, n_landmarks)
    n_candidates = min(SHARED * design.n_candidates, n_points)
    return _choose(
        key, features_of(points), rows, there, landmarks, sigma, n_candidates, design, block
    )


def draw(key: Array, among: Array, n: int) -> Array:  # (N,) -> (n,)
    """Distinct random rows among those that may be drawn; if they are too few, others are added.

    By integers, so that every device and precision draws the same ones.
    """
    priorities = (bits(key, len(among)) >> 1).astype(jnp.int32)
    return jax.lax.top_k(jnp.where(among, priorities, -1), n)[1]


def random_key(seed: int) -> Array:
    """A key of the kind that ``bits`` knows, whatever JAX was told to prefer."""
    return jax.random.key(seed, impl="threefry2x32")


def bits(key: Array, n: int) -> Array:  # (n,)
    """Random bits, the same for any setting of JAX."""
    counts = jnp.stack([jnp.zeros(n, jnp.uint32), jnp.arange(n, dtype=jnp.uint32)])
    high, low = threefry_2x32(jax.random.key_data(key), counts)
    return high ^ low


def _choose(
    key: Array,
    features: Features,
    rows: Array,  # (S,) to choose from
    among: Array,  # (S,) whether a row may be chosen, or only fills up
    landmarks: Array,  # (P,) rows that stand for all
    sigma: Array,  # (e,)
    n_candidates: int,
    design: Design,
    block: int,
) -> Candidates:
    """Distinct rows at each width, with a probability that falls with the local density.

    A point with many neighbours is represented by any of them, an isolated one only by itself. So
    points are drawn with a probability that falls with the number of points under a kernel there.
    A point of probability p stands for 1 / p points.
    """
    points = features.x[:, rows].T
    near = Features(features.x[:, landmarks], features.norms[landmarks])
    n_rows = features.x.shape[1]
    itself = jnp.zeros(n_rows, points.dtype).at[landmarks].set(1)[rows]
    n_wanted = min(n_candidates + 1, len(rows))
    at_once = block * n_rows // len(landmarks)

    def at_width(width: tuple[Array, Array]) -> Candidates:
        sigma, number = width

        def count(part: Array) -> Array:  # (b, d) -> (b,)
            table = distance_table(*near, part, design.precision)
            return jnp.sum(jnp.exp(table * (-0.5 / sigma**2)), -1)

        # How many other rows are under a kernel at each point, estimated from the landmarks.
        around = jax.lax.map(count, in_blocks(points, at_once)).reshape(-1)[: len(points)]
        around = jnp.maximum(around - itself, 0) * (n_rows / len(landmarks))
        # Random times, the earliest of which are drawn: exponential, of mean 1 + the rows around.
        random = bits(jax.random.fold_in(key, number), len(rows)) >> 8
        uniform = random.astype(around.dtype) * 2.0**-24 + 2.0**-25
        minus_time = jnp.where(among, jnp.log(uniform) * (1 + around), -jnp.inf)
        minus_time, order = jax.lax.top_k(minus_time, n_wanted)
        # Given the time of the first row that is not drawn, the probability that a row is earlier
        # than that, and so drawn, is known.
        end = -minus_time[-1] if n_wanted > n_candidates else jnp.inf
        log_weight = -jnp.log(-jnp.expm1(-end / (1 + around[order][:n_candidates])))
        finished = jnp.isfinite(minus_time[:n_candidates])
        return Candidates(jnp.where(finished, rows[order[:n_candidates]], NONE), log_weight)

    return jax.lax.map(at_width, (sigma, jnp.arange(len(sigma))))


def in_blocks(centres: Array, size: int) -> Array:  # (C, d) -> (blocks, b, d)
    """Centres in blocks of one size, the last one filled up with zeros."""
    size = max(1, min(len(centres), size))
    missing = -len(centres) % size
    return jnp.pad(centres, [(0, missing), (0, 0)]).reshape(-1, size, centres.shape[1])
