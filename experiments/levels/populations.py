"""What anomaly-free rows are drawn from, and ways to make rows that differ or belong together."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Draw = Callable[[np.random.Generator, int], np.ndarray]

STEEP = 2.0
"""How far the log of a weight goes to both sides: weights then differ by a factor of e^4 = 55."""


class Population(NamedTuple):
    """Rows, and a number of each row between -1 and 1 that grows with its first feature."""

    draw: Draw
    height: Callable[[np.ndarray], np.ndarray]  # (n, d) -> (n,)
    high: float  # the upper tenth of the first feature, or the upper value, begins here

    def tilted(self, strength: float) -> Draw:
        """Rows with ``exp(strength * height)`` times the density of these, by rejection."""

        def draw(rng: np.random.Generator, n: int) -> np.ndarray:
            found = np.empty((0, self.draw(rng, 1).shape[1]))
            while len(found) < n:
                rows = self.draw(rng, 4 * n + 16)
                chance = np.exp(strength * self.height(rows) - abs(strength))
                found = np.concatenate([found, rows[rng.random(len(rows)) < chance]])
            return found[:n]

        return draw


def _between(low: float, high: float) -> Callable[[np.ndarray], np.ndarray]:
    """The height of a first feature that lies between these values, as a rule."""
    return lambda rows: np.clip((2 * rows[:, 0] - low - high) / (high - low), -1, 1)


def _mixture(rng: np.random.Generator, n: int) -> np.ndarray:  # (n, 64)
    """Two clusters in 64 dimensions, each with correlations of its own."""
    shape = np.random.default_rng(64)
    mixing = shape.normal(size=(2, 64, 64)) / 8
    centre = shape.normal(size=(2, 64))
    which = (rng.random(n) < 0.3).astype(int)
    return centre[which] + np.einsum("nij,nj->ni", mixing[which], rng.normal(size=(n, 64)))


POPULATIONS: dict[str, Population] = {
    "normal": Population(lambda rng, n: rng.normal(size=(n, 1)), _between(-2, 2), 1.28),
    "exponential": Population(lambda rng, n: rng.exponential(size=(n, 1)), _between(0, 4), 2.3),
    "heavy tails": Population(lambda rng, n: rng.standard_t(2, size=(n, 1)), _between(-4, 4), 1.89),
    "binary": Population(
        lambda rng, n: (rng.random((n, 1)) < 0.3).astype(float), _between(0, 1), 0.5
    ),
    "integers": Population(
        lambda rng, n: rng.poisson(2, size=(n, 1)).astype(float), _between(0, 5), 3.5
    ),
    "64-d": Population(_mixture, _between(-3, 3), 1.5),
}


def in_groups(draw: Draw, sizes: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """Rows that belong together: in each group most are the same, as views of one image are."""

    def rows(rng: np.random.Generator) -> np.ndarray:
        centres = np.repeat(draw(rng, len(sizes)), sizes, axis=0)
        own = draw(rng, len(centres))
        return np.where(rng.random((len(centres), 1)) < 0.6, centres, own)

    return rows
