"""Columns of any kind: what they hold, what becomes of them, and that they come back whole."""

import dataclasses
import json
from collections import Counter
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from plain_encoding import plain_encoding
from scipy.stats import binom
from sealed import value_of, with_text

import sparker
from sparker.config import TestConfig
from sparker.findings.decision import Level
from sparker.findings.frames import as_frame
from sparker.intake import two_samples
from sparker.system import archive
from sparker.tables import encoding as encodings
from sparker.tables import kinds
from sparker.tables.encoding import Encoding, Feature, fit, when
from sparker.tables.errors import ColumnsError, DataWarning
from sparker.tables.frames import as_table, library_of
from sparker.tables.kinds import Kind, kind_of, own_levels
from sparker.tables.rows import more_rows
from sparker.tables.table import Table

MONDAY = datetime(2024, 1, 1)


def cells(*values):
    """A column that is no numbers."""
    column = np.empty(len(values), object)
    column[:] = values
    return column


def taken(reference, data, **settings):
    return two_samples(reference, data, TestConfig(**settings))


def codes(intake):
    return [caution.code for caution in intake.cautions]


# What a column holds

COLOURS = cells(*["red", "green", None] * 10)
NUMBERS = np.array([1.5, np.nan, 2.5])
DAYS = np.array(["2024-01-01", "NaT"], "datetime64[us]")


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        ([NUMBERS], Kind.NUMBER),
        ([NUMBERS, np.full(3, np.nan)], Kind.NUMBER),
        ([np.full(3, np.nan), cells(None, None)], Kind.NUMBER),
        ([cells(True, None, False)], Kind.BOOLEAN),
        ([cells("true", "FALSE ", None)], Kind.BOOLEAN),
        ([cells(True, False), np.array([0.0, 1.0, np.nan])], Kind.BOOLEAN),
        ([cells(True, False), np.full(2, np.nan)], Kind.BOOLEAN),
        ([cells(*[True, False] * 9), np.repeat(2.0, 9)], Kind.CATEGORY),
        ([DAYS], Kind.TIME),
        ([DAYS, cells("2024-05-01 12:00", None)], Kind.TIME),
        ([DAYS, np.full(2, np.nan)], Kind.TIME),
        ([cells("2024-05-01", "2024-05-01T12:00:00.5+02:00", "2024-05-01 12:00Z")], Kind.TIME),
        ([cells(*["20240501"] * 9)], Kind.CATEGORY),  # a number, for most
        ([cells(*["2024-02-30"] * 9)], Kind.CATEGORY),  # no day
        ([cells(*["0001-01-01T00:00+05:00"] * 9)], Kind.CATEGORY),  # none in UTC
        ([cells(*["2024-05-01"] * 9, *["soon"] * 9)], Kind.CATEGORY),
        ([DAYS, np.ones(9)], Kind.CATEGORY),
        ([COLOURS], Kind.CATEGORY),
        ([COLOURS, np.repeat(1.0, 30)], Kind.CATEGORY),
        ([cells(*[f"code {i}" for i in range(30)])], Kind.TEXT),
        ([cells(*["a" * 61] * 30)], Kind.TEXT),
        ([cells(*["often"] * 15, *[f"rare {i}" for i in range(15)])], Kind.CATEGORY),
        ([cells(*["often"] * 14, *[f"rare {i}" for i in range(15)])], Kind.TEXT),
    ],
)
def test_what_a_column_holds(parts, kind):
    assert kind_of(parts) is kind
    assert kind_of(parts[::-1]) is kind


def test_values_have_a_feature_if_they_are_frequent():
    counts = Counter({"b": 3, "a": 3, "c": 7, "d": 2})
    assert own_levels(counts) == ["c", "a", "b"]  # of equal ones the alphabet decides
    assert own_levels(Counter({"often": 997, "rare": 4})) == ["often"]  # below 0.5 %
    many = Counter({f"{i:02}": 5 for i in range(30)})
    assert own_levels(many) == [f"{i:02}" for i in range(kinds.MAX_LEVELS)]


# What becomes of it


def encoded(column, further=None):
    one = fit("x", 0, kind_of([column]), [column])
    return [feature.label for feature in one.features], one.encode(
        column if further is None else further
    ).tolist()


def test_numbers_stay_and_missing_ones_become_the_median():
    assert encoded(np.array([1.0, 5, 2])) == (["x"], [[1], [5], [2]])
    labels, found = encoded(np.array([1.0, np.nan, 5, 3]))
    assert labels == ["x", "x is missing"]
    assert found == [[1, 0], [3, 1], [5, 0], [3, 0]]
    one = fit("x", 0, Kind.NUMBER, [np.array([1.0, 7]), np.array([3.0])])
    assert not one.missing
    assert one.encode(np.array([np.nan])).tolist() == [[3]]  # the median of both samples


def test_truths_are_one_and_zero():
    column = cells("True", "false", None)
    assert encoded(column) == (["x is true", "x is missing"], [[1, 0], [0, 0], [0, 1]])
    assert encoded(column, np.array([1.0, 0.0, np.nan]))[1] == [[1, 0], [0, 0], [0, 1]]


def test_a_category_has_a_feature_for_each_frequent_value():
    column = cells(*["red"] * 4, *["blue"] * 3, "odd", "odder", None)
    labels, found = encoded(column, cells("blue", "red", "odder", "never seen", None))
    assert labels == ["x is red", "x is blue", "x is another value", "x is missing"]
    assert found == [
        [0, 1, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 1, 0],  # beside rare values, one that nobody knew
        [0, 0, 0, 1],
    ]
    labels, found = encoded(cells(*["red"] * 4, *["blue"] * 3), cells("blue", "never seen", None))
    assert labels == ["x is red", "x is blue"]
    assert found == [[0, 1], [0, 0], [0, 0]]  # none of them all


def test_numbers_as_categories_are_written_short():
    words, numbers = cells("1", "1", "1", "two"), np.array([1.0, 1.0, 0.1, np.nan])
    one = fit("x", 0, kind_of([words, numbers]), [words, numbers])
    assert (one.kind, one.levels, one.rare) == (Kind.CATEGORY, ("1",), ("0.1", "two"))
    assert one.encode(numbers).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_times_are_seconds_with_hour_and_weekday():
    column = np.array(["2024-01-01T06:30", "2024-01-07T18:00", "NaT", "2024-01-02T06:30"], "M8[us]")
    labels, found = encoded(column)
    assert labels == ["x", "hour of x", "weekday of x", "x is missing"]
    seconds = [datetime(2024, 1, d, h, m) for d, h, m in ((1, 6, 30), (7, 18, 0), (2, 6, 30))]
    first, second, third = ((t - datetime(1970, 1, 1)).total_seconds() for t in seconds)
    assert found == [
        [first, 6.5, 0, 0],
        [second, 18, 6, 0],
        [third, 6.5, 1, 1],  # the medians
        [third, 6.5, 1, 0],
    ]


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["2024-01-01", "2024-01-08", "2024-01-15"], ["x"]),  # Mondays at midnight
        (["2024-01-01", "2024-01-02"], ["x", "weekday of x"]),
        (["2024-01-01 10:00", "2024-01-01 11:00"], ["x", "hour of x"]),
    ],
)
def test_only_parts_of_a_time_that_vary_are_features(texts, labels):
    assert encoded(cells(*texts))[0] == labels


