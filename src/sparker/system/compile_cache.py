"""Compiled programs kept on disk, by JAX's own persistent cache."""

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path

from sparker.system.cache_folder import keep_last_used, private_folder

MAX_BYTES = 2**28
"""Above this size, the programs that were not used for longest are removed."""
MIN_SECONDS = 0.1
"""Of compiling; what takes less is not worth a file."""


def enable_compilation_cache(folder: str | os.PathLike[str]) -> Path:
    """Keep compiled programs in a folder, for later processes: JAX's persistent compilation cache.

    Compiling takes 2 to 5 s for each new shape of samples. This changes the configuration of JAX
    for the whole process, programs of others included: ``jax_compilation_cache_dir``,
    ``jax_persistent_cache_min_compile_time_secs`` (0.1) and
    ``jax_persistent_cache_enable_xla_caches`` (none). Nothing else in sparker changes it; the
    command line calls this for its own process. Programs that were not used for longest are
    removed beyond 256 MiB, by the next call. JAX writes them in place: one that a killed process
    left half written costs a warning, and is compiled again.

    Args:
        folder: Made if it is not there. Programs are code, and whoever may write here runs code as
            you: the folder and all folders above it must be writable by you (or root) alone.

    Returns:
        The folder inside it for machines with this processor: programs for another one may crash.

    Raises:
        PermissionError: If others may write to the folder or to one above it.

    Example:
        >>> import sparker
        >>> sparker.enable_compilation_cache("~/.cache/programs")  # doctest: +SKIP
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    own = private_folder(private_folder(folder) / hashlib.sha256(_processor()).hexdigest()[:16])
    keep_last_used(own.glob("*-cache"), MAX_BYTES)
    for name, value in (
        ("jax_compilation_cache_dir", str(own)),
        ("jax_persistent_cache_min_compile_time_secs", MIN_SECONDS),
        ("jax_persistent_cache_enable_xla_caches", "none"),  # which would grow without a limit
    ):
        jax.config.update(name, value)  # type: ignore[no-untyped-call]
    compilation_cache.reset_cache()  # the folder counts from here on, whatever was compiled before
    return own


def _processor() -> bytes:
    """What the compiler knows of the processor."""
    known = [platform.machine(), platform.processor()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        known += sorted({line for line in lines if line.startswith(("flags", "Features"))})
    return "\n".join(known).encode()
