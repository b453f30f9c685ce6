"""The scikit-learn face: scikit-learn's own checks, and that it says what the test says."""

# ruff: noqa: N803, N806 (scikit-learn's X)

import dataclasses
import functools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_classifier_data_not_an_array,
    check_estimators_dtypes,
    check_fit2d_1feature,
    parametrize_with_checks,
)

import sparker
from sparker.estimator import SparKer

N_REFERENCE, N_DATA, N_PLANTED = 400, 80, 10
# Every shape compiles a program of its own: small ones for the checks, one for all the rest.
SMALL = {"n_kernels": 1, "n_widths": 2, "n_toys": 1, "steps": 10}
SETTINGS = {"n_kernels": 2, "n_widths": 3, "n_toys": 19, "steps": 60, "random_state": 0}


NO_NUMBERS_FOR_CLASSES = dict.fromkeys(
    [
        "check_classifiers_classes",
        "check_classifier_data_not_an_array",
        "check_estimators_dtypes",
        "check_fit2d_1feature",
    ],
    "its classes are not 0 and 1, and nothing says which of them are the reference rows",
)


@parametrize_with_checks(
    [SparKer(**SMALL)], expected_failed_checks=lambda estimator: NO_NUMBERS_FOR_CLASSES
)
def test_scikit_learn_checks(estimator, check, monkeypatch):
    if check.func.__name__ != "check_classifiers_train":  # the only one that wants them to be good
        # Fits that do not scan compile in half the time.
        annealing = sparker.presets.annealed()["widths"].annealing
        widths = functools.partial(sparker.WidthConfig, annealing=annealing)
        monkeypatch.setattr("sparker.estimator.WidthConfig", widths)
    check(estimator)


@pytest.mark.parametrize(
    "check", [check_classifier_data_not_an_array, check_estimators_dtypes, check_fit2d_1feature]
)
def test_scikit_learn_checks_with_classes_of_other_names(check):
    check("SparKer", SparKer(**SMALL, reference=1))


