"""Does this sample come from the same distribution as that reference, and if not, where?"""

from typing import TYPE_CHECKING, Any

from sparker import baselines
from sparker.batch import Fit, fit, fit_chunks, fit_many
from sparker.combine import cauchy, minimum, minimum_and_product, product
from sparker.design import FitConfig
from sparker.detect import run_toys, test
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
from sparker.monitor import Monitor
from sparker.nulls import Permutation, Simulator
from sparker.power import power_study
from sparker.preprocess import decorrelate, standardise, unchanged, whiten
from sparker.presets import annealed, paper
from sparker.result import TestResult
from sparker.rows import stream
from sparker.sample import TwoSample, as_points, pad, pool, stack, two_sample
from sparker.sequential import Sequential
from sparker.statistic import KernelStatistic
from sparker.store import merge
from sparker.train import READINGS
from sparker.widths import (
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

if TYPE_CHECKING:
    from sparker.estimator import SparKer

__version__ = "0.1.0.dev0"

__all__ = [
    "READINGS",
    "Competition",
    "Ensemble",
    "Fit",
    "FitConfig",
    "KernelStatistic",
    "Loss",
    "Monitor",
    "Permutation",
    "Schedule",
    "Sequential",
    "Simulator",
    "SparKer",
    "TestResult",
    "TwoSample",
    "WidthConfig",
    "annealed",
    "anomaly_score",
    "as_points",
    "baselines",
    "binary_cross_entropy",
    "cauchy",
    "components",
    "decorrelate",
    "distance_range",
    "fit",
    "fit_chunks",
    "fit_many",
    "geometric",
    "independent",
    "linear",
    "log_ratio",
    "mean_squared_error",
    "merge",
    "minimum",
    "minimum_and_product",
    "neyman_pearson",
    "pad",
    "paper",
    "pool",
    "power_study",
    "product",
    "resolvable_range",
    "run_toys",
    "schedule",
    "softmax",
    "stack",
    "stairs",
    "standardise",
    "stream",
    "test",
    "two_sample",
    "unchanged",
    "whiten",
    "width_range",
]


def __getattr__(name: str) -> Any:
    if name == "SparKer":  # only who asks for it waits for scikit-learn
        from sparker.estimator import SparKer

        return SparKer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
