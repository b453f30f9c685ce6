"""Rows of one sample beyond the edges of another, where chance does not explain them.

If two samples come from one distribution, the k largest values of both are all of the first sample
with a probability that depends on their sizes alone. Ties make it smaller.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

UNLIKELY = 1e-4
"""In any column, on any side."""


class Beyond(NamedTuple):
    """Rows of one sample beyond all rows of the other."""

    column: int
    sample: str
    other: str
    n_rows: int
    n_all: int
    below: bool

    def text(self, names: Sequence[str]) -> str:
        """In words."""
        column = names[self.column] if len(names) else self.column
        return (
            f"{self.n_rows} of the {self.n_all} rows of {self.sample} lie "
            f"{'below' if self.below else 'above'} all rows of {self.other} in column {column}"
        )


def beyond_edges(samples: dict[str, np.ndarray]) -> list[Beyond]:
    """Where rows (n, d) of one of two samples lie beyond the other, more than chance allows.

    >>> rng = np.random.default_rng(0)
    >>> low, high = rng.exponential(size=(500, 1)), 0.1 + rng.exponential(size=(500, 1))
    >>> [found] = beyond_edges({"low": low, "high": high})
    >>> found.text(["energy"])
    '43 of the 500 rows of low lie below all rows of high in column energy'
    """
    found = []
    for (name, rows), (other_name, other) in permutations(samples.items(), 2):
        n, m = len(rows), len(other)
        for below in (True, False):
            beyond = rows < other.min(0) if below else rows > other.max(0)
            counts = beyond.sum(0)
            unlikely = chance(counts, n, m) * 4 * rows.shape[1] < UNLIKELY
            for column in np.flatnonzero(unlikely):
                found.append(Beyond(int(column), name, other_name, int(counts[column]), n, below))
    return sorted(found, key=lambda one: -one.n_rows)


def chance(k: np.ndarray, n: int, m: int) -> np.ndarray:
    """That the k largest of n + m rows are all of the n, where all orders are equally likely."""
    log = gammaln(n + 1) - gammaln(n - k + 1) - gammaln(n + m + 1) + gammaln(n + m - k + 1)
    return np.asarray(np.exp(log))


def in_words(found: Sequence[Beyond], names: Sequence[str]) -> str:
    """The largest of them, and how many others there are."""
    if not found:
        return ""
    more = f", and so on ({len(found) - 1} more)" if len(found) > 1 else ""
    return found[0].text(names) + more
