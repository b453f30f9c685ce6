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
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches, Room, each_pool
from sparker.statistics.contract import Back, Reading, Statistic
from sparker.statistics.surprise import LEAST, averaged

NUMBERS = ("means", "squares", "all directions")


@dataclass(frozen=True, kw_only=True)
class Shifts(Statistic):
    """Differences of the means and of the mean squares of columns."""

    name: ClassVar[str] = "shifts"

    def prepare(self, points: np.ndarray, n_rows: int, back: Back | None = None) -> PreparedBatches:
        """Keep the way back to the user's columns; without one, the features are looked at."""

        def placed(
            rng: np.random.Generator, points: np.ndarray, used: np.ndarray, own: bool
        ) -> _Placed:
            fitted = _standard(points, used)
            columns = fitted if back is None else _standard(back(points), used)
            return _Placed(jnp.asarray(columns), jnp.asarray(fitted))

        return PreparedBatches(
            settings={"shifts": list(NUMBERS), "of": "features" if back is None else "columns"},
            start=lambda seed, chunk: each_pool(placed, _evaluated, seed, chunk),
            room=_room,
            readings=tuple(Reading("shifts", float(i)) for i in range(len(NUMBERS))),
        )


class _Placed(NamedTuple):
    columns: Array  # (N, k) of mean zero and spread one, zero for rows not used
    features: Array  # (N, r)


def _standard(x: np.ndarray, used: np.ndarray) -> np.ndarray:
    some = np.asarray(x[used], np.float64)
    spread = some.std(0)
    z = (x - some.mean(0)) / np.where(spread > 0, spread, 1)
    return np.where(used[:, None], z, 0).astype(np.float32)


@functools.partial(jax.jit, compiler_options=COMPILER_OPTIONS)
def _evaluated(placed: _Placed, reference: Array, data: Array) -> Array:  # (B, N) twice -> (B, 3)
    totals = [jnp.maximum(jnp.sum(weight, 1, keepdims=True), LEAST) for weight in (reference, data)]
    shares = [weight / total for weight, total in zip((reference, data), totals, strict=True)]
    difference = shares[1] - shares[0]
    # Of a mean over rows with these shares, in units of the spread of one row.
    fluctuation = sum(jnp.sum(share**2, 1, keepdims=True) for share in shares)
    used = jnp.any(reference + data > 0, 0)

    def squared(x: Array) -> Array:  # (N, k) -> (B, k)
        x = x.astype(difference.dtype)
        variance = jnp.sum(x**2, 0) / jnp.sum(used) - (jnp.sum(x, 0) / jnp.sum(used)) ** 2
        shift = jnp.matmul(difference, x, precision=jax.lax.Precision.HIGHEST)
        return shift**2 / (fluctuation * jnp.maximum(variance, 1e-12))

    columns = placed.columns
    return jnp.stack(
        [
            averaged(squared(columns), 1),
            averaged(squared(columns**2), 1),
            jnp.sum(squared(placed.features), 1),
        ],
        1,
    )


def _room(sample: TwoSample) -> Room:
    n, d = sample.points.shape[-2:]
    return Room(64 * n * d, 80 * n)
