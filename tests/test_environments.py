"""Threads, forked processes and machines without memory: the same answer, or an error at once."""

import multiprocessing
import os
import sys
import threading
import warnings

import jax
import numpy as np
import pytest

import sparker
from sparker.engine import batch
from sparker.engine.ensemble import Ensemble, components
from sparker.engine.memory import is_out_of_memory
from sparker.system import machine

SETTINGS = {
    "config": sparker.FitConfig(n_kernels=2),
    "widths": sparker.WidthConfig(steps=20, n_widths=3),
    "chunk": 8,
    "n_toys": 19,
    "explain": False,
    "progress": False,
}


def samples(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(200, 2)), rng.normal(size=(60, 2))


def outcome(seed=0, **settings):
    return sparker.test(*samples(seed), **(SETTINGS | settings))


def assert_same(one, other):
    assert one.p_value == other.p_value
    np.testing.assert_array_equal(one.null_statistics, other.null_statistics)
    np.testing.assert_array_equal(one.statistics, other.statistics)


def test_tests_in_threads_give_what_each_gives_alone():
    found = {}
    threads = [
        threading.Thread(target=lambda seed=seed: found.update({seed: outcome(seed)}))
        for seed in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(3):
        assert_same(found[seed], outcome(seed))


# Forked processes.


def said_in_a_fork(function):
    """What a forked child raised, within ten seconds."""
    context = multiprocessing.get_context("fork")
    end, other_end = context.Pipe()

    def child():
        try:
            function()
            other_end.send("nothing")
        except RuntimeError as error:
            other_end.send(str(error))
        os._exit(0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and Python warn of forks as well
        process = context.Process(target=child)
        process.start()
    try:
        assert end.poll(10), "the child waits"
        return end.recv()
    finally:
        process.kill()
        process.join()


MODEL = Ensemble(np.zeros((1, 2)), np.ones(1), np.array(1.0))


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="processes are not forked there")
@pytest.mark.parametrize(
    "function",
    [outcome, lambda: components(MODEL, np.zeros((3, 2)))],
    ids=["a test", "scores of rows"],
)
def test_a_fork_of_a_process_that_has_computed_is_refused_at_once(function):
    function()
    said = said_in_a_fork(function)
    assert "forked from one in which sparker had computed already" in said
    assert "get_context('spawn') or 'forkserver'" in said


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="processes are not forked there")
def test_a_fork_of_a_process_that_has_not_computed_may(monkeypatch):
    monkeypatch.setattr(machine, "_first_process", machine.functools.cache(os.getpid))
    assert said_in_a_fork(machine.check_process) == "nothing"


# No memory left.


def exhausted():
    return jax.errors.JaxRuntimeError(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.\nBacktrace:"
    )


@pytest.fixture
def little_memory(monkeypatch):
    """A device on which so many toys at a time fit, and no more."""
    fit_chunk = batch.fit_chunk
    room = {"most": 2, "error": exhausted, "from": 0}

    def limited(seed, numbers, *args, **settings):
        if args[2] > room["most"] and max(numbers) >= room["from"]:
            raise room["error"]()
        return fit_chunk(seed, numbers, *args, **settings)

    monkeypatch.setattr(batch, "fit_chunk", limited)
    return room


@pytest.mark.parametrize("error", [exhausted, MemoryError])
def test_without_memory_fewer_toys_are_made_at_a_time(little_memory, error):
    little_memory["error"] = error
    lowered = outcome(explain=True)
    assert lowered.notes[0] == (
        "memory ran out, and toys were then made 2 at a time; they are the same up to rounding"
    )
    assert lowered.answers is not None
    assert_same(lowered, outcome(chunk=2))


def test_toys_that_were_made_before_memory_ran_out_are_kept(little_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "n_lanes", lambda *_: 1)
    little_memory["from"] = 8  # not in the first chunk
    first = outcome(store=tmp_path)
    assert "then made 2 at a time" in first.summary()
    little_memory["most"] = 0
    assert_same(outcome(store=tmp_path), first)
    little_memory["most"] = 8
    np.testing.assert_allclose(first.null_statistics, outcome().null_statistics, rtol=1e-3)


def test_a_single_toy_that_does_not_fit_is_an_error_that_says_so(little_memory):
    little_memory["most"] = 0
    with pytest.raises(
        MemoryError,
        match=r"a single toy \(RESOURCE_EXHAUSTED: Out of memory .* 9 bytes\.\); take a uniform",
    ):
        outcome()


def test_other_errors_of_the_device_are_not_taken_for_it():
    assert not is_out_of_memory(jax.errors.JaxRuntimeError("INTERNAL: CUDA_ERROR_LAUNCH_FAILED"))
    assert not is_out_of_memory(ValueError("RESOURCE_EXHAUSTED"))
