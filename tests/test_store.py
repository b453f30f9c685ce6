"""Stores: what was finished is kept, whatever ends the run, and continued to the same bits."""

import contextlib
import dataclasses
import errno
import functools
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from sealed import value_of, with_text, with_values

import sparker
from sparker.calibration import store as stores
from sparker.calibration.store import KIND, Manifest, SavedChunk
from sparker.engine import batch
from sparker.system import archive

N_REFERENCE, N_DATA = 200, 50
N_TOYS, CHUNK = 11, 4
QUICK = {
    "n_toys": N_TOYS,
    "chunk": CHUNK,
    "config": sparker.FitConfig(n_kernels=3),
    "widths": sparker.WidthConfig(steps=20, n_widths=3),
    "explain": False,
}


def make_samples(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N_REFERENCE, 2)), rng.normal(size=(N_DATA, 2))


def draw_rows(rng, n):
    return rng.normal(size=(n, 2))


KINDS = {
    "permutation": {},
    "strata": {"strata": (np.arange(N_REFERENCE) % 4, np.arange(N_DATA) % 3)},
    "pool": {"null": sparker.Simulator(np.random.default_rng(9).normal(size=(300, 2)))},
    "simulator": {"null": sparker.Simulator(draw_rows)},
}


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


def quick(**settings):
    """Quick settings but for these; another statistic has no use for those of the kernels."""
    of_kernels = {"config": None, "widths": None} if "statistic" in settings else {}
    return QUICK | of_kernels | settings


def run(kind="permutation", **settings):
    return sparker.test(*make_samples(), **quick(**KINDS[kind] | settings))


@functools.cache
def whole(kind="permutation"):
    return run(kind)


@functools.cache
def whole_mean_shift():
    return run(statistic=mean_shift)


def assert_same(one, other):
    """To the bit, in all but the time it took."""
    assert dataclasses.replace(one, timings={}) == dataclasses.replace(other, timings={})


@pytest.fixture(autouse=True)
def one_core(monkeypatch):
    """A chunk after the other, on any machine."""
    monkeypatch.setattr("sparker.engine.memory.n_cores", lambda: 1)


