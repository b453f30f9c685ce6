"""How many events too many, or missing, beyond what anomaly-free toys show."""

from typing import NamedTuple

import numpy as np


class Effect(NamedTuple):
    """A number of events, with the range that toys allow for it."""

    events: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.events:.1f} ({self.low:.1f} to {self.high:.1f})"


def effect_of(observed: float, null: np.ndarray) -> Effect:
    """What the data show beyond anomaly-free toys.

    Kernels find a few events too many in any sample: they look for them. The estimate subtracts
    what they find in the median toy, the low end what they find in all but 2.5 % of them. But
    kernels that are busy with an anomaly find less elsewhere, so the high end subtracts nothing,
    and allows for the data fluctuating low as much as all but 2.5 % of the toys do.
    """
    null = null[np.isfinite(null)]
    if not len(null):
        return Effect(float("nan"), float("nan"), float("nan"))
    low, middle, high = np.quantile(null, [0.025, 0.5, 0.975])
    events, least = (max(0.0, float(observed - toys)) for toys in (middle, high))
    return Effect(events, least, float(observed + middle - low))
