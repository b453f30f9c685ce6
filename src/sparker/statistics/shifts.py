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

from sparker.engine.compiled import COMPILER_OPTIONS
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches, Room, each_pool
from sparker.statistics.contract import Reading, Statistic
from sparker.statistics.edges import columns_of
from sparker.statistics.surprise import LEAST, averaged

NUMBERS = ("means", "squares", "all directions")


@dataclass(frozen=True, kw_only=True)
class Shifts(Statistic):
    """Differences of the means and of the mean squares of columns."""

    name: ClassVar[str] = "shifts"

    def prepare(
        self, points: np.ndarray, n_rows: int, transform: Transform | None = None
    ) -> PreparedBatches:
        """Keep the way back to the user's columns; without one, the features are looked at."""

        def placed(
            rng: np.random.Generator, points: np.ndarray, used: np.ndarray, own: bool
        ) -> _Placed:
            columns = columns_of(points, transform)
            features = columns_of(points, None)
            columns, features = (np.where(used[:, None], x, 0) for x in (columns, features))
            return _Placed(*map(jnp.asarray, (columns, features, used)))

        return PreparedBatches(
            settings={
                "shifts": list(NUMBERS),
                "of": "features" if transform is None else "columns",
            },
            start=lambda seed, chunk: each_pool(placed, _evaluated, seed, chunk),
            room=_room,
            readings=tuple(Reading("shifts", float(i)) for i in range(len(NUMBERS))),
        )


class _Placed(NamedTuple):
    columns: Array  # (N, k) zero for rows not used
    features: Array  # (N, r)
    used: Array  # (N,)


@functools.partial(jax.jit, compiler_options=COMPILER_OPTIONS)
def _evaluated(placed: _Placed, reference: Array, data: Array) -> Array:  # (B, N) twice -> (B, 3)
    shares = [
        weight / jnp.maximum(jnp.sum(weight, 1, keepdims=True), LEAST)
        for weight in (reference, data)
    ]
    # Of a mean over rows with these shares, in units of the spread of one row.
    fluctuation = jnp.sum(shares[0] ** 2 + shares[1] ** 2, 1, keepdims=True)
    # In double precision: labellings that give the same must not differ by rounding.
    difference = shares[1] - shares[0]
    n_used = jnp.sum(placed.used)

    def standard(x: Array) -> Array:  # (N, k) -> (N, k), zero for rows not used
        x = x.astype(difference.dtype)
        x = jnp.where(placed.used[:, None], x - jnp.sum(x, 0) / n_used, 0)
        spread = jnp.sqrt(jnp.sum(x**2, 0) / n_used)
        return x / jnp.where(spread > 0, spread, 1)

    def squared(z: Array) -> Array:  # (N, k) of spread one -> (B, k)
        shift = jnp.matmul(difference, z, precision=jax.lax.Precision.HIGHEST)
        return shift**2 / fluctuation

    columns = standard(placed.columns)
    return jnp.stack(
        [
            averaged(squared(columns), 1),
            averaged(squared(standard(columns**2)), 1),
            jnp.sum(squared(standard(placed.features)), 1),
        ],
        1,
    )


def _room(sample: TwoSample) -> Room:
    n, d = sample.points.shape[-2:]
    return Room(64 * n * d, 80 * n)
