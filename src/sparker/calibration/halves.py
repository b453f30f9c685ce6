"""How much a rank depends on which toys were drawn, measured by the same ranking on halves of them.

If each toy were compared with the data by itself, the number of toys above the data would be a
binomial count. It is not: the columns are put on one scale by the ranks of all rows, and the best
column counts. Ten toys more or less above the data in their best column can change the order of
dozens of others. How much larger the scatter is than that of a count can be seen in the table
itself. Half of the toys, drawn without replacement, scatter about all of them just as all of them
scatter about infinitely many. So the toys are split in two halves ten times, and the ranks in the
halves are compared with those in the whole table.
"""

from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

Score = Callable[[np.ndarray], np.ndarray]
"""From a table (n, m), the observed row first, to one score a row (n,)."""

N_SPLITS = 10
MIN_TOYS = 10
MIN_NEAR = 20
NEAR = 0.1
"""How many rows, those next to the observed one in rank, also serve to measure its scatter: a
share of all, and at least MIN_NEAR."""


def inflation(t: np.ndarray, score: Score) -> float:
    """How many times the scatter of row 0's rank exceeds that of a count of independent toys.

    The larger of two estimates: from row 0 itself, and from the rows next to it in rank together.
    If there are too few toys for halves it is the number of toys, the worst possible value.

    >>> import numpy as np
    >>> t = np.random.default_rng(0).normal(size=(301, 40))
    >>> t[0] = 1.5
    >>> alone = inflation(t, lambda rows: rows[:, 0])
    >>> best_of_forty = inflation(t, lambda rows: rankdata(rows, axis=0).max(1))
    >>> bool(0.5 < alone < 2), bool(best_of_forty > 10)
    (True, True)
    """
    n = len(t)
    if n <= MIN_TOYS:
        return float(n - 1)
    above = n_above(score(t))
    scatter, counted = np.zeros((2, n))
    rng = np.random.default_rng(0)  # the same halves every time
    for _ in range(N_SPLITS):
        order = 1 + rng.permutation(n - 1)
        for half in (order[: n // 2], order[n // 2 :]):
            rows = np.append(0, half)
            expected, variance = hypergeometric(above[rows], n, len(rows))
            scatter[rows] += (n_above(score(t[rows])) - expected) ** 2
            counted[rows] += variance
    distance = np.abs(np.log((above + 3) / (above[0] + 3)))
    near = np.argsort(distance, kind="stable")[: max(MIN_NEAR, int(NEAR * n))]
    found = [(scatter[rows].sum(), counted[rows].sum()) for rows in (near, [0])]
    return max([float(more / count) for more, count in found if count > 0], default=1.0)


def n_above(score: np.ndarray) -> np.ndarray:  # (n,) -> (n,)
    """How many other rows score at least as high."""
    return rankdata(-score, method="max") - 1


def hypergeometric(above: np.ndarray, n: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the rows above among ``size`` of n, where each is compared by itself."""
    share = above / (n - 1)
    return (size - 1) * share, (size - 1) * share * (1 - share) * (n - size) / (n - 2)
