"""What is bet on: functions of a row that pay more for rows of which a stream seems to have more.

Four kinds, each a *score* of a row and payoffs that grow with it.

* kernels: a few Gaussian kernels, where the stream had more rows or fewer than expected; the score
  is SparKer's log-ratio, and the payoff grows with its exponential, the density ratio.
* shift: a direction along which the stream's mean had moved; the payoff is linear in it.
* far: the distance from the middle; the payoff is one over the share of reference rows that are as
  far out.
* edge: one column, upwards or downwards, with the same payoff.
"""

from typing import Annotated, NamedTuple

import numpy as np

from sparker.betting.wealth import N_LEVELS
from sparker.system.archive import ArraySpec

FAR, KERNELS, SHIFT, EDGE = KINDS = ("far", "kernels", "shift", "edge")

N_KERNELS = 3

WIDE = 4.0
"""Standard deviations on either side of the mean, over which the payoff of a shift grows."""


class Witness(NamedTuple):
    """A score and its payoffs. What a kind does not need is zero."""

    kind: Annotated[np.ndarray, ArraySpec("", kinds="iu", low=0, high=len(KINDS) - 1)]
    """The place of its kind among KINDS."""
    centres: Annotated[np.ndarray, ArraySpec(f"{N_KERNELS} d")]
    """Kernels; of a shift or an edge, the first is its direction."""
    amplitudes: Annotated[np.ndarray, ArraySpec(f"{N_KERNELS}")]
    width: Annotated[np.ndarray, ArraySpec("")]
    edges: Annotated[np.ndarray, ArraySpec(f"{N_LEVELS - 1}")]
    """Scores at which the next payoff begins."""
    values: Annotated[np.ndarray, ArraySpec(f"{N_LEVELS}", low=0, high=1)]
    """Payoffs."""

    def score(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
        """Higher for rows that are paid more."""
        kind = KINDS[int(self.kind)]
        if kind in (SHIFT, EDGE):
            return points @ self.centres[0]
        if kind == FAR:
            return np.einsum("nd,nd->n", points, points)
        return log_ratio(points, self.centres, self.amplitudes, float(self.width))

    def levels(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
        """Which payoff each row gets."""
        return np.searchsorted(self.edges, self.score(points), side="right")

    def counts(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (L,)
        """How many of the rows get each payoff."""
        return np.bincount(self.levels(points), minlength=N_LEVELS)

    def payoffs(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
        """What each row gets."""
        return self.values[self.levels(points)]


def log_ratio(
    points: np.ndarray, centres: np.ndarray, amplitudes: np.ndarray, width: float
) -> np.ndarray:  # (N,)
    """SparKer's ``f = sum_i a_i p_i k_i`` with competing kernels; see ``engine.ensemble``."""
    squared = ((points[:, None, :] - centres) ** 2).sum(-1)
    k = np.exp(-squared / (2 * width**2))
    k[:, amplitudes == 0] = 0
    return np.asarray((k**2 @ amplitudes) / (k.sum(1) + np.finfo(float).tiny))


def kernels(centres: np.ndarray, amplitudes: np.ndarray, width: float) -> Witness:
    """A witness of at most ``N_KERNELS`` kernels."""
    n, d = centres.shape
    mu, a = np.zeros((N_KERNELS, d)), np.zeros(N_KERNELS)
    mu[:n], a[:n] = centres, amplitudes
    low, high = min(a.min(), 0.0), max(a.max(), 0.0)
    edges = np.linspace(low, high, N_LEVELS + 1)[1:-1]
    payoffs = np.exp(np.linspace(low, high, N_LEVELS) - high)
    return Witness(np.array(KINDS.index(KERNELS)), mu, a, np.array(width), edges, payoffs)


def shift(direction: np.ndarray, reference: np.ndarray) -> Witness:  # (d,), (N, d)
    """A witness of rows further in a direction."""
    along = reference @ direction
    mean, spread = along.mean(), max(along.std(), np.finfo(float).tiny)
    edges = mean + WIDE * spread * np.linspace(-1, 1, N_LEVELS + 1)[1:-1]
    return _along(SHIFT, direction, edges, np.linspace(0, 1, N_LEVELS))


def far(reference: np.ndarray) -> Witness:  # (N, d)
    """The witness of rows far from the middle."""
    squared = np.einsum("nd,nd->n", reference, reference)
    return _along(FAR, np.zeros(reference.shape[1]), *_tail(squared))


def edge(direction: np.ndarray, reference: np.ndarray) -> Witness:  # (d,), (N, d)
    """A witness of rows beyond most others in a direction."""
    return _along(EDGE, direction, *_tail(reference @ direction))


def _tail(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (L - 1,), (L,)
    """Scores that fewer and fewer rows exceed, and what is paid beyond each."""
    shares = np.geomspace(0.5, 1 / len(score), N_LEVELS - 1)
    edges = np.quantile(score, 1 - shares)
    return edges, shares[-1] / np.concatenate([[1.0], shares])


def _along(kind: str, direction: np.ndarray, edges: np.ndarray, values: np.ndarray) -> Witness:
    centres = np.zeros((N_KERNELS, len(direction)))
    centres[0] = direction
    return Witness(
        np.array(KINDS.index(kind)), centres, np.zeros(N_KERNELS), np.array(0.0), edges, values
    )
