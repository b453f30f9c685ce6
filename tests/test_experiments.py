"""The experiments' own mathematics, and that what they wrote is whole and stands in the table."""

import importlib
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from experiments import record
from experiments.annealing.problem import without_fluctuations
from experiments.answers import tables as answers_tables
from experiments.anytime import streams
from experiments.anytime import tables as anytime_tables
from experiments.columns import tables as columns_tables
from experiments.competition.run import n_places
from experiments.derivatives.run import MODEL, derivatives, sign_changes
from experiments.derivatives.run import main as run_derivatives
from experiments.embed import tables as embed_tables
from experiments.intervals import page as intervals_page
from experiments.kernels import tables as kernels_tables
from experiments.local_or_relu import run as local_or_relu
from experiments.losses import tables as losses_tables
from experiments.losses.extreme_tail import Readings, gain
from experiments.losses.training import Training, statistics, trained
from experiments.losses.variants import ours
from experiments.many import tables as many_tables
from experiments.power import tables
from experiments.reliability import tables as reliability_tables
from experiments.reliability.attack import ATTACKS, GROUPS
from experiments.softmax.run import SMALLEST, moran, moran_if_uniform
from experiments.systematics import tables as systematics_tables

import sparker

FOLDERS = (
    "losses",
    "softmax",
    "annealing",
    "competition",
    "derivatives",
    "trajectories",
    "local_or_relu",
    "dimension",
    "insight",
)
HERE = Path(record.__file__).parent
RESULTS = [HERE / name / "result.json" for name in FOLDERS]
SUMMARIES = ("means", "peers", "kinds", "twelve", "toys", "stopping")
COMPETITIONS = {"softmax": reference.softmax, "independent": reference.independent}


def test_moran_spacing_is_the_sum_over_neighbours():
    rng = np.random.default_rng(0)
    mu = rng.uniform(-1, 4, size=(3, 6))
    low, high = np.zeros(3), np.full(3, 3.0)
    for row, between, within in zip(mu, moran(mu), moran(mu, low, high), strict=True):
        ordered = sorted(row)
        span = ordered[-1] - ordered[0]
        assert between == pytest.approx(
            -sum(np.log(max((b - a) / span, SMALLEST)) for a, b in pairwise(ordered))
        )
        inside = [0.0, *(min(max(x, 0.0), 3.0) for x in ordered), 3.0]
        assert within == pytest.approx(
            -sum(np.log(max((b - a) / 3.0, SMALLEST)) for a, b in pairwise(inside))
        )


def test_uniform_kernels_have_the_expected_moran_spacing():
    mu = np.random.default_rng(0).uniform(size=(20_000, 5))
    ends = np.zeros(len(mu)), np.ones(len(mu))
    # With both ends given, five kernels make six spacings; without, the inner three make four.
    for values, n in ((moran(mu, *ends), 6), (moran(mu), 4)):
        error = values.std() / len(values) ** 0.5
        assert values.mean() == pytest.approx(moran_if_uniform(n), abs=4 * error)


@pytest.mark.parametrize("name", COMPETITIONS)
@pytest.mark.usefixtures("float64")
def test_derivatives_are_those_of_the_model(name):
    x = np.linspace(-4, 4, 33)

    def f(mu, point):
        model = reference.Model(mu, jnp.asarray(MODEL.a), float(MODEL.sigma))
        return reference.log_ratio(model, point, COMPETITIONS[name], jnp)

    of_mu = jax.vmap(jax.grad(f), (None, 0))(jnp.asarray(MODEL.mu), jnp.asarray(x[:, None]))
    ours = derivatives(MODEL, x, getattr(sparker.engine, name))
    np.testing.assert_allclose(ours, of_mu[..., 0], atol=1e-12)


def test_sign_changes_are_found_between_and_on_points():
    x = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(sign_changes(x, x - 0.25), [0.25])
    np.testing.assert_allclose(sign_changes(x, x), [0.0])


def test_the_gain_in_the_neyman_pearson_loss_is_the_statistic():
    rng = np.random.default_rng(0)
    sample = sparker.engine.two_sample(rng.normal(size=(300, 1)), rng.normal(0.3, 1, size=(60, 1)))
    batch = sparker.engine.stack([sample, sample])
    for competition in (sparker.engine.softmax, sparker.engine.independent):
        config = sparker.FitConfig(n_kernels=3, competition=competition)
        plan = sparker.engine.schedule(4.0, 0.2, steps=100, n_widths=3)
        fits = sparker.engine.fit_many(0, batch, plan, config)
        with jax.enable_x64(True):
            t = gain(fits.models, batch, sparker.engine.neyman_pearson, competition)
        np.testing.assert_allclose(t, fits.t, rtol=1e-4)
        assert np.all(fits.t > 0)


def test_kernels_at_one_place_are_counted_once():
    assert n_places(np.array([3.0, -1.0, 3.05, 3.1, 8.0])) == 3


def test_without_fluctuations_only_the_anomaly_differs():
    sample = without_fluctuations([-10.0], 200)
    differs = np.flatnonzero(sample.data_weight != sample.reference_weight)
    assert sample.points[differs].tolist() == [[-10.0]]
    assert sample.points[:-1].mean() == pytest.approx(0, abs=1e-12)
    assert sample.points[:-1].std() == pytest.approx(10**0.5, rel=0.01)


def test_the_true_log_ratio_integrates_to_the_signal():
    rng = np.random.default_rng(0)
    x = local_or_relu.BACKGROUND * rng.normal(size=(400_000, 2))
    excess = np.mean(np.expm1(local_or_relu.truth(x)))
    assert excess == pytest.approx(2 * local_or_relu.FRACTION, rel=0.05)


