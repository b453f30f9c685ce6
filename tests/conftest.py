"""Fixtures that several test files share."""

import atexit
import os
import shutil
import tempfile

import jax
import jaxlib
import pytest

# Nearly all the time goes into compiling. XLA's older way to write code for a CPU, with less effort
# and in one thread, since other files keep the other cores busy, takes half of it. Programs are
# then slower and differ in the last digits. XLA_FLAGS= in front of the command tests what users
# run. (An XLA that does not know a flag stops, hence the version.)
QUICK_TO_COMPILE = (
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_backend_optimization_level=1",
    "--xla_cpu_parallel_codegen_split_count=1",
)
if jaxlib.__version__.startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", " ".join(QUICK_TO_COMPILE))

# Programs compiled once serve all test files, their processes and the commands they start. The
# first process, from which the others have it, makes the folder.
CACHE = "JAX_COMPILATION_CACHE_DIR"
# A worker has a core of its own: threads of two workers that wait for each other's cores take ten
# times as long. Workers have it from the first process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
if CACHE not in os.environ:
    os.environ[CACHE] = tempfile.mkdtemp(prefix="sparker-compiled-")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    atexit.register(shutil.rmtree, os.environ[CACHE], ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", os.environ[CACHE])
jax.config.update(
    "jax_persistent_cache_min_compile_time_secs",
    float(os.environ.get("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", 1)),
)

# The tests' expectations (chunk sizes, bits) are a CPU's, also on a machine with a GPU.
jax.config.update("jax_platforms", "cpu")


LONGEST = (
    *("cluster", "report", "result", "scan", "store", "baselines", "cli", "batch"),
    *("nulls", "estimator", "levels", "power", "plots", "memory", "pvalues", "reference_fit"),
    *("terminal", "insight", "monitor", "watch", "compile_cache", "robustness", "experiments"),
    *("columns", "any_table", "widths", "archives", "outputs", "poisoned_files", "site"),
    *("many", "systematics", "anytime"),
)
"""Files that begin first, so that no long one is left to a single process in the end."""


def pytest_configure(config):
    """Let files be run in the order of their tests, not of how many tests they have."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """Put the longest first."""
    order = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture
def float64():
    """Double precision in JAX for the length of one test; it is off by default."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def _forget_compiled_programs():
    """Free them: hundreds at once exceed the memory mappings that a Linux process may have."""
    yield
    jax.clear_caches()
