"""Files that nobody vetted: whatever is in them, the answer is a table or one plain reason.

They do not reach for other files, and they take neither this process nor its memory with them.
"""

import os
import sys
import time

import h5py
import numpy as np
import pytest

from sparker.tables import FileError, apart, describe, read

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
    for text in said:
        assert text.startswith(str(path))
        assert "\n" not in text
        for message in messages:
            assert message in text


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
        code = "import os, sys; sys.path[:] = sys.argv[1:]\n"
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
        ("x = bytearray(10**15)", "does not fit into memory"),
        ("raise RuntimeError('what now')", "is no HDF5 file, or a damaged one: what now; write"),
        ("raise OSError(5, 'bad sector')", "cannot be read: bad sector"),
    ],
)
def test_what_becomes_of_the_reader_does_not_become_of_us(
    path, reader_that, monkeypatch, does, message, after_rows
):
    monkeypatch.setattr(apart, "MAX_SECONDS", 1)
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
