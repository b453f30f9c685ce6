"""The compiled programs that a process holds: JAX makes one for every new shape and drops none.

A process that tests samples of ever other sizes would grow by some sixty megabytes with each. So
all programs are dropped after many; those that are needed again come from the cache on disk.
"""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sparker.system.compile_cache import hand_over, keep_compiled

MAX_PROGRAMS = 300
"""The default test needs about twenty for a new shape; a program takes about three megabytes."""

COMPILED = "/jax/core/compile/backend_compile_duration"


class _Held:
    """How many programs there are, and in how many threads they are in use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_programs = self.n_users = 0

    def heard(self, event: str, *_: object, **__: object) -> None:
        self.n_programs += event == COMPILED


@functools.cache
def _held() -> _Held:
    """Counted from the first use on."""
    import jax.monitoring

    held = _Held()
    jax.monitoring.register_event_duration_secs_listener(held.heard)
    return held


@contextmanager
def compiled_programs() -> Iterator[None]:
    """Within it, programs are found on disk and kept there; after it, too many are dropped."""
    import jax

    kept, held = keep_compiled(), _held()
    with held.lock:
        held.n_users += 1
    try:
        yield
    finally:
        hand_over(kept)
        with held.lock:
            held.n_users -= 1
            if held.n_users == 0 and held.n_programs > MAX_PROGRAMS:
                jax.clear_caches()  # type: ignore[no-untyped-call]
                held.n_programs = 0
