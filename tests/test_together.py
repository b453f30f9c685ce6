"""What goes with what: every cell of the table, in the library and on the command line."""

import itertools
import re

import numpy as np
import pytest
from click.testing import CliRunner

import sparker
from sparker import together
from sparker.cli.main import main
from sparker.engine import batch
from sparker.together import CONFLICTS, FEATURES, FRAMES, NEEDS, problems

pytestmark = pytest.mark.unit

NEEDED = dict(NEEDS.keys())


def id_of(features):
    return ", ".join(sorted(features))


def whole(features):
    """The same, with what they need."""
    more = {NEEDED[feature] for feature in features if feature in NEEDED} - set(features)
    return whole({*features, *more}) if more else set(features)


# The table itself.


@pytest.mark.parametrize("as_options", [False, True])
@pytest.mark.parametrize("both", CONFLICTS, ids=id_of)
def test_a_conflict_is_said_in_both_spellings(both, as_options):
    names = [FEATURES[name].option if as_options else FEATURES[name].argument for name in both]
    (said,) = [text for text in problems(both, as_options=as_options) if "does not go with" in text]
    assert all(name in said for name in names)
    called = both & set(FRAMES)  # then the other one has to go
    other = next(feature for feature in FEATURES if feature in both)
    spelt = FEATURES[other][as_options]
    remedy = f"leave {spelt} out" if called else "leave one of them out"
    assert said.endswith(f", since {CONFLICTS[both]}; {remedy}")
    with pytest.raises(ValueError, match=re.escape(said)):
        together.check(both, as_options=as_options)
    if len(both) > 2:  # only all of them are too many
        for part in itertools.combinations(both, len(both) - 1):
            assert not any(CONFLICTS[both] in text for text in problems(part))


@pytest.mark.parametrize("as_options", [False, True])
@pytest.mark.parametrize("need", NEEDS, ids=id_of)
def test_a_need_is_said_in_both_spellings(need, as_options):
    spelt = [FEATURES[name].option if as_options else FEATURES[name].argument for name in need]
    said = f"{spelt[0]} needs {spelt[1]}: {NEEDS[need]}; give both or none"
    assert said in problems(need[:1], as_options=as_options)
    assert not any(" needs " in text for text in problems(whole(need)))


def test_names_in_the_table_are_features():
    assert set().union(*CONFLICTS, *NEEDS) <= FEATURES.keys()


def test_all_problems_are_said_at_once():
    given = {"groups", "expected", "fdr", "data_weights"}
    found = problems(given)
    assert len(found) == 3
    with pytest.raises(ValueError, match=r"needs reference_weights") as caught:
        together.check(given)
    assert all(text in str(caught.value) for text in found)
    assert together.check({"groups", "strata", "stop"}) is None


FREE = [
    pair for pair in itertools.combinations(FEATURES, 2)
    if not any(both <= whole(pair) for both in CONFLICTS)
]  # fmt: skip


@pytest.mark.parametrize("pair", FREE, ids=id_of)
def test_what_is_not_in_the_table_goes_together(pair):
    assert problems(whole(pair)) == []


# The library.

RNG = np.random.default_rng(0)
REFERENCE, DATA = RNG.normal(size=(40, 2)), RNG.normal(size=(10, 2))
WEIGHTS = np.linspace(1, 2, 40)
SYSTEMATICS = {"systematics": [sparker.Systematic("s", up=WEIGHTS)]}
ARGUMENTS = {
    "groups": {"groups": (np.arange(40), 40 + np.arange(10))},
    "group_rows": {"null": sparker.Permutation(group_rows=2)},
    "strata": {"strata": (np.arange(40) % 2, np.arange(10) % 2)},
    "weights": {"reference_weights": WEIGHTS},
    "data_weights": {"reference_weights": (WEIGHTS, np.linspace(1, 2, 10))},
    "expected": {"expected": 10.0},
    "systematics": SYSTEMATICS,
    "at": {"at": {"s": 1.0}, **SYSTEMATICS},
    "null": {"null": sparker.Permutation()},
    "simulator": {"null": sparker.Simulator(lambda rng, n: rng.normal(size=(n, 2)))},
    "simulator weights": {
        "null": sparker.Simulator(lambda rng, n: rng.normal(size=(n, 2)), weights=WEIGHTS)
    },
    "statistic": {"statistic": sparker.statistics.Frechet()},
    "config": {"config": sparker.FitConfig()},
    "widths": {"widths": sparker.WidthConfig()},
    "embed": {"text": "0", "embed": len},
    "learning embedder": {"text": "0", "embed": "tfidf"},
    "stop": {"stop": sparker.Sequential()},
    "store": {"store": "store"},
    "cluster": {"cluster": object()},
    "row by row": {"groups": (np.arange(40), 40 + np.arange(10))},
}
"""How the library is given a feature; others come with what is called, or only as an option."""


def calibrate(reference, data, **settings):
    return sparker.Monitor(reference, **{**settings, "n_toys": 200})


def study(reference, data, **settings):
    return sparker.power_study(reference, data, [0.1], n_reference=20, n_data=10, **settings)


def some_toys(reference, data, **settings):
    return sparker.run_toys(reference, data, only=[0], **{"store": "store", **settings})


def many(reference, data, **settings):
    return sparker.test_many(reference, {"one": data}, **settings)


def closest(reference, data, **settings):
    settings.pop("n_toys")
    return sparker.closest(data, {"one": reference}, **settings)


