"""The public names, each imported when it is first used: ``import sparker`` waits for none."""

from . import embed as embed
from . import engine as engine
from . import nulls as nulls
from . import plots as plots
from . import presets as presets
from . import statistics as statistics
from . import tables as tables
from .anytime import AnytimeMonitor as AnytimeMonitor
from .calibration.combine import cauchy as cauchy
from .calibration.combine import harmonic as harmonic
from .calibration.combine import minimum as minimum
from .calibration.combine import minimum_and_product as minimum_and_product
from .calibration.combine import product as product
from .calibration.sequential import Sequential as Sequential
from .calibration.store import merge as merge
from .config import TestConfig as TestConfig
from .detect import run_toys as run_toys
from .detect import test as test
from .engine.config import FitConfig as FitConfig
from .engine.preprocess import decorrelate as decorrelate
from .engine.preprocess import standardise as standardise
from .engine.preprocess import unchanged as unchanged
from .engine.preprocess import whiten as whiten
from .engine.widths import WidthConfig as WidthConfig
from .estimator import SparKer as SparKer
from .files import load as load
from .generators import closest as closest
from .many import ManyResult as ManyResult
from .many import test_many as test_many
from .monitor import Monitor as Monitor
from .nulls import Permutation as Permutation
from .nulls import Simulator as Simulator
from .nulls import Systematic as Systematic
from .power import power_study as power_study
from .result import TestResult as TestResult
from .system.compile_cache import enable_compilation_cache as enable_compilation_cache
from .tables.errors import DataWarning as DataWarning

__version__: str
