"""``sparker calibrate`` and ``sparker watch``: one file keeps everything, and no alarm is lost."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import sparker
from sparker.cli import batches, watch
from sparker.cli.main import main
from sparker.statistics import Mahalanobis
from sparker.system.owned import owned

BATCH = 60


def invoke(*arguments):
    return CliRunner().invoke(main, ["watch", *map(str, arguments)])


def lines_of(done) -> list[dict]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with two monitors and batches."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(500, 2))
    plain = {"statistic": Mahalanobis(), "progress": False}
    sparker.Monitor(reference, alpha=0.05, **plain).save(folder / "monitor.sparker")
    sparker.Monitor(reference, alpha=0.05, looks=2, **plain).save(folder / "two.sparker")
    sparker.AnytimeMonitor.start(reference, alpha=0.05).save(folder / "anytime.sparker")
    for name in ("quiet", "calm", "still"):
        np.save(folder / f"{name}.npy", rng.normal(size=(BATCH, 2)))
    for name in ("strange", "odd"):
        np.save(folder / f"{name}.npy", rng.normal(size=(BATCH, 2)) + 2)
    np.save(folder / "three.npy", np.zeros((BATCH, 3)))
    return folder


@pytest.fixture
def at(made, tmp_path, monkeypatch) -> Path:
    """The same files, to be changed, in the folder where the command runs."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["quiet.npy", "calm.npy"], 0),
        (["quiet.npy", "strange.npy", "calm.npy"], 1),
        (["gone.npy", "quiet.npy"], 4),
        (["quiet.npy", "three.npy"], 4),
        (["gone.npy", "strange.npy"], 5),
    ],
)
def test_the_exit_code_tells_alarms_and_batches_that_could_not_be_tested(at, names, code):
    done = invoke("monitor.sparker", *names)
    assert done.exit_code == code, done.output
    lines = lines_of(done)
    assert [line["batch"] for line in lines] == names
    tested = [line for line in lines if "error" not in line]
    assert [line["look"] for line in tested] == list(range(1, len(tested) + 1))
    for line in lines:
        if "error" in line:
            assert line.keys() == {"batch", "error"}
        else:
            assert line["alarm"] == ("strange" in line["batch"])
            assert line["rows"] == BATCH
            assert ("where" in line) == line["alarm"]
            assert not {"most_anomalous", "anomaly_score"} & line.keys()


@pytest.mark.parametrize("monitor", ["monitor.sparker", "anytime.sparker"])
def test_the_same_command_goes_on_where_it_was(at, monitor):
    names = ["quiet.npy", "strange.npy", "calm.npy"]
    shutil.copy(monitor, "copy.sparker")
    whole = lines_of(invoke("copy.sparker", *names))
    first, second = invoke(monitor, *names[:2]), invoke(monitor, *names)
    assert lines_of(first) == whole[:2]
    assert [line.get("skipped") for line in lines_of(second)] == [
        "this file was tested before", "this file was tested before", None,
    ]  # fmt: skip
    assert lines_of(second)[2] == whole[2]
    assert [look.number for look in sparker.load(monitor).history] == [1, 2, 3]
    again = invoke(monitor, *names)
    assert again.exit_code == 0
    assert all("skipped" in line for line in lines_of(again))


def test_a_file_that_was_changed_in_nothing_but_its_place_is_skipped(at):
    for _ in range(3):
        invoke("anytime.sparker", "quiet.npy")
        os.chmod("quiet.npy", 0o600)
    os.link("quiet.npy", "link.npy")
    os.rename("quiet.npy", "renamed.npy")
    shutil.copy("renamed.npy", "copied.npy")
    done = invoke("anytime.sparker", "link.npy", "renamed.npy", "copied.npy", "calm.npy")
    assert ["skipped" in line for line in lines_of(done)] == [True, True, True, False]
    assert len(sparker.load("anytime.sparker").history) == 2
    np.save("renamed.npy", np.load("still.npy"))  # another content under the same name
    assert "look" in lines_of(invoke("anytime.sparker", "renamed.npy"))[0]


