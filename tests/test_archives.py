"""Files of ours that others changed: what comes back is what was written, or one clear error.

Real files are damaged at random, with seeds that are kept: bytes are flipped, cut, spliced, members
doubled and swapped. Then they are forged, by somebody who knows how the digest is made: any value
of the header, any array may be another one.
"""

import functools
import io
import json
import struct
import time
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

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
    ((numbers, measured, models),) = read_chunks([path], test)
    return numbers, {**measured._asdict(), **models._asdict()}


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


def flip(rng, whole, other):
    found = bytearray(whole)
    for place in rng.integers(len(found), size=rng.integers(1, 9)):
        found[place] ^= 1 << rng.integers(8)
    return bytes(found)


def flip_what_counts(rng, whole, other):
    """Where a zip says how long, how large and how packed its parts are."""
    marks = [whole.find(mark) for mark in (b"PK\x01\x02", b"PK\x05\x06", b"PK\x03\x04")]
    start = int(rng.choice([mark for mark in marks if mark >= 0] or [0]))
    found = bytearray(whole)
    found[min(start + int(rng.integers(4, 30)), len(found) - 1)] = rng.integers(256)
    return bytes(found)


def cut(rng, whole, other):
    return whole[: rng.integers(len(whole))]


def cut_out(rng, whole, other):
    start, end = np.sort(rng.integers(len(whole), size=2))
    return whole[:start] + whole[end:]


def splice(rng, whole, other):
    return whole[: rng.integers(len(whole))] + other[rng.integers(len(other)) :]


def repeat(rng, whole, other):
    start, end = np.sort(rng.integers(len(whole), size=2))
    return whole[:end] + whole[start:end] + whole[end:]


def overwrite(rng, whole, other):
    start, n = rng.integers(len(whole)), rng.integers(1, 400)
    return whole[:start] + rng.bytes(n) + whole[start + n :]


def large_number(rng, whole, other):
    place = int(rng.integers(len(whole) - 8))
    return (
        whole[:place] + struct.pack("<q", int(rng.choice([-1, 2**31, 2**62]))) + whole[place + 8 :]
    )


def members_of(whole):
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        return [(info.filename, file.read(info)) for info in file.infolist()]


def zipped(members, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def twice(rng, whole, other):
    """A part once more, with the contents of another: who reads which?"""
    members = members_of(whole)
    one, another = (members[i] for i in rng.choice(len(members), 2, replace=False))
    with pytest.warns(UserWarning, match="Duplicate name"):
        return zipped([*members, (one[0], another[1])])


def swap(rng, whole, other):
    members = members_of(whole)
    i, j = rng.choice(len(members), 2, replace=False)
    (one, first), (another, second) = members[i], members[j]
    members[i], members[j] = (one, second), (another, first)
    return zipped(members)


def leave_out(rng, whole, other):
    members = members_of(whole)
    del members[rng.integers(len(members))]
    return zipped(members)


def rename(rng, whole, other):
    members = members_of(whole)
    i = rng.integers(len(members))
    members[i] = (rng.choice(["../../x.npy", "/etc/x.npy", "x", ""]), members[i][1])
    return zipped(members)


def foreign(rng, whole, other):
    """A part of another file in place of one's own."""
    members, others = members_of(whole), members_of(other)
    i = rng.integers(len(members))
    members[i] = (members[i][0], others[rng.integers(len(others))][1])
    return zipped(members)


def compress(rng, whole, other):
    return zipped(members_of(whole), zipfile.ZIP_DEFLATED)


BYTES = flip, flip_what_counts, cut, cut_out, splice, repeat, overwrite, large_number
MEMBERS = twice, swap, leave_out, rename, foreign, compress


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

STRANGE = [
    None, True, False, 0, -1, 1, 7, 10**9, 10**30, 0.5, -0.5, 1e300, float("nan"), float("inf"), "",
    "x", "../../etc/passwd", "<script>alert(1)</script>", "\ud800", [], [0], [None], ["x", 1], {},
    {"option": "softmax"}, {"is": []}, [[[]]], [1e308] * 3,
]  # fmt: skip


def forge_value(rng, value):
    """Something else somewhere inside a value of JSON."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[rng.integers(len(keys))]
        changed = dict(value) if isinstance(value, dict) else list(value)
        if rng.random() < 0.1:
            del changed[key]
        else:
            changed[key] = forge_value(rng, value[key])
        return changed
    return STRANGE[rng.integers(len(STRANGE))]


def forge_array(rng, array, others):
    """Another shape, another kind, other values, or another array altogether."""
    way = rng.integers(8)
    if way == 0:
        return array[:-1] if array.ndim and len(array) else np.zeros(2)
    if way == 1:
        return array[..., None]
    if way == 2:
        return np.zeros(array.shape, rng.choice(["U3", "c16", "M8[s]", "i8", "?", "u1", "S2"]))
    if way == 3 and array.dtype.kind in "fiu" and array.size:
        changed = array.copy()
        kinds = [-1, 0, 2**31 - 1] if array.dtype.kind in "iu" else [np.nan, np.inf, -5, 1e30, 0]
        changed.flat[rng.integers(array.size)] = np.array(rng.choice(kinds)).astype(array.dtype)
        return changed
    if way == 4:
        return array.ravel()
    if way == 5:
        return np.zeros((0, *array.shape[1:]), array.dtype)
    if way == 6:
        return np.zeros((), array.dtype)
    return others[rng.integers(len(others))]


def forged(rng, kind, path, to):
    """The file with something else in it, and the digest that belongs to that."""
    header, arrays = archive.read(path, kind)
    for _ in range(rng.integers(1, 3)):
        if rng.random() < 0.5:
            header = forge_value(rng, header)
            header = {**(header if isinstance(header, dict) else {}), "kind": kind}
        else:
            name = list(arrays)[rng.integers(len(arrays))]
            arrays[name] = forge_array(rng, arrays[name], list(arrays.values()))
    archive.write(to, header, arrays)


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
