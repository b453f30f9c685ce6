"""What an injection study found: how often anomalies of each size are seen."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparker.calibration.pvalues import CONFIDENCE
from sparker.system.numbers import finite, span


class Power(NamedTuple):
    """The fate of the samples with one fraction of anomalies."""

    fraction: float
    p_values: np.ndarray  # (n_tests,)
    power: float
    """Share of the samples found at alpha; at a fraction of 0 this is the false-positive rate."""
    interval: tuple[float, float]
    """Its exact 95 % interval."""
    median_significance: float
    """Of the tests' p-values; at most what so many toys can show."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PowerStudy:
    """Power against the fraction of anomalies, at one alpha."""

    alpha: float
    points: tuple[Power, ...]
    settings: dict[str, Any]
    versions: dict[str, str]

    def __repr__(self) -> str:
        powers = ", ".join(f"{point.power:.2f} at {point.fraction:g}" for point in self.points)
        return f"<PowerStudy at alpha = {self.alpha:g}: {powers}>"

    def summary(self) -> str:
        """A line for each fraction."""
        lines = [f"power at alpha = {self.alpha:g}, {self.settings['n_toys']} toys a test"]
        for point in self.points:
            low, high = point.interval
            lines.append(
                f"fraction {point.fraction:<8.4g} power {point.power:.3f} "
                f"({low:.3f} to {high:.3f} of {len(point.p_values)} tests), median significance "
                + (f"{z:.2f}" if (z := point.median_significance) > -np.inf else "none")
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The study as JSON knows it."""
        return {
            "alpha": self.alpha,
            "points": [
                {
                    "fraction": point.fraction,
                    "power": point.power,
                    "interval": span(point.interval, CONFIDENCE),
                    "n_tests": len(point.p_values),
                    "median_significance": finite(point.median_significance),
                    "p_values": point.p_values.tolist(),
                }
                for point in self.points
            ],
            "settings": self.settings,
            "versions": self.versions,
        }
