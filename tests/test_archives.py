"""Files of ours that others changed: what comes back is what was written, or one clear error.

Real files are damaged at random, with seeds that are kept: bytes are flipped, cut, spliced. Then
they are forged, by somebody who knows how the digest is made: any value of the JSON text and any
array may be another one.
"""

import dataclasses
import json
import time
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from experiments.reliability.damage import mutated
from safetensors import numpy as safetensors
from sealed import value_of

import sparker
from sparker import report
from sparker.anytime import KIND as ANYTIME
from sparker.calibration import store as stores
from sparker.calibration.store import KIND as CHUNK_OF_TOYS
from sparker.cli.main import main
from sparker.findings.result import KIND as RESULT
from sparker.monitor import KIND as MONITOR
from sparker.statistics.moments import Mahalanobis
from sparker.system import archive
from sparker.system.archive import ArraySpec, Count, Each, Share
from sparker.system.digest import digest_of_plain

SMALL = {
    "chunk": 4,
    "config": sparker.FitConfig(n_kernels=3),
    "widths": sparker.WidthConfig(steps=20, n_widths=3),
    "progress": False,
}
MANIFEST = "manifest"
KINDS = [RESULT, MONITOR, ANYTIME, CHUNK_OF_TOYS, MANIFEST]
MOST_SECONDS = 20
"""For one file; each takes milliseconds, and what hangs takes for ever."""


# Values of any type.


class Part(NamedTuple):
    rows: Annotated[np.ndarray, ArraySpec("N d")]
    scale: Annotated[np.ndarray, ArraySpec("")]
    turn: Annotated[np.ndarray, ArraySpec("d | d r", low=-1, high=1)]


@dataclasses.dataclass(frozen=True)
class Whole:
    share: Share
    count: Count
    part: Part
    parts: Annotated[Part, Each("n")] | None
    cells: dict[str, Annotated[np.ndarray, ArraySpec("N", kinds="OMUb", finite=False)]]
    spread: Annotated[np.ndarray, ArraySpec("N", kinds="iu")]


WHOLE = Whole(
    0.5,
    3,
    Part(np.ones((3, 2)), np.array(2.0), np.zeros(2)),
    Part(np.ones((5, 3, 2), np.float32), np.zeros(5), np.zeros((5, 2, 4))),
    {
        "texts": np.array(["a", None, True], object),
        "times": np.array(["2024-01-01", "NaT", "2024-01-03"], "M8[us]"),
        "names": np.array(["x", "", "é"]),
        "flags": np.array([True, False, True]),
    },
    np.arange(3, dtype=np.uint32),
)


def test_what_is_read_is_what_was_written(tmp_path):
    archive.write(tmp_path / "x", "whole", WHOLE)
    found = archive.read(tmp_path / "x", {"whole": Whole})
    assert (found.share, found.count) == (WHOLE.share, WHOLE.count)
    found_arrays, arrays = (
        [*one.part, *one.parts, *one.cells.values(), one.spread] for one in (found, WHOLE)
    )
    for one, other in zip(found_arrays, arrays, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert np.array_equal(one, other, equal_nan=one.dtype.kind in "fM")
    assert list(found.cells) == list(WHOLE.cells)
    assert archive.is_archive(tmp_path / "x")
    assert len({archive.packed("whole", WHOLE) for _ in range(5)}) == 1  # to the bit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"share": 1.5}, r"Expected `float` <= 1.0 - at `\$.share`"),
        ({"share": np.inf}, "Expected `float`, got `null`"),
        ({"count": -1}, "Expected `int` >= 0"),
        ({"count": 2.5}, "Expected `int`"),
        ({"part": WHOLE.part._replace(rows=np.ones((4, 2)))}, r"cells has shape \(3,\), not \(N\)"),
        ({"part": WHOLE.part._replace(rows=np.ones((3, 2), int))}, "part.rows holds int64"),
        ({"part": WHOLE.part._replace(turn=np.full(2, 1.5))}, "part.turn .* between -1 and 1"),
        ({"part": WHOLE.part._replace(turn=np.full(2, np.nan))}, "part.turn .* not finite"),
        ({"part": WHOLE.part._replace(turn=np.zeros((2, 3, 4)))}, r"not \(d \| d r\)"),
        ({"parts": WHOLE.part}, r"parts.rows has shape \(3, 2\), not \(n N d\)"),
        ({"parts": WHOLE.parts._replace(scale=np.zeros(4))}, r"parts.scale has shape \(4,\)"),
        ({"cells": {"numbers": np.zeros(3)}}, "cells holds float64"),
        ({"spread": np.zeros(3)}, "spread holds float64"),
        ({"spread": [1, 2, 3]}, "Expected `array` of length 2, got 3"),
    ],
)
def test_what_a_field_does_not_declare_is_refused(change, message, tmp_path):
    archive.write(tmp_path / "x", "whole", dataclasses.replace(WHOLE, **change))
    with pytest.raises(ValueError, match=f"x holds no whole .*{message}"):
        archive.read(tmp_path / "x", {"whole": Whole})


