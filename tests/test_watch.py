"""``sparker watch``: no alarm is lost, whatever becomes of batches, files and readers."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import sparker
from sparker.cli import batches
from sparker.cli.journal import Journal
from sparker.cli.main import main
from sparker.cli.session import Session
from sparker.cli.terminal import BadInput

BATCH, OTHER = 40, 50


def invoke(*arguments):
    return CliRunner().invoke(main, ["watch", *map(str, arguments), "--alpha", "0.05"])


def lines_of(done) -> list[dict]:
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a monitor and batches of two sizes, of which it knows one."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    sparker.Monitor.calibrate(
        rng.normal(size=(500, 2)),
        BATCH,
        n_toys=19,
        config=sparker.FitConfig(n_kernels=3),
        widths=sparker.WidthConfig(steps=100, n_widths=3),
        chunk=16,
        progress=False,
    ).save(folder / "monitor.npz")
    for name, n_rows in (("", BATCH), ("other-", OTHER)):
        rows = rng.normal(size=(n_rows, 2))
        np.save(folder / f"{name}quiet.npy", rows)
        rows[:15] = [1.5, 1.5] + 0.05 * rows[:15]
        np.save(folder / f"{name}strange.npy", rows)
    np.save(folder / "three.npy", np.zeros((BATCH, 3)))
    np.save(folder / "few.npy", rng.normal(size=(2, 2)))
    np.save(folder / "many.npy", rng.normal(size=(500, 2)))
    return folder


@pytest.fixture
def at(made, tmp_path, monkeypatch) -> Path:
    """The same files, to be changed, in the folder where the command runs."""
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["quiet.npy", "quiet.npy"], 0),
        (["quiet.npy", "strange.npy", "quiet.npy"], 1),
        (["gone.npy", "quiet.npy"], 4),
        (["quiet.npy", "three.npy"], 4),
        (["few.npy", "many.npy"], 4),
        (["gone.npy", "strange.npy", "few.npy"], 5),
    ],
)
def test_the_exit_code_tells_alarms_and_batches_that_could_not_be_tested(at, names, code):
    done = invoke("monitor.npz", *names)
    assert done.exit_code == code, done.output
    lines = lines_of(done)
    assert [line["batch"] for line in lines] == names
    assert [line["look"] for line in lines] == list(range(1, len(names) + 1))
    for line in lines:
        if "quiet" in line["batch"] or "strange" in line["batch"]:
            assert line["alarm"] == ("strange" in line["batch"])
            assert line["rows"] == BATCH
        else:
            assert line.keys() == {"batch", "look", "error"}


@pytest.mark.parametrize(
    "error", [FloatingPointError, MemoryError, OSError, ImportError, ZeroDivisionError]
)
def test_whatever_a_batch_causes_does_not_stop_the_others(at, monkeypatch, error):
    whole = sparker.Monitor.test

    def test(self, batch, **options):
        if len(batch.points) == OTHER:
            raise error("oh")
        return whole(self, batch, **options)

    monkeypatch.setattr(sparker.Monitor, "test", test)
    done = invoke("monitor.npz", "other-strange.npy", "strange.npy")
    assert done.exit_code == 5, done.output
    first, second = lines_of(done)
    ours = error is ZeroDivisionError
    assert first["error"] == ("internal error: ZeroDivisionError: oh" if ours else "oh")
    assert second["alarm"]


def test_an_empty_folder_is_no_success(at):
    (at / "inbox").mkdir()
    done = invoke("monitor.npz", "inbox")
    assert done.exit_code == 4
    assert done.stdout == ""
    assert "No batch was tested: there are no files in inbox." in done.stderr


def test_of_a_folder_the_batches_are_tested_and_nothing_of_ours(at):
    (at / "inbox").mkdir()
    for name in ("quiet.npy", "monitor.npz"):
        (at / name).rename(at / "inbox" / name)
    (at / "inbox" / ".hidden.npy").write_bytes(b"half")
    done = invoke("inbox/monitor.npz", "inbox")
    assert [line["batch"] for line in lines_of(done)] == ["inbox/quiet.npy"]
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quiet.npy", "quiet.npy", "--looks", "1"], "there are 2 batches for 1 look"),
        (["quiet.npy", "--looks", "2"], "calibrate with at least 40 toys"),
        (["quiet.npy", "--picture", "trend.bmp"], "--picture must end with .png, .svg, .pdf"),
        (["quiet.npy", "--picture", "no/trend.png"], "there is no folder no"),
        ([".", "--picture", "trend.png"], "--picture would be among the batches"),
        ([".", "--reports", "."], "--reports would be among the batches"),
        (["quiet.npy", "--reports", "no/reports"], "there is no folder no"),
        (["quiet.npy", "--reports", "few.npy"], "is a file"),
        (["quiet.npy", "--follow"], "--follow needs one folder"),
        ([".", ".", "--follow"], "--follow needs one folder"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_batch(at, arguments, message):
    done = invoke("monitor.npz", *arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert message in done.stderr


def test_toys_for_a_new_size_are_made_once_and_kept(at):
    before = (at / "monitor.npz").read_bytes()
    first = invoke("monitor.npz", "other-strange.npy", "other-quiet.npy", "--no-keep")
    assert first.exit_code == 1, first.output
    assert (at / "monitor.npz").read_bytes() == before
    again = invoke("monitor.npz", "other-strange.npy", "other-quiet.npy")
    assert again.stdout == first.stdout
    for done in (first, again):
        assert done.stderr.count("Batches of 50 rows are new to the monitor: making 19 toys.") == 1
    assert sparker.Monitor.load("monitor.npz").sizes == (BATCH, OTHER)
    third = invoke("monitor.npz", "other-strange.npy", "other-quiet.npy")
    assert third.stdout == first.stdout
    assert third.stderr == ""
    assert [file.name for file in at.iterdir() if file.name.startswith(".")] == []


def test_several_new_sizes_are_kept_and_a_small_reference_is_noted(at):
    np.save("large.npy", np.random.default_rng(1).normal(size=(70, 2)))
    done = invoke("monitor.npz", "other-quiet.npy", "large.npy")
    assert sparker.Monitor.load("monitor.npz").sizes == (BATCH, OTHER, 70)
    assert "Note: the reference has 500 rows, fewer than 10 batches of 70" in done.stderr


def test_rows_that_are_left_out_count_neither_for_the_size_nor_for_the_numbers(at):
    rows = np.load("strange.npy")
    whole, few = pd.DataFrame(rows, columns=["x", "y"]), ["--toys", "19", "--kernels", "3"]
    reference = np.random.default_rng(0).normal(size=(500, 2))
    pd.DataFrame(reference, columns=["x", "y"]).to_csv("reference.csv", index=False)
    made = CliRunner().invoke(
        main,
        ["calibrate", "reference.csv", "named.npz", "--batch-size", "40", "--steps", "100", *few,
         "--missing", "drop"],
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    whole.to_csv("whole.csv", index=False)
    lost = pd.DataFrame({"x": [None, None], "y": [0.0, 1.0]})
    pd.concat([lost, whole]).to_csv("lost.csv", index=False)
    one, other = lines_of(invoke("named.npz", "whole.csv", "lost.csv"))
    assert one["p_value"] == other["p_value"]
    assert one["rows"] == other["rows"] == BATCH
    shown = [[row["row"] for row in line["most_anomalous"]] for line in (one, other)]
    assert shown[1] == [row + 2 for row in shown[0]]
    assert sparker.Monitor.load("named.npz").sizes == (BATCH,)


def test_a_monitor_that_cannot_be_written_still_watches(at, monkeypatch):
    def save(self, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(sparker.Monitor, "save", save)
    done = invoke("monitor.npz", "other-strange.npy", "quiet.npy")
    assert done.exit_code == 1, done.output
    said = "The toys could not be written to the monitor: monitor.npz: No space left on device."
    assert done.stderr.count(said) == 1


def test_a_monitor_that_another_program_wrote_meanwhile_is_left_alone(at):
    session = Session(at / "monitor.npz", 0.05, None, None, None, None, keep=True)
    (at / "monitor.npz").write_bytes(b"another calibration")
    session.look(batches.named("other-strange.npy"))
    assert session.exit_code == 1
    assert (at / "monitor.npz").read_bytes() == b"another calibration"


def test_every_alarm_gets_a_report_of_its_own(at):
    (at / "more").mkdir()
    (at / "more" / "strange.npy").write_bytes((at / "strange.npy").read_bytes())
    (at / "reports").mkdir()
    (at / "reports" / "strange-2.html").write_text("of last week")
    done = invoke("monitor.npz", "strange.npy", "quiet.npy", "more/strange.npy",
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
    assert "monitor.npz" in text


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
    done = invoke("monitor.npz", "strange.npy", "--reports", "reports")
    assert done.exit_code == 1, done.output
    (line,) = lines_of(done)
    assert line["alarm"]
    assert line["report"] is None
    assert "The report on strange.npy could not be written: a mistake of ours." in done.stderr
    assert list((at / "reports").iterdir()) == []


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")]
)
def test_the_picture_is_of_the_kind_that_its_name_says(at, suffix, start):
    done = invoke("monitor.npz", "quiet.npy", "gone.npy", "--picture", f"trend{suffix}")
    assert done.exit_code == 4, done.output
    assert (at / f"trend{suffix}").read_bytes().startswith(start)


def test_the_picture_is_there_after_each_batch_and_shows_all_so_far(at, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "sparker.plots.trend",
        lambda lines, **options: drawn.append((len(lines), options["alpha"])),
    )
    invoke("monitor.npz", "quiet.npy", "strange.npy", "gone.npy", "--picture", "trend.svg")
    assert drawn == [(1, 0.05), (2, 0.05), (3, 0.05)]


def test_the_watch_goes_on_without_a_picture_and_says_so_once(at, monkeypatch):
    def trend(lines, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sparker.plots.trend", trend)
    done = invoke("monitor.npz", "quiet.npy", "strange.npy", "--picture", "trend.svg")
    assert done.exit_code == 1
    assert done.stderr.count("The picture could not be written: No space left on device.") == 1


def test_a_reader_that_leaves_does_not_end_the_watch(at):
    names = ["quiet.npy"] * 3 + ["strange.npy"]
    command = [sys.executable, "-m", "sparker", "watch", "monitor.npz", *names, "--alpha", "0.05",
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
    assert process.returncode == 1, said
    assert [file.name for file in (at / "reports").iterdir()] == ["strange.html"]
    assert "Traceback" not in said


def test_following_ends_after_the_planned_looks(at):
    (at / "inbox").mkdir()
    for name in ("a", "b", "c"):
        (at / "inbox" / f"{name}.npy").write_bytes((at / "quiet.npy").read_bytes())
    done = CliRunner().invoke(
        main,
        ["watch", "monitor.npz", "inbox", "--follow", "--poll", "0.1", "--alpha", "0.1",
         "--looks", "2"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert [line["batch"] for line in lines_of(done)] == ["inbox/a.npy", "inbox/b.npy"]
    assert "All 2 planned looks are made; further batches are not tested." in done.stderr


@pytest.fixture
def polls(monkeypatch):
    """What happens to the folder between two polls, one function after another, then the end."""

    def play(*happenings):
        left = iter(happenings)

        def sleep(seconds):
            try:
                next(left)()
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr(batches.time, "sleep", sleep)

    return play


def followed(folder: Path, own=(), *, meanwhile=lambda: None, tested=None) -> list[str]:
    """The names of the files that were handed out until the last poll."""
    handed, tested = [], {} if tested is None else tested
    with suppress(EOFError):
        for batch in batches.follow(folder, 1, own, tested):
            handed.append(Path(batch.file).name)
            tested[batch.place] = batch.state
            meanwhile()
    return handed


def nothing():
    pass


def write(file: Path, text: str, modified: int) -> None:
    file.write_text(text)
    os.utime(file, (modified, modified))


@pytest.mark.unit
def test_a_file_is_handed_out_once_it_stays_the_same(tmp_path, polls):
    growing, rewritten = tmp_path / "a-growing", tmp_path / "rewritten"
    for file in (growing, rewritten, tmp_path / "calm"):
        write(file, "a", 1)
    polls(
        lambda: (write(growing, "ab", 1), write(rewritten, "b", 2)),
        lambda: write(rewritten, "c", 3),
        *3 * [nothing],
    )
    assert followed(tmp_path) == ["calm", "a-growing", "rewritten"]


@pytest.mark.unit
def test_a_file_that_changes_is_handed_out_again(tmp_path, polls):
    file = tmp_path / "batch"
    write(file, "a", 1)
    polls(nothing, lambda: write(file, "b", 2), nothing, nothing, nothing)
    assert followed(tmp_path) == ["batch", "batch"]


@pytest.mark.unit
def test_files_and_folders_that_vanish_do_not_end_it(tmp_path, polls, capsys):
    inbox, away = tmp_path / "inbox", tmp_path / "away"
    inbox.mkdir()
    for name in ("first", "second"):
        write(inbox / name, name, 1)
    polls(
        lambda: (inbox / "first").unlink(),
        lambda: inbox.rename(away),
        nothing,
        lambda: away.rename(inbox),
        lambda: write(inbox / "first", "again", 2),
        nothing,
        nothing,
    )
    assert followed(inbox) == ["second", "first"]
    assert capsys.readouterr().err.count("The folder cannot be listed now") == 1


@pytest.mark.unit
def test_a_file_that_vanishes_while_others_are_tested_is_passed_over(tmp_path, polls):
    for name in ("a", "b", "c"):
        write(tmp_path / name, name, 1)
    polls(nothing, nothing)
    handed = followed(tmp_path, meanwhile=lambda: (tmp_path / "b").unlink(missing_ok=True))
    assert handed == ["a", "c"]


@pytest.mark.unit
def test_hidden_files_folders_and_our_own_are_no_batches(tmp_path, polls):
    for name in (".part", "monitor.npz", "batch"):
        write(tmp_path / name, name, 1)
    (tmp_path / "folder").mkdir()
    polls(nothing, nothing)
    assert followed(tmp_path, [tmp_path / "monitor.npz"]) == ["batch"]


@pytest.mark.unit
def test_a_file_that_another_took_the_place_of_is_handed_out_again(tmp_path, polls):
    """Of the same size, and with the same time: of a reproducible archive, say."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    write(inbox / "batch", "a", 1)
    write(tmp_path / "other", "b", 1)
    polls(nothing, lambda: (tmp_path / "other").replace(inbox / "batch"), *3 * [nothing])
    assert followed(inbox) == ["batch", "batch"]


