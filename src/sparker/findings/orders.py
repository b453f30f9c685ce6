"""Rows put in order without looking at their labels: by distance, by column, by how far out.

The first rows of an order are a set: the rows around a place, the tail of a column, the outliers.
Labels had no part in choosing these sets. So the number of data rows in all of them can be compared
with what relabelled rows give, however many sets there are.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

AROUND, COLUMN, OUTLYING = "around", "column", "outlying"

N_SIZES = 30
"""How many sets an order gives, from the smallest to half of all rows."""

MAX_CENTRES = 600
MAX_WORK = 1.5e9
"""Orders times rows times labellings; of large samples, fewer orders are looked at."""

FEW_FEATURES = 12
"""Up to this many, a tree finds neighbours faster than a table of distances."""

NEIGHBOURS = 1, 3, 10
"""A row is far out if its neighbours of these numbers are far away."""

MAX_OUTLYING = 20_000
"""Beyond this many rows, distances to neighbours are those among so many of them."""


class Order(NamedTuple):
    """Rows in the order of something that does not depend on labels."""

    kind: str
    rows: np.ndarray  # (n,)
    centre: int | None = None
    """The row that the others are around; it is not one of them."""


def orders(
    points: np.ndarray, columns: np.ndarray, rng: np.random.Generator, n_labellings: int
) -> Iterator[Order]:
    """All orders of these rows: as they are fitted (N, r), and as users know them (N, d).

    Rows must come in an order that says nothing about their labels: it decides between equals.
    """
    n_rows = len(points)
    room = max(32, int(MAX_WORK / (n_rows * n_labellings)))
    for centre in rng.permutation(n_rows)[: min(MAX_CENTRES, room)]:
        away = squared_distances(points, points[centre])
        away[centre] = -1  # before those at the same place
        yield Order(AROUND, _first(away, n_rows // 2 + 1)[1:], int(centre))
    seen = np.hstack([columns, points]) if points.shape[1] > 1 else columns
    for column in rng.permutation(seen.shape[1])[: max(1, room // 2)]:
        for sign in (1, -1):
            yield Order(COLUMN, _first(sign * seen[:, column], n_rows // 2))
    for far in outlyingness(points, rng).T:
        yield Order(OUTLYING, _first(-far, n_rows // 2))


def squared_distances(points: np.ndarray, centre: np.ndarray) -> np.ndarray:  # (N, r), (r,) -> (N,)
    """From one place to all rows."""
    difference = points - centre
    return np.einsum("nr,nr->n", difference, difference)


def outlyingness(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (N, r) -> (N, 4)
    """How far out rows are: from the middle of all, and from their neighbours."""
    n_rows, n_features = points.shape
    from_middle = squared_distances(points, points.mean(0))
    some = points
    if n_rows > MAX_OUTLYING:
        some = points[rng.choice(n_rows, MAX_OUTLYING, replace=False)]
    k = min(max(NEIGHBOURS) + 1, len(some))
    if n_features <= FEW_FEATURES:
        away = np.reshape(cKDTree(some).query(points, k, workers=-1)[0], (n_rows, -1))
    else:
        away = np.sqrt(_nearest(points, some, k))
    chosen = [min(number, k - 1) for number in NEIGHBOURS]
    return np.column_stack([from_middle, away[:, chosen]])


def _nearest(points: np.ndarray, some: np.ndarray, k: int) -> np.ndarray:  # -> (N, k)
    """The k smallest squared distances from each row to some rows, in order."""
    norms = np.einsum("nr,nr->n", some, some)
    found = []
    at_once = max(1, 2**24 // len(some))
    for start in range(0, len(points), at_once):
        part = points[start : start + at_once]
        table = norms - 2 * (part @ some.T) + np.einsum("nr,nr->n", part, part)[:, None]
        found.append(np.sort(np.partition(table, k - 1, axis=1)[:, :k], axis=1))
    return np.maximum(np.concatenate(found), 0)


def _first(key: np.ndarray, n: int) -> np.ndarray:  # (N,) -> (n,)
    """The n rows of smallest key, in order; equals as they come."""
    return np.argsort(key, kind="stable")[:n]


def sizes(n_rows: int) -> np.ndarray:
    """How many of the first rows make up each set of an order."""
    largest = max(2, n_rows // 2)
    return np.unique(np.geomspace(2, largest, N_SIZES).round().astype(int))


def counts(order: Order, weights: np.ndarray, ends: np.ndarray) -> np.ndarray:  # (N, k) -> (e, k)
    """The sum of each weight over the first rows of an order, for each number of them."""
    starts = np.concatenate([[0], ends[:-1]])
    starts = starts[starts < len(order.rows)]
    sums = np.add.reduceat(weights[order.rows[: ends[-1]]], starts, axis=0)
    return np.cumsum(sums, axis=0)


def surprise(
    seen: np.ndarray, beside: np.ndarray, odds: np.ndarray | float, *, lack: bool = False
) -> np.ndarray:
    """The root of the binomial deviance of ``seen`` data rows among these and ``beside`` others.

    ``odds`` is the number of data rows expected for each of the others. Zero where there are no
    more data rows than expected, or with ``lack`` no fewer.
    """
    total = seen + beside
    expected = total * (odds / (1 + odds))
    others = total - expected
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = 2 * (
            np.where(seen > 0, seen * np.log(seen / expected), 0)
            + np.where(beside > 0, beside * np.log(beside / others), 0)
        )
    told = seen < expected if lack else seen > expected
    return np.where(told, np.sqrt(np.maximum(deviance, 0)), 0)
