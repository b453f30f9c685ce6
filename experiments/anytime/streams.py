"""The streams that are watched: populations without change, and anomalies that come into them.

Only NumPy is needed, so that other packages can watch the same rows in environments of their own.
"""

from collections.abc import Callable, Iterator

import numpy as np

Draw = Callable[[np.random.Generator, int], np.ndarray]


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two independent columns."""
    return rng.normal(size=(n, 2))


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """A long tail, a correlated column, a mixture of two."""
    x = rng.standard_t(3, size=n)
    y = 0.8 * x + rng.normal(size=n)
    z = rng.exponential(size=n) + 4 * (rng.random(n) < 0.3)
    return np.stack([x, y, z], 1)


def ties(rng: np.random.Generator, n: int) -> np.ndarray:
    """Whole numbers, most of which come again and again, and a column of yes and no."""
    counts = rng.poisson([1.0, 3.0], size=(n, 2))
    return np.column_stack([counts, rng.random(n) < 0.1]).astype(float)


def many_columns(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ten independent columns."""
    return rng.normal(size=(n, 10))


POPULATIONS: dict[str, tuple[Draw, int]] = {
    "normal": (normal, 1000),
    "skewed": (skewed, 500),
    "ties": (ties, 1000),
    "many columns": (many_columns, 2000),
}
"""How rows are drawn, and how many the reference has."""

N_QUIET_LOOKS, QUIET_ROWS = 10_000, 20
"""Batches without change, and the rows of each."""

N_FEATURES, N_REFERENCE, BATCH = 5, 4000, 250
QUIET, HORIZON = 10, 50
"""Batches before the change, and in all."""
FRACTIONS = (0.02, 0.05)


def cluster(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows close together, in the middle of the others' range: no column alone shows them."""
    return np.array([1.2, 1.2, 0, 0, 0]) + 0.15 * rng.normal(size=(n, N_FEATURES))


def outlying(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows whose first column is higher by three standard deviations."""
    return rng.normal(size=(n, N_FEATURES)) + np.array([3.0, 0, 0, 0, 0])


ANOMALIES: dict[str, Draw] = {"cluster": cluster, "outlying": outlying}


def reference(number: int) -> np.ndarray:
    """The reference of the stream of this number."""
    return np.random.default_rng([1, number]).normal(size=(N_REFERENCE, N_FEATURES))


def batches(anomaly: str, fraction: float, number: int) -> Iterator[np.ndarray]:
    """The stream: every row after the change is anomalous with this probability."""
    rng = np.random.default_rng([2, number, list(ANOMALIES).index(anomaly), int(1000 * fraction)])
    for look in range(HORIZON):
        rows = rng.normal(size=(BATCH, N_FEATURES))
        is_one = rng.random(BATCH) < (fraction if look >= QUIET else 0)
        rows[is_one] = ANOMALIES[anomaly](rng, int(is_one.sum()))
        yield rows