@pytest.mark.unit
def test_hundreds_at_once_are_all_handed_out_in_order(tmp_path, polls):
    names = [f"{number:03d}" for number in range(500)]
    for name in names:
        write(tmp_path / name, name, 1)
    polls(nothing, nothing)
    assert followed(tmp_path) == names


@pytest.mark.unit
def test_a_file_that_changes_while_others_are_tested_waits(tmp_path, polls):
    for name in ("a", "b"):
        write(tmp_path / name, name, 1)
    polls(nothing, nothing, nothing)
    changes = iter([lambda: write(tmp_path / "b", "longer", 1)])
    handed = followed(tmp_path, meanwhile=lambda: next(changes, nothing)())
    assert handed == ["a", "b"]
    polls(nothing)
    changes = iter([lambda: write(tmp_path / "b", "longer", 1)])
    assert followed(tmp_path, meanwhile=lambda: next(changes, nothing)()) == ["a"]


@pytest.mark.unit
def test_files_that_are_gone_are_forgotten_but_not_those_of_a_drive_that_is(tmp_path, polls):
    inbox, away = tmp_path / "inbox", tmp_path / "away"
    inbox.mkdir()
    for name in ("a", "b"):
        write(inbox / name, name, 1)
    tested = {}
    polls(
        nothing,
        lambda: (inbox.rename(away), inbox.mkdir()),  # nothing is mounted there
        nothing,
        lambda: (inbox.rmdir(), away.rename(inbox)),
        nothing,
        nothing,
    )
    assert followed(inbox, tested=tested) == ["a", "b"]
    (inbox / "a").unlink()
    polls(nothing)
    assert followed(inbox, tested=tested) == []
    assert [Path(place).name for place in tested] == ["b"]


