"""What input, files and machines can do to a command, in one plain line."""

import os
import sys

EXPECTED = ValueError, OSError, ImportError, MemoryError, FloatingPointError
"""What they can cause; anything else is a mistake of ours, or of the machine's devices."""


def plain(error: Exception) -> str:
    """What is said of it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return str(error) or "memory is full"
    return str(error) or type(error).__name__


def explained(error: Exception) -> str | None:
    """What is said of an error that we did not make; None for a mistake of ours."""
    if isinstance(error, EXPECTED):
        return plain(error)
    if "jax" not in sys.modules:
        return None
    if problem := no_device():
        return problem
    from sparker.engine.memory import is_out_of_memory

    full = "the device's memory is full; take fewer rows or columns, or --device cpu"
    return full if is_out_of_memory(error) else None


def no_device() -> str | None:
    """That JAX has nothing to run on; it raises whatever it stumbles over."""
    import jax

    try:
        jax.devices()
    except Exception as error:
        wanted = os.environ.get("JAX_PLATFORMS", "")
        reason = (str(error).splitlines() or ["it finds none"])[0]
        return (
            f"JAX has no device to run on ({reason}), while JAX_PLATFORMS is {wanted!r}; unset it, "
            'or set it to cpu, or for a GPU pip install "jax[cuda13]"'
        )
    return None
