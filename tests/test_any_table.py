"""Whatever comes in, there is an answer, or an error that says what to do; never anything else."""

import csv
import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sparker
from sparker.cli.main import main
from sparker.config import TestConfig
from sparker.detect import prepare
from sparker.intake import two_samples
from sparker.system import archive

properties = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

START = datetime(2024, 1, 1)
ZONE = timezone(timedelta(hours=2))

FINE = {
    "normal": lambda rng, n: rng.normal(size=n).tolist(),
    "skewed": lambda rng, n: np.exp(20 * rng.normal(size=n)).tolist(),
    "few": lambda rng, n: rng.integers(-3, 4, n).tolist(),
    "single": lambda rng, n: list(rng.normal(size=n).astype(np.float32)),
    "large": lambda rng, n: [int(x) * 2**60 for x in rng.integers(1, 9, n)],
    "extreme": lambda rng, n: rng.choice([1e150, -1e150, 1e-100, 0.0], n).tolist(),
    "decimal": lambda rng, n: [Decimal(int(k)) / 8 for k in rng.integers(0, 99, n)],
    "duration": lambda rng, n: [timedelta(seconds=int(k)) for k in rng.integers(0, 99, n)],
    "counter": lambda rng, n: list(range(n)),
    "constant": lambda rng, n: [7.5] * n,
    "nothing": lambda rng, n: [None] * n,
    "truth": lambda rng, n: rng.choice([True, False], n).tolist(),
    "truth in words": lambda rng, n: rng.choice(["True", "false "], n).tolist(),
    "colour": lambda rng, n: rng.choice(["red", "green", "blue"], n).tolist(),
    "often or rare": lambda rng, n: [f"v{int(x)}" for x in rng.exponential(5, n)],
    "code": lambda rng, n: [f"{x:08x}" for x in rng.integers(0, 2**32, n)],
    "odd words": lambda rng, n: rng.choice(["", " ", "\n", "NaN", "None", "é", "-"], n).tolist(),
    "byte": lambda rng, n: [bytes([int(k)]) for k in rng.integers(60, 70, n)],
    "day": lambda rng, n: [date(2024, 1, 1) + timedelta(int(k)) for k in rng.integers(0, 99, n)],
    "time": lambda rng, n: [START + timedelta(minutes=int(k)) for k in rng.integers(0, 10**5, n)],
    "zone": lambda rng, n: [
        (START + timedelta(hours=int(k))).replace(tzinfo=ZONE) for k in rng.integers(0, 999, n)
    ],
    "day in words": lambda rng, n: [f"2024-{int(m):02}-01" for m in rng.integers(1, 13, n)],
    "end of days": lambda rng, n: rng.choice(
        ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "2024-01-01"], n
    ).tolist(),
    "clock": lambda rng, n: [time(int(k)) for k in rng.integers(0, 24, n)],
}
WRONG = {
    "infinite": lambda rng, n: rng.choice([1.0, np.inf, -np.inf], n).tolist(),
    "beyond": lambda rng, n: rng.choice([1.0, 1.7e308], n).tolist(),
    "beyond all floats": lambda rng, n: [10**400] * n,
    "prose": lambda rng, n: ["word " * int(k) for k in rng.integers(1, 60, n)],
    "number in words": lambda rng, n: [f"{x:.5f}" for x in rng.normal(size=n)],
    "comma": lambda rng, n: [f"{x:.5f}".replace(".", ",") for x in rng.normal(size=n)],
    "stray": lambda rng, n: [*rng.normal(size=n - 1).tolist(), "?"],
    "no day": lambda rng, n: [f"2024-{int(m):02}-31" for m in rng.integers(1, 13, n)],
    "list": lambda rng, n: [[1.0] * int(k) for k in rng.integers(0, 3, n)],
    "record": lambda rng, n: [{"a": 1}] * n,
    "surrogate": lambda rng, n: ["\ud800"] * n,
    "anything": lambda rng, n: [
        [1.5, "a", True, None, date(2024, 1, 1), np.nan, np.inf, "2", b"x", Decimal(1)][int(k)]
        for k in rng.integers(0, 10, n)
    ],
}
COLUMNS = FINE | WRONG
NUMBERS = {"normal", "skewed", "few", "single", "extreme", "counter", "constant", "nothing"}
NAMES = [
    *("x", "", " ", "id", "event_id", "row", "p_value", "probability", "region", "column 0", "0"),
    *("x is missing", "a is b", "time", "a,b", "x\ny", "é", "weight", '"q"', "None", "[x]"),
]


def column(kind, rng, n_rows, gaps):
    values = COLUMNS[kind](rng, n_rows)
    gone = rng.random(n_rows) < gaps
    return [None if lost else value for lost, value in zip(gone, values, strict=True)]