def growing(monkeypatch, at, times):
    """Let somebody write to a file while it is read, so many times."""
    whole, left = sparker.tables.read, iter(range(times))

    def read(path, **options):
        for _ in left:
            Path(path).write_bytes(Path(path).read_bytes())
            break
        return whole(path, **options)

    monkeypatch.setattr(sparker.tables, "read", read)


def test_a_batch_that_is_written_to_while_it_is_read_is_no_look_yet(at, monkeypatch):
    (at / "inbox").mkdir()
    (at / "strange.npy").rename(at / "inbox" / "strange.npy")
    growing(monkeypatch, at, 2)
    done = invoke("monitor.npz", "inbox", "--follow", "--poll", "0.1", "--looks", "1")
    assert [line["look"] for line in lines_of(done)] == [1]
    assert lines_of(done)[0]["alarm"]
    assert done.exit_code == 1, done.output


def test_a_batch_that_does_not_come_again_is_not_passed_over(at, monkeypatch):
    growing(monkeypatch, at, 1)
    done = invoke("monitor.npz", "strange.npy", "quiet.npy")
    first, second = lines_of(done)
    assert "strange.npy was written to while it was read; test it when it is" in first["error"]
    assert second["look"] == 2
    assert done.exit_code == 4, done.output


# The journal.


