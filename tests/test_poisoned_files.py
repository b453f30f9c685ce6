"""Files that nobody vetted: whatever is in them, the answer is a table or one plain reason.

They do not reach for other files, and they take neither this process nor its memory with them.
"""

import gzip
import json
import os
import subprocess
import sys
import time
import tracemalloc
import zipfile

import h5py
import numpy as np
import pandas as pd
import pytest
import uproot
from click.testing import CliRunner
from experiments.reliability.damage import mutated
from experiments.reliability.elsewhere import write_tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_tables import NAMED, UNNAMED

from sparker.cli.main import main
from sparker.tables import FileError, apart, describe, errors, files, read, source, text

pytestmark = pytest.mark.unit

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(50, 2))


def refuse(path, *messages, **settings):
    """Both who reads it and who asks what is in it get one line that names the file."""
    said = []
    for look in (read, describe):
        with pytest.raises(FileError) as caught:
            look(path, **settings)
        said.append(str(caught.value))
    for one in said:
        assert one.startswith(str(path))
        assert "\n" not in one
        for message in messages:
            assert message in one


# --- Other files ----------------------------------------------------------------------------------


@pytest.fixture
def reaching(tmp_path):
    """HDF5 files whose tables lie in another one."""
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["X"] = ROWS

    def linked(file):
        file["events/X"] = h5py.ExternalLink(secret, "/X")

    def virtual(file, source=secret):
        layout = h5py.VirtualLayout(ROWS.shape, "f8")
        layout[:] = h5py.VirtualSource(source, "X", ROWS.shape)
        file.create_virtual_dataset("events/X", layout)

    def missing(file):
        virtual(file, tmp_path / "none.h5")

    def raw(file):
        file.create_dataset("events/X", (50, 2), "u1", external=[(str(secret), 0, 100)])

    found = {}
    for write in (linked, virtual, missing, raw):
        found[write.__name__] = tmp_path / f"{write.__name__}.h5"
        with h5py.File(found[write.__name__], "w") as file:
            write(file)
            file["own/X"] = ROWS
    return found


@pytest.mark.parametrize("how", ["linked", "virtual", "missing", "raw"])
def test_no_file_is_read_that_was_not_named(reaching, how):
    for key in (None, "events", "events/X"):
        refuse(
            reaching[how],
            "has 'events/X' in another file, and no file is read that was not named; copy its ",
            key=key,
        )
    np.testing.assert_array_equal(read(reaching[how], key="own").points, ROWS)
    if how == "linked":
        refuse(reaching[how], "has 'events/X' in another file", key="events/X/more")


OPENED = """
import sys
opened = []
sys.addaudithook(lambda event, of: opened.append(str(of[0])) if event == "open" else None)
from sparker.tables.formats.root import open_root
from pathlib import Path
for name in sys.argv[1:]:
    with open_root(Path(name), None) as source:
        for column, _, cells in source.pieces(source.names, False):
            print(column, cells.tolist())
print(sorted({Path(name).name for name in opened if name.endswith(".root")}))
"""


