"""Rows that are equal: in both samples, or again and again in one.

Rows that were copied are not independent. But in tables of few values independent rows are equal,
too, so what is asked is always whether more of them are equal than the table explains.
"""

from math import log
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc, gammaln, pdtrc

LEVEL = 1e-4
"""How rarely independent rows may be taken for copies."""
MIN_ROWS = 20
"""Fewer rows of a sample show no copies."""
MIN_COPIED = 0.01
"""Share of the rows to be there again before it matters."""
MIN_ONE_ROW = 0.1
"""The same, where all of them are one row."""
MAX_VALUES = 20_000_000
"""So many values are looked at column by column; of more columns some, evenly spread."""


class Shared(NamedTuple):
    """Data rows that stand in the reference, too."""

    n_rows: int
    by_chance: float  # as many would, since rows of the reference are equal among themselves


class Repeats(NamedTuple):
    """Rows of a sample that stand in it before."""

    n_rows: int
    one_row: bool  # all of them are the same row, which is then counted, too


def row_hashes(rows: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
    """A number for each row, the same for equal rows: a sum, so that a column can be taken out."""
    n, d = rows.shape
    found, salts = np.empty(n, np.uint64), _salts(d)
    step = max(1, 2**16 // max(d, 1))  # a block stays in the processor's cache
    for start in range(0, n, step):
        found[start : start + step] = _mixed(rows[start : start + step], salts).sum(axis=1)
    return found


def _salts(d: int) -> np.ndarray:
    return np.random.default_rng(0).integers(2**64, size=d, dtype=np.uint64)


def _mixed(values: np.ndarray, salts: np.ndarray) -> np.ndarray:
    """64 random-looking bits for each value, others in each column (the mixing of splitmix64)."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
    bits ^= salts
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return bits


def shared(reference: np.ndarray, data: np.ndarray) -> Shared | None:
    """Rows in both samples, by their hashes, if more than the table explains.

    Equal rows of a discrete table fall to both samples by chance. How often each row is there in
    all tells how many distinct ones random labels would put on both sides; are there far more? This
    needs no idea of why rows are equal, and no fluctuation of a common row counts. Where rows never
    repeat within the reference, a few rows in both are enough. One is not: of many rows one moves
    no p-value, and it may be a row of defaults.
    """
    # Ordinary tables share no row, which one look at each reference row tells.
    once = np.unique(data)
    again = once[np.minimum(np.searchsorted(once, reference), len(once) - 1)] == reference
    if not again.any():
        return None
    n_data, in_both = len(data), np.isin(data, reference[again])
    distinct, counts = np.unique(np.concatenate([reference, data]), return_counts=True)
    counts = counts[counts > 1]
    chance = _on_both_sides(counts, len(reference), n_data)
    n_both = len(np.unique(data[in_both]))
    # A binomial has a longer tail than a sum of unequal chances of the same mean (Hoeffding).
    far_more = bdtrc(n_both - 1, len(counts), min(chance.mean(), 1)) < LEVEL
    # Rows that were dealt out evenly are in both a little more often than those of random labels.
    far_more &= n_both > 1.25 * chance.sum()
    # Random labels of small files are too few to be that unlikely. Each row twice is no chance.
    all_twice = n_data >= 5 and n_both == n_data and len(distinct) == len(reference)
    if not far_more and not all_twice and not _same_order(reference, data):
        return None
    times = np.unique(reference, return_counts=True)[1]
    return Shared(int(in_both.sum()), n_data * float(times[times > 1].sum()) / len(reference))


def _on_both_sides(counts: np.ndarray, *sizes: int) -> np.ndarray:
    """The chance of a row that is there so many times to get both labels, if they are random."""
    on_one = np.zeros(len(counts))
    for size in sizes:
        fits = counts <= size
        c, n = counts[fits], sum(sizes)
        on_one[fits] += np.exp(
            gammaln(size + 1) - gammaln(size - c + 1) - gammaln(n + 1) + gammaln(n - c + 1)
        )
    return np.clip(1 - on_one, 0, 1)


def _same_order(reference: np.ndarray, data: np.ndarray) -> bool:
    """Whether two files are the same, row by row, and not because all rows are."""
    if not np.array_equal(reference, data):
        return False
    times = np.unique(data, return_counts=True)[1]
    return bool(gammaln(times + 1).sum() - gammaln(len(data) + 1) < log(LEVEL))


def repeats(rows: np.ndarray, hashes: np.ndarray) -> Repeats | None:
    """Rows that are equal within a sample, if the columns do not explain it."""
    n, d = rows.shape
    distinct, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    n_again, most = int(np.sum(counts > 1)), int(counts.max())
    # Empty rows, or what stands for missing ones, in a table whose rows are otherwise distinct.
    one_row = most >= max(MIN_ROWS, MIN_ONE_ROW * n)
    one_row &= len(distinct) - 1 >= max(MIN_ROWS, 0.95 * (n - most))
    if n < MIN_ROWS or (not one_row and n_again < max(3, MIN_COPIED * n)):
        return None
    some = np.unique(np.linspace(0, d - 1, min(d, max(1, MAX_VALUES // n))).astype(int))
    pairs = n * (n - 1) / 2
    independent = pairs * np.prod([_equal_pairs(rows[:, j]) / pairs for j in some])
    # Columns that depend on each other make more rows equal. But then even more rows differ in one
    # column only: ln(1 / p) times as many, if columns are independent and two rows equal with
    # probability p. Copied rows have no such neighbours.
    n_near = 0
    for j, salt in zip(some, _salts(d)[some], strict=True):
        others = np.sort(distinct - _mixed(rows[first, j], salt))
        n_near += int(np.sum(others[1:] == others[:-1]))
    if one_row:
        explained = most <= n_near or most * (most - 1) / 2 < 10 * independent
        return None if explained else Repeats(most, True)
    explained = n_again <= n_near or pdtrc(n_again - 1, independent) >= LEVEL
    return None if explained else Repeats(n - len(distinct), False)


def _equal_pairs(values: np.ndarray) -> float:
    counts = np.unique(values, return_counts=True)[1].astype(float)
    return float(np.sum(counts * (counts - 1)) / 2)
