"""The command line where it is read: terminals wide and narrow, pipes that close, and pictures."""

import csv
import dataclasses
import io
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import sparker
from sparker import detect
from sparker.cli.main import main
from sparker.findings.decision import Level
from sparker.system.progress import reporter

N_REFERENCE, N_DATA = 200, 30
TEXTS = ["[bold]\x1b[31mred\x1b[0m\r\n\x07", "\N{SNOWMAN} " + "long words " * 30, "plain"]
COLOUR = re.compile(r"\x1b\[[0-9;]*\b(3[0-79]|4[0-79]|[34]8;[0-9;]+|9[0-7]|10[0-7])\b[0-9;]*m")
FEATURES = ["--columns", "x,y"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tables, one picture a data row, and what a test finds in them."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    tables = {"reference": rng.normal(size=(N_REFERENCE, 2)), "data": rng.normal(size=(N_DATA, 2))}
    tables["data"][:10] = 2
    (folder / "pictures").mkdir()
    for i in range(N_DATA):  # whose shade is their number
        Image.new("L", (4, 4), i).save(folder / "pictures" / f"{i}.png")
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["x", "y", "picture", "text"])
            for i, row in enumerate(rows):
                # The other way round than in the folder.
                writer.writerow([*row, f"pictures/{N_DATA - 1 - i}.png", TEXTS[i % len(TEXTS)]])
    found = sparker.test(
        *tables.values(),
        n_toys=9,
        config=sparker.FitConfig(n_kernels=2),
        widths=sparker.WidthConfig(steps=20, n_widths=2),
    )
    found.save(folder / "result.sparker")
    return folder


@pytest.fixture
def result(folder, monkeypatch):
    """Spares every command the fit."""
    known = sparker.TestResult.load(folder / "result.sparker")

    def decided(*args, alpha=None, **kwargs):
        return dataclasses.replace(known, level=Level.of(alpha))

    monkeypatch.setattr(detect, "test", decided)
    return known


def invoke(*arguments, **options):
    return CliRunner(**options).invoke(main, [str(argument) for argument in arguments])


def run_test(folder, *arguments):
    return invoke("test", folder / "reference.csv", folder / "data.csv", *FEATURES, *arguments)