def test_a_root_file_sends_nobody_to_another_one(tmp_path):
    write_tree(tmp_path / "secret.root", {"secret": np.arange(3.0)})
    write_tree(tmp_path / "a.root", {"x": np.arange(3.0)}, friend="secret.root")
    write_tree(tmp_path / "b.root", {"y": np.arange(3.0)}, lies_in="secret.root")
    with uproot.open(tmp_path / "a.root", minimal_ttree_metadata=False) as file:
        assert [friend.classname for friend in file["events"].member("fFriends")]
    with uproot.open(tmp_path / "b.root", minimal_ttree_metadata=False) as file:
        assert file["events/y"].member("fFileName") == "secret.root"
    said = subprocess.run(
        [sys.executable, "-c", OPENED, "a.root", "b.root"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.splitlines() == [
        "x [0.0, 1.0, 2.0]", "y [0.0, 1.0, 2.0]", "['a.root', 'b.root']"
    ]  # fmt: skip


def test_a_table_that_was_never_written_is_none(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (50, 2), "f8")
        file.create_dataset("chunks", (10**9, 2), "f8", chunks=(10**6, 2), compression="gzip")
    refuse(path, "has room for X, but nothing was ever written there", key="X")
    refuse(path, "has room for chunks, but nothing was ever written there", key="chunks")


# --- A process of its own -------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["X"] = ROWS
    return path


@pytest.fixture
def reader_that(monkeypatch):
    """What becomes of the process that reads, when it opens a file or has sent some rows of it."""

    def reader_that(does, *, after_rows=False):
        apart.end_all()
        code = "import os, sys, time; sys.path[:] = sys.argv[1:]\n"
        code += "from sparker.tables import apart\nfrom sparker.tables.formats import hdf5\n"
        code += f"from sparker.tables.files import FORMATS\ndef act(*_):\n    {does}\n"
        if after_rows:
            code += "apart.BEFORE = apart._send\n"
            code += "def send(to, header, *content):\n"
            code += "    apart.BEFORE(to, header, *content)\n"
            code += "    if 'cells' in header: to.flush(); act()\n"
            code += "apart._send = send\n"
        else:
            code += "FORMATS['.h5'] = FORMATS['.h5']._replace(opener=act)\n"
        monkeypatch.setattr(apart, "START", code + "apart.serve()")

    yield reader_that
    apart.end_all()


@pytest.mark.parametrize("after_rows", [False, True])
@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("os.abort()", "makes its reader crash (SIGABRT); it is damaged: write it anew"),
        ("os.kill(os.getpid(), 11)", "makes its reader crash (SIGSEGV); it is damaged"),
        ("os._exit(7)", "makes its reader crash (exit code 7)"),
        ("os.kill(os.getpid(), 9)", "does not fit into memory; take fewer columns or rows"),
        ("while True: pass", "keeps its reader busy for more than 1 s without a row"),
        ("time.sleep(99)", "keeps its reader busy for more than 4 s without a row"),
        ("x = bytearray(10**15)", "does not fit into memory"),
        ("raise RuntimeError('what now')", "is no HDF5 file, or a damaged one: what now; write"),
        ("raise OSError(5, 'bad sector')", "cannot be read: bad sector"),
    ],
)
def test_what_becomes_of_the_reader_does_not_become_of_us(
    path, reader_that, monkeypatch, does, message, after_rows
):
    wait = 4 if "sleep" in does else 100  # to work for a second takes long on a busy machine
    monkeypatch.setattr(apart, "MAX_SECONDS", 1)
    monkeypatch.setattr(apart, "MAX_WAIT", wait)
    if after_rows:
        does = f"apart._limit(1, {wait})\n    {does}"  # as before the next row
    reader_that(does, after_rows=after_rows)
    refuse(path, message)
    monkeypatch.undo()
    apart.end_all()
    np.testing.assert_array_equal(read(path).points, ROWS)


def test_the_reader_has_no_more_memory_than_is_free(path, reader_that, monkeypatch):
    monkeypatch.setattr(apart, "free_on_machine", lambda: 2.0**31)
    reader_that("x = bytearray(2**31)")
    refuse(path, "does not fit into memory; take fewer columns or rows")
    reader_that("x = bytearray(2**28); raise ValueError('enough')")
    refuse(path, "enough")


def test_a_reader_waits_for_further_files_and_needs_no_jax(path, reader_that):
    apart.end_all()
    for _ in range(3):
        read(path)
    [reader] = apart._idle
    with pytest.raises(FileError, match="has no column 'none'"):
        read(path, columns=["none"])
    assert apart._idle == [reader]
    reader_that("raise ValueError(sorted(sys.modules.keys() & {'jax', 'scipy', 'numpy'}))")
    refuse(path, "['numpy']")


