"""Which statistic is meant: by an argument, or by a name on the command line."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np

from sparker import statistics
from sparker.engine.config import FitConfig
from sparker.engine.sample import TwoSample
from sparker.engine.widths import WidthConfig
from sparker.statistics.contract import Statistic
from sparker.statistics.function import EachSample
from sparker.statistics.kernels import KernelStatistic
from sparker.statistics.portfolio import Portfolio

AnyStatistic = Statistic | Callable[[np.random.Generator, TwoSample], Any]


def as_statistic(
    statistic: AnyStatistic | None, config: FitConfig, widths: WidthConfig
) -> Statistic:
    """The statistic a caller means: SparKer if none, a plain function wrapped.

    Kernels whose annealing was asked for are what the paper describes, and stay alone.
    """
    if statistic is None:
        kernels = KernelStatistic(config=config, widths=widths)
        return kernels if widths.annealing is not None else Portfolio(kernels=kernels)
    if isinstance(statistic, Statistic):
        return statistic
    if isinstance(statistic, type):
        raise ValueError(f"statistic is a class, make one of it: {statistic.__name__}()")
    if callable(statistic):
        return EachSample(statistic)
    raise ValueError(
        "statistic must be a function (rng, sample) -> t or a Statistic of sparker.statistics, got "
        f"{statistic!r}"
    )


def named() -> dict[str, type[Statistic]]:
    """All statistics of this package that have a name, whichever module defines them."""
    for module in pkgutil.iter_modules(statistics.__path__):
        importlib.import_module(f"{statistics.__name__}.{module.name}")
    own = [kind for kind in Statistic.__subclasses__() if kind.__module__.startswith(__package__)]
    found = {kind.name: kind for kind in own if kind.name}
    return dict(sorted(found.items()))
