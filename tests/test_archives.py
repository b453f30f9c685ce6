"""Files of ours that others changed: what comes back is what was written, or one clear error.

Real files are damaged at random, with seeds that are kept: bytes are flipped, cut, spliced, members
doubled and swapped. Then they are forged, by somebody who knows how the digest is made: any value
of the header, any array may be another one.
"""

import functools
import json
import time

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.reliability.damage import BYTES, MEMBERS
from experiments.reliability.forgery import forged

import sparker
from sparker import report
from sparker.calibration import store as stores
from sparker.calibration.chunk_file import KIND as CHUNK_OF_TOYS
from sparker.calibration.chunk_file import read_chunks
from sparker.calibration.monitor_file import pack
from sparker.cli.main import main
from sparker.findings.saved import KIND as RESULT
from sparker.monitor import KIND as MONITOR
from sparker.system import archive

SMALL = {
    "chunk": 4,
    "config": sparker.FitConfig(n_kernels=3),
    "widths": sparker.WidthConfig(steps=20, n_widths=3),
    "progress": False,
}
MANIFEST = "manifest"
KINDS = {RESULT: "result.npz", MONITOR: "monitor.npz", CHUNK_OF_TOYS: None, MANIFEST: None}
MOST_SECONDS = 20
"""For one file; each takes milliseconds, and what hangs takes for ever."""


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
    found.save(folder / "result.npz")
    rows = rng.normal(size=(200, 2))
    monitor = sparker.Monitor.calibrate(rows, [30, 40], n_toys=8, **SMALL)
    monitor.save(folder / "monitor.npz")
    first, *_ = stores.chunk_files(folder / "store")
    return {
        RESULT: folder / "result.npz",
        MONITOR: folder / "monitor.npz",
        CHUNK_OF_TOYS: first,
        MANIFEST: folder / "store" / "manifest.json",
    }


def load(kind, path, test=None):
    """What a file holds, as plain values and arrays that can be compared."""
    if kind == RESULT:
        return sparker.TestResult.load(path)
    if kind == MONITOR:
        return pack(vars(sparker.Monitor.load(path)))
    if kind == MANIFEST:
        return stores.read_manifest(path.parent)
    ((numbers, statistics, models, counts),) = read_chunks([path], test)
    return numbers, {"statistics": statistics, "counts": counts, **models._asdict()}


def same(one, other):
    if isinstance(one, sparker.TestResult):
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, tuple):
        return all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)
    return one == other


# Damage.


def assert_same_or_refused(kind, files, folder, seed):
    """One case of damage; the seed is all that decides it."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    whole = files[kind].read_bytes()
    ways = BYTES if kind == MANIFEST else BYTES + MEMBERS
    others = [files[one] for one in KINDS if one not in (kind, MANIFEST)]
    damaged = ways[seed % len(ways)](rng, whole, rng.choice(others).read_bytes())
    path = folder / files[kind].name
    path.write_bytes(damaged)
    test = stores.digest_of_test(stores.read_manifest(files[MANIFEST].parent))
    began = time.monotonic()
    try:
        found = load(kind, path, test)
    except ValueError as error:
        assert path.name in str(error), seed  # noqa: PT017
    else:
        assert same(found, load(kind, files[kind], test)), seed
    assert time.monotonic() - began < MOST_SECONDS, seed


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_what_it_was_or_refused(kind, files, tmp_path):
    for seed in range(140):
        assert_same_or_refused(kind, files, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_damaged_in_thousands_of_ways_is_what_it_was_or_refused(kind, files, tmp_path):
    for seed in range(1000, 6000):
        assert_same_or_refused(kind, files, tmp_path, seed)


# Forgery.


def use(kind, found):
    """What one does with a file that was loaded."""
    if kind == RESULT:
        assert 0 < found.p_value <= 1
        found.summary()
        json.dumps(found.to_dict())
        found.rows()
        found.regions()
        found.columns()
    return found


def assert_usable_or_refused(kind, files, folder, seed, use=use):
    """One case of forgery. No other error than ours, and what is loaded can be used."""
    rng = np.random.default_rng([seed, 1, list(KINDS).index(kind)])
    path = folder / files[kind].name
    forged(rng, kind, files[kind], path)
    test = stores.digest_of_test(stores.read_manifest(files[MANIFEST].parent))
    began = time.monotonic()
    try:
        found = load(kind, path, test)
    except ValueError as error:
        assert path.name in str(error), seed  # noqa: PT017
    else:
        use(kind, found)
    assert time.monotonic() - began < MOST_SECONDS, seed


@pytest.mark.parametrize("kind", [RESULT, MONITOR, CHUNK_OF_TOYS])
def test_a_forged_file_can_be_used_or_is_refused(kind, files, tmp_path):
    for seed in range(150):
        assert_usable_or_refused(kind, files, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RESULT, MONITOR, CHUNK_OF_TOYS])
def test_a_file_forged_in_thousands_of_ways_can_be_used_or_is_refused(kind, files, tmp_path):
    for seed in range(1000, 5000):
        assert_usable_or_refused(kind, files, tmp_path, seed)


@pytest.mark.slow
def test_a_forged_result_that_is_not_refused_has_a_report_and_a_picture(files, tmp_path):
    def show(kind, found):
        found.plot()
        assert "</html>" in report.render(found)

    for seed in range(10_000, 10_400):
        assert_usable_or_refused(RESULT, files, tmp_path, seed, show)


HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"
KEPT = {"kind", "preprocess", "combine", "competition", "frame", "encoding", "readings"}
"""What must be one of sparker's own words, or is asked for by its name."""


