"""Which rows are anomalous: a probability for each, and a list of which most are.

A row's score puts together what the kernels say of its place at all widths, the most surprising set
of rows that it belongs to, and how many of its nearest rows are in the mixture. Its probability
compares how many data rows and how many hidden reference rows score like it. Its p-value is its
rank among the hidden rows.
"""

from collections.abc import Iterable

import numpy as np
from scipy.optimize import isotonic_regression

from sparker.findings.mixtures import Mixture
from sparker.findings.orders import Order, counts, sizes, surprise
from sparker.statistics.nearest import nearest
from sparker.statistics.neighbours import CROWDS, MAX_SHARED


def membership(
    mixtures: list[Mixture], all_orders: Iterable[Order], n_rows: int
) -> np.ndarray:  # -> (J, N)
    """For each mixture and row, the largest surprise of all sets that it belongs to."""
    marked = np.stack([mixture.marked for mixture in mixtures], 1).astype(np.float32)  # (N, J)
    rest = np.stack([mixture.rest for mixture in mixtures], 1).astype(np.float32)
    odds = marked.sum(0) / rest.sum(0)
    both = np.hstack([marked, rest])
    ends = sizes(n_rows)
    n = len(mixtures)
    best = np.zeros((n_rows, n))
    first_set = np.searchsorted(ends, np.arange(ends[-1]), "right")  # that a place belongs to
    for order in all_orders:
        found = counts(order, both, ends).astype(np.float64)
        told = surprise(found[:, :n], found[:, n:], odds)
        largest = np.maximum.accumulate(told[::-1])[::-1]  # of this set and all larger ones
        rows = order.rows[: ends[-1]]
        best[rows] = np.maximum(best[rows], largest[first_set[: len(rows)]])
    return best.T


def crowds(
    mixtures: list[Mixture], points: np.ndarray, rng: np.random.Generator
) -> np.ndarray:  # (N, r) -> (J, N)
    """For each mixture and row, how surprisingly many of its nearest rows are of the mixture.

    The mean over several numbers of neighbours; negative where they are few. Of very many rows,
    neighbours are looked for in random parts.
    """
    n_rows = len(points)
    n_parts = -(-n_rows // MAX_SHARED)
    found = np.zeros((len(mixtures), n_rows))
    for part in np.array_split(rng.permutation(n_rows), n_parts):
        k = min(CROWDS[-1], len(part) - 1)
        near = part[nearest(points[part], np.arange(len(part)), k)[0]]  # (n, k)
        ends = np.unique(np.minimum(CROWDS, k)) - 1
        for row, mixture in zip(found, mixtures, strict=True):
            marked, rest = (
                np.cumsum(one[near], axis=1, dtype=np.float32)[:, ends]
                for one in (mixture.marked, mixture.rest)
            )
            odds = mixture.odds_of_rest
            more, fewer = (surprise(marked, rest, odds, lack=lack) for lack in (False, True))
            row[part] = np.mean(more - fewer, axis=1)
    return found


def respects(
    log_ratios: np.ndarray, *others: np.ndarray
) -> list[np.ndarray]:  # (J, N, m), (J, N) each -> (J, N) each
    """In what respects rows are anomalous: others, and the mean and largest log-ratio."""
    if not log_ratios.shape[-1]:
        return [*others]
    spread = log_ratios.std(1, keepdims=True)
    z = (log_ratios - log_ratios.mean(1, keepdims=True)) / np.where(spread > 0, spread, 1)
    return [*others, z.mean(-1), z.max(-1)]


def scores(parts: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:  # (J, N)
    """How anomalous rows are, by their ranks in all respects: the sum of their logarithms."""
    # Equals in random order: the order of the rows may not matter.
    turn = rng.random(parts[0].shape)
    ranks = [np.argsort(np.lexsort((turn, part), axis=-1), axis=-1) for part in parts]
    return -sum(np.log1p(-(rank + 0.5) / turn.shape[-1]) for rank in ranks)


def probability(score: np.ndarray, mixture: Mixture) -> np.ndarray:  # (N,) -> (N_D,)
    """The share of anomalous rows among data rows of such a score, which may only grow with it.

    Where hidden rows are as dense as data rows are, all are ordinary. Where data rows are twice as
    dense, half of them are anomalous. One more hidden row is thought to score highest of all: above
    the highest of n hidden rows there are as many ordinary data rows, on average, as between two.
    """
    marked = np.flatnonzero(mixture.marked)
    order = marked[np.argsort(score[marked], kind="stable")]
    is_data = np.append(mixture.is_data[order], False).astype(float)
    share = isotonic_regression(is_data).x[:-1]
    with np.errstate(divide="ignore"):
        ordinary = (1 - share) / share * mixture.odds
    found = np.zeros(len(score))
    found[order] = np.clip(1 - ordinary, 0, 1)
    return found[mixture.is_data]


def p_values(score: np.ndarray, mixture: Mixture) -> np.ndarray:  # (N,) -> (N_D,)
    """The rank of each data row among the hidden rows."""
    hidden = np.sort(score[mixture.hidden])
    above = len(hidden) - np.searchsorted(hidden, score[mixture.is_data], "left")
    return (1 + above) / (1 + len(hidden))


def listed(p: np.ndarray, fdr: float) -> np.ndarray:  # (n,) -> (n,)
    """Which rows to list so that at most a share ``fdr`` of them is ordinary, on average.

    Benjamini and Hochberg, JRSS B 57, 289 (1995).

    >>> import numpy as np
    >>> listed(np.array([0.01, 0.02, 0.03, 0.5]), 0.1).tolist()
    [True, True, True, False]
    """
    order = np.sort(p)
    within = np.flatnonzero(order <= fdr * np.arange(1, len(p) + 1) / len(p))
    return p <= order[within[-1]] if len(within) else np.zeros(len(p), bool)
