"""The search for rules and neighbourhoods in which a mixture differs from the rest.

It tells data and hidden reference rows from the rest of the reference, see ``mixtures``, and cannot
tell which rows of the mixture are data. So these can be counted afterwards, see ``regions``.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sparker.findings.mixtures import Mixture
from sparker.findings.orders import AROUND, Order, counts, sizes, surprise
from sparker.system.archive import Count
from sparker.tables.encoding import Feature

MAX_CONDITIONS = 3
MAX_EXCESSES = 3
"""Rules for rows that are too many; one more is for rows that are missing."""

N_EDGES = 24
"""Bounds that are tried for each column, evenly over its rows; some more in its tails."""

N_STARTS = 6
"""First conditions from which the search goes on."""

DIGITS = 3
"""Of the bounds: what is counted is what is printed."""

MIN_ROWS = 3
MAX_COLUMNS = 100
"""Of more columns, those that differ most one by one are searched."""


class Condition(NamedTuple):
    """Values of a column that are above one bound and no further up than another."""

    column: Count
    above: float | None
    at_most: float | None

    def holds(self, values: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
        """For which rows, in their own precision."""
        column = values[:, self.column]
        found = np.ones(len(column), bool)
        if self.above is not None:
            found &= column > column.dtype.type(self.above)
        if self.at_most is not None:
            found &= column <= column.dtype.type(self.at_most)
        return found

    def text(self, features: Sequence[Feature]) -> str:
        """Return it as people write it."""
        return features[self.column].text(self.above, self.at_most)


class Found(NamedTuple):
    """A region that the search came up with, before anything in it was counted."""

    inside: np.ndarray  # (N,)
    own: np.ndarray  # (N,) the same without rows of regions that were found before
    conditions: tuple[Condition, ...]
    centre: int | None  # the row that it is around, where it is no rule
    lack: bool
    worth: float
    """The squared surprise there, less the logarithm of how many were tried."""


def search(
    values: np.ndarray, mixture: Mixture, places: Sequence[Order], score: np.ndarray
) -> list[Found]:
    """Regions in which the mixture differs from the rest, by rules and by neighbourhoods.

    ``score`` (N,) says how anomalous rows are, and treats all rows of the mixture alike.
    """
    codes, edges = _coded(values, telling(values, mixture))
    left = everyone = mixture.marked | (mixture.rest > 0)
    around = _place(mixture, places, len(values))
    found: list[Found] = []
    for _ in range(MAX_EXCESSES):
        if not left.any():
            break
        rules = [_rule(values, codes, edges, mixture, left, lack=False)]
        hints = [_highest(mixture, score, left)] + ([around.inside & left] if around else [])
        for hint in hints:
            rules.append(_described(hint, values, codes, edges, mixture, left))
        best = max((rule for rule in rules if rule), key=lambda rule: rule.worth, default=None)
        if best is None or (found and best.worth <= 0):
            break
        found.append(best)
        left = left & ~best.inside
    missing = _rule(values, codes, edges, mixture, everyone, lack=True)
    if missing is not None and (missing.worth > 0 or not found):
        found.append(missing)
    # A neighbourhood says less than a rule: it is for what no rule describes.
    if around is not None and all(rule.worth < around.worth / 2 for rule in found):
        found.append(around)
    return found


def telling(values: np.ndarray, mixture: Mixture) -> np.ndarray:  # (N, d) -> (d,)
    """Which columns to search: all, or those whose distributions differ most."""
    n_columns = values.shape[1]
    if n_columns <= MAX_COLUMNS:
        return np.ones(n_columns, bool)
    order = np.argsort(values, axis=0)
    steps = mixture.marked / mixture.marked.sum() - mixture.rest / mixture.rest.sum()
    distance = np.abs(np.cumsum(steps[order], axis=0)).max(0)
    found = np.zeros(n_columns, bool)
    found[np.argsort(-distance)[:MAX_COLUMNS]] = True
    return found


def _coded(
    values: np.ndarray, searched: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:  # (N, d), (d,)
    """For each column the bounds to try, and between which of them each row lies."""
    n_rows = len(values)
    tails = [2**i for i in range(1, 12) if 2**i < n_rows / N_EDGES]
    ranks = {*np.linspace(0, n_rows - 1, N_EDGES + 2)[1:-1].astype(int).tolist()}
    ranks |= {rank for tail in tails for rank in (tail - 1, n_rows - 1 - tail)}
    chosen = np.array(sorted(ranks))
    codes = np.empty(values.shape, np.int16)
    edges = []
    for column, own in enumerate(np.sort(values, axis=0).T.astype(np.float64)):
        if not searched[column]:
            edges.append(np.empty(0))
            codes[:, column] = 0
            continue
        bounds = own[chosen]
        rounded = np.array([float(f"{bound:.{DIGITS}g}") for bound in bounds])
        # Columns far from zero vary in later digits than the first three.
        spread = np.ptp(own) or 1.0
        rounded = np.where(np.abs(rounded - bounds) > 0.01 * spread, bounds, rounded)
        # In the precision of the values: a user's 1.3 is no larger than the bound 1.3.
        kept = np.unique(rounded.astype(values.dtype))
        kept = kept[(kept >= values[:, column].min()) & (kept < values[:, column].max())]
        edges.append(kept)
        codes[:, column] = np.searchsorted(kept, values[:, column], "left")
    return codes, edges


class _Rule(NamedTuple):
    """A rule as it grows."""

    inside: np.ndarray  # (N,)
    bounds: dict[int, tuple[int, int]]  # by column, the codes from the first to the last
    worth: float
    n_tries: float


def _rule(
    values: np.ndarray,
    codes: np.ndarray,
    edges: list[np.ndarray],
    mixture: Mixture,
    left: np.ndarray,
    *,
    lack: bool,
) -> Found | None:
    """The rule whose rows differ most, for the number of rules that were tried."""
    odds = mixture.odds_of_rest

    def grown(rule: _Rule) -> Iterator[_Rule]:
        rows = np.flatnonzero(rule.inside)
        tried = _tried(codes[rows], mixture.marked[rows], mixture.rest[rows], edges, odds, lack)
        n_tries = rule.n_tries * max(1, sum(len(one.worth) for one in tried))
        for column, first, last, worth in tried:
            if column in rule.bounds or not len(worth):
                continue
            best = int(np.argmax(worth))
            own = codes[:, column]
            inside = rule.inside & (own >= first[best]) & (own <= last[best])
            yield _Rule(
                inside,
                {**rule.bounds, column: (int(first[best]), int(last[best]))},
                float(worth[best]) - np.log(n_tries),
                n_tries,
            )

    starts = sorted(grown(_Rule(left, {}, 0.0, 1.0)), key=lambda rule: -rule.worth)[:N_STARTS]
    ends = []
    for rule in starts:
        while len(rule.bounds) < MAX_CONDITIONS:
            after = max(grown(rule), key=lambda one: one.worth, default=None)
            if after is None or after.worth <= rule.worth:
                break
            rule = after
        ends.append(rule)
    best = max(ends, key=lambda one: one.worth, default=None)
    return None if best is None else _found(best, values, edges, lack=lack)


MIDDLE = 0.05, 0.95
"""The part of some rows whose range a rule for them takes."""


def _highest(mixture: Mixture, score: np.ndarray, left: np.ndarray) -> np.ndarray:  # (N,) -> (N,)
    """The rows of the highest scores, as many as make them most surprising."""
    order = np.flatnonzero(left)
    order = order[np.argsort(-score[order], kind="stable")]
    seen, beside = (np.cumsum(some[order]).astype(float) for some in (mixture.marked, mixture.rest))
    odds = mixture.odds_of_rest
    told = np.where(seen >= MIN_ROWS, surprise(seen, beside, odds), 0)
    found = np.zeros(len(score), bool)
    found[order[: int(np.argmax(told)) + 1]] = True
    return found


def _described(
    hint: np.ndarray,
    values: np.ndarray,
    codes: np.ndarray,
    edges: list[np.ndarray],
    mixture: Mixture,
    left: np.ndarray,
) -> Found | None:
    """Some rows as a rule: their range in the columns that tell them from the rest."""
    own = np.flatnonzero(hint & mixture.marked)
    if len(own) < MIN_ROWS:
        return None
    odds = mixture.odds_of_rest
    low, high = np.quantile(codes[own], MIDDLE, axis=0, method="nearest")
    n_codes = np.array([len(bounds) for bounds in edges])
    limits = (low > 0) | (high < n_codes)  # what holds for all rows is no condition
    within = (codes >= low) & (codes <= high)  # (N, d)
    rule = _Rule(left, {}, -np.inf, 1.0)
    while len(rule.bounds) < MAX_CONDITIONS:
        open_columns = [i for i in np.flatnonzero(limits) if i not in rule.bounds]
        if not open_columns:
            break
        inside = rule.inside[:, None] & within[:, open_columns]
        seen, beside = (some.astype(np.float64) @ inside for some in (mixture.marked, mixture.rest))
        told = np.where(seen >= MIN_ROWS, surprise(seen, beside, odds) ** 2, -np.inf)
        best = int(np.argmax(told))
        n_tries = rule.n_tries * len(open_columns)
        worth = float(told[best]) - np.log(n_tries)
        if worth <= rule.worth:
            break
        column = int(open_columns[best])
        bounds = {**rule.bounds, column: (int(low[column]), int(high[column]))}
        rule = _Rule(inside[:, best], bounds, worth, n_tries)
    if not rule.bounds:
        return None
    return _found(rule, values, edges, lack=False)


def _found(rule: _Rule, values: np.ndarray, edges: list[np.ndarray], *, lack: bool) -> Found:
    """A rule as people read it: of all rows, also those that an earlier rule took."""
    conditions = tuple(_condition(column, *ends, edges) for column, ends in rule.bounds.items())
    inside = np.all([condition.holds(values) for condition in conditions], axis=0)
    return Found(inside, rule.inside, conditions, None, lack, rule.worth)


class _Tried(NamedTuple):
    """Intervals of one column."""

    column: int
    first: np.ndarray  # (k,)
    last: np.ndarray  # (k,)
    worth: np.ndarray  # (k,) squared surprise


def _tried(
    codes: np.ndarray,  # (n, d)
    marked: np.ndarray,
    rest: np.ndarray,
    edges: list[np.ndarray],
    odds: float,
    lack: bool,
) -> list[_Tried]:
    """All intervals of all columns."""
    found = []
    for column, bounds in enumerate(edges):
        if not len(bounds):
            continue
        n_codes = len(bounds) + 1
        seen, beside = (
            np.concatenate([[0], np.cumsum(np.bincount(codes[:, column], some, n_codes))])
            for some in (marked, rest)
        )
        first, end = np.triu_indices(n_codes + 1, 1)
        whole = (first == 0) & (end == n_codes)
        first, end = first[~whole], end[~whole]
        s, r = seen[end] - seen[first], np.maximum(beside[end] - beside[first], 0)
        enough = (r * odds if lack else s) >= MIN_ROWS
        worth = np.where(enough, surprise(s, r, odds, lack=lack) ** 2, -np.inf)
        found.append(_Tried(column, first, end - 1, worth))
    return found


def _condition(column: int, first: int, last: int, edges: list[np.ndarray]) -> Condition:
    bounds = edges[column]
    # The shortest number that is the bound in its precision.
    above = float(str(bounds[first - 1])) if first > 0 else None
    at_most = float(str(bounds[last])) if last < len(bounds) else None
    return Condition(column, above, at_most)


def _place(mixture: Mixture, places: Sequence[Order], n_rows: int) -> Found | None:
    """The most surprising set of rows around a row."""
    both = np.stack([mixture.marked, mixture.rest], 1).astype(np.float32)
    odds = mixture.odds_of_rest
    ends = sizes(n_rows)
    best: tuple[float, Order, int] | None = None
    n_tries = 0
    for order in places:
        if order.kind != AROUND:
            continue
        n_tries += len(ends)
        seen, beside = counts(order, both, ends).astype(np.float64).T
        told = np.where(seen >= MIN_ROWS, surprise(seen, beside, odds), 0)
        place = int(np.argmax(told))
        if best is None or told[place] > best[0]:
            best = float(told[place]), order, int(ends[place])
    if best is None or best[0] == 0:
        return None
    strength, order, n = best
    inside = np.zeros(n_rows, bool)
    inside[order.rows[:n]] = True
    return Found(inside, inside, (), order.centre, False, strength**2 - np.log(n_tries))
