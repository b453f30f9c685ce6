"""The package as a whole: what importing costs, what the command line says, what style holds."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hatchling.builders.wheel import WheelBuilder

from sparker.cli.main import main

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


def test_the_wheel_has_everything_that_is_not_code_too():
    source = ROOT / "src"
    suffixes = {".py", ".typed", ".html", ".css", ".js"}
    own = {path for path in source.rglob("*") if path.suffix in suffixes}
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {str(path.relative_to(source)) for path in own} <= packed
    templates = {f"sparker/report/templates/report.{suffix}" for suffix in ("html", "css", "js")}
    assert {"sparker/py.typed", *templates} <= packed


def test_every_command_has_an_example():
    for name in main.commands:
        result = CliRunner().invoke(main, [name, "--help"])
        assert f"Example: sparker {name}" in result.output


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
