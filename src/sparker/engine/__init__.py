"""The fit: samples, kernels, losses, widths, scans, gradients, training, batches and their memory.

May import: system. The names below are for those who build on the fit itself.
"""

from sparker.engine.batch import fit, fit_chunks, fit_many
from sparker.engine.config import FitConfig
from sparker.engine.ensemble import (
    Competition,
    Ensemble,
    anomaly_score,
    components,
    independent,
    log_ratio,
    softmax,
)
from sparker.engine.fit import Fit
from sparker.engine.losses import Loss, binary_cross_entropy, mean_squared_error, neyman_pearson
from sparker.engine.sample import TwoSample, as_points, pad, pool, stack, two_sample
from sparker.engine.toys import Toys
from sparker.engine.train import FAMILIES
from sparker.engine.widths import (
    Schedule,
    WidthConfig,
    distance_range,
    geometric,
    linear,
    resolvable_range,
    schedule,
    stairs,
    width_range,
)

__all__ = [
    "FAMILIES",
    "Competition",
    "Ensemble",
    "Fit",
    "FitConfig",
    "Loss",
    "Schedule",
    "Toys",
    "TwoSample",
    "WidthConfig",
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
    "resolvable_range",
    "schedule",
    "softmax",
    "stack",
    "stairs",
    "two_sample",
    "width_range",
]