CALLS = {
    "monitor": calibrate, "power": study, "some toys": some_toys, "many": many, "closest": closest,
}  # fmt: skip
IN_LIBRARY = [
    both for both in CONFLICTS
    if both <= ARGUMENTS.keys() | CALLS.keys()
    and both != {"simulator", "group_rows"}  # only one scheme is given at a time
    and both != {"many", "some toys"}  # only one of them is called
    and both != {"some toys", "stop"}  # which run_toys leaves to test
]  # fmt: skip


@pytest.fixture
def _no_fits(monkeypatch, tmp_path):
    def train(*arguments, **settings):
        pytest.fail("a fit was made before the error")

    monkeypatch.setattr(batch, "fit_chunk", train)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_no_fits")
@pytest.mark.parametrize("both", IN_LIBRARY, ids=id_of)
def test_the_library_refuses_it_before_any_fit(both, tmp_path):
    call, settings = sparker.test, {"n_toys": 40}
    for feature in both:
        settings |= ARGUMENTS.get(feature, {})
        call = CALLS.get(feature, call)
    with pytest.raises(ValueError, match=re.escape(problems(both)[0])):
        call(REFERENCE, DATA, **settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_no_fits")
def test_the_library_refuses_what_is_of_no_use():
    with pytest.raises(ValueError, match=re.escape(problems({"group_rows"})[0])):
        sparker.test(REFERENCE, DATA, n_toys=40, **ARGUMENTS["group_rows"])


@pytest.mark.usefixtures("_no_fits")
def test_the_library_says_all_of_it_at_once():
    with pytest.raises(ValueError, match="strata does not go with expected") as caught:
        sparker.test(
            REFERENCE, DATA, n_toys=40, **ARGUMENTS["strata"], **ARGUMENTS["expected"],
            **ARGUMENTS["statistic"], **ARGUMENTS["widths"],
        )  # fmt: skip
    assert "another statistic does not go with widths" in str(caught.value)


# The command line.

VALUES = {
    "--annealed": [], "--stop": [], "--tail": [], "--json": [],
    "--null simulator": [], "--groups": ["g"], "--group-rows": [2],
    "--strata": ["s"], "--weights": ["w"], "--data-weights": ["w"], "--expected": [10],
    "--pool": ["p.npy"], "--pool-unweighted": [],
    "--statistic": ["mmd"], "--kernels": [3], "--clip": [2], "--steps": [20],
    "--scheduler": ["tcp://x:1"], "--store": ["s"], "--only": ["0:5"], "--alpha": [0.1],
    "--text": ["t"], "--images": ["i"], "--observables": ["o"], "--report": ["r.html"],
    "--rows": ["r.csv"], "--save": ["s.sparker"], "--embed": ["module:f"], "--embed tfidf": [],
    "--fdr": [0.1], "--reports": ["d"], "several DATA": [],
    "--systematic": ["s=weights:w"], "--normalisation": [0.1], "--at": ["s=1"],
}  # fmt: skip
"""What follows the options of ``sparker test``."""


def option(feature):
    return FEATURES[feature].option


def command(features):
    """What ``sparker test`` says to these options, about files that do not exist."""
    several = "several DATA"
    names = [name for name in map(option, features) if name != several]
    words = [str(word) for name in names for word in (*name.split(), *VALUES[name])]
    data = ["nothing.npy", *["either.npy"] * (several in map(option, features))]
    return CliRunner().invoke(main, ["test", "no.npy", *data, *words])


@pytest.mark.parametrize(
    ("given", "named"),
    [
        *((both, both) for both in CONFLICTS if set(map(option, both)) <= VALUES.keys()),
        *((need[:1], need) for need in NEEDS),
    ],
    ids=id_of,
)
def test_the_command_refuses_it_and_names_the_options(given, named):
    done = command(given)
    assert done.exit_code == 2
    assert " does not go with " in done.stderr or " needs " in done.stderr
    assert all(option(feature) in done.stderr for feature in named)
    assert "nothing.npy" not in done.stderr  # nor was any file looked for


def test_every_option_of_the_table_is_one_of_the_command():
    flags = {flag for parameter in main.commands["test"].params for flag in parameter.opts}
    assert {name.split()[0] for name in VALUES if name != "several DATA"} <= flags
    in_the_table = {option(feature) for feature in set().union(*CONFLICTS, *NEEDS)}
    elsewhere = {"groups of one sample", "--config", "--null", "sparker calibrate", "sparker power"}
    elsewhere |= {"sparker closest", "--anytime"}
    assert in_the_table == VALUES.keys() | elsewhere


def test_options_that_go_together_get_to_the_files():
    done = command(["groups", "strata", "stop"])
    assert done.exit_code == 2
    assert "no.npy" in done.stderr
    own = ["--statistic", "sparker", "--kernels", "3"]  # named, but no other than usual
    done = CliRunner().invoke(main, ["test", "no.npy", "nothing.npy", *own])
    assert "no.npy" in done.stderr


def test_settings_of_a_power_study_are_checked_with_its_own_number_of_toys():
    stop = sparker.Sequential(table=400)
    with pytest.raises(ValueError, match=r"more than the 400 toys that set the scale .* got 300"):
        study(REFERENCE, DATA, stop=stop)
    with pytest.raises(ValueError, match="does not go with a power study"):  # and not the former
        study(REFERENCE, DATA, stop=stop, n_toys=1000, **ARGUMENTS["groups"])
