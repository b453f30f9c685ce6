"""Compiled programs kept between runs, where nobody else can put any."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import sparker
from sparker.cli import options
from sparker.system import cache_folder, compile_cache
from sparker.system.cache_folder import private_folder

FIT = """
import sys
import jax, numpy as np, sparker
from sparker import engine
hits = []
jax.monitoring.register_event_listener(lambda event, **more: hits.append(event))
jax.numpy.ones(3).sum()  # the cache counts from here on, whatever was compiled before
print(sparker.enable_compilation_cache(sys.argv[1]))
rng = np.random.default_rng(0)
sample = engine.two_sample(rng.normal(size=(60, 2)), rng.normal(size=(20, 2)))
# Without scans, which take the compiler longest.
t = engine.fit(0, sample, engine.schedule(2.0, 0.5, steps=4, n_widths=2)).t
print(sum(event.endswith("cache_hits") for event in hits), t.tobytes().hex())
"""


def fitted(folder):
    """Where a process keeps programs, how many it found, and the bits of what it made of them."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_C", "JAX_PE"))}
    command = [sys.executable, "-W", "error", "-c", FIT, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_second_process_finds_what_the_first_compiled(tmp_path):
    first = fitted(tmp_path / "new")
    (kept,) = (tmp_path / "new").iterdir()
    programs = {path.name for path in kept.iterdir() if path.name.endswith("-cache")}
    assert len(programs) >= 2  # a start, the stages, a finish: those that take a while
    second = fitted(tmp_path / "new")
    assert first[0] == second[0] == str(kept)
    assert int(first[1]) == 0
    assert int(second[1]) == len(programs)
    assert second[2] == first[2]


@pytest.fixture
def as_it_was():
    """JAX's settings."""
    before = dict(jax.config.values)
    yield
    for name, value in before.items():
        if jax.config.values[name] != value:
            jax.config.update(name, value)
    jax.experimental.compilation_cache.compilation_cache.reset_cache()


def test_the_last_used_programs_are_kept(tmp_path, monkeypatch, as_it_was):
    own = sparker.enable_compilation_cache(tmp_path)
    assert own.parent == tmp_path
    monkeypatch.setattr(compile_cache, "MAX_BYTES", 25)
    for name, used in (("a", 1), ("b", 3), ("c", 2)):
        (own / f"{name}-cache").write_bytes(b"0123456789")
        os.utime(own / f"{name}-cache", (used, used))
    assert sparker.enable_compilation_cache(tmp_path) == own
    assert {path.name for path in own.iterdir()} == {"b-cache", "c-cache"}
    monkeypatch.setattr(compile_cache, "_processor", lambda: b"another one")
    assert sparker.enable_compilation_cache(tmp_path) != own


@pytest.mark.unit
@pytest.mark.skipif(os.name == "nt", reason="modes say nothing there")
class TestPrivate:
    """A folder that others may write to, or that lies in one."""

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
    @pytest.mark.parametrize("which", [".", "a", "a/b"])
    def test_is_refused_by_all_that_keep_something(self, tmp_path, mode, which, monkeypatch):
        (tmp_path / "a" / "b").mkdir(parents=True, mode=0o755)
        (tmp_path / which).chmod(mode)
        before = dict(jax.config.values)
        with pytest.raises(PermissionError, match=r"others may write to .*; take their right"):
            sparker.enable_compilation_cache(tmp_path / "a" / "b")
        assert dict(jax.config.values) == before
        monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "a" / "b"))
        vouched = sparker.embed.Function(function=lengths, version="1").fitted(())
        with pytest.warns(cache_folder.CacheWarning, match="embeddings are not kept: others may"):
            assert vouched.encode(["one", "three"]).tolist() == [[3], [5]]
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]

    def test_is_made_for_the_user_alone(self, tmp_path):
        before = os.umask(0)
        try:
            found = private_folder(tmp_path / "a" / "b" / "c")
        finally:
            os.umask(before)
        assert found == (tmp_path / "a" / "b" / "c").resolve()
        assert all(part.stat().st_mode & 0o777 == 0o700 for part in (found, found.parent))

    def test_may_lie_where_nobody_replaces_what_is_not_theirs(self, tmp_path):
        tmp_path.chmod(0o1777)  # as /tmp
        assert private_folder(tmp_path / "a").is_dir()
        with pytest.raises(PermissionError, match="others may write to"):
            private_folder(tmp_path)

    def test_belongs_to_the_user_or_to_root(self, tmp_path, monkeypatch):
        found = private_folder(tmp_path / "a")
        monkeypatch.setattr(os, "getuid", lambda: found.stat().st_uid + 1)
        if found.stat().st_uid == 0:  # root's folders are above everyone's
            assert private_folder(found) == found
            os.chown(found, 12345, -1)
        with pytest.raises(PermissionError, match="belongs to another user; name another folder"):
            private_folder(found)

    def test_links_are_followed_before_anything_is_checked(self, tmp_path):
        (tmp_path / "open").mkdir()
        (tmp_path / "open").chmod(0o777)
        (tmp_path / "link").symlink_to(tmp_path / "open")
        with pytest.raises(PermissionError, match="open"):
            private_folder(tmp_path / "link" / "mine")


def lengths(texts):
    return np.array([[len(text)] for text in texts], float)


def test_commands_keep_programs_in_the_users_folder(tmp_path, monkeypatch, as_it_was, capsys):
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path))
    given = jax.config.jax_compilation_cache_dir
    assert given  # by conftest
    options.keep_programs()
    assert jax.config.jax_compilation_cache_dir == given
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setenv(cache_folder.VARIABLE, "off")
    options.keep_programs()
    assert jax.config.jax_compilation_cache_dir is None
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path))
    tmp_path.chmod(0o777)
    options.keep_programs()
    assert jax.config.jax_compilation_cache_dir is None
    assert "Compiled programs are not kept for the next time: others" in capsys.readouterr().err
    tmp_path.chmod(0o700)
    options.keep_programs()
    assert jax.config.jax_compilation_cache_dir.startswith(str(tmp_path / "compiled"))