class Screen(io.TextIOWrapper):
    """A terminal, as far as anyone can tell."""

    def __init__(self, encoding="utf-8"):
        super().__init__(io.BytesIO(), encoding)

    def isatty(self):
        return True

    @property
    def text(self):
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def terminal(monkeypatch):
    """Both streams on one; ``terminal(...)`` runs a command and returns what is to be seen."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def run(*arguments):
        screen = Screen()
        with monkeypatch.context() as here:
            here.setattr(sys, "stdout", screen)
            here.setattr(sys, "stderr", screen)
            code = main.main([str(argument) for argument in arguments], standalone_mode=False)
        assert not code
        return screen.text

    return run


# Colours.


def test_a_terminal_gets_styles_and_no_colours_where_none_are_wanted(
    folder, result, terminal, monkeypatch
):
    command = ["test", folder / "reference.csv", folder / "data.csv", *FEATURES]
    assert "\x1b[1mToo few toys to decide at this alpha" in terminal(*command)

    def bar():
        screen = Screen()
        with monkeypatch.context() as here:
            here.setattr(sys, "stderr", screen)
            with reporter(None, 5) as tell:
                tell(3)
        return screen.text

    assert COLOUR.search(bar())
    monkeypatch.setenv("NO_COLOR", "1")
    for seen in (terminal(*command), terminal("info", folder / "data.csv"), bar()):
        assert not COLOUR.search(seen)


def test_pipes_get_neither_codes_nor_bars(folder, result, capfd):
    for done in (
        run_test(folder, "--text", "text"),
        invoke("info", folder / "data.csv"),
        invoke("info", folder / "result.sparker"),
    ):
        assert done.exit_code == 0, done.output
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stdout)
        assert done.stderr == ""
    with reporter(None, 5) as tell:
        tell(3)
    assert capfd.readouterr() == ("", "")


def test_json_is_all_there_is_on_stdout_while_a_bar_runs_on_stderr(folder):
    command = [sys.executable, "-m", "sparker", "test", folder / "reference.csv",
               folder / "data.csv", *FEATURES, "--toys", "9", "--steps", "10",
               "--kernels", "1", "--annealed", "--json", "--text", "text", "--rows",
               folder / "rows.csv"]  # fmt: skip
    ours, theirs = pty.openpty()
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "TERM": "xterm-256color"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        said = b""
        while piece := _read(ours):
            said += piece
        out = process.stdout.read()
    assert process.returncode == 0, said
    found = json.loads(out)
    first = found["rows"]["most_anomalous"][0]
    assert first["text"] in [text.strip() for text in TEXTS] + TEXTS
    assert b"toys" in said
    assert b"\x1b[" in said
    assert b"The rows are in" in said
    os.close(ours)


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes to it any more
        return b""


# Room.


@pytest.mark.parametrize("columns", [200, 80, 40, 20])
def test_narrow_terminals_lose_nothing_that_matters(columns, folder, result, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    done = run_test(folder, "--text", "text", "--alpha", 0.2)
    assert done.exit_code == 1, done.output
    lines = done.stdout.splitlines()
    summary = dataclasses.replace(result, level=Level.of(0.2)).summary().splitlines()
    assert lines[: len(summary)] == summary
    shown = [line for line in lines if line.startswith("\N{BOX DRAWINGS LIGHT VERTICAL}")]
    for line, row in zip(shown, result.ranking[:10], strict=True):
        assert line.split("\N{BOX DRAWINGS LIGHT VERTICAL}")[1].strip() == str(row)
    assert max(map(len, shown)) <= columns


def test_large_numbers_are_whole_in_a_narrow_table(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "t.csv").write_text("energy_of_the_leading_jet,y\n-1234.56,1e-30\n98765.4,2e-30\n")
    shown = invoke("info", tmp_path / "t.csv").stdout
    for number in ("-1234.56", "98765.4", "1e-30", "2e-30"):
        assert number in shown
    name = "".join(line[1:].split("\N{BOX DRAWINGS LIGHT VERTICAL}")[0].strip()
                   for line in shown.splitlines()[4:])  # fmt: skip
    assert name.startswith("energy_of_the_leading_jet")


def test_a_terminal_without_the_characters_still_gets_the_answer(folder, result):
    done = invoke(
        "test", folder / "reference.csv", folder / "data.csv", *FEATURES, "--text", "text",
        "--alpha", 0.2, charset="ascii",
    )  # fmt: skip
    assert done.exit_code == 1, done.output
    assert "Significant difference" in done.stdout
    assert "? long words" in done.stdout


# Readers that leave.

SHORT_CUT = """
import sys
from dataclasses import replace
import sparker
from sparker import detect
from sparker.cli.main import main
from sparker.findings.decision import Level
known = sparker.TestResult.load(sys.argv[1])
detect.test = lambda *args, alpha, **kwargs: replace(known, level=Level.of(alpha))
main(sys.argv[2:])
"""


def test_a_reader_that_leaves_changes_nothing_else(folder, tmp_path):
    files = [folder / "reference.csv", folder / "data.csv"]
    commands = {
        "text": (["test", *files, *FEATURES, "--rows", tmp_path / "rows"], 0),
        "json": (["test", *files, *FEATURES, "--json", "--alpha", "0.5", "--save",
                  tmp_path / "saved.sparker"], 1),
        "table": (["info", files[1]], 0),
    }  # fmt: skip
    running = {}
    for name, (arguments, _) in commands.items():
        reading, writing = os.pipe()
        os.close(reading)  # as `head` does, only sooner
        running[name] = subprocess.Popen(
            [sys.executable, "-c", SHORT_CUT, folder / "result.sparker", *map(str, arguments)],
            stdout=writing, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
        )  # fmt: skip
        os.close(writing)
    for name, (_, code) in commands.items():
        _, said = running[name].communicate(timeout=60)
        assert running[name].returncode == code, said
        assert "Traceback" not in said
        assert "Broken" not in said
    assert (tmp_path / "rows").exists()
    assert sparker.TestResult.load(tmp_path / "saved.sparker")


# JSON.


def test_info_is_json_whatever_the_file_holds(folder, tmp_path):
    found = json.loads(invoke("info", folder / "result.sparker", "--json").stdout)
    assert (found["schema"], found["toys"]["compared"]) == (6, 9)
    rows = np.random.default_rng(0).normal(size=(100, 2))
    rows[3, 1] = np.inf
    np.save(tmp_path / "rows.npy", rows)

    def no_constants(name):
        raise AssertionError(f"{name} is no JSON")

    found = json.loads(
        invoke("info", tmp_path / "rows.npy", "--json").stdout, parse_constant=no_constants
    )
    assert found["columns"][1]["high"] is None
    assert found["columns"][1]["low"] == rows[:, 1].min()


# Pictures.


@pytest.fixture
def reported(monkeypatch):
    """What goes into the report, instead of a report."""
    found = {}
    monkeypatch.setattr(
        sparker.TestResult, "report", lambda self, path, **options: found.update(options)
    )
    return found


def shades(images):
    return [Image.open(image).getpixel((0, 0)) for image in images]


def test_pictures_from_a_column_or_a_folder(folder, result, reported, tmp_path):
    report = tmp_path / "r.html"
    assert run_test(folder, "--images", "picture", "--report", report).exit_code == 0
    assert shades(reported["images"]) == list(range(N_DATA))[::-1]
    done = run_test(folder, "--images", folder / "pictures", "--report", report)
    assert done.exit_code == 0, done.output
    assert shades(reported["images"]) == list(range(N_DATA))  # 2.png before 10.png
    for images, order in (("picture", -1), (folder / "pictures", 1)):
        done = invoke("report", folder / "result.sparker", "--data", folder / "data.csv", *FEATURES,
                      "--images", images, "--output", report)  # fmt: skip
        assert done.exit_code == 0, done.output
        assert shades(reported["images"]) == list(range(N_DATA))[::order]
    done = invoke("report", folder / "result.sparker", "--images", "picture", "--output", report)
    assert done.exit_code == 2
    assert "name its file by --data" in done.stderr


def test_a_column_goes_before_a_folder_of_its_name(folder, result, reported, monkeypatch, tmp_path):
    (tmp_path / "picture").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run_test(folder, "--images", "picture", "--report", "r.html").exit_code == 0
    assert shades(reported["images"])[0] == N_DATA - 1


def test_pictures_get_into_the_report(folder, result, tmp_path):
    report = tmp_path / "r.html"
    done = run_test(folder, "--images", "picture", "--report", report)
    assert done.exit_code == 0, done.output
    assert report.read_text().count("data:image/png;base64") >= N_DATA
    assert f"The report is in {report}" in done.stderr


def copy_with(folder, target, **rows):
    """The data with other pictures in some rows."""
    with (folder / "data.csv").open(newline="") as file:
        header, *lines = list(csv.reader(file))
    shutil.copytree(folder / "pictures", target.parent / "pictures", dirs_exist_ok=True)
    for row, name in rows.items():
        lines[int(row[1:])][2] = str(name)
    with target.open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])
    return target


def bomb(folder, suffix, tmp_path):
    """A few bytes that claim to be ten thousand million pixels."""

    def part(kind, content):
        crc = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)

    size = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    parts = part(b"IHDR", size) + part(b"IDAT", zlib.compress(bytes(1000))) + part(b"IEND", b"")
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + parts)
    return "bomb.png"


def drawing(folder, suffix, tmp_path):
    (tmp_path / "drawing.png").write_text(
        "<svg onload='alert(1)' xmlns='http://www.w3.org/2000/svg'/>"
    )
    return "drawing.png"


def elsewhere(folder, suffix, tmp_path):
    """A picture of the reader's, by its whole name."""
    return folder / "pictures" / "3.png"


