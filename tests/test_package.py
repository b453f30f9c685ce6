"""The package as a whole: what importing costs, what the command line says, what style holds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparker.cli import main

ROOT = Path(__file__).parent.parent


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_importing_computes_nothing_and_takes_no_device():
    code = (
        "import sparker, jax._src.xla_bridge as bridge; "
        "assert not bridge._backends, bridge._backends"
    )
    result = run(sys.executable, "-c", code)
    assert result.returncode == 0, result.stderr


def test_every_command_has_an_example():
    for name in main.commands:
        result = CliRunner().invoke(main, [name, "--help"])
        assert f"Example: sparker {name}" in result.output


def test_the_demo_finds_the_planted_events(tmp_path):
    picture = tmp_path / "demo.png"
    result = CliRunner().invoke(main, ["demo", "--calibrations", "9", "--output", str(picture)])
    assert result.exit_code == 0, result.output
    assert "p-value 0.1 " in result.stdout  # the least that nine toys can give
    assert "0 of 9 anomaly-free experiments" in result.stdout
    strongest = re.search(r"│ +\d │ +(\S+) │ +(\S+) │ +(\d+) │ +(\d+) │", result.stdout)
    assert strongest is not None, result.stdout
    x, amplitude, _, planted = strongest.groups()
    assert float(x) == pytest.approx(9, abs=0.5)
    assert float(amplitude) > 2
    assert int(planted) >= 4
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "planted" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "/no/such/folder/x.png"], "there is no folder /no/such/folder; make it"),
        (["--output", "/dev/full"], "could not be written to /dev/full: No space left on device"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--calibrations", "0"], "0 is not in the range"),
    ],
)
def test_the_demo_says_what_is_wrong_in_a_line(arguments, message):
    result = CliRunner().invoke(main, ["demo", "--calibrations", "1", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_ci_runs_the_readme_test_command():
    readme = (ROOT / "README.md").read_text()
    commands = [line for line in readme.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[1] in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize(
    "command", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]], ids=" ".join
)
def test_style_and_types(command):
    result = run(sys.executable, "-m", *command)
    assert result.returncode == 0, result.stdout + result.stderr
