"""Edges: how many of the rows furthest out in some column are data.

Round kernels must look in all directions at once. What is unusual in one column of many, most
anomalies of tables for a start, hides from them behind the others. Here each column is looked at
alone: of the 1, 2, 3, 4, 6, 8 ... rows with the smallest or largest values, how many are data? The
likelihood ratio of that share is averaged over all columns, both ends and all these numbers.
"""

import functools
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
from sparker.statistics.surprise import averaged, counts_of, cuts_of, tail

DIGITS = 5
"""Values that agree to so many digits, in units of a column's middle half, are the same: the way to
fitted coordinates and back rounds them."""


MAX_VALUES = 2**23
"""Values that are looked at; of more columns than that, random ones."""


@dataclass(frozen=True, kw_only=True)
class Edges(Statistic):
    """Data among the rows at the ends of single columns."""

    name: ClassVar[str] = "edges"

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Keep the way back to the user's columns; without one, the features are looked at."""
        return PreparedBatches(
            settings={
                "edges": "features" if transform is None else "columns",
                "digits": DIGITS,
                "most values": MAX_VALUES,
            },
            start=each_pool(functools.partial(_placed, transform), _evaluated),
            room=_room,
            component_tests=(Component("marginal tails", 0.0),),
        )


def columns_of(points: np.ndarray, transform: Transform | None) -> np.ndarray:  # (N, r) -> (N, k)
    """The columns that the user gave, up to shift and unit; some where there are very many."""
    n_columns = points.shape[1] if transform is None else len(transform.kept)
    some = np.arange(n_columns)
    most = max(1, MAX_VALUES // len(points))
    if n_columns > most:
        some = np.sort(np.random.default_rng(0).choice(n_columns, most, replace=False))
    found = points[:, some] if transform is None else transform.deviations(points, some)
    # Neither an offset nor a unit may use up the digits of single precision.
    found = found - found.mean(0, dtype=np.float64).astype(found.dtype)
    largest = np.maximum(found.max(0), -found.min(0))
    found /= np.where(largest > 0, largest, 1)
    return found.astype(np.float32, copy=False)


class _Placed(NamedTuple):
    values: Array  # (2 k, N) each column, and the same with its sign turned; -inf for rows not used
    thresholds: Array  # (2 k, cuts) what so many of the rows reach


def _placed(
    transform: Transform | None,
    rng: np.random.Generator,
    points: np.ndarray,
    used: np.ndarray,
    own: bool,
) -> _Placed:
    x = np.ascontiguousarray(columns_of(points, transform).T)
    ascending = _sorted(x[:, used])
    n_used = ascending.shape[1]
    # The middle half says what a small difference is: a single row may be far out.
    low, high = (ascending[:, int(share * (n_used - 1))] for share in (0.25, 0.75))
    unit = np.where(high > low, high - low, 1)[:, None]
    x, ascending = (np.round(values / unit, DIGITS) for values in (x, ascending))
    cuts = cuts_of(len(used), n_used)
    at = np.concatenate([ascending[:, -cuts], -ascending[:, cuts - 1]])
    both = np.where(used, np.concatenate([x, -x]), -np.inf)
    return _Placed(jax.device_put(both), jax.device_put(at))


def _sorted(x: np.ndarray) -> np.ndarray:
    """Each row in rising order, by whoever is quicker."""
    if jax.default_backend() == "cpu":
        return np.sort(x, axis=1)
    return np.asarray(jnp.sort(x, axis=1))


@compiled
def _evaluated(placed: _Placed, reference: Array, data: Array) -> Array:  # (B, N) twice -> (B, 1)
    counts = counts_of(reference, data)
    each = jax.lax.map(lambda at: tail(counts, *at), placed)  # (2 k, B)
    return averaged(each, 0)[:, None]


def _room(sample: TwoSample) -> Need:
    n, d = sample.points.shape[-2:]
    return Need(40 * n * d, 80 * n)
