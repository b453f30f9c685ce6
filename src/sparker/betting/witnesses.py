"""What is bet on: functions of a row that pay more for rows of which a stream seems to have more.

Three kinds, each a *score* of a row and payoffs that grow with it.

* kernels: a few Gaussian kernels, where the stream had more rows or fewer than expected; the score
  is SparKer's log-ratio, and the payoff grows with its exponential, the density ratio.
* shift: a direction along which the stream's mean had moved; the payoff is linear in it.
* far: the distance from the middle, known before anything is learned; the payoff is one over the
  share of reference rows that are as far out.
"""

from typing import NamedTuple

import numpy as np

from sparker.betting.wealth import N_LEVELS

FAR, KERNELS, SHIFT = KINDS = ("far", "kernels", "shift")

N_KERNELS = 3

WIDE = 4.0
"""Standard deviations on either side of the mean, over which the payoff of a shift grows."""


class Witness(NamedTuple):
    """A score and its payoffs. What a kind does not need is zero."""

    kind: np.ndarray  # () the place of its kind among KINDS
    centres: np.ndarray  # (M, d) kernels; of a shift, the first is its direction
    amplitudes: np.ndarray  # (M,)
    width: np.ndarray  # ()
    edges: np.ndarray  # (L - 1,) scores at which the next payoff begins
    values: np.ndarray  # (L,) payoffs

    def score(self, points: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
        """Higher for rows that are paid more."""
        kind = KINDS[int(self.kind)]
        if kind == SHIFT:
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
    centres = np.zeros((N_KERNELS, len(direction)))
    centres[0] = direction
    return Witness(
        np.array(KINDS.index(SHIFT)), centres, np.zeros(N_KERNELS), np.array(0.0), edges,
        np.linspace(0, 1, N_LEVELS),
    )  # fmt: skip


def far(reference: np.ndarray) -> Witness:  # (N, d)
    """The witness of rows far from the middle."""
    shares = np.geomspace(0.5, 1 / len(reference), N_LEVELS - 1)
    squared = np.einsum("nd,nd->n", reference, reference)
    edges = np.maximum.accumulate(np.quantile(squared, 1 - shares))
    payoffs = shares[-1] / np.concatenate([[1.0], shares])
    n_features = reference.shape[1]
    return Witness(
        np.array(KINDS.index(FAR)), np.zeros((N_KERNELS, n_features)), np.zeros(N_KERNELS),
        np.array(0.0), edges, payoffs,
    )  # fmt: skip