def test_times_with_zones_are_in_utc():
    aware = [datetime(2024, 1, 1, 12, tzinfo=timezone(timedelta(hours=h))) for h in (2, -8)]
    as_text = cells(*(one.isoformat() for one in aware))
    expected = encoded(cells("2024-01-01T10:00", "2024-01-01T20:00"))
    assert encoded(as_text) == expected
    for frame in (
        pd.DataFrame({"x": [pd.Timestamp(one) for one in aware]}, dtype=object),
        pd.DataFrame({"x": pd.to_datetime(aware, utc=True).tz_convert("Asia/Tokyo")}),
        pl.DataFrame({"x": aware}, schema={"x": pl.Datetime("ms", "Europe/Berlin")}),
        pa.table({"x": pa.array(aware, pa.timestamp("ns", "America/New_York"))}),
    ):
        assert encoded(as_table("data", frame).column(0)) == expected


EVERY_KIND = {
    "number": np.array([1.0, 2, np.nan]),
    "plain": np.array([1.0, 2, 4]),
    "truth": cells(True, None, False),
    "category": cells("a", "a", "a", None, "b"),
    "time": np.array(["2024-01-01T01:00", "2024-01-02T02:00", "NaT"], "M8[us]"),
    "day": cells("2024-01-01", "2024-01-08"),
}


def every_kind():
    columns = (
        fit(name, place, kind_of([column]), [column])
        for place, (name, column) in enumerate(EVERY_KIND.items())
    )
    left_out = (encodings.LeftOut("id", "it counts the rows"),)
    return Encoding(tuple(columns), left_out, True, 7)


def through_a_file(made):
    return archive.unpacked(archive.packed("x", made), {"x": Encoding})


def test_an_encoding_survives_a_file():
    made = every_kind()
    again = through_a_file(made)
    again.check()
    assert again == made
    assert json.loads(json.dumps(made.to_dict(), allow_nan=False)) == made.to_dict()
    assert [type(one.kind) for one in again.columns] == [Kind] * len(EVERY_KIND)
    for one, copy, column in zip(made.columns, again.columns, EVERY_KIND.values(), strict=True):
        np.testing.assert_array_equal(one.encode(column), copy.encode(column))


@pytest.mark.parametrize(
    ("column", "wrong", "message"),
    [
        (0, {"kind": "picture"}, "Invalid enum value 'picture'"),
        (0, {"kind": Kind.TEXT}, "lacks its embedder"),
        (0, {"fill": (1.0, 2.0)}, "column number does not fit together"),
        (0, {"fill": ()}, "column number does not fit together"),
        (3, {"fill": (1.0,)}, "column category does not fit together"),
        (4, {"parts": ("hour", "minute")}, "column time does not fit together"),
        (4, {"fill": (1.0,)}, "column time does not fit together"),
        (1, {"place": "first"}, "Expected `int`"),
        (1, {"place": -1}, "Expected `int` >= 0"),
    ],
)
def test_an_encoding_that_does_not_fit_together_is_refused(column, wrong, message):
    made = every_kind()
    columns = [*made.columns]
    columns[column] = columns[column]._replace(**wrong)
    with pytest.raises((ValueError, msgspec.ValidationError), match=message):
        through_a_file(made._replace(columns=tuple(columns))).check()


def test_what_was_done_is_said():
    assert [one.done for one in every_kind().columns] == [
        "as it is, and a feature that says where it is missing (1.5, the median, stands there)",
        "as it is",
        "1 for true, 0 for false, and a feature that says where it is missing",
        "a feature for each of 1 values and one for 1 rarer value, and a feature that says where "
        "it is missing",
        "time and hour of the day and weekday, and a feature that says where it is missing "
        "(2024-01-01 13:30:00, the median, stands there)",
        "time",
    ]


def test_which_features_belong_together():
    made = every_kind()
    labels = made.labels
    assert [[labels[i] for i in block] for block in made.blocks] == [
        ["number"],
        ["number is missing"],
        ["plain"],
        ["truth is true"],
        ["truth is missing"],
        ["category is a", "category is another value"],
        ["category is missing"],
        ["time"],
        ["hour of time"],
        ["weekday of time"],
        ["time is missing"],
        ["day"],
    ]
    lacking = {labels[i]: labels[flag] for i, flag in made.lacking.items()}
    assert lacking == {
        "number": "number is missing",
        "truth is true": "truth is missing",
        "category is a": "category is missing",
        "category is another value": "category is missing",
        "time": "time is missing",
        "hour of time": "time is missing",
        "weekday of time": "time is missing",
    }
    assert not made.plain
    assert plain_encoding(("a", "b"), 2).plain


@pytest.mark.parametrize(
    ("feature", "bounds", "text"),
    [
        (Feature("mass"), (1.5, None), "mass > 1.5"),
        (Feature("mass"), (None, -2.0), "mass <= -2"),
        (Feature("mass"), (1.0, 2.0), "1 < mass <= 2"),
        (Feature("two\n words"), (1.0, None), "two words > 1"),
        (Feature("c", "is", "red"), (0.5, None), "c is red"),
        (Feature("c", "is", "red"), (None, 0.5), "c is not red"),
        (Feature("c", "is", ""), (None, 0.5), "c is not ''"),
        (Feature("c", "is", "a\nb"), (0.5, None), r"c is 'a\nb'"),
        (Feature("what is it", "is", "x is y"), (None, 0.5), "what is it is not x is y"),
        (Feature("c", "other"), (0.5, None), "c is another value"),
        (Feature("c", "other"), (None, 0.5), "c is not another value"),
        (Feature("c", "missing"), (0.5, None), "c is missing"),
        (Feature("c", "missing"), (None, 0.5), "c is not missing"),
        (Feature("t", "time"), (1.7e9, None), "t > 2023-11-14 22:13:20"),
        (Feature("t", "time"), (None, 86400 * 19000.0), "t <= 2022-01-08"),
        (Feature("t", "hour"), (6.5, 18.0), "6.5 < hour of t <= 18"),
        (Feature("t", "weekday"), (4.0, None), "weekday of t Saturday to Sunday"),
        (Feature("t", "weekday"), (None, 0.0), "weekday of t Monday"),
        (Feature("t", "weekday"), (1.5, 3.0), "weekday of t Wednesday to Thursday"),
        (Feature("t", "weekday"), (5.0, None), "weekday of t Sunday"),
    ],
)
def test_conditions_of_every_kind_of_feature(feature, bounds, text):
    assert feature.text(*bounds) == text


