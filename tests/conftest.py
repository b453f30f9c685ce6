"""Fixtures that several test files share."""

import jax
import pytest

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
