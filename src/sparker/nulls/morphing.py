"""Rows moved to where another sample has them, column by column: horizontal morphing.

A sample at +1 is other rows than those of the reference, so nobody knows where each row goes. But
in each column the row of some rank belongs to where the other sample has this rank: the quantiles
say so (Read, Nuclear Instruments and Methods A 425, 357, 1999). Peaks and edges then move as they
should, which no weights of rows can make them do.

Quantiles of few rows scatter, and what scatters hides what is meant. So of the maps "none", "all by
as much", "all by the same factor" and both together the simplest is taken that the quantiles allow;
only where none of them does, each row goes to its quantile. How much quantiles scatter, and how
much with each other, is known: as a Brownian bridge, over the density.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

N_LEVELS = 40
FIRST = 5
"""Rows below the lowest level; fewer tell too little of where an edge is."""
MIN_LEVELS = 5

PRICE = 9.0
"""By so much, in chi squared, a parameter of a map must make it better: three standard deviations.
Columns that move by chance alone would break what ties them to others."""
UNLIKELY = 0.01
"""A map that quantiles deviate from by so unlikely an amount is not the right one."""

MANY_TIES = 2.0
"""Whole numbers are counts where each stands for so many rows on average."""
BLUR = 0x71E5


class Steps(NamedTuple):
    """How far rows of the reference go from 0 to +1 and from 0 to -1."""

    up: np.ndarray  # (N, d)
    down: np.ndarray  # (N, d)
    blur: np.ndarray | None = None
    """(N, d) what makes counts continuous, and is rounded off again."""

    @property
    def any(self) -> bool:
        """Whether any row moves at all."""
        return bool(np.any(self.up) or np.any(self.down))

    def moved(self, rows: np.ndarray, value: float) -> np.ndarray:  # (N, d) -> (N, d)
        """Along straight lines; counts by whole steps, sooner or later."""
        step = self.up if value >= 0 else self.down
        found = rows + abs(value) * step
        if self.blur is not None:
            counts = np.any(self.blur != 0, axis=0)
            found[:, counts] = np.round(found[:, counts] + self.blur[:, counts])
        return found


def steps(
    own: np.ndarray, weights: np.ndarray, up: np.ndarray, down: np.ndarray | None, seed: int
) -> Steps:  # (N, d), (N,), (M, d), (M', d)
    """Those that give every column the distribution it has in up and down."""
    others = [one for one in (up, down) if one is not None]
    found = np.zeros((len(others), *own.shape))
    blur = np.zeros(own.shape)
    for column in range(own.shape[1]):
        x, *ends = (one[:, column].astype(float) for one in (own, *others))
        if len(np.unique(x)) <= 2:
            continue
        rngs = (np.random.default_rng([seed, BLUR, column, of]) for of in range(3))
        blur[:, column], *of_ends = map(_blur, (x, *ends), rngs)
        ends = [end + more for end, more in zip(ends, of_ends, strict=True)]
        found[..., column] = _along(x + blur[:, column], weights, ends)
    mirrored = found[1] if down is not None else -found[0]
    return Steps(found[0], mirrored, blur if blur.any() else None)


def _blur(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # (N,) -> (N,)
    """Within half a step, of whole numbers that are counts; 0 for what is no count."""
    is_count = np.all(x == np.round(x)) and len(x) >= MANY_TIES * len(np.unique(x))
    return rng.uniform(-0.499, 0.499, len(x)) if is_count else np.zeros(len(x))


def _along(
    x: np.ndarray, weights: np.ndarray, ends: list[np.ndarray]
) -> np.ndarray:  # (N,), (N,) -> (1 or 2, N)
    """The steps to each end in one column."""
    n = weights.sum() ** 2 / np.sum(weights**2)  # so many rows of equal weight scatter as much
    levels = _levels(min(n, *map(len, ends)))
    order = np.argsort(x, kind="stable")
    ranks = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    own = np.interp(levels, ranks, x[order])
    there = [np.quantile(end, levels) for end in ends]
    scatter = [1 / len(end) for end in ends]
    if len(ends) == 1:
        lines = [_line(levels, own, there[0] - own, 1 / n + scatter[0])]
    else:  # half of the difference, which knows nothing of the reference, and what both have
        up, down = there
        lines = [
            _line(levels, own, (up - down) / 2, sum(scatter) / 4),
            _line(levels, own, (up + down) / 2 - own, 1 / n + sum(scatter) / 4),
        ]
    if any(line is None for line in lines):
        found = np.empty((len(ends), len(x)))
        found[:, order] = [np.quantile(end, ranks) - x[order] for end in ends]
        return found
    straight = np.stack([line[0] + line[1] * x for line in lines if line is not None])
    return straight if len(ends) == 1 else np.array([[1, 1], [-1, 1]]) @ straight


def _levels(n: float) -> np.ndarray:
    """Of quantiles, closer to each other where there may be an edge."""
    inner = (np.arange(N_LEVELS) + 0.5) / N_LEVELS
    outer = FIRST / n * 2.0 ** np.arange(30)
    outer = outer[outer < inner[0]]
    inner = inner[(inner > FIRST / n) & (inner < 1 - FIRST / n)]
    return np.unique(np.concatenate([outer, inner, 1 - outer]))


def _line(
    levels: np.ndarray, own: np.ndarray, moved: np.ndarray, variance: float
) -> tuple[float, float] | None:
    """By how much and by which factor quantiles are moved, if a straight line says it."""
    if len(levels) < MIN_LEVELS:
        return 0.0, 0.0
    spacing = np.gradient(own, levels)  # one over the density
    if not np.all(spacing > 0):
        return None
    bridge = np.minimum.outer(levels, levels) * (1 - np.maximum.outer(levels, levels))
    whiten = np.linalg.cholesky(variance * bridge * np.outer(spacing, spacing))
    basis = np.stack([np.ones(len(levels)), own], axis=1)
    seen, along = (np.linalg.solve(whiten, part) for part in (moved, basis))
    best = np.inf, np.inf, 0, np.zeros(2)
    for used in ((), (0,), (1,), (0, 1)):
        chosen, line = list(used), np.zeros(2)
        if chosen:
            line[chosen] = np.linalg.lstsq(along[:, chosen], seen, rcond=None)[0]
        chi2 = float(np.sum((seen - along @ line) ** 2))
        best = min(best, (chi2 + PRICE * len(chosen), chi2, len(chosen), line), key=lambda b: b[0])
    _, chi2, n_used, line = best
    likely = stats.chi2.sf(chi2, len(levels) - n_used) > UNLIKELY
    return (float(line[0]), float(line[1])) if likely else None
