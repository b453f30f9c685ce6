"""Compiled programs kept between runs, in the user's cache folder.

JAX keeps them, one file a program, but writes these files in place: a process that reads while
another writes, or one that is killed halfway, leaves half a program. So every process works in a
folder of its own, which begins with links to all finished programs. Its new programs are handed
over, after a look whether they are whole, when toys are done and when the process ends.

A folder that cannot be used, or that others may write to (a program is code), is left alone, and
programs are compiled as if there were none.
"""

import atexit
import functools
import hashlib
import importlib
import os
import platform
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import psutil

from sparker.system.atomic import whole_file
from sparker.system.cache_folder import is_off, keep_last_used, make_private, root

MAX_BYTES = 2**28
"""Above this size, the programs that were not used for longest are removed."""
MIN_SECONDS = 0.1
"""Of compiling; what takes less is not worth a file."""
MAX_AGE = 30 * 86_400.0
"""Seconds after which a folder of a process on another machine counts as left behind."""
OWN = "process-"


class Kept(NamedTuple):
    """Where programs are: those of this process, and those of all."""

    own: Path
    shared: Path


@functools.cache
def keep_compiled() -> Kept | None:
    """Let JAX find and keep compiled programs, from now on; where, if anywhere."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    chosen: str | None = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if is_off() or chosen is not None:
        return None  # whoever set a folder for JAX knows better
    try:
        shared = folder()
        make_private(shared)
        _tidy(shared)
        own = Path(tempfile.mkdtemp(prefix=f"{OWN}{platform.node()}-{os.getpid()}-", dir=shared))
        for program in shared.glob("*-cache"):
            with suppress(OSError):  # removed by another process since
                _link(program, own / program.name)
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
    kept = Kept(own, shared)
    atexit.register(_leave, kept, os.getpid())
    return kept


def folder() -> Path:
    """Where programs for this machine are kept: other processors and versions need others."""
    versions = [metadata.version(name) for name in ("jax", "jaxlib")]
    what = "\n".join([*versions, platform.machine(), platform.python_version(), _processor()])
    return root() / "compiled" / hashlib.sha256(what.encode()).hexdigest()[:16]


def hand_over(kept: Kept | None) -> None:
    """Give the programs that this process has compiled to all others."""
    if kept is None:
        return
    for program in kept.own.glob("*-cache"):
        with suppress(OSError):
            if not (kept.shared / program.name).exists() and is_whole(program):
                _link(program, kept.shared / program.name)


def is_whole(program: Path) -> bool:
    """Whether all of a program was written: it is compressed, which tells."""
    content = program.read_bytes()
    if content.startswith(ZSTANDARD):
        unpack = _zstandard()
        if unpack is None:
            return False
        with suppress(Exception):  # of a library that need not be there
            return bool(unpack(content))
        return False
    with suppress(zlib.error):
        return bool(zlib.decompress(content))
    return False


ZSTANDARD = b"\x28\xb5\x2f\xfd"


def _zstandard() -> Callable[[bytes], bytes] | None:
    """What unpacks programs, if JAX had it to pack them."""
    for name in ("compression.zstd", "zstandard"):
        with suppress(ImportError):
            module = importlib.import_module(name)
            return module.decompress if hasattr(module, "decompress") else None
    return None


def _link(program: Path, name: Path) -> None:
    """Another name for a file; it appears whole, or not at all."""
    try:
        os.link(program, name)
    except FileExistsError:
        return
    except OSError:  # a file system without such links
        with whole_file(name) as file:
            file.write(program.read_bytes())


def _leave(kept: Kept, process: int) -> None:
    """At the end of a process, not of one that was forked from it."""
    if os.getpid() == process:
        hand_over(kept)
        shutil.rmtree(kept.own, ignore_errors=True)


def _tidy(shared: Path) -> None:
    """Remove what killed processes left, and programs beyond the limit."""
    for left in shared.glob(f"{OWN}*"):
        with suppress(OSError, ValueError):
            node, process, _ = left.name.removeprefix(OWN).rsplit("-", 2)
            here = node == platform.node()
            old = time.time() - left.stat().st_mtime > MAX_AGE
            if (here and not psutil.pid_exists(int(process))) or old:
                shutil.rmtree(left, ignore_errors=True)
    keep_last_used(shared.glob("*-cache"), MAX_BYTES)


def _processor() -> str:
    """What the compiler knows of the processor: programs for another one may crash here."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(sorted({line for line in lines if line.startswith(("flags", "Features"))}))
    return platform.processor()
