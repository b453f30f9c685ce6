"""Beyond the reach of the toys: a p-value extrapolated from the tail of the null.

B toys resolve p-values down to 1/(B + 1). Further out one can only assume a shape. Each column is
put on one scale by the moments of its toys (``pvalues.smooth_p_values``), combined by the test's
rule into a score without an upper end, and the upper quarter of the toys' scores is fitted by a
generalised Pareto distribution, the limit of every well-behaved tail (Pickands 1975; fitted by
probability-weighted moments, Hosking and Wallis 1987). Its goodness of fit and its interval come
from parametric bootstrap. A tail that does not look like one is refused.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from sparker import combine
from sparker.pvalues import CONFIDENCE, smooth_p_values

Numbers = float | np.ndarray

TAIL = 0.25
FEWEST_IN_TAIL = 50
WORST_FIT = 0.1
MOST_SHAPE = 0.4
N_BOOTSTRAP = 2000
RULES = {rule.__name__: rule for rule in combine.RULES}


class TailFit(NamedTuple):
    """An extrapolated p-value, and what it rests on."""

    p_value: float
    interval: tuple[float, float]
    """95 %, of the fit's parameters alone: that the tail goes on as fitted is assumed."""
    shape: float
    scale: float
    threshold: float
    n_tail: int
    """Toys above the threshold, which were fitted."""
    n_toys: int
    goodness_of_fit: float
    """p-value of the Anderson-Darling distance between tail and fit."""

    @property
    def significance(self) -> float:
        """The one-sided Z of the extrapolated p-value."""
        return float(norm.isf(self.p_value))

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"extrapolated p-value {self.p_value:.2g} ({low:.1g} to {high:.1g}), "
            f"{self.significance:.1f} sigma: generalised Pareto tail of shape {self.shape:.2f} "
            f"fitted to the {self.n_tail} largest of {self.n_toys} toys, goodness of fit p = "
            f"{self.goodness_of_fit:.2f}"
        )


def fit_tail(t: np.ndarray, null_t: np.ndarray, rule: str, seed: int = 0) -> TailFit:
    """Extrapolate the p-value of t (m,) from toys (B, m) combined by the rule of this name."""
    if rule not in RULES:
        raise ValueError(f"the tail is fitted to the scores of {list(RULES)} only, not {rule}")
    score = _cauchy_evidence if rule == "cauchy" else RULES[rule]
    toys = null_t[np.isfinite(null_t).all(1)]
    n_toys = len(toys)
    n_tail = int(TAIL * n_toys)
    if n_tail < FEWEST_IN_TAIL:
        raise ValueError(
            f"a tail needs at least {round(FEWEST_IN_TAIL / TAIL)} finite toys, got {n_toys}"
        )
    scores = np.sort(score(smooth_p_values(toys, toys)))
    observed = float(score(smooth_p_values(t[None], toys))[0])
    threshold = float(scores[-n_tail - 1])
    tail = scores[-n_tail:] - threshold
    if observed <= threshold:
        raise ValueError("the data lie among the toys, where their p-value needs no extrapolation")
    if len(np.unique(tail)) < n_tail / 2:
        raise ValueError("the toys' scores repeat too often for a tail to be fitted")
    shape, scale = (float(x) for x in _fit(tail))
    rng = np.random.default_rng(seed)
    again = np.sort(_quantile(rng.random((N_BOOTSTRAP, n_tail)), shape, scale))
    shapes, scales = _fit(again)
    distance = _anderson_darling(tail, shape, scale)
    simulated = _anderson_darling(again, shapes[:, None], scales[:, None])
    fitness = float((1 + np.sum(simulated >= distance)) / (1 + N_BOOTSTRAP))
    if fitness < WORST_FIT:
        raise ValueError(
            f"the toys' tail is not a generalised Pareto one (goodness of fit p = {fitness:.3f}); "
            "nothing is extrapolated from it. Make more toys"
        )
    if shape > MOST_SHAPE:
        raise ValueError(
            f"the toys' tail is too heavy to extrapolate (shape {shape:.2f}); make more toys"
        )
    beyond = observed - threshold
    # How many toys lie in the tail is itself uncertain, if little.
    share = rng.beta(n_tail + 0.5, n_toys - n_tail + 0.5, N_BOOTSTRAP)
    p_again = share * _survival(beyond, shapes, scales)
    low, high = np.quantile(p_again, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    if shape < 0:
        # A tail that ends, perhaps before the data, is never concluded from toys: exponential is
        # the lightest that is believed.
        shape, scale = 0.0, float(tail.mean())
    p_value = n_tail / n_toys * float(_survival(beyond, shape, scale))
    return TailFit(
        p_value, (float(low), max(float(high), p_value)), shape, scale, threshold, n_tail, n_toys,
        fitness,
    )  # fmt: skip


def _cauchy_evidence(p: np.ndarray) -> np.ndarray:  # (n, m) -> (n,)
    """Minus the log of the p-value that Cauchy's score stands for; that score has no light tail."""
    return -np.log(np.clip(0.5 - np.arctan(combine.cauchy(p)) / np.pi, 1e-300, 1))


def _fit(tail: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (..., n) sorted -> shape, scale
    """Probability-weighted moments, on sorted exceedances; good at shapes below a half."""
    n = tail.shape[-1]
    a0 = tail.mean(-1)
    a1 = np.mean(tail * (n - np.arange(1, n + 1)) / (n - 1), -1)
    shape = 2 - a0 / (a0 - 2 * a1)
    return shape, 2 * a0 * a1 / (a0 - 2 * a1)


def _survival(x: Numbers, shape: Numbers, scale: Numbers) -> np.ndarray:
    small = np.abs(shape) < 1e-6
    safe = np.where(small, 1.0, shape)
    base = np.maximum(1 + safe * x / scale, 0)
    with np.errstate(divide="ignore"):
        return np.where(small, np.exp(-x / scale), base ** (-1 / safe))


def _quantile(u: np.ndarray, shape: float, scale: float) -> np.ndarray:
    if abs(shape) < 1e-6:
        return -scale * np.log(u)
    return scale * (u**-shape - 1) / shape


def _anderson_darling(tail: np.ndarray, shape: Numbers, scale: Numbers) -> np.ndarray:
    n = tail.shape[-1]
    above = np.clip(_survival(tail, shape, scale), 1e-12, 1 - 1e-12)
    odd = 2 * np.arange(1, n + 1) - 1
    return -n - np.mean(odd * (np.log1p(-above) + np.log(above[..., ::-1])), -1)