def test_a_watch_goes_on_where_it_was(at):
    first = invoke("monitor.npz", "quiet.npy", "gone.npy", "--journal", "lines.jsonl")
    assert first.exit_code == 4, first.output
    kept = [json.loads(line) for line in (at / "lines.jsonl").read_text().splitlines()]
    assert [{**line, "file": 0, "state": 0} for line in kept] == [
        {**line, "file": 0, "state": 0} for line in lines_of(first)
    ]
    again = invoke("monitor.npz", "./quiet.npy", "strange.npy", "--journal", "lines.jsonl")
    assert [(line["batch"], line["look"]) for line in lines_of(again)] == [("strange.npy", 3)]
    assert again.exit_code == 1, again.output
    (at / "quiet.npy").write_bytes((at / "strange.npy").read_bytes())  # another one by that name
    third = invoke("monitor.npz", "quiet.npy", "strange.npy", "--journal", "lines.jsonl")
    assert [(line["batch"], line["look"]) for line in lines_of(third)] == [("quiet.npy", 4)]
    nothing_new = invoke("monitor.npz", "quiet.npy", "--journal", "lines.jsonl")
    assert (nothing_new.exit_code, nothing_new.output) == (0, "")


def test_planned_looks_are_counted_over_all_runs(at):
    (at / "inbox").mkdir()
    (at / "quiet.npy").rename(at / "inbox" / "quiet.npy")
    options = ["--journal", "lines.jsonl", "--looks", "1"]
    assert invoke("monitor.npz", "inbox", *options).exit_code == 0
    refused = invoke("monitor.npz", "inbox", "strange.npy", *options)
    assert "there are 2 batches for 1 look" in refused.stderr
    ended = invoke("monitor.npz", "inbox", "--follow", *options)
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert "All 1 planned looks are made" in ended.stderr