def test_a_reader_left_in_the_middle_is_not_asked_again(path, monkeypatch):
    apart.end_all()
    monkeypatch.setattr("sparker.tables.source.BLOCK_ROWS", 5)
    with apart.open_apart(".h5", path, None) as source:
        next(source.pieces(("0",), True))
    assert apart._idle == []
    with (
        apart.open_apart(".h5", path, None) as one,
        apart.open_apart(".h5", path, None) as other,
    ):
        both = zip(one.pieces(("0",), True), other.pieces(("1",), True), strict=True)
        for (_, start, first), (_, _, second) in both:
            np.testing.assert_array_equal(first, ROWS[start : start + 5, 0])
            np.testing.assert_array_equal(second, ROWS[start : start + 5, 1])
    assert len(apart._idle) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_process_has_a_reader_of_its_own(path):
    read(path)
    child = os.fork()
    if not child:
        os._exit(0 if not apart._idle and np.array_equal(read(path).points, ROWS) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(read(path).points, ROWS)


def test_without_an_interpreter_files_are_read_here(path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    apart.end_all()
    np.testing.assert_array_equal(read(path).points, ROWS)
    assert apart._idle == []


def test_groups_within_groups_take_no_time(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(1500):
            group = group.create_group("g")
        group["X"] = ROWS
    began = time.monotonic()
    refuse(path, "groups within each other; copy the table into a file of its own")
    assert time.monotonic() - began < 20


# --- Sizes ----------------------------------------------------------------------------------------


@pytest.fixture
def free(monkeypatch):
    """Let the machine have so much memory."""

    def free(n_bytes):
        monkeypatch.setattr(errors, "free_on_machine", lambda: n_bytes)

    return free


def peak(path):
    """Memory that reading took at most, in sizes of the table."""
    tracemalloc.start()
    try:
        table = read(path)
        return tracemalloc.get_traced_memory()[1] / table.points.nbytes
    finally:
        tracemalloc.stop()


def test_an_archive_is_never_in_memory_beside_its_table(tmp_path, free):
    path = tmp_path / "x.npz"
    zeros = np.zeros((10**6, 2))
    np.savez_compressed(path, X=zeros)
    assert path.stat().st_size < 10**5
    assert peak(path) < 1.5
    free(10**7)
    message = "needs 0.0149 GiB for 1000000 rows and 2 columns, while 0.00931 GiB are free; take"
    refuse_reading(path, f"{message} fewer columns or a uniform random sample of 625,000 rows")
    np.savez_compressed(path, X=np.asfortranarray(zeros))
    free(3 * 10**7)
    assert read(path).points.shape == zeros.shape
    free(15 * 10**6)
    refuse_reading(path, "needs")


@pytest.mark.parametrize("name", ["x.csv.gz", "x.jsonl.gz", "x.npz", "x.h5", "x.parquet"])
def test_a_file_that_unpacks_to_far_more_than_it_has_is_refused(tmp_path, monkeypatch, name):
    """Also where there is memory for it."""
    zeros = np.zeros((50_000, 2))
    path = tmp_path / name
    write = {
        "x.csv.gz": lambda: path.write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 50_000)),
        "x.jsonl.gz": lambda: path.write_bytes(gzip.compress(b"[0,0]\n" * 50_000)),
        "x.npz": lambda: np.savez_compressed(path, X=zeros),
        "x.h5": lambda: write_h5(path, zeros, compression="gzip"),
        "x.parquet": lambda: pd.DataFrame({"a": zeros[:, 0], "b": zeros[:, 1]}).to_parquet(path),
    }
    write[name]()
    assert read(path).points.shape == zeros.shape  # a few are always fine
    monkeypatch.setattr(errors, "ALWAYS_FINE", 10**5)
    monkeypatch.setattr(errors, "MAX_RATIO", 50)
    refuse_reading(path, f"has {path.stat().st_size:,} bytes and unpacks to", "as .npy say")
    monkeypatch.setattr(errors, "MAX_RATIO", 10**5)
    assert read(path).points.shape == zeros.shape


def refuse_reading(path, *messages):
    with pytest.raises(FileError) as caught:
        read(path)
    for message in messages:
        assert message in str(caught.value)


@pytest.mark.parametrize("name", ["x.csv.gz", "x.jsonl.gz"])
def test_long_lines_are_counted_while_they_are_unpacked(tmp_path, free, monkeypatch, name):
    path = tmp_path / name
    is_json = "json" in name
    row = '{"a": "%s", "b": 1}\n' % ("x" * 10**5) if is_json else f"{'x' * 10**5},1\n"
    with gzip.open(path, "wt") as file:
        file.write(("" if is_json else "a,b\n") + row * 200)
    assert path.stat().st_size < 10**5
    monkeypatch.setattr(text, "BLOCK_CHARACTERS", 10**6)
    assert describe(path).rows == 200  # all of them, in blocks of ten
    assert read(path).points[:, 1].tolist() == [1] * 200
    tracemalloc.start()
    assert describe(path).rows == 200
    assert tracemalloc.get_traced_memory()[1] < 10**7  # of 2 * 10**7 characters
    tracemalloc.stop()
    free(2 * 10**7)
    refuse_reading(path, "GiB for lines as long as these, while 0.0186 GiB are free; take fewer")
    free(25 * 10**6)
    assert describe(path).rows == 200


def test_texts_are_kept_as_long_as_there_is_room(tmp_path, free):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": "%s"}\n' % ("x" * 1000) * 1000)
    free(10**6)
    refuse_reading(path, "GiB for column 'a', while 0.000931 GiB are free; take fewer columns or")


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.npy", "x.h5"])
def test_more_columns_than_can_be_told_apart_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(source, "MAX_COLUMNS", 1000)
    path = tmp_path / name
    write = {
        ".csv": lambda: path.write_text(",".join(["1"] * 1001) + "\n"),
        ".tsv": lambda: path.write_text("1\t2\n" + "\t".join(["1"] * 1002) + "\n"),
        ".jsonl": lambda: path.write_text(f"[{','.join(['1'] * 1001)}]"),
        ".npy": lambda: np.save(path, np.zeros((2, 1001))),
        ".h5": lambda: write_h5(path, np.zeros((2, 1001))),
    }
    write[path.suffix]()
    if name != "x.h5":  # its columns are counted where it is read
        refuse(path, "columns, and at most 1,000 can be distinguished; take")
    else:
        monkeypatch.undo()
        write_h5(path, np.zeros((1, 2**20 + 1), bool))
        refuse(path, "has 1,048,577 columns, and at most 1,048,576 can be distinguished")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_stands_there_twice_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, X=ROWS)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("X.npy", archive.read("X.npy"))
    refuse(path, "has an array twice under one name")


