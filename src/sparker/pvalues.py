"""From the statistic of the data and of the toys to a p-value, and how sure it is.

The observed sample and B anomaly-free toys are B + 1 rows of one table. Every row is ranked among
all of them, itself included, so that no row is treated differently: if the sample is anomaly-free
it is one more toy, and its rank is as likely to be any of the B + 1.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import beta, gumbel_r, norm, rankdata

from sparker.combine import Combination

CONFIDENCE = 0.95
TAIL = 0.1
FEWEST_IN_TAIL = 10
"""Of a column's rows, the share that is graded by how far out they are: at least so many, and at
most half of them."""


def p_values(t: np.ndarray) -> np.ndarray:  # (n,) or (n, m), of the same shape
    """The share of rows whose statistic is at least as large as this row's, column by column.

    The only p-value of this package: ``(1 + #{others >= t}) / n``, never zero. A row that is not
    finite counts as larger than any other.

    Paper: Algorithm 1's ``1 - EDF`` gives the largest toy a p-value of 0 and its global P has no
    ``+ 1``; the appendix's formula, which this is, has.

    >>> import numpy as np
    >>> p_values(np.array([2.0, 0.1, 3.0, np.nan])).tolist()
    [0.75, 1.0, 0.5, 0.25]
    """
    t = np.where(np.isfinite(t), t, np.inf)
    return rankdata(-t, method="max", axis=0) / len(t)


def graded_p_values(t: np.ndarray) -> np.ndarray:  # (n, m) -> (n, m)
    """Rank p-values that go on falling beyond the largest toy, to compare columns by.

    Ranks cannot tell a row that just leads its column from one far ahead, and with m columns about
    m rows lead one. So the uppermost rows of each column are graded by an exponential tail of their
    mean squared excess, which a heavier tail raises more than the mean; and, since tails can be
    heavier still, what counts is half way between that and the rank (in logarithms). Every row is
    treated alike, so what is made of these numbers and ranked among the rows once more stays exact,
    however well the tail is met.

    >>> import numpy as np
    >>> p = graded_p_values(np.append(np.arange(200.0), 300.0)[:, None])[:, 0]
    >>> p[[100, 190]].round(4).tolist(), bool(p[200] < 2e-3)
    ([0.5025, 0.0578], True)
    """
    p = p_values(t)
    n = len(t)
    n_tail = min(max(int(np.ceil(TAIL * n)), FEWEST_IN_TAIL), n // 2)
    if n_tail < 2:
        return p
    last = n - n_tail - 1
    threshold = np.partition(t, last, axis=0)[last]
    with np.errstate(invalid="ignore"):  # a threshold that is not finite has nothing above it
        beyond = t - threshold
    above = beyond > 0
    finite = above & np.isfinite(beyond)
    n_finite = finite.sum(0)
    most = np.max(np.where(finite, beyond, 0), axis=0)
    most = np.where(most > 0, most, 1)  # the unit, so that no square overflows
    square = (np.where(finite, beyond / most, 0) ** 2).sum(0) / np.maximum(n_finite, 1)
    scale = np.sqrt(square / 2)  # of an exponential distribution, its mean
    tail = above & (2 * n_finite >= n_tail)  # the rest are ties, mostly
    decay = np.exp(-np.where(tail, beyond / most, 0) / np.where(scale > 0, scale, 1))
    p = np.where(tail, np.sqrt(p * (above.sum(0) / n * decay)), p)
    return np.maximum(p, np.finfo(float).tiny)


class Ranked(NamedTuple):
    """A table of statistics and what it says of its first row, the observed one."""

    p_by_column: np.ndarray  # (m,)
    score: np.ndarray  # (n,) combined, of the observed row and of the toys
    p_value: float
    interval: tuple[float, float]
    above: int  # toys with a score at least as large as the observed one
    n_toys: int  # toys the p-value rests on


def rank(t: np.ndarray, combine: Combination) -> Ranked:
    """Algorithm 1 from the p-values on: row 0 of t (n, m) is observed, the others are toys."""
    t = np.where(np.isfinite(t).all(axis=1, keepdims=True), t, np.inf)
    p = p_values(t)
    score = combine(graded_p_values(t))
    p_value = float(p_values(score)[0])
    n_toys = len(t) - 1
    above = round(p_value * len(t)) - 1
    return Ranked(p[0], score, p_value, clopper_pearson(above, n_toys), above, n_toys)


def clopper_pearson(k: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval of a probability after k of n successes.

    >>> [round(end, 4) for end in clopper_pearson(0, 300)]
    [0.0, 0.0122]
    """
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta.isf(tail, k + 1, n - k)) if k < n else 1.0
    return low, high


class Significance(float):
    """A one-sided Z in standard deviations, printed with >= where it is only a lower bound."""

    at_least: bool

    def __new__(cls, z: float, at_least: bool = False) -> "Significance":  # noqa: D102
        self = super().__new__(cls, z)
        self.at_least = at_least
        return self

    @property
    def plain(self) -> float | None:
        """The number as JSON knows it: none where p = 1, whose Z is minus infinity."""
        return float(self) if np.isfinite(self) else None

    def __format__(self, spec: str) -> str:
        return ">= " * self.at_least + float(self).__format__(spec or ".2f")

    def __str__(self) -> str:
        return format(self, ".2f")

    def __reduce__(self) -> tuple[type, tuple[float, bool]]:  # copied whole
        return Significance, (float(self), self.at_least)

    def __repr__(self) -> str:
        return f"Significance({float(self)!r}, at_least={self.at_least})"


def significance(p_value: float, above: int) -> Significance:
    """The Z of a p-value; with no toy above, the data may be further out than the toys can tell.

    >>> print(significance(1 / 301, above=0), "|", significance(0.5, above=150))
    >= 2.71 | 0.00
    """
    return Significance(float(norm.isf(p_value)) + 0.0, at_least=above == 0)


def smooth_p_values(t: np.ndarray, toys: np.ndarray) -> np.ndarray:  # (n, m), (B, m) -> (n, m)
    """Approximate p-values that do not end at 1/(B + 1), from each column's mean and spread.

    A Gumbel distribution with the toys' moments: an exponential tail, for any statistic, wherever
    its zero is. They only put the columns on one scale; what is made of them is calibrated by toys
    that these moments have not seen, or by a fit that is checked.
    """
    toys = np.where(np.isfinite(toys), toys, np.nan)
    spread = np.nanstd(toys, axis=0)
    scale = np.where(spread > 0, spread, 1) * np.sqrt(6) / np.pi
    location = np.nanmean(toys, axis=0) - np.euler_gamma * scale
    p = gumbel_r.sf(np.where(np.isfinite(t), t, np.inf), location, scale)
    return np.clip(p, np.finfo(float).tiny, 1)
