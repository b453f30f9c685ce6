"""Fixtures that several test files share."""

import jax
import pytest


@pytest.fixture
def float64():
    """Double precision in JAX for the length of one test; it is off by default."""
    with jax.enable_x64(True):
        yield