def test_numbers_are_told_with_all_their_digits():
    assert Feature("x").value(1e12 + 0.25) == "1000000000000.25"
    assert Feature("x").value(0.0) == "0"
    assert float(Feature("x").value(1e-30)) == 1e-30
    assert when(0.5) == "1970-01-01 00:00:00.500000"
    assert when(-86400.0) == "1969-12-31"


@pytest.mark.parametrize(
    "names", [("x", "x is missing"), ("", "x"), (" ", "\n"), ("a\tb", "a b"), ("a", "hour of a")]
)
def test_features_called_alike_are_told_apart(names):
    columns = [
        fit(name, place, kind_of([column]), [column])
        for place, (name, column) in enumerate(
            zip(names, (EVERY_KIND["time"], np.array([1.0, np.nan])), strict=True)
        )
    ]
    made = Encoding(tuple(columns), named=True, n_columns=2)
    assert len(set(made.labels)) == len(made.features) == 6
    assert all(label.strip() == label and label.isprintable() for label in made.labels)
    assert [feature.label for feature in made.told_apart] == made.labels


def test_values_that_nobody_knew_are_counted():
    column = cells(*["red", "blue"] * 20)
    one = fit("x", 0, Kind.CATEGORY, [column])
    assert one.unseen(column) == Counter()
    assert one.unseen(cells(*["red"] * 9, *["green"] * 9, None)) == Counter(green=9)
    assert fit("x", 0, Kind.NUMBER, [np.ones(9)]).unseen(np.arange(9.0)) == Counter()


def test_nothing_depends_on_which_rows_are_data():
    """What is learned of a column must be the same for every labelling of its rows."""
    rng = np.random.default_rng(0)
    frame = frame_of(rng, 90).drop(columns="id")
    first = taken(frame[:60], frame[60:])
    for _ in range(5):
        order = rng.permutation(90)
        again = taken(frame.iloc[order[:60]], frame.iloc[order[60:]])
        assert again.encoding == first.encoding
        both = [np.concatenate([one.reference, one.data]) for one in (first, again)]
        np.testing.assert_array_equal(both[1], both[0][order])


# Where it comes from


def frame_of(rng, n, *, strange=False):
    """Columns of every kind; every fifth row may be strange."""
    odd = (np.arange(n) % 5 == 2) & strange
    colours = rng.choice(["red", "green", "blue"], n, p=[0.6, 0.3, 0.1]).astype(object)
    seconds = rng.integers(0, 28 * 86400, n)
    return pd.DataFrame(
        {
            "size": np.where(odd, 3 + 0.1 * rng.normal(size=n), rng.normal(size=n)),
            "weight": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "colour": np.where(odd, "blue", np.where(rng.random(n) < 0.1, None, colours)),
            "good": rng.random(n) < 0.7,
            "when": pd.Timestamp(MONDAY) + pd.to_timedelta(seconds, "s"),
            "id": [f"{number:08x}" for number in rng.permutation(10**6)[:n]],
        }
    )


def in_library(name, frame):
    """The same table as others have it."""
    if name == "polars":
        return pl.from_pandas(frame)
    if name == "lazy polars":
        return pl.from_pandas(frame).lazy()
    if name == "pyarrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    if name == "structured":
        return frame.astype({"colour": object, "id": object}).to_records(index=False)
    if name == "nullable":
        kinds_ = {"weight": "Float64", "good": "boolean", "colour": "string", "id": "string"}
        return frame.astype(kinds_)
    if name == "categorical":
        return frame.astype({"colour": "category", "good": "category", "id": "category"})
    if name == "arrow in pandas":
        return in_library("pyarrow", frame).to_pandas(types_mapper=pd.ArrowDtype)
    assert name == "pandas"
    return frame


LIBRARIES = [
    *("pandas", "nullable", "categorical", "arrow in pandas"),
    *("polars", "lazy polars", "pyarrow", "structured"),
]


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gives_the_same_table(library):
    rng = np.random.default_rng(0)
    reference, data = frame_of(rng, 80), frame_of(rng, 40)
    expected = taken(reference, data)
    found = taken(in_library(library, reference), in_library(library, data))
    assert found.encoding == expected.encoding
    np.testing.assert_array_equal(found.data, expected.data)
    np.testing.assert_array_equal(found.reference, expected.reference)
    assert found.cautions == expected.cautions
    assert codes(found) == ["identifier"]
    assert [one.name for one in found.encoding.left_out] == ["id"]
    assert found.given.keys() == expected.given.keys() == {"id", "weight", "colour", "good", "when"}
    assert found.given["id"].tolist() == data["id"].tolist()
    # One library beside another is no difference, either.
    mixed = taken(reference, in_library(library, data))
    np.testing.assert_array_equal(mixed.data, expected.data)


