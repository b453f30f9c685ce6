"""Shifts: means and spreads of columns that have moved.

A whole sample that has moved a little, or has become a little wider, differs everywhere and nowhere
much: a kernel sees a small part of it. Two means and two mean squares per column see all of it.
Each difference is squared in units of what it fluctuates by, and read off in three ways: of the
columns' means, of their mean squares, both averaged as likelihood ratios so that one column may
stand out, and of the means along all directions together, as Hotelling does.
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
from sparker.statistics.edges import columns_of
from sparker.statistics.surprise import LEAST, averaged

NUMBERS = ("means", "squares", "all directions")


@dataclass(frozen=True, kw_only=True)
class Shifts(Statistic):
    """Differences of the means and of the mean squares of columns."""

    name: ClassVar[str] = "shifts"

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Keep the way back to the user's columns; without one, the features are looked at."""
        return PreparedBatches(
            settings={
                "shifts": list(NUMBERS),
                "of": "features" if transform is None else "columns",
            },
            start=each_pool(functools.partial(_placed, transform), _evaluated),
            room=_room,
            component_tests=tuple(
                Component("mean and variance shift", float(i)) for i in range(len(NUMBERS))
            ),
        )


class _Placed(NamedTuple):
    """Of mean zero and spread one over the rows used, zero for the others."""

    columns: Array  # (N, k)
    squares: Array  # (N, k)
    features: Array  # (N, r)


def _placed(
    transform: Transform | None,
    rng: np.random.Generator,
    points: np.ndarray,
    used: np.ndarray,
    own: bool,
) -> _Placed:
    columns = features = columns_of(points, transform)
    if transform is not None and transform.matrix.ndim == 2:
        features = columns_of(points, None)
    return _standardised(columns, features, used)


@compiled
def _standardised(columns: Array, features: Array, used: Array) -> _Placed:
    """In double precision: labellings that give the same must not differ by rounding."""

    def standard(x: Array) -> Array:  # (N, k) -> (N, k)
        x = x.astype(jnp.float64)
        centred = jnp.where(used[:, None], x - jnp.sum(x, 0, where=used[:, None]) / used.sum(), 0)
        spread = jnp.sqrt(jnp.sum(centred**2, 0) / used.sum())
        return centred / jnp.where(spread > 0, spread, 1)

    z = standard(columns)
    return _Placed(z, standard(z**2), standard(features))


@compiled
def _evaluated(placed: _Placed, reference: Array, data: Array) -> Array:  # (B, N) twice -> (B, 3)
    shares = [
        weight / jnp.maximum(jnp.sum(weight, 1, keepdims=True), LEAST)
        for weight in (reference, data)
    ]
    # Of a mean over rows with these shares, in units of the spread of one row.
    fluctuation = jnp.sum(shares[0] ** 2 + shares[1] ** 2, 1, keepdims=True)

    def squared(z: Array) -> Array:  # (N, k) -> (B, k)
        shift = jnp.matmul(shares[1] - shares[0], z, precision=jax.lax.Precision.HIGHEST)
        return shift**2 / fluctuation

    columns, squares, features = map(squared, placed)
    return jnp.stack([averaged(columns, 1), averaged(squares, 1), jnp.sum(features, 1)], 1)


def _room(sample: TwoSample) -> Need:
    n, d = sample.points.shape[-2:]
    return Need(80 * n * d, 80 * n)
