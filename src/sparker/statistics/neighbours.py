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

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine.compiled import compiled
from sparker.engine.memory import Need
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches, each_pool
from sparker.statistics.contract import Component, Statistic
from sparker.statistics.nearest import MAX_FOR_TREE, nearest
from sparker.statistics.surprise import Counts, averaged, counts_of, cuts_of, surprise, tail

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

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Nothing depends on the points."""
        return PreparedBatches(
            settings={"counts": CROWDS, "distance": LONELY, "most": [MAX_SHARED, MAX_OWN]},
            start=each_pool(_placed, _evaluated),
            room=_room,
            component_tests=(
                *(Component("k-NN counts", float(k)) for k in CROWDS),
                *(Component("k-NN distance", float(k)) for k in LONELY),
            ),
        )


class _Placed(NamedTuple):
    """What is known of the rows that are looked at, before anyone knows which are data."""

    queries: Array  # (Q,)
    is_one: Array  # (Q,) whether it is looked at, or only fills up
    table: Array  # (Q, K) the nearest rows
    thresholds: Array  # (lonely, cuts) distances that so many rows exceed
    lonely: Array  # (lonely, Q) the distances; -inf for those that only fill up


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
    fill, is_one = np.arange(size) % len(chosen), np.arange(size) < len(chosen)
    return _Placed(
        jax.device_put(among[chosen][fill]),
        jax.device_put(is_one),
        jax.device_put(among[table][fill]),
        jax.device_put(np.sort(lonely, axis=1)[:, -cuts_of(size, len(chosen))]),
        jax.device_put(np.where(is_one, lonely[:, fill], -np.inf)),
    )


def most_rows(n_features: int, *, own: bool) -> int:
    """How many rows are looked at."""
    return MAX_OWN if own and n_features > MAX_FOR_TREE else MAX_SHARED


@compiled
def _evaluated(placed: _Placed, reference: Array, data: Array) -> Array:  # (B, N) twice -> (B, K)
    counts = counts_of(reference, data)
    asked = Counts(counts.data[placed.queries], counts.both[placed.queries], counts.share)
    lonely = jax.lax.map(lambda at: tail(asked, *at), (placed.lonely, placed.thresholds))
    return jnp.concatenate([_crowds(placed, counts, asked), lonely.T], 1)


def _crowds(placed: _Placed, counts: Counts, asked: Counts) -> Array:  # -> (B, crowds)
    # Rows of experiments side by side: a neighbour is one row of memory for all of them.
    seen = counts.side_by_side
    n = counts.data.shape[1]
    there = (placed.is_one[:, None] & (asked.both > 0)).astype(counts.data.dtype)  # (Q, B)

    def add(k: Array, total: Array) -> Array:
        return total + seen[placed.table[:, k]]

    found, total, start = [], seen[placed.queries], 0
    for k in CROWDS:
        total = jax.lax.fori_loop(start, k, add, total)
        now = total.astype(counts.data.dtype)
        each = jnp.abs(surprise(now[:, :n], now[:, n:], counts.share))
        found.append(averaged(each, 0, there))
        start = k
    return jnp.stack(found, 1)


def _room(sample: TwoSample) -> Need:
    n, n_features = sample.points.shape[-2:]
    n_queries = min(most_rows(n_features, own=sample.points.ndim == 3), n)
    return Need(16 * n_queries * CROWDS[-1] + 64 * n, 80 * n_queries + 64 * n)
