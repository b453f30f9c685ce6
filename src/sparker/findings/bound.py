"""How many anomalous rows there are at least: sets chosen without labels, counted and inverted.

k anomalous rows add at most k to the data rows of any set. So if some set still has surprisingly
many after m of them are taken away, there are more than m anomalous rows. What is surprising is
told by relabelled rows: the largest surprise of all sets in all but 5 % of them. An upper bound
does not exist: anomalous rows may look like any others.

Three kinds of sets are counted, and the largest bound is taken; each may be wrong in a third of
the 5 %. Those of ``orders`` are the same in all labellings. The highest scores of a mixture and the
best region found in it know nothing of which of its rows are data (see ``mixtures``).

Meinshausen and Rice, Annals of Statistics 34, 373 (2006); Blanchard, Lee and Scott, JMLR 11, 2973
(2010); Patra and Sen, JRSS B 78, 869 (2016).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sparker.engine.sample import TwoSample
from sparker.findings.mixtures import Mixture
from sparker.findings.orders import Order, counts, sizes, surprise

CONFIDENCE = 0.95
MAX_TOYS = 199


class AtLeast(NamedTuple):
    """Lower bounds on the anomalous rows."""

    too_many: int
    """Data rows that do not come from the reference's distribution."""
    missing: int
    """Rows that would have to be added to the data."""


class _Sets(NamedTuple):
    """The counts of all sets of one kind."""

    seen: np.ndarray  # (s,) observed data rows
    beside: np.ndarray  # (s,) reference rows
    largest: np.ndarray  # (B,) the largest surprise of every toy


def can_tell(n_toys: int, level: float) -> bool:
    """Whether so many labellings can show what happens in less than this share of them."""
    return int(np.ceil((1 - level) * (n_toys + 1))) <= n_toys


def by_score(
    score: np.ndarray, mixture: Mixture, rng: np.random.Generator, level: float
) -> int:  # (N,)
    """A bound on the anomalous rows, from the highest scores of a mixture."""
    marked = np.flatnonzero(mixture.marked)
    labels = np.stack([mixture.is_data[marked]] + [
        rng.permutation(mixture.is_data[marked]) for _ in range(MAX_TOYS)
    ]).astype(np.float32)  # fmt: skip
    order = Order("score", np.argsort(-score[marked], kind="stable"))
    others = (1 - labels) * np.float32(mixture.odds)
    toys = TwoSample(marked[:, None], others, labels)
    return at_least(toys, [order], level, given=True).too_many


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
        for lack, kinds in sides.items():
            told = surprise(seen, beside, odds, lack=lack)
            kinds.setdefault(order.kind, []).append(
                _Sets(seen[:, 0], beside[:, 0], told[:, 1:].max(0))
            )
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
