"""Rows whose place in the file says something: neighbours that are alike, and trends."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

LEVEL = 1e-4
"""How rarely independent rows may be taken for ordered ones, for all columns of both samples."""
MIN_CORRELATION = 0.1
"""A weaker one does no harm worth a word, however many rows prove it."""
MIN_ROWS = 20
"""Fewer rows show no order."""
MAX_ROWS, MAX_COLUMNS = 20_000, 250
"""So much of a sample is looked at, twice: enough to see any correlation that counts."""
MAX_VALUES = 10**6
"""In all: of many columns, fewer rows, which still show a correlation of MIN_CORRELATION."""


class Trace(NamedTuple):
    """The strongest sign of order in a sample."""

    column: int
    correlation: float
    alike: bool  # a row and the next; otherwise values and the numbers of their rows
    n_columns: int  # that show it
    n_looked_at: int


def trace(rows: np.ndarray) -> Trace | None:
    """A sign of order along the rows; a table that is sorted by one of its columns shows none.

    Neighbours have to be neighbours, so they are looked for in a block, from the middle of the
    sample. A trend shows in rows that are evenly spread over it. Of many columns some are looked
    at, evenly spread, too.
    """
    n, d = rows.shape
    if n < MIN_ROWS:
        return None
    columns = _spread(d, MAX_COLUMNS)
    most = min(MAX_ROWS, MAX_VALUES // len(columns))
    begin = max(0, (n - most) // 2)
    block = _ranks(rows[begin : begin + most, columns])
    spread = block if n <= most else _ranks(rows[_spread(n, most)[:, None], columns])
    if _is_sorted(block) or _is_sorted(spread):
        return None
    n = len(block)
    place = np.arange(n) - (n - 1) / 2
    next_row = _ratio(np.sum(block[1:] * block[:-1], axis=0), np.sum(block**2, axis=0))
    along = _ratio(place @ spread, np.sqrt(np.sum(place**2) * np.sum(spread**2, axis=0)))
    # Of rows in random order: means -1/n and 0, variances about 1/n. A normal distribution's tail
    # for two looks at each column of two samples; trends may go both ways.
    limit = -ndtri(LEVEL / (8 * len(columns))) / n**0.5
    alike = next_row > max(limit - 1 / n, MIN_CORRELATION)
    shown = alike if alike.any() else np.abs(along) > max(limit, MIN_CORRELATION)
    if not shown.any():
        return None
    values = np.where(shown, next_row if alike.any() else along, 0)
    best = int(np.argmax(np.abs(values)))
    n_columns = int(shown.sum())
    return Trace(int(columns[best]), values[best], bool(alike.any()), n_columns, len(columns))


def _spread(n: int, most: int) -> np.ndarray:
    """All numbers below n, or as many as allowed, evenly spread."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


def _ranks(rows: np.ndarray) -> np.ndarray:
    """Centred ranks of each column, in its middle where equal; 0 where nearly all values are equal.

    Of m rare flags in n rows about m^2 / n are neighbours by chance. Unless these are many, two
    more of them are no sign of order, though their correlation looks like one.
    """
    n = len(rows)
    ranks = np.empty(rows.shape)
    for j, values in enumerate(rows.T):
        order = np.argsort(values)
        ordered = values[order]
        if np.all(ordered[1:] > ordered[:-1]):
            ranks[order, j] = np.arange(n) - (n - 1) / 2
            continue
        ends = np.append(np.flatnonzero(ordered[1:] > ordered[:-1]) + 1, n)
        sizes = np.diff(ends, prepend=0)
        if n - sizes.max() < max(5 * n**0.5, MIN_ROWS):
            ranks[:, j] = 0
        else:
            ranks[order, j] = np.repeat(ends - (n + sizes) / 2, sizes)
    return ranks


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return above / np.where(below > 0, below, 1)


def _is_sorted(ranks: np.ndarray) -> bool:
    """Whether a column goes up, or down, all along the rows."""
    steps = np.diff(ranks, axis=0)
    varies = np.any(ranks != 0, axis=0)
    return bool(np.any(varies & (np.all(steps >= 0, axis=0) | np.all(steps <= 0, axis=0))))
