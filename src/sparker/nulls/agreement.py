"""Compare a simulator's pool with the reference before any toy is made."""

from typing import NamedTuple

import numpy as np
from scipy.stats import ks_2samp

from sparker.nulls.experiments import toy_rng

ALPHA = 1e-4
"""The level of the check, for all columns together."""

MAX_VALUES = 2**23
"""Values of each sample that are compared; of more, those of a random part of the rows."""

OF_NO_TOY = 2**32 + 2**20


class Disagreement(NamedTuple):
    """The column in which pool and reference differ most clearly."""

    column: int
    p_value: float
    """At most so large, corrected for the number of columns."""
    n_pool: int
    n_reference: int
    """Rows that were compared."""


def disagreement(
    reference: np.ndarray,
    weights: np.ndarray | None,
    pool: np.ndarray,
    pool_weights: np.ndarray | None,
    seed: int,
) -> Disagreement | None:
    """Return the clearest difference of two weighted samples, None if none is significant.

    Each row is kept with a probability proportional to its weight. The rows that are left are
    independent and have the weighted density, whatever the weights depend on. So an ordinary
    two-sample test of them holds its level, where one with weights would need their distribution.
    That test is Kolmogorov and Smirnov's, column by column (ties make it conservative), with the
    bound of Dvoretzky, Kiefer, Wolfowitz and Massart and Bonferroni's correction.

    Args:
        reference: (N_R, d).
        weights: (N_R,) its weights; None where all are the same.
        pool: (N, d).
        pool_weights: (N,), likewise.
        seed: of the test.

    >>> rng = np.random.default_rng(0)
    >>> reference, pool = rng.exponential(2, (900, 1)), rng.exponential(1, (900, 1))
    >>> disagreement(reference, None, pool, None, seed=0).p_value < 1e-9
    True
    >>> disagreement(reference, np.exp(-reference[:, 0] / 2), pool, None, seed=0) is None
    True
    """
    rng = toy_rng(seed, OF_NO_TOY)
    samples = _thinned(rng, reference, weights), _thinned(rng, pool, pool_weights)
    n_reference, n_pool = map(len, samples)
    distances = ks_2samp(*samples, method="asymp", axis=0).statistic
    column = int(np.argmax(distances))
    n_both = n_reference * n_pool / (n_reference + n_pool)
    p_value = min(1.0, 2 * len(distances) * float(np.exp(-2 * n_both * distances[column] ** 2)))
    return Disagreement(column, p_value, n_pool, n_reference) if p_value < ALPHA else None


def _thinned(
    rng: np.random.Generator, rows: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:  # (N, d), (N,) -> (n, d)
    """Rows of the weighted density, without weights; at least one of them."""
    turn = rng.permutation(len(rows))
    if weights is not None:
        turn = turn[rng.random(len(rows)) * weights.max() < weights[turn]]
    return rows[turn[: max(1, MAX_VALUES // rows.shape[1])]]