# Real files.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One file of each kind."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    colours = np.array(["red", "blue", "green"], object)
    reference, data = (
        {"x": rng.normal(size=n), "y": rng.normal(size=n), "colour": rng.choice(colours, n)}
        for n in (200, 50)
    )
    data["x"][:12] = 3 + 0.1 * data["x"][:12]
    found = sparker.test(reference, data, n_toys=19, store=folder / "store", **SMALL)
    found.save(folder / "result.sparker")
    rows = rng.normal(size=(200, 2))
    monitor = sparker.Monitor(rows, looks=3, alpha=0.2, statistic=Mahalanobis())
    monitor.look(rows[:30] + 0.1)
    monitor.save(folder / "monitor.sparker")
    anytime = sparker.AnytimeMonitor.start(rows)
    anytime.look(rng.normal(size=(600, 2)))
    anytime.save(folder / "anytime.sparker")
    first, *_ = stores.chunk_files(folder / "store")
    return {
        RESULT: folder / "result.sparker",
        MONITOR: folder / "monitor.sparker",
        ANYTIME: folder / "anytime.sparker",
        CHUNK_OF_TOYS: first,
        MANIFEST: folder / "store" / "manifest.json",
    }


def load(kind, path, test):
    """What a file holds, as the bytes that it would be written with."""
    if kind == MANIFEST:
        return msgspec.json.encode(stores.read_manifest(path.parent))
    if kind == CHUNK_OF_TOYS:
        (found,) = stores.read_chunks([path], test)
        return archive.packed(kind, found)
    found = sparker.load(path)
    return archive.packed(kind, found.saved()) if kind == RESULT else found.packed()


def digest_in(files):
    return digest_of_plain(stores.read_manifest(files[MANIFEST].parent).test)


def assert_same_or_refused(kind, files, folder, seed):
    """One case of damage; the seed is all that decides it."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    whole = files[kind].read_bytes()
    damaged = mutated(whole, rng)
    if seed % 4 == 0:  # the beginning of this one and the end of another
        other = files[KINDS[seed % len(KINDS)]].read_bytes()
        damaged = whole[: rng.integers(len(whole))] + other[rng.integers(len(other)) :]
    path = folder / files[kind].name
    path.write_bytes(damaged)
    began = time.monotonic()
    try:
        found = load(kind, path, digest_in(files))
    except ValueError as error:
        assert path.name in str(error), seed  # noqa: PT017
    else:
        assert found == load(kind, files[kind], digest_in(files)), seed
    assert time.monotonic() - began < MOST_SECONDS, seed


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_what_it_was_or_refused(kind, files, tmp_path):
    for seed in range(100):
        assert_same_or_refused(kind, files, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_damaged_in_thousands_of_ways_is_what_it_was_or_refused(kind, files, tmp_path):
    for seed in range(1000, 4000):
        assert_same_or_refused(kind, files, tmp_path, seed)


# Forgery.

STRANGE = [
    None, True, 0, -1, 1, 7, 10**9, 10**30, 0.5, -0.5, 1e300, "", "x", "../../etc/passwd", [], [0],
    ["x", 1], {}, [[[]]], [1e308] * 3, ["0", "<f8"], ["1", "|O"], ["2", "<U3"], ["0", "<M8[s]"],
]  # fmt: skip


def forged_value(rng, value):
    """Something else somewhere inside a value of JSON."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        changed = value.copy()
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[rng.integers(len(keys))]
        if rng.random() < 0.1:
            del changed[key]
        else:
            changed[key] = forged_value(rng, value[key])
        return changed
    return STRANGE[rng.integers(len(STRANGE))]


def forged_array(rng, array):
    """Another shape, another kind, or other values."""
    strange = [-1, 0, 2**31 - 1] if array.dtype.kind in "iu" else [np.nan, np.inf, -5, 1e30, 0]
    changed = array.copy()
    if array.size:
        with np.errstate(all="ignore"):
            changed.flat[rng.integers(array.size)] = np.array(rng.choice(strange)).astype(
                array.dtype
            )
    others = [
        changed, changed, array[:-1] if array.ndim else np.zeros(2), array[..., None],
        np.zeros(array.shape, rng.choice(["f4", "i8", "?", "u1"])), array.ravel(),
        np.zeros((0, *array.shape[1:]), array.dtype), np.zeros((), array.dtype),
    ]  # fmt: skip
    return others[rng.integers(len(others))]