def test_small_batches_repeat_by_right(at):
    for name in ("one", "other"):
        np.save(f"{name}.npy", np.zeros((3, 2)))
    done = invoke("anytime.sparker", "one.npy", "other.npy")
    assert [line["look"] for line in lines_of(done)] == [1, 2]


def test_planned_looks_are_counted_over_all_runs(at):
    assert invoke("two.sparker", "quiet.npy").exit_code == 0
    done = invoke("two.sparker", "calm.npy", "still.npy")
    assert done.exit_code == 4
    one, other = lines_of(done)
    assert one["look"] == 2
    assert "all 2 planned looks were made" in other["error"]
    assert len(sparker.load("two.sparker").history) == 2


def test_a_monitor_belongs_to_one_process_at_a_time(at):
    with owned("monitor.sparker"):
        done = invoke("monitor.sparker", "quiet.npy")
    assert done.exit_code == 2
    assert "another process uses monitor.sparker" in done.stderr
    assert invoke("monitor.sparker", "quiet.npy").exit_code == 0


def test_the_lock_goes_over_to_the_new_file(at):
    with owned("monitor.sparker") as write:
        before = os.stat("monitor.sparker").st_ino
        write(b"new")
        assert os.stat("monitor.sparker").st_ino != before
        with open("monitor.sparker", "rb") as file:
            with pytest.raises(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert file.read() == b"new"
        with pytest.raises(BlockingIOError), owned("monitor.sparker"):
            pass
    with owned("monitor.sparker"):
        pass
    assert not [file for file in at.iterdir() if file.name.startswith(".")]


def test_a_look_is_kept_before_its_line_is_printed(at, monkeypatch):
    """A watch that is killed in between has tested the batch; it is not tested again."""

    def killed(line):
        raise SystemExit(137)

    monkeypatch.setattr(watch, "answer_json", killed)
    assert invoke("anytime.sparker", "quiet.npy", "calm.npy").exit_code == 137
    monkeypatch.undo()
    os.chdir(at)
    assert len(sparker.load("anytime.sparker").history) == 1
    done = invoke("anytime.sparker", "quiet.npy", "calm.npy")
    assert ["skipped" in line for line in lines_of(done)] == [True, False]


def test_a_monitor_that_cannot_be_written_ends_the_watch_and_keeps_its_looks(at, monkeypatch):
    assert invoke("anytime.sparker", "quiet.npy").exit_code == 0
    kept = Path("anytime.sparker").read_bytes()

    def full(path, **options):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("sparker.system.owned.whole_file", full)
    done = invoke("anytime.sparker", "calm.npy", "still.npy")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "No space left on device" in done.stderr
    assert "the look at calm.npy does not count" in done.stderr
    assert Path("anytime.sparker").read_bytes() == kept


@pytest.mark.parametrize("error", [FloatingPointError, MemoryError, ZeroDivisionError])
def test_whatever_a_batch_causes_does_not_stop_the_others(at, monkeypatch, error):
    whole = sparker.Monitor.look

    def look(self, batch, **options):
        if batch.points.mean() < 1:
            raise error("oh")
        return whole(self, batch, **options)

    monkeypatch.setattr(sparker.Monitor, "look", look)
    done = invoke("monitor.sparker", "quiet.npy", "strange.npy")
    assert done.exit_code == 5, done.output
    first, second = lines_of(done)
    ours = error is ZeroDivisionError
    assert first["error"] == ("internal error: ZeroDivisionError: oh" if ours else "oh")
    assert second["alarm"]


def test_a_file_that_is_written_to_meanwhile_is_an_error_and_no_look(at, monkeypatch):
    from sparker import tables

    read = tables.read

    def and_write(path, **options):
        found = read(path, **options)
        np.save(path, np.load("still.npy"))
        return found

    monkeypatch.setattr(tables, "read", and_write)
    done = invoke("monitor.sparker", "quiet.npy")
    assert done.exit_code == 4
    assert "changed while it was read" in lines_of(done)[0]["error"]
    assert sparker.load("monitor.sparker").history == []


def test_of_a_folder_ordinary_files_are_tested_and_nothing_of_ours(at):
    (at / "inbox" / "deeper").mkdir(parents=True)
    for name in ("quiet.npy", "monitor.sparker"):
        (at / name).rename(at / "inbox" / name)
    (at / "inbox" / ".hidden.npy").write_bytes(b"half")
    os.mkfifo(at / "inbox" / "pipe.npy")  # nobody will ever write into it
    os.symlink("/dev/zero", at / "inbox" / "zero.npy")
    done = invoke("inbox/monitor.sparker", "inbox")
    assert [line["batch"] for line in lines_of(done)] == ["inbox/quiet.npy"]
    assert done.exit_code == 0
    done = invoke("inbox/monitor.sparker", "inbox/deeper")
    assert done.exit_code == 4
    assert "No batch was tested: there are no files in inbox/deeper." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quiet.npy", "--picture", "trend.bmp"], "--picture must end with .png, .svg, .pdf"),
        (["quiet.npy", "--picture", "no/trend.png"], "there is no folder no"),
        ([".", "--picture", "trend.png"], "--picture would be among the batches"),
        ([".", "--reports", "."], "--reports would be among the batches"),
        (["quiet.npy", "--reports", "no/reports"], "there is no folder no"),
        (["quiet.npy", "--reports", "calm.npy"], "is a file"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_batch(at, arguments, message):
    done = invoke("monitor.sparker", *arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert message in done.stderr


def test_what_is_no_monitor_is_refused(at):
    os.symlink("monitor.sparker", "link.sparker")
    os.mkfifo("pipe.sparker")
    for name, message in (
        ("quiet.npy", "another format"),
        ("none.sparker", "none.sparker"),
        ("link.sparker", "is a link"),
        ("pipe.sparker", "no ordinary file"),
    ):
        done = invoke(name, "calm.npy")
        assert done.exit_code == 2, done.output
        assert message in done.stderr


def test_every_alarm_gets_a_report_of_its_own(at):
    (at / "more").mkdir()
    (at / "odd.npy").rename(at / "more" / "strange.npy")
    (at / "reports").mkdir()
    (at / "reports" / "strange-2.html").write_text("of last week")
    done = invoke("monitor.sparker", "strange.npy", "quiet.npy", "more/strange.npy",
                  "--reports", "reports")  # fmt: skip
    assert done.exit_code == 1, done.output
    one, quiet, other = lines_of(done)
    assert "report" not in quiet
    assert [Path(line["report"]).name for line in (one, other)] == [
        "strange.html",
        "strange-3.html",
    ]
    assert (at / "reports" / "strange-2.html").read_text() == "of last week"
    text = Path(other["report"]).read_text()
    assert "more/strange.npy" in text
    assert "monitor.sparker" in text


@pytest.mark.parametrize(
    ("batch", "name"),
    [
        ("data/monday.csv.gz", "monday.html"),
        ("runs.root:events", "runs.html"),
        ("../..", "batch.html"),
        (".npy", "npy.html"),
        ("a b&<c>.npy", "a-b-c.html"),
        ("n" * 250 + ".npy", "n" * 60 + ".html"),
    ],
)
@pytest.mark.unit
def test_reports_are_called_after_their_batches(tmp_path, batch, name):
    assert batches.report_file(tmp_path, batch) == tmp_path / name
    assert batches.report_file(tmp_path, batch) == tmp_path / name.replace(".html", "-2.html")


def test_an_alarm_stands_though_its_report_cannot_be_written(at, monkeypatch):
    def report(self, path, **options):
        raise TypeError("a mistake of ours")

    monkeypatch.setattr(sparker.TestResult, "report", report)
    done = invoke("monitor.sparker", "strange.npy", "--reports", "reports")
    assert done.exit_code == 5, done.output
    (line,) = lines_of(done)
    assert line["alarm"]
    assert line["report"] is None
    assert "The report on strange.npy could not be written: a mistake of ours." in done.stderr
    assert list((at / "reports").iterdir()) == []


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")]
)
def test_the_picture_shows_all_looks_of_all_runs(at, monkeypatch, suffix, start):
    from sparker import plots

    drawn, trend = [], plots.trend

    def watched(looks, **options):
        drawn.append((len(looks), options["alpha"]))
        return trend(looks, **options)

    monkeypatch.setattr(plots, "trend", watched)
    invoke("anytime.sparker", "quiet.npy")
    done = invoke("anytime.sparker", "calm.npy", "--picture", f"trend{suffix}")
    assert done.exit_code == 0, done.output
    assert (at / f"trend{suffix}").read_bytes().startswith(start)
    assert drawn == [(2, 0.05)]
    monkeypatch.setattr(plots, "trend", None)
    done = invoke("monitor.sparker", "calm.npy", "--picture", f"trend{suffix}")
    assert done.exit_code == 4
    assert "The picture could not be written" in done.stderr


def test_a_reader_that_leaves_does_not_end_the_watch(at):
    names = ["quiet.npy", "calm.npy", "still.npy", "strange.npy"]
    command = [sys.executable, "-m", "sparker", "watch", "monitor.sparker", *names,
               "--reports", "reports"]  # fmt: skip
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    ) as process:
        line = process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert json.loads(line)["look"] == 1
    assert process.returncode in (1, 5), said
    assert [file.name for file in (at / "reports").iterdir()] == ["strange.html"]
    assert "Traceback" not in said


def test_calibrate_writes_level_looks_and_settings_into_the_file(at):
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(200, 2)), columns=["x", "y"])
    table["w"], table["site"] = 1 + np.arange(200) % 2, np.arange(200) % 3
    table.to_csv("reference.csv", index=False)
    done = CliRunner().invoke(
        main,
        ["calibrate", "reference.csv", "new.sparker", "--alpha", "0.02", "--looks", "30",
         "--weights", "w", "--strata", "site", "--kernels", "3", "--seed", "5", "--all-toys"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "new.sparker: monitor at alpha = 0.02: 200 reference rows" in done.stderr
    found = sparker.load("new.sparker")
    assert (found.alpha, found.looks, found.config.seed, found.config.stop) == (0.02, 30, 5, None)
    assert (found.config.strata, found.config.reference_weights) == ("site", "w")
    assert found.config.n_toys == 1499
    shown = CliRunner().invoke(main, ["info", "new.sparker"])
    assert "0 of 30 looks made" in shown.stdout
    plain = CliRunner().invoke(main, ["info", "new.sparker", "--json"])
    assert json.loads(plain.stdout)["planned_looks"] == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--change"], "--change needs --anytime"),
        (["--anytime", "--looks", "5", "--toys", "50"], "--looks, --toys and --anytime do not go"),
        (["--alpha", "1.5"], "alpha"),
        (["--looks", "100", "--toys", "99"], "n_toys must be at least"),
        (["--text", "x"], "--embed makes numbers of"),
    ],
)
def test_what_cannot_be_calibrated_is_said(at, arguments, message):
    done = CliRunner().invoke(main, ["calibrate", "quiet.npy", "new.sparker", *arguments])
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not Path("new.sparker").exists()


@pytest.mark.unit
def test_the_codes_are_those_of_the_help():
    told = " ".join((watch.watch.help or "").split())
    for code in {0, *watch.EXIT_CODES.values()}:
        assert f" {code} " in told


def test_watch_does_not_wait_for_jax_where_nothing_is_computed():
    """Importing what parses options must not import JAX."""
    code = "import sys, sparker.cli.watch, sparker.cli.calibrate; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
