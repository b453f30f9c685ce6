"""Neighbours: whose nearest rows are data, and whether the rows without near ones are.

Kernels of one width see a crowd of many rows where data are dense, and nothing where rows are far
apart. A neighbourhood of k rows is as wide as it must be to hold them. Two families are read off.

* neighbours: for each row, the data's share of it and its k nearest rows; the likelihood ratio of a
  share of their own is averaged over all rows. A cluster makes it large, however sparse it is, and
  so does a hole.
* lonely: rows in order of the distance to their k-th neighbour; how many of the 1, 2, 3, 4, 6, 8
  ... loneliest are data, and the likelihood ratio of that share, averaged over these numbers. It
  counts: one lonely row proves nothing in a pool where some row must be the loneliest.

Schilling, JASA 81, 799 (1986) and Henze, Ann. Stat. 16, 772 (1988) count neighbours of the same
sample over all rows; Loftsgaarden and Quesenberry's estimate of a density is what the second ranks.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine.compiled import COMPILER_OPTIONS
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches, Room, each_pool
from sparker.statistics.contract import Reading, Statistic
from sparker.statistics.nearest import MAX_FOR_TREE, nearest
from sparker.statistics.surprise import Counts, averaged, counts_of, surprise

CROWDS = (4, 8, 16, 32, 64)
"""Neighbours that are counted."""

LONELY = (1, 4, 16)
"""The neighbours whose distance says how lonely a row is."""

MAX_SHARED = 2**14
"""Rows of a pool that are looked at, random ones if it has more."""

MAX_OWN = 2**12
"""The same where every toy has rows of its own, and so many features that its table takes long."""


@dataclass(frozen=True, kw_only=True)
class Neighbours(Statistic):
    """Crowds of data among the nearest rows, and data among the loneliest."""

    name: ClassVar[str] = "neighbours"

    def prepare(
        self, points: np.ndarray, n_rows: int, transform: Transform | None = None
    ) -> PreparedBatches:
        """Nothing depends on the points."""
        return PreparedBatches(
            settings={"neighbours": CROWDS, "lonely": LONELY, "most": [MAX_SHARED, MAX_OWN]},
            start=lambda seed, chunk: each_pool(_placed, _evaluated, seed, chunk),
            room=_room,
            readings=(
                *(Reading("neighbours", float(k)) for k in CROWDS),
                *(Reading("lonely", float(k)) for k in LONELY),
            ),
        )


class _Placed(NamedTuple):
    """What is known of the rows that are looked at, before anyone knows which are data."""

    queries: Array  # (Q,)
    is_one: Array  # (Q,) whether it is looked at, or only fills up
    table: Array  # (Q, K) the nearest rows
    thresholds: Array  # (lonely, cuts) distances that so many rows exceed
    lonely: Array  # (lonely, Q) the distances


def _placed(rng: np.random.Generator, points: np.ndarray, used: np.ndarray, own: bool) -> _Placed:
    n_used, most = int(used.sum()), most_rows(points.shape[1], own=own)
    k = min(CROWDS[-1], n_used - 1)
    among = np.flatnonzero(used)
    chosen = np.sort(rng.permutation(n_used)[:most])
    table, distances = nearest(points[among], chosen, k)
    # With fewer rows than neighbours, the last ones are said again and again.
    table = np.take(table, np.minimum(np.arange(CROWDS[-1]), k - 1), axis=1)
    # In single precision, and in units of the largest: those that differ by rounding are the same.
    lonely = np.stack([distances[:, min(number, k) - 1] for number in LONELY])
    lonely = (lonely / (lonely.max() or 1.0)).astype(np.float32)
    size = min(most, len(points))
    fill = np.arange(size) % len(chosen)
    return _Placed(
        jnp.asarray(among[chosen][fill]),
        jnp.asarray(np.arange(size) < len(chosen)),
        jnp.asarray(among[table][fill]),
        jnp.asarray(thresholds(lonely, cuts_of(size))),
        jnp.asarray(lonely[:, fill]),
    )


def most_rows(n_features: int, *, own: bool) -> int:
    """How many rows are looked at."""
    return MAX_OWN if own and n_features > MAX_FOR_TREE else MAX_SHARED


def cuts_of(n_rows: int) -> np.ndarray:
    """Numbers of rows from 1 to half of all, about two for each factor of two.

    >>> cuts_of(30).tolist()
    [1, 2, 3, 4, 6, 8, 11]
    """
    powers = np.arange(0, max(2 * np.log2(max(n_rows, 2) / 2), 1))
    return np.unique(np.round(2 ** (powers / 2)).astype(int))


def thresholds(values: np.ndarray, cuts: Sequence[int] | np.ndarray) -> np.ndarray:
    """What the so many largest values of each row (S, Q) reach at least: (S, cuts).

    Equal values are on the same side of a threshold, so that no order decides between them.
    """
    descending = -np.sort(-values, axis=1)
    return descending[:, np.minimum(np.asarray(cuts), values.shape[1]) - 1]


@functools.partial(jax.jit, compiler_options=COMPILER_OPTIONS)
def _evaluated(placed: _Placed, reference: Array, data: Array) -> Array:  # (B, N) twice -> (B, K)
    counts = counts_of(reference, data)
    both, rows = (each[placed.queries].T for each in (counts.both, counts.data))  # (B, Q)
    there = placed.is_one & (both > 0)
    lonely = _lonely(placed, rows, both, counts.share)
    return jnp.concatenate([_crowds(placed, counts, there), lonely], 1)


def _crowds(placed: _Placed, counts: Counts, there: Array) -> Array:  # -> (B, crowds)
    # Rows of experiments side by side: a neighbour is one row of memory for all of them.
    seen = jnp.concatenate([counts.data, counts.both], 1).astype(jnp.float32)  # (N, 2 B)
    n = counts.data.shape[1]

    def add(k: Array, total: Array) -> Array:
        return total + seen[placed.table[:, k]]

    found, total, start = [], seen[placed.queries], 0
    for k in CROWDS:
        total = jax.lax.fori_loop(start, k, add, total)
        now = total.astype(counts.data.dtype)
        each = jnp.abs(surprise(now[:, :n], now[:, n:], counts.share))
        found.append(averaged(each, 0, there.T.astype(each.dtype)))
        start = k
    return jnp.stack(found, 1)


def _lonely(placed: _Placed, rows: Array, both: Array, share: Array) -> Array:  # -> (B, lonely)
    def one(at: tuple[Array, Array]) -> Array:
        distance, threshold = at
        member = (distance >= threshold[:, None]) & placed.is_one  # (cuts, Q)
        member = member.astype(jnp.float32)
        s, n = (
            jnp.matmul(each.astype(jnp.float32), member.T, precision=jax.lax.Precision.HIGHEST)
            for each in (rows, both)
        )  # (B, cuts)
        each = surprise(s.astype(rows.dtype), n.astype(rows.dtype), share[:, None])
        return averaged(jnp.maximum(each, 0), 1)

    return jax.lax.map(one, (placed.lonely, placed.thresholds)).T


def _room(sample: TwoSample) -> Room:
    n, n_features = sample.points.shape[-2:]
    n_queries = min(most_rows(n_features, own=sample.points.ndim == 3), n)
    return Room(16 * n_queries * CROWDS[-1] + 64 * n, 80 * n_queries + 64 * n)
