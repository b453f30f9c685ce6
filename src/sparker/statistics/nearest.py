"""The nearest rows of some rows: by a tree where there are few features, else by blocked products.

Nothing here knows which rows are data.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial import cKDTree

from sparker.engine.compiled import compiled

MAX_FOR_TREE = 6
"""Features up to which a tree is quicker than the distances to all rows."""

BLOCK_VALUES = 2**25, 2**28
"""Distances that are held at a time, here and on an accelerator, which has room for more."""


def nearest(
    points: np.ndarray, queries: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:  # (N, d), (Q,) -> (Q, k) twice
    """The k nearest other rows of each of these rows, the nearest first, and their distances."""
    if points.shape[1] <= MAX_FOR_TREE:
        x = np.asarray(points, np.float64)
        found = cKDTree(x).query(x[queries], k + 1, workers=-1)
        distances, rows = (np.asarray(each) for each in found)
    else:  # an offset would use up the digits of single precision
        x = points - points.mean(0, dtype=np.float64).astype(points.dtype)
        unit = max(float(x.max()), -float(x.min())) or 1.0  # nor may squares overflow
        x /= x.dtype.type(unit)
        rows, distances = _by_products(x.astype(np.float32, copy=False), queries, k + 1)
        distances = distances * unit
    # A row is at no distance from itself, but so are its copies: any of them is left out in turn.
    itself = rows == queries[:, None]
    itself[~itself.any(1), -1] = True
    return rows[~itself].reshape(len(rows), k), distances[~itself].reshape(len(rows), k)


def _by_products(
    x: np.ndarray, queries: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:  # -> (Q, k) twice
    here = jax.default_backend() == "cpu"
    values = BLOCK_VALUES[0 if here else 1]
    step = max(1, min(len(queries), values // max(len(x), k * x.shape[1])))
    blocks = [queries[start : start + step] for start in range(0, len(queries), step)]
    if here:
        squares = np.einsum("ij,ij->i", x, x)
        found = [_nearest_here(x, squares, some, k) for some in blocks]
    else:
        there = jnp.asarray(x)
        squares = jnp.sum(there**2, 1)
        found = []
        for some in blocks:
            filled = jnp.asarray(np.resize(some, step))  # one program for all blocks
            rows, apart = map(np.asarray, _nearest_there(there, squares, filled, k=k))
            found.append((rows[: len(some)], apart[: len(some)]))
    return np.concatenate([rows for rows, _ in found]), np.concatenate([far for _, far in found])


def _nearest_here(
    x: np.ndarray, squares: np.ndarray, some: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    table = squares[some][:, None] + squares - 2 * (x[some] @ x.T)
    rows = np.argpartition(table, k - 1, axis=1)[:, :k]
    # Again by differences: where rows nearly agree, products leave rounding.
    apart = np.linalg.norm(x[rows] - x[some][:, None], axis=2)
    order = np.argsort(apart, axis=1, kind="stable")
    return np.take_along_axis(rows, order, 1), np.take_along_axis(apart, order, 1)


@functools.partial(compiled, static_argnames="k", compiler_options=None)
def _nearest_there(x: Array, squares: Array, some: Array, *, k: int) -> tuple[Array, Array]:
    product = jnp.matmul(x[some], x.T, precision=jax.lax.Precision.HIGHEST)
    rows = jax.lax.top_k(2 * product - squares[some][:, None] - squares, k)[1]
    apart = jnp.linalg.norm(x[rows] - x[some][:, None], axis=2)
    order = jnp.argsort(apart, axis=1, stable=True)
    return jnp.take_along_axis(rows, order, 1), jnp.take_along_axis(apart, order, 1)
