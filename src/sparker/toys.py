"""The paper's benchmarks: an exponential with a rare signal on top, and four Gaussians."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

EXPECTED = 2000
N_REFERENCE = 20_000


class Signal(NamedTuple):
    """Where a signal's events fall, and how many are expected for each background event."""

    draw: Callable[[np.random.Generator, int], np.ndarray]
    fraction: float


def bump(location: float, fraction: float) -> Signal:
    """A Gaussian peak of width 0.16."""
    return Signal(lambda rng, n: rng.normal(location, 0.16, n), fraction)


SIGNALS_1D = {
    "bulk": bump(1.6, 4.5e-2),
    "tail": bump(6.4, 5e-3),
    "extreme tail": bump(9.0, 2.5e-3),
    # Paper: the table prints 4.5 * 0^-2 for the excess; 4.5e-2 is meant.
    "excess": Signal(lambda rng, n: rng.gamma(3.0, size=n), 4.5e-2),
}


def exponential(
    rng: np.random.Generator, signal: Signal | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw reference (20,000 rows), data (2,000 expected), and which data rows are signal.

    Background and signal counts fluctuate as Poisson; without a signal the data are anomaly-free.
    """
    reference = rng.exponential(size=N_REFERENCE)
    background = rng.exponential(size=rng.poisson(EXPECTED))
    events = np.empty(0)
    if signal is not None:
        events = signal.draw(rng, rng.poisson(signal.fraction * EXPECTED))
    is_signal = np.repeat([False, True], [len(background), len(events)])
    return reference[:, None], np.concatenate([background, events])[:, None], is_signal


def four_gaussians(rng: np.random.Generator, n: int) -> np.ndarray:  # (n, 2)
    """The background of the paper's two-dimensional benchmark.

    Four clusters of width 2 at the corners of a square of side 16.
    """
    corners = rng.choice([-8.0, 8.0], size=(n, 2))
    return corners + rng.normal(0, 2, size=(n, 2))