def planted():
    """Normal rows, labelled 0 and 1; the last ones sit on one spot among the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_REFERENCE + N_DATA, 2))
    X[-N_PLANTED:] = [2.5, -2.0] + 0.05 * rng.normal(size=(N_PLANTED, 2))
    return X, np.repeat([0, 1], [N_REFERENCE, N_DATA])


@pytest.fixture(scope="module")
def fitted():
    return SparKer(**SETTINGS).fit(*planted())


def test_planted_anomaly_is_found(fitted):
    X, _ = planted()
    assert fitted.p_value_ == 1 / 20
    most = np.argsort(-fitted.decision_function(X))[:N_PLANTED]
    assert set(most) == set(range(len(X) - N_PLANTED, len(X)))
    assert set(np.argsort(fitted.score_samples(X))[:N_PLANTED]) == set(most)  # low is anomalous
    assert np.all(fitted.predict(X[-N_PLANTED:]) == 1)


def test_no_anomaly_is_not_found():
    X = np.random.default_rng(1).normal(size=(N_REFERENCE + N_DATA, 2))
    model = SparKer(**SETTINGS).fit(X, planted()[1])
    assert model.p_value_ == model.result_.p_value > 0.1
    assert model.p_value_ > model.result_.p_by_component_test.min()  # it pays for the choice


def test_is_the_test(fitted):
    X, y = planted()
    order = np.random.default_rng(0).permutation(len(X))  # the classes need not come in blocks
    X, y = X[order], y[order]
    model = clone(fitted).fit(X, y)
    expected = sparker.test(
        X[y == 0],
        X[y == 1],
        n_toys=19,
        seed=model.result_.seed,
        config=sparker.FitConfig(n_kernels=2),
        widths=sparker.WidthConfig(steps=60, n_widths=3),
    )
    assert model.result_ == dataclasses.replace(expected, timings=model.result_.timings)
    assert model.p_value_ == expected.p_value


def test_every_setting_reaches_the_test(fitted, monkeypatch):
    given = {}

    def record(reference, data, **settings):
        given.update(settings)
        return fitted.result_

    monkeypatch.setattr("sparker.detect.test", record)
    kernels = {
        "n_kernels": 3,
        "clip": 4.0,
        "l2": 0.1,
        "location_rate": 0.02,
        "amplitude_rate": 0.1,
    }
    widths = {"steps": 30, "n_widths": 3}
    others = {
        "preprocess": sparker.whiten,
        "combine": sparker.cauchy,
        "null": sparker.Simulator(np.zeros((9, 2))),
        "n_toys": 4,
        "missing": "drop",
    }
    model = SparKer(**kernels, **widths, **others, reference=0, random_state=3)
    assert set(model.get_params()) == {*kernels, *widths, *others, "reference", "random_state"}
    model.fit(*planted())
    assert given["config"] == sparker.FitConfig(**kernels)
    assert given["widths"] == sparker.WidthConfig(**widths)
    assert {name: given[name] for name in others} == others
    assert given["seed"] == np.random.RandomState(3).randint(2**31 - 1)


def test_defaults_are_those_of_the_test():
    model, config, widths = SparKer(), sparker.FitConfig(), sparker.WidthConfig()
    for name in ("n_kernels", "clip", "l2", "location_rate", "amplitude_rate"):
        assert getattr(model, name) == getattr(config, name)
    assert (model.steps, model.n_widths) == (widths.steps, widths.n_widths)
    assert model.preprocess is sparker.decorrelate
    assert model.combine is sparker.harmonic
    settings = sparker.TestConfig()
    assert (
        (model.n_toys, model.missing) == (settings.n_toys, settings.missing) == (300, "indicator")
    )


def test_random_state_decides(fitted):
    X, y = planted()
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.result_.null_t, fitted.result_.null_t)
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    other = clone(fitted).set_params(random_state=1).fit(X, y)
    assert np.any(other.result_.null_t != fitted.result_.null_t)
    drawn = SparKer(**{**SETTINGS, "random_state": np.random.RandomState(0)})
    seeds = [drawn.fit(X, y).result_.seed for _ in range(2)]
    assert seeds[0] == fitted.result_.seed != seeds[1]


def test_proba_and_predict_follow_the_decision(fitted):
    X, _ = planted()
    f = fitted.decision_function(X)
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], expit(f), rtol=1e-12)
    np.testing.assert_allclose(proba.sum(1), 1, rtol=1e-12)
    np.testing.assert_array_equal(fitted.predict(X), f > 0)
    np.testing.assert_allclose(fitted.score_samples(X), -f - fitted.offset_, atol=1e-12)
    assert np.any(f > 0)
    assert np.mean(f < 0) > 0.5  # most rows are reference
    ratio = np.exp(f[:N_REFERENCE])
    assert ratio.mean() == pytest.approx(1)


def test_components_sum_to_the_score(fitted):
    X, _ = planted()
    parts = fitted.transform(X)
    assert parts.shape == (len(X), 2)
    np.testing.assert_allclose(parts.sum(1), -fitted.score_samples(X), rtol=1e-12)
    np.testing.assert_allclose(
        -fitted.score_samples(X[-N_DATA:]), fitted.result_.data_log_ratio, rtol=1e-6
    )
    assert fitted.get_feature_names_out().tolist() == ["sparker0", "sparker1"]


def test_pipelines():
    X, y = planted()
    scaled = make_pipeline(StandardScaler(), SparKer(**SETTINGS)).fit(1e3 * X + 5, y)
    assert scaled[-1].p_value_ == 1 / 20
    assert np.all(scaled.predict(1e3 * X[-N_PLANTED:] + 5) == 1)
    before = make_pipeline(SparKer(**SETTINGS), LogisticRegression(class_weight="balanced"))
    before.fit(X, y)
    assert before[-1].coef_.shape == (1, 2)
    assert np.all(before.predict(X[-N_PLANTED:]) == 1)


def test_searches_over_settings(fitted):
    X, y = planted()
    everything = np.arange(len(X))  # all rows in one fold: a shape that is compiled already
    search = GridSearchCV(
        clone(fitted),
        {"clip": [0.5, 4.0, 2.0]},
        scoring=lambda model, X, y: -model.score_samples(X).min(),
        cv=[(everything, everything)],
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_ == {"clip": 4.0}
    assert np.all(search.cv_results_["mean_test_score"] <= [0.5, 4.0, 2.0])
    assert search.best_estimator_.p_value_ == 1 / 20


def test_clone_and_set_params(fitted):
    scheme = sparker.Permutation(group_rows=3)
    copy = clone(fitted).set_params(n_kernels=3, null=scheme, preprocess=sparker.whiten)
    assert (copy.n_kernels, copy.null, copy.preprocess) == (3, scheme, sparker.whiten)
    assert clone(copy).get_params() == copy.get_params()
    assert not hasattr(copy, "result_")
    assert fitted.n_kernels == 2
    with pytest.raises(NotFittedError):
        copy.get_feature_names_out()


def test_pickles_whole(fitted):
    X, _ = planted()
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.result_ == fitted.result_
    np.testing.assert_array_equal(copy.decision_function(X), fitted.decision_function(X))


def test_tables_keep_their_names(fitted):
    X, y = planted()
    table = pd.DataFrame(X, columns=["mass", "charge"])
    model = clone(fitted).set_output(transform="pandas").fit(table, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["mass", "charge"]
    assert model.result_.names == ("mass", "charge")
    assert model.p_value_ == fitted.p_value_
    assert model.transform(table).columns.tolist() == ["sparker0", "sparker1"]
    np.testing.assert_array_equal(model.decision_function(table), fitted.decision_function(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[["charge", "mass"]])
    assert fitted.result_.names == ()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_any_kind(fitted, library):
    X, y = planted()
    rng = np.random.default_rng(0)
    table = pd.DataFrame(X, columns=["mass", "charge"])
    table["colour"] = np.where(y & (X[:, 0] > 2.4), "red", rng.choice(["blue", "green"], len(X)))
    table.loc[rng.random(len(X)) < 0.1, "charge"] = np.nan
    make = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
    given = make[library](table)
    model = clone(fitted).fit(given, y)
    assert model.result_.names == ("mass", "charge", "colour")
    assert model.result_.column_labels == [
        *(
            "mass",
            "charge",
            "charge is missing",
            "colour is green",
            "colour is blue",
            "colour is red",
        )
    ]
    f = model.decision_function(given)
    np.testing.assert_allclose(f[y == 1] + model.offset_, model.result_.data_log_ratio, rtol=1e-4)
    assert len(set(np.argsort(-f)[:N_PLANTED]) & set(range(len(X) - N_PLANTED, len(X)))) >= 5
    dropped = clone(fitted).set_params(missing="drop").fit(given, y)
    assert len(dropped.result_.data) < N_DATA
    assert len(dropped.predict(given)) == len(X)  # nothing is left out of predictions
    with pytest.raises(ValueError, match=r"(?i)missing|feature"):
        model.predict(make[library](table[["mass", "charge"]]))
    with pytest.raises(ValueError, match="charge: values are missing"):
        clone(fitted).set_params(missing="error").fit(given, y)


@pytest.mark.parametrize(
    ("labels", "reference"),
    [
        ((False, True), None),
        ((0.0, 1.0), None),
        (("known", "new"), "known"),
        (("new", "known"), "new"),  # the later in the alphabet may be the reference
        ((1, -1), 1),
        ((1, 0), 1),
    ],
)
def test_the_label_of_the_reference_is_known_or_named(fitted, labels, reference):
    X, y = planted()
    model = clone(fitted).set_params(reference=reference).fit(X, np.array(labels)[y])
    assert model.classes_.tolist() == list(labels)
    assert model.predict(X[-1:]).tolist() == [labels[1]]
    np.testing.assert_array_equal(model.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(20), "one class only"),
        (np.arange(20) % 3, "Only binary .* type of the target is multiclass"),
        (np.linspace(0, 1, 20), "Unknown label type: "),
        (np.arange(20) == 0, "data has 1 row, fewer than the 2 kernels"),
        (
            np.repeat(["a", "b"], 10),
            "classes a and b, .* reference rows: name .* by reference=, or",
        ),
        (np.repeat([1, 2], 10), "y has the classes 1 and 2, and it must be known which"),
        (np.repeat(["0", "1"], 10), "y has the classes 0 and 1, and it must be known which"),
        (np.repeat([0, 1], 9), "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_labels_that_make_no_test(y, message, make):
    X = make(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(ValueError, match=message):
        SparKer(**SMALL | {"n_kernels": 2}).fit(X, y)


def test_a_reference_that_is_no_class():
    model = SparKer(**SMALL, reference="c")
    with pytest.raises(ValueError, match="reference is 'c', but y has a and b"):
        model.fit(np.zeros((20, 2)), np.repeat(["a", "b"], 10))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("n_kernels", 0), ("clip", -1.0), ("steps", 1), ("n_toys", 0), ("null", "none")],
)
def test_settings_are_checked_by_fit(setting, value):
    model = SparKer(**{**SMALL, setting: value})  # and not by the constructor
    with pytest.raises(ValueError, match=setting):
        model.fit(*planted())
