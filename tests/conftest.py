"""Fixtures that several test files share."""

import atexit
import os
import shutil
import tempfile

import jax
import pytest

# Programs compiled once serve all test files and the commands they start: half of the time.
_compiled = tempfile.mkdtemp(prefix="sparker-compiled-")
atexit.register(shutil.rmtree, _compiled, ignore_errors=True)
for _name, _value in {
    "jax_compilation_cache_dir": _compiled,
    "jax_persistent_cache_min_compile_time_secs": 0.3,
}.items():
    os.environ[_name.upper()] = str(_value)
    jax.config.update(_name, _value)

# The tests' expectations (chunk sizes, bits) are a CPU's, also on a machine with a GPU.
jax.config.update("jax_platforms", "cpu")


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