@pytest.fixture
def fits(monkeypatch):
    """The numbers of the experiments that are really fitted, chunk by chunk."""
    whole()  # what others are compared with does not count
    seen = []
    original = batch.fit_chunk

    def count(seed, numbers, *rest):
        seen.append(list(numbers))
        return original(seed, numbers, *rest)

    monkeypatch.setattr(batch, "fit_chunk", count)
    return seen


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A finished store; copied where a test changes it."""
    folder = tmp_path_factory.mktemp("filled") / "store"
    run(store=folder)
    return folder


@pytest.fixture
def store(filled, tmp_path):
    return shutil.copytree(filled, tmp_path / "store")


def names(folder):
    return [path.name for path in stores.chunk_files(folder)]


THREE_CHUNKS = [
    "toys-000000-000003.sparker",
    "toys-000004-000007.sparker",
    "toys-000008-000011.sparker",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_changes_no_bit_and_nothing_is_made_twice(kind, tmp_path, fits):
    first = run(kind, store=tmp_path / "deep" / "store")
    assert sorted(itertools.chain(*fits)) == list(range(N_TOYS + 1))
    fits.clear()
    again = run(kind, store=str(tmp_path / "deep" / "store"))
    assert fits == []
    assert_same(first, whole(kind))
    assert_same(again, whole(kind))


def test_another_verdict_on_the_same_toys_needs_no_new_ones(store, fits):
    other = run(store=store, combine=sparker.product)
    stopped = run(store=store, stop=sparker.Sequential(exceedances=1, first=10))
    assert fits == []
    assert other.settings["combine"] == "product"
    assert stopped.n_toys == 10


def test_more_toys_continue_where_fewer_ended(store, fits):
    before = {name: (store / name).read_bytes() for name in THREE_CHUNKS}
    longer = run(store=store, n_toys=30)
    assert fits == [list(range(n, min(n + CHUNK, 31))) for n in range(12, 31, CHUNK)]
    assert {name: (store / name).read_bytes() for name in THREE_CHUNKS} == before
    fits.clear()
    assert_same(run(store=store), whole())  # and fewer of them are still there
    assert fits == []
    assert_same(longer, run(n_toys=30))


def test_toys_keep_the_chunk_they_were_begun_with(store, fits):
    longer = run(store=store, n_toys=19, chunk=8)
    assert fits == [[12, 13, 14, 15], [16, 17, 18, 19]]
    assert_same(longer, run(n_toys=19))


def test_chunk_sizes_agree_up_to_rounding():
    other = run(chunk=8)
    np.testing.assert_allclose(other.null_t, whole().null_t, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.t, whole().t, rtol=1e-4, atol=1e-4)
    assert other.p_value == whole().p_value


# Killed, really.


def child(code, *arguments, **environment):
    """Another Python that has all of this file at hand."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import os, signal, sys\nfrom test_store import *\n{code}"]
        + [str(argument) for argument in arguments],
        cwd=Path(__file__).parent,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_killed_between_chunks_only_the_missing_toys_are_made(tmp_path, fits):
    code = """
write = stores.Store.write

def kill_after_two(self, *arguments):
    write(self, *arguments)
    if len(names(self.folder)) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

stores.Store.write = kill_after_two
run(store=sys.argv[1])
"""
    killed = child(code, tmp_path)
    output = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, output
    assert names(tmp_path) == THREE_CHUNKS[:2]
    before = {name: (tmp_path / name).read_bytes() for name in THREE_CHUNKS[:2]}
    told = []
    resumed = run(store=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert_same(resumed, whole())
    assert fits == [[8, 9, 10, 11]]
    assert (told[0], told[-1]) == ((8, 12), (12, 12))
    assert told == sorted(set(told))
    assert {name: (tmp_path / name).read_bytes() for name in THREE_CHUNKS[:2]} == before


@pytest.mark.parametrize(
    ("write", "left"), [(1, []), (3, THREE_CHUNKS[:1])], ids=["manifest", "second chunk"]
)
def test_killed_while_it_writes_only_what_was_whole_counts(write, left, tmp_path):
    code = """
class Kill:
    calls = 0

def half_written(descriptor):
    Kill.calls += 1
    if Kill.calls == int(sys.argv[2]):
        os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)

os.fsync = half_written
run(store=sys.argv[1], statistic=mean_shift)
"""
    killed = child(code, tmp_path, write)
    output = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, output
    assert names(tmp_path) == left
    assert len([name for name in os.listdir(tmp_path) if name.endswith(".part")]) == 1
    told = []
    resumed = run(
        store=tmp_path, statistic=mean_shift, progress=lambda done, total: told.append(done)
    )
    assert_same(resumed, whole_mean_shift())
    assert told == list(range(CHUNK * len(left), N_TOYS + 2, CHUNK))


@pytest.mark.parametrize("kind", ["permutation", "simulator"])  # shared points, and toys' own
def test_several_devices_share_the_toys_and_find_the_same(kind):
    code = f"""
assert batch._mesh(9).size == 4  # all are used, each for a chunk
found = run({kind!r})
tables = found.statistics, found.null_statistics
print(found.p_value.hex(), *(table.tobytes().hex() for table in tables))
"""
    assert batch._mesh(9).size == 1
    four = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    out, error = child(code, XLA_FLAGS=four).communicate()
    p_value, *tables = out.split()
    found = whole(kind)
    assert p_value == found.p_value.hex(), error
    for table, expected in zip(tables, (found.statistics, found.null_statistics), strict=True):
        values = np.frombuffer(bytes.fromhex(table)).reshape(expected.shape)
        np.testing.assert_allclose(values, expected, rtol=1e-5)


# Interrupted, or without room.


def interrupt(done, total):
    if done > 8:  # a part of the third chunk
        raise KeyboardInterrupt


def test_an_interrupted_run_says_how_to_continue(tmp_path, fits):
    with pytest.raises(KeyboardInterrupt) as caught:
        run(store=tmp_path, progress=interrupt)
    (note,) = caught.value.__notes__
    assert note == (
        f"8 of 12 experiments were finished and are kept in {tmp_path}; "
        "the same call continues there"
    )
    fits.clear()
    assert_same(run(store=tmp_path), whole())
    assert fits == [[8, 9, 10, 11]]


def test_an_interrupted_run_without_a_store_says_that_one_helps():
    with pytest.raises(KeyboardInterrupt) as caught:
        run(progress=interrupt)
    (note,) = caught.value.__notes__
    assert note.startswith("8 of 12 experiments were finished; with a store they would be kept")


def test_a_run_interrupted_while_it_writes_leaves_nothing_half(tmp_path, monkeypatch):
    def stop(descriptor):
        if len(names(tmp_path)) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        run(store=tmp_path, statistic=mean_shift)
    assert sorted(os.listdir(tmp_path)) == ["manifest.json", THREE_CHUNKS[0]]
    monkeypatch.undo()
    assert_same(run(store=tmp_path, statistic=mean_shift), whole_mean_shift())


def assert_one_chunk_is_kept(folder, fits):
    assert sorted(os.listdir(folder)) == ["manifest.json", THREE_CHUNKS[0]]
    fits.clear()
    assert_same(run(store=folder), whole())
    assert fits == [[4, 5, 6, 7], [8, 9, 10, 11]]


def test_a_full_disk_is_said_and_what_was_finished_is_kept(tmp_path, monkeypatch, fits):
    def full(descriptor):
        if len(names(tmp_path)) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = "store .* cannot be written: No space left on device; free some room or choose"
    with pytest.raises(ValueError, match=f"{message}.*What was finished before is kept"):
        run(store=tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    assert_one_chunk_is_kept(tmp_path, fits)


def test_a_file_that_really_cannot_grow_is_said_and_what_was_finished_is_kept(tmp_path, fits):
    resource = pytest.importorskip("resource")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)

    def no_more(done, total):
        if done > CHUNK:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, usual[1]))

    try:
        with pytest.raises(ValueError, match="cannot be written: File too large; free some room"):
            run(store=tmp_path, progress=no_more)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert_one_chunk_is_kept(tmp_path, fits)


