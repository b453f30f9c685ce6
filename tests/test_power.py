"""Power studies: what is planted is found as often as it is large, and alpha is kept."""

import json

import numpy as np
import pytest
from scipy.stats import binom, norm

import sparker

SMALL = {
    "n_reference": 300,
    "n_data": 60,
    "config": sparker.FitConfig(n_kernels=3),
    "widths": sparker.WidthConfig(steps=40, n_widths=1, last=0.5),
    "chunk": 30,
    "progress": False,
}


def background(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=(n, 2))


def cluster(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal([1.5, 1.5], 0.05, size=(n, 2))


RNG = np.random.default_rng(0)
POOL, ANOMALIES = background(RNG, 500), cluster(RNG, 100)
LARGE_POOL = background(RNG, 2000)


@pytest.mark.parametrize(
    ("reference", "anomaly"),
    [(POOL, ANOMALIES), (LARGE_POOL, ANOMALIES), (background, ANOMALIES), (POOL, cluster)],
    ids=["shared pool", "large pool", "simulated background", "simulated anomalies"],
)
def test_power_grows_with_the_fraction_and_alpha_is_kept(reference, anomaly):
    study = sparker.power_study(
        reference, anomaly, [0.0, 0.05, 0.3], n_toys=59, n_tests=24, **SMALL
    )
    none, some, many = study.points
    assert none.power * 24 <= binom.isf(1e-4, 24, 0.05)
    assert many.power >= 0.8
    assert many.median_significance == pytest.approx(norm.isf(1 / 60))
    assert many.median_significance > none.median_significance + 1
    assert max(none.power, some.power) <= many.power
    low, high = some.interval
    assert low <= some.power < high
    assert not np.array_equal(none.p_values, some.p_values)


def test_counts_matter_where_they_fluctuate():
    # Anomalies that look like background: only their number can give them away.
    settings = SMALL | {"n_toys": 59, "n_tests": 30}
    counted = sparker.power_study(background, background, [0.8], poisson=True, **settings)
    shape_only = sparker.power_study(background, background, [0.8], **settings)
    assert counted.points[0].power >= 0.7
    assert shape_only.points[0].power < 0.4


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


CHEAP = {"n_reference": 300, "n_data": 60, "statistic": mean_shift, "progress": False}


def test_any_statistic_can_be_studied():
    study = sparker.power_study(
        POOL,
        ANOMALIES + 1,
        [0.0, 0.5],
        n_toys=59,
        n_tests=20,
        **CHEAP,
    )
    assert study.settings["statistic"]["function"].endswith("mean_shift")
    assert study.points[1].power == 1
    assert study.points[0].power < 0.4


def test_a_sample_is_tested_as_a_users_would_be(monkeypatch):
    calls = []

    def record(*arguments, **settings):
        calls.append((arguments, settings, sparker.test(*arguments, **settings)))
        return calls[-1][-1]

    monkeypatch.setattr("sparker.power.test", record)
    options = {"combine": sparker.cauchy, "preprocess": sparker.whiten}
    study = sparker.power_study(
        POOL, ANOMALIES, [0.0, 0.2], n_toys=39, n_tests=3, alpha=0.2, **CHEAP, **options
    )
    assert len(calls) == 6
    found = np.concatenate([point.p_values for point in study.points])
    np.testing.assert_array_equal(found, [result.p_value for *_, result in calls])
    assert {(len(reference), len(data)) for (reference, data), *_ in calls} == {(300, 60)}
    for _, settings, _ in calls:
        assert options.items() <= settings.items()
        assert (settings["n_toys"], settings["expected"]) == (39, None)
    assert len({settings["seed"] for _, settings, _ in calls}) == 6  # toys are not shared
    assert study.settings["combine"] == "cauchy"
    for (reference, data), _, _ in calls:  # no row of the pool is in both
        assert not set(map(tuple, reference)) & set(map(tuple, data))


def test_other_settings_of_the_test_pass_through():
    stopped = sparker.power_study(
        POOL, ANOMALIES, [0.0], n_toys=99, n_tests=10, **CHEAP,
        stop=sparker.Sequential(exceedances=5, table=20),
    )  # fmt: skip
    assert stopped.settings["stop"]["exceedances"] == 5
    high = stopped.points[0].p_values[stopped.points[0].p_values > 0.1]
    assert len(high)
    np.testing.assert_allclose(5 / high, np.round(5 / high))
    simulated = sparker.power_study(
        background, ANOMALIES, [0.0], n_toys=19, n_tests=2, **CHEAP,
        null=sparker.Simulator(background),
    )  # fmt: skip
    assert simulated.settings["null"]["is"] == "Simulator"


def test_it_is_repeatable_and_speaks_json():
    one, other = (
        sparker.power_study(POOL, ANOMALIES, [0.05], n_toys=19, n_tests=5, seed=s, **SMALL)
        for s in (3, 3)
    )
    np.testing.assert_array_equal(one.points[0].p_values, other.points[0].p_values)
    found = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert found["points"][0]["n_tests"] == 5
    assert found["settings"]["n_data"] == 60
    assert "power at alpha = 0.05" in one.summary()
    assert "19 toys a test" in one.summary()
    assert "of 5 tests" in one.summary()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0.01}, "for alpha = 0.01 calibrate with at least 99"),
        ({"alpha": 0}, "alpha must lie between 0 and 1"),
        ({"alpha": "0.1"}, "alpha must lie between 0 and 1, got '0.1'"),
        ({"fractions": [True]}, "fractions must lie between 0 and 1"),
        ({"n_tests": True}, "n_tests must be a whole number"),
        ({"fractions": []}, "fractions must lie between 0 and 1"),
        ({"fractions": [1.5]}, "fractions must lie between 0 and 1"),
        ({"n_reference": 450}, "reference has 500 rows; samples with n_reference"),
        ({"n_tests": 0}, "n_tests must be a whole number"),
        ({"groups": (np.zeros(300), np.ones(60))}, "groups does not go with a power study"),
        ({"strata": (np.zeros(300), np.zeros(60))}, "strata does not go with a power study"),
        ({"reference_weights": np.ones(300)}, "reference_weights does not go with a power study"),
        ({"expected": 60.0}, "expected does not go with a power study"),
        ({"store": "toys"}, "store does not go with a power study"),
        ({"null": "resample"}, "null='permutation' uses the same two samples"),
        ({"anomaly": ANOMALIES[:2], "fractions": [0.5]}, "needs .* rows of a pool that has 2"),
        ({"anomaly": np.zeros((5, 3))}, "anomaly has 3 features, reference has 2"),
        ({"anomaly": lambda rng, n: np.zeros((n + 1, 2))}, "asked for .* rows and gave shape"),
    ],
)
def test_what_cannot_be_studied_is_said(change, message):
    arguments = {
        "reference": POOL,
        "anomaly": ANOMALIES,
        "fractions": [0.3],
        "n_toys": 19,
        "n_tests": 3,
        **SMALL,
    }
    with pytest.raises(ValueError, match=message):
        sparker.power_study(**arguments | change)
