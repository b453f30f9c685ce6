"""The paper's benchmarks, in one and two dimensions, and what a test that knew the signal could do.

A ``Benchmark`` draws anomaly-free references and data with a rare signal on top, or with a part of
the distribution distorted. Counts fluctuate as Poisson. The oracle is the likelihood ratio of the
true densities: no test can have more power.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import expon, gamma, norm

Draw = Callable[[np.random.Generator, int], np.ndarray]  # (n, d)
LogDensity = Callable[[np.ndarray], np.ndarray]  # (n, d) -> (n,)

EXPECTED = 2000
N_REFERENCE = 20_000


class Signal(NamedTuple):
    """What is added to the background, or takes its place where ``fraction`` is None."""

    draw: Draw
    log_density: LogDensity
    fraction: float | None
    """Signal events expected for each background event."""


@dataclass(frozen=True)
class Benchmark:
    """A background and the signals to be found in it."""

    draw_background: Draw
    log_density: LogDensity
    signals: dict[str, Signal]

    def draw(
        self,
        rng: np.random.Generator,
        signal: str | None = None,
        *,
        expected: int = EXPECTED,
        n_reference: int = N_REFERENCE,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw reference, data, and which data rows are signal; without a signal, none are.

        Of a distorted distribution every row counts as signal.
        """
        reference = self.draw_background(rng, n_reference)
        n_background = rng.poisson(expected)
        if signal is None:
            return reference, self.draw_background(rng, n_background), np.zeros(n_background, bool)
        chosen = self.signals[signal]
        if chosen.fraction is None:
            return reference, chosen.draw(rng, n_background), np.ones(n_background, bool)
        background = self.draw_background(rng, n_background)
        events = chosen.draw(rng, rng.poisson(chosen.fraction * expected))
        data = np.concatenate([background, events])
        return reference, data, np.arange(len(data)) >= n_background

    def oracle(self, data: np.ndarray, signal: str, *, expected: int = EXPECTED) -> float:
        """Twice the log-likelihood ratio of the true densities, numbers of events included."""
        chosen = self.signals[signal]
        ratio = chosen.log_density(data) - self.log_density(data)
        if chosen.fraction is None:
            return float(2 * np.sum(ratio))
        added = np.logaddexp(0, np.log(chosen.fraction) + ratio)
        return float(2 * (np.sum(added) - chosen.fraction * expected))


def _one(distribution: object, fraction: float) -> Signal:
    """A signal in one dimension, from a frozen distribution of SciPy."""
    return Signal(
        lambda rng, n: distribution.rvs(size=(n, 1), random_state=rng),  # type: ignore[attr-defined]
        lambda x: distribution.logpdf(x[:, 0]),  # type: ignore[attr-defined]
        fraction,
    )


exponential = Benchmark(
    lambda rng, n: rng.exponential(size=(n, 1)),
    lambda x: expon.logpdf(x[:, 0]),
    {
        "bulk": _one(norm(1.6, 0.16), 4.5e-2),
        "tail": _one(norm(6.4, 0.16), 5e-3),
        "extreme tail": _one(norm(9.0, 0.16), 2.5e-3),
        # Paper: the table prints 4.5 * 0^-2 for the excess; 4.5e-2 is meant.
        "excess": _one(gamma(3), 4.5e-2),
    },
)
"""One dimension: a unit exponential."""


CORNERS = np.array([[-8.0, -8.0], [-8.0, 8.0], [8.0, -8.0], [8.0, 8.0]])
SPREAD = 2.0


def _gaussian(centre: np.ndarray, spread: float) -> LogDensity:
    return lambda x: np.sum(norm.logpdf(x, centre, spread), 1)


def _clusters(first_spread: float) -> tuple[Draw, LogDensity]:
    """Four clusters at the corners of a square, the first of them with a spread of its own."""
    spreads = np.array([first_spread, SPREAD, SPREAD, SPREAD])

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        which = rng.integers(4, size=n)
        return CORNERS[which] + spreads[which, None] * rng.normal(size=(n, 2))

    each = [_gaussian(corner, spread) for corner, spread in zip(CORNERS, spreads, strict=True)]
    return draw, lambda x: logsumexp([density(x) for density in each], axis=0) - np.log(4)


def _cluster(centre: float, fraction: float) -> Signal:
    return Signal(
        lambda rng, n: rng.normal(centre, 1, size=(n, 2)),
        _gaussian(np.full(2, centre), 1.0),
        fraction,
    )


four_gaussians = Benchmark(
    *_clusters(SPREAD),
    {
        "bulk": _cluster(-6, 1e-2),
        "extreme tail": _cluster(0, 1e-3),
        "smearing": Signal(*_clusters(2.2), None),
        "squeezing": Signal(*_clusters(1.8), None),
    },
)
"""Two dimensions: four Gaussian clusters at the corners of a square."""