@pytest.mark.parametrize(
    ("library", "name"),
    [*zip(LIBRARIES, ["pandas"] * 4 + ["polars"] * 2 + ["pyarrow", None], strict=True)],
)
def test_the_library_is_known(library, name):
    assert library_of(in_library(library, frame_of(np.random.default_rng(0), 5))) == name


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (pd.array([1, None, 3], "Int64"), [1, np.nan, 3]),
        (pd.array([1, None, 3], "Float32"), [1, np.nan, 3]),
        (pd.array([1, 2, 3], "UInt8"), [1, 2, 3]),
        (pd.arrays.SparseArray([0.0, 1.0, 0.0]), [0, 1, 0]),
        (pd.to_timedelta([90, None, 1], "s"), [90, np.nan, 1]),
        (pd.array([2**60, 1, None], "Int64"), [2**60, 1, np.nan]),
        (np.array([Decimal("1.5"), None, 2], object), [1.5, np.nan, 2]),
        (np.array([None, pd.NA, np.nan], object), [np.nan] * 3),
        (pl.Series([1, None, 3], dtype=pl.UInt16), [1, np.nan, 3]),
        (pl.Series([Decimal("1.5"), None, Decimal(2)]), [1.5, np.nan, 2]),
        (pl.Series([timedelta(seconds=90), None, timedelta(0)]), [90, np.nan, 0]),
        (pl.Series([None, None, None]), [np.nan] * 3),
        (pa.array([2**60, None, 1]), [2**60, np.nan, 1]),  # pyarrow does not round
        (pa.array(np.array([1, 2, np.nan], np.float16), from_pandas=True), [1, 2, np.nan]),
        (pa.array([90, None, 1], pa.duration("s")), [90, np.nan, 1]),
    ],
)
def test_numbers_of_any_type_are_numbers(column, numbers):
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    table = as_table("x", (pa.table if isinstance(column, pa.Array) else make)({"a": column}))
    assert not table.others
    np.testing.assert_array_equal(table.points[:, 0], numbers)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pd.array([True, None, False], "boolean"), [True, None, False]),
        (pd.array(["a", None, "b"], "string"), ["a", None, "b"]),
        (pd.Categorical(["a", None, "b"]), ["a", None, "b"]),
        (np.array([1, "a", None], object), ["1", "a", None]),
        (np.array([np.True_, "a", 2.5], object), [True, "a", "2.5"]),
        (np.array([b"a", b"\xff", pd.NA], object), ["a", "\N{REPLACEMENT CHARACTER}", None]),
        (np.array([date(2024, 1, 1), None, 1.5], object), ["2024-01-01", None, "1.5"]),
        (
            np.array([pd.Timestamp(MONDAY), pd.NaT, "soon"], object),
            ["2024-01-01 00:00:00", None, "soon"],
        ),
        (pl.Series(["a", None, "b"], dtype=pl.Enum(["a", "b"])), ["a", None, "b"]),
        (pl.Series(["a", None, "b"], dtype=pl.Categorical), ["a", None, "b"]),
        (pl.Series([time(1, 30), None, time(2)]), ["01:30:00", None, "02:00:00"]),
        (pl.Series([b"a", None, b"b"]), ["a", None, "b"]),
        (pa.array(["a", None, "b"]).dictionary_encode(), ["a", None, "b"]),
        (pa.array([True, None, False]), [True, None, False]),
    ],
)
def test_what_is_no_number_stays_what_it_is(column, values):
    make = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    is_arrow = isinstance(column, pa.Array)
    table = as_table("x", (pa.table if is_arrow else make)({"a": column}))
    assert table.others[0].tolist() == values
    assert np.isnan(table.points).all()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_any_precision_are_times(unit):
    texts = ["2024-01-01T00:00:01", "NaT", "1969-12-31T23:59:59"]
    column = np.array(texts, f"M8[{unit}]")
    expected = np.array(texts, "M8[us]")
    frames = [pd.DataFrame({"a": column}), pa.table({"a": column}), column]
    if unit != "s":  # polars does not know it
        frames.append(pl.DataFrame({"a": column}))
    for given in frames:
        np.testing.assert_array_equal(as_table("x", given).others[0], expected)
    days = pl.DataFrame({"a": [date(2024, 1, 1), None]})
    assert as_table("x", days).others[0].tolist() == [MONDAY, None]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1.0, 2.0], "b": [[1], [2, 3]]}),
        pd.DataFrame({"a": [1.0, 2.0], "b": [{"c": 1}, None]}),
        pd.DataFrame({"a": [1.0, 2.0], "b": [np.zeros(2), np.ones(2)]}),
        pl.DataFrame({"a": [1.0, 2.0], "b": [[1], [2, 3]]}),
        pl.DataFrame({"a": [1.0, 2.0], "b": [{"c": 1}, {"c": 2}]}),
        pa.table({"a": [1.0, 2.0], "b": [[1], None]}),
        np.zeros(2, [("a", "f8"), ("b", "f8", 2)]),
        np.array([[1.0, [1]], [2.0, [2, 3]]], object),
    ],
)
def test_lists_are_refused_with_their_column(frame):
    named = getattr(frame, "dtype", np.dtype("V1")).kind != "O"
    name = "b" if named else "column 1"
    with pytest.raises(ColumnsError, match=rf"^1 column .*\n- {name}: holds .*, not one value a r"):
        taken(frame, frame)
    intake = taken(frame, frame, ignore=["b" if named else "1"])  # beside it, nothing is wrong
    assert intake.data.tolist() == ([[0], [0]] if intake.frame is None and named else [[1], [2]])


@pytest.mark.parametrize(
    ("given", "points", "names"),
    [
        ([1.5, None], [[1.5], [np.nan]], ()),
        (np.array([1, 2]), [[1], [2]], ()),
        (np.ma.array([[1.0, 2.0]], mask=[[0, 1]]), [[1, np.nan]], ()),
        (np.ma.array([[1, 2]], mask=[[0, 1]]), [[1, np.nan]], ()),
        (np.array([[90], [1]], "m8[s]"), [[90], [1]], ()),
        (pd.Series([1.5, None], name="a"), [[1.5], [np.nan]], ("a",)),
        (pd.Series([1.5, None]), [[1.5], [np.nan]], ()),
        (pl.Series("a", [1, None]), [[1], [np.nan]], ("a",)),
        (pl.Series([1, None]), [[1], [np.nan]], ()),
        (pa.chunked_array([[1], [None]]), [[1], [np.nan]], ()),
        (np.array([(1, 2.5)], [("a", "i4"), ("b", "f4")]), [[1, 2.5]], ("a", "b")),
        (pd.DataFrame({0: [1.0], 1: [2.0]}), [[1, 2]], ("0", "1")),
    ],
)
def test_arrays_and_series_of_any_shape(given, points, names):
    table = as_table("x", given)
    np.testing.assert_array_equal(table.points, points)
    assert table.columns == names


def test_single_precision_stays_and_is_shared():
    single = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert as_table("x", pd.DataFrame(single)).points.dtype == np.float32
    assert as_table("x", pl.DataFrame(single)).points.dtype == np.float32
    assert as_table("x", single.astype(np.float16)).points.dtype == np.float32
    mixed = pd.DataFrame({"a": single[:, 0], "b": single[:, 1].astype(np.float64)})
    assert as_table("x", mixed).points.dtype == np.float64
    assert taken(single * 0.1, single.astype(np.float64) * 0.1).data.dtype == np.float32


# Two samples

X, Y = np.random.default_rng(1).normal(size=(2, 30))


def test_columns_are_matched_by_name():
    reference = pd.DataFrame({"x": X, "y": Y})
    intake = taken(reference, reference[["y", "x"]] + 1)
    np.testing.assert_array_equal(intake.data, np.column_stack([X, Y]) + 1)
    assert intake.cautions == ()
    wider = reference.assign(x=X + 1, z=0.0, w="text")[["w", "y", "z", "x"]]
    intake = taken(reference, wider)
    np.testing.assert_array_equal(intake.data, np.column_stack([X + 1, Y]))
    assert codes(intake) == ["further columns"]
    assert "which were not compared: w, z" in intake.cautions[0].text