def test_a_store_that_cannot_be_is_refused_before_anything_is_made(tmp_path, fits):
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "store"):
        with pytest.raises(ValueError, match=r"store .*file.* cannot be written: .*choose"):
            run(store=folder)
    assert fits == []
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder no one may write to")
def test_a_folder_no_one_may_write_to_is_refused(fits):
    with pytest.raises(ValueError, match=r"store /sys/.* cannot be written: .*; .*another folder"):
        run(store="/sys/kernel/sparker-store")
    assert fits == []


def test_a_store_that_was_made_read_only_is_refused_before_anything_is_made(
    store, monkeypatch, fits
):
    def denied(**settings):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(tempfile, "TemporaryFile", denied)
    with pytest.raises(ValueError, match="cannot be written: Permission denied"):
        run(store=store, n_toys=30)
    assert fits == []
    assert_same(run(store=store), whole())  # nothing has to be written: all toys are there


# Shared out and brought together.


def run_half(only, folder, **settings):
    return sparker.run_toys(*make_samples(), only=only, store=folder, **quick(**settings))


def test_halves_made_apart_are_merged_to_the_whole(tmp_path, fits):
    halves = [tmp_path / "one", tmp_path / "two"]
    assert run_half(range(6), halves[0]) == 6
    assert run_half(range(6, 12), halves[1], combine=sparker.minimum) == 6
    assert sparker.merge(halves, tmp_path / "both") == 12
    assert sparker.merge(halves, tmp_path / "both") == 12  # once more does no harm
    fits.clear()
    assert_same(run(store=tmp_path / "both"), whole())
    assert sparker.merge(halves, halves[0]) == 12
    assert_same(run(store=halves[0]), whole())
    assert fits == []


def test_halves_made_in_one_folder_are_the_whole(tmp_path, fits):
    assert run_half(range(0, 12, 2), tmp_path) == 6
    assert run_half(range(1, 12, 2), tmp_path) == 6
    assert len(names(tmp_path)) == 4  # none overwrote another
    fits.clear()
    assert_same(run(store=tmp_path), whole())
    assert fits == []


def test_chunks_with_gaps_do_not_hide_each_other(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    run_half([0, 3], folders[0], statistic=mean_shift)
    run_half([0, 1, 3], folders[1], statistic=mean_shift)
    assert sparker.merge(folders, tmp_path / "both") == 3


def test_a_half_made_twice_is_made_once(tmp_path, fits):
    run_half([5, 1, 5], tmp_path)
    assert fits == [[1, 5]]
    run_half([1, 2, 5], tmp_path)
    assert fits == [[1, 5], [2]]


def test_stores_that_cannot_be_merged_are_refused(store, tmp_path):
    run_half([0], tmp_path / "other", seed=1)
    with pytest.raises(ValueError, match=r"different tests: seed \(0 there, 1 here\)"):
        sparker.merge([store, tmp_path / "other"], tmp_path / "both")
    assert not (tmp_path / "both").exists()
    with pytest.raises(ValueError, match=r"differs in seed"):
        sparker.merge([store], tmp_path / "other")
    with pytest.raises(ValueError, match=r"nothing has no manifest\.json; it is not a store"):
        sparker.merge([store, tmp_path / "nothing"], tmp_path / "both")
    with pytest.raises(ValueError, match="stores is empty; name at least one"):
        sparker.merge([], tmp_path / "both")
    (store / THREE_CHUNKS[1]).write_bytes(b"PK")
    with pytest.raises(ValueError, match=f"{THREE_CHUNKS[1]} holds no chunk of toys .*damaged"):
        sparker.merge([store], tmp_path / "both")


# What does not belong together.


def changed_by_little(array):
    array = array.copy()
    array[0, 0] = np.nextafter(array[0, 0], 1)
    return array


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"seed": 1}, r"seed \(0 there, 1 here\)"),
        ({"data": changed_by_little(make_samples()[1])}, "differs in data"),
        ({"reference": changed_by_little(make_samples()[0])}, r"reference \("),
        ({"reference_weights": np.tile([1, 2], 100)}, r"reference_weights \(None there"),
        ({"expected": 50.0}, r"expected \(None there, 50.0 here\)"),
        ({"groups": (np.arange(200), np.arange(200, 250))}, r"groups \(None there"),
        ({"strata": (np.arange(200) % 2, np.arange(50) % 2)}, r"strata \(None there"),
        (
            {"reference_weights": (np.ones(200), np.tile([1.0, 2.0], 25))},
            r"data_weights \(None there",
        ),
        (
            {
                "groups": (np.arange(200), np.arange(200, 250)),
                "null": sparker.Permutation(group_rows=1),
            },
            r"null.group_rows \(None there, 1 here\)",
        ),
        ({"null": sparker.Simulator(draw_rows)}, r"null.is \(Permutation there, Simulator here\)"),
        ({"preprocess": sparker.whiten}, r"preprocess \(decorrelate there, whiten here\)"),
        ({"config": sparker.FitConfig(n_kernels=2)}, r"kernels.n_kernels \(3 there, 2 here\)"),
        (
            {"config": sparker.FitConfig(n_kernels=3, loss=sparker.engine.binary_cross_entropy)},
            r"kernels.loss \(neyman_pearson there, binary_cross_entropy here\)",
        ),
        (
            {"config": sparker.FitConfig(n_kernels=3, l2=0.1)},
            r"kernels.l2 \(0.0 there, 0.1 here\)",
        ),
        ({"widths": sparker.WidthConfig(steps=30, n_widths=3)}, r"steps \(20 there, 30 here\)"),
        ({"widths": sparker.WidthConfig(steps=20, n_widths=3, last=0.1)}, "statistic.widths"),
        ({"widths": sparker.WidthConfig(steps=20, n_widths=3, first=9.0)}, "statistic.widths"),
        ({"statistic": mean_shift}, "statistic.function"),
    ],
)
def test_toys_of_another_test_are_not_taken_for_this_ones(settings, named, store, fits):
    reference, data = make_samples()
    other = {"reference": reference, "data": data} | quick(**settings)
    with pytest.raises(ValueError, match=f"holds toys of another test; .*{named}") as caught:
        sparker.test(**other, store=store)
    assert "Choose another folder, or make the call as it was" in str(caught.value)
    assert fits == []
    assert_same(run(store=store), whole())


