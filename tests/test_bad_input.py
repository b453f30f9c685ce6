"""Whatever is wrong with the input is said in one line, before anything is computed."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sparker
from sparker.engine import batch

pytestmark = pytest.mark.unit

N_REFERENCE, N_DATA = 200, 50
RNG = np.random.default_rng(0)
REFERENCE, DATA = RNG.normal(size=(N_REFERENCE, 2)), RNG.normal(size=(N_DATA, 2))
OTHERS = RNG.normal(size=(300, 2))
QUICK = {
    "n_toys": 40,
    "chunk": 4,
    "config": sparker.FitConfig(n_kernels=3),
    "widths": sparker.WidthConfig(steps=20, n_widths=3),
}
NO_KERNELS = {"config": None, "widths": None}  # for another statistic, which has none


@pytest.fixture(autouse=True)
def _nothing_is_computed(monkeypatch):
    def train(*arguments, **settings):
        pytest.fail("a fit was made before the error")

    monkeypatch.setattr(batch, "fit_chunk", train)


def refuse(message, reference=REFERENCE, data=DATA, **settings):
    with pytest.raises(ValueError, match=message):
        sparker.test(reference, data, **(QUICK | settings))


def spoiled(array, row, column, value):
    array = array.copy()
    array[row, column] = value
    return array


def table(array, *names):
    return pd.DataFrame(array, columns=list(names))


def test_the_input_of_these_tests_is_fine_but_for_what_is_changed():
    with pytest.raises(pytest.fail.Exception, match="a fit was made"):
        sparker.test(REFERENCE, DATA, **QUICK)


@pytest.mark.parametrize(
    ("reference", "data", "message"),
    [
        (REFERENCE, DATA[:, :1], "data has 1 features, reference has 2; both must have the same"),
        (
            table(REFERENCE, "size", "y"),
            table(DATA, "y", "Size"),
            r"^all samples must have the same columns, in any order:\n- size: data has no such "
            r"column \(did you mean 'Size'\?\)\ndata has y, Size; columns and ignore \(--c.*choose",
        ),
        (
            spoiled(REFERENCE, [3, 9], 0, -np.inf),
            DATA,
            r"^1 column cannot be compared as it is:\n- column 0: 2 infinite values in reference, "
            r"the first in row 3; write a number there, or nothing if it .*\nchange it, or",
        ),
        (
            spoiled(REFERENCE, 5, 1, np.inf),
            table(spoiled(DATA, 4, 0, np.inf), "x", "y").assign(z=1.0)[["x", "y"]],
            r"^2 columns .*\n- x: 1 infinite value in data, the first in row 4; .*\n- y: 1 "
            r"infinite value in reference, .* in row 5; .*\nchange them, or leave them out with",
        ),
        (
            REFERENCE,
            table(DATA, "x", "y").assign(y="high"),
            r"- y: 50 cells are no numbers, while 200 are, the first 'high' in row 0 of data; wr",
        ),
        (
            REFERENCE.astype(str),
            DATA.astype(str),
            r"- column 0: numbers are written as texts \(200 in reference and 50 in data\); give "
            r"them as numbers\n- column 1: numbers are",
        ),
        (
            REFERENCE,
            [[f"{x:.5f}".replace(".", ",") for x in row] for row in DATA],
            r"- column 0: 50 decimals are written with a comma; write them with a point\n- column",
        ),
        (
            REFERENCE,
            [[[1.0, 2.0], 3.0]] * 50,
            "data must be rows of the same number of columns; it is not: ",
        ),
        (
            REFERENCE,
            table(DATA, "x", "y").assign(y=[[1, 2]] * 50),
            "- y: holds .*, not one value a row; make columns of it",
        ),
        (REFERENCE, DATA + 1j, "data must be numeric, got dtype complex128; encode or drop"),
        (
            REFERENCE,
            sparse.eye(50),
            r"data is a sparse matrix; give its rows as an array, \.toarray",
        ),
        (
            REFERENCE,
            DATA[:, :, None],
            r"must be 2-D \(rows, features\), got shape \(50, 2, 1\); fl",
        ),
        (REFERENCE, np.float64(3), r"must be 2-D \(rows, features\), got shape \(\)"),
        (
            table(REFERENCE, "x", "x"),
            DATA,
            "reference is a data frame that cannot be read: it has several columns named x",
        ),
        (REFERENCE, DATA[:2], "data has 2 rows, fewer than the 3 kernels; take more rows or a"),
        (REFERENCE[:2], DATA, "reference has 2 rows, fewer than the 3 kernels; .* fewer kernels"),
        (REFERENCE, DATA[:0], r"data is empty, shape \(0, 2\); at least one row is needed"),
        (REFERENCE[:0], DATA, r"reference is empty, shape \(0, 2\); at least one row"),
        (REFERENCE[:, :0], DATA[:, :0], "empty|at least one"),
        (REFERENCE, DATA[:, 0], "data has 1 features, reference has 2; both must have the same"),
        (np.ones((200, 2)), np.ones((50, 2)), "none of the 2 columns varies by more than rounding"),
    ],
)
def test_samples_that_cannot_be_compared_are_refused(reference, data, message):
    refuse(message, reference, data)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"missing": "error"},
            r"^2 columns .*\n- x: values are missing \(1 in reference, the first in row 3; 2 in "
            r"data, the first in row 7\); missing='indicator' or 'drop' .*\n- z: values are "
            r"missing \(1 in data, the first in row 0\)",
        ),
        ({"missing": "fill"}, "missing must be one of indicator, drop, error, got 'fill'"),
        ({"columns": ["x", "w"]}, "- w: reference has no such column"),
        ({"columns": ["x", "Z"]}, r"- Z: reference has no such column \(did you mean 'z'\?\)"),
        ({"columns": ["x", "x"]}, "- x: named twice"),
        ({"columns": ["x"], "ignore": ["x"]}, "- x: both wanted and to be left out"),
        ({"ignore": ["w"]}, "- w: to be left out, but there is no such column"),
        ({"ignore": ["x", "y", "z"]}, "- no column is left to be compared"),
        ({"keep": ["w"]}, "- w: reference has no such column"),
        (
            {"ignore": ["w"], "columns": ["x", "q", "x"]},
            r"- q: reference has no such column\n- w: to be left out, .*\n- x: named twice",
        ),
        ({"groups": "w"}, "reference has no column 'w'"),
        ({"strata": "X"}, r"reference has no column 'X' \(did you mean 'x'\?\)"),
        ({"reference_weights": "w"}, "reference has no column 'w'"),
        ({"strict": True}, r"^with strict, nothing suspicious is tested:\n- data has columns that"),
    ],
)
def test_columns_are_asked_for_by_their_names(settings, message):
    reference = table(spoiled(REFERENCE, 3, 0, np.nan), "x", "y").assign(z=1.0)
    data = table(spoiled(DATA, [7, 9], 0, np.nan), "x", "y").assign(z=[np.nan] + [1.0] * 49, new=1)
    refuse(message, reference, data, **settings)


@pytest.mark.parametrize(
    ("reference", "data"),
    [
        (REFERENCE, spoiled(DATA, 7, 1, np.nan)),
        (REFERENCE, np.ma.masked_greater(DATA, 1.0)),
        (table(REFERENCE, "x", "y"), table(DATA, "y", "x")),
        (table(REFERENCE, "x", "y"), table(DATA, "y", "x").assign(more="text")),
        (table(REFERENCE, "x", "y"), DATA),
        (REFERENCE[:, 0], DATA[:, 1]),
        (REFERENCE.tolist(), DATA.tolist()),
        (REFERENCE, table(DATA, "x", "y").assign(x=DATA[:, 0].astype(str)).astype({"x": float})),
    ],
)
def test_what_needs_no_care_is_taken(reference, data):
    with pytest.raises(pytest.fail.Exception, match="a fit was made"):
        sparker.test(reference, data, **QUICK)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(N_REFERENCE), "reference_weights must be finite, none negative and not all zero"),
        (np.zeros(N_REFERENCE), "reference_weights must be finite, none negative and not all zero"),
        (np.full(N_REFERENCE, np.nan), "reference_weights must be finite"),
        (np.ones(N_DATA), r"reference_weights must have shape \(200,\), one a row, got \(50,\)"),
        (["a"] * N_REFERENCE, "reference_weights must be numeric"),
        (
            np.repeat([30.0, 1.0], [1, N_REFERENCE - 1]),
            "too uneven: row 0 weighs 26.2 times the mean, and of 200 rows only .* are left .* for "
            "50 data rows. If the weight is a function of the row, give this function",
        ),
    ],
    ids=["negative", "zero", "nan", "length", "text", "uneven"],
)
@pytest.mark.parametrize("strata", [None, (np.arange(N_REFERENCE) % 2, np.arange(N_DATA) % 2)])
@pytest.mark.parametrize("chunk", [None, 4])
def test_weights_that_are_none_are_refused(weights, message, strata, chunk):
    refuse(message, reference_weights=weights, strata=strata, chunk=chunk)


class Histogram:
    """As hist, boost-histogram and uproot have it; NumPy makes rows of (value, variance) of it."""

    axes, kind = ("x",), "COUNT"

    def values(self):
        return np.ones(10)

    def variances(self):
        return np.ones(10)

    def __array__(self, dtype=None, copy=None):
        return np.column_stack([self.values(), self.variances()])


def test_a_histogram_is_no_table_of_rows():
    for name, samples in (("reference", (Histogram(), DATA)), ("data", (REFERENCE, Histogram()))):
        refuse(f"^{name} is a histogram, .* give the rows it was filled with", *samples)
    sparker.tables.frames.as_table("data", table(DATA, "x", "y"))  # which has axes and values, too


@pytest.mark.parametrize("expected", [0, -3.0, np.nan, np.inf, True, "100", [50]])
def test_impossible_expectations_are_refused(expected):
    said = re.escape(f"expected must be a positive number of data rows, got {expected!r}")
    refuse(said, expected=expected)


def changing():
    calls = iter(range(10**6))
    return lambda rng, n: np.full((n, 2), float(next(calls)))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda rng, n: rng.normal(size=(n, 3)), r"asked for 50 rows of 2 features and gave .*3\)"),
        (lambda rng, n: rng.normal(size=(n + 1, 2)), r"asked for 50 rows .* gave shape \(51, 2\)"),
        (lambda rng, n: rng.normal(size=n), "the simulator's output must be 2-D"),
        (lambda rng, n: np.full((n, 2), np.nan), "the simulator's output has 100 NaN or infinite"),
        (changing(), "other rows for the same generator; it must draw from the rng it is given"),
        (
            REFERENCE,
            "200 of the 200 rows of the simulator's pool are in the reference as well; .* Take the "
            "rows of the reference out of the pool, or relabel with null='permutation'",
        ),
        (
            np.concatenate([REFERENCE[:120], OTHERS[:50]]),
            "120 of the 170 rows of the simulator's pool are in the reference as well",
        ),
        (
            np.concatenate([OTHERS, DATA[:20]]),
            "20 of the 320 rows of the simulator's pool are in the data as well; .* Take the rows "
            "of the data out of the pool",
        ),
        (
            lambda rng, n: REFERENCE[rng.integers(N_REFERENCE, size=n)],
            "rows of what the simulator drew are in the reference as well",
        ),
        (
            lambda rng, n: REFERENCE[rng.permutation(N_REFERENCE)[:n]],
            "rows of what the simulator drew are in the reference as well",
        ),
        (
            lambda rng, n: OTHERS[rng.integers(len(OTHERS), size=n)],
            r"of 1000 rows that the simulator drew for 20 toys came twice: .* Simulator\(rows\)",
        ),
        (DATA[:, :1], "the simulator's pool has 1 features, reference has 2; both must have"),
        (
            DATA * np.inf,
            r"- column 0: 50 infinite values in the simulator's pool, the first in row 0; ",
        ),
        (OTHERS.astype(str), r"numbers are written as texts \(300 in the simulator's pool\); give"),
    ],
)
def test_simulators_that_cannot_work_are_refused(source, message):
    refuse(message, null=sparker.Simulator(source))


def test_a_simulators_columns_must_be_those_of_the_reference():
    pool = table(OTHERS, "y", "z")
    refuse(
        r"same columns, in any order:\n- x: the simulator's pool has no such column\nthe "
        "simulator's pool has y, z; columns and ignore",
        table(REFERENCE, "x", "y"),
        table(DATA, "x", "y"),
        null=sparker.Simulator(pool),
    )


def test_a_simulator_that_is_a_function_draws_numbers():
    refuse(
        "a simulator that is a function draws numbers, but these columns are no plain numbers: y; ",
        table(REFERENCE, "x", "y").assign(y="a"),
        table(DATA, "x", "y").assign(y="a"),
        null=sparker.Simulator(lambda rng, n: rng.normal(size=(n, 2))),
    )


GROUPS = np.arange(N_REFERENCE) // 4, 1000 + np.arange(N_DATA) // 5


@pytest.mark.parametrize(
    ("groups", "settings", "message"),
    [
        ((GROUPS[0][1:], GROUPS[1]), {}, r"groups of reference must have shape \(200,\), one a"),
        ((GROUPS[0], GROUPS[0]), {}, r"groups of data must have shape \(50,\), one a row, got"),
        (
            (GROUPS[0], GROUPS[1] - 1000),
            {},
            "group 0 has rows in both reference and data, as have 9 others; .* different names",
        ),
        (GROUPS[0], {}, "groups must be a pair: the groups of the reference rows and those of"),
        ((*GROUPS, GROUPS[0]), {}, "groups must be a pair"),
        ((GROUPS[0], GROUPS[1].astype(str)), {}, "groups must be of one kind, got int64 for ref"),
        (GROUPS, {"expected": 50.0}, "groups does not go with expected, since rows that belong"),
        (
            GROUPS,
            {"reference_weights": np.arange(1, N_REFERENCE + 1)},
            "groups does not go with reference_weights, since rows that belong",
        ),
        (
            GROUPS,
            {"null": sparker.Simulator(lambda rng, n: rng.normal(size=(n, 2)))},
            r"groups does not go with null=Simulator\(...\), since a simulator draws rows as "
            "they come",
        ),
        (
            GROUPS,
            {},
            "no group of the data has as many rows as a group of the reference, so that none can "
            r"change places with another; .* null=Permutation\(group_rows=4\)",
        ),
    ],
)
def test_groups_that_cannot_be_relabelled_are_refused(groups, settings, message):
    refuse(message, groups=groups, **settings)


@pytest.mark.parametrize(
    ("null", "message"),
    [
        ("bootstrap", "null must be 'permutation', a Permutation or a Simulator, got 'bootstrap'"),
        ("resample", "null='permutation' uses the same two samples and is exact"),
        ("simulator", r"a simulator needs something to draw from: null=Simulator\(function\)"),
        (lambda rng, n: rng.normal(size=(n, 2)), r"a function that draws rows goes into Simulator"),
        (None, "null must be 'permutation', a Permutation or a Simulator, got None"),
        (
            sparker.Permutation(group_rows=2),
            r"group_rows=...\) needs groups: it says .*; give both",
        ),
    ],
)
def test_schemes_that_are_none_are_refused(null, message):
    refuse(message, null=null)


@pytest.mark.parametrize("group_rows", [0, -5, 1.5, True])
def test_groups_are_cut_to_a_number_of_rows(group_rows):
    with pytest.raises(ValueError, match=f"group_rows must be a whole number .* got {group_rows}"):
        sparker.Permutation(group_rows=group_rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_toys": 0}, "n_toys must be a whole number from 1 to 100,000,000, got 0"),
        ({"n_toys": -3}, "n_toys must be a whole number from 1 to 100,000,000, got -3"),
        ({"n_toys": 1.5}, "n_toys must be a whole number from 1 to 100,000,000, got 1.5"),
        ({"n_toys": np.inf}, "n_toys must be a whole number from 1 to 100,000,000, got inf"),
        ({"n_toys": np.nan}, "n_toys must be a whole number from 1 to 100,000,000, got nan"),
        ({"seed": -1}, r"seed must be a whole number between 0 and 2\*\*32 - 1, got -1"),
        ({"seed": 2**32}, "seed must be a whole number between 0 and .*, got 4294967296"),
        ({"seed": 0.5}, "seed must be a whole number between 0 and .*, got 0.5"),
        ({"n_toys": 10**9}, "n_toys must be a whole number from 1 to 100,000,000, got 1000000000"),
        ({"n_toys": 10**30}, "n_toys must be a whole number from 1 to 100,000,000, got 1000000"),
        ({"chunk": 0}, "chunk must be a whole number from 1 to 4,096, got 0"),
        ({"chunk": 10**9}, "chunk must be a whole number from 1 to 4,096, got 1000000000"),
        ({"chunk": 2.5}, "chunk must be .*, got 2.5"),
        ({"chunk": True}, "chunk must be .*, got True"),
        ({"n_toys": True}, "n_toys must be .*, got True"),
        ({"n_toys": "300"}, "n_toys must be .*, got '300'"),
        ({"seed": True}, "seed must be .*, got True"),
        ({"seed": np.True_}, "seed must be .*, got "),
        ({"normalisation": True, "expected": 50}, "normalisation must be .*, got True"),
        ({"normalisation": "0.1", "expected": 50}, "normalisation must be .*, got '0.1'"),
        ({"systematics": [sparker.Systematic("s", function=abs, prior=True)]}, "prior .* True"),
        ({"statistic": 3}, r"statistic must be a function \(rng, sample\) -> t or .*, got 3"),
        ({"statistic": "energy"}, "statistic must be a function .*, got 'energy'"),
        ({"combine": "minimum"}, "combine must be .*, got 'minimum'"),
        ({"preprocess": "whiten"}, "preprocess must be .*, got 'whiten'"),
        ({"stop": True}, "stop must be .*, got True"),
        (
            {"stop": sparker.Sequential(table=40)},
            "n_toys .* 40 toys that set the scale",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    refuse(message, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"steps": 0},
            "1 <= n_widths <= steps <= 1,000,000, got n_widths 10 and steps 0",
        ),
        ({"steps": 5}, "got n_widths 10 and steps 5"),
        ({"n_widths": 0}, "got n_widths 0"),
        ({"steps": 10**9}, "got n_widths 10 and steps 1000000000"),
        ({"steps": 10**30}, "got n_widths 10 and steps 1000000"),
        ({"evenly": {}}, "evenly must be True or False, got {}"),
        ({"steps": np.nan}, "got n_widths 10 and steps nan"),
        ({"n_widths": 2.5}, "n_widths and steps must be whole numbers"),
        ({"first": 0.0}, "first must be a positive width, got 0.0"),
        ({"last": np.nan}, "last must be a positive width, got nan"),
        ({"first": True}, "first must be a positive width, got True"),
        ({"last": "1"}, "last must be a positive width, got '1'"),
        ({"n_widths": True}, "n_widths and steps must be whole numbers"),
        ({"first": 1.0, "last": 2.0}, "widths must fall from first to last > 0, got 1.0 to 2.0"),
    ],
)
def test_impossible_widths_are_refused_when_they_are_made(settings, message):
    with pytest.raises(ValueError, match=message):
        sparker.WidthConfig(**settings)


def test_widths_that_do_not_fit_the_points_are_refused():
    refuse("widths must fall from first to last > 0", widths=sparker.WidthConfig(first=1e-9))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_kernels": 0}, "n_kernels must be a whole number from 1 on, got 0"),
        ({"clip": np.nan}, "clip must be positive and finite, got nan"),
        ({"l2": -1.0}, "l2 must be at least 0 and finite, got -1.0"),
        ({"n_kernels": True}, "n_kernels must be a whole number from 1 on, got True"),
        ({"clip": "5"}, "clip must be positive and finite, got '5'"),
        ({"l2": False}, "l2 must be at least 0 and finite, got False"),
        ({"amplitude_rate": 0.0}, "amplitude_rate must be positive and finite, got 0.0"),
        ({"dtype": np.int32}, "dtype must be float32 or float64, got int32"),
    ],
)
def test_impossible_kernels_are_refused_when_they_are_made(settings, message):
    with pytest.raises(ValueError, match=message):
        sparker.FitConfig(**settings)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros((2, 2)), r"must return a number or a 1-D array of them, got shape \(2, 2\)"),
        ("much", "statistic|could not convert string to float: 'much'"),
    ],
)
def test_a_statistic_that_returns_something_else_is_refused_at_once(returned, message):
    calls = []

    def statistic(rng, sample):
        calls.append(sample)
        return returned

    refuse(message, statistic=statistic, **NO_KERNELS)
    assert len(calls) <= 2  # not 41


def test_a_statistic_without_a_value_for_the_data_ends_the_test_before_the_toys():
    calls = []

    def statistic(rng, sample):
        calls.append(sample)
        return np.nan

    with pytest.raises(FloatingPointError, match="the statistic of the data is not finite"):
        sparker.test(REFERENCE, DATA, **(QUICK | NO_KERNELS), statistic=statistic)
    assert len(calls) <= 2 * QUICK["chunk"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"null": sparker.Simulator(OTHERS[:70])}, "pool has 70 rows, a toy needs up to 114; add"),
        (
            {"reference": REFERENCE[:50], "reference_weights": np.tile([1.0, 0.01], 25)},
            "a toy with 81 data rows leaves no reference in a pool of 7",
        ),
        (
            {
                "reference": REFERENCE[:25],
                "reference_weights": (np.linspace(1, 2, 25), np.ones(N_DATA)),
            },
            "leaves no reference in a pool of 75",
        ),
        ({"reference": REFERENCE[:25]}, "leaves no reference in a pool of 75"),
    ],
    ids=["simulator", "weights", "weights of both", "rows"],
)
def test_what_only_toys_with_many_events_would_meet_is_said_beforehand(settings, message):
    # With this seed, toy 34 has 81 data rows and those before it none above 70.
    refuse(message, **settings, expected=50.0, seed=10)


@pytest.mark.parametrize("only", [[], [-1, 0], [0, 41], [1.5]])
def test_only_numbers_of_experiments_can_be_made(only, tmp_path):
    with pytest.raises(ValueError, match=r"only must be .*numbers from 0 to n_toys = 40"):
        sparker.run_toys(REFERENCE, DATA, only=only, store=tmp_path / "store", **QUICK)
    assert not (tmp_path / "store").exists()


def test_a_wrong_setting_leaves_no_store_behind(tmp_path):
    refuse("seed must be", seed=-1, store=tmp_path / "store")
    assert not (tmp_path / "store").exists()