def further_up(folder, suffix, tmp_path):
    return os.path.relpath(folder / "pictures" / "3.png", tmp_path)


def linked(folder, suffix, tmp_path):
    (tmp_path / "linked.png").symlink_to(folder / "pictures" / "3.png")
    return "linked.png"


def half(folder, suffix, tmp_path):
    """The first half of a picture that has much to it."""
    noise = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / f"whole{suffix}")
    content = (tmp_path / f"whole{suffix}").read_bytes()
    (tmp_path / f"half{suffix}").write_bytes(content[: len(content) // 2])
    return tmp_path / f"half{suffix}"


def text_file(folder, suffix, tmp_path):
    (tmp_path / f"text{suffix}").write_text("no picture")
    return tmp_path / f"text{suffix}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda *at: "gone.png", "row 7 of {data} names the picture 'gone.png', which is not"),
        (lambda *at: "", "row 7 of {data} names no picture; picture must hold the names of files"),
        (text_file, "text.png, the picture of row 7 of {data}, cannot be read as PNG or JPEG"),
        (half, "half.png, the picture of row 7 of {data}, cannot be read as PNG or JPEG"),
        (drawing, "drawing.png, the picture of row 7 of {data}, cannot be read as PNG or JPEG"),
        (bomb, "bomb.png, the picture of row 7 of {data}, cannot be read as PNG or JPEG: Ima"),
        (
            elsewhere,
            "the picture of row 7 of {data} is {folder}/pictures/3.png, which lies outside",
        ),
        (further_up, "/pictures/3.png, which lies outside of {here}; only pictures inside that"),
        (linked, "the picture of row 7 of {data} is {here}/linked.png, which lies outside of"),
    ],
)
def test_pictures_that_are_not_there_are_missed_at_once(
    make, message, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(detect, "test", None)  # called, it would be an error of ours
    data = copy_with(folder, tmp_path / "data.csv", r7=make(folder, ".png", tmp_path))
    done = invoke("test", folder / "reference.csv", data, *FEATURES, "--images", "picture",
                  "--report", tmp_path / "r.html")  # fmt: skip
    assert done.exit_code == 2, done.output
    assert message.format(data=data, folder=folder, here=tmp_path) in done.stderr
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ("few", "holds 2 pictures (.png, .jpg), {data} has 30 rows; one a row is needed"),
        ("nothing", "has no column 'nothing'"),
        ("text", "names the picture"),
        ("x", "names the picture"),
    ],
)
def test_pictures_that_do_not_fit_are_missed_at_once(
    images, message, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(detect, "test", None)
    (tmp_path / "few").mkdir()
    for name in ("1.png", "2.JPG", "notes.txt"):
        (tmp_path / "few" / name).write_text("")
    monkeypatch.chdir(tmp_path)
    done = run_test(folder, "--images", images, "--report", "r.html")
    assert done.exit_code == 2, done.output
    assert message.format(data=folder / "data.csv") in done.stderr


def test_a_folder_may_not_lead_elsewhere(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(detect, "test", None)
    shutil.copytree(folder / "pictures", tmp_path / "pictures")
    for name in ("3.png", "4.png"):
        (tmp_path / "pictures" / name).unlink()
        (tmp_path / "pictures" / name).symlink_to(folder / "pictures" / name)
    done = run_test(folder, "--images", tmp_path / "pictures", "--report", tmp_path / "r.html")
    assert done.exit_code == 2
    assert "3.png, which lies outside of" in done.stderr
    assert "and 1 more rows are like it" in done.stderr


def test_pictures_without_a_report_are_a_mistake(folder, monkeypatch):
    monkeypatch.setattr(detect, "test", None)
    done = run_test(folder, "--images", "picture")
    assert done.exit_code == 2
    assert "--images needs --report: they are shown there" in done.stderr


def test_a_picture_that_breaks_off_costs_the_report_but_no_answer(folder, result, tmp_path):
    data = copy_with(folder, tmp_path / "data.csv", r7=half(folder, ".jpg", tmp_path))
    done = invoke("test", folder / "reference.csv", data, *FEATURES, "--images", "picture",
                  "--report", tmp_path / "r.html",
                  "--save", tmp_path / "saved.sparker")  # fmt: skip
    assert done.exit_code == 2, done.output
    assert "images[7] cannot be shown" in done.stderr
    assert "Too few toys" in done.stdout
    assert (tmp_path / "saved.sparker").exists()
    assert not (tmp_path / "r.html").exists()


def test_an_error_is_no_longer_than_one_would_read():
    done = CliRunner().invoke(main, ["test", "x" * 10**6 + ".npy", "data.npy"])
    assert done.exit_code == 2
    assert "characters more" in done.output
    assert len(done.output) < 11_000


def test_a_device_that_is_not_there_leaves_the_one_that_is(folder):
    arguments = ["test", str(folder / "reference.csv"), str(folder / "data.csv"), "--toys", "1"]
    missing = CliRunner().invoke(main, [*arguments, "--device", "tpu"])
    assert missing.exit_code == 2
    assert "there is no device 'tpu' here" in missing.output
    found = CliRunner().invoke(main, [*arguments, *FEATURES, "--statistic", "mahalanobis"])
    assert found.exit_code == 0, found.output