def objects(values):
    found = np.empty(len(values), object)
    found[:] = values
    return found


def in_fields(columns):
    kinds = [(name or "unnamed", object) for name in columns]
    found = np.empty(len(next(iter(columns.values()))), kinds)
    for (name, _), values in zip(kinds, columns.values(), strict=True):
        found[name] = objects(values)
    return found


def in_array(columns):
    return np.array([[np.nan if v is None else v for v in c] for c in columns.values()], float).T


LIBRARIES = {
    "pandas": lambda columns: pd.DataFrame(
        {name: pd.Series(values, dtype=object).infer_objects() for name, values in columns.items()}
    ),
    "objects in pandas": lambda columns: pd.DataFrame(
        {name: pd.Series(values, dtype=object) for name, values in columns.items()}
    ),
    "polars": lambda columns: pl.DataFrame(
        {name: pl.Series(values, strict=False) for name, values in columns.items()}
    ),
    "pyarrow": lambda columns: pa.table(columns),
    "objects": lambda columns: np.column_stack([objects(values) for values in columns.values()]),
    "fields": in_fields,
    "array": in_array,
    "masked": lambda columns: np.ma.masked_invalid(in_array(columns)),
}


@st.composite
def tables(draw, sizes, columns=tuple(COLUMNS), may_differ=True):
    """Two tables with much the same columns, of one library or two; None if it refuses them."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    kinds = [draw(st.sampled_from(columns)) for _ in names]
    gaps = [draw(st.sampled_from([0, 0, 0.2, 0.9, 1])) for _ in names]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_reference, n_data = draw(st.sampled_from(sizes))
    reference = {
        name: column(kind, rng, n_reference, gap)
        for name, kind, gap in zip(names, kinds, gaps, strict=True)
    }
    others = list(kinds)
    if may_differ and draw(st.booleans()):
        others[0] = draw(st.sampled_from(columns))
    full = draw(st.booleans())
    data = {
        name: column(kind, rng, n_data, gap * (not full))
        for name, kind, gap in zip(names, others, gaps, strict=True)
    }
    if may_differ and draw(st.booleans()):
        data = {name: data[name] for name in draw(st.permutations(names))}
    if may_differ and draw(st.integers(0, 9)) == 0:
        data["further"] = column("normal", rng, n_data, 0)
    libraries = [name for name in LIBRARIES if name not in ("array", "masked")]
    if {*kinds, *others} <= NUMBERS:
        libraries = ["array", "masked", *libraries]
    first = draw(st.sampled_from(libraries))
    second = draw(st.sampled_from([first, first, *libraries]))
    try:
        return names, LIBRARIES[first](reference), LIBRARIES[second](data)
    except (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
        return None  # the library does not take such columns


def settings_of(names):
    name = st.sampled_from([*names, "0", "none"])
    return st.fixed_dictionaries(
        {"missing": st.sampled_from(["indicator", "indicator", "drop", "drop", "error"])},
        optional={
            "keep": st.lists(name, max_size=2),
            "ignore": st.lists(name, max_size=1),
            "columns": st.lists(name, max_size=2),
            "strict": st.booleans(),
        },
    )


def refused(error):
    """An error that one can read."""
    assert str(error).strip()
    assert "Traceback" not in str(error)
    assert len(max(str(error).splitlines(), key=len)) < 2000


SIZES = [(30, 20), (90, 40), (20, 30), (5, 2), (2, 5), (1, 1), (1, 30), (30, 1)]


@properties
@given(st.data())
def test_two_tables_become_numbers_or_are_refused(data):
    drawn = data.draw(tables(SIZES))
    if drawn is None:
        return
    names, reference, rows = drawn
    how = data.draw(settings_of(names))
    beside = data.draw(st.sampled_from([None] * 6 + ["groups", "strata", "reference_weights"]))
    how |= {beside: names[-1]} if beside else {}
    try:
        intake = two_samples(reference, rows, TestConfig(**how))
    except ValueError as error:
        refused(error)
        return
    shown = intake.reference
    assert intake.data.shape[1] == shown.shape[1] == len(intake.encoding.features)
    assert np.isfinite(intake.data).all()
    assert np.isfinite(shown).all()
    assert len(set(intake.encoding.labels)) == intake.data.shape[1]
    assert json.dumps(intake.encoding.to_dict(), allow_nan=False)
    saved = archive.packed("x", intake.encoding)
    assert archive.unpacked(saved, {"x": type(intake.encoding)}) == intake.encoding
    assert {len(given_) for given_ in intake.given.values()} <= {len(intake.data)}
    if how["missing"] != "drop":
        assert intake.data_rows is None


@settings(properties, max_examples=40)
@given(tables(SIZES))
def test_a_test_is_prepared_or_refused(drawn):
    if drawn is None:
        return
    _, reference, rows = drawn
    config = TestConfig(n_toys=2, statistic=spread)
    try:
        prepare(reference, rows, config)
    except ValueError as error:
        refused(error)


def spread(rng, sample):
    """A statistic that fits nothing and compiles nothing."""
    return sample.data_weight @ np.sum(np.asarray(sample.points) ** 2, axis=1)


@settings(properties, max_examples=60)
@given(st.data())
def test_a_test_has_answers_or_is_refused(data):
    drawn = data.draw(tables([(40, 25), (6, 5), (1, 1)], tuple(FINE), may_differ=False))
    if drawn is None:
        return
    names, reference, rows = drawn
    how = {
        "missing": data.draw(st.sampled_from(["indicator", "drop"])),
        "keep": names if hasattr(reference, "columns") else (),
        "explain": data.draw(st.sampled_from([True, True, False])),
    }
    try:
        result = sparker.test(reference, rows, n_toys=2, statistic=spread, **how)
    except ValueError as error:
        refused(error)
        return
    assert 0 < result.p_value <= 1
    assert result.summary()
    assert not [note for note in result.notes if "is not known" in note]  # as when it failed
    json.dumps(result.to_dict(), allow_nan=False)
    if how["explain"]:
        frame = result.rows()
        assert len(frame) == len(result.data)
        if isinstance(frame, np.ndarray):
            found = frame.dtype.names
        else:
            found = frame.column_names if isinstance(frame, pa.Table) else frame.columns
        assert len(found) >= 3 + len(result.encoding.columns)
        result.regions()
        result.columns()


@pytest.mark.parametrize("seed", range(6))
def test_kernels_take_whatever_is_encoded(seed):
    """Few columns of one number of features, so that one program serves them all."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(["normal", "skewed", "few", "duration", "decimal", "day in words"], 2)
    reference, data = (
        pd.DataFrame({f"{i}": column(kind, rng, n, 0) for i, kind in enumerate(kinds)})
        for n in (40, 25)
    )
    result = sparker.test(
        reference, data, n_toys=1, explain=bool(seed == 0), keep=["0", "1"],
        config=sparker.FitConfig(n_kernels=1), widths=sparker.WidthConfig(steps=10, n_widths=2),
    )  # fmt: skip
    assert result.p_value in (0.5, 1.0)
    f = result.log_ratio(data[["1", "0"]])
    np.testing.assert_allclose(f, result.data_log_ratio, rtol=1e-4, atol=1e-5)


