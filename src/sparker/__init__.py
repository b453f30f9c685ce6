"""Does this sample come from the same distribution as that reference, and if not, where?"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparker import embed, engine, nulls, plots, presets, statistics, tables
    from sparker.anytime import AnytimeMonitor
    from sparker.calibration.combine import (
        cauchy,
        harmonic,
        minimum,
        minimum_and_product,
        product,
    )
    from sparker.calibration.sequential import Sequential
    from sparker.calibration.store import merge
    from sparker.config import TestConfig
    from sparker.detect import run_toys, test
    from sparker.engine.config import FitConfig
    from sparker.engine.preprocess import decorrelate, standardise, unchanged, whiten
    from sparker.engine.widths import WidthConfig
    from sparker.estimator import SparKer
    from sparker.files import load
    from sparker.generators import closest
    from sparker.many import ManyResult, test_many
    from sparker.monitor import Monitor
    from sparker.nulls import Permutation, Simulator, Systematic
    from sparker.power import power_study
    from sparker.result import TestResult
    from sparker.tables.errors import DataWarning

__version__ = "0.1.0"

__all__ = [
    "AnytimeMonitor",
    "DataWarning",
    "FitConfig",
    "ManyResult",
    "Monitor",
    "Permutation",
    "Sequential",
    "Simulator",
    "SparKer",
    "Systematic",
    "TestConfig",
    "TestResult",
    "WidthConfig",
    "cauchy",
    "closest",
    "decorrelate",
    "embed",
    "engine",
    "harmonic",
    "load",
    "merge",
    "minimum",
    "minimum_and_product",
    "nulls",
    "plots",
    "power_study",
    "presets",
    "product",
    "run_toys",
    "standardise",
    "statistics",
    "tables",
    "test",
    "test_many",
    "unchanged",
    "whiten",
]

_HOMES = {
    "anytime": ("AnytimeMonitor",),
    "calibration.combine": ("cauchy", "harmonic", "minimum", "minimum_and_product", "product"),
    "calibration.sequential": ("Sequential",),
    "calibration.store": ("merge",),
    "config": ("TestConfig",),
    "detect": ("run_toys", "test"),
    "engine.config": ("FitConfig",),
    "engine.preprocess": ("decorrelate", "standardise", "unchanged", "whiten"),
    "engine.widths": ("WidthConfig",),
    "estimator": ("SparKer",),
    "files": ("load",),
    "generators": ("closest",),
    "many": ("ManyResult", "test_many"),
    "monitor": ("Monitor",),
    "nulls": ("Permutation", "Simulator", "Systematic"),
    "power": ("power_study",),
    "result": ("TestResult",),
    "tables.errors": ("DataWarning",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A name is imported when it is first used: ``import sparker`` does not wait for JAX."""
    if name in _HOME:
        found = getattr(importlib.import_module(f"sparker.{_HOME[name]}"), name)
    elif not name.startswith("_") and importlib.util.find_spec(f"sparker.{name}") is not None:
        found = importlib.import_module(f"sparker.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
