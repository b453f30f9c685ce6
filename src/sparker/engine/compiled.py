"""``jax.jit`` as all of sparker uses it, and a limit on the programs that a process holds.

JAX compiles a program for every new shape and drops none. A process that tests samples of ever
other sizes would grow by some sixty megabytes with each.
"""

from collections.abc import Callable
from typing import Any

import jax

COMPILER_OPTIONS = {
    # Without this, XLA times candidate kernels as it compiles and two processes on one GPU may pick
    # different ones, so that their toys differ in the last bits. It costs no speed and saves most
    # of the compile time.
    "xla_gpu_deterministic_ops": True,
    # Launch whole loops at once: steps of small problems are otherwise as long as their launches.
    "xla_gpu_enable_command_buffer": (
        "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,WHILE,CONDITIONAL,DYNAMIC_SLICE_FUSION"
    ),
    "xla_gpu_graph_min_graph_size": 1,
    # XLA keeps to half of what many CPUs have, and is a tenth slower for it.
    "xla_cpu_prefer_vector_width": 512,
}

MAX_PROGRAMS = 150
"""The default test needs about ten for a new shape; a program takes about six megabytes."""

_functions: list[Any] = []


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function of a module, with these options of ``jax.jit`` beside our own."""
    jitted = jax.jit(function, **{"compiler_options": COMPILER_OPTIONS, **options})
    _functions.append(jitted)
    return jitted


def limit_programs() -> None:
    """Empty sparker's jitted functions if they hold more than ``MAX_PROGRAMS`` programs.

    Those of the caller are left alone, as are all settings of JAX.
    """
    if sum(function._cache_size() for function in _functions) > MAX_PROGRAMS:
        for function in _functions:
            function.clear_cache()
