"""What sparker leaves as it was in the process that calls it."""

import os
import subprocess
import sys

import jax
import numpy as np

import sparker
from sparker.engine import compiled

QUIET = """
import logging, os, signal, sys, tempfile, warnings
import jax, matplotlib, numpy as np
import bokeh.plotting, matplotlib.pyplot, sklearn.ensemble  # they set some of their own
from jax._src import monitoring

def settings():
    heard = {name: sorted(map(str, heard)) for name, heard in vars(monitoring).items()
             if name.endswith("_listeners") and isinstance(heard, list)}
    assert len(heard) >= 3, heard
    return heard | dict(jax.config.values) | dict(os.environ) | dict(matplotlib.rcParams) | {
        "warnings": list(map(str, warnings.filters)),
        "numpy": str([np.geterr(), np.random.get_state(), np.get_printoptions()]),
        "logging": logging.getLogger().level,
        "signals": [signal.getsignal(number) for number in (2, 15)],
        "path": list(sys.path),
    }

rng = np.random.default_rng(0)
reference, data = rng.normal(size=(100, 2)), rng.normal(size=(20, 2))
before = settings()

def check(what):
    found = settings()
    print(what, [name for name in before | found
                 if name not in before or name not in found or found[name] != before[name]])

import sparker
check("import")
result = sparker.test(reference, data, n_toys=3)
check("test")
with tempfile.TemporaryDirectory() as folder:
    result.report(os.path.join(folder, "report.html"))
check("report")
sparker.AnytimeMonitor.start(reference).look(data)
check("anytime")
"""


def test_no_setting_of_the_process_is_changed():
    """JAX's least of all: its settings count for all programs of the process."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_C", "JAX_PE"))}
    environment |= {"SPARKER_CACHE": "", "MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "ignore", "-c", QUIET]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["import []", "test []", "report []", "anytime []"], (
        done.stdout + done.stderr
    )


def test_after_fifty_sizes_few_programs_are_held_and_those_of_the_caller_are_kept(monkeypatch):
    monkeypatch.setattr(compiled, "MAX_PROGRAMS", 20)
    traced = []

    @jax.jit
    def own(x):
        traced.append(x.shape)
        return 2 * x

    own(np.ones(3))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 1))
    statistic = sparker.statistics.Edges()
    held = []
    for size in range(10, 60):
        sparker.test(rows, rng.normal(size=(size, 1)), statistic=statistic, n_toys=1, explain=False)
        held.append(sum(function._cache_size() for function in compiled._functions))
    assert max(held) <= 20 + 5  # of one test
    assert max(held) > 15
    own(np.ones(3))
    assert len(traced) == own._cache_size() == 1


def test_every_jitted_function_of_a_module_is_counted():
    assert compiled._functions
    known = {id(function) for function in compiled._functions}
    modules = [module for name, module in sys.modules.items() if name.startswith("sparker.")]
    jitted = {
        f"{module.__name__}.{name}"
        for module in modules
        for name, value in vars(module).items()
        if hasattr(value, "clear_cache") and value.__module__ == module.__name__
        if id(value) not in known
    }
    assert jitted == set()
