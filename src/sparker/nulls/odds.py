"""Labels that are not all as likely: subsets of fixed size, by the odds of their members.

Suppose reference rows were drawn with another density than the data, and w(x) is the ratio of the
two. Then not all labellings of the pooled rows are equally likely: a set S of n rows is the data
with a probability proportional to the product of w over S, whatever the densities themselves are.
This is a Bernoulli variable for every row, given that n of them are 1 (Chen, Dempster and Liu,
Biometrika 81, 457, 1994). Labels drawn from it make a permutation test exact (Berrett, Wang, Barber
and Samworth, J. R. Stat. Soc. B 82, 175, 2020).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

LEAF = 16
"""Rows of a leaf, which are decided one after the other."""

REACH = 12
"""Counts are kept within so many standard deviations of their mean; the rest is below 1e-30."""


class ConditionalBernoulli:
    """Subsets of n rows, each with a probability proportional to the product of its odds.

    First it is drawn how many rows of each half are chosen, then how many of each quarter, and so
    on down to leaves of a few rows. All are drawn from the distributions of sums of Bernoulli
    variables, which are computed once. The time for a subset is proportional to the number of rows.

    >>> import numpy as np
    >>> sample = ConditionalBernoulli(np.array([1.0, 2.0, 3.0]), 2)
    >>> found = [tuple(sample(np.random.default_rng(i))) for i in range(11_000)]
    >>> [round(found.count(pair) / 1000) for pair in ((0, 1), (0, 2), (1, 2))]  # as 2 to 3 to 6
    [2, 3, 6]
    """

    def __init__(self, odds: np.ndarray, n: int) -> None:
        self.n, self.odds = n, odds
        self.n_possible = int(np.sum(odds > 0))
        p = _chances(odds, n)
        self._step = max(1, round(4 * np.sqrt(np.sum(p * (1 - p)))))
        self._trees: dict[int, _Tree] = {}

    def __call__(self, rng: np.random.Generator, n: int | None = None) -> np.ndarray:  # (n,)
        """The rows of one subset, in order; n rows, or as many as usual."""
        n = self.n if n is None else n
        if not 0 <= n <= self.n_possible:
            raise ValueError(f"{n} rows cannot be chosen, {self.n_possible} have a chance to be")
        # Sums are computed for sizes near a given one; further away, rounding would spoil them.
        around = self.n + self._step * round((n - self.n) / self._step)
        if not 0 < around < self.n_possible:
            around = n
        if around not in self._trees:
            self._trees[around] = _Tree(self.odds, around)
        return self._trees[around].draw(rng, n)


class _Tree:
    """The distributions of sums of Bernoulli variables that are n on average."""

    def __init__(self, odds: np.ndarray, n: int) -> None:
        self.n_rows = len(odds)
        p = _chances(odds, n)
        self._p = np.pad(p, (0, -len(p) % LEAF)).reshape(-1, LEAF)  # (leaves, LEAF)
        self._after = _sums_after(self._p)  # (leaves, LEAF + 1, LEAF + 1)
        self._levels = _levels(self._p, self._after[:, 0])

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:  # (n,)
        """The rows of one subset."""
        counts = np.array([n])
        for level in reversed(self._levels):
            counts = level.split(rng, counts)
        counts = counts[: len(self._p)]
        chosen = np.zeros((LEAF, len(counts)), bool)
        leaves = np.arange(len(counts))
        p, uniform = self._p.T, rng.random(chosen.shape)
        others = 1 - p
        for i in range(LEAF):
            after = self._after[:, i + 1]
            # At a count of zero this is the last entry: all of a leaf, which the rest never is.
            with_it = p[i] * after[leaves, counts - 1]
            whole = with_it + others[i] * after[leaves, counts]
            chosen[i] = uniform[i] * whole < with_it
            counts = counts - chosen[i]
        return np.flatnonzero(chosen.T.ravel()[: self.n_rows])


def _chances(odds: np.ndarray, n: int) -> np.ndarray:  # (N,) -> (N,)
    """Bernoulli chances with these odds, up to a common factor, that add up to n."""
    with np.errstate(divide="ignore"):
        log_odds = np.log(odds)
    there = np.isfinite(log_odds)
    if n in (0, there.sum()):
        return there.astype(float) * (n > 0)

    def beyond(shift: float) -> float:
        return float(expit(log_odds + shift).sum() - n)

    middle = np.median(log_odds[there])
    spread = np.ptp(log_odds[there]) + 40 + np.log(len(odds))
    return expit(log_odds + brentq(beyond, -middle - spread, -middle + spread, xtol=1e-12))


def _sums_after(p: np.ndarray) -> np.ndarray:  # (leaves, LEAF) -> (leaves, LEAF + 1, LEAF + 1)
    """At [i, r] the chance that r of the rows from the i-th on are chosen."""
    after = np.zeros((len(p), LEAF + 1, LEAF + 1))
    after[:, LEAF, 0] = 1
    for i in reversed(range(LEAF)):
        after[:, i] = (1 - p[:, i, None]) * after[:, i + 1]
        after[:, i, 1:] += p[:, i, None] * after[:, i + 1, :-1]
    return after


class _Level:
    """The nodes of a level, in pairs: the probabilities of their counts, from a first count on."""

    def __init__(self, first: np.ndarray, chance: np.ndarray) -> None:
        self.first, self.chance = first, chance  # (nodes,), (nodes, W); an even number of nodes

    def split(self, rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        """Divide the count of each pair of nodes between the two."""
        left, right = self.chance[::2], self.chance[1::2]
        first_left, first_right = self.first[::2], self.first[1::2]
        width = left.shape[1]
        counts = counts[: len(left)]  # without that of a node that has no rows
        of_left = first_left[:, None] + np.arange(width)
        place = counts[:, None] - of_left - first_right[:, None]
        there = (place >= 0) & (place < width)
        of_right = np.take_along_axis(right, np.where(there, place, 0), 1)
        total = np.cumsum(np.where(there, left * of_right, 0), 1)
        drawn = np.sum(total <= rng.random((len(counts), 1)) * total[:, -1:], 1)
        n_left = first_left + drawn
        return np.stack([n_left, counts - n_left], 1).ravel()


def _levels(p: np.ndarray, chance: np.ndarray) -> list[_Level]:
    """The levels from the leaves up, each with the counts of half as many nodes."""
    mean, variance = p.sum(1), (p * (1 - p)).sum(1)
    first = np.zeros(len(p), int)
    levels = []
    while len(chance) > 1:
        if len(chance) % 2:  # a node without rows
            chance = np.concatenate([chance, np.eye(1, chance.shape[1])])
            mean, variance, first = (np.append(array, 0) for array in (mean, variance, first))
        levels.append(_Level(first, chance))
        mean, variance, first = (array[::2] + array[1::2] for array in (mean, variance, first))
        width = 2 * chance.shape[1] - 1
        size = 1 << (width - 1).bit_length()
        left, right = (np.fft.rfft(part, size) for part in (chance[::2], chance[1::2]))
        chance = np.maximum(np.fft.irfft(left * right, size)[:, :width], 0)
        reach = int(np.ceil(REACH * np.sqrt(variance.max()))) + REACH
        if width > 2 * reach + 1:  # only counts that ever occur
            low = np.clip(np.floor(mean).astype(int) - reach - first, 0, width - 2 * reach - 1)
            first = first + low
            chance = np.take_along_axis(chance, low[:, None] + np.arange(2 * reach + 1), 1)
    return levels
