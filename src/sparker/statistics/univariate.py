"""The classical tests of one feature, by weighted empirical distribution functions.

* Kolmogorov-Smirnov: ``max |F_D - F_R|``.
* Anderson-Darling, of two samples: ``n m / (n + m) * integral (F_D - F_R)^2 / (H (1 - H)) dH`` with
  ``H = (n F_D + m F_R) / (n + m)``, which gives the tails more weight. n and m are effective sizes.
  Pettitt, Biometrika 63, 161 (1976); Scholz and Stephens, JASA 82, 918 (1987).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from sparker.engine.memory import Need
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches
from sparker.statistics.contract import Statistic


class _Steps(NamedTuple):
    """Of B toys: distribution functions after each of N rows in order, and where they count."""

    data: np.ndarray  # (B, N)
    reference: np.ndarray  # (B, N)
    ends: np.ndarray  # (B, N) the last of rows with the same value
    n_data: np.ndarray  # (B, 1) effective
    n_reference: np.ndarray  # (B, 1)


def _steps(batch: TwoSample) -> _Steps:
    x = np.asarray(batch.points)[..., 0]  # (N,) or (B, N)
    weights = [np.asarray(weight, np.float64) for weight in batch[1:]]
    order = np.broadcast_to(np.argsort(x, axis=-1, kind="stable"), weights[0].shape)
    x = np.take_along_axis(np.broadcast_to(x, order.shape), order, 1)
    ends = np.pad(x[:, 1:] != x[:, :-1], [(0, 0), (0, 1)], constant_values=True)
    totals = [weight.sum(1, keepdims=True) for weight in weights]
    reference, data = (
        np.cumsum(np.take_along_axis(weight, order, 1), axis=1) / total
        for weight, total in zip(weights, totals, strict=True)
    )
    n_reference, n_data = (
        total**2 / (weight**2).sum(1, keepdims=True)
        for weight, total in zip(weights, totals, strict=True)
    )
    return _Steps(data, reference, ends, n_data, n_reference)


def _kolmogorov_smirnov(steps: _Steps) -> np.ndarray:  # -> (B,)
    return np.max(np.abs(steps.data - steps.reference) * steps.ends, axis=1)


def _anderson_darling(steps: _Steps) -> np.ndarray:  # -> (B,)
    n, m = steps.n_data, steps.n_reference
    h = (n * steps.data + m * steps.reference) / (n + m)
    # Rows of the same value are one step, as high as all of them: dH from the end before.
    before = np.maximum.accumulate(np.where(steps.ends, h, 0), axis=1)
    dh = h - np.pad(before[:, :-1], [(0, 0), (1, 0)])
    counts = steps.ends & (h > ROUNDING) & (h < 1 - ROUNDING)
    spread = np.where(counts, h * (1 - h), 1)
    terms = np.where(counts, (steps.data - steps.reference) ** 2 / spread * dh, 0)
    return (n * m / (n + m))[:, 0] * terms.sum(1)


ROUNDING = 1e-9
"""H is 1 at the last row up to rounding, where the integrand is 0 / 0 and counts nothing."""


def _prepared(
    name: str, points: np.ndarray, function: Callable[[_Steps], np.ndarray]
) -> PreparedBatches:
    n_features = np.asarray(points).shape[1]
    if n_features != 1:
        raise ValueError(
            f"{name} compares one feature, these samples have {n_features}; choose a column, or "
            "another statistic"
        )
    return PreparedBatches(
        settings={"distribution_functions": name},
        start=lambda seed, chunk: lambda numbers, batch: function(_steps(batch))[:, None],
        room=lambda sample: Need(0, 120 * sample.points.shape[-2]),
    )


@dataclass(frozen=True, kw_only=True)
class KolmogorovSmirnov(Statistic):
    """The largest difference of the distribution functions of one feature."""

    name: ClassVar[str] = "ks"

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Refuse more than one feature."""
        return _prepared("Kolmogorov-Smirnov", points, _kolmogorov_smirnov)


@dataclass(frozen=True, kw_only=True)
class AndersonDarling(Statistic):
    """The squared difference of the distribution functions of one feature, tails weighted up."""

    name: ClassVar[str] = "anderson-darling"

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Refuse more than one feature."""
        return _prepared("Anderson-Darling", points, _anderson_darling)
