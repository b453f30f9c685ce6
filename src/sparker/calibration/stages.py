"""From many component tests to one score in two stages: within each family, then across families.

The component tests of a family are one test at several scales. The best of them stands for the
family, and what the best of so many means is found by ranking it like a component test. So a
family with ten scales has no more say than one with a single number. All rows of a table are
treated alike at both stages: whatever comes out is one more statistic, to be ranked.
"""

from collections.abc import Callable, Sequence

import numpy as np

from sparker.calibration.combine import Combination, minimum

PValuesOf = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""P-values (n, m) of the columns of rows (n, m), by the columns of others (B, m)."""


def staged(
    combine: Combination,
    families: Sequence[str],
    p_values_of: PValuesOf,
    t: np.ndarray,  # (n, K)
    like: np.ndarray,  # (B, K)
) -> np.ndarray:  # (n,)
    """The score of each row. Readings of one family, or of no name, are combined at once.

    >>> import numpy as np
    >>> from sparker.calibration.combine import harmonic
    >>> from sparker.calibration.pvalues import p_values
    >>> t = np.random.default_rng(0).normal(size=(100, 5))
    >>> t[0, [1, 4]] = 9
    >>> score = staged(harmonic, ["a", "a", "a", "a", "b"], lambda t, like: p_values(t), t, t)
    >>> int(np.argmax(score))
    0
    """
    p = p_values_of(t, like)
    if len(set(families)) < 2:
        return combine(p)
    best = best_of(p, families)
    best_like = best if like is t else best_of(p_values_of(like, like), families)
    return combine(p_values_of(best, best_like))


def best_of(p: np.ndarray, families: Sequence[str]) -> np.ndarray:  # (n, K) -> (n, F)
    """The evidence of each family, in the order they come: larger for smaller p-values."""
    names = np.asarray(families)
    return np.stack([minimum(p[:, names == name]) for name in dict.fromkeys(families)], axis=1)