def test_columns_are_chosen_by_name_or_place():
    frame = pd.DataFrame({"x": X, "y": Y, "z": X * Y})
    data = frame + 1
    chosen = taken(frame, data, columns=["z", "x"])
    np.testing.assert_array_equal(chosen.data, data[["z", "x"]])
    assert chosen.encoding.labels == ["z", "x"]
    left = taken(frame, data, ignore="y")
    np.testing.assert_array_equal(left.data, data[["x", "z"]])
    assert left.encoding.left_out == (encodings.LeftOut("y", "it was to be ignored"),)
    by_place = taken(frame.to_numpy(), data.to_numpy(), columns=[2, "0"])
    np.testing.assert_array_equal(by_place.data, chosen.data)
    assert by_place.encoding.labels == ["column 2", "column 0"]
    encoded_, _ = more_rows("rows", data.to_numpy(), by_place.encoding, "indicator")
    np.testing.assert_array_equal(encoded_.points, by_place.data)
    encoded_, _ = more_rows("rows", by_place.data, by_place.encoding, "indicator")
    np.testing.assert_array_equal(encoded_.points, by_place.data)


def test_identifiers_and_empty_columns_are_left_out_with_a_warning():
    frame = pd.DataFrame({"event_id": np.arange(30.0), "x": X, "nothing": [None] * 30})
    with pytest.warns(
        DataWarning, match="column event_id was left out: it counts the rows"
    ) as told:
        intake = taken(frame, frame.assign(x=X + 1))
    assert [str(one.message) for one in told] == [one.text for one in intake.cautions]
    assert codes(intake) == ["identifier", "empty"]
    assert intake.cautions[1].text == "column nothing was left out: it has no values"
    assert "keep=['event_id'] (--keep event_id)" in intake.cautions[0].text
    assert intake.encoding.labels == ["x"]
    assert intake.given["event_id"].tolist() == list(range(30))
    kept = taken(frame, frame.assign(x=X + 1), keep=["event_id"])
    assert kept.encoding.labels == ["event_id", "x"]
    meant = taken(frame, frame.assign(x=X + 1), columns=["x", "event_id"])
    assert (meant.encoding.labels, codes(meant)) == (["x", "event_id"], [])
    with pytest.raises(
        ColumnsError, match=r"^with strict, .*\n- column event_id .*\n- column noth"
    ):
        taken(frame, frame.assign(x=X + 1), strict=True)


def test_columns_without_names_are_kept_by_their_places():
    n = 90
    rows = np.column_stack([np.random.default_rng(0).normal(size=n), np.arange(n)])
    data = rows + 100
    intake = taken(rows, data)
    (caution,) = intake.cautions
    assert caution.text.startswith("column 1 was left out: it counts the rows of each file; ")
    assert "keep=['1'] (--keep 1)" in caution.text
    assert taken(rows, data, keep=["1"]).encoding.labels == ["column 0", "column 1"]


def test_a_column_may_be_empty_in_one_sample():
    for column in (X, cells(*["a", "b", "c"] * 10), cells(*[True, False] * 15), None):
        values = pd.date_range(MONDAY, periods=30).to_numpy() if column is None else column
        full = pd.DataFrame({"x": Y, "late": values})
        empty = pd.DataFrame({"x": X, "late": [None] * 30})
        for reference, data in ((full, empty), (empty, full)):
            intake = taken(reference, data, keep=["late"])
            place = intake.encoding.labels.index("late is missing")
            gone = intake.data[:, place], intake.reference[:, place]
            assert [set(part) for part in gone] in ([{1.0}, {0.0}], [{0.0}, {1.0}])
    times = np.array([["NaT"]] * 30, "M8[us]")
    assert taken(times, X).encoding.labels == ["column 0", "column 0 is missing"]


def test_new_values_and_new_gaps_are_told():
    reference = pd.DataFrame({"x": X, "colour": ["red", "blue"] * 15})
    data = pd.DataFrame({"x": Y, "colour": ["red"] * 20 + ["green"] * 10})
    (caution,) = taken(reference, data).cautions
    assert caution == (
        "unseen values",
        "10 data rows have values of colour that the reference never has: green (10)",
    )
    made = taken(reference, data).encoding
    assert made.labels == ["x", "colour is red", "colour is blue", "colour is green"]
    later = pd.DataFrame({"x": [np.nan, 1.0], "colour": ["red", "red"]})
    found, noted = more_rows("the batch", later, made, "indicator")
    assert [one.code for one in noted] == ["missing values"]
    assert noted[0].text.startswith("1 data row lacks x, which is never missing in the reference")
    assert found.points[0, 0] == np.median(np.concatenate([X, Y]))
    found, noted = more_rows("the batch", later, made, "drop")
    assert [one.code for one in noted] == ["dropped rows"]  # and of those, nothing else is said
    assert (found.rows.tolist(), found.points[:, 0].tolist()) == ([1], [1.0])
    with pytest.raises(ColumnsError, match="every row of the batch lacks a value"):
        more_rows("the batch", later[:1], made, "drop")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pd.DataFrame({"x": [1.0]}), r"any order:\n- colour: rows has no such column\nrows has x;"),
        (pd.DataFrame({"x": ["high"], "colour": ["red"]}), r"before:\n- x: it held numbers, and"),
        (pd.DataFrame({"x": ["inf"], "colour": ["red"]}), r"before:\n- x: it held numbers, and"),
        (pd.DataFrame({"x": [np.inf], "colour": ["red"]}), r"as it is:\n- x: 1 infinite value in"),
        (pd.DataFrame({"x": [[1]], "colour": ["red"]}), r"as it is:\n- x: holds .*, not one value"),
        (np.zeros((2, 3)), "rows has 3 columns, the test was made with 2"),
    ],
)
def test_further_rows_must_hold_what_there_was(rows, message):
    reference = pd.DataFrame({"x": X, "colour": ["red", "blue"] * 15})
    made = taken(reference, reference.assign(x=Y)).encoding
    with pytest.raises(ColumnsError, match=message):
        more_rows("rows", rows, made, "indicator")


def test_dropped_rows_decide_nothing():
    frame = pd.DataFrame({"x": X, "y": Y, "colour": ["red", "blue", "green"] * 10})
    holes = frame.copy()
    holes.loc[holes.colour == "green", "x"] = np.nan
    data = frame.assign(x=X + 1)[:20]
    intake = taken(holes, data, missing="drop")
    kept = frame[frame.colour != "green"]
    expected = taken(kept, data)
    assert intake.encoding == expected.encoding
    np.testing.assert_array_equal(intake.reference, expected.reference)
    assert intake.reference_rows.tolist() == kept.index.tolist()
    assert intake.data_rows is None
    assert codes(intake) == ["unseen values", "dropped rows"]
    assert intake.cautions[1].text.startswith("10 of the 30 rows of reference lack a value and")