def hostile(value):
    """The same with markup in every text."""
    if isinstance(value, dict):
        return {f"{key}": hostile(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return value + HOSTILE if isinstance(value, str) else value


def test_texts_of_a_forged_result_stay_texts_in_its_report(files, tmp_path):
    header, arrays = archive.read(files[RESULT], RESULT)
    forged = {key: item if key in KEPT else hostile(item) for key, item in header.items()}
    forged |= {"files": [HOSTILE, HOSTILE], "notes": [HOSTILE]}
    for column in forged["encoding"]["columns"]:
        column["column"] += HOSTILE
    forged["given"] = [[name + HOSTILE, hostile(cells)] for name, cells in header["given"]]
    archive.write(tmp_path / "result.npz", forged, arrays)
    page = report.render(sparker.TestResult.load(tmp_path / "result.npz"))
    plain = report.render(sparker.TestResult.load(files[RESULT]))
    assert "onerror" in page  # it is there, as a text
    assert "<img src=x" not in page
    assert page.count("<script") == plain.count("<script")
    assert page.count("</script") == plain.count("</script")


@pytest.mark.parametrize(
    "command",
    [("info", RESULT), ("report", RESULT), ("info", MONITOR), ("watch", MONITOR)],
    ids=" ".join,
)
def test_commands_refuse_an_edited_file_in_a_line(command, files, tmp_path):
    name, kind = command
    path = tmp_path / files[kind].name
    with np.load(files[kind]) as file:
        parts = {part: file[part] for part in file}
    np.savez(path, **parts | {"reference": parts["reference"] + 1})
    more = {"report": ["--output", tmp_path / "r.html"], "watch": [tmp_path / "batch.npy"]}
    np.save(tmp_path / "batch.npy", np.zeros((30, 2)))
    done = CliRunner().invoke(main, [str(part) for part in (name, path, *more.get(name, []))])
    assert done.exit_code == 2, done.output
    assert f"{path.name} is not a " in done.stderr
    assert "contents are not those it was written with" in " ".join(done.stderr.split())
    assert not (tmp_path / "r.html").exists()


@functools.cache
def deep(levels):
    return functools.reduce(lambda inner, _: [inner], range(levels), 1)


@pytest.mark.parametrize("kind", [RESULT, MONITOR, CHUNK_OF_TOYS])
def test_a_header_that_is_too_deep_is_refused(kind, files, tmp_path):
    path = tmp_path / files[kind].name
    header, arrays = archive.read(files[kind], kind)
    archive.write(path, header | {"notes": deep(100)}, arrays)
    with pytest.raises(ValueError, match=f"{path.name} is not a .* nested more than 32 deep"):
        load(kind, path, "")


def test_a_device_is_not_searched_for_its_end(tmp_path):
    device = tmp_path / "x.npz"
    device.symlink_to("/dev/zero")
    assert not archive.is_archive(device)
    for command in (["info"], ["report"], ["watch", tmp_path]):
        done = CliRunner().invoke(main, [command[0], str(device), *map(str, command[1:])])
        assert done.exit_code == 2, done.output
        assert "is no ordinary file" in " ".join(done.stderr.split())