def test_values_of_a_line_are_counted_before_each_has_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_COLUMNS", 1000)
    path = tmp_path / "x.jsonl"
    path.write_text("[" + "[]," * 200_000 + "[]]\n")
    tracemalloc.start()
    refuse_reading(path, "columns, and at most 1,000 can be distinguished")
    assert tracemalloc.get_traced_memory()[1] < 40 * path.stat().st_size
    tracemalloc.stop()


def write_h5(path, array, **how):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=array, **how)


def test_a_file_cut_short_while_it_is_read_is_no_end_of_us(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "BLOCK_ROWS", 1000)

    def read_while_cut(path):
        with files.open_table(path, None) as table:
            for _ in table.pieces(("0", "1"), True):
                os.truncate(path, 10_000)

    for order in "CF":
        path = tmp_path / "x.npy"
        np.save(path, np.ones((10**5, 2), order=order))
        with pytest.raises(FileError, match=r"x\.npy was cut short while it was read; wait until"):
            read_while_cut(path)


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".h5", ".parquet", ".root", ".csv", ".jsonl"])
def test_what_is_no_file_is_refused(tmp_path, suffix):
    device = tmp_path / f"device{suffix}"
    device.symlink_to("/dev/zero")
    refuse(device, "is no ordinary file; write what it holds into one first")
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    if suffix not in (".csv", ".jsonl"):
        refuse(pipe, "is no ordinary file; write what it holds into one first")


