"""Compiled programs kept between runs: found again, whole or not at all, and never in the way."""

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import jax
import numpy as np
import pytest

from sparker.system import compile_cache, programs
from sparker.system.compile_cache import Kept, folder, hand_over, keep_compiled

FIT = """
import jax, numpy as np
from sparker import engine
hits = []
jax.monitoring.register_event_listener(lambda event, **more: hits.append(event))
rng = np.random.default_rng(0)
sample = engine.two_sample(rng.normal(size=(60, 2)), rng.normal(size=(20, 2)))
# Without scans, which take the compiler longest.
t = engine.fit(0, sample, engine.schedule(2.0, 0.5, steps=4, n_widths=2)).t
print(sum(event.endswith("cache_hits") for event in hits), t.tobytes().hex())
"""


def fitted(cache: Path | str) -> list[str]:
    """How many programs a process found, and the bits of what it made of them."""
    environment = {k: v for k, v in os.environ.items() if "JAX_COMPILATION_CACHE" not in k}
    environment["SPARKER_CACHE"] = str(cache)
    command = [sys.executable, "-W", "error", "-c", FIT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def program(path: Path, content: bytes = b"code", age: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_the_second_process_finds_what_the_first_compiled(tmp_path):
    first = fitted(tmp_path)
    (kept,) = (tmp_path / "compiled").iterdir()
    programs = {path.name for path in kept.iterdir()}
    assert len(programs) >= 2  # a start, the stages, a finish: those that take a while
    assert all(name.endswith("-cache") for name in programs)  # and no folder of a process
    second = fitted(tmp_path)
    assert int(first[0]) == 0
    assert int(second[0]) == len(programs)
    assert second[1] == first[1]
    assert {path.name for path in kept.iterdir()} == programs


@pytest.mark.parametrize("what", ["off", "a file", "others may write"])
def test_without_a_folder_everything_works_as_it_did(tmp_path, what):
    cache: Path | str = "off"
    if what == "a file":
        cache = program(tmp_path / "file")
    if what == "others may write":
        cache = tmp_path
        os.environ["SPARKER_CACHE"] = str(tmp_path)
        try:
            folder().mkdir(parents=True)
            folder().chmod(0o777)
        finally:
            del os.environ["SPARKER_CACHE"]
    found, _ = fitted(cache)
    assert found == "0"
    assert not list(tmp_path.rglob("*-cache"))


def test_a_folder_that_jax_was_given_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARKER_CACHE", str(tmp_path))
    given = jax.config.jax_compilation_cache_dir
    assert given  # by conftest
    keep_compiled.cache_clear()
    assert keep_compiled() is None
    keep_compiled.cache_clear()
    assert jax.config.jax_compilation_cache_dir == given
    assert not list(tmp_path.iterdir())


def test_new_programs_are_handed_over_if_they_are_whole(tmp_path):
    old = program(tmp_path / "old-cache", b"old")
    own = tmp_path / "process-here-1-x"
    own.mkdir()
    os.link(old, own / "old-cache")
    whole = zlib.compress(b"a program" * 1000)
    program(own / "new-cache", whole)
    program(own / "half-cache", whole[:-5])
    program(own / "none-cache", b"")
    kept = Kept(own, tmp_path)
    hand_over(kept)
    compile_cache._leave(kept, os.getpid() + 1)  # a fork takes nothing away
    assert own.is_dir()
    compile_cache._leave(kept, os.getpid())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "old-cache": b"old",
        "new-cache": whole,
    }


def test_programs_packed_by_zstandard_are_looked_at_too(monkeypatch, tmp_path):
    packed = program(tmp_path / "x", compile_cache.ZSTANDARD + b"rest")
    for unpack, found in ((None, False), (lambda content: b"code", True), (zlib.decompress, False)):
        monkeypatch.setattr(compile_cache, "_zstandard", lambda unpack=unpack: unpack)
        assert compile_cache.is_whole(packed) is found


def test_without_links_programs_are_copied(monkeypatch, tmp_path):
    def refuse(*names):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    own = tmp_path / "process-here-1-x"
    whole = zlib.compress(b"a program")
    program(own / "new-cache", whole)
    hand_over(Kept(own, tmp_path))
    assert (tmp_path / "new-cache").read_bytes() == whole
    assert len(list(tmp_path.iterdir())) == 2


def test_what_killed_processes_left_and_the_least_used_programs_go(monkeypatch, tmp_path):
    monkeypatch.setattr(compile_cache, "MAX_BYTES", 25)
    for name, age in (("a", 30), ("b", 10), ("c", 20)):
        program(tmp_path / f"{name}-cache", b"0123456789", age)
    here, gone = compile_cache.platform.node(), 2**22 + 1  # more than processes are numbered to
    folders = {
        f"process-{here}-{os.getpid()}-x": 0,
        f"process-{here}-{gone}-x": 0,
        "process-elsewhere-1-x": 0,
        "process-elsewhere-2-x": 2 * compile_cache.MAX_AGE,
    }
    for name, age in folders.items():
        program(tmp_path / name / "x-cache")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    compile_cache._tidy(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "b-cache", "c-cache", f"process-{here}-{os.getpid()}-x", "process-elsewhere-1-x"
    }  # fmt: skip


def test_the_folder_knows_versions_and_processor(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARKER_CACHE", str(tmp_path))
    here = folder()
    assert here.parent == tmp_path / "compiled"
    monkeypatch.setattr(compile_cache, "_processor", lambda: "another one")
    assert folder() != here
    monkeypatch.setattr(compile_cache.metadata, "version", lambda name: "0")
    assert folder() not in (here,)


def test_a_process_holds_only_so_many_programs(monkeypatch):
    monkeypatch.setattr(programs, "MAX_PROGRAMS", 3)
    twice = jax.jit(lambda x: 2 * x)
    with programs.compiled_programs():
        with programs.compiled_programs():
            for n in range(1, 9):
                twice(np.ones(n))
        assert twice._cache_size() == 8  # in use further out
    assert twice._cache_size() == 0
    with programs.compiled_programs():
        twice(np.ones(1))
    assert twice._cache_size() == 1  # few since