def test_other_simulators_are_told_apart(tmp_path):
    for source in (draw_rows, make_samples(5)[0]):
        folder = tmp_path / str(callable(source))
        settings = {"statistic": mean_shift, "store": folder}
        run(null=sparker.Simulator(source), **settings)
        other = (lambda rng, n: 1 + draw_rows(rng, n)) if callable(source) else source[:-1]
        if callable(source):
            other.__module__, other.__qualname__ = source.__module__, source.__qualname__
        with pytest.raises(ValueError, match=r"another test; it differs in null"):
            run(null=sparker.Simulator(other), **settings)


def powers(rng, sample, power=1):
    return mean_shift(rng, sample) ** power


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (functools.partial(powers, power=1), functools.partial(powers, power=2)),
        (lambda rng, sample: 1.0, lambda rng, sample: 2.0),
    ],
    ids=["partial", "lambda"],
)
def test_other_functions_of_the_same_name_are_told_apart(one, other, tmp_path):
    run(statistic=one, store=tmp_path)
    with pytest.raises(ValueError, match="another test; it differs in statistic"):
        run(statistic=other, store=tmp_path)


@pytest.mark.parametrize(
    "other", [{"first": 9.0}, {"annealing": sparker.engine.geometric}], ids=["first", "annealing"]
)
def test_other_ways_to_the_same_width_are_told_apart(other, tmp_path, fits):
    settings = {"steps": 20, "n_widths": 1, "first": 5.0, "last": 0.5}
    sparker.run_toys(
        *make_samples(),
        only=[1],
        store=tmp_path,
        **(QUICK | {"widths": sparker.WidthConfig(**settings)}),
    )
    fits.clear()
    with pytest.raises(ValueError, match="another test; it differs in statistic"):
        run(store=tmp_path, widths=sparker.WidthConfig(**(settings | other)))
    assert fits == []


# What is not as it was left.


def test_a_half_written_file_left_behind_is_not_read(store, fits):
    whole_chunk = (store / THREE_CHUNKS[1]).read_bytes()
    (store / THREE_CHUNKS[1]).unlink()
    (store / f".{THREE_CHUNKS[1]}.12345.part").write_bytes(whole_chunk[:300])
    (store / ".manifest.json.12345.part").write_text('{"chunk"')
    assert_same(run(store=store), whole())
    assert fits == [[4, 5, 6, 7]]
    assert (store / THREE_CHUNKS[1]).read_bytes() == whole_chunk


