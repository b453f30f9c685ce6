"""What commands write and say: nothing overwritten, nothing lost, nothing a terminal would obey."""

import csv
import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import sparker
from sparker import detect
from sparker.cli.endings import GRACE, Terminated
from sparker.cli.main import main
from sparker.cli.terminal import printable
from sparker.findings.decision import Level
from sparker.system import cache_folder

EVIL = "a\x1b[31mred\x9b2J\u202e"
QUICK = ["--toys", "9", "--kernels", "2", "--steps", "20"]


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two tables and what a test finds in them."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(100, 2)), rng.normal(size=(30, 2))]
    for name, rows in zip(("reference", "data"), tables, strict=True):
        np.save(folder / f"{name}.npy", rows)
    sparker.test(
        *tables,
        n_toys=9,
        config=sparker.FitConfig(n_kernels=2),
        widths=sparker.WidthConfig(steps=20, n_widths=2),
    ).save(folder / "result.sparker")
    return folder


@pytest.fixture
def at(made, tmp_path, monkeypatch):
    """The same files, in the folder where the commands run, and no fits."""
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    known = sparker.TestResult.load("result.sparker")
    monkeypatch.setattr(detect, "test", lambda *args, **kwargs: known)
    return tmp_path


def child(code, *arguments, **options):
    """A process of its own, whose fits are spared as well."""
    known = (
        "import sys, sparker; from sparker import detect; from sparker.cli.main import main\n"
        "known = sparker.TestResult.load('result.sparker')\n"
        "detect.test = lambda *args, **kwargs: known\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", known + code, *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        **options,
    )


TEST = ["test", "reference.npy", "data.npy"]


# Numbers.


def real_options():
    """Every option of every command that takes a number with a fraction."""
    for name, command in main.commands.items():
        for option in command.params:
            if isinstance(option.type, (click.FloatRange, click.types.FloatParamType)):
                yield name, option.opts[0]


@pytest.mark.unit
@pytest.mark.parametrize(("command", "option"), list(real_options()))
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e400"])
def test_every_number_is_one(command, option, value):
    arguments = ["x" for one in main.commands[command].params if isinstance(one, click.Argument)]
    needed = [
        word
        for one in main.commands[command].params
        if isinstance(one, click.Option) and one.required
        for word in (one.opts[0], "1")
    ]
    done = invoke(command, *arguments, *needed, f"{option}={value}")
    assert done.exit_code == 2
    assert f"Invalid value for '{option}'" in done.stderr


@pytest.mark.unit
def test_there_are_such_options():
    assert {("test", "--alpha"), ("calibrate", "--alpha"), ("power", "--clip")} <= set(
        real_options()
    )


# Nothing is overwritten.


@pytest.mark.parametrize("name", ["data.npy", "./data.npy", "symbolic", "hard"])
@pytest.mark.parametrize("option", ["--save", "--rows", "--report"])
def test_no_output_overwrites_an_input(at, monkeypatch, name, option):
    monkeypatch.setattr(detect, "test", None)  # called, it would be an error of ours
    (at / "symbolic").symlink_to("data.npy")
    (at / "hard").hardlink_to(at / "data.npy")
    before = (at / "data.npy").read_bytes()
    done = invoke(*TEST, option, name)
    assert done.exit_code == 2, done.output
    assert f"{option} would overwrite data.npy, which is read" in done.stderr
    assert (at / "data.npy").read_bytes() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["calibrate", "reference.npy", "reference.npy"],
        ["report", "result.sparker", "--output", "result.sparker"],
        ["report", "result.sparker", "--data", "data.npy", "--output", "data.npy"],
        ["power", "reference.npy", "data.npy", "--n-reference", 50, "--n-data", 20, "--figure",
         "data.npy"],
        ["watch", "result.sparker", "data.npy", "--picture", "result.sparker"],
    ],
)  # fmt: skip
def test_no_command_overwrites_its_input(at, arguments):
    before = {file.name: file.read_bytes() for file in at.iterdir()}
    done = invoke(*arguments)
    assert done.exit_code == 2, done.output
    assert "which is read; choose another file" in done.stderr
    assert {file.name: file.read_bytes() for file in at.iterdir()} == before


