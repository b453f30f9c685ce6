"""What a bet has won: evidence that a stream gets more of some payoff than the reference does.

A *witness* gives every row a payoff v between 0 and 1, and was chosen without the reference rows
that are held back for it. Let m be the mean payoff of a row of the reference's distribution, which
nobody knows. If the stream has the same distribution, then for this very m

    W(m) = average over bets b of the product over rows of the stream of      1 + b (v / m - 1)
    K(m) = average over bets b of the product over rows that were held back of
                                                        1 + b ((1 - v) / (1 - m) - 1)

have mean 1, the first one from row to row, whatever was seen before. The first bets that the stream
gets more than m, the second that the reference gets less. The evidence of the witness is the
smallest product,

    E = min over m of K(m) W(m),

at most that of the true m. So its mean is at most 1 at any moment that one may choose to
look. The reference rows that are held back are used by all witnesses, as often as one likes: each
K has mean 1 by itself, and means add up, however dependent they are.

Payoffs take ``N_LEVELS`` values, so that all that is known of rows is how often each value came:
whole numbers, which neither the order of rows nor their batches change. As functions of m, K rises
and W falls. Between two values of m the product is therefore at least K at the first and W at the
second, and the smallest of these is what is reported: never more than E.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np

from sparker.system.archive import ArraySpec

N_LEVELS = 16

MAX_BET = 0.9
"""A larger bet is all but lost by a single row without a payoff."""

N_MEANS = 96
"""Values of m; between them the smallest product is bounded from below."""

REACH = 15.0
"""How far above the mean of the rows held back m is looked at closely, in standard errors."""


AIM = 6.0
"""Nats."""

TINY = 1e-9


class Terms(NamedTuple):
    """What a bet is about, all of it fixed before it begins."""

    values: Annotated[np.ndarray, ArraySpec(f"{N_LEVELS}", low=0, high=1)]
    """The payoffs, rising."""
    stream_bets: Annotated[np.ndarray, ArraySpec("4", low=0, high=MAX_BET)]
    """The first is 0: a quarter of the money is always kept."""
    reference_bets: Annotated[np.ndarray, ArraySpec("4", low=0, high=MAX_BET)]


class Book(NamedTuple):
    """What is needed to say what has been won, once the rows that were held back were counted."""

    log_k: np.ndarray  # (G,) at the lower end of each interval of m
    log_factors: np.ndarray  # (b, G, L) of a row of the stream, at the upper end


def opened(terms: Terms, held_back: np.ndarray) -> Book:  # counts (L,)
    """The book of a bet, from the counts of the rows that were held back.

    The values of m may depend on them: they only say how closely the minimum is looked at.
    """
    means = _means(terms.values, held_back)  # (G + 1,)
    low, high = means[:-1, None], means[1:, None]
    less = (1 - terms.values) / (1 - low) - 1  # (G, L)
    log_products = np.log1p(terms.reference_bets[:, None, None] * less) @ held_back  # (b, G)
    more = terms.values / high - 1
    return Book(_log_mean_exp(log_products), np.log1p(terms.stream_bets[:, None, None] * more))


def together(books: Sequence[Book]) -> Book:
    """Several in one, each array with one more axis in front."""
    return Book(*(np.stack(arrays) for arrays in zip(*books, strict=True)))


def log_evidence(book: Book, stream: np.ndarray) -> np.ndarray:  # counts (..., L) -> (...)
    """The logarithm of E, or a little less."""
    counts = stream[..., None, :, None].astype(float)
    log_products = np.matmul(book.log_factors, counts)[..., 0]  # (..., b, G)
    return np.asarray(np.min(book.log_k + _log_mean_exp(log_products), -1))


def reference_bets(values: np.ndarray, counts: np.ndarray, n_held_back: int) -> np.ndarray:
    """Bets for K, from the counts of other rows than those that are held back.

    With the third one K gains most where it has to gain about ``AIM`` for the witness to be of use;
    half and twice as much serve witnesses that see much more or less.
    """
    mean, spread = _moments(values, counts)
    best = (1 - mean) * np.sqrt(2 * AIM / n_held_back) / max(spread, TINY)
    return np.minimum(best * np.array([0, 0.5, 1, 2]), MAX_BET)


def stream_bets(
    values: np.ndarray, reference: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, float]:
    """Bets for W, from the counts of other rows: of a reference, and of a stretch of the stream.

    The bet that would have gained most on that stretch, and smaller ones, since what was chosen to
    be large there will be less. Also what it would have gained, in nats.
    """
    mean = max(_moments(values, reference)[0], TINY)
    bets = MAX_BET * 2.0 ** -np.arange(10)
    gains = np.log1p(bets[:, None] * (values / mean - 1)) @ seen
    best = int(np.argmax(gains))
    return bets[best] * np.array([0, 0.25, 0.5, 1]), float(gains[best])


def _moments(values: np.ndarray, counts: np.ndarray) -> tuple[float, float]:
    total = max(float(counts.sum()), 1.0)
    mean = float(values @ counts) / total
    return mean, float(np.sqrt(max((values - mean) ** 2 @ counts, 0) / total))


def _means(values: np.ndarray, counts: np.ndarray) -> np.ndarray:  # (G + 1,) from 0 to 1
    """Close together just above the mean of these rows, which is where the minimum lies."""
    mean, spread = _moments(values, counts)
    n_rows = max(float(counts.sum()), 1.0)
    # A payoff that no row got may still be that of one in so many.
    error = spread / np.sqrt(n_rows) + 1 / n_rows
    n_near = N_MEANS - 16
    near = mean + error * REACH * np.linspace(-0.15, 1, n_near)
    inside = near[(near > 0) & (near < 1)]
    last = inside[-1] if len(inside) else 0.5
    far = last + (1 - last) * np.geomspace(1e-3, 1, N_MEANS - len(inside))
    far[-1] = 1.0  # to the last bit: no m may be left out
    return np.concatenate([[0.0], inside, far])


def _log_mean_exp(logs: np.ndarray) -> np.ndarray:  # (..., b, G) -> (..., G)
    top = logs.max(-2)
    return np.asarray(top + np.log(np.mean(np.exp(logs - top[..., None, :]), -2)))
