"""What a test ranks: the contract, SparKer's own statistic, other two-sample tests.

May import: engine, system. ``docs/baselines.md`` has formulas, references and costs.
"""

from sparker.statistics.classifier import ClassifierTwoSample
from sparker.statistics.contract import Component, Statistic
from sparker.statistics.edges import Edges
from sparker.statistics.kernels import KernelStatistic
from sparker.statistics.mmd import MMD
from sparker.statistics.moments import Frechet, Mahalanobis
from sparker.statistics.neighbours import Neighbours
from sparker.statistics.nplm import NPLM
from sparker.statistics.portfolio import Portfolio
from sparker.statistics.shifts import Shifts
from sparker.statistics.univariate import AndersonDarling, KolmogorovSmirnov

__all__ = [
    "MMD",
    "NPLM",
    "AndersonDarling",
    "ClassifierTwoSample",
    "Component",
    "Edges",
    "Frechet",
    "KernelStatistic",
    "KolmogorovSmirnov",
    "Mahalanobis",
    "Neighbours",
    "Portfolio",
    "Shifts",
    "Statistic",
]
