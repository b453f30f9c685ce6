"""The sentences of a result: reviewed texts for results of every kind."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.words import found

import sparker
from sparker.calibration.pvalues import significance
from sparker.cli.main import main
from sparker.findings import text
from sparker.findings.bound import AtLeast
from sparker.findings.columns import ColumnTest
from sparker.findings.decision import DEFAULT_ALPHA, Level
from sparker.findings.explain import Answers
from sparker.findings.regions import Region
from sparker.findings.rules import Condition
from sparker.nulls import Pull
from sparker.statistics import Component
from sparker.tables.checks import Caution

HERE = Path(__file__).parent
GOLDEN = HERE / "text.json"
"""Reviewed. ``python -m tests.test_text`` writes it anew."""

N = 40
FAMILIES = (Component("kernels", 0.5), Component("k-NN counts", 16.0))


def region(p_value=0.003, expected=1.2, **changes):
    """Eleven data rows above 2 in the first column."""
    found = Region(
        (Condition(0, 2.0, None), Condition(1, 0.5, 1.5)), None, False, 11, expected,
        11 - expected, (7.0, 11.0), p_value, tuple(range(11)),
    )  # fmt: skip
    return found._replace(**changes)


def answers(**changes):
    """Nine rows at least, twelve flagged, one region, one column of three."""
    score = np.linspace(1, 0, N)
    columns = (
        ColumnTest(0, "Kolmogorov-Smirnov", 0.4, 0.001, (0.0, 1.0, 2.0), (1.0, 2.0, 3.0)),
        ColumnTest(1, "Kolmogorov-Smirnov", 0.1, 0.4, (0.0, 1.0, 2.0), (0.0, 1.0, 2.0)),
    )
    p = np.where(np.arange(N) < 12, 1e-4, 0.6)
    return Answers(AtLeast(9, 0), score, score, p, (region(),), columns)._replace(**changes)


@pytest.fixture(scope="module")
def base():
    """A result whose numbers the tests set."""
    rng = np.random.default_rng(0)
    names = ("energy", "angle", "time of day")
    samples = [dict(zip(names, rng.normal(size=(3, n)), strict=True)) for n in (300, N)]
    result = sparker.test(*samples, statistic=sparker.statistics.Shifts(), n_toys=3, explain=False)
    return dataclasses.replace(
        result, p_value=1 / 300, above=0, n_toys=299, n_toys_asked=299, component_tests=FAMILIES,
        best_component_test=1, p_by_family=np.array([0.1, 1 / 300]), answers=answers(), notes=(),
        warnings=(),
    )  # fmt: skip


def results(base):
    """A result of every kind, by name."""

    def other(**changes):
        return dataclasses.replace(base, **changes)

    unlisted = answers(row_p_values=None, regions=(region(None, interval=None),))
    weak = answers(regions=(region(0.3),))
    return {
        "significant": base,
        "significant at a level that was given": other(level=Level.of(0.01)),
        "not significant": other(p_value=0.31, above=92, answers=weak),
        "not significant, stopped early": other(p_value=0.6, n_toys=50, answers=weak),
        "a region that is significant alone": other(
            p_value=0.31, answers=answers(regions=(region(1e-5),))
        ),
        "too few toys": other(p_value=0.1, n_toys=9, n_toys_asked=9, answers=weak),
        "too few labellings": other(
            p_value=0.1, n_toys=9, n_toys_asked=9, n_labellings=10, answers=None
        ),
        "no region is significant": other(answers=weak),
        "one family": other(component_tests=FAMILIES[1:], best_component_test=0),
        "no answers": other(answers=None),
        "groups": other(answers=unlisted),
        "no bound, nothing flagged": other(
            answers=answers(at_least=None, row_p_values=np.ones(N), columns=())
        ),
        "weights, expected count, deficit": other(
            expected=60.0,
            reference_weights=np.linspace(1, 2, len(base.reference_plane)),
            answers=answers(
                at_least=AtLeast(0, 14),
                regions=(region(lack=True, n_data=2, expected=21.4, interval=(-28.0, -12.0)),),
            ),
        ),
        "nothing expected there": other(answers=answers(regions=(region(expected=0.0),))),
        "nuisance parameters": other(
            nuisances=(Pull("energy scale", 0.8, 0.35, 1.0), Pull("norm", 0.1, 0.98, 0.05))
        ),
        "warnings, notes, toys that failed": other(
            warnings=(
                Caution("order", "energy falls along the data rows"),
                Caution("unseen values", "3 data rows have a value the reference lacks"),
            ),
            notes=("time of day is constant and not used",),
            n_failed=2,
        ),
        "one of several samples": other(level=Level(0.1, given=True, by_itself=True)),
    }


def said(result):
    """All that text.py says of a result."""
    return {"summary": text.summary(result).splitlines(), "next": text.next_steps(result)}


def test_every_kind_of_result_has_its_reviewed_text(base):
    expected = json.loads(GOLDEN.read_text())
    assert {name: said(one) for name, one in results(base).items()} == expected


def test_lines_are_short_and_no_phrase_is_foreign(base):
    for one in results(base).values():
        lines = said(one)
        assert max(map(len, lines["summary"])) <= text.WIDTH
        assert not [*found("\n".join([*lines["summary"], *lines["next"]]))]


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("p_value", [0.003, 0.03, 0.12, 0.5])
def test_every_answer_agrees_with_the_decision(base, alpha, p_value):
    regions = (region(0.003), region(0.03), region(0.12))
    result = dataclasses.replace(
        base, p_value=p_value, level=Level.of(alpha), answers=answers(regions=regions)
    )
    significant = p_value <= alpha
    assert result.decision == (
        alpha, True, "significant difference" if significant else "no significant difference"
    )  # fmt: skip
    level = alpha if significant else 0.001
    plain = result.to_dict()
    assert plain["decision"]["outcome"] == result.decision.outcome
    assert result.at_least == plain["how_many"]["at_least"] == 9 * significant
    assert len(result.rows(fdr=0.2)) == len(plain["rows"]["flagged"]) == 12 * significant
    expected = [one.p_value <= level for one in regions]
    assert [one["significant"] for one in plain["regions"]] == expected
    assert result.regions()["significant"].tolist() == expected
    assert result.columns()["significant"].tolist() == [
        one["significant"] for one in plain["columns_alone"]
    ]
    lines = result.summary().splitlines()
    assert sum(line.startswith("Where") for line in lines) == sum(expected)
    assert any(line.startswith("Rows") for line in lines) == significant


def test_the_level_is_kept_and_can_be_decided_anew(base, tmp_path):
    assert base.decision.alpha == DEFAULT_ALPHA
    assert not base.decision.given
    rng = np.random.default_rng(1)
    reference, data = rng.normal(size=(60, 1)), rng.normal(size=(20, 1))
    result = sparker.test(
        reference, data, n_toys=19, statistic=sparker.statistics.Shifts(), alpha=0.2, explain=False
    )
    assert result.decision[:2] == (0.2, True)
    path = tmp_path / "result.sparker"
    result.save(path)
    assert sparker.load(path).decision == result.decision
    with pytest.raises(ValueError, match=r"alpha must be a number between 0 and 1, got 1\.5"):
        sparker.test(reference, data, alpha=1.5)
    with pytest.raises(ValueError, match="alpha"):
        sparker.test_many(reference, [data], alpha=0.1)


def test_a_p_value_stays_on_its_side_of_the_level():
    assert text.p_text(0.0504, 0.05) == "0.0504"
    assert text.p_text(0.05, 0.05) == "0.05"
    assert significance(1 / 300) == pytest.approx(2.713, abs=1e-3)


def pages():
    """Everything that people read before they have a result."""
    root = HERE.parent
    files = [root / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return [*files, *sorted((root / "docs").rglob("*.md"))]


@pytest.mark.unit
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_pages_are_in_the_words_of_the_field(page):
    assert not [*found(page.read_text())]


@pytest.mark.unit
@pytest.mark.parametrize("command", ["", *main.commands])
def test_help_is_in_the_words_of_the_field(command):
    done = CliRunner().invoke(main, [*command.split(), "--help"])
    assert done.exit_code == 0
    assert not [*found(done.output)]


@pytest.mark.unit
def test_messages_are_in_the_words_of_the_field():
    """All strings of the package that are no docstrings."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.words", "src"], cwd=HERE.parent, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stdout == ""


if __name__ == "__main__":
    made = {name: said(one) for name, one in results(base.__wrapped__()).items()}
    GOLDEN.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
