"""Imports go to lower levels only: at the top of a module, in a function, for a type checker."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparker

pytestmark = pytest.mark.unit

PACKAGE = Path(sparker.__file__).parent
LEVELS = {
    "system": 0, "together": 0, "ordinary": 0,
    "tables": 1, "embed": 1, "engine": 1,
    "statistics": 3,
    "nulls": 4,
    "calibration": 5, "betting": 5,
    "findings": 6, "algorithm": 6, "presets": 6, "config": 6, "varied": 6,
    "plots": 7, "intake": 7, "by_name": 7,
    "report": 8,
    "result": 9,
    "detect": 10,
    "history": 6, "monitor_file": 10,
    "monitor": 11, "anytime": 11, "power": 11, "estimator": 11, "generators": 11, "many": 11,
    "files": 12,
    "cli": 13,
    "__init__": 14, "__main__": 14,
}  # fmt: skip
"""A subpackage may import those of lower levels, and itself."""
HOME = {
    alias.name: node.module
    for node in ast.walk(ast.parse((PACKAGE / "__init__.pyi").read_text()))
    if isinstance(node, ast.ImportFrom) and node.module
    for alias in node.names
}


def imported(source: str) -> Iterator[str]:
    """The subpackages that a module imports from, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "sparker":
            homes = [HOME.get(alias.name, alias.name) for alias in node.names]
            names = [f"sparker.{home}" for home in homes if home != "__version__"]
        elif isinstance(node, ast.ImportFrom):
            names = [("sparker." if node.level else "") + (node.module or "__init__")]
        else:
            continue
        for name in names:
            package, _, room = name.partition(".")
            if package == "sparker":
                yield room.partition(".")[0] or "__init__"


def upwards(room: str, source: str) -> list[str]:
    """The subpackages it must not import from, but does."""
    return [other for other in imported(source) if other != room and LEVELS[other] >= LEVELS[room]]


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_no_module_imports_upwards(path):
    assert upwards(room_of(path), path.read_text()) == []


def test_every_room_has_a_level():
    assert {room_of(path) for path in PACKAGE.rglob("*.py")} == LEVELS.keys()


@pytest.mark.parametrize(
    ("room", "source", "found"),
    [
        ("engine", "import numpy\nfrom sparker.system import archive", []),
        ("engine", "from sparker.engine.widths import linear", []),
        ("engine", "def lazy():\n    from sparker.nulls.pool import Pool", ["nulls"]),
        ("engine", "if TYPE_CHECKING:\n    import sparker.detect", ["detect"]),
        ("engine", "from sparker import test, WidthConfig", ["detect"]),
        ("engine", "from sparker import tables", ["tables"]),  # neither stands on the other
        ("tables", "from sparker.engine.sample import as_points", ["engine"]),
        ("system", "from sparker import __version__", []),
        ("system", "import sparker", ["__init__"]),
        ("cli", "class A:\n    from sparker import SparKer", []),
    ],
)
def test_it_would_be_noticed(room, source, found):
    assert upwards(room, source) == found