def test_dropping_takes_along_what_belongs_to_the_rows():
    frame = pd.DataFrame({"x": X, "y": Y, "w": np.arange(1.0, 31), "g": np.arange(30) // 3})
    holes = frame.assign(x=np.where(np.arange(30) % 3 == 1, np.nan, X))
    by_name = taken(holes, holes.assign(g=100 + frame.g), missing="drop", groups="g", ignore=["w"])
    assert by_name.groups[0].tolist() == frame.g[frame.index % 3 != 1].tolist()
    groups = frame.g.to_numpy(), 100 + frame.g.to_numpy()
    by_array = taken(holes, holes, missing="drop", groups=groups, ignore=["w", "g"])
    for one, other in zip(by_name.groups, by_array.groups, strict=True):
        np.testing.assert_array_equal(one, other)
    weighted = taken(holes, holes, missing="drop", reference_weights="w", ignore=["g"])
    assert weighted.weights.tolist() == frame.w[frame.index % 3 != 1].tolist()
    for wrong in ((groups[0][1:], groups[1]), (groups[0], groups[1][1:])):
        with pytest.raises(
            ValueError, match=r"the groups of .* must have shape \(30,\), one a row"
        ):
            taken(holes, holes, missing="drop", groups=wrong)


@pytest.mark.parametrize("of", ["reference", "data"])
def test_if_no_row_is_left_that_is_said(of):
    frame = pd.DataFrame({"x": X, "y": Y})
    holes = frame.assign(x=np.where(np.arange(30) % 2, np.nan, X),
                         y=np.where(np.arange(30) % 2, Y, np.nan))  # fmt: skip
    two = (holes, frame) if of == "reference" else (frame, holes)
    with pytest.raises(ColumnsError, match=f"^every row of {of} lacks a value, and none is left"):
        taken(*two, missing="drop")


@pytest.mark.parametrize("name", ["groups", "strata", "reference_weights"])
def test_columns_beside_the_features_go_by_their_names(name):
    reference = pd.DataFrame({"x": X, "y": Y, "beside": 1 + np.arange(30) % 6})
    data = pd.DataFrame(
        {"beside": (1 + np.arange(30) % 6) + 6 * (name == "groups"), "y": Y, "x": X}
    )
    arrays = reference.beside.to_numpy(), data.beside.to_numpy()
    by_name = taken(reference, data, **{name: "beside"})
    given = arrays[0] if name == "reference_weights" else arrays
    by_array = taken(reference, data, **{name: given}, ignore=["beside"])
    assert by_name.encoding.labels == by_array.encoding.labels == ["x", "y"]
    field = "weights" if name == "reference_weights" else name
    np.testing.assert_array_equal(getattr(by_name, field), getattr(by_array, field))
    texts = {name: "where"}
    if name != "reference_weights":
        where = [f"site {i}" for i in reference.beside]
        named = taken(reference.assign(where=where), data.assign(where=where), **texts,
                      ignore=["beside"])  # fmt: skip
        assert getattr(named, field)[0].tolist() == where


def test_a_pool_of_the_simulator_is_encoded_alike():
    rng = np.random.default_rng(0)
    reference, data, pool = (frame_of(rng, n) for n in (60, 30, 200))
    pool = pool.assign(colour=np.where(np.arange(200) < 20, "violet", pool.colour))[
        ["when", "good", "colour", "weight", "size", "id"]
    ]
    intake = taken(reference, data, null=sparker.Simulator(pool), ignore=["id"])
    assert "colour is violet" in intake.encoding.labels  # the toys have it
    expected, _ = more_rows("pool", pool, intake.encoding, "indicator")
    np.testing.assert_array_equal(intake.null.source, expected.points)
    dropped = taken(reference, data, null=sparker.Simulator(pool), ignore=["id"], missing="drop")
    assert len(dropped.null.source) == (~pool.isna().any(axis=1)).sum()


def test_weights_of_a_pool_and_of_the_reference_by_the_names_of_columns():
    rng = np.random.default_rng(0)
    reference, pool, data = (
        pd.DataFrame(rng.normal(size=(n, 2)), columns=["x", "y"]) for n in (60, 90, 30)
    )
    pool.loc[3, "x"] = np.nan
    weights, pool_weights = rng.uniform(1, 2, 60), rng.uniform(1, 2, 90)
    by_name = taken(
        reference.assign(w=weights), data, missing="drop",
        null=sparker.Simulator(pool.assign(w_pool=pool_weights), "w_pool", "w"),
    )  # fmt: skip
    by_array = taken(
        reference, data, missing="drop", null=sparker.Simulator(pool, pool_weights, weights)
    )
    for intake in (by_name, by_array):
        assert intake.encoding.labels == ["x", "y"]
        np.testing.assert_array_equal(intake.weights, weights)
        np.testing.assert_array_equal(intake.null.pool_weights, np.delete(pool_weights, 3))
        assert len(intake.null.source) == 89
    assert codes(by_name) == ["dropped rows"]
    with pytest.raises(ColumnsError, match="the simulator's pool has no column 'w_pol'"):
        taken(reference, data, null=sparker.Simulator(pool, "w_pol", weights))


# Results

QUICK = {
    "n_toys": 9,
    "chunk": 10,
    "config": sparker.FitConfig(n_kernels=2),
    "widths": sparker.WidthConfig(steps=20, n_widths=2),
}


def spread(rng, sample):
    """A statistic that fits nothing: its answers cost no compilation."""
    return sample.data_weight @ np.sum(np.asarray(sample.points) ** 2, axis=1)


FITS_NOTHING = {"n_toys": 19, "statistic": spread}
STRANGE = set(range(2, 120, 5))


def samples_of(seed=0, n_reference=300, n_data=120, *, strange=True):
    rng = np.random.default_rng(seed)
    return frame_of(rng, n_reference), frame_of(rng, n_data, strange=strange)


@pytest.fixture(scope="module")
def mixed():
    return sparker.test(*samples_of(), **QUICK)


def test_a_result_with_columns_of_every_kind_is_saved_whole(mixed, tmp_path):
    mixed.save(tmp_path / "result.sparker")
    again = sparker.load(tmp_path / "result.sparker")
    assert again == mixed
    assert again.encoding == mixed.encoding
    assert again.warnings == mixed.warnings
    assert [one.code for one in again.warnings] == ["identifier"]
    for name, column in mixed.given.items():
        assert again.given[name].dtype == column.dtype
        np.testing.assert_array_equal(again.given[name], column)
    pd.testing.assert_frame_equal(again.rows(), mixed.rows())
    assert again.summary() == mixed.summary()
    plain = json.loads(json.dumps(mixed.to_dict(), allow_nan=False))
    assert plain == mixed.to_dict()
    assert again.encoding == mixed.encoding
    assert plain["warnings"][0]["code"] == "identifier"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda value: value["encoding"][0].pop(), "its encoding is of other columns"),
        (lambda value: value["encoding"][0][0].__setitem__(4, [1, 2]), "does not fit together"),
        (lambda value: value["encoding"][0][0].__setitem__(2, "colour"), "Invalid enum value"),
        (lambda value: value["warnings"].append(["code"]), "Expected `array` of length 2"),
        (lambda value: value.__setitem__("given", None), "Expected `object`"),
        (lambda value: value["given"].update(note=["too short"]), "Expected `array` of length 2"),
    ],
)
def test_a_damaged_encoding_is_refused(mixed, spoil, message, tmp_path):
    mixed.save(path := tmp_path / "result.sparker")
    value = value_of(path.read_bytes())
    spoil(value)
    path.write_bytes(with_text(path.read_bytes(), msgspec.json.encode(value)))
    with pytest.raises(ValueError, match=f"holds no test result .*({message})"):
        sparker.TestResult.load(path)


