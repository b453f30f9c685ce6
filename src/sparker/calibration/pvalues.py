"""From the statistics of the data and of the toys to a p-value, and its interval.

The observed sample and B anomaly-free toys are B + 1 rows of one table. Every row is ranked among
all of them, itself included, so all rows are treated alike. If the sample is anomaly-free it is one
more toy, and all B + 1 ranks are equally likely.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.stats import beta, gumbel_r, norm, rankdata

from sparker.calibration.combine import Combination
from sparker.calibration.halves import Score, inflation
from sparker.calibration.stages import best_of, staged

CONFIDENCE = 0.95
TAIL = 0.1
MIN_IN_TAIL = 10
"""The uppermost rows of a column that are graded by how far out they are: this share of them, at
least MIN_IN_TAIL rows, and at most half."""


def p_values(t: np.ndarray) -> np.ndarray:  # (n,) or (n, m), of the same shape
    """The share of rows whose statistic is at least as large as this row's, column by column.

    The only p-value of this package: ``(1 + #{others >= t}) / n``, never zero. NaN counts as larger
    than any other; what ``heard`` has made minus infinity, as smaller.

    Paper: Algorithm 1's ``1 - EDF`` gives the largest toy a p-value of 0 and its global P has no
    ``+ 1``; the appendix's formula, which this is, has.

    >>> import numpy as np
    >>> p_values(np.array([2.0, -np.inf, 3.0, np.nan])).tolist()
    [0.75, 1.0, 0.5, 0.25]
    """
    t = np.where(np.isnan(t), np.inf, t)
    return rankdata(-t, method="max", axis=0) / len(t)


def graded_p_values(t: np.ndarray) -> np.ndarray:  # (n, m) -> (n, m)
    """Rank p-values that go on falling beyond the largest toy, to compare columns by.

    With m columns about m rows are the first in one, and a rank does not tell whether they are just
    ahead of the next row or far ahead. So the uppermost rows of each column get a p-value from an
    exponential tail as well. The scale of this tail is found from the mean square of their excess,
    which a heavier tail raises more than the mean. Since tails can be heavier still, the graded
    p-value is half way between that and the rank (in logarithms). All rows are treated alike. So a
    score of these numbers, ranked among the rows again, gives an exact p-value, however well the
    tail fits.

    >>> import numpy as np
    >>> p = graded_p_values(np.append(np.arange(200.0), 300.0)[:, None])[:, 0]
    >>> p[[100, 190]].round(4).tolist(), bool(p[200] < 2e-3)
    ([0.5025, 0.0578], True)
    """
    p = p_values(t)
    n = len(t)
    n_tail = min(max(int(np.ceil(TAIL * n)), MIN_IN_TAIL), n // 2)
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


def heard(t: np.ndarray) -> np.ndarray:  # (n, m) -> (n, m)
    """Readings that are not finite made minus infinity: in that row they say nothing.

    The others of the row are still heard. A row in which no reading is finite counts as more
    extreme than any other. Each row is looked at by itself: so data and toys are treated alike, and
    toys to come change nothing. The p-value stays exact, whatever is not finite and how often.

    >>> import numpy as np
    >>> heard(np.array([[1.0, np.nan], [np.nan, np.inf]])).tolist()
    [[1.0, -inf], [inf, inf]]
    """
    finite = np.isfinite(t)
    return np.where(finite, t, np.where(finite.any(axis=1, keepdims=True), -np.inf, np.inf))


def tied(t: np.ndarray) -> np.ndarray:  # (n, m) -> (n, m)
    """Values that differ by rounding alone made equal, so that they count as ties.

    Each column is rounded to 1e-9 of its unit: the 90 % quantile of its absolute values. What is
    not finite stays as it is.

    >>> import numpy as np
    >>> t = tied(np.array([[0.1 + 0.2], [0.3], [0.3001], [np.inf]]))[:, 0]
    >>> bool(t[0] == t[1]), bool(t[1] == t[2]), float(t[3])
    (True, False, inf)
    """
    size = np.abs(t)
    size = np.where(np.isfinite(size), size, 0)
    # Not the largest value: one row that is far out must not make all the others ties.
    unit = np.quantile(size, 0.9, axis=0, method="lower")
    unit = np.where(unit > 0, unit, size.max(0))
    unit = np.where(unit > 0, unit, 1)
    # A value that overflows in this unit is far too large to differ by rounding: it stays.
    with np.errstate(over="ignore", invalid="ignore"):
        on_grid = np.round(t / unit, 9) * unit
    return np.where(np.isfinite(on_grid), on_grid, t)


def tied_scores(score: np.ndarray) -> np.ndarray:  # (n,) -> (n,)
    """Scores rounded to twelve digits, so that sums of the same terms in another order are ties.

    Each is rounded to its own digits, not to those of the largest score: one very large score must
    not make ties of the others.
    """
    mantissa, exponent = np.frexp(score)
    return np.ldexp(np.round(mantissa, 12), exponent)


@dataclass(frozen=True, eq=False)
class Ranked:
    """A table of statistics and what it says of its first row, the observed one."""

    p_by_column: np.ndarray  # (m,)
    p_by_family: np.ndarray  # (F,) each corrected for its component tests; one where all are
    score: np.ndarray  # (n,) combined, of the observed row and of the toys
    p_value: float
    above: int  # toys with a score at least as large as the observed one
    n_toys: int  # toys the p-value rests on
    limits: Callable[[], tuple[float, float]]

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval for the p-value that infinitely many toys would give, see ``limits``.

        Computed only when it is asked for: it takes twenty rankings of half the toys.
        """
        return self.limits()


def rank(t: np.ndarray, combine: Combination, families: Sequence[str] = ()) -> Ranked:
    """Algorithm 1 from the p-values on: row 0 of t (n, m) is observed, the others are toys.

    ``families`` (m,) are the names of the families that the columns belong to, see ``stages``.
    """
    t = tied(heard(t))
    score = partial(graded_score, combine, families=families)
    scores = score(t)
    p_value = float(p_values(scores)[0])
    above = round(p_value * len(t)) - 1
    return Ranked(
        p_values(t)[0],
        family_p_values(t, families),
        scores,
        p_value,
        above,
        len(t) - 1,
        partial(limits, t, score, above),
    )


def family_p_values(t: np.ndarray, families: Sequence[str]) -> np.ndarray:  # (n, m) -> (F,)
    """The p-value of the first row by each family alone."""
    best = best_of(graded_p_values(t), families or [""] * t.shape[1])
    return p_values(np.stack([tied_scores(one) for one in best.T], axis=1))[0]


def graded_score(
    combine: Combination, t: np.ndarray, families: Sequence[str] = ()
) -> np.ndarray:  # (n, m) -> (n,)
    """The score by which the rows are ranked in the end."""
    return tied_scores(staged(combine, families, lambda rows, _: graded_p_values(rows), t, t))


SPARE = 1.25


def limits(t: np.ndarray, score: Score, above: int) -> tuple[float, float]:
    """A 95 % interval for the p-value that infinitely many toys would give.

    For a single column it is Clopper and Pearson's, which is exact. For several columns it is
    theirs for fewer toys: k and n are divided by how much more the rank scatters than a count
    (``halves.inflation``). For the lower end they are divided by a quarter more, since small
    numbers of toys rank a row that is far out too low rather than too high. This is not exact; how
    often it holds was measured (docs/calibration.md).

    >>> import numpy as np
    >>> t = np.random.default_rng(0).normal(size=(301, 40))
    >>> t[0] = t[1:].max(0) + 3
    >>> from sparker.calibration.combine import minimum
    >>> score = partial(graded_score, minimum)
    >>> [round(limits(rows, score, above=0)[1], 2) for rows in (t[:, :1], t)]
    [0.01, 0.06]
    """
    n = len(t) - 1
    if t.shape[1] == 1:
        return clopper_pearson(above, n)
    times = max(1.0, inflation(t, score))
    low, _ = clopper_pearson(above / (SPARE * times), n / (SPARE * times))
    _, high = clopper_pearson(above / times, n / times)
    return low, high


def clopper_pearson(k: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval of a probability after k of n successes.

    >>> [round(end, 4) for end in clopper_pearson(0, 300)]
    [0.0, 0.0122]
    """
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, k, n - k + 1)) if k > 0 else 0.0
    high = float(beta.isf(tail, k + 1, n - k)) if k < n else 1.0
    return low, high


def significance(p_value: float) -> float:
    """The one-sided Z of a p-value, in standard deviations.

    >>> round(significance(1 / 301), 2), significance(0.5)
    (2.71, 0.0)
    """
    return float(norm.isf(p_value)) + 0.0


def ends_in_sigmas(interval: tuple[float, float]) -> str:
    """Return the significances of the ends of a p-value's interval; that of 0 or 1 is no number.

    >>> print(ends_in_sigmas((0, 0.05)), "|", ends_in_sigmas((0.44, 0.56)))
    1.64 or more | -0.15 to 0.15
    >>> print(ends_in_sigmas((0.8, 1.0)), "|", ends_in_sigmas((0.7, 1.0)))
    -0.84 or less | -0.52 or less
    """
    high, low = map(significance, interval)
    if np.isinf(low):
        return "not known" if np.isinf(high) else f"{high:.2f} or less"
    return f"{low:.2f} or more" if np.isinf(high) else f"{low:.2f} to {high:.2f}"


def smooth_p_values(t: np.ndarray, toys: np.ndarray) -> np.ndarray:  # (n, m), (B, m) -> (n, m)
    """Approximate p-values that do not end at 1/(B + 1), from each column's mean and spread.

    Those of a Gumbel distribution with the toys' moments, which has an exponential tail and may lie
    anywhere. They only put the columns on one scale. The score made of them is calibrated by other
    toys than those of the moments, or by a fit that is checked. A column without any toy that is
    finite says nothing.
    """
    there = np.isfinite(toys)
    known = there.any(axis=0)
    toys = np.where(there, toys, np.where(known, np.nan, 0))
    spread = np.nanstd(toys, axis=0)
    scale = np.where(spread > 0, spread, 1) * np.sqrt(6) / np.pi
    location = np.nanmean(toys, axis=0) - np.euler_gamma * scale
    z = (np.where(np.isnan(t), np.inf, t) - location) / scale
    p = gumbel_r.sf(np.maximum(z, -700))  # further down it is 1, and its exponential overflows
    return np.where(known, np.clip(p, np.finfo(float).tiny, 1), 1)
