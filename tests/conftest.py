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
