"""Does this sample come from the same distribution as that reference, and if not, where?"""

from sparker.batch import Fit, FitConfig, fit, fit_chunks, fit_many
from sparker.ensemble import (
    Competition,
    Ensemble,
    anomaly_score,
    components,
    independent,
    log_ratio,
    softmax,
)
from sparker.losses import Loss, binary_cross_entropy, mean_squared_error, neyman_pearson
from sparker.sample import TwoSample, as_points, pad, pool, stack, two_sample
from sparker.widths import (
    Schedule,
    distance_range,
    geometric,
    linear,
    schedule,
    width_range,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "Competition",
    "Ensemble",
    "Fit",
    "FitConfig",
    "Loss",
    "Schedule",
    "TwoSample",
    "anomaly_score",
    "as_points",
    "binary_cross_entropy",
    "components",
    "distance_range",
    "fit",
    "fit_chunks",
    "fit_many",
    "geometric",
    "independent",
    "linear",
    "log_ratio",
    "mean_squared_error",
    "neyman_pearson",
    "pad",
    "pool",
    "schedule",
    "softmax",
    "stack",
    "two_sample",
    "width_range",
]
