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

N_LEVELS = 20
FIRST = 5
"""Rows below the lowest level; fewer tell too little of where an edge is."""
MIN_LEVELS = 5

PRICE = 9.0
"""By so much, in chi squared, a parameter of a map must make it better: three standard deviations.
Columns that move by chance alone would break what ties them to others."""
UNLIKELY = 0.001
"""A map that quantiles deviate from by so unlikely an amount is not the right one."""

MANY_TIES = 2.0
"""Whole numbers are counts where each stands for so many rows on average."""
BLUR, REDRAWN = 0x71E5, 0xB007

Ends = tuple[np.ndarray, np.ndarray | None]
"""(M, d) rows at +1 and, if given, at -1."""


Map = tuple[tuple[int, ...], ...]
"""Which powers of a column make up its map: that of half the difference of up and down, and that of
what both have. Without any lines, each row goes to its quantile."""
LINES: Map = ((), (0,), (1,), (0, 1))


class Steps(NamedTuple):
    """How far rows of the reference go from 0 to +1 and from 0 to -1."""

    up: np.ndarray  # (N, d)
    down: np.ndarray  # (N, d)
    blur: np.ndarray | None = None
    """(N, d) what makes counts continuous, and is rounded off again."""
    maps: tuple[Map, ...] = ()
    """(d,) the map of each column."""

    @property
    def any(self) -> bool:
        """Whether any row moves at all."""
        return bool(np.any(self.up) or np.any(self.down))

    @property
    def counts(self) -> tuple[int, ...]:
        """The columns of counts."""
        if self.blur is None:
            return ()
        return tuple(np.flatnonzero(np.any(self.blur != 0, axis=0)).tolist())

    def moved(self, rows: np.ndarray, value: float) -> np.ndarray:  # (N, d) -> (N, d)
        """Along straight lines; counts by whole steps, sooner or later."""
        step = self.up if value >= 0 else self.down
        found = rows + abs(value) * step
        if self.blur is not None:
            counts = list(self.counts)
            found[:, counts] = np.round(found[:, counts] + self.blur[:, counts])
        return found


def steps(
    own: np.ndarray,
    weights: np.ndarray,
    up: np.ndarray,
    down: np.ndarray | None,
    seed: int,
    maps: tuple[Map, ...] = (),
) -> Steps:  # (N, d), (N,), (M, d), (M', d)
    """Those that give every column the distribution it has in up and down; by maps, if given."""
    others = [one for one in (up, down) if one is not None]
    found = np.zeros((len(others), *own.shape))
    blur = np.zeros(own.shape)
    used: list[Map] = []
    for column in range(own.shape[1]):
        x, *ends = (one[:, column].astype(float) for one in (own, *others))
        stays = ((),) * len(others)
        if maps[column] == stays if maps else len(np.unique(x)) <= 2:
            used.append(stays)
            continue
        if _is_count(x):
            rngs = [np.random.default_rng([seed, BLUR, column, of]) for of in range(3)]
            blur[:, column] = _blur(len(x), rngs[0])
            ends = [end + _blur(len(end), rng) for end, rng in zip(ends, rngs[1:], strict=False)]
        quantiles = _quantiles(x + blur[:, column], weights, ends)
        used.append(maps[column] if maps else _simplest(quantiles))
        found[..., column] = _along(quantiles, used[-1])
    mirrored = found[1] if down is not None else -found[0]
    return Steps(found[0], mirrored, blur if blur.any() else None, tuple(used))


def redrawn(
    number: int, there: Steps, own: np.ndarray, weights: np.ndarray, ends: Ends, seed: int
) -> Steps:
    """The steps as other samples of the same size would have given them: by bootstrap."""
    rng = np.random.default_rng([seed, REDRAWN, number])
    up, down = (None if one is None else rng.choice(one, len(one)) for one in ends)
    assert up is not None
    return steps(own, weights, up, down, seed, there.maps)


def _is_count(x: np.ndarray) -> bool:
    """Whether a column holds whole numbers, most of them several times."""
    return bool(np.all(x == np.round(x))) and len(x) >= MANY_TIES * len(np.unique(x))


def _blur(n: int, rng: np.random.Generator) -> np.ndarray:  # (n,)
    return rng.uniform(-0.499, 0.499, n)  # rounded off, nothing of it is left


