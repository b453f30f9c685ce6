"""A way to look that fails is named, and ends neither the test nor the other ways."""

import dataclasses

import numpy as np
import pytest

import sparker
from sparker.engine import batch
from sparker.statistics import Edges, Neighbours, Portfolio, Shifts
from sparker.statistics.kernels import KernelStatistic

SETTINGS = {"n_toys": 39, "chunk": 8, "explain": False, "progress": False}
KERNELS = KernelStatistic(
    config=sparker.FitConfig(n_kernels=2),
    widths=sparker.WidthConfig(steps=20, n_widths=3),
)

SHIFT = "mean and variance shift"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lossy(Shifts):
    """Means and spreads, without a number where its function of the experiments' numbers says."""

    lost: object

    def prepare(self, points, transform=None):
        prepared = super().prepare(points, transform)

        def start(seed, chunk):
            evaluate = prepared.start(seed, chunk)

            def values(numbers, batch):
                found = np.array(evaluate(numbers, batch))
                found[[self.lost(number) for number in numbers]] = np.nan
                return found

            return values

        return dataclasses.replace(prepared, start=start)


def samples(shift=0.0):
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 2)), rng.normal([shift, 0], size=(60, 2))


def portfolio(lost):
    return Portfolio(kernels=KERNELS, company=(Neighbours(), Edges(), Lossy(lost=lost)))


def outcome(statistic, shift=2.0, **settings):
    return sparker.test(*samples(shift), statistic=statistic, **(SETTINGS | settings))


@pytest.mark.parametrize(
    ("lost", "where"),
    [
        (
            lambda number: True,
            f"not finite in the data and in 39 of 39 toys: {SHIFT};",
        ),
        (lambda number: number == 0, f"not finite in the data: {SHIFT};"),
        (lambda number: number in (3, 30), f"not finite in 2 of 39 toys: {SHIFT};"),
    ],
    ids=["all", "data", "toys"],
)
def test_a_family_that_is_not_finite_is_named_and_the_others_decide(lost, where, tmp_path):
    result = outcome(portfolio(lost), store=tmp_path)
    assert result.p_value == 1 / 40
    assert result.n_failed == 0
    assert where in " ".join(result.summary().split())
    if lost(0):
        assert result.decided.family != SHIFT
        assert result.p_by_component_test[result.of_family(SHIFT)].tolist() == [
            1,
            1,
            1,
        ]
    result.report(tmp_path / "report.html")
    result.save(tmp_path / "result.sparker")
    again = sparker.load(tmp_path / "result.sparker")
    assert again.notes == result.notes
    assert again.to_dict()["p_value"] == result.p_value
    stored = outcome(portfolio(lost), store=tmp_path)  # nothing is made again, nothing differs
    np.testing.assert_array_equal(stored.null_combined_score, result.null_combined_score)


def test_a_family_that_is_lost_everywhere_decides_nothing():
    without = Portfolio(kernels=KERNELS, company=(Neighbours(), Edges()))
    for shift in (0.0, 0.3):
        lossy = outcome(portfolio(lambda number: True), shift)
        assert lossy.p_value == outcome(without, shift).p_value


def test_stopping_early_goes_on_with_the_other_families():
    stop = sparker.Sequential(exceedances=3, first=10)
    near = outcome(portfolio(lambda number: number % 7 == 0), 0.0, stop=stop)
    assert near.p_value > 0.1
    assert near.n_toys < 39  # it did stop
    far = outcome(portfolio(lambda number: number % 7 == 0), stop=stop)
    assert far.p_value == 1 / 40


@pytest.fixture
def lost_fits(monkeypatch):
    """Fits of the data that do not stay finite."""
    fit_chunks = batch.fit_chunks

    def lossy(*args, **settings):
        for numbers, fit in fit_chunks(*args, **settings):
            is_data = np.asarray(numbers) == 0
            models = fit.models._replace(mu=np.where(is_data[:, None, None, None], np.nan, 1))
            yield numbers, fit._replace(models=models, finite=fit.finite & ~is_data)

    monkeypatch.setattr(batch, "fit_chunks", lossy)


def test_kernels_that_did_not_stay_finite_leave_the_word_to_others(lost_fits, tmp_path):
    result = outcome(Portfolio(kernels=KERNELS), store=tmp_path / "store")
    assert result.p_value == 1 / 40
    assert outcome(Portfolio(kernels=KERNELS), store=tmp_path / "store").p_value == 1 / 40
    assert result.models is None
    assert result.score_counts is None
    assert len(result.widths) == 0
    assert "not finite in the data: kernels" in " ".join(result.summary().split())
    result.report(tmp_path / "report.html")
    sparker.test(
        *samples(2.0), statistic=Portfolio(kernels=KERNELS), **(SETTINGS | {"explain": True})
    )


def test_there_is_an_error_where_no_reading_of_the_data_is_finite(lost_fits):
    with pytest.raises(FloatingPointError, match="the statistic of the data is not finite"):
        outcome(KERNELS)


def test_nothing_is_extrapolated_from_a_reading_that_the_data_do_not_have():
    def lost(number):
        return number == 0

    result = outcome(portfolio(lost), 0.0, n_toys=210)
    with pytest.raises(ValueError, match="the data lie among the toys"):
        result.tail_fit()