def without_numbers(content):
    return with_values(content, chunk=[[], *value_of(content)["chunk"][1:]])


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: content.replace(b"chunk of toys", b"chunk of joys"),
        lambda content: with_text(content, b"[]"),
        lambda content: with_text(content, b"{}", "test result"),
        lambda content: content[:-400] + bytes(400),
        without_numbers,
    ],
    ids=["cut", "empty", "kind", "list", "result", "end", "without numbers"],
)
def test_a_damaged_chunk_is_named_and_made_anew_once_it_is_gone(
    damage, store, tmp_path, monkeypatch, fits
):
    monkeypatch.chdir(tmp_path)
    chunk = store / THREE_CHUNKS[1]
    before = chunk.read_bytes()
    chunk.write_bytes(damage(before))
    with pytest.raises(ValueError, match=f"{chunk.name} .*; delete it and its toys are made anew"):
        run(store=store)
    assert fits == []
    chunk.unlink()
    assert_same(run(store=store), whole())
    assert fits == [[4, 5, 6, 7]]
    assert chunk.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated"),
        (b"\xff\xfe\x00", "malformed"),
        (b"name: something", "malformed"),
        (b"[1, 2]", "Expected `object`"),
        (b'{"name": "something else"}', "unknown field `name`"),
        (b'{"chunk": "many"}', "Expected `int`"),
        (b'{"chunk": 4, "test": {}}', "it is not as sparker wrote it; choose another folder"),
    ],
)
def test_the_manifest_of_something_else_is_left_alone(content, message, tmp_path, fits):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(
        ValueError, match=rf"manifest\.json holds no manifest of a store .*{message}"
    ):
        run(store=tmp_path)
    assert fits == []
    assert (tmp_path / "manifest.json").read_bytes() == content


def rewrite_manifest(folder, chunk=CHUNK, **changes):
    """As somebody would who knows how the digest is made."""
    manifest = Manifest(chunk, stores.read_manifest(folder).test | changes)
    (folder / "manifest.json").unlink()
    stores._write_manifest(folder, manifest)


def test_toys_of_another_version_are_not_continued(store, fits):
    rewrite_manifest(store, sparker="0.0.1", format=0)
    with pytest.raises(ValueError, match=r"format \(0 there, \d+ here\); sparker \(0.0.1 there"):
        run(store=store)
    assert fits == []


# What somebody else put there.


def cheap(folder, seed=0, data_seed=0, **settings):
    """A test in no time, with a store."""
    reference, data = make_samples()[0], make_samples(data_seed)[1]
    return sparker.test(
        reference, data, **quick(statistic=mean_shift, seed=seed, store=folder, **settings)
    )


def test_a_chunk_of_another_test_is_refused_and_never_counted(tmp_path):
    right = cheap(tmp_path / "right")
    for other in ({"seed": 1}, {"data_seed": 1}):
        cheap(tmp_path / "other", **other)
        for name in THREE_CHUNKS[1:]:
            shutil.copy(tmp_path / "other" / name, tmp_path / "right" / name)
        with pytest.raises(ValueError, match="holds toys of another test") as caught:
            cheap(tmp_path / "right")
        assert all(name in str(caught.value) for name in THREE_CHUNKS[1:])  # all at once
        assert "delete them and their toys are made anew" in str(caught.value)
        shutil.rmtree(tmp_path / "other")
    for name in THREE_CHUNKS[1:]:
        (tmp_path / "right" / name).unlink()
    assert_same(cheap(tmp_path / "right"), right)


def test_a_store_without_its_manifest_is_still_that_of_its_test(tmp_path):
    right = cheap(tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ValueError, match="holds toys of another test"):
        cheap(tmp_path, data_seed=1)
    assert not (tmp_path / "manifest.json").exists()  # it was not claimed for the other test
    written = (tmp_path / THREE_CHUNKS[0]).stat().st_mtime_ns
    assert_same(cheap(tmp_path), right)
    assert (tmp_path / THREE_CHUNKS[0]).stat().st_mtime_ns == written


def chunk_in(path):
    return archive.read(path, {KIND: SavedChunk}).chunk


def forged(path, test=None, **parts):
    """A chunk with other contents, by somebody who knows how the digest is made."""
    old = archive.read(path, {KIND: SavedChunk})
    chunk = old.chunk._replace(**parts)
    archive.write(path, KIND, SavedChunk(old.test if test is None else test, {}, chunk))


def test_a_chunk_that_does_not_say_which_test_it_is_of_is_refused(tmp_path):
    cheap(tmp_path)
    forged(tmp_path / THREE_CHUNKS[1], test="")
    with pytest.raises(ValueError, match=f"{THREE_CHUNKS[1]} holds toys of another test"):
        cheap(tmp_path)


@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_byte_flipped_anywhere_in_a_chunk_is_noticed(at, tmp_path):
    right = cheap(tmp_path)
    chunk = tmp_path / THREE_CHUNKS[2]
    content = bytearray(chunk.read_bytes())
    content[int(at * len(content))] ^= 16
    chunk.write_bytes(content)
    try:
        found = cheap(tmp_path)
    except ValueError as error:
        assert "delete it and its toys are made anew" in str(error)  # noqa: PT017
    else:  # a byte that means nothing, such as a date
        assert_same(found, right)


ONE_MODEL = sparker.engine.Ensemble(np.zeros((1, 1, 1)), np.zeros((1, 1)), np.ones(1))