class _Quantiles(NamedTuple):
    """One column at some levels, in the reference and at the ends."""

    x: np.ndarray  # (N,) the column itself
    order: np.ndarray  # (N,)
    ranks: np.ndarray  # (N,) of the rows in order
    ends: list[np.ndarray]
    levels: np.ndarray  # (L,)
    own: np.ndarray  # (L,)
    whiten: np.ndarray | None  # (L, L) of quantiles of one row; None where these do not rise
    moved: list[np.ndarray]  # (L,) each: what lines are to describe
    variances: list[float]  # of these, that of one row being 1


def _quantiles(x: np.ndarray, weights: np.ndarray, ends: list[np.ndarray]) -> _Quantiles:
    n = weights.sum() ** 2 / np.sum(weights**2)  # so many rows of equal weight scatter as much
    levels = _levels(min(n, *map(len, ends)))
    order = np.argsort(x, kind="stable")
    ranks = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    own = np.interp(levels, ranks, x[order])
    there = [np.quantile(end, levels, method="hazen") for end in ends]
    scatter = [1 / len(end) for end in ends]
    whiten = None
    # One over the density, of all samples: few rows lie between two levels.
    spacing = np.gradient(np.mean([own, *there], axis=0), levels) if len(levels) > 1 else levels
    if len(levels) >= MIN_LEVELS and np.all(spacing > 0):
        bridge = np.minimum.outer(levels, levels) * (1 - np.maximum.outer(levels, levels))
        whiten = np.linalg.cholesky(bridge * np.outer(spacing, spacing))
    if len(ends) == 1:
        moved, variances = [there[0] - own], [1 / n + scatter[0]]
    else:  # half of the difference, which knows nothing of the reference, and what both have
        moved = [(there[0] - there[1]) / 2, (there[0] + there[1]) / 2 - own]
        variances = [sum(scatter) / 4, 1 / n + sum(scatter) / 4]
    return _Quantiles(x, order, ranks, ends, levels, own, whiten, moved, variances)


def _simplest(found: _Quantiles) -> Map:
    """The simplest map that the quantiles allow."""
    stays = ((),) * len(found.moved)
    if len(found.levels) < MIN_LEVELS:
        return stays
    if found.whiten is None:  # many rows have one and the same value
        others = [found.x, *found.ends]
        differ = (stats.ks_2samp(others[0], one).pvalue <= UNLIKELY for one in others[1:])
        return () if any(differ) else stays
    chosen: list[tuple[int, ...]] = []
    for moved, variance in zip(found.moved, found.variances, strict=True):
        chi2 = {powers: _line(found, moved, powers)[1] / variance for powers in LINES}
        best = min(LINES, key=lambda powers: chi2[powers] + PRICE * len(powers))
        if stats.chi2.sf(chi2[best], len(found.levels) - len(best)) <= UNLIKELY:
            return ()
        chosen.append(best)
    return tuple(chosen)


def _along(found: _Quantiles, by: Map) -> np.ndarray:  # (1 or 2, N)
    """The steps to each end."""
    if not by:
        each = np.empty((len(found.ends), len(found.x)))
        each[:, found.order] = [
            np.quantile(end, found.ranks, method="hazen") - found.x[found.order]
            for end in found.ends
        ]
        return each
    lines = [_line(found, moved, used)[0] for moved, used in zip(found.moved, by, strict=True)]
    straight = np.stack([line[0] + line[1] * found.x for line in lines])
    return straight if len(by) == 1 else np.array([[1, 1], [-1, 1]]) @ straight


def _levels(n: float) -> np.ndarray:
    """Of quantiles, closer to each other where there may be an edge."""
    inner = (np.arange(N_LEVELS) + 0.5) / N_LEVELS
    outer = FIRST / n * 2.0 ** np.arange(30)
    outer = outer[outer < inner[0] / 1.5]  # levels too close to each other tell nothing
    inner = inner[(inner > FIRST / n) & (inner < 1 - FIRST / n)]
    return np.unique(np.concatenate([outer, inner, 1 - outer]))


def _line(
    found: _Quantiles, moved: np.ndarray, powers: tuple[int, ...]
) -> tuple[np.ndarray, float]:  # (2,), ()
    """By how much, and by which factor, quantiles are moved; and chi squared for one row."""
    line = np.zeros(2)
    if found.whiten is None or not powers:
        seen = moved if found.whiten is None else np.linalg.solve(found.whiten, moved)
        return line, float(seen @ seen)
    basis = np.stack([np.ones(len(moved)), found.own], axis=1)[:, list(powers)]
    seen, along = (np.linalg.solve(found.whiten, part) for part in (moved, basis))
    line[list(powers)] = np.linalg.lstsq(along, seen, rcond=None)[0]
    rest = seen - along @ line[list(powers)]
    return line, float(rest @ rest)
