"""Beyond the reach of the toys: a p-value extrapolated from the tail of the null.

B toys resolve p-values down to 1/(B + 1). Further out one can only assume a shape. The columns are
put on one scale by the moments of their toys (``pvalues.smooth_p_values``) and combined by the
test's rule into a score without an upper end. Generalised Pareto distributions, the limit of every
well-behaved tail (Pickands 1975), are fitted to the largest of the toys' scores, by
probability-weighted moments (Hosking and Wallis 1987).

B toys do not show what happens less often than once in B experiments: if one toy in a hundred is
far out, a set of three hundred may hold none. So the fit gives an estimate and no interval. The
interval is what the toys say without the fit, and the estimate is limited to a stated factor
(``REACH``).
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import genpareto, norm

from sparker.calibration import combine
from sparker.calibration.combine import Combination
from sparker.calibration.halves import n_above
from sparker.calibration.pvalues import heard, limits, smooth_p_values
from sparker.calibration.stages import staged

Numbers = float | np.ndarray

TAILS = (0.25, 0.1, 0.05)
"""Shares of the toys that are fitted, each separately; the largest estimate counts. The widest tail
is checked for its shape, the narrowest sees what only few toys show."""
MIN_IN_TAIL = 10
MIN_TOYS = 200
WORST_FIT = 0.1
MAX_SHAPE = 0.4
REACH = 10
"""An estimate is never smaller than 1/(B + 1) by more than this factor."""
N_BOOTSTRAP = 500
RULES = {rule.__name__: rule for rule in combine.RULES}


class TailFit(NamedTuple):
    """An extrapolated p-value, and what it rests on."""

    p_value: float
    """The p-value if the tail goes on as fitted: an estimate without an interval."""
    interval: tuple[float, float]
    """95 %, of the toys without the fit; its upper end holds however the tail goes on."""
    at_reach: bool
    """Whether the fit gives less than ``p_value``, which is the smallest estimate allowed."""
    shape: float
    scale: float
    threshold: float
    n_tail: int
    """Toys above the threshold: those of the widest tail, whose shape and scale these are."""
    n_toys: int
    goodness_of_fit: float
    """p-value of the Anderson-Darling distance between the widest tail and its fit."""

    @property
    def significance(self) -> float:
        """The one-sided Z of the extrapolated p-value."""
        return float(norm.isf(self.p_value))

    def __str__(self) -> str:
        return (
            f"extrapolated p-value {'<= ' * self.at_reach}{self.p_value:.2g}, "
            f"{'>= ' * self.at_reach}{self.significance:.1f} sigma, if the toys' tail goes on as "
            f"fitted (generalised Pareto of shape {self.shape:.2f}, the {self.n_tail} largest of "
            f"{self.n_toys} toys, goodness of fit p = {self.goodness_of_fit:.2f}); without that "
            f"assumption the toys say no more than p <= {self.interval[1]:.2g}"
        )


def fit_tail(
    t: np.ndarray, null_t: np.ndarray, rule: str, seed: int = 0, families: Sequence[str] = ()
) -> TailFit:
    """Extrapolate the p-value of t (m,) from toys (B, m) combined by the rule of this name."""
    if rule not in RULES:
        raise ValueError(f"the tail is fitted to the scores of {list(RULES)} only, not {rule}")
    toys = null_t[np.isfinite(null_t).any(1)]
    n_toys = len(toys)
    if n_toys < MIN_TOYS:
        raise ValueError(f"a tail needs at least {MIN_TOYS} finite toys, got {n_toys}")
    table = heard(np.concatenate([t[None], toys]))
    combination = _cauchy_evidence if rule == "cauchy" else RULES[rule]
    score = partial(smooth_score, combination, families=families)
    observed, *others = score(table).tolist()
    scores = np.sort(others)
    n_tail = int(TAILS[0] * n_toys)
    threshold = float(scores[-n_tail - 1])
    tail = scores[-n_tail:] - threshold
    if observed <= threshold:
        raise ValueError("the data lie among the toys, where their p-value needs no extrapolation")
    if len(np.unique(tail)) < n_tail / 2:
        raise ValueError("the toys' scores repeat too often for a tail to be fitted")
    shape, scale = (float(x) for x in _fit(tail))
    fitness = _goodness_of_fit(tail, shape, scale, seed)
    if fitness < WORST_FIT:
        raise ValueError(
            f"the toys' tail is not a generalised Pareto one (goodness of fit p = {fitness:.3f}); "
            "nothing is extrapolated from it. Make more toys"
        )
    if shape > MAX_SHAPE:
        raise ValueError(
            f"the toys' tail is too heavy to extrapolate (shape {shape:.2f}); make more toys"
        )
    fitted = max(_extrapolated(observed, scores, share) for share in TAILS)
    furthest = 1 / (REACH * (n_toys + 1))
    p_value = max(fitted, furthest)
    low, high = limits(table, score, int(n_above(score(table))[0]))
    return TailFit(
        p_value, (min(low, p_value), max(high, p_value)), fitted < furthest, shape, scale,
        threshold, n_tail, n_toys, fitness,
    )  # fmt: skip


def smooth_score(
    combination: Combination, t: np.ndarray, families: Sequence[str] = ()
) -> np.ndarray:  # (n, m) -> (n,)
    """The score whose tail is fitted, by the moments of the rows after the first: the toys."""
    return staged(combination, families, smooth_p_values, t, t[1:])


def _extrapolated(observed: float, scores: np.ndarray, share: float) -> float:
    """The p-value by the tail of this share of the toys' sorted scores."""
    n_tail = max(int(share * len(scores)), MIN_IN_TAIL)
    threshold = scores[-n_tail - 1]
    tail = scores[-n_tail:] - threshold
    if observed <= threshold or tail[-1] <= 0:
        return float(np.mean(scores >= observed))
    with np.errstate(divide="ignore", invalid="ignore"):  # of scores that repeat
        shape, scale = _fit(tail)
    if not shape > 0:
        # Toys cannot show that a tail ends, perhaps before the data. The lightest tail that is
        # used is exponential.
        shape, scale = np.array(0.0), tail.mean()
    return n_tail / len(scores) * float(genpareto.sf(observed - threshold, shape, scale=scale))