@pytest.mark.parametrize(
    "contents",
    [
        {"statistics": np.zeros((4, 3))},
        {"statistics": np.zeros((3, 2))},
        {"statistics": np.zeros(4)},
        {"statistics": np.zeros((4, 2), int)},
        {"statistics": np.full((4, 2), "x")},
        {"statistics": None},
        {"numbers": [4, 5, 6, 6]},
        {"numbers": [-4, 5, 6, 7]},
        {"numbers": [4.5, 5, 6, 7]},
        {"numbers": []},
        {"score_counts": np.zeros((4, 3))},
        {"score_counts": np.zeros((3, 3, 3))},
        {"score_counts": np.full((4, 3, 3), -1.0)},
        {"models": ONE_MODEL},
        {"models": ONE_MODEL._replace(a=np.zeros((2, 2)))},
        {"models": sparker.engine.Ensemble(np.zeros(1), np.zeros(1), np.zeros(1))},
    ],
)
def test_a_chunk_of_parts_that_do_not_belong_together_is_refused(contents, tmp_path):
    cheap(tmp_path)
    forged(tmp_path / THREE_CHUNKS[1], **contents)
    with pytest.raises(ValueError, match=f"{THREE_CHUNKS[1]} .*delete it and its toys are made"):
        cheap(tmp_path)


def test_a_store_with_other_statistics_throughout_is_refused(store, fits):
    for path in stores.chunk_files(store):
        forged(path, statistics=chunk_in(path).statistics[:, :2])
    with pytest.raises(ValueError, match=r"holds 2 statistics of each experiment, and this test"):
        run(store=store)
    assert fits == []


@pytest.mark.parametrize("apart", [False, True], ids=["of one name", "of other names"])
def test_stores_that_contradict_each_other_are_not_merged(apart, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    run_half(range(6), one, statistic=mean_shift)
    run_half(range(5 if apart else 6), other, statistic=mean_shift)
    changed = stores.chunk_files(other)[1]
    values = chunk_in(changed).statistics
    forged(changed, statistics=values + 1e-9)
    with pytest.raises(ValueError, match=r"contradict each other in experiment 4; delete"):
        sparker.merge([one, other], tmp_path / "both")
    assert not (tmp_path / "both").exists()
    with pytest.raises(ValueError, match=r"contradict each other in experiment 4; delete"):
        sparker.merge([one], other)
    if apart:
        shutil.copy(changed, one)
        with pytest.raises(ValueError, match=r"contradict each other in experiment 4; delete"):
            run_half(range(6), one, statistic=mean_shift)


def test_another_tests_chunk_is_not_merged(tmp_path):
    run_half(range(4), tmp_path / "one", statistic=mean_shift)
    run_half(range(4, 8), tmp_path / "two", statistic=mean_shift, seed=1)
    shutil.copy(tmp_path / "two" / THREE_CHUNKS[1], tmp_path / "one")
    with pytest.raises(ValueError, match=f"{THREE_CHUNKS[1]} holds toys of another test"):
        sparker.merge([tmp_path / "one"], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def of_strength(strength):
    """Functions of one's own that have the same names whatever they do."""

    def reference(f):
        return strength * jax.nn.softplus(f)

    def reference_slope(f):
        return strength * jax.nn.sigmoid(f)

    def activation(k):
        return [strength * k_i for k_i in k]

    def response(a, k, p, f):
        return [2 * strength * a[i] * k_i**2 for i, k_i in enumerate(k)]

    def preprocess(points):
        plain = sparker.standardise(points)
        return plain._replace(matrix=strength * plain.matrix, back=plain.back / strength)

    own = sparker.engine.binary_cross_entropy._replace(
        reference=reference, reference_slope=reference_slope
    )
    competition = sparker.engine.Competition(activation, response)
    return {
        "loss": {"config": sparker.FitConfig(n_kernels=3, loss=own)},
        "competition": {"config": sparker.FitConfig(n_kernels=3, competition=competition)},
        "preprocess": {"preprocess": preprocess, "statistic": mean_shift},
    }


@pytest.mark.parametrize("what", of_strength(1))
def test_functions_of_ones_own_that_changed_are_not_taken_for_what_they_were(what, tmp_path):
    run_half([1], tmp_path, **of_strength(1.0)[what])
    run_half([1], tmp_path, **of_strength(1.0)[what])
    with pytest.raises(ValueError, match=f"another test; it differs in .*{what}.*values"):
        run_half([1], tmp_path, **of_strength(1.1)[what])


@pytest.mark.parametrize("chunk", [10**9, 0, -4, 2**70])
def test_a_chunk_of_a_size_that_nobody_takes_is_refused(chunk, tmp_path):
    cheap(tmp_path)
    rewrite_manifest(tmp_path, chunk)
    with pytest.raises(ValueError, match=r"manifest.json holds no manifest .*at `\$.chunk`"):
        cheap(tmp_path)
    with pytest.raises(ValueError, match=r"chunk must be a whole number from 1 to 4,096, got 100"):
        cheap(tmp_path / "other", chunk=10**6)


def test_an_edited_manifest_is_noticed(tmp_path):
    right = cheap(tmp_path)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"chunk": 4', '"chunk": 8'))
    with pytest.raises(
        ValueError, match=r"manifest.json .* it is not as sparker wrote it; .*delete"
    ):
        cheap(tmp_path)
    manifest.unlink()
    assert_same(cheap(tmp_path), right)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "recursion"),
        (b"[" * 40 + b"]" * 40, "nested more than 32 deep"),
        (b'{"chunk": 4, "chunk": 8}', "a key stands in it twice"),
        (b'{"chunk": 4, "test": {"b": 1, "b": 1}}', "a key stands in it twice"),
        (b"{" + b'"chunk": 4, ' * 80_000 + b'"test": {}}', "a key stands in it twice"),
        (b" " * 2**21 + b'{"chunk": 4}', "far too large"),
        (b'{"chunk": ' + b"9" * 10_000 + b"}", "out of range|not as it was written"),
        (b'{"chunk": 4, "test": {"a": 1e999}}', "out of range"),
        (b'{"chunk": 4, "test": {"a": Infinity}}', "malformed"),
    ],
    ids=["deep", "rather deep", "twice", "twice inside", "often", "huge", "long", "1e999", "Inf"],
)
def test_a_manifest_made_to_do_harm_is_refused(content, message, tmp_path):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(
        ValueError, match=f"manifest.json holds no manifest of a store .*({message})"
    ):
        cheap(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["manifest.json", "toys-000000-000003.sparker"])
