"""The settings of a test, checked together, and the test between preparing and judging."""

import dataclasses
import inspect

import numpy as np
import pytest

import sparker
from sparker import config
from sparker.calibration.pvalues import rank
from sparker.detect import prepare
from sparker.statistics.contract import Chunk

pytestmark = pytest.mark.unit

RNG = np.random.default_rng(0)
REFERENCE, DATA = RNG.normal(size=(40, 2)), RNG.normal(size=(10, 2))


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


# Settings.


def calibrate(**settings):
    return sparker.Monitor(REFERENCE, **settings)


def study(**settings):
    return sparker.power_study(REFERENCE, DATA, [0.1], n_reference=20, n_data=10, **settings)


def some_toys(**settings):
    return sparker.run_toys(REFERENCE, DATA, only=[0], store="store", **settings)


def whole(**settings):
    return sparker.test(REFERENCE, DATA, **settings)


@pytest.mark.parametrize("call", [whole, calibrate, study, some_toys])
def test_a_setting_that_is_none_gets_the_nearest_one_told(call):
    with pytest.raises(TypeError, match=r"no setting 'widhts' \(did you mean 'widths'\?\)"):
        call(widhts=None)
    with pytest.raises(TypeError, match=r"'stratum' .*'strata'\?\), 'zzz'; settings are alpha,"):
        call(stratum=None, zzz=1)


def test_all_wrong_values_are_said_at_once():
    wrong = {"n_toys": 0, "seed": -1, "chunk": 0, "combine": "minimum", "preprocess": 3, "stop": 1}
    with pytest.raises(ValueError, match="n_toys must be") as caught:
        sparker.TestConfig(**wrong)
    said = str(caught.value).split("; ")
    assert [text.split(" must")[0] for text in said] == [
        "n_toys", "seed", "chunk", "preprocess", "combine", "stop",
    ]  # fmt: skip
    assert sparker.TestConfig(n_toys=5.0, seed=np.int64(3), chunk=None).n_toys == 5


def test_settings_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        sparker.TestConfig().seed = 1
    assert dataclasses.replace(sparker.TestConfig(), seed=1).seed == 1


def spelt(annotation):
    return getattr(annotation, "__forward_arg__", annotation)


def test_editors_know_the_settings_as_they_are():
    keywords = {name: spelt(hint) for name, hint in config.DecidedKeywords.__annotations__.items()}
    settings = {field.name: spelt(field.type) for field in dataclasses.fields(sparker.TestConfig)}
    assert keywords == settings
    assert not config.TestKeywords.__required_keys__


def test_help_shows_all_settings_with_their_defaults():
    shown = inspect.signature(sparker.test).parameters
    fields = {field.name: field.default for field in dataclasses.fields(sparker.TestConfig)}
    assert list(shown) == ["reference", "data", *fields]
    for name, default in fields.items():
        assert shown[name].default is default
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert f"``{name}``" in sparker.test.__doc__


# Ranking what there is so far.


def experiment_with(**settings):
    return prepare(REFERENCE, DATA, sparker.TestConfig(statistic=mean_shift, **settings))


def filled(experiment, values):
    """A table of so many experiments, whose only column has these values."""
    table = experiment.run([])
    numbers = range(len(values))
    table.add(Chunk(numbers, np.asarray(values, float)[:, None]))
    return table


def test_without_stop_there_is_no_verdict_before_all_toys():
    experiment = experiment_with(n_toys=20)
    values = np.random.default_rng(1).normal(size=21)
    assert experiment.rank(experiment.run([])) is None
    assert experiment.rank(filled(experiment, values[:20])) is None
    ranked = experiment.rank(filled(experiment, values))
    assert ranked.p_value == (1 + np.sum(values[1:] >= values[0])) / 21
    assert ranked.n_toys == 20


def test_toys_beyond_those_asked_for_do_not_count():
    experiment = experiment_with(n_toys=20)
    values = np.random.default_rng(1).normal(size=40)
    ranked = experiment.rank(filled(experiment, values))
    assert ranked.p_value == rank(values[:21, None], sparker.minimum).p_value
    assert len(ranked.score) == 21


def test_with_stop_there_is_a_verdict_as_soon_as_it_is_clear():
    stop = sparker.Sequential(exceedances=3, first=10)
    experiment = experiment_with(n_toys=30, stop=stop)
    low = np.r_[-5.0, np.random.default_rng(1).normal(size=30)]  # the least of all
    assert experiment.rank(experiment.run([])) is None
    assert experiment.rank(filled(experiment, low[:10])) is None  # before the first look
    assert experiment.rank(filled(experiment, low[:11])).p_value == 1
    high = np.r_[5.0, low[1:]]
    assert experiment.rank(filled(experiment, high[:30])) is None
    assert experiment.rank(filled(experiment, high)).p_value == 1 / 31


# All of it.


def test_progress_rises_to_the_end_and_stop_ends_it_early():
    told = []
    settings = {
        "statistic": mean_shift, "n_toys": 200, "chunk": 8,
        "progress": lambda done, total: told.append((done, total)),
    }  # fmt: skip
    sparker.test(REFERENCE, DATA, **settings)
    done = [number for number, _ in told]
    assert done == sorted(set(done))
    assert (done[0], told[-1]) == (0, (201, 201))
    told.clear()
    stopped = sparker.test(REFERENCE, DATA, stop=sparker.Sequential(), **settings)
    assert told[-1][0] < 201
    assert stopped.n_toys in (50, 100)
    assert len(stopped.null_t) == stopped.n_toys


@pytest.mark.parametrize("settings", [{}, {"expected": 9.0}], ids=["shape", "counts"])
def test_parts_made_in_any_order_are_merged_to_the_bits_of_the_test(settings, tmp_path):
    settings |= {"statistic": mean_shift, "n_toys": 20, "chunk": 4}
    parts = {"a": range(15, 21), "b": [7, 0, 3], "c": set(range(1, 15)) - {3, 7}}
    for name, only in parts.items():
        made = sparker.run_toys(REFERENCE, DATA, only=only, store=tmp_path / name, **settings)
        assert made == len(only)
    assert sparker.merge([tmp_path / name for name in parts], tmp_path / "all") == 21
    merged = sparker.test(REFERENCE, DATA, store=tmp_path / "all", **settings)
    alone = whole(**settings)
    assert dataclasses.replace(merged, timings={}) == dataclasses.replace(alone, timings={})


# Data that are reference rows.

WAYS = {
    "alone": {},
    "groups": {"groups": (np.arange(40) // 2, 50 + np.arange(10) // 2)},
    "strata": {"strata": (np.arange(40) % 2, np.arange(10) % 2)},
    "weights": {"reference_weights": np.tile([0.5, 1], 20)},
    "expected": {"expected": 10.0},
}


@pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS.keys())
def test_data_that_are_reference_rows_are_never_tested_in_silence(settings):
    settings = {"statistic": mean_shift, "n_toys": 9, "explain": False, **settings}
    assert sparker.test(REFERENCE, DATA, **settings).warnings == ()
    with pytest.warns(sparker.DataWarning, match="all 10 data rows stand in the reference, too"):
        result = sparker.test(REFERENCE, REFERENCE[:10], **settings)
    assert [one.code for one in result.warnings] == ["shared rows"]
