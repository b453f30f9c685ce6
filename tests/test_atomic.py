"""Files appear whole or not at all, whoever else writes, whatever stands in the way."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparker.calibration.store import Store
from sparker.system import atomic
from sparker.system.atomic import whole_file

pytestmark = pytest.mark.unit


def write(path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_threads_that_write_one_file_leave_one_of_their_contents(tmp_path):
    target = tmp_path / "result"
    contents = [bytes([letter]) * 100_000 for letter in b"abcdef"]
    write(target, contents[0])
    stop, torn, failed = threading.Event(), [], []

    def read():
        while not stop.is_set():
            if target.read_bytes() not in contents:
                torn.append(1)

    def write_often(content):
        try:
            for _ in range(20):
                write(target, content)
        except OSError as error:
            failed.append(error)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write_often, args=[content]) for content in contents]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert (torn, failed) == ([], [])
    assert names(tmp_path) == ["result"]


def test_processes_of_one_number_do_not_meet(tmp_path, monkeypatch):
    """In containers every process may be number 1."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with whole_file(tmp_path / "result") as one:
        one.write(b"one")
        write(tmp_path / "result", b"other")
    assert (tmp_path / "result").read_bytes() == b"one"
    assert names(tmp_path) == ["result"]


def test_a_link_at_the_name_of_the_unfinished_file_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)  # should somebody guess it after all
    (tmp_path / "precious").write_bytes(b"kept")
    (tmp_path / f".result.{bytes(8).hex()}.part").symlink_to(tmp_path / "precious")
    with pytest.raises(FileExistsError):
        write(tmp_path / "result", b"new")
    assert (tmp_path / "precious").read_bytes() == b"kept"
    assert len(names(tmp_path)) == 2  # what was not ours was not taken away


def test_what_fails_halfway_leaves_the_predecessor(tmp_path):
    write(tmp_path / "result", b"old")

    def fail():
        with whole_file(tmp_path / "result") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (tmp_path / "result").read_bytes() == b"old"
    assert names(tmp_path) == ["result"]


@contextmanager
def begun(target: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun to write a file, and waits."""
    code = (
        "import sys; from sparker.system.atomic import whole_file\n"
        "with whole_file(sys.argv[1]) as file:\n"
        "    file.write(b'begun'); file.flush(); print('now', flush=True); sys.stdin.read(1)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code, str(target)], **pipes) as process:
        assert process.stdout.readline() == "now\n"
        yield process


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks")
def test_what_killed_processes_left_is_removed_and_what_is_being_written_is_not(tmp_path):
    others = {".result.part", ".result.0123456789abcdef.parts", ".other.0123456789abcdef.part"}
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / ".result.fedcba9876543210.part").symlink_to(".result.part")  # none of ours
    target = tmp_path / "result"
    with begun(target) as killed, begun(target) as living:
        killed.kill()
        killed.wait()
        assert len(names(tmp_path)) == 6
        with whole_file(target) as file:
            file.write(b"mine")
            write(target, b"in between")
        (half,) = {*names(tmp_path)} - others - {"result", ".result.fedcba9876543210.part"}
        assert (tmp_path / half).read_bytes() == b"begun"
        living.communicate("x")
    assert target.read_bytes() == b"begun"
    assert {*names(tmp_path)} == others | {"result", ".result.fedcba9876543210.part"}


def test_what_another_process_tidied_away_before_it_was_held_is_begun_anew(tmp_path, monkeypatch):
    held = []

    def hold(descriptor, *, wait):
        if not held:
            (half,) = tmp_path.iterdir()
            half.unlink()
        held.append(descriptor)
        return True

    monkeypatch.setattr(atomic, "_hold", hold)
    write(tmp_path / "result", b"whole")
    assert len(held) == 2
    assert names(tmp_path) == ["result"]


def test_the_longest_names_can_be_written(tmp_path):
    for name in ("n" * 255, "\N{SNOWMAN}" * 85):
        write(tmp_path / name, b"new")
        assert (tmp_path / name).read_bytes() == b"new"


def test_a_private_file_stays_private(tmp_path):
    (tmp_path / "result").touch(0o600)
    write(tmp_path / "result", b"new")
    assert (tmp_path / "result").stat().st_mode & 0o777 == 0o600


def test_links_stay_links(tmp_path):
    (tmp_path / "link").symlink_to("result")
    for content in (b"first", b"second"):
        write(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "result").read_bytes() == content


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_stdout_is_gone_on_with_wherever_it_goes(tmp_path, kind):
    code = (
        "import sys; from sparker.system.atomic import whole_file\n"
        "print('before', flush=True)\n"
        "with whole_file('/dev/stdout') as file: file.write(b'rows\\n')\n"
        "print('after')"
    )
    if kind == "pipe":
        said = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, check=True
        ).stdout
    else:
        with (tmp_path / "said").open("wb") as file:
            subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
        said = (tmp_path / "said").read_bytes()
    assert said == b"before\nrows\nafter\n"


def test_a_named_pipe_is_written_to_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(tmp_path / "pipe", b"through")
    reader.join()
    assert read == [b"through"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_store_is_opened_by_processes_of_one_number_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 1)
    manifest = {}, 4
    Store(tmp_path, *manifest)
    failed = []

    def open_often():
        try:
            for _ in range(100):
                Store(tmp_path, *manifest)
        except ValueError as error:
            failed.append(error)

    threads = [threading.Thread(target=open_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert names(tmp_path) == ["manifest.json"]


def test_nothing_that_can_be_guessed_stands_in_a_name(tmp_path):
    seen = set()
    for _ in range(3):
        with whole_file(tmp_path / "result") as file:
            file.write(b"new")
            seen |= set(names(tmp_path)) - {"result"}
    assert len(seen) == 3
    assert all(len(name) <= atomic.N_KEPT + 24 for name in seen)