# --- Wrong bytes ----------------------------------------------------------------------------------


def survive(tmp_path, monkeypatch, name, seeds):
    """Both commands end with an answer, or with one plain reason."""
    monkeypatch.setattr(apart, "MAX_SECONDS", 3)
    good, path = tmp_path / f"good-{name}", tmp_path / name
    (NAMED | UNNAMED)[name](good)
    whole = good.read_bytes()
    before = {*tmp_path.iterdir()}
    codes = set()
    for seed in seeds:
        path.write_bytes(mutated(whole, np.random.default_rng([seed, 7])))
        test = ["test", str(good), str(path), "--toys", "2", "--statistic", "mahalanobis"]
        for command in (test, ["info", str(path)]):
            done = CliRunner().invoke(main, command)
            assert done.exit_code in (0, 2), (seed, command, done.output)
            assert "Traceback" not in done.output
            assert done.exit_code == 0 or "Error: " in done.stderr
            codes.add(done.exit_code)
    assert 2 in codes
    assert {*tmp_path.iterdir()} == before | {path}


QUICK_SEEDS, MANY_SEEDS = range(10, 20), range(1000)


@pytest.mark.parametrize("name", [*NAMED, *UNNAMED])
def test_wrong_bytes_end_with_an_answer_or_a_reason(tmp_path, monkeypatch, name):
    survive(tmp_path, monkeypatch, name, QUICK_SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMED, *UNNAMED])
def test_many_wrong_bytes_end_with_an_answer_or_a_reason(tmp_path, monkeypatch, name):
    """Run by ``pytest -m slow tests/test_poisoned_files.py``; seeds are kept."""
    survive(tmp_path, monkeypatch, name, MANY_SEEDS)


# --- Anything at all ------------------------------------------------------------------------------

anything = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
CELLS = st.one_of(
    st.sampled_from(["", "1", "-2.5", "1e999", "nan", "NA", "inf", '"', "True", "2024-01-01", "a"]),
    st.text(max_size=5),
    st.floats().map(repr),
    st.integers().map(str),
)
CSV = st.lists(st.lists(CELLS, max_size=4).map(",".join), max_size=8).map("\n".join)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
JSON_LINES = st.lists(VALUES.map(json.dumps) | st.text(max_size=5), max_size=8).map("\n".join)
DESCRIBED = st.one_of(
    st.sampled_from(["<f8", ">f4", "|b1", "<M8[ns]", "<U3", "|O", "|V8", "c16", [("a", "<i8")]]),
    st.text(max_size=5),
)
SHAPES = st.lists(st.one_of(st.integers(-1, 9), st.just(2**63)), max_size=3).map(tuple)


def read_or_refused(path):
    """A table, or one line that names the file."""
    for look in (read, describe):
        try:
            look(path)
        except FileError as error:
            said = str(error)
            assert said.startswith(str(path)), said
            assert "\n" not in said


@pytest.mark.parametrize(
    ("name", "texts"), [("x.csv", CSV), ("x.tsv", CSV), ("x.jsonl", JSON_LINES)]
)
@anything
@given(data=st.data())
def test_any_text_is_a_table_or_refused(tmp_path, name, texts, data):
    (tmp_path / name).write_text(data.draw(texts), errors="surrogatepass", newline="")
    read_or_refused(tmp_path / name)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
@anything
@given(st.data(), DESCRIBED, SHAPES, st.booleans(), st.binary(max_size=200))
def test_any_array_is_a_table_or_refused(tmp_path, name, data, kind, shape, by_columns, content):
    head = {"descr": kind, "fortran_order": by_columns, "shape": shape}
    if data.draw(st.booleans()):
        del head[data.draw(st.sampled_from(sorted(head)))]
    text = repr(head).encode() + b"\n"
    array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content
    path = tmp_path / name
    if name == "x.npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", array)
    else:
        path.write_bytes(array)
    read_or_refused(path)
