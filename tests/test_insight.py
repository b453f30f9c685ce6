"""What experiments/insight and experiments/dimension compute beside the package; no data needed."""

import json
from functools import partial

import numpy as np
import pytest
from experiments.dimension import run as dimension
from experiments.insight import panels
from experiments.insight import run as insight
from experiments.insight.cases import Case, Rows, Size, mixed
from experiments.insight.numbers import by_width, claim, open_world, strongest
from experiments.power.problems import embedded
from sklearn.metrics import roc_auc_score, roc_curve

import sparker


@pytest.mark.parametrize("digits", [1, 9])  # with ties, and without
def test_open_world_numbers_are_those_of_the_roc_curve(digits):
    rng = np.random.default_rng(0)
    planted = rng.random(400) < 0.2
    scores = np.round(rng.normal(size=400) + 3 * planted, digits)
    found = open_world(scores, planted)
    fpr, tpr, _ = roc_curve(planted, scores, drop_intermediate=False)
    assert found["FPR at 95 % TPR"]["share"] == pytest.approx(fpr[tpr >= 0.95][0])
    assert found["efficiency at 1.1 % FPR"]["share"] == pytest.approx(tpr[fpr <= 0.011][-1])
    assert found["AUC"] == pytest.approx(roc_auc_score(planted, scores), abs=1e-4)
    above = 1 / (1 + np.exp(-scores)) >= 0.95
    assert found["efficiency at 0.95"]["share"] == pytest.approx(above[planted].mean())
    assert found["FPR at 0.95"]["share"] == pytest.approx(above[~planted].mean())


def test_perfect_and_reversed_scores():
    planted = np.arange(100) < 20
    best, worst = (open_world(sign * planted.astype(float), planted) for sign in (9, -9))
    assert (best["FPR at 95 % TPR"]["share"], best["AUC"]) == (0, 1)
    assert best["precision of the top k"]["share"] == best["efficiency at 0.95"]["share"] == 1
    assert (worst["FPR at 95 % TPR"]["share"], worst["AUC"]) == (1, 0)
    assert (
        worst["precision of the top k"]["share"] == worst["efficiency at 1.1 % FPR"]["share"] == 0
    )


def test_experiments_are_disjoint_and_know_who_was_planted():
    nominal = Rows(np.arange(50.0)[:, None], np.arange(50))
    anomalies = Rows(np.arange(100.0, 120)[:, None], np.arange(100, 120))
    case = mixed(nominal, anomalies, Size(30, 15, 0.2), 0, [])
    everyone = np.concatenate([case.of_reference, case.of_data])
    assert len(set(everyone)) == len(everyone) == 45
    np.testing.assert_array_equal(case.planted, case.of_data >= 100)
    assert case.planted.sum() == 3
    assert case.of_reference.max() < 50
    np.testing.assert_array_equal(case.data[:, 0], case.of_data)


@pytest.fixture(scope="module")
def found() -> tuple[Case, sparker.TestResult]:
    """An experiment with a lump of planted rows, all of the same mass and text."""
    rng = np.random.default_rng(0)
    nominal = Rows(rng.normal(size=(900, 3)), rng.uniform(0, 300, size=900))
    anomalies = Rows([0, 4, 0] + 0.1 * rng.normal(size=(40, 3)), np.full(40, 125.0))
    case = mixed(nominal, anomalies, Size(600, 200, 0.1), 0, ["zebra", "stripe", "tiger"])
    return case, sparker.test(case.reference, case.data, n_toys=19)


def test_the_strongest_kernel_claims_the_planted_rows(found):
    case, result = found
    claimed = claim(result, strongest(result))
    assert case.planted[claimed.data].mean() > 0.9
    assert claimed.data[case.planted].mean() > 0.9
    assert claimed.reference.sum() <= 3


def test_the_numbers_by_width_are_those_of_the_scores_at_the_best(found):
    case, result = found
    widths = by_width(result, case.data, case.planted)
    assert len(widths) == len(result.widths)
    expected = open_world(result.data_log_ratio, case.planted)
    assert widths[result.best]["AUC"] == pytest.approx(expected["AUC"], abs=1e-3)
    share = expected["efficiency at 0.95"]["share"]
    assert widths[result.best]["efficiency at 0.95"] == pytest.approx(share, abs=1e-3)


def test_panels_tell_what_planted_rows_have_in_common(found):
    case, result = found
    masses = panels.masses(case, result)
    assert sum(masses["data"]) == 200  # beyond the last edge too
    assert masses["median mass"]["claimed"] == 125
    classes = panels.classes(case, result)
    assert classes["classes"][0]["name"] == "stripe"
    assert set(classes["place of the paper's classes"]) == {"zebra", "tiger"}
    lines = panels.lines(case, result)
    assert all(line["planted"] and line["text"] == "125.0" for line in lines["lines"])
    assert len(lines["lines"]) == panels.N_LINES


def test_the_figure_is_drawn_from_the_result_alone(found, monkeypatch, tmp_path):
    case, _ = found
    of = {
        name: study._replace(make=lambda folder, size, seed: case, quick=Size(600, 200, 0.1))
        for name, study in insight.STUDIES.items()
    }
    monkeypatch.setattr(insight, "STUDIES", of)
    insight.main(["--quick", "--data", str(tmp_path), "--output", str(tmp_path)])
    result = json.loads((tmp_path / "quick.json").read_text())
    assert list(result["data sets"]) == list(of)
    (tmp_path / "quick.png").unlink()
    insight.main(["--quick", "--draw", "--output", str(tmp_path)])
    assert (tmp_path / "quick.png").stat().st_size > 0


@pytest.mark.parametrize("module", [insight, dimension])
def test_a_run_without_data_says_what_is_missing(module, tmp_path):
    with pytest.raises(SystemExit, match="--data DIR is missing"):
        module.main(["--quick", "--output", str(tmp_path)])


def test_components_are_ordered_uncorrelated_and_know_only_nominal_rows():
    rng = np.random.default_rng(0)
    nominal = (rng.normal(size=(500, 6)) @ rng.normal(size=(6, 6))).astype(np.float32)
    first, others, share = dimension.components(nominal, nominal[:50] + 7, 4)
    assert first.shape == (500, 4)
    assert np.all(np.diff(share) < 0)
    assert share.sum() < 1
    covariance = np.cov(first.T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-4)
    same = dimension.components(nominal, np.zeros((3, 6), np.float32), 4)[0]
    np.testing.assert_array_equal(first, same)
    assert np.all(others.std(0) > 0)


def test_baselines_say_the_same_of_experiments_on_a_pool():
    rng = np.random.default_rng(0)
    anomalies = {"anomalies": rng.normal(4, 1, size=(30, 3))}
    nominal = rng.normal(size=(200, 3))
    problem = embedded("", nominal, anomalies, [("anomalies", 0.1)], 120, 40)
    kinds = [(None, 0), (None, 7), ("anomalies 10%", 0)]
    ways = partial(dimension.apart, problem), partial(dimension.on_pool, problem)
    for name, statistic in dimension.METHODS.items():
        if name != dimension.SPARKER:
            one, other = (
                dimension.measured(statistic, problem.basis, draw, kinds) for draw in ways
            )
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
            assert one[2] > one[0]