def test_nobody_waits_for_what_comes_out_of_a_pipe(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=f"{name} .*it is no ordinary file"):
        cheap(tmp_path)


@pytest.mark.parametrize("name", ["manifest.json", THREE_CHUNKS[1], "toys-000100-000103.sparker"])
@pytest.mark.parametrize("dangling", [False, True], ids=["a link", "a link to nothing"])
def test_no_link_in_a_store_is_followed(name, dangling, tmp_path):
    """Neither to read what lies elsewhere nor to write there, here or by merging."""
    cheap(store := tmp_path / "store")
    elsewhere = tmp_path / "elsewhere"
    source = store / name if (store / name).exists() else store / THREE_CHUNKS[1]
    content = source.read_bytes()
    source.unlink()
    if not dangling:
        elsewhere.write_bytes(content)
    (store / name).symlink_to(elsewhere)
    message = f"{name} holds no .*it is a link, which is not followed"
    with pytest.raises(ValueError, match=message):
        cheap(store)
    for stores_, into in (([store], tmp_path / "all"), ([store], store)):
        with pytest.raises(ValueError, match=message):
            sparker.merge(stores_, into)
    assert sorted(os.listdir(tmp_path)) == [*["elsewhere"][: not dangling], "store"]
    assert dangling or elsewhere.read_bytes() == content


# Somebody else at work in the same folder.


def during(folder, act):
    """Do this once the first chunk is there."""
    return {
        "progress": lambda done, total: act() if done == CHUNK else None,
        "statistic": mean_shift,
        "store": folder,
    }


def test_a_store_that_is_removed_midway_is_said_to_be_gone(tmp_path):
    with pytest.raises(ValueError, match="was removed while it was in use; the same call begins"):
        run(**during(tmp_path / "store", lambda: shutil.rmtree(tmp_path / "store")))
    assert_same(cheap(tmp_path / "store"), whole_mean_shift())


def test_a_store_that_becomes_read_only_midway_keeps_what_it_has(tmp_path, monkeypatch):
    opened = os.open

    def denied(path, flags, *arguments, **settings):
        if flags & os.O_CREAT and names(tmp_path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, flags, *arguments, **settings)

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(ValueError, match=r"cannot be written: Permission denied; .* is kept"):
        cheap(tmp_path)
    monkeypatch.undo()
    assert names(tmp_path) == THREE_CHUNKS[:1]
    assert_same(cheap(tmp_path), whole_mean_shift())


def test_a_manifest_that_is_removed_midway_costs_nothing(tmp_path):
    manifest = tmp_path / "manifest.json"
    assert_same(run(**during(tmp_path, manifest.unlink)), whole_mean_shift())
    assert_same(cheap(tmp_path), whole_mean_shift())


def test_a_chunk_that_cannot_be_read_is_named(tmp_path):
    cheap(tmp_path)
    (tmp_path / THREE_CHUNKS[1]).unlink()
    (tmp_path / THREE_CHUNKS[1]).mkdir()
    with pytest.raises(ValueError, match=f"{THREE_CHUNKS[1]} cannot be read: Is a directory; del"):
        cheap(tmp_path)


def test_a_chunk_that_goes_away_while_a_store_is_read_is_made_anew(tmp_path, monkeypatch):
    cheap(tmp_path)
    listed = stores.chunk_files

    def and_remove(folder):
        found = listed(folder)
        (folder / THREE_CHUNKS[1]).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(stores, "chunk_files", and_remove)
    assert_same(cheap(tmp_path), whole_mean_shift())


