"""How many anomalous rows there are at least: sets chosen without labels, counted and inverted.

k anomalous rows add at most k to the data rows of any set. So if some set still has surprisingly
many after m of them are taken away, there are more than m anomalous rows. What is surprising is
told by relabelled rows. An upper bound does not exist: anomalous rows may look like any others.

Two kinds of sets are counted, and the larger bound is taken; each may be wrong in half of the 5 %.
Those of ``orders`` are the same in all labellings. The highest scores of a mixture know nothing of
which of its rows are data (see ``mixtures``).

Meinshausen and Rice, Annals of Statistics 34, 373 (2006); Blanchard, Lee and Scott, JMLR 11, 2973
(2010); Patra and Sen, JRSS B 78, 869 (2016).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import hypergeom

from sparker.engine.sample import TwoSample
from sparker.findings.mixtures import Mixture
from sparker.findings.orders import Order, counts, sizes, surprise
from sparker.system.archive import Count

CONFIDENCE = 0.95
MAX_TOYS = 199

N_LENGTHS = 8
"""How many beginnings of an order by score are looked at, from as many rows to a fifth of all."""


class AtLeast(NamedTuple):
    """Lower bounds on the anomalous rows."""

    too_many: Count
    """Data rows that do not come from the reference's distribution."""
    missing: Count
    """Rows that would have to be added to the data."""


class _Sets(NamedTuple):
    """The counts of all sets of one kind."""

    seen: np.ndarray  # (s,) observed data rows
    beside: np.ndarray  # (s,) reference rows
    largest: np.ndarray  # (B,) the largest surprise of every toy


def can_tell(n_toys: int, level: float) -> bool:
    """Whether so many labellings can show what happens in less than this share of them."""
    return int(np.ceil((1 - level) * (n_toys + 1))) <= n_toys


def by_scores(
    scores: Sequence[np.ndarray], mixture: Mixture, rng: np.random.Generator, level: float
) -> int:  # (N,) each
    """A bound on the anomalous rows, from the highest of several scores of a mixture.

    If m rows are anomalous, take the m data rows that score highest away. Were these the anomalous
    ones, data and hidden rows would now come as in a shuffled deck. Were they others, hidden rows
    would come even earlier. So if hidden rows come too late, more than m rows are anomalous. How
    late is too late, in any score and at any of some lengths, is told by shuffled decks.
    """
    marked = np.flatnonzero(mixture.marked)
    hidden = mixture.hidden[marked]
    n_rows, n_hidden = len(marked), int(hidden.sum())
    first, *_ = scores  # it decides between rows that are equal in another
    by_score = [Order("score", np.lexsort((-first[marked], -one[marked]))) for one in scores]
    shuffled = np.stack([rng.permutation(hidden) for _ in range(MAX_TOYS)], 1).astype(np.float32)
    lengths = np.geomspace(N_LENGTHS, max(N_LENGTHS, n_rows / 5), N_LENGTHS)
    ends = np.unique(np.minimum(lengths.round(), n_rows).astype(int))
    toys = [
        np.min(hypergeom.cdf(counts(order, shuffled, ends), n_rows, n_hidden, ends[:, None]), 0)
        for order in by_score
    ]
    limit = np.sort(np.min(toys, axis=0))[int(level * (MAX_TOYS + 1) + 1e-9) - 1]
    places = np.stack([np.flatnonzero(hidden[order.rows]) for order in by_score])  # of hidden rows
    number = np.arange(n_hidden)
    proved = 0
    for m in _steps(n_rows - n_hidden):
        # Of the data rows before each hidden row, m are taken away.
        left = number + np.maximum(places - number - m, 0)
        length = np.minimum(ends, n_rows - m)
        found = np.stack([np.searchsorted(one, length) for one in left])
        if np.min(hypergeom.cdf(found, n_rows - m, n_hidden, length)) >= limit:
            break
        proved = m + 1
    return proved


def _steps(most: int) -> Iterator[int]:
    """The numbers of anomalous rows to try, in order; of large ones every hundredth part.

    To pass one over is safe: who has fewer rows than a number that is tried has no more than it.
    """
    m = 0
    while m <= most:
        yield m
        m += 1 + m // 100


def at_least(toys: TwoSample, all_orders: Iterable[Order], level: float, *, given: bool) -> AtLeast:
    """Bounds that hold in all but this share of samples, of labellings of one pool.

    The observed labelling is the first of the batch. ``given``: the number of data rows is, so
    that m anomalous ones leave m fewer ordinary ones to be expected anywhere.
    """
    reference, data = (np.asarray(weight, np.float32).T for weight in toys[1:])  # (N, B + 1)
    total, square = (np.sum(reference**power, axis=0, dtype=np.float64) for power in (1, 2))
    odds = np.asarray(square / total)  # the weight of a reference row: data rows expected for each
    both = np.hstack([data, reference / odds.astype(np.float32)])
    ends = sizes(len(both))
    sides: dict[bool, dict[str, list[_Sets]]] = {False: {}, True: {}}
    n = data.shape[1]
    for order in all_orders:
        found = counts(order, both, ends)
        seen, beside = found[:, :n].astype(np.float64), found[:, n:].astype(np.float64)
        # Copies: parts would hold on to the counts of all toys, order after order.
        own = seen[:, 0].copy(), beside[:, 0].copy()
        for lack, kinds in sides.items():
            told = surprise(seen, beside, odds, lack=lack)
            kinds.setdefault(order.kind, []).append(_Sets(*own, told[:, 1:].max(0)))
    first = float(odds[0])
    n_data = float(data[:, 0].sum(dtype=np.float64)) if given else np.inf
    return AtLeast(
        *(_least(kinds, first, n_data, level, lack=lack) for lack, kinds in sides.items())
    )


def _least(
    kinds: dict[str, list[_Sets]], odds: float, n_data: float, level: float, *, lack: bool
) -> int:
    families = [
        _Sets(
            np.concatenate([some.seen for some in sets]),
            np.concatenate([some.beside for some in sets]),
            np.max([some.largest for some in sets], axis=0),
        )
        for sets in kinds.values()
    ]
    limits = _limits(np.stack([family.largest for family in families]), level)

    def explained(m: int) -> bool:
        """Whether no set is surprising without m of its data rows, or with m more."""
        for family, limit in zip(families, limits, strict=True):
            left = family.seen + m if lack else np.maximum(family.seen - m, 0)
            expected = odds * (1 + m / n_data if lack else max(1 - m / n_data, 0))
            if np.any(surprise(left, family.beside, expected, lack=lack) > limit):
                return False
        return True

    low, high = 0, int(max(np.max(family.seen + family.beside * odds) for family in families)) + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if explained(middle) else (middle + 1, high)
    return low


def _limits(largest: np.ndarray, level: float) -> np.ndarray:  # (k, B) -> (k,)
    """For each kind of set, the surprise that toys exceed in any kind in this share at most.

    There are many places and few ways to be far out, and their largest surprises differ. So each
    kind has a limit of its own, at the same rank among its toys.
    """
    n_toys = largest.shape[1]
    order = np.sort(largest, axis=1)
    # The highest rank of a toy in any kind; of toys that tie, all have the highest.
    ranks = [np.searchsorted(row, own, "right") for row, own in zip(order, largest, strict=True)]
    highest = np.max(ranks, axis=0)
    needed = int(np.ceil((1 - level) * (n_toys + 1)))
    rank = int(np.sort(highest)[needed - 1])
    return order[:, rank - 1]