def test_a_line_that_was_cut_off_is_written_anew(at):
    invoke("monitor.npz", "quiet.npy", "strange.npy", "--journal", "lines.jsonl")
    whole = (at / "lines.jsonl").read_bytes()
    for end in (b"", b"\0" * 9):
        (at / "lines.jsonl").write_bytes(whole[:-30] + end)
        again = invoke("monitor.npz", "quiet.npy", "strange.npy", "--journal", "lines.jsonl")
        assert [line["batch"] for line in lines_of(again)] == ["strange.npy"]
        assert (at / "lines.jsonl").read_bytes() == whole


DEEP = "[" * 100_000 + "\n"


@pytest.mark.parametrize(
    "content", ["x,y\n1,2\n", "no end of a line", '{"look": 1}\n', "3\n", DEEP]
)
def test_what_is_no_journal_is_left_alone(at, content):
    (at / "notes").write_text(content)
    done = invoke("monitor.npz", "quiet.npy", "--journal", "notes")
    assert done.exit_code == 2, done.output
    assert "line 1 of notes is none of a journal" in done.stderr
    assert (at / "notes").read_text() == content


def test_a_journal_belongs_to_one_watch_at_a_time(at):
    held = Journal(at / "lines.jsonl")
    done = invoke("monitor.npz", "quiet.npy", "--journal", "lines.jsonl")
    assert done.exit_code == 2, done.output
    assert "another watch keeps its journal in lines.jsonl" in done.stderr
    held.close()
    assert invoke("monitor.npz", "quiet.npy", "--journal", "lines.jsonl").exit_code == 0