def test_the_users_columns_come_back_as_they_came(mixed):
    _, data = samples_of()
    rows = mixed.rows()
    assert isinstance(rows, pd.DataFrame)
    assert list(rows.columns[:4]) == ["row", "probability", "region", "p_value"]
    given = rows.set_index("row").sort_index()[data.columns]
    np.testing.assert_array_equal(given["size"], data["size"])
    np.testing.assert_array_equal(given["weight"], data["weight"])
    for name in ("colour", "good", "id"):
        assert given[name].where(given[name].notna(), None).tolist() == data[name].tolist()
    assert (given["when"] == data["when"]).all()


@pytest.mark.parametrize("library", ["polars", "pyarrow", "structured", "lazy polars"])
def test_rows_come_back_in_their_library(library):
    reference, data = samples_of()
    result = sparker.test(
        *(in_library(library, frame) for frame in (reference, data)), **FITS_NOTHING
    )
    rows = result.rows()
    kinds_ = {"polars": pl.DataFrame, "pyarrow": pa.Table, "lazy polars": pl.DataFrame}
    assert isinstance(rows, kinds_.get(library, np.ndarray))
    order = np.asarray(rows["row"])
    assert sorted(order) == list(range(len(data)))
    for name in ("colour", "good", "id"):
        found = rows[name].to_pylist() if library == "pyarrow" else list(rows[name])
        given = data[name].iloc[order]
        assert found == given.astype(object).where(given.notna(), None).tolist()
    times = rows["when"].to_pylist() if library == "pyarrow" else rows["when"]
    np.testing.assert_array_equal(np.array(times, "M8[us]"), data["when"].iloc[order])


def test_a_series_comes_back_as_a_frame_of_its_library():
    for make in (pd.Series, pl.Series):
        result = sparker.test(make(X), make(X + 1), **FITS_NOTHING)
        assert library_of(result.rows()) == library_of(make(X))
        assert result.column_labels == ["column 0"]


def test_new_rows_are_scored_whatever_the_order_of_their_columns(mixed):
    _, data = samples_of()
    f = mixed.log_ratio(data)
    np.testing.assert_allclose(f, mixed.data_log_ratio, rtol=1e-5, atol=1e-6)
    back = data[list(data.columns)[::-1]].drop(columns="id").assign(further=1)
    np.testing.assert_array_equal(mixed.log_ratio(back), f)
    for library in ("polars", "pyarrow", "categorical", "structured"):
        np.testing.assert_array_equal(mixed.log_ratio(in_library(library, data)), f)
    with pytest.raises(ColumnsError, match=r"- colour: rows has no such column\n"):
        mixed.log_ratio(data.drop(columns="colour"))
    as_they_are = mixed.log_ratio(data.assign(colour="never seen", weight=np.nan))
    assert np.isfinite(as_they_are).all()


def test_the_answers_speak_of_the_users_columns(mixed):
    columns = mixed.columns()
    assert set(columns["column"]) == {
        *("size", "weight", "weight is missing", "colour", "colour is missing", "good"),
        *("when", "hour of when", "weekday of when"),
    }
    alone = columns.set_index("column")
    assert alone.loc["colour", "test"] == "chi-square"
    assert np.isnan(alone.loc["colour", "reference_median"])
    assert alone.loc["size", "p_value"] <= 0.05
    assert alone.loc["colour", "p_value"] <= 0.05
    assert alone.loc["when", "p_value"] > 0.05
    assert mixed.p_value == 0.1
    first = mixed.answers.regions[0]
    assert first.is_significant(0.05)
    assert len(STRANGE - set(first.rows)) <= 2
    rule = first.rule(mixed.features)
    said = " ".join(mixed.summary().split())
    assert "< size" in rule or "size >" in rule
    assert rule in " ".join(dataclasses.replace(mixed, level=Level.of(0.1)).summary().split())
    assert "Warning column id was left out: it has another text" in said


def test_dropped_rows_keep_the_numbers_of_the_others(tmp_path):
    reference, data = samples_of()
    data = data.assign(weight=np.where(np.arange(len(data)) % 4 == 0, np.nan, 1.0 * data.index))
    reference = reference.assign(weight=np.arange(len(reference)) % len(data) + 0.5)
    result = sparker.test(reference, data, missing="drop", **FITS_NOTHING)
    left = data.index[~data.isna().any(axis=1)].to_numpy()
    strange = STRANGE & set(left)
    np.testing.assert_array_equal(result.data_rows, left)
    rows = result.rows()
    np.testing.assert_array_equal(rows["weight"], rows["row"])  # each with its own number
    np.testing.assert_array_equal(rows["id"], data["id"].iloc[rows["row"]])
    plain = result.to_dict()
    assert plain["data_rows"] == len(left) < len(data)
    assert [row["row"] for row in plain["rows"]["most_anomalous"]] == rows["row"][:10].tolist()
    assert set(plain["rows"]["flagged"]) <= set(left)
    assert len(strange & {*rows["row"][:10]}) >= 5  # by the numbers before, 1 or 2 would be
    inside = set(plain["regions"][0]["rows"])
    assert inside <= set(left)
    assert len(strange - inside) <= 2
    named = [line for line in result.summary().splitlines() if line.startswith("Rows")]
    assert {int(row) for row in named[0].split("most anomalous: ")[1].split(", ")} <= set(left)
    n = len(data) - len(left)
    assert f"{n} of the 120 rows of data lack a value and were dropped" in " ".join(
        result.summary().split()
    )
    result.save(tmp_path / "result.sparker")
    assert sparker.load(tmp_path / "result.sparker") == result
    by_hand = sparker.test(
        reference.dropna().reset_index(drop=True), data.dropna().reset_index(drop=True),
        **FITS_NOTHING,
    )  # fmt: skip
    assert result.p_value == by_hand.p_value
    np.testing.assert_array_equal(result.null_t, by_hand.null_t)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", None])
def test_tables_hold_whatever_a_column_may_be(kind):
    table = {
        "row": np.array([2, 0, 1]),
        "truth": cells(True, None, False),
        "text": cells("a", None, "b"),
        "nothing": cells(None, None, None),
        "time": DAYS[[0, 1, 0]],
        "": np.array([1.0, np.nan, 2.0]),
    }
    frame = as_frame(table, kind)
    names = {"pyarrow": "column_names", None: "dtype"}.get(kind, "columns")
    found = getattr(frame, names)
    assert len(found.names if kind is None else list(found)) == 6
    text = frame["text"].to_pylist() if kind == "pyarrow" else list(frame["text"])
    assert [None if value != value else value for value in text] == ["a", None, "b"]


