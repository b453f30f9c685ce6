"""Other two-sample tests under the same contract, calibration and command line as SparKer.

Each is a ``sparker.statistic.Statistic``: ``sparker.test(..., statistic=MMD())``, or
``power_study``; ``docs/baselines.md`` has formulas, references and costs.
"""

from sparker.baselines.classifier import ClassifierTwoSample
from sparker.baselines.mmd import MMD
from sparker.baselines.moments import Frechet, Mahalanobis
from sparker.baselines.nplm import NPLM
from sparker.baselines.univariate import AndersonDarling, KolmogorovSmirnov

__all__ = [
    "BASELINES",
    "MMD",
    "NPLM",
    "AndersonDarling",
    "ClassifierTwoSample",
    "Frechet",
    "KolmogorovSmirnov",
    "Mahalanobis",
]

BASELINES: dict[str, type] = {
    "nplm": NPLM,
    "mmd": MMD,
    "mahalanobis": Mahalanobis,
    "frechet": Frechet,
    "c2st": ClassifierTwoSample,
    "ks": KolmogorovSmirnov,
    "anderson-darling": AndersonDarling,
}
"""By the names that the command line knows them by."""