def _goodness_of_fit(tail: np.ndarray, shape: float, scale: float, seed: int) -> float:
    """How often a tail that is drawn from the fit, and fitted again, is as far from its own fit."""
    rng = np.random.default_rng(seed)
    again = np.sort(genpareto.isf(rng.random((N_BOOTSTRAP, len(tail))), shape, scale=scale))
    shapes, scales = _fit(again)
    distance = _anderson_darling(tail, shape, scale)
    simulated = _anderson_darling(again, shapes[:, None], scales[:, None])
    return float((1 + np.sum(simulated >= distance)) / (1 + N_BOOTSTRAP))


def _cauchy_evidence(p: np.ndarray) -> np.ndarray:  # (n, m) -> (n,)
    """Minus the log of the p-value that Cauchy's score means; the score itself has a heavy tail."""
    return -np.log(np.clip(0.5 - np.arctan(combine.cauchy(p)) / np.pi, 1e-300, 1))


def _fit(tail: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (..., n) sorted -> shape, scale
    """Probability-weighted moments, on sorted exceedances; good at shapes below a half."""
    n = tail.shape[-1]
    a0 = tail.mean(-1)
    a1 = np.mean(tail * (n - np.arange(1, n + 1)) / (n - 1), -1)
    shape = 2 - a0 / (a0 - 2 * a1)
    return shape, 2 * a0 * a1 / (a0 - 2 * a1)


def _anderson_darling(tail: np.ndarray, shape: Numbers, scale: Numbers) -> np.ndarray:
    n = tail.shape[-1]
    above = np.clip(genpareto.sf(tail, shape, scale=scale), 1e-12, 1 - 1e-12)
    odd = 2 * np.arange(1, n + 1) - 1
    return -n - np.mean(odd * (np.log1p(-above) + np.log(above[..., ::-1])), -1)
