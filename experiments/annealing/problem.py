"""The paper's one-dimensional background of its theory section: unit Gaussians at -3 and 3."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from sparker.engine import TwoSample, two_sample

CENTRES = (-3.0, 3.0)


def without_fluctuations(anomalies: Sequence[float], expected: int) -> TwoSample:
    """Reference and data at the same quantiles of the background, and single anomalous points.

    The limit of infinite statistics: what the background adds to the loss cancels exactly.
    """
    n = expected // len(CENTRES)
    quantiles = norm.ppf((np.arange(n) + 0.5) / n)
    background = np.concatenate([quantiles + centre for centre in CENTRES])
    points = np.concatenate([background, anomalies])[:, None]
    is_background = np.arange(len(points)) < len(background)
    return TwoSample(points, is_background.astype(float), np.ones(len(points)))


def repeated(sample: TwoSample, n: int) -> TwoSample:
    """The same sample n times, to be fitted from n starts."""
    reference, data = (np.tile(weight, (n, 1)) for weight in sample[1:])
    return TwoSample(sample.points, reference, data)


def with_bump(
    rng: np.random.Generator, expected: int, n_reference: int, centre: float, width: float, n: int
) -> TwoSample:
    """A random sample of the background, and n data events of a narrow Gaussian on top."""

    def background(size: int) -> np.ndarray:
        return rng.choice(CENTRES, size) + rng.normal(size=size)

    data = np.concatenate([background(expected), rng.normal(centre, width, size=n)])
    return two_sample(background(n_reference)[:, None], data[:, None], expected=expected)
