"""``jax.jit`` as all of sparker uses it."""

import functools

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


compiled = functools.partial(jax.jit, compiler_options=COMPILER_OPTIONS)
