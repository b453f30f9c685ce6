"""Compiled programs kept between runs, in the user's cache folder.

JAX keeps them, one file a program, but writes these files in place: a process that reads while
another writes, or one that is killed halfway, leaves half a program. So every process works in a
folder of its own, which begins with links to all finished programs, and hands its new ones over
when it ends, each by renaming it, which is all or nothing.

``SPARKER_CACHE`` names another folder, or is ``off``. A folder that cannot be used, or that others
may write to (a program is code), is left alone, and programs are compiled as if there were none.
"""

import atexit
import functools
import hashlib
import os
import platform
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from platformdirs import user_cache_path

VARIABLE = "SPARKER_CACHE"
MAX_BYTES = 2**30
"""Programs beyond this are dropped, those first that were not used for longest."""
MIN_SECONDS = 0.1
"""Of compiling; what takes less is not worth a file."""
MAX_AGE = 86_400.0
"""Seconds after which what a killed process left behind is removed."""
OWN = "process-"


@functools.cache
def keep_compiled() -> Path | None:
    """Let JAX find and keep compiled programs, from now on; the folder, if there is one."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    chosen: str | None = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if os.environ.get(VARIABLE) == "off" or chosen is not None:
        return None  # whoever set a folder for JAX knows better
    try:
        shared = folder()
        shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(shared)
        own = Path(tempfile.mkdtemp(prefix=OWN, dir=shared))
        _tidy(shared)
        for program in shared.glob("*-cache"):
            with suppress(OSError):  # dropped by another process since
                os.link(program, own / program.name)
    except OSError:
        return None
    compilation_cache.set_cache_dir(str(own))
    compilation_cache.reset_cache()  # the folder counts from here on, whatever was compiled before
    for name, value in (
        ("jax_persistent_cache_min_compile_time_secs", MIN_SECONDS),
        ("jax_persistent_cache_min_entry_size_bytes", -1),
        ("jax_persistent_cache_enable_xla_caches", "none"),  # which would know the folder's name
    ):
        jax.config.update(name, value)  # type: ignore[no-untyped-call]
    atexit.register(hand_over, own, shared, os.getpid())
    return shared


def folder() -> Path:
    """Where programs for this machine are kept: other processors and versions need others."""
    given = os.environ.get(VARIABLE)
    root = Path(given) if given else user_cache_path("sparker")
    versions = [metadata.version(name) for name in ("jax", "jaxlib")]
    what = "\n".join([*versions, platform.machine(), platform.python_version(), _processor()])
    return root / "compiled" / hashlib.sha256(what.encode()).hexdigest()[:16]


def hand_over(own: Path, shared: Path, process: int) -> None:
    """Give the programs that this process compiled to all others."""
    if os.getpid() != process:
        return  # a fork, whose parent is still at work
    for program in own.glob("*-cache"):
        with suppress(OSError):
            if program.stat().st_nlink == 1:  # new, and whole: nothing is being compiled any more
                program.replace(shared / program.name)
    shutil.rmtree(own, ignore_errors=True)


def _tidy(shared: Path) -> None:
    """Remove what killed processes left, and the oldest programs beyond the limit."""
    now = time.time()
    for left in shared.glob(f"{OWN}*"):
        with suppress(OSError):
            if now - left.stat().st_mtime > MAX_AGE:
                shutil.rmtree(left, ignore_errors=True)
    known = []
    for program in shared.glob("*-cache"):
        with suppress(OSError):
            known.append((program.stat().st_atime, program.stat().st_size, program))
    total = 0
    for _, size, program in sorted(known, reverse=True):
        total += size
        if total > MAX_BYTES:
            with suppress(OSError):
                program.unlink()


def _check_private(path: Path) -> None:
    """Refuse a folder that others could put programs into."""
    found = path.stat()
    own = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    if not own or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others may write to {path}")


def _processor() -> str:
    """What the compiler knows of the processor: programs for another one may crash here."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(("flags", "Features"))}))
    return platform.processor()
