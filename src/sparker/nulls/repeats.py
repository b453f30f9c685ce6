"""Refuses rows that occur both in a pool and in the samples, or in several toys.

Rows of continuous features never repeat by chance; rows of few values do. So pairs of equal rows,
one from each set, are counted and compared with the pairs of equal rows within the samples.
"""

from collections.abc import Callable

import numpy as np
from scipy.stats import binom, hypergeom

from sparker.nulls.experiments import toy_rng

UNLIKELY = 1e-3
FACTOR = 2
"""Rows are refused only if they repeat this many times more often than by chance, since pairs are
not independent where one row repeats many times."""

MIN_DRAWN = 1000
"""Rows that a function is asked to draw, to see whether they repeat."""


def check_disjoint(name: str, rows: np.ndarray, other_name: str, other: np.ndarray) -> None:
    """Refuse rows that are in a sample too: toys would be compared with their own rows."""
    keys, others = _row_keys(rows), _row_keys(other)
    within = _n_equal(keys) + _n_equal(others)
    across = _n_equal(np.concatenate([keys, others])) - within
    n_within = _n_pairs(len(keys)) + _n_pairs(len(others))
    if _too_many(across, len(keys) * len(others), within, n_within) or _drawn_from(keys, others):
        n_shared = int(np.isin(keys, others).sum())
        raise ValueError(
            f"{n_shared} of the {len(rows)} rows of {name} are in the {other_name} as well; null "
            f"data must be other rows than those of the same fit. Take the rows of the "
            f"{other_name} out of the pool, or relabel with null='permutation'"
        )


def check_fresh(
    simulate: Callable[[np.random.Generator, int], np.ndarray],
    seed: int,
    reference: np.ndarray,
    data: np.ndarray,
    *,
    weighted: bool = False,
) -> None:
    """Refuse a function that draws its rows from the samples, or from a list of rows."""
    n_toys = max(2, -(-MIN_DRAWN // len(data)))
    of_nobody = range(2**32, 2**32 + n_toys)  # no toy has such a number
    drawn = np.concatenate([simulate(toy_rng(seed, number), len(data)) for number in of_nobody])
    drawn = drawn.astype(data.dtype)
    for other_name, other in (("reference", reference), ("data", data)):
        check_disjoint("what the simulator drew", drawn, other_name, other)
    # Weighted rows have another density, and repeat more or less often.
    like = data if weighted else np.concatenate([reference, data])
    keys, others = _row_keys(drawn), _row_keys(like)
    n_again = _n_equal(keys)
    if _too_many(n_again, _n_pairs(len(keys)), _n_equal(others), _n_pairs(len(others))):
        raise ValueError(
            f"{len(keys) - len(np.unique(keys))} of {len(keys)} rows that the simulator drew for "
            f"{n_toys} toys came twice: it draws from a list. Toys then share what is peculiar to "
            "that list, and the data do not; give the rows themselves, Simulator(rows), which is "
            "exact"
        )


def _too_many(n_equal: int, n_pairs: int, n_equal_by_chance: int, n_pairs_by_chance: int) -> bool:
    """Whether there are more equal pairs than the others lead one to expect."""
    if not n_equal or not n_pairs_by_chance:
        return False
    many = n_equal > FACTOR * n_equal_by_chance * (n_pairs / n_pairs_by_chance)
    share = n_pairs / (n_pairs + n_pairs_by_chance)
    return many and binom.sf(n_equal - 1, n_equal + n_equal_by_chance, share) < UNLIKELY


def _n_pairs(n: int) -> int:
    return n * (n - 1) // 2


def _n_equal(keys: np.ndarray) -> int:
    """Pairs of rows that are the same."""
    counts = np.unique(keys, return_counts=True)[1]
    return int(np.sum(counts * (counts - 1) // 2))


def _drawn_from(keys: np.ndarray, others: np.ndarray) -> bool:
    """Whether rows, which may repeat among themselves, are found in a sample too often.

    By chance, a new row equals one of the sample about as often as a row of the sample equals
    another one there (Good and Turing).
    """
    once = np.unique(keys)
    n_there = int(np.isin(once, others).sum())
    counts = np.unique(others, return_counts=True)[1]
    n_by_chance = int(counts[counts > 1].sum())
    many = n_there * len(others) > FACTOR * n_by_chance * len(once)
    all_there, n_all = n_there + n_by_chance, len(once) + len(others)
    return many and hypergeom.sf(n_there - 1, n_all, all_there, len(once)) < UNLIKELY**2


def _row_keys(points: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
    rows = np.ascontiguousarray(points, np.float64) + 0.0  # one zero, not two
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
