"""What recipes share, and their own formulas: without the packages that they need to run."""

import importlib.util
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def recipe():
    spec = importlib.util.spec_from_file_location("_recipe", EXAMPLES / "_recipe.py")
    module = sys.modules["_recipe"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["_recipe"]


@pytest.mark.unit
def test_a_requirement_is_missing_if_not_installed_or_of_another_version(recipe, tmp_path):
    (tmp_path / "some.txt").write_text(
        "# numpy, BSD\nnumpy>=1\nnumpy<1  # too old\nno-such-package\n\n"
        "no-such-either; python_version < '3'\n"
    )
    assert recipe.missing("some", tmp_path) == ["numpy<1", "no-such-package"]
    assert recipe.missing("none", tmp_path) == []


def test_without_its_packages_a_recipe_ends_with_one_line(recipe, monkeypatch, capsys):
    monkeypatch.setattr(recipe, "missing", lambda name: ["some>=1", "other"])
    monkeypatch.setattr(sys, "argv", ["NAME.py"])
    with pytest.raises(SystemExit) as ended:
        recipe.begin("NAME")
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == "NAME.py needs some>=1, other: pip install -r examples/requirements/NAME.txt\n"


def test_every_file_of_requirements_has_its_recipe_and_says_the_licence(recipe):
    sparkers = (ROOT / "pyproject.toml").read_text()
    for path in (EXAMPLES / "requirements").glob("*.txt"):
        first = path.read_text().splitlines()[0]
        assert first.startswith("#")
        script = (EXAMPLES / f"{path.stem}.py").read_text()
        assert f"examples/requirements/{path.stem}.txt" in script
        assert f'begin("{path.stem}")' in script
        wanted = recipe.requirements(path.stem)
        assert wanted
        assert all(isinstance(one, Requirement) for one in wanted)
        if "GPL" in path.read_text():
            assert not [one.name for one in wanted if f'"{one.name}' in sparkers]


def test_recipes_without_requirements_always_run(recipe):
    assert {"published_search", "clean_training_rows", "drift_in_ci"} <= set(recipe.runnable())
