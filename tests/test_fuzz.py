"""Files and folders changed at random by experiments.reliability.fuzz, and what it found."""

import os
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from experiments.reliability import fuzz
from experiments.reliability.ends import Done, NotHandled
from experiments.reliability.mutants import WAYS, parts_of, pick, sealed

import sparker
from sparker.calibration.store import chunk_files
from sparker.cli.main import main
from sparker.system import archive
from sparker.system.owned import owned

pytestmark = pytest.mark.unit


def run(folder, command):
    """A command in this process."""
    before = os.getcwd()
    os.chdir(folder)
    began = time.process_time()
    try:
        done = CliRunner().invoke(main, command)
    finally:
        os.chdir(before)
    if not isinstance(done.exception, SystemExit | None):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr, time.process_time() - began, 0.0)


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    fuzz.originals(run, folder, quick=True)
    return folder


@pytest.mark.parametrize("number", range(1010, 1030))
def test_a_changed_file_ends_in_an_answer_or_a_plain_error(there, number):
    outcome = fuzz.attempt(number, there, run)
    assert outcome.codes
    assert not outcome.what, outcome
    assert outcome.seconds < fuzz.SECONDS


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda here: (here / "given" / "data.npy").write_bytes(b""), "given/data.npy was"),
        (lambda here: (here / "given" / "data.npy").unlink(), "and is gone"),
        (lambda here: (here / "new").touch(), "'new' was made"),
        (lambda here: (here / "out" / ".x.part").touch(), "'out/.x.part' was left"),
    ],
)
def test_what_a_command_must_not_do_is_noticed(there, act, what):
    def bad(folder, command):
        act(folder)
        return Done(2, "", "Error: no", 0.0, 0.0)

    assert what in fuzz.attempt(0, there, bad).what


@pytest.mark.parametrize(
    ("code", "out", "err"),
    [(3, "", "Internal error"), (2, "", ""), (4, "", ""), (1, "", "Traceback"), (None, "", "")],
)
def test_what_is_no_plain_end_is_noticed(code, out, err):
    case, here = fuzz.Case("", []), fuzz.Path("none")
    with pytest.raises(NotHandled):
        fuzz.judged(case, {}, here, Done(code, out, err, 0.0, 0.0), "info")


def test_every_way_to_change_a_file_changes_it(there):
    rng = np.random.default_rng(0)
    for name in ("result.sparker", "data.npy", "data.npz", "others/1.png", "store/manifest.json"):
        content = (there / "given" / name).read_bytes()
        for change in WAYS[os.path.splitext(name)[1]]:
            found = [change(rng, content) for _ in range(5)]
            assert any(one != content for one in found), change.__name__
    assert pick(rng, "a") == "a"


# --- What it found --------------------------------------------------------------------------------


def test_to_ask_what_a_file_holds_neither_waits_for_a_writer_nor_follows_a_link(there, tmp_path):
    for name in ("x.sparker", "x"):
        os.mkfifo(tmp_path / name)
        done = run(tmp_path, ["info", name])
        assert done.code == 2
        assert "Error" in done.err
    link = tmp_path / "y"
    link.symlink_to(there / "given" / "result.sparker")
    assert archive.is_archive(link.resolve())
    assert not archive.is_archive(link)


def test_a_batch_that_is_a_pipe_or_has_no_end_is_an_error_at_once(there, tmp_path):
    os.mkfifo(tmp_path / "a.npy")
    (tmp_path / "b.npy").write_bytes((there / "given" / "batch.npy").read_bytes())
    os.truncate(tmp_path / "b.npy", 2**43)  # to know its digest takes an hour
    monitor = tmp_path / "anytime.sparker"
    monitor.write_bytes((there / "given" / "anytime.sparker").read_bytes())
    done = run(tmp_path, ["watch", "anytime.sparker", "a.npy", "b.npy"])
    assert done.code == 4
    assert "a.npy is no ordinary file" in done.out
    assert "not of the size it claims" in done.out


def test_a_chunk_under_the_name_of_others_is_refused(there, tmp_path):
    given = there / "given"
    (path,) = chunk_files(given / "store")
    (other,) = chunk_files(given / "other")
    for name in ("reference.npy", "data.npy"):
        (tmp_path / name).write_bytes((given / name).read_bytes())
    (tmp_path / "given").symlink_to(given)
    store = tmp_path / "store"
    store.mkdir()
    (store / path.name).write_bytes(other.read_bytes())
    (store / "manifest.json").write_bytes((given / "store" / "manifest.json").read_bytes())
    before = (store / path.name).read_bytes()
    for command in (
        [*fuzz.TEST, "--store", "store"],
        ["merge", "store", "given/other", "--into", "all"],
    ):
        done = run(tmp_path, command)
        assert done.code == 2
        assert f"holds the toys of {other.name}" in done.said
        assert (store / path.name).read_bytes() == before
    assert not (tmp_path / "all").exists()


def test_a_result_whose_scores_were_counted_for_nobody_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    small = sparker.FitConfig(n_kernels=2), sparker.WidthConfig(steps=20, n_widths=3)
    found = sparker.test(
        rng.normal(size=(100, 2)), rng.normal(size=(40, 2)), n_toys=9, config=small[0],
        widths=small[1], explain=False, progress=False,
    )  # fmt: skip
    for shape in ((0, 20), (10, 0)):
        replace(found, score_counts=np.zeros(shape)).save(tmp_path / "x.sparker")
        with pytest.raises(ValueError, match="its score_counts are not those of the data"):
            sparker.load(tmp_path / "x.sparker")


def test_to_own_a_file_follows_no_link(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"")
    (tmp_path / "link").symlink_to("x")
    monkeypatch.setattr(os, "open", None)
    with (
        pytest.raises(ValueError, match="is a link, which is not followed"),
        owned(tmp_path / "link"),
    ):
        pass


def test_what_is_sealed_anew_is_read(there, tmp_path):
    content = (there / "given" / "result.sparker").read_bytes()
    about, arrays = parts_of(content)
    assert sealed(about["kind"], archive.msgspec.json.encode(about["value"]), arrays) == content