def picture(path):
    Image.new("L", (4, 4)).save(path)


@pytest.mark.parametrize("option", ["--save", "--rows", "--report"])
def test_no_output_overwrites_a_picture(at, monkeypatch, option):
    monkeypatch.setattr(detect, "test", None)
    for folder, n in (("one", 100), ("other", 30)):
        os.mkdir(folder)
        for i in range(n):
            picture(f"{folder}/{i}.png")
        names = "".join(f"{folder}/{i}.png,{i}\n" for i in range(n))
        Path(f"{folder}.csv").write_text(f"file,x\n{names}")
    before = {file: file.read_bytes() for file in at.rglob("*.png")}
    shown = ["--report", "r.html"] * (option != "--report")
    embed = ["--embed", "efficientnet-lite0"]
    for arguments in (
        [*TEST, "--images", "other", *shown],
        ["test", "one.csv", "other.csv", "--images", "file", *shown],
        ["test", "one.csv", "other.csv", "--images", "file", "--ignore", "x", *embed],
        ["test", "one", "other", *embed],
    ):
        done = invoke(*arguments, option, "other/7.png")
        assert done.exit_code == 2, done.output
        assert f"{option} would overwrite " in done.stderr
        assert "other/7.png, which is read" in done.stderr
        assert {file: file.read_bytes() for file in at.rglob("*.png")} == before


@pytest.mark.parametrize("images", ["shown", "file"])
def test_no_report_of_a_result_overwrites_a_picture(at, images):
    os.mkdir("shown")
    for i in range(30):
        picture(f"shown/{i}.png")
    Path("shown.csv").write_text("a,b,file\n" + "".join(f"1,2,shown/{i}.png\n" for i in range(30)))
    data = ["--data", "shown.csv", "--columns", "a,b", "--images", images]
    done = invoke("report", "result.sparker", *data, "--output", "shown/7.png")
    assert done.exit_code == 2, done.output
    assert "--output would overwrite shown/7.png, which is read" in done.stderr


def test_everything_wrong_with_outputs_is_said_at_once(at, monkeypatch):
    monkeypatch.setattr(detect, "test", None)
    same = invoke(*TEST, "--save", "x", "--rows", at / "x", "--report", "no/x")
    assert same.exit_code == 2
    assert "there is no folder no; make it, or choose another --report" in same.stderr
    assert "--save and --rows are the same file, x" in same.stderr
    assert "--save must name a file" in invoke(*TEST, "--save", "").stderr
    both = invoke(*TEST, "--save", "/dev/null", "--rows", "/dev/null")  # takes everything
    assert "same file" not in both.stderr


def test_a_figure_of_an_unknown_kind_is_refused_at_once(at):
    done = invoke("power", "reference.npy", "data.npy", "--n-reference", 50, "--n-data", 20,
                  "--figure", "power.xyz")  # fmt: skip
    assert done.exit_code == 2
    assert "--figure must end with .png, .svg, .pdf, got power.xyz" in done.stderr


# Nothing is lost.


@pytest.mark.parametrize("broken", ["--rows", "--save", "--report"])
def test_an_output_that_fails_costs_none_of_the_others(at, broken):
    files = {"--rows": "rows.csv", "--save": "saved.sparker", "--report": "report.html"}
    arguments = [word for pair in (files | {broken: "/dev/full"}).items() for word in pair]
    done = invoke(*TEST, *arguments)
    assert done.exit_code == 2, done.output
    assert "p-value" in done.stdout
    assert "could not be written to /dev/full: No space left on device" in done.stderr
    for option, file in files.items():
        assert (at / file).exists() == (option != broken)


