"""The nearest rows of some rows: by a tree where there are few features, else by blocked products.

Nothing here knows which rows are data.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial import cKDTree

MAX_FOR_TREE = 6
"""Features up to which a tree is quicker than the distances to all rows."""

BLOCK_VALUES = 2**25
"""Distances that are held at a time."""


def nearest(
    points: np.ndarray, queries: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:  # (N, d), (Q,) -> (Q, k) twice
    """The k nearest other rows of each of these rows, the nearest first, and their distances."""
    x = np.asarray(points, np.float64)
    x = x - x.mean(0)
    if x.shape[1] <= MAX_FOR_TREE:
        found = cKDTree(x).query(x[queries], k + 1, workers=-1)
        distances, rows = (np.asarray(each) for each in found)
    else:
        rows, distances = _by_products(x.astype(np.float32), queries, k + 1)
    # A row is at no distance from itself, but so are its copies: any of them is left out in turn.
    itself = rows == queries[:, None]
    itself[~itself.any(1), -1] = True
    return rows[~itself].reshape(len(rows), k), distances[~itself].reshape(len(rows), k)


def _by_products(
    x: np.ndarray, queries: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:  # -> (Q, k) twice
    on_cpu = jax.default_backend() == "cpu"
    squares = np.einsum("ij,ij->i", x, x)
    step = max(1, min(len(queries), BLOCK_VALUES // len(x)))
    here = None if on_cpu else (jnp.asarray(x), jnp.asarray(squares))
    found = []
    for start in range(0, len(queries), step):
        some = queries[start : start + step]
        if here is None:
            table = squares[some][:, None] + squares - 2 * (x[some] @ x.T)
            rows = np.argpartition(table, k - 1, axis=1)[:, :k]
        else:
            padded = np.resize(some, step)  # one program for all blocks
            rows = np.asarray(_top(*here, jnp.asarray(padded), k=k))[: len(some)]
        # Again by differences: where rows nearly agree, products leave rounding.
        apart = np.linalg.norm(x[rows] - x[some][:, None], axis=2)
        order = np.argsort(apart, axis=1, kind="stable")
        found.append([np.take_along_axis(each, order, 1) for each in (rows, apart)])
    rows, apart = (np.concatenate(each) for each in zip(*found, strict=True))
    return rows, apart


@functools.partial(jax.jit, static_argnames="k")
def _top(x: Array, squares: Array, some: Array, *, k: int) -> Array:
    product = jnp.matmul(x[some], x.T, precision=jax.lax.Precision.HIGHEST)
    return jax.lax.top_k(2 * product - squares[some][:, None] - squares, k)[1]
