"""Which rows are data in a toy: labels change places only among rows that are exchangeable.

A unit is a row or a whole group of rows. Units belong to classes. Within a class, every choice of
as many units as are data is as likely as the observed one, or as likely as its odds say. Between
classes no label moves. The observed labelling is one of these choices, and the same code weights
it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb, prod
from operator import indexOf
from typing import NamedTuple

import numpy as np

from sparker.nulls.odds import ConditionalBernoulli

REFERENCE, DATA, OUT = range(3)
"""What a row may be."""

MAX_LISTED = 10_000
"""If there are no more labellings than this, toys are different ones, none of them twice."""


class Exchange(NamedTuple):
    """Classes of m units each, k of which are data."""

    members: np.ndarray  # (c, m) units
    k: int
    by_odds: ConditionalBernoulli | None = None  # of the one class, where not all are as likely

    def draw(self, rng: np.random.Generator, k: int | None = None) -> np.ndarray:  # (c * k,)
        """Units that are data; k of each class, or as many as observed."""
        if self.by_odds is not None:
            return self.members[0, self.by_odds(rng, k)]
        k = self.k if k is None else k
        n_classes, n_units = self.members.shape
        if n_classes == 1:  # many times quicker than a turn for every unit
            return self.members[0, rng.choice(n_units, k, replace=False, shuffle=False)]
        turn = rng.random(self.members.shape)
        first = np.argpartition(turn, min(k, n_units - 1), axis=1)[:, :k]
        return np.take_along_axis(self.members, first, 1).ravel()

    def listed(self, index: int) -> np.ndarray:  # (c * k,)
        """The labelling of this index, among all there are."""
        chosen: list[int] = []
        for row in self.members.tolist():
            index, place = divmod(index, comb(len(row), self.k))
            chosen += next(islice(combinations(row, self.k), place, None))
        return np.array(chosen)

    def index_of(self, is_data: np.ndarray) -> int:
        """The index of a labelling, by which units are data."""
        found = 0
        for row in reversed(self.members.tolist()):
            place = indexOf(combinations(row, self.k), tuple(u for u in row if is_data[u]))
            found = found * comb(len(row), self.k) + place
        return found

    @property
    def n_possible(self) -> int:
        """How many units of the one class may be data."""
        return self.members.shape[1] if self.by_odds is None else self.by_odds.n_possible

    @property
    def n_labellings(self) -> int:
        """In how many ways labels can be given."""
        return comb(self.members.shape[1], self.k) ** len(self.members)


@dataclass(frozen=True, eq=False)
class Labeller:
    """All labellings that are as likely as the observed one."""

    units: np.ndarray  # (N,) the unit of each row
    observed: np.ndarray  # (U,) what each unit is
    exchanges: tuple[Exchange, ...]
    rest: int = REFERENCE
    """What a unit is that could be data and is not."""

    @cached_property
    def n_labellings(self) -> int | None:
        """How many there are; None where they are too many to be listed, or not all as likely."""
        if any(exchange.by_odds is not None for exchange in self.exchanges):
            return None
        if sum(len(exchange.members) for exchange in self.exchanges) > MAX_LISTED.bit_length():
            return None  # each class has at least two labellings
        n = prod(exchange.n_labellings for exchange in self.exchanges)
        return n if n <= MAX_LISTED else None

    def roles(self, choose: Callable[[Exchange], np.ndarray]) -> np.ndarray:  # (N,)
        """What each row is, where these units of each exchange are data."""
        roles = self.observed.copy()
        for exchange in self.exchanges:
            roles[exchange.members] = self.rest
            roles[choose(exchange)] = DATA
        return roles[self.units]

    def draw(self, rng: np.random.Generator) -> np.ndarray:  # (N,)
        """A labelling at random."""
        return self.roles(lambda exchange: exchange.draw(rng))

    def draw_some(self, rng: np.random.Generator, n_data: int, n_taken: int) -> np.ndarray:  # (N,)
        """One with ``n_data`` units as data; ``n_taken`` units are data or take no part."""
        (exchange,) = self.exchanges
        taken = exchange.draw(rng, n_taken)
        roles = self.roles(lambda _: rng.permutation(taken)[:n_data])
        if n_taken > n_data:
            is_taken = np.zeros(len(self.observed), bool)
            is_taken[taken] = True
            roles[is_taken[self.units] & (roles == self.rest)] = OUT
        return roles

    def listed(self, index: int) -> np.ndarray:  # (N,)
        """The labelling of this index; the observed one is one of them."""

        def choose(exchange: Exchange) -> np.ndarray:
            nonlocal index
            index, own = divmod(index, exchange.n_labellings)
            return exchange.listed(own)

        return self.roles(choose)

    @cached_property
    def index(self) -> int:
        """The index of the observed labelling."""
        is_data = self.observed == DATA
        found = 0
        for exchange in reversed(self.exchanges):
            found = found * exchange.n_labellings + exchange.index_of(is_data)
        return found


def exchanges_of(
    classes: np.ndarray, is_data: np.ndarray, odds: np.ndarray | None = None
) -> tuple[Exchange, ...]:  # (U,), (U,), (U,)
    """What can change places: classes with data and others, those of the same size together."""
    order = np.argsort(classes, kind="stable")
    n_all, n_data = (np.bincount(classes, some) for some in (None, is_data))
    ends = np.cumsum(n_all)
    mixed = np.flatnonzero((n_data > 0) & (n_data < n_all))
    if odds is not None:
        return tuple(
            Exchange(units[None], k, ConditionalBernoulli(odds[units], k))
            for one in mixed
            for units, k in [(order[ends[one] - n_all[one] : ends[one]], int(n_data[one]))]
        )
    shapes, which = np.unique(
        np.stack([n_all[mixed], n_data[mixed].astype(int)]), axis=1, return_inverse=True
    )
    return tuple(
        Exchange(
            order[(ends - n_all)[mixed[which == number], None] + np.arange(m)],
            int(k),
        )
        for number, (m, k) in enumerate(shapes.T)
    )