def test_of_two_tests_that_begin_one_store_at_once_one_is_refused(tmp_path, monkeypatch):
    read = stores.read_manifest
    others = []

    def begin_in_between(folder):
        found = read(folder)
        if found is None and not others:
            others.append(1)
            stores.Store(folder, {"seed": 1}, 4)
        return found

    monkeypatch.setattr(stores, "read_manifest", begin_in_between)
    with pytest.raises(ValueError, match=r"differs in seed \(1 there, 0 here\)"):
        stores.Store(tmp_path, {"seed": 0}, 4)
    assert os.listdir(tmp_path) == ["manifest.json"]
    assert stores.begun(tmp_path) == 4


def test_processes_that_share_a_store_find_the_same(tmp_path):
    code = """
found = run(store=sys.argv[1], statistic=mean_shift, n_toys=60)
print(found.p_value.hex(), found.null_statistics.tobytes().hex())
"""
    told = [one.communicate() for one in [child(code, tmp_path) for _ in range(3)]]
    expected = run(statistic=mean_shift, n_toys=60)
    for out, error in told:
        p_value, table = out.split() or (None, None)
        assert p_value == expected.p_value.hex(), error
        assert table == expected.null_statistics.tobytes().hex()
    assert len(names(tmp_path)) == 16


@pytest.mark.slow
def test_killed_a_hundred_times_at_any_moment_the_p_value_is_the_same_to_the_bit(tmp_path):
    """The command line, with SIGKILL and SIGTERM in turn, each after another time."""
    rng = np.random.default_rng(11)
    for name, rows in zip(("reference", "data"), make_samples(), strict=True):
        np.save(tmp_path / f"{name}.npy", rows)

    def begin(store):
        return subprocess.Popen(
            [sys.executable, "-m", "sparker", "test", tmp_path / "reference.npy",
             tmp_path / "data.npy", "--toys", "400", "--json", "--store", store],
            env=os.environ | {"JAX_PLATFORMS": "cpu"}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def answer(process):
        out, error = process.communicate()
        assert process.returncode == 0, error
        return {name: json.loads(out)[name] for name in ("p_value", "families", "toys")}

    begin(tmp_path / "first").communicate()  # compiles
    began = time.monotonic()
    expected = answer(begin(tmp_path / "whole"))
    takes = time.monotonic() - began
    killed = 0
    for number in range(100):
        store = tmp_path / f"store-{number // 10}"  # ten times in each
        process = begin(store)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.2, 1) * takes)
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL if number % 2 else signal.SIGTERM)
        process.communicate()
        if number % 10 == 9:
            assert answer(begin(store)) == expected
    assert killed > 50


# Toys without a value.


def lost_in(columns):
    def statistic(rng, sample):
        lost = columns if rng.random() < 0.3 else [False, False]
        return np.where(lost, np.nan, mean_shift(rng, sample))

    return statistic


@pytest.mark.parametrize("columns", [[True, True], [True, False]], ids=["all", "one"])
def test_a_lost_toy_counts_as_more_extreme_than_the_data_and_is_kept(columns, tmp_path):
    reference, data = make_samples()
    settings = {"n_toys": 39, "statistic": lost_in(columns), "store": tmp_path}
    result = sparker.test(reference, data + 5, **quick(**settings))
    n_lost = np.isnan(result.null_t).any(axis=1).sum()
    assert 3 < n_lost < 25
    lost = np.isnan(result.null_t).all(axis=1)  # a toy with another reading is not lost
    stored = [chunk.statistics for chunk in opened(tmp_path).read()]
    np.testing.assert_array_equal(np.concatenate(stored)[1:], result.null_t)
    assert_same(sparker.test(reference, data + 5, **quick(**settings)), result)
    assert result.n_failed == result.to_dict()["toys"]["failed"] == lost.sum()
    said = f"{n_lost} toys had no finite" if all(columns) else f"not finite in {n_lost} of 39 toys"
    assert said in result.summary()
    assert result.above == lost.sum()
    assert result.p_value == pytest.approx((1 + lost.sum()) / 40)


def opened(folder):
    found = stores.read_manifest(folder)
    return stores.Store(folder, found.test, found.chunk)


def test_toys_that_are_all_lost_leave_a_p_value_of_one(tmp_path):
    reference, data = make_samples()

    def only_the_data(rng, sample):
        labelled = sample.points[sample.data_weight > 0]
        is_observed = np.array_equal(np.sort(labelled, axis=0), np.sort(data, axis=0))
        return 3.0 if is_observed else np.nan

    settings = quick(statistic=only_the_data, preprocess=sparker.unchanged)
    result = sparker.test(reference, data, **settings)
    assert (result.p_value, result.n_failed) == (1, N_TOYS)
