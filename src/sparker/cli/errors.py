"""What input, files and machines can do to a command, in one plain line."""

EXPECTED = ValueError, OSError, ImportError, MemoryError, FloatingPointError
"""What they can cause; anything else is a mistake of ours."""


def plain(error: Exception) -> str:
    """What is said of it."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
