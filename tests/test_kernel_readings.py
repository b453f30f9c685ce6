"""Other questions to trained kernels: their formulas, and that labellings are treated alike."""

import json

import numpy as np
import pytest
from experiments.kernels import readings, run, summary, tables
from experiments.kernels.readings import Labels
from scipy.optimize import minimize

import sparker
from sparker.engine import fit, two_sample
from sparker.engine.widths import stairs


@pytest.fixture(scope="module")
def fitted():
    """Three dimensions, two widths, and a cluster."""
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(300, 3)), rng.normal(size=(80, 3))
    data[:8] = [2, 0, 1] + 0.2 * rng.normal(size=(8, 3))
    sample = two_sample(reference, data)
    plan = stairs(3.0, 0.7, steps=40, n_widths=2)
    found = fit(0, sample, plan, sparker.FitConfig(dtype=np.float64))
    labels = Labels(sample.data_weight > 0, float(sample.reference_weight.max()))
    return sample.points, found, plan.widths, labels


def asked(fitted):
    points, found, widths, labels = fitted
    return readings.all_readings(points, found.models.mu, found.models.a, widths, labels)


def test_the_statistic_is_that_of_the_fit(fitted):
    ours = asked(fitted)
    np.testing.assert_allclose(ours["t"], fitted[1].t, rtol=1e-5)
    np.testing.assert_allclose(ours["t of all widths"], [fitted[1].t.sum()], rtol=1e-5)


def test_newton_finds_the_best_amplitudes_within_the_clip(fitted):
    points, found, widths, labels = fitted
    phi = readings.shared(readings.kernels(points, found.models.mu, widths))
    for clip in (0.5, readings.CLIP):
        ours = readings.best_amplitudes(phi, found.models.a, labels, clip)
        assert np.abs(ours).max() <= clip
        for phi_w, a_w in zip(phi, ours, strict=True):
            best = minimize(
                lambda a, phi_w=phi_w: -float(readings.gained(a @ phi_w, labels)),
                np.zeros(len(a_w)),
                bounds=[(-clip, clip)] * len(a_w),
            )
            reached = float(readings.gained(a_w @ phi_w, labels))
            assert reached == pytest.approx(-best.fun, rel=1e-3, abs=0.01)
    assert np.all(asked(fitted)["Newton"] >= asked(fitted)["t"] - 1e-6)


def test_the_variance_is_that_of_exchanged_labels(fitted):
    points, found, widths, labels = fitted
    phi = readings.shared(readings.kernels(points, found.models.mu, widths))[1]
    rng = np.random.default_rng(1)
    exchanged = np.stack([phi @ rng.permutation(labels.signs) for _ in range(4000)])
    _, alone = readings.chi_squared(phi[None], labels)
    spread = exchanged.std(0)
    seen = spread > 0.05  # under the others there is hardly a row
    assert seen.sum() >= 3
    expected = ((phi @ labels.signs) / spread) ** 2
    np.testing.assert_allclose(alone[0, seen], expected[seen], rtol=0.1)


def test_kernels_take_the_shape_of_their_data():
    rng = np.random.default_rng(2)
    stretch = np.array([3.0, 0.3])
    points = np.concatenate([rng.normal(size=(2000, 2)) * stretch, rng.normal(size=(100, 2))])
    labels = Labels(np.arange(2100) < 2000, 0.1)
    mu, sigma = np.zeros((1, 1, 2)), np.array([1.0])
    shaped = readings.shaped_kernels(points, mu, sigma, labels)[0, 0]
    along, across = (np.average(points[:, i] ** 2, weights=shaped) for i in range(2))
    assert along > 2 * across
    # With one row there is nothing to take a shape from: nearly round, and of the same volume.
    few = Labels(np.arange(2100) == 0, 0.1)
    round_one = readings.kernels(points, mu, sigma)[0, 0]
    nearly = readings.shaped_kernels(points, mu, sigma, few)[0, 0]
    assert np.corrcoef(nearly, round_one)[0, 1] > 0.8


def test_averages_are_between_mean_and_largest():
    q = np.array([[0.0, 0.0], [10.0, 0.0]])
    expected = 2 * np.log((np.exp(5) + 1) / 2)
    np.testing.assert_allclose(readings.averaged(q), [0, expected])


def test_labellings_are_treated_alike():
    t = np.random.default_rng(0).normal(size=(6, 8, 3))
    turn = np.array([3, 1, 7, 0, 2, 4, 6, 5])
    np.testing.assert_allclose(summary.relative(t)[:, turn], summary.relative(t[:, turn]))
    np.testing.assert_allclose(summary.relative(t + 5), summary.relative(t))
    first = summary.tables(t)[2]
    assert first.shape == (1 + 6 * 7, 3)
    np.testing.assert_array_equal(first[0], summary.relative(t)[2, 0])


def test_a_sample_is_measured_once_and_summed_up(tmp_path, monkeypatch, capsys):
    def draw(rng, n_reference, n_data, n_planted):
        data = rng.normal(size=(60, 2))
        data[:n_planted] += 4
        return rng.normal(size=(200, 2)), data

    monkeypatch.setattr(run, "PLANTED", {"2-D cluster": 8})
    monkeypatch.setattr(run, "problems", lambda folder: {"2-D cluster": draw})
    arguments = ["--data", str(tmp_path), "--keep", str(tmp_path / "kept"), "--samples", "3"]
    run.main(arguments)
    run.main(arguments)
    assert capsys.readouterr().out.count("sample") == 3
    output = tmp_path / "result.json"
    run.main([*arguments, "--summarise", "--output", str(output)])
    result = json.loads(output.read_text())
    now = result["ways"]["trained: t"]
    assert now["alone"]["gain"] == now["in company"]["gain"] == 0
    assert result["n_samples"] == {"2-D cluster": 3}
    assert len(tables.table(result)) == 2 + len(result["ways"])