# The command line


def write(path, names, columns, between, header):
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.writer(file, delimiter=between)
        if header:
            writer.writerow(names)
        writer.writerows(zip(*columns, strict=True))


@settings(properties, max_examples=80)
@given(st.data())
def test_any_file_ends_with_an_exit_code_that_says_why(tmp_path, data):
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    usual = data.draw(st.sampled_from([tuple(FINE), tuple(FINE), tuple(COLUMNS)]))
    kinds = [data.draw(st.sampled_from(usual)) for _ in names]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sizes = data.draw(st.sampled_from([(40, 25), (40, 25), (6, 5), (1, 1)]))
    between = data.draw(st.sampled_from(",;\t"))
    header = data.draw(st.sampled_from([True, True, True, False]))
    files = [tmp_path / "reference.csv", tmp_path / "data.csv"]
    for path, n_rows in zip(files, sizes, strict=True):
        gaps = data.draw(st.sampled_from([0, 0.2, 1]))
        write(path, names, [column(kind, rng, n_rows, gaps) for kind in kinds], between, header)
    if data.draw(st.integers(0, 9)) == 0:  # a wrong byte somewhere
        content = bytearray(files[0].read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        files[0].write_bytes(content)
    arguments = ["test", *map(str, files), "--toys", "2", "--statistic", "mahalanobis", "--alpha",
                 "0.5", "--rows", str(tmp_path / "rows.csv")]  # fmt: skip
    arguments += ["--missing", data.draw(st.sampled_from(["indicator", "drop", "error"]))]
    arguments += data.draw(st.sampled_from([[], ["--json"], ["--strict"]]))
    arguments += data.draw(st.sampled_from([[], ["--keep", names[0]], ["--ignore", names[0]]]))
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code in (0, 1, 2), done.output
    if done.exit_code == 2:
        assert done.stderr.strip()
        assert "Traceback" not in done.stderr
    elif "--json" in arguments:
        assert (json.loads(done.stdout)["decision"]["outcome"] == "significant difference") is bool(
            done.exit_code
        )
    told = CliRunner().invoke(main, ["info", str(files[0])])
    assert told.exit_code in (0, 2), told.output