def test_a_quick_run_leaves_a_result_and_a_figure_and_nothing_else(tmp_path):
    run_derivatives(["--quick", "--output", str(tmp_path)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quick.json", "quick.png"]
    written = (tmp_path / "quick.json").read_text()
    result = json.loads(written)
    assert result["command"] == "python -m experiments.derivatives.run --quick"
    assert record.as_text(result) == written
    (tmp_path / "quick.png").unlink()
    run_derivatives(["--quick", "--draw", "--output", str(tmp_path)])
    assert (tmp_path / "quick.json").read_text() == written
    assert (tmp_path / "quick.png").stat().st_size > 0


@pytest.mark.parametrize("name", FOLDERS)
def test_every_experiment_says_what_it_does_and_how_it_differs(name):
    module = importlib.import_module(f"experiments.{name}.run")
    assert "paper" in module.__doc__
    assert "Here:" in module.__doc__
    assert f"python -m experiments.{name}.run" in module.__doc__


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.parent.name)
def test_results_are_whole(path):
    result = json.loads(path.read_text())
    command = f"python -m experiments.{path.parent.name}.run"
    assert result["command"] in (command, f"{command} --data DIR")
    assert {"settings", "hardware", "versions", "seconds", "deviation", "row"} <= set(result)
    assert set(result["row"]) == set(record.COLUMNS)
    figure = path.with_name("figure.png")
    assert figure.stat().st_size < 200_000


def test_the_table_holds_every_result_as_it_was_measured():
    text = (HERE / "README.md").read_text()
    for row in record.table():
        assert row in text


def test_the_pages_on_power_hold_the_numbers_measured():
    text = tables.README.read_text()
    problems = json.loads((HERE / "power" / "result.json").read_text())["problems"]
    product = json.loads(tables.PRODUCT.read_text())
    assert tables.page(text, problems, product) == text
    marked = []
    for page in (tables.PAGE, tables.PEERS):
        text = page.read_text()
        assert tables.summary(text, problems, product) == text
        marked += [name for name in SUMMARIES if tables.BEGIN.format(name) in text]
    assert sorted(marked) == sorted(SUMMARIES)
    text = kernels_tables.README.read_text()
    assert kernels_tables.page(text, json.loads(kernels_tables.RESULT.read_text())) == text


def test_the_tables_on_intervals_hold_the_numbers_measured():
    text = intervals_page.README.read_text()
    assert intervals_page.page(text, intervals_page.TABLES) == text
    text = intervals_page.PAGE.read_text()
    assert intervals_page.page(text, intervals_page.SUMMARY) == text


def test_the_page_on_reliability_holds_what_was_counted():
    for path in reliability_tables.PAGES:
        assert reliability_tables.page(path) == path.read_text()
    counted = json.loads(reliability_tables.RESULT.read_text())["groups"]
    assert list(counted) == [name for name in GROUPS if name in counted]
    for group, found in counted.items():  # those there are, in their order
        names = [one["name"] for one in found["attacks"]]
        assert names == [one.name for one in ATTACKS if one.group == group and one.name in names]
        assert all(one["tried"] - one["handled"] == len(one["failed"]) for one in found["attacks"])


def test_the_page_on_tables_holds_the_numbers_measured():
    for path in columns_tables.PAGES:
        assert columns_tables.page(path) == path.read_text()


def test_the_pages_on_embedders_hold_the_numbers_measured():
    for path in embed_tables.PAGES:
        assert embed_tables.page(path) == path.read_text()


def test_the_page_on_streams_holds_the_numbers_measured():
    for path in anytime_tables.PAGES:
        assert anytime_tables.page(path) == path.read_text()


def test_rows_of_a_stream_are_anomalous_from_the_change_on():
    """Far too many at +3 after it, and none more than usual before."""
    rows = list(streams.batches("outlying", 0.05, 0))
    high = np.array([np.mean(batch[:, 0] > 2.5) for batch in rows])
    assert len(rows) == streams.HORIZON
    assert high[: streams.QUIET].mean() < 0.015
    assert high[streams.QUIET :].mean() > 0.03
    again = list(streams.batches("outlying", 0.05, 0))
    np.testing.assert_array_equal(rows[-1], again[-1])


def test_the_page_on_answers_holds_the_numbers_measured():
    samples = answers_tables.Samples()
    for path in answers_tables.PAGES:
        assert answers_tables.page(path, samples) == path.read_text()


def test_the_page_on_many_samples_holds_the_numbers_measured():
    for path in many_tables.PAGES:
        text = path.read_text()
        assert many_tables.page(path) == text
        assert "| means | 3 of 10 |" in text


def test_the_page_on_systematics_holds_the_numbers_measured():
    for path in systematics_tables.PAGES:
        assert systematics_tables.page(path) == path.read_text()


def test_the_page_on_reproduction_holds_the_numbers_measured():
    text = losses_tables.PAGE.read_text()
    powers = json.loads(losses_tables.RESULT.read_text())["power"]
    assert losses_tables.page(text, powers) == text
    assert "five signal events in every sample, 2,000 others | " in text


def test_a_plain_loop_trains_as_the_engine_does():
    drawn, setting = Readings(quick=True), ours(quick=True)
    plan = replace(setting.widths, steps=200).schedule(drawn.problem.basis)
    samples = sparker.engine.TwoSample(*(part[:20] for part in drawn.samples))
    engine = sparker.engine.fit_many(0, samples, plan, setting.config).statistics[..., 0]
    plain = statistics(samples, plan, Training(), *trained(samples, plan, Training()))
    # They start on other points, which decides where narrow kernels end; wide ones forget it.
    np.testing.assert_allclose(plain.mean(0)[:4], engine.mean(0)[:4], rtol=0.15)