def test_a_journal_without_room_keeps_whole_lines_and_stops_nothing(at, monkeypatch):
    invoke("monitor.npz", "quiet.npy", "--journal", "lines.jsonl")
    before = (at / "lines.jsonl").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = invoke("monitor.npz", "strange.npy", "gone.npy", "--journal", "lines.jsonl")
    assert [line["look"] for line in lines_of(done)] == [2, 3]
    assert done.exit_code == 5, done.output
    assert done.stderr.count("The journal could not be written: No space left on device.") == 1
    assert (at / "lines.jsonl").read_bytes() == before


@pytest.mark.unit
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_journal_is_a_plain_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/null"), tmp_path / "pipe"):
        with pytest.raises(BadInput, match="must name a plain file"):
            Journal(path)


def test_sigterm_ends_a_service_and_a_restart_goes_on(at):
    (at / "inbox").mkdir()
    (at / "strange.npy").rename(at / "inbox" / "strange.npy")
    command = [sys.executable, "-m", "sparker", "watch", "monitor.npz", "inbox", "--follow",
               "--poll", "0.1", "--alpha", "0.05", "--journal", "lines.jsonl"]  # fmt: skip
    looks = []
    for name in ("strange.npy", "quiet.npy"):
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
        ) as process:
            if name == "quiet.npy":
                (at / "quiet.npy").rename(at / "inbox" / "quiet.npy")
            looks.append(json.loads(process.stdout.readline()))
            process.terminate()
            _, said = process.communicate(timeout=60)
        assert process.returncode == 143, said
        assert "Terminated." in said
        assert f"{len(looks)} looks were made and are kept in lines.jsonl" in said
    assert [(look["batch"], look["look"]) for look in looks] == [
        ("inbox/strange.npy", 1),
        ("inbox/quiet.npy", 2),
    ]


def test_a_full_disk_behind_stdout_does_not_end_the_watch(at):
    command = [sys.executable, "-m", "sparker", "watch", "monitor.npz", "quiet.npy", "strange.npy",
               "--alpha", "0.05", "--journal", "lines.jsonl"]  # fmt: skip
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
        )
    assert done.returncode == 5, done.stderr
    assert done.stderr == "Lines cannot be written to stdout any more: No space left on device.\n"
    assert len((at / "lines.jsonl").read_text().splitlines()) == 2


def test_the_picture_goes_on_after_a_restart_and_numbers_the_last_looks(at, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "sparker.plots.trend",
        lambda lines, **options: drawn.append((len(lines), options["first"])),
    )
    monkeypatch.setattr("sparker.cli.journal.N_RECENT", 2)
    options = ["--journal", "lines.jsonl", "--picture", "trend.svg"]
    invoke("monitor.npz", "quiet.npy", *options)
    invoke("monitor.npz", "strange.npy", "gone.npy", *options)
    assert drawn == [(1, 1), (2, 1), (2, 2)]


def test_a_batch_that_is_gone_when_it_is_read_does_not_end_the_following(at, monkeypatch):
    def follow(folder, poll, own, tested):
        yield batches.named("inbox/gone.npy")
        yield batches.named("strange.npy")
        raise KeyboardInterrupt

    (at / "inbox").mkdir()
    monkeypatch.setattr("sparker.cli.watch.follow", follow)
    done = invoke("monitor.npz", "inbox", "--follow")
    assert done.exit_code == 130, done.output
    assert "Interrupted. 2 looks were made; with --journal the same command" in done.stderr
    gone, strange = lines_of(done)
    assert "there is no file inbox/gone.npy" in gone["error"]
    assert strange["alarm"]


@pytest.mark.unit
def test_the_looks_of_a_picture_may_begin_anywhere():
    line, *_ = sparker.plots.trend([{"p_value": 0.5}, {"p_value": 0.2}], first=7)
    assert line.get_xdata().tolist() == [7, 8]
    assert line.axes.get_xlim() == (6.5, 8.5)


@pytest.mark.unit
def test_the_codes_are_those_of_the_help():
    text = " ".join(CliRunner().invoke(main, ["watch", "--help"]).output.split())
    assert "1 an alarm, 4 some batch could not be tested or there was none, or lines" in text
    assert "5 both of these" in text
