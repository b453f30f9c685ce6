"""The package as a whole: what it offers, what importing costs, what the command line says."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from pathlib import Path

import pytest
from click.testing import CliRunner
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sparker
from sparker.cli.main import main

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parent.parent


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_what_is_offered_is_there_and_nothing_else_is():
    assert sorted(dir(sparker)) == sparker.__all__ == sorted(set(sparker.__all__))
    for name in dir(sparker):
        assert getattr(sparker, name) is not None
    with pytest.raises(AttributeError, match="No sparker attribute fit_many"):
        sparker.fit_many  # noqa: B018


def test_type_checkers_see_what_is_offered():
    """In a stub, a name is public if it is imported under its own name once more."""
    tree = ast.parse(Path(sparker.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [(alias.name, alias.asname) for node in imports for alias in node.names]
    assert sorted(names) == [(name, name) for name in sparker.__all__]


HEAVY = ("jax", "matplotlib", "bokeh", "sklearn", "scipy")


def test_importing_waits_for_nothing_heavy():
    code = f"import sys, sparker; print([name for name in {HEAVY} if name in sys.modules])"
    assert run(sys.executable, "-c", code).stdout.strip() == "[]"


def test_help_waits_for_nothing_heavy():
    code = (
        "import sys; from click.testing import CliRunner; from sparker.cli.main import main; "
        "print(CliRunner().invoke(main, ['--help']).exit_code, "
        f"[name for name in {HEAVY} if name in sys.modules])"
    )
    assert run(sys.executable, "-c", code).stdout.strip() == "0 []"


def test_importing_all_of_it_computes_nothing_and_takes_no_device():
    code = (
        "import sparker, jax._src.xla_bridge as bridge; "
        "[getattr(sparker, name) for name in dir(sparker)]; "
        "assert not bridge._backends, bridge._backends"
    )
    result = run(sys.executable, "-c", code)
    assert result.returncode == 0, result.stderr


def test_the_wheel_has_everything_that_is_not_code_too():
    source = ROOT / "src"
    suffixes = {".py", ".pyi", ".typed", ".html", ".css", ".js"}
    own = {path for path in source.rglob("*") if path.suffix in suffixes}
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {str(path.relative_to(source)) for path in own} <= packed
    templates = {f"sparker/report/templates/report.{suffix}" for suffix in ("html", "css", "js")}
    assert {"sparker/py.typed", "sparker/__init__.pyi", *templates} <= packed


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Made of the sdist, so that nothing that the wheel needs is missing there."""
    folder = tmp_path_factory.mktemp("release")
    (sdist,) = SdistBuilder(str(ROOT)).build(directory=str(folder))
    with tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    (built,) = WheelBuilder(str(source)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def empty_environment(folder: Path) -> Path:
    venv.create(folder, with_pip=False)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def install(programs: Path, *arguments: str) -> None:
    pip = (sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "-q")
    done = run(*pip, *arguments)
    assert done.returncode == 0, done.stderr


def test_the_wheel_made_of_the_sdist_works_in_an_empty_environment(wheel, tmp_path):
    programs = empty_environment(tmp_path / "env")
    install(programs, "--no-deps", "--no-index", str(wheel))
    # What it depends on comes from here, but not the package itself: its own folder is asked first.
    (packages,) = (tmp_path / "env").glob("[Ll]ib/**/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = (
        "import sparker, sys; print(sparker.__version__, sparker.__file__.startswith(sys.prefix))"
    )
    for command, said in (
        (("python", "-c", code), f"{sparker.__version__} True"),
        (("sparker", "--version"), f"sparker, version {sparker.__version__}"),
    ):
        done = subprocess.run(
            [programs / command[0], *command[1:]],
            **{"cwd": tmp_path, "env": own, "capture_output": True, "text": True, "check": False},
        )
        assert done.stdout.strip() == said, done.stderr


@pytest.mark.slow
def test_the_wheel_brings_all_it_needs(wheel, tmp_path):
    programs = empty_environment(tmp_path / "env")
    install(programs, str(wheel))
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [programs / "sparker", "demo"],
        **{"cwd": tmp_path, "env": own, "capture_output": True, "text": True, "check": False},
    )
    assert done.returncode == 0, done.stderr
    assert "hidden 0" in done.stdout
    assert (tmp_path / "sparker-demo.html").exists()


def test_the_version_is_the_same_everywhere():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == sparker.__version__
    assert sparker.__version__ in (ROOT / "CHANGELOG.md").read_text()


def test_every_command_has_an_example():
    for name in main.commands:
        result = CliRunner().invoke(main, [name, "--help"])
        assert f"Example: sparker {name}" in result.output


def test_ci_runs_the_readme_test_command():
    readme = (ROOT / "README.md").read_text()
    commands = [line for line in readme.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[1] in (ROOT / ".ci" / "run").read_text().splitlines()


NO_PART_OF_TESTS = "sparker", "torch", "sentence-transformers", "timm"
"""Of benchmarks and of hubs: what they bring along is several GB."""


def test_the_versions_that_are_pinned_are_those_that_are_asked_for():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [Requirement(line) for line in lines if not line.startswith("#")]
    versions = {canonicalize_name(one.name): str(one.specifier)[2:] for one in pinned}
    assert all(str(one.specifier).startswith("==") for one in pinned)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(one for name in extras for one in extras[name])]
    for one in map(Requirement, wanted):
        if one.name not in NO_PART_OF_TESTS:
            assert one.specifier.contains(versions[canonicalize_name(one.name)]), one