# Exactness


def test_a_frame_of_numbers_is_the_array_to_the_bit():
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(200, 2)), rng.normal(size=(60, 2))
    data[:8] = [2, 2] + 0.05 * rng.normal(size=(8, 2))
    names = ["x", "y"]
    array = sparker.test(reference, data, explain=False, **QUICK)
    others = [
        [pd.DataFrame(rows, columns=names) for rows in (reference, data)],
        [pl.DataFrame(rows, schema=names) for rows in (reference, data)],
        [rows.tolist() for rows in (reference, data)],
        [Table(rows, ("x", "y")) for rows in (reference, data)],
        [pd.DataFrame(reference, columns=names), pl.DataFrame(data, schema=names)[["y", "x"]]],
    ]
    for given in others:
        result = sparker.test(*given, explain=False, **QUICK)
        assert result.p_value == array.p_value
        assert result.combined_score == array.combined_score
        np.testing.assert_array_equal(result.null_statistics, array.null_statistics)
        np.testing.assert_array_equal(result.statistics, array.statistics)
        np.testing.assert_array_equal(result.data, data)
        assert result.given == {}
    constant = [rows.assign(id=np.arange(len(rows))) for rows in others[0]]
    left_out = sparker.test(*constant, explain=False, **QUICK)  # and nothing of it is left
    assert left_out.p_value == array.p_value
    np.testing.assert_array_equal(left_out.null_statistics, array.null_statistics)


def false_alarms(n_tests, level, **settings):
    """How often samples of the same distribution differ."""
    alarms = 0
    for seed in range(n_tests):
        reference, data = samples_of(1000 + seed, 60, 40, strange=False)
        result = sparker.test(reference, data, ignore=["id"], explain=False, seed=seed, **settings)
        alarms += result.p_value <= level
    return alarms


def test_columns_of_every_kind_keep_the_level():
    alarms = false_alarms(200, 0.1, n_toys=9, statistic=spread)
    assert binom.cdf(alarms, 200, 0.1) > 1e-3
    assert binom.sf(alarms - 1, 200, 0.1) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["indicator", "drop"])
def test_kernels_keep_the_level_with_columns_of_every_kind(missing):
    alarms = false_alarms(400, 0.1, missing=missing, **QUICK)
    assert binom.cdf(alarms, 400, 0.1) > 1e-3
    assert binom.sf(alarms - 1, 400, 0.1) > 1e-3


def test_categories_that_are_called_by_numbers_are_categories():
    codes = pd.Series([1, None, 3, 3] * 10).astype("category")
    table = as_table("data", pd.DataFrame({"grade": codes}))
    assert kind_of([table.column(0)]) == Kind.CATEGORY
    assert table.column(0)[:3].tolist() == ["1.0", None, "3.0"]  # what pandas makes of them


def test_a_function_of_rows_is_given_the_numbers_of_a_file(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("reference", 60), ("data", 20)):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(n, 2)))
    reference, data = (
        sparker.tables.read(tmp_path / f"{name}.npy") for name in ("reference", "data")
    )
    seen = []

    def weights(rows):
        seen.append(rows.shape)
        return np.exp(0.1 * rows[:, 0])

    config = TestConfig(reference_weights=weights)
    found = two_samples(reference, data, config)
    assert seen == [(60, 2), (20, 2), (1, 2)]
    np.testing.assert_allclose(found.weights[1], np.exp(0.1 * data.points[:, 0]))


def test_files_and_columns_by_name_are_tables(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n1,x\n2,y\n")
    for given in (file, str(file), {"a": [1.0, 2.0], "b": ["x", "y"]}):
        table = as_table("data", given)
        assert table.columns == ("a", "b")
        assert table.points[:, 0].tolist() == [1, 2]
        assert table.column(1).tolist() == ["x", "y"]
    with pytest.raises(FileNotFoundError, match=r"there is no file no\.csv"):
        as_table("data", "no.csv")
    with pytest.raises(ValueError, match=r"same number of rows, got a \(2,\), b \(1,\)"):
        as_table("data", {"a": [1, 2], "b": [1]})
    with pytest.raises(ValueError, match="data is empty"):
        as_table("data", {})


# Percentages, and columns without names.


def shares(*values):
    return cells(*[None if value is None else f"{value}%" for value in values])


def test_percentages_are_numbers():
    rng = np.random.default_rng(0)
    one, other = (rng.uniform(0, 100, n).round(1).tolist() for n in (80, 40))
    tables = [{"pct": shares(None, *part), "x": rng.normal(size=1 + len(part))}
              for part in (one, other)]  # fmt: skip
    for make in (lambda table: table, pd.DataFrame, pl.DataFrame):
        found = taken(*map(make, tables))
        assert found.encoding.columns[0].kind == Kind.NUMBER
        assert found.data[1:, 0].tolist() == other
    assert more_rows("batch", tables[1], found.encoding, "indicator")[0].points.tolist() == (
        found.data.tolist()
    )


def test_percentages_are_not_compared_with_plain_numbers():
    rng = np.random.default_rng(0)
    written, plain = shares(*rng.uniform(0, 100, 40).round(1)), rng.random(40)
    with pytest.raises(ColumnsError, match="percentages in data, and plain numbers in ref"):
        taken({"p": plain}, {"p": written})
    with pytest.raises(ColumnsError, match=r"percentages, such as .* and 60 plain numbers"):
        taken({"p": written}, {"p": cells(*written[:20], *map(str, plain[:20]))})
    found = taken({"p": written, "x": plain}, {"p": cells(*[None] * 40), "x": plain + 0.5})
    assert [one.kind for one in found.encoding.columns] == [Kind.NUMBER] * 2


def test_an_index_that_other_libraries_read_is_left_out_too():
    rng = np.random.default_rng(0)
    tables = [pl.DataFrame({"": rng.permutation(n), "x": rng.normal(size=n)}) for n in (50, 30)]
    with pytest.warns(DataWarning, match="the first column of reference and data was left out"):
        found = taken(*tables)
    assert [one.name for one in found.encoding.columns] == ["x"]
    assert found.encoding.left_out[0].name == "the first column"
    on_purpose = taken(*tables, ignore=[""])
    assert (on_purpose.cautions, on_purpose.encoding.features) == ((), found.encoding.features)
    batch, _ = more_rows("batch", tables[1], found.encoding, "indicator")
    assert batch.points.tolist() == found.data.tolist()
    again = [one.with_columns(pl.Series("", rng.integers(0, 5, len(one)))) for one in tables]
    assert len(taken(*again).encoding.columns) == 2  # a measurement, if nobody named it