def forged(rng, content, kind):
    """The file with something else in it, and the digest that belongs to that."""
    value, arrays = value_of(content), safetensors.load(content)
    for _ in range(rng.integers(1, 3)):
        if rng.random() < 0.5:
            value = forged_value(rng, value)
        else:
            name = sorted(arrays)[rng.integers(len(arrays))]
            arrays[name] = forged_array(rng, arrays[name])
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return archive.sealed(kind, msgspec.json.encode(value), arrays)


def use(kind, path):
    """What one does with a file that was loaded."""
    if kind == CHUNK_OF_TOYS:
        return
    found = sparker.load(path)
    found.summary()
    json.dumps(found.to_dict(), allow_nan=False)
    if kind == RESULT:
        assert 0 < found.p_value <= 1
        found.rows()
        found.regions()
        found.columns()
    elif kind == ANYTIME:
        found.look(np.random.default_rng(0).normal(size=(20, 2)))


def show(kind, path):
    found = sparker.load(path)
    found.plot()
    assert "</html>" in report.render(found)


def assert_usable_or_refused(kind, files, folder, seed, use=use):
    """One case of forgery. No other error than ours, and what is loaded can be used."""
    rng = np.random.default_rng([seed, 1, KINDS.index(kind)])
    path = folder / files[kind].name
    path.write_bytes(forged(rng, files[kind].read_bytes(), kind))
    began = time.monotonic()
    try:
        load(kind, path, digest_in(files))
    except ValueError as error:
        assert path.name in str(error), seed  # noqa: PT017
    else:
        use(kind, path)
    assert time.monotonic() - began < MOST_SECONDS, seed


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_forged_file_can_be_used_or_is_refused(kind, files, tmp_path):
    for seed in range(100):
        assert_usable_or_refused(kind, files, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[:-1])
def test_a_file_forged_in_thousands_of_ways_can_be_used_or_is_refused(kind, files, tmp_path):
    for seed in range(1000, 4000):
        assert_usable_or_refused(kind, files, tmp_path, seed)


@pytest.mark.slow
def test_a_forged_result_that_is_not_refused_has_a_report_and_a_picture(files, tmp_path):
    for seed in range(10_000, 10_400):
        assert_usable_or_refused(RESULT, files, tmp_path, seed, show)


HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"


def test_texts_of_a_forged_result_stay_texts_in_its_report(files, tmp_path):
    found = sparker.load(files[RESULT])
    columns = tuple(
        one._replace(name=one.name + HOSTILE, levels=tuple(level + HOSTILE for level in one.levels))
        for one in found.encoding.columns
    )
    forged = dataclasses.replace(
        found,
        encoding=found.encoding._replace(columns=columns),
        given={name + HOSTILE: column + HOSTILE for name, column in found.given.items()},
        files=(HOSTILE, HOSTILE),
        notes=(HOSTILE,),
        made=HOSTILE,
        warnings=tuple(one._replace(text=HOSTILE) for one in found.warnings),
        versions={"sparker": HOSTILE, HOSTILE: HOSTILE},
        settings=found.settings | {HOSTILE: HOSTILE},
    )
    forged.save(tmp_path / "result.sparker")
    page = report.render(sparker.TestResult.load(tmp_path / "result.sparker"))
    plain = report.render(found)
    assert "onerror" in page  # it is there, as a text
    assert "<img src=x" not in page
    assert page.count("<script") == plain.count("<script")
    assert page.count("</script") == plain.count("</script")


COMMANDS = [("info", RESULT), ("report", RESULT), ("info", MONITOR), ("watch", MONITOR)]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_refuse_an_edited_file_in_a_line(command, files, tmp_path):
    name, kind = command
    path = tmp_path / files[kind].name
    content = bytearray(files[kind].read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    more = {"report": ["--output", tmp_path / "r.html"], "watch": [tmp_path / "batch.npy"]}
    np.save(tmp_path / "batch.npy", np.zeros((30, 2)))
    done = CliRunner().invoke(main, [str(part) for part in (name, path, *more.get(name, []))])
    assert done.exit_code == 2, done.output
    said = " ".join(done.stderr.split())
    assert f"{path.name} holds no " in said
    assert "contents are not those it was written with" in said
    assert not (tmp_path / "r.html").exists()


def test_a_device_is_not_searched_for_its_end(tmp_path):
    device = tmp_path / "x.sparker"
    device.symlink_to("/dev/zero")
    assert not archive.is_archive(device)
    with pytest.raises(ValueError, match="it is a link"):
        sparker.load(device)
    with pytest.raises(ValueError, match="it is no ordinary file"):
        sparker.load("/dev/zero")
    for command in (["info"], ["report"], ["watch", tmp_path]):
        done = CliRunner().invoke(main, [command[0], str(device), *map(str, command[1:])])
        assert done.exit_code == 2, done.output
        assert "no ordinary file" in (said := " ".join(done.stderr.split())) or "link" in said, said