def test_a_mistake_of_ours_in_one_output_costs_none_of_the_others(at, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("sparker.cli.test.speak", broken)
    done = invoke(*TEST, "--save", "saved.sparker", "--rows", "/dev/full")
    assert done.exit_code == 3, done.output
    assert "Internal error: ZeroDivisionError: oh" in done.stderr
    assert "the rows could not be written to /dev/full" in done.stderr
    assert (at / "saved.sparker").exists()


def test_a_full_disk_behind_stdout_costs_no_file(at):
    with open("/dev/full", "wb") as full:
        process = child("main(sys.argv[1:])", *TEST, "--save", "saved.sparker", stdout=full)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert "the answer could not be written to stdout: No space left on device" in said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert (at / "saved.sparker").exists()


def test_a_closed_stdout_is_said_and_gets_into_no_file(at):
    process = child("import os; os.close(1); sys.stdout = None; main()",
                    *TEST, "--rows", "rows.csv", "--json")  # fmt: skip
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2, said
    assert "the answer could not be written to stdout: stdout is closed" in said
    with (at / "rows.csv").open() as file:
        assert len(list(csv.reader(file))) == 31


@pytest.mark.parametrize(
    ("command", "where"),
    [
        ("info data.npy --json", ">&-"),
        ("info data.npy", ">&- 2>&- <&-"),
        ("info data.npy", ">/dev/full 2>/dev/full"),
        ("info -h", ">&-"),
        ("--help", ">/dev/full"),
    ],
)
def test_an_answer_that_goes_nowhere_is_an_error(at, command, where):
    line = f"{sys.executable} -m sparker {command} {where}"
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert ("Error: " in done.stderr) == ("2>" not in where)


def test_rows_may_go_where_the_answer_goes(at):
    with (at / "said").open("wb") as file:
        process = child("main(sys.argv[1:])", *TEST, "--rows", "/dev/stdout", stdout=file)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    text = (at / "said").read_text()
    assert text.startswith("30 data rows and 100 reference rows")
    assert text.count("\n29,") == 1


def test_a_level_out_of_reach_of_few_labellings_costs_no_file(at, monkeypatch):
    known = dataclasses.replace(detect.test(), n_labellings=10, level=Level.of(0.05))
    monkeypatch.setattr(detect, "test", lambda *args, **kwargs: known)
    done = invoke(*TEST, "--alpha", 0.2, "--save", "saved.sparker")
    assert (done.exit_code, (at / "saved.sparker").exists()) == (2, True)
    assert "with 10 labellings no p-value is smaller than 0.1" in done.stderr
    assert "Too few toys to decide at this alpha" in done.stdout


# Nothing that a terminal would obey.


@pytest.mark.unit
def test_what_a_terminal_would_obey_is_spelled_out():
    assert printable(EVIL) == r"a\x1b[31mred\x9b2J\u202e"
    kept = "two\nlines, na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve \N{NO-BREAK SPACE}\u200d"
    assert printable(kept) == kept
    assert printable("\udcff\r\t") == r"\udcff\r\t"


def raw(text):
    return [c for c in text if c != "\n" and not c.isprintable()]


def test_no_word_of_a_file_or_an_argument_moves_the_cursor(at):
    rows = np.random.default_rng(0).normal(size=(40, 2))
    with open("evil.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([EVIL, "y"])
        writer.writerows([*rows.tolist(), [EVIL, EVIL]])
    os.link("evil.csv", f"{EVIL}.csv")
    for arguments in (
        ["info", "evil.csv"],
        ["info", f"{EVIL}.csv"],
        ["info", EVIL],
        ["test", "evil.csv", "data.npy"],
        ["test", "reference.npy", "data.npy", "--columns", EVIL],
        ["test", "reference.npy", "data.npy", "--save", f"{EVIL}/x"],
        ["test", "reference.npy", "data.npy", "--rows", f"{EVIL}.rows"],
        ["test", "reference.npy", "data.npy", EVIL],
        ["test", f"--{EVIL}"],
        ["watch", EVIL, "data.npy"],
        ["merge", EVIL, "--into", "x"],
        [EVIL],
        [f"--{EVIL}"],
    ):
        done = invoke(*arguments)
        assert raw(done.output) == [], arguments


def test_a_result_of_such_columns_is_told_without_them(at, monkeypatch):
    monkeypatch.setattr(sparker.TestResult, "summary", lambda self, **how: f"column {EVIL} differs")
    for arguments in (["info", "result.sparker"], TEST):
        done = invoke(*arguments)
        assert done.exit_code == 0, done.output
        assert raw(done.stdout) == []
        assert r"a\x1b[31mred" in done.stdout


# Endings.

STUCK = """
import time
def stuck(*args, **kwargs):
    {}
detect.test = stuck
main(sys.argv[1:])
"""
SWALLOWED = """
    while True:
        try:
            print("here", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""
SLEEPING = 'print("here", flush=True); time.sleep(60)'


@pytest.mark.parametrize(
    ("body", "number", "code", "words"),
    [
        (SLEEPING, signal.SIGINT, 130, "Interrupted.\n"),
        (SLEEPING, signal.SIGTERM, 143, "Terminated.\n"),
        (SWALLOWED, signal.SIGINT, 130, "Interrupted. What was fini"),
        (SWALLOWED, signal.SIGTERM, 143, "Terminated. What was fini"),
    ],
)
def test_signals_end_a_command_whatever_it_does(at, body, number, code, words):
    process = child(STUCK.format(body), *TEST, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "here\n"
    began = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert said.startswith(words)
    assert time.monotonic() - began < GRACE + 10


def test_ctrl_c_that_is_ignored_stays_ignored(at):
    """As for what nohup, or a shell's &, starts."""
    waits = 'print("here", flush=True); time.sleep(2); return known'
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    process = child(ignore + STUCK.format(waits), *TEST, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "Interrupted" not in said
    assert "p-value" in out


def test_both_endings_have_a_code_of_their_own(at, monkeypatch):
    for stop, code in ((KeyboardInterrupt, 130), (Terminated, 143)):

        def test(*args, ending=stop, **kwargs):
            raise ending

        monkeypatch.setattr(detect, "test", test)
        assert invoke(*TEST).exit_code == code


# Machines.


def test_a_platform_that_is_not_there_is_said_plainly(at):
    for platform in ("cuda", "nonsense"):
        for arguments in (
            [*TEST, *QUICK],
            ["demo", "--toys", "1"],
        ):
            done = subprocess.run(
                [sys.executable, "-m", "sparker", *arguments],
                capture_output=True,
                text=True,
                env=os.environ | {"JAX_PLATFORMS": platform},
            )
            assert done.returncode == 2, done.stderr
            assert f"while JAX_PLATFORMS is '{platform}'; unset it, or set it to cpu" in done.stderr


def test_a_full_device_is_no_mistake_of_ours(at, monkeypatch):
    import jax

    def test(*args, **kwargs):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(detect, "test", test)
    done = invoke(*TEST)
    assert done.exit_code == 2
    assert "the device's memory is full" in done.stderr


NO_ROOM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from sparker.cli.main import main
main(sys.argv[1:])
"""


def test_without_any_room_the_answer_still_comes(at):
    """No file of any size: a full disk, for the programs, Matplotlib and temporary files."""
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "HOME": "/nowhere",
        "TMPDIR": "/nowhere",
        "SPARKER_CACHE": str(at / "cache"),
    }
    environment = {k: v for k, v in environment.items() if not k.startswith(("JAX_C", "JAX_PE"))}
    done = subprocess.run(
        [sys.executable, "-c", NO_ROOM, *TEST, *QUICK],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "p-value" in done.stdout
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Warning:")]
    assert len(lines) == 1
    assert lines[0].startswith("Compiled programs cannot be kept for the next time (File too")


@pytest.mark.unit
def test_a_user_without_a_home_gets_no_folder_of_that_name(monkeypatch):
    monkeypatch.delenv(cache_folder.VARIABLE, raising=False)
    monkeypatch.setattr(cache_folder, "user_cache_path", lambda name: Path("~/.cache") / name)
    with pytest.raises(FileNotFoundError):
        cache_folder.root()
