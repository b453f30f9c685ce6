"""Files in: every format gives the same table, and whatever is wrong is said in a sentence."""

import gzip
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from threading import Thread

import awkward
import h5py
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
import uproot
from click.testing import CliRunner
from plain_encoding import plain_encoding

import sparker
from sparker import intake
from sparker.cli.main import main
from sparker.config import TestConfig
from sparker.intake import two_samples
from sparker.tables import FileError, Table, apart, describe, files, read, source
from sparker.tables.columns import choose
from sparker.tables.errors import ColumnsError
from sparker.tables.frames import as_table
from sparker.tables.kinds import Kind, kind_of
from sparker.tables.rows import by_name, digits_lost, more_rows

pytestmark = pytest.mark.unit

RNG = np.random.default_rng(0)
N = 20
PT, ETA = RNG.exponential(size=N), RNG.normal(size=N)
WEIGHT = RNG.uniform(size=N)
RUN = np.arange(N) + 2**60  # an id that a float would round
LABEL = np.array([f"kind {i % 3}" for i in range(N)], object)
COLUMNS = {"pt": PT, "eta": ETA, "weight": WEIGHT, "run": RUN, "label": LABEL}
MATRIX = np.stack([PT, ETA, WEIGHT], 1)


def frame() -> pd.DataFrame:
    return pd.DataFrame(COLUMNS)


def compound(columns=COLUMNS) -> np.ndarray:
    kinds = [(name, "U10" if a.dtype == object else a.dtype) for name, a in columns.items()]
    array = np.empty(N, kinds)
    for name, column in columns.items():
        array[name] = column
    return array


def to_hdf5(path, columns=COLUMNS, group="events"):
    with h5py.File(path, "w") as file:
        for name, column in columns.items():
            file[f"{group}/{name}"] = column


def to_compound_hdf5(path):
    text = h5py.string_dtype(length=10)
    kinds = [(name, text if a.dtype == object else a.dtype) for name, a in COLUMNS.items()]
    array = np.empty(N, kinds)
    for name, column in COLUMNS.items():
        array[name] = column
    with h5py.File(path, "w") as file:
        file["events"] = array


def to_tree(path, columns=COLUMNS, name="events"):
    numbers = {key: a for key, a in columns.items() if a.dtype != object}
    with uproot.recreate(path) as file:
        tree = file.mktree(name, {key: a.dtype for key, a in numbers.items()})
        tree.extend(numbers)
        tree.extend({key: a[:0] for key, a in numbers.items()})


def to_ntuple(path, columns=COLUMNS):
    with uproot.recreate(path) as file:
        file.mkrntuple(
            "events", {key: awkward.Array(column.tolist()) for key, column in columns.items()}
        )


def to_json_lines(path):
    rows = frame().to_dict("records")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


NAMED = {
    "events.csv": lambda path: frame().to_csv(path, index=False),
    "events.CSV": lambda path: frame().to_csv(path, index=False, sep=";"),
    "events.csv.gz": lambda path: frame().to_csv(path, index=False),
    "events.tsv": lambda path: frame().to_csv(path, index=False, sep="\t"),
    "events.tsv.gz": lambda path: frame().to_csv(path, index=False, sep="\t"),
    "events.jsonl": to_json_lines,
    "events.jsonl.gz": to_json_lines,
    "events.ndjson": to_json_lines,
    "events.parquet": lambda path: frame().to_parquet(path, index=False),
    "events.npy": lambda path: np.save(path, compound()),
    "events.npz": lambda path: np.savez(path, **COLUMNS | {"label": LABEL.astype(str)}),
    "fields.npz": lambda path: np.savez_compressed(path, any_name=compound()),
    "events.h5": to_hdf5,
    "fields.hdf5": to_compound_hdf5,
    "tree.root": to_tree,
    "ntuple.root": to_ntuple,
}
UNNAMED = {
    "matrix.npy": lambda path: np.save(path, MATRIX),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(MATRIX)),
    "bigendian.npy": lambda path: np.save(path, MATRIX.astype(">f8")),
    "matrix.npz": lambda path: np.savez(path, X=MATRIX),
    "matrix.csv": lambda path: np.savetxt(path, MATRIX, delimiter=",", fmt="%.17g"),
    "matrix.tsv.gz": lambda path: np.savetxt(path, MATRIX, delimiter="\t", fmt="%.17g"),
    "matrix.h5": lambda path: h5_matrix(path, X=MATRIX),
    "matrix.jsonl": lambda path: path.write_text("\n".join(map(json.dumps, MATRIX.tolist()))),
}


def h5_matrix(path, **arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


@pytest.fixture
def make(tmp_path):
    """A file of text, bytes, or whatever a function writes."""

    def make(name, content):
        path = tmp_path / name
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_bytes(content.encode())
        return path

    return make


@pytest.fixture
def read_here(monkeypatch):
    """Files are read by this process, whose readers a test can change."""
    here = {suffix: kind._replace(apart=False) for suffix, kind in files.FORMATS.items()}
    monkeypatch.setattr(files, "FORMATS", here)


def refuse(path, *messages, **settings):
    """The error names the file first, and then says this; it is one line."""
    with pytest.raises(FileError) as caught:
        read(path, **settings)
    text = str(caught.value)
    assert text.startswith(re.sub(r"(\.\w+):.*", r"\1", str(path))), text
    assert "\n" not in text
    for message in messages:
        assert re.search(message, text), text


# --- What comes in --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("rows_at_a_time", [3, 8192])
def test_named_columns_come_back_in_every_format(make, monkeypatch, name, rows_at_a_time):
    monkeypatch.setattr(source, "BLOCK_ROWS", rows_at_a_time)
    path = make(name, NAMED[name])
    extra = ["weight", "run"] + ["label"] * (name != "tree.root")
    table = read(path, extra=extra)
    assert sorted(table.columns) == ["eta", "pt"]  # some formats keep them in their own order
    assert list(table.extra) == extra
    order = [["pt", "eta"].index(column) for column in table.columns]
    np.testing.assert_array_equal(table.points, MATRIX[:, order])
    np.testing.assert_array_equal(table.extra["weight"], WEIGHT)
    np.testing.assert_array_equal(table.extra["run"], RUN)
    assert table.extra["run"].dtype == np.int64
    if "label" in extra:
        assert table.extra["label"].dtype == object
        assert table.extra["label"].tolist() == LABEL.tolist()


@pytest.mark.parametrize("name", NAMED)
def test_columns_are_chosen_by_name_and_in_the_order_asked_for(make, name):
    path = make(name, NAMED[name])
    table = read(path, columns=["weight", "pt"], extra="pt")
    assert table.columns == ("weight", "pt")
    np.testing.assert_array_equal(table.points, MATRIX[:, [2, 0]])
    np.testing.assert_array_equal(table.extra["pt"], PT)
    rest = {"run", "label"} if name != "tree.root" else {"run"}
    assert set(read(path, ignore=rest).columns) == {"pt", "eta", "weight"}
    refuse(path, r"has no column 'WEIGHT' \(did you mean 'weight'\?\); it has ", columns=["WEIGHT"])
    refuse(path, r"has no column 'wieght' \(did you mean 'weight'\?\); it has ", columns=["wieght"])
    refuse(path, "has no column 'zzz'; it has .*eta", ignore=["zzz"])
    refuse(path, "has no column 'zzz'; it has .*eta", extra=["zzz"])


@pytest.mark.parametrize("name", UNNAMED)
@pytest.mark.parametrize("rows_at_a_time", [7, 8192])
def test_columns_without_names_go_by_their_numbers(make, monkeypatch, name, rows_at_a_time):
    monkeypatch.setattr(source, "BLOCK_ROWS", rows_at_a_time)
    path = make(name, UNNAMED[name])
    table = read(path)
    assert table.columns == ()
    assert table.points.dtype == np.dtype("=f8")
    np.testing.assert_array_equal(table.points, MATRIX)
    table = read(path, columns=["2", "0"], extra=["1"])
    assert table.columns == ()
    np.testing.assert_array_equal(table.points, MATRIX[:, [2, 0]])
    np.testing.assert_array_equal(table.extra["1"], ETA)
    assert table.extra["1"].dtype.isnative
    refuse(path, "has no column '3'; its columns have no names .* 0 to 2", columns=["3"])


def test_one_dimension_is_one_feature(make):
    path = make("x.npy", lambda path: np.save(path, PT))
    np.testing.assert_array_equal(read(path).points, PT[:, None])
    path = make("x.npz", lambda path: np.savez(path, pt=PT))
    table = read(path)
    assert table.columns == ("pt",)
    np.testing.assert_array_equal(table.points, PT[:, None])


SINGLE = {"a": PT.astype(np.float32), "b": ETA.astype(np.float32)}


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("x.npy", lambda path: np.save(path, MATRIX.astype(np.float32))),
        ("x.npy", lambda path: np.save(path, compound(SINGLE))),
        ("x.npy", lambda path: np.save(path, MATRIX.astype(np.float16))),
        ("x.npz", lambda path: np.savez(path, **SINGLE)),
        ("x.h5", lambda path: to_hdf5(path, SINGLE)),
        ("x.h5", lambda path: h5_matrix(path, x=MATRIX.astype(">f4"))),
        ("x.parquet", lambda path: pd.DataFrame(SINGLE).to_parquet(path)),
        ("x.root", lambda path: to_tree(path, SINGLE)),
    ],
)
def test_single_precision_stays(make, name, write):
    table = read(make(name, write))
    assert table.points.dtype == np.dtype("=f4")
    np.testing.assert_allclose(table.points[:, 0], PT, rtol=1e-3)


@pytest.mark.parametrize("other", [np.arange(N), ETA, ETA.astype(np.longdouble)])
def test_other_numbers_become_double_precision(make, other):
    path = make("x.npz", lambda path: np.savez(path, a=PT.astype(np.float32), b=other))
    table = read(path)
    assert table.points.dtype == np.float64
    np.testing.assert_array_equal(table.points[:, 1], other)


def test_a_table_goes_where_arrays_go(make):
    reference = read(make("reference.csv", NAMED["events.csv"]), columns=["pt", "eta"])
    data = read(make("data.parquet", NAMED["events.parquet"]), columns=["eta", "pt"])
    assert sparker.engine.as_points("reference", reference) is not None
    np.testing.assert_array_equal(np.asarray(reference), reference.points)
    assert np.asarray(reference, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="these columns hold no numbers: label"):
        np.asarray(read(make("data.csv", NAMED["events.csv"]), columns=["pt", "label"]))
    intake = two_samples(reference, data, TestConfig())
    np.testing.assert_array_equal(intake.data, MATRIX[:, :2])  # in the order of the reference
    assert intake.encoding.labels == ["pt", "eta"]


def test_the_points_are_ones_own(make):
    path = make("x.npy", lambda path: np.save(path, MATRIX))
    table = read(path)
    table.points[0] = 0  # no view of a file that may be gone tomorrow
    np.testing.assert_array_equal(read(path).points, MATRIX)


def test_what_stands_beside_a_matrix_can_be_extra(make):
    for path in (
        make("x.npz", lambda path: np.savez(path, X=MATRIX, w=WEIGHT, short=PT[:3])),
        make("x.h5", lambda path: h5_matrix(path, X=MATRIX, w=WEIGHT, short=PT[:3])),
    ):
        assert read(path, ignore=["w", 0]).points.shape == (N, 2)
        table = read(path, extra=["w", "0"])
        np.testing.assert_array_equal(table.points, MATRIX[:, 1:])
        np.testing.assert_array_equal(table.extra["w"], WEIGHT)
        refuse(path, "has no column 'short'; it has 0, 1, 2, w", extra=["short"])
        refuse(path, "has no column 'w'", columns=["w"])


def test_times_come_back_as_features_and_beside_them(make):
    times = pd.date_range("2026-01-01", periods=N).astype("datetime64[ns]")
    table = pd.DataFrame({"x": PT, "when": times})
    path = make("x.parquet", table.to_parquet)
    assert read(path, extra=["when"]).extra["when"].tolist() == times.to_numpy().tolist()
    table = read(path)
    assert [str(time)[:10] for time in times] == [text[:10] for text in table.others[1]]
    assert np.isnan(table.points[:, 1]).all()
    assert kind_of([table.column(1)]) == Kind.TIME


def test_the_index_of_pandas_is_no_column(make):
    path = make("x.parquet", frame()[["pt", "eta"]].iloc[[3, 1, 7]].to_parquet)
    assert "__index_level_0__" in pyarrow.parquet.read_schema(path).names
    assert read(path).columns == ("pt", "eta")


def test_parquet_of_many_kinds(make):
    columns = {
        "x": pyarrow.array([1, None, 3], pyarrow.int64()),
        "decimal": pyarrow.array([1, 2, 3], pyarrow.decimal128(5, 2)),
        "flag": pyarrow.array([True, None, False]),
        "word": pyarrow.array(["a", "b", "a"]).dictionary_encode(),
        "half": pyarrow.array(np.array([1, 2, 3], np.float16)),
    }
    path = make("x.parquet", lambda path: pyarrow.parquet.write_table(pyarrow.table(columns), path))
    table = read(path, columns=["decimal", "half"], extra=["x", "flag", "word"])
    np.testing.assert_array_equal(table.points, [[1, 1], [2, 2], [3, 3]])
    np.testing.assert_array_equal(table.extra["x"], [1, np.nan, 3])
    np.testing.assert_array_equal(table.extra["flag"], [1, np.nan, 0])
    assert table.extra["word"].tolist() == ["a", "b", "a"]
    table = read(path, columns=["x", "flag", "word"])
    np.testing.assert_array_equal(table.points[:, 0], [1, np.nan, 3])
    assert table.others[1].tolist() == [True, None, False]
    assert table.others[2].tolist() == ["a", "b", "a"]


# --- Text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\r1,2\r3,4\r",
        "\n\na,b\n1,2\n\n3,4\n\n  \n",
        "\ufeffa,b\n1,2\n3,4\n",
        "a;b\n1;2\n3;4\n",
        "a\tb\n1\t2\n3\t4\n",
        "a, b\n 1 , 2\n3, 4\n",
        '"a","b"\n"1","2"\n3,"4"\n',
        'a, "b"\n1, "2"\n3, "4"\n',
        "# a,b\n1,2\n3,4\n",
        "a,b\n1e0,2.\n+3,.4e1\n",
    ],
)
@pytest.mark.parametrize("rows_at_a_time", [1, 8192])
def test_text_is_read_however_it_is_written(make, monkeypatch, text, rows_at_a_time):
    monkeypatch.setattr(source, "BLOCK_ROWS", rows_at_a_time)
    table = read(make("x.csv", text))
    assert table.columns == ("a", "b")
    assert table.points.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "names", "n_rows"),
    [
        ("1,2\n3,4\n", (), 2),
        ("0,1\n0.5,1.5\n", ("0", "1"), 1),  # names that pandas gives
        ("0,1\n1,0\n", (), 2),
        ("0,1,weight\n0.5,1.5,1\n", ("0", "1", "weight"), 1),
        ("x\n1\n2\n", ("x",), 2),
        ("1\n2\n", (), 2),
        ("a b,x/y\n1,2\n", ("a b", "x/y"), 1),
        ('"a;b;c",d\n1,2\n', ("a;b;c", "d"), 1),
    ],
)
def test_the_first_line_is_names_or_numbers(make, text, names, n_rows):
    table = read(make("x.csv", text))
    assert table.columns == names
    assert len(table.points) == n_rows


def as_csv(header, rows):
    lines = [] if header is None else [header]
    return "\n".join([*lines, *(",".join(f"{x:g}" for x in row) for row in rows)]) + "\n"


def suspected(make, *texts):
    """What is said of first lines, of these files as reference and data."""
    tables = [read(make(f"{i}.csv", text)) for i, text in enumerate(texts)]
    cautions = two_samples(tables[0], tables[1], TestConfig()).cautions
    return [caution.text for caution in cautions if caution.code == "header"]


def test_a_line_of_names_that_are_numbers_is_suspected(make):
    rng = np.random.default_rng(3)
    reference, data = rng.normal(size=(60, 3)), rng.normal(size=(40, 3))
    counts = rng.integers(200, size=(100, 3))
    [text] = suspected(make, as_csv("0.5,100,7", reference), as_csv("0.5,100,7", data))
    assert text.startswith("reference and data begin with the same line of numbers. If it names")
    assert text.endswith(
        "write names there that are no numbers; if not, write such a line above it"
    )
    [text] = suspected(make, as_csv(None, counts[:60]), as_csv("0,1,2", counts[60:]))
    assert text.startswith("the first line of data counts the columns, which no other row does. If")
    years = ",".join(map(str, range(1990, 2020, 5)))
    wide = (np.hstack([rows, rows + 1]) for rows in (reference, data))
    texts = suspected(make, *(as_csv(years, rows) for rows in wide))
    assert [text.partition(" counts")[0] for text in texts] == [
        "the first line of reference",
        "the first line of data",
    ]
    words = "\n".join(f"{x},{'red' if x > 0 else 'blue'}" for x in reference[:, 0])
    [text, _] = suspected(make, f"7,9\n{words}\n", f"8,9\n{words}\n")
    assert "first line of reference is all numbers, while column 1 holds words. If it" in text
    column = as_csv("5", reference[:, :1]), as_csv("5", data[:, :1])
    assert len(suspected(make, *column)) == 1

    # It is said wherever the answer is, and strict refuses it.
    paths = [make(f"{i}.csv", text) for i, text in enumerate(column)]
    command = ["test", *map(str, paths), "--toys", "2", "--statistic", "mahalanobis", "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0
    assert "begin with the same line of numbers" in done.stderr
    assert "header" in [one["code"] for one in json.loads(done.stdout)["warnings"]]
    assert CliRunner().invoke(main, [*command, "--strict"]).exit_code == 2
    with pytest.warns(sparker.DataWarning, match="begin with the same line of numbers"):
        sparker.test(*map(read, paths), n_toys=2, statistic=sparker.statistics.Mahalanobis())


def test_ordinary_tables_without_names_are_not_suspected(make):
    rng = np.random.default_rng(4)

    def pair(draw):
        return [as_csv(None, draw(n)) for n in (60, 40)]

    files = [
        pair(lambda n: rng.normal(size=(n, 3))),
        [as_csv("0,0,0", rng.normal(size=(n, 3))) for n in (60, 41)],  # where things began
        [as_csv("1,0,0", rng.integers(2, size=(n, 3))) for n in (60, 41)],
        [as_csv("3", rng.integers(9, size=(n, 1))) for n in (60, 41)],
        [as_csv("0,1", rng.normal(size=(n, 2))) for n in (60, 1)],
        [as_csv(None, rng.integers(99, size=(n, 1)) + np.arange(4)) for n in (60, 41)],
        [as_csv(None, np.column_stack([rng.permutation(n), rng.normal(size=n)])) for n in (60, 41)],
    ]
    rows = rng.normal(size=(60, 3))
    files += [[as_csv(None, rows)] * 2, [as_csv(None, rows), as_csv(None, rows[:40])]]
    files += [[as_csv(None, rows), as_csv(None, rows[rng.permutation(60)[:30]])]]
    files += [pair(lambda n: rng.integers(5, size=(n, 4))) for _ in range(20)]
    files += [pair(lambda n: rng.poisson(40, size=(n, 3))) for _ in range(20)]
    files += [pair(lambda n: np.round(rng.normal(size=(n, 1)), 2)) for _ in range(20)]
    assert [suspected(make, *texts) for texts in files] == [[] for _ in files]
    with_names = [as_csv("a,b,c", rng.normal(size=(n, 3))) for n in (60, 40)]
    assert suspected(make, *with_names) == []


def test_quoted_cells_go_on_over_lines_and_blocks(make, monkeypatch):
    monkeypatch.setattr(source, "BLOCK_ROWS", 2)
    text = 'x,"a, ""b""\nname"\n1,plain\n2,"goes\non\nand on"\n3,"a,b;c"\n4,""\n'
    table = read(make("x.csv", text), extra=['a, "b"\nname'])
    assert table.points.tolist() == [[1], [2], [3], [4]]
    assert table.extra['a, "b"\nname'].tolist() == ["plain", "goes\non\nand on", "a,b;c", ""]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2"], np.array([1, 2])),
        (["1", "2.5"], np.array([1, 2.5])),
        (["1", ""], np.array([1, np.nan])),
        (["1", "NA"], np.array([1, np.nan])),
        (["7", "x"], np.array(["7", "x"], object)),
        (["1_0", "2"], np.array(["1_0", "2"], object)),
        (["123456789012345678901", "1"], np.array(["123456789012345678901", "1"], object)),
        (["9007199254740993", ""], np.array(["9007199254740993", ""], object)),
    ],
)
def test_extra_columns_of_text_have_the_kind_of_all_their_cells(make, monkeypatch, cells, expected):
    monkeypatch.setattr(source, "BLOCK_ROWS", 1)
    text = "x,e\n" + "".join(f"0,{cell}\n" for cell in cells)
    found = read(make("x.csv", text), extra=["e"]).extra["e"]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2"], np.array([1, 2])),
        (["1", "null"], np.array([1, np.nan])),
        (["true", "false"], np.array([1.0, 0.0])),
        (['"a"', "null"], np.array(["a", ""], object)),
        (['"1"', "2"], np.array(["1", "2"], object)),
        (["1e3", "NaN"], np.array([1e3, np.nan])),
        ([str(2**60 + 1), "null"], np.array([str(2**60 + 1), ""], object)),
    ],
)
def test_extra_columns_of_json_have_the_kind_of_all_their_cells(make, cells, expected):
    text = "".join(f'{{"x": 0, "e": {cell}}}\n' for cell in cells)
    found = read(make("x.jsonl", text), extra=["e"]).extra["e"]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_json_lines_may_leave_out_or_reorder_names(make):
    text = '{"x": 1, "y": 2, "z": 3}\n\n{"y": 5, "x": 4}\n'
    table = read(make("x.jsonl", text), extra=["z"])
    assert table.points.tolist() == [[1, 2], [4, 5]]
    np.testing.assert_array_equal(table.extra["z"], [3, np.nan])


def test_a_large_csv_comes_in_whole(make):
    big = RNG.normal(size=(30_000, 5))
    path = make("big.csv", pd.DataFrame(big, columns=list("abcde")).to_csv)
    table = read(path, ignore=[""])
    np.testing.assert_array_equal(table.points, big)
    with path.open("a") as file:
        file.write("30000,1,2,3,4,?\n")
    table = read(path, ignore=[""])
    assert list(table.others) == [4]
    assert table.others[4].tolist() == [*map(repr, big[:, 4].tolist()), "?"]
    np.testing.assert_array_equal(table.points[:-1, :4], big[:, :4])


def test_a_wide_table_comes_in_whole(make):
    wide = RNG.normal(size=(30, 3000))
    names = [f"gene {i}" for i in range(3000)]
    for name, write in {
        "x.csv": lambda path: pd.DataFrame(wide, columns=names).to_csv(path, index=False),
        "x.npy": lambda path: np.save(path, wide),
        "x.npz": lambda path: np.savez(path, pd.DataFrame(wide, columns=names).to_records(False)),
        "y.npz": lambda path: np.savez(path, wide),
        "y.npy": lambda path: np.save(path, pd.DataFrame(wide, columns=names).to_records(False)),
    }.items():
        path = make(name, write)
        np.testing.assert_array_equal(read(path).points, wide)
        refuse(path, "has no column 'x'; (it has .*3000 in all|its columns.* 2999)", columns=["x"])


# --- What is asked of the cells -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a,b\n1,2\n3,high\n", ["2", "high"]),
        ("a,b\n1,007\n3,A12\n", ["007", "A12"]),
        ("1,2\n\n3,x\n", ["2", "x"]),
        ("a,b\n1,2\n3,1_0\n", ["2", "1_0"]),
        ("a;b\n1;2\n3;1,5\n", ["2", "1,5"]),
        ("a,b\n1,x\n3,N/A\n", ["x", None]),
        ("a,b\n1,\n3,x\n", [None, "x"]),
        ("a,b\n1,2024-05-01\n3,2024-05-02T10:00\n", ["2024-05-01", "2024-05-02T10:00"]),
        ("a,b\n1,2\n3,\n", [2, np.nan]),
        ("a,b\n1,2\n3,nan\n", [2, np.nan]),
        ("a,b\n1,2\n\n3,nan\n", [2, np.nan]),
        ("a,b\n1,2\n3,N/A\n", [2, np.nan]),
        ("a,b\n1,2\n3,inf\n", [2, np.inf]),
        ("a,b\n1,2\n3,1e999\n", [2, np.inf]),
        ("1,\n1,2\n", [np.nan, 2]),
        ('a,b\n1,2\n1,"\n\n"\n', [2, np.nan]),
    ],
)
@pytest.mark.parametrize("rows_at_a_time", [1, 8192])
def test_what_a_column_of_text_holds(make, monkeypatch, text, column, rows_at_a_time):
    monkeypatch.setattr(source, "BLOCK_ROWS", rows_at_a_time)
    table = read(make("x.csv", text))
    found = table.column(1)
    if 1 in table.others:
        assert found.tolist() == column
        assert np.isnan(table.points[:, 1]).all()
    else:
        np.testing.assert_array_equal(found, np.array(column, float))
    assert np.isfinite(table.points[:, 0]).all()  # the other column does not suffer


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "has 1 cells in line 3, but 2 in the first; give every line the same"),
        ("a,b\n1,2\n3,4,5\n", "has 3 cells in line 3, but 2 in the first"),
        ("a,b\n1,2,3\n3,4,5\n", "has 3 cells in line 2, but 2 in the first"),
        ("a,b\n1,2\n1,2,\n", "has 3 cells in line 3, but 2 in the first"),
        ("1,2\n1,2\n1,2,3\n", "has 3 cells in line 3, but 2 in the first"),
        ('a,b\n1,2\n3,"4\n', "cannot be split into cells in line 3: unexpected end .*quotes"),
        ('a,b\n1,2\n3,"4"5\n', "cannot be split into cells in line 3: .*quotes"),
        ("a,b\n1,2\n3,\x004\n", "has a null byte in line 3, which no text has; .*write it anew"),
        ("a,b\n", "has no rows; a test needs some"),
        ("a,b", "has no rows"),
        ("\n \n\n", "is blank; a test needs some rows"),
        ("", "is empty"),
        ("a,b,a\n1,2,3\n", "has 2 columns named 'a'; give each its own name"),
        (",a\n0,1\n0,2\n", "has no name for its column number 0, .*not the index .* --ignore ''"),
        (",a\n0.5,1\n1,2\n", "has no name for its column number 0"),
        (",a\nx,1\ny,2\n", "has no name for its column number 0"),
        ("a,\n1,0\n2,1\n", "has no name for its column number 1"),
        ("1.5,a\n2.5,b\n", "has both names and numbers in its first line; put a line above"),
        ("x" * 200_000 + "\n1\n", "field larger than field limit"),
    ],
)
def test_what_is_wrong_in_a_text_is_said_with_its_line(make, text, message):
    refuse(make("x.csv", text), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": [2]}\n', r"has lists or objects .* in a; make columns of them"),
        ('{"a": "x"}\n{"a": {"b": 2}}\n', r"has lists or objects .* in a; make columns of them"),
        (f'{{"a": 1}}\n{{"a": 1{"0" * 5000}}}\n', "has no JSON in line 2"),
        ('{"a": 1}\n{"a": 1, "b": 2}\n', "has 'b' in line 2, but not in the first"),
        ('{"a": [1, 2], "b": 1}\n', "has lists or objects .* in a; make columns of them"),
        ('{"a": 1}\n{"a": 2', r"has no JSON in line 2 \(.*\); put one object or one list"),
        ('{"a": 1}\n[1]\n', "has a list in line 2, unlike the first line; put the same"),
        ("[1, 2]\n[1]\n", "has 1 values in line 2, but 2 in the first"),
        ('{"a": 1}\n{"a": 2, "b": 0, "a": 3}\n', "has 'a' twice in line 2; give each of its"),
        ('{"a": 1, "b": {"c": 2, "c": 3}}\n', "has 'c' twice in line 1; give each of its"),
        ('{"a": 1}\n{"a": "\\ud800"}\n', r"no JSON in line 2 \('.ud800' is half a character"),
        ('{"\\udfff": 1}\n', r"no JSON in line 1 \('.udfff' is half a character"),
        ("1\n2\n", "has neither an object nor a list in line 1"),
        ("[" * 100_000, "has no JSON in line 1"),
        ("{}\n{}\n", "has no column left"),
        ("\n", "is blank"),
    ],
)
def test_what_is_wrong_in_json_lines_is_said_with_its_line(make, text, message):
    refuse(make("x.jsonl", text), message)


@pytest.mark.parametrize(
    ("cells", "column"),
    [
        (["1", '"2"'], ["1", "2"]),
        (["1", "null"], [1, np.nan]),
        (["1", "NaN"], [1, np.nan]),
        (["1", "-Infinity"], [1, -np.inf]),
        (["true", "null"], [True, None]),
        (["1", f"-1{'0' * 400}"], [1, -np.inf]),  # beyond all floats, as in text
        (['"x"', "null"], ["x", None]),
    ],
)
def test_what_a_column_of_json_holds(make, cells, column):
    table = read(make("x.jsonl", "".join(f'{{"a": {cell}}}\n\n' for cell in cells)))
    if table.others:
        assert table.others[0].tolist() == column
    else:
        np.testing.assert_array_equal(table.points[:, 0], column)


@pytest.mark.parametrize("rows_at_a_time", [4, 8192])
@pytest.mark.parametrize("name", [name for name in NAMED if name != "tree.root"])
def test_text_among_the_features_is_kept_in_every_format(make, monkeypatch, name, rows_at_a_time):
    monkeypatch.setattr(source, "BLOCK_ROWS", rows_at_a_time)
    table = read(make(name, NAMED[name]))
    place = table.columns.index("label")
    assert list(table.others) == [place]
    assert table.others[place].tolist() == LABEL.tolist()
    for column in ("pt", "eta", "weight"):
        np.testing.assert_array_equal(table.points[:, table.columns.index(column)], COLUMNS[column])


SPOILED = {"a": np.where(np.arange(N) == 13, np.nan, PT), "b": ETA}
INFINITE = {"a": PT, "b": np.where(np.arange(N) == 13, -np.inf, ETA)}


@pytest.mark.parametrize("rows_at_a_time", [4, 8192])
@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("x.npz", lambda path, columns: np.savez(path, **columns)),
        ("x.npy", lambda path, columns: np.save(path, compound(columns))),
        ("x.h5", to_hdf5),
        ("x.parquet", lambda path, columns: pd.DataFrame(columns).to_parquet(path)),
        ("x.root", to_tree),
        ("y.root", to_ntuple),
    ],
)
def test_missing_and_infinite_values_come_in(make, monkeypatch, name, write, rows_at_a_time):
    monkeypatch.setattr(source, "BLOCK_ROWS", rows_at_a_time)
    path = make(name, lambda path: write(path, SPOILED))
    np.testing.assert_array_equal(read(path, columns=["a"]).points[:, 0], SPOILED["a"])
    np.testing.assert_array_equal(read(path, extra=["a"]).extra["a"], SPOILED["a"])
    refuse_test(
        read(path),
        r"^1 column cannot .*\n- a: values are missing \(1 in data, the first in "
        r"row 13\); missing='indicator' or 'drop' \(--missing\) goes",
        missing="error",
    )
    path = make(f"i{name}", lambda path: write(path, INFINITE))
    refuse_test(
        read(path),
        r"^1 column cannot be compared as it is:\n- b: 1 infinite value in data, "
        r"the first in row 13; write a number there, or nothing if .*\nchange it, or leave it out",
    )


def refuse_test(data, message, **settings):
    """What files may hold, but a test refuses."""
    reference = Table(np.column_stack([PT, ETA]), ("a", "b"))
    with pytest.raises(ColumnsError, match=message):
        sparker.test(reference, data, **settings)


def test_everything_that_is_wrong_with_two_files_is_said_at_once(make):
    n = 60
    columns = {
        "fine": [str(x) for x in RNG.normal(size=n)],
        "commas": [f"{i},{i}" for i in range(n)],
        "infinite": [str(i * i) for i in range(n - 1)] + ["inf"],
        "stray": [str(i * 0.7) for i in range(n - 1)] + ["?"],
        "prose": [f"this is what was said of row {i * i}" for i in range(n)],
        "as text": [f"x{i % 3}" for i in range(n)],
    }
    text = "\n".join([";".join(columns), *map(";".join, zip(*columns.values(), strict=True))])
    path = make("x.csv", text)
    with pytest.raises(ColumnsError) as caught:
        sparker.test(read(path), read(path))
    said = str(caught.value).splitlines()
    assert said[0] == "4 columns cannot be compared as they are:"
    assert said[1] == "- commas: 120 decimals are written with a comma; write them with a point"
    assert said[2].startswith("- infinite: 1 infinite value in reference, the first in row 59; ")
    assert said[3].startswith("- stray: 2 cells are no numbers, while 118 are, the first '?' in")
    assert said[4].startswith("- prose: text, 60 different values in 120 rows; embed='tfidf'")
    assert said[5:] == ["change them, or leave them out with ignore (--ignore)"]
    done = CliRunner().invoke(main, ["test", str(path), str(path)])
    assert done.exit_code == 2
    assert [line for line in said if line not in done.output] == []


def test_what_is_too_large_is_refused_for_what_it_is(make):
    lines = [f"{x},{y}" for x, y in zip(PT, ETA, strict=True)]
    for number, said in {
        "1e300": r"- a: 1 value beyond 1e\+150, whose square is beyond all numbers, in data, the "
        "first in row 20; divide the column by a constant; or if they stand for",
        "-1e400": r"- a: 1 infinite value in data, the first in row 20; write a number there, .* "
        r"\(what is beyond 1.8e\+308 counts as infinite\)",
    }.items():
        refuse_test(read(make("x.csv", "\n".join(["a,b", *lines, f"{number},1"]))), said)
    json = "\n".join(f'{{"a": {x}, "b": 1}}' for x in [*PT, "1" + "0" * 400])
    refuse_test(read(make("x.jsonl", json)), "- a: 1 infinite value in data, the first in row 20")
    encoding = plain_encoding(["a", "b"], 2)
    for number in (1e200, np.inf):
        with pytest.raises(ColumnsError, match=r"- b: 1 (infinite )?value"):
            more_rows("batch", np.array([[1.0, number]]), encoding, "indicator")


WHOLE = 2**60 + np.arange(20) * 3


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("x.csv", lambda p: pd.DataFrame({"a": WHOLE, "b": PT}).to_csv(p, index=False)),
        (
            "x.jsonl",
            lambda p: pd.DataFrame({"a": WHOLE, "b": PT}).to_json(p, orient="records", lines=True),
        ),
        ("x.npz", lambda p: np.savez(p, a=WHOLE.astype(np.uint64), b=PT)),
        ("x.h5", lambda p: h5_matrix(p, a=-WHOLE, b=PT)),
        ("x.root", lambda p: to_tree(p, {"a": WHOLE, "b": PT})),
        ("x.parquet", lambda p: pd.DataFrame({"a": WHOLE, "b": PT}).to_parquet(p)),
        (
            "y.parquet",
            lambda p: pyarrow.parquet.write_table(
                pyarrow.table({"a": [None, *WHOLE[1:].tolist()], "b": PT}), p
            ),
        ),
    ],
)
def test_digits_that_are_lost_are_said(make, name, write):
    table = read(make(name, write))
    assert table.rounded == {0}
    assert table.take([1, 0]).rounded == {1}
    [caution] = digits_lost({"data": table, "reference": table.take([1])})
    assert caution.text.startswith("data has whole numbers beyond 2^53 in a, of which only the")
    assert read(make(name, write), columns=["b"]).rounded == frozenset()


def test_digits_of_data_frames_and_arrays_that_are_lost_are_said():
    frame = pd.DataFrame({"a": WHOLE, "b": PT, "c": 2**60, "d": np.arange(20)})
    assert as_table("data", frame).rounded == {0}
    assert as_table("data", frame.astype({"a": "Int64"})).rounded == {0}
    assert as_table("data", pyarrow.Table.from_pandas(frame)).rounded == {0}
    assert as_table("data", frame.to_dict("list")).rounded == {0}
    assert as_table("data", np.column_stack([np.arange(20), WHOLE])).rounded == {1}
    assert as_table("data", np.column_stack([np.arange(20), WHOLE.astype(float)])).rounded == set()
    with pytest.warns(sparker.DataWarning, match="data has whole numbers beyond 2\\^53 in a, of"):
        two_samples({"a": PT, "b": ETA}, {"a": WHOLE, "b": PT}, TestConfig(keep=["a"]))


def test_ordinary_numbers_of_text_keep_their_digits(make):
    text = "a,b,c\n" + "0.12345678901234567,1e20,9007199254740992\n" * 3
    assert read(make("x.csv", text)).rounded == frozenset()


def test_names_of_many_columns_are_found_at_once():
    names = tuple(f"c{i}" for i in range(200_000))
    table = Table(np.zeros((1, len(names))), names)
    began = time.monotonic()
    assert by_name(table, "data", names[::-1])[0] == len(names) - 1
    features, *_ = choose(source.Source(names, iter), names[1:], names[:1], ())
    assert features == names[1:]
    _, places, _ = intake._aligned({"a": table, "b": table}, TestConfig(ignore=names[:9]), [])
    assert places == list(range(9, len(names)))
    assert time.monotonic() - began < 20


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "x.csv"
    os.mkfifo(pipe)
    for text in ("a,b\n1,2\n", "a,b\n1,x\n"):
        writer = Thread(target=pipe.write_text, args=(text,))
        writer.start()
        if "x" in text:
            refuse(pipe, "can be read only once, but b must be read twice, .* into a file first$")
        else:
            assert read(pipe).points.tolist() == [[1, 2]]
        writer.join()


def test_contradictions_are_refused(make):
    path = make("x.csv", "a,b\n1,2\n")
    refuse(path, "with column 'a' and without it", columns=["a"], ignore=["a"])
    refuse(path, "one column named twice", columns=["a", "a"])
    refuse(path, "has no column left to test; it has a, b", ignore=["a", "b"])
    refuse(path, "has no column left to test", columns=[])
    refuse(path, "holds a single table; leave out the key 'x'", key="x")


# --- Which table of a file ------------------------------------------------------------------------


def test_hdf5_tables_are_told_apart_by_their_key(make, tmp_path):
    def write(path):
        with h5py.File(path, "w") as file:
            file["a/X"] = MATRIX
            file["a/w"] = WEIGHT
            file["b/c/x"] = PT
            file["b/c/y"] = ETA
            file["d/image"] = np.zeros((3, 4, 5))
            file["d/scalar"] = 1.0
            file["short/x"], file["short/y"] = PT, ETA[:3]

    path = make("x.h5", write)
    listed = r"a/X \(20, 3\), b/c, short/x \(20,\), short/y \(3,\)"
    refuse(path, f"holds several tables; name one of them as the key: {listed}$")
    for key in ("a/X", "/a/X", "a", "a/"):
        np.testing.assert_array_equal(read(path, key=key, extra=["w"]).points, MATRIX)
    for name in (f"{path}:b/c", f"{path}:/b", f"{path}:b/c/"):
        assert read(name).columns == ("x", "y")
    assert read(path, key="short/y").points.tolist() == ETA[:3, None].tolist()
    refuse(f"{path}:nothing", f"holds no 'nothing'; it holds {listed}")
    refuse(f"{path}:short", "holds several tables; .*: short/x .*, short/y")
    refuse(f"{path}:d/image", r"has d/image of shape \(3, 4, 5\); bring it to rows and columns")
    with pytest.raises(FileError, match="name two tables; leave one of them out"):
        read(f"{path}:a", key="b")
    assert not (tmp_path / "x.h5:a").exists()


def test_npz_tables_are_told_apart_by_their_key(make):
    path = make("x.npz", lambda path: np.savez(path, train=MATRIX, test=MATRIX[:5], w=WEIGHT))
    refuse(path, r"holds several tables; .* key: train \(20, 3\), test \(5, 3\)$")
    assert len(read(path, key="test").points) == 5
    assert len(read(f"{path}:train", extra=["w"]).extra["w"]) == N
    path = make("y.npz", lambda path: np.savez(path, x=PT, y=ETA[:5]))
    refuse(path, r"holds several tables; .* key: x \(20,\), y \(5,\)$")
    path = make("z.npz", lambda path: np.savez(path, x=np.zeros((2, 2, 2)), y=1))
    refuse(path, r"holds no table of rows and columns; it holds x \(2, 2, 2\), y \(\)$")
    path = make("0.npz", lambda path: zipfile.ZipFile(path, "w").close())
    refuse(path, "holds no table of rows and columns; it holds nothing")


def test_trees_are_told_apart_by_their_key(make):
    def write(path):
        with uproot.recreate(path) as file:
            file.mktree("a/signal", {"x": "f8"}).extend({"x": PT})
            file.mktree("background", {"x": "f8"}).extend({"x": ETA})
            file.mkrntuple("new", {"x": WEIGHT})
            file["histogram"] = np.histogram(PT)

    path = make("x.root", write)
    refuse(path, "holds several trees; name one of them as the key: a/signal, background, new$")
    np.testing.assert_array_equal(read(f"{path}:a/signal").points[:, 0], PT)
    np.testing.assert_array_equal(read(path, key="background;1").points[:, 0], ETA)
    np.testing.assert_array_equal(read(path, key="new").points[:, 0], WEIGHT)
    refuse(f"{path}:histogram", "holds no tree 'histogram'; it holds a/signal, background, new")

    def write_histogram(path):
        with uproot.recreate(path) as file:
            file["histogram"] = np.histogram(PT)

    refuse(make("h.root", write_histogram), "holds no tree")


def test_a_file_whose_own_name_has_a_colon_is_found(make):
    path = make("x.npz:y.npy", lambda path: np.save(path, MATRIX))
    np.testing.assert_array_equal(read(path).points, MATRIX)


def test_jagged_branches_are_refused_with_advice(make):
    columns = {"n": np.arange(3), "jets": awkward.Array([[1.0], [], [2.0, 3.0]])}

    def write_tree(path):
        with uproot.recreate(path) as file:
            kinds = {"n": "i8", "jets": columns["jets"].type, "p": ("f8", (3,))}
            file.mktree("t", kinds).extend(columns | {"p": np.zeros((3, 3))})

    def write_ntuple(path):
        with uproot.recreate(path) as file:
            file.mkrntuple("t", columns | {"p": np.zeros((3, 3))})

    for path in (make("t.root", write_tree), make("n.root", write_ntuple)):
        refuse(path, "has lists or objects instead of one value a row in jets, p; make columns of")
        refuse(path, "instead of one value a row in jets; ", columns=["n"], extra=["jets"])
        assert read(path, ignore=["jets", "p", "njets"][: 2 + (path.name == "t.root")]).columns == (
            "n",
        )
        assert read(path, columns=["n"]).points.tolist() == [[0], [1], [2]]


@pytest.mark.usefixtures("read_here")
def test_of_split_branches_only_the_ends_are_columns(make, monkeypatch):
    path = make("x.root", to_tree)
    with uproot.open(path) as file:
        tree = type(file["events"])
    kinds = {"pt": "double", "jet": "Jet", "jet/mass": "double", "jets": "vector<Jet>"}
    monkeypatch.setattr(tree, "typenames", lambda self: kinds)
    refuse(path, "it has pt, jet/mass, jets$", columns=["none"])


def test_lists_in_other_formats_are_refused_with_advice(make):
    lists = pyarrow.table({"x": [1.0, 2.0], "v": [[1.0], [2.0, 3.0]], "s": [{"a": 1}, {"a": 2}]})
    parquet = make("x.parquet", lambda path: pyarrow.parquet.write_table(lists, path))
    npy = make("x.npy", lambda path: np.save(path, np.zeros(3, [("x", "f8"), ("v", "f8", 2)])))

    def write(path):
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(2.0)
            file.create_dataset("v", (2,), h5py.vlen_dtype(np.float64))

    for path, names in ((parquet, "v, s"), (npy, "v"), (make("x.h5", write), "v")):
        refuse(path, f"has lists or objects instead of one value a row in {names}; make columns")
        assert read(path, columns=["x"]).columns == ("x",)


# --- Files that are not what they should be -------------------------------------------------------


def test_no_file_no_format_no_permission(make, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.csv; check its name"):
        read(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.h5; check"):
        read(tmp_path / "none.h5:group")
    refuse(tmp_path, "is a folder; name a file in it")
    refuse(make("x.txt", "1,2\n"), r"suffixes that can be read: \.csv, \.tsv, \.h5, .*\.root$")
    refuse(make("x", "1,2\n"), "none of the suffixes")
    refuse(make("x.npy.gz", "1,2\n"), "none of the suffixes")
    path = make("x.csv", "a\n1\n")

    def forbidden(*arguments, **settings):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    refuse(path, "cannot be read: Permission denied$")


CONTENTS = {
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "bytes": bytes(range(255, 0, -1)) * 10,
    "zeros": bytes(1000),
    "text": b"a,b\n1,2\n3,4\n",
    "page": b"<!DOCTYPE html>\n<html></html>\n",
}
SUFFIXES = [".npy", ".npz", ".csv", ".csv.gz", ".tsv", ".jsonl", ".parquet", ".h5", ".root"]


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_something_else_under_the_name_of_a_table(make, content, suffix):
    if content != "text" or suffix not in (".csv", ".tsv"):
        refuse(make(f"x{suffix}", CONTENTS[content]))
    refuse(make(f"empty{suffix}", b""), "is empty; a test needs some rows")


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".npz", ".jsonl", ".parquet", ".h5", ".root"])
@pytest.mark.parametrize(
    ("original", "name"),
    [
        ("events.csv.gz", "something compressed with gzip"),
        ("events.npy", "a NumPy array"),
        ("events.npz", "a zip archive"),
        ("events.parquet", "Parquet"),
        ("events.h5", "HDF5"),
        ("tree.root", "ROOT"),
    ],
)
def test_a_table_under_the_suffix_of_another(make, original, name, suffix):
    if original.endswith(suffix):
        return
    content = make(original, NAMED[original]).read_bytes()
    refuse(make(f"x{suffix}", content), f"looks like {name}, whatever its name says; give it the")


def test_text_that_is_not_utf8(make):
    refuse(make("x.csv", "a,é\n1,2\n".encode("latin-1")), "is not UTF-8 text near line 1; save it")
    text = "a,b\n" + "1,2\n" * 10_000 + "é"
    refuse(make("x.csv", text.encode("latin-1")), r"is not UTF-8 text near line \d{4,5}; save it")
    refuse(make("x.csv", "a,b\n1,2\n".encode("utf-16")), "is not UTF-8 text near line 1")


def test_a_line_without_end(make, monkeypatch):
    monkeypatch.setattr(sparker.tables.text, "LONGEST_LINE", 1000)
    refuse(make("x.csv", "1" * 5000), "has a line 1 without end")
    refuse(make("x.jsonl", "[1]\n[" + "1," * 5000), "has a line 2 without end")


DAMAGEABLE = ["events.csv.gz", "events.npy", "events.npz", "fields.npz", "events.parquet"]
DAMAGEABLE += ["events.h5", "fields.hdf5", "tree.root", "ntuple.root"]
NOT_FOR_FUZZING = {"events.h5", "fields.hdf5", "ntuple.root"}


@pytest.mark.parametrize("name", DAMAGEABLE)
def test_a_file_cut_short_is_refused_wherever_it_is_cut(make, name):
    whole = make(name, NAMED[name]).read_bytes()
    for length in np.linspace(1, len(whole) - 1, 25).astype(int):
        path = make(name, whole[:length])
        refuse(path, columns=["pt", "eta", "weight"])


# Damaged within, HDF5 files can crash their library, and RNTuples keep it busy for ever.
@pytest.mark.parametrize("name", [name for name in DAMAGEABLE if name not in NOT_FOR_FUZZING])
def test_a_file_with_wrong_bytes_gives_a_table_or_a_reason(make, name):
    rng = np.random.default_rng(1)
    whole = np.frombuffer(make(name, NAMED[name]).read_bytes(), np.uint8)
    reasons = []
    for _ in range(25):
        damaged = whole.copy()
        damaged[rng.integers(len(whole), size=5)] = rng.integers(256, size=5)
        path = make(name, damaged.tobytes())
        try:
            assert read(path, columns=["pt", "eta"]).points.shape == (N, 2)
        except FileError as error:
            reasons.append(str(error))
    assert reasons
    assert all(str(path) in reason and "cannot be read" not in reason for reason in reasons)


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return Path.touch, (Path(self.mark),)


def test_nothing_is_ever_unpickled(make, tmp_path):
    mark = tmp_path / "mark"
    array = np.array([Trap(mark)], object)
    with pytest.raises(FileError):
        read(make("raw.npy", pickle.dumps(Trap(mark))))
    refuse(make("x.npy", lambda path: np.save(path, array)), "holds pickled Python objects, .* run")
    refuse(make("x.npz", lambda path: np.savez(path, x=array)), "holds pickled Python objects")
    refuse(make("y.npz", lambda path: np.savez(path, x=array[:, None])), "holds pickled Python")
    path = make("z.npz", lambda path: np.savez(path, x=array, y=np.ones(1)))
    refuse(path, "has lists or objects instead of one value a row in x;")
    assert read(path, columns=["y"]).points.tolist() == [[1]]
    refuse(path, "holds pickled Python objects", key="x")
    fields = np.empty(1, [("x", object), ("y", "f8")])
    fields["x"] = Trap(mark)
    refuse(make("w.npz", lambda path: np.savez(path, t=fields)), "holds pickled Python objects")
    assert not mark.exists()
    pickle.loads(pickle.dumps(Trap(mark)))
    assert mark.exists()  # the trap works


def npy_header(shape, kind="<f8"):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize("shape", [(10**12, 10), (2**62, 2**62), (2**40, 2**24), (-5, 2), (5, -2)])
def test_a_huge_claim_is_no_reason_to_wait(make, shape):
    refuse(make("x.npy", npy_header(shape) + bytes(80)))

    def write(path, compression):
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("X.npy", npy_header(shape) + bytes(80))

    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        refuse(make("x.npz", lambda path, how=compression: write(path, how)), "not of the size it")


def test_a_huge_table_of_nothing_is_refused(make):
    def write(path):
        with h5py.File(path, "w") as file:
            file.create_dataset("X", (10**12, 10), np.float64, chunks=(100, 10))[:10] = 1

    path = make("x.h5", write)
    assert path.stat().st_size < 20_000
    refuse(path, r"unpacks to 7\.\d+e\+04 GiB or more, which no table of values does")


def test_no_rows_and_no_columns(make):
    refuse(make("x.npy", lambda path: np.save(path, np.zeros((0, 3)))), "has no rows")
    refuse(make("x.npy", lambda path: np.save(path, np.zeros((3, 0)))), "has no column left")
    refuse(make("x.npy", lambda path: np.save(path, np.zeros((2, 3, 4)))), r"has shape \(2, 3, 4\)")
    refuse(make("x.npy", lambda path: np.save(path, np.float64(3))), r"has shape \(\)")
    refuse(
        make("x.npy", lambda path: np.save(path, MATRIX + 1j)), "has complex numbers in column 0;"
    )
    refuse(make("x.parquet", frame()[:0].to_parquet), "has no rows")
    refuse(make("x.h5", lambda path: h5_matrix(path, X=MATRIX[:0])), "has no rows")
    refuse(make("x.h5", lambda path: h5py.File(path, "w").close()), "holds no table .* nothing")


@pytest.mark.usefixtures("read_here")
def test_columns_that_end_early_are_damage(make, monkeypatch):
    path = make("x.root", to_tree)
    with uproot.open(path) as file:
        branch = type(file["events"]["pt"])
    whole = branch.array
    monkeypatch.setattr(
        branch,
        "array",
        lambda self, **how: whole(self, **how)[: 5 if self.name == "eta" else None],
    )
    refuse(path, "is damaged: its columns end after 5 to 20 rows")


def test_tables_of_pandas_in_hdf5_are_refused_with_advice(make):
    def write(path):
        with h5py.File(path, "w") as file:
            file["frame/block0_values"] = MATRIX
            file["frame"].attrs["pandas_type"] = "frame"

    refuse(make("x.h5", write), "has 'frame' in the layout of pandas' to_hdf, .* to_parquet")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("events.parquet", "pyarrow.parquet", "files"),
        ("events.h5", "h5py", "files"),
        ("tree.root", "uproot", "root"),
    ],
)
def test_a_missing_reader_is_named_with_its_command(make, monkeypatch, name, module, extra):
    path = make(name, NAMED[name])
    package = module.split(".")[0]
    make(f"{package}.py", "raise ImportError")
    monkeypatch.syspath_prepend(path.parent)
    apart.end_all()
    message = rf'needs {package}, which is not installed; pip install "sparker\[{extra}\]"$'
    with pytest.raises(ImportError, match=message):
        read(path)
    apart.end_all()


def test_text_and_numpy_files_need_nothing_more(make):
    paths = [make(name, NAMED[name]) for name in ("events.csv", "events.jsonl", "events.npz")]
    code = f"""
import sys
from sparker.tables import read
for path in {list(map(str, paths))}:
    read(path, ignore=["label"])
heavy = sys.modules.keys() & {{"pandas", "pyarrow", "h5py", "uproot", "awkward"}}
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- In brief -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows_at_a_time", [3, 8192])
@pytest.mark.parametrize("name", NAMED)
def test_every_format_is_described(make, monkeypatch, name, rows_at_a_time):
    monkeypatch.setattr(source, "BLOCK_ROWS", rows_at_a_time)
    info = describe(make(name, NAMED[name]))
    assert info.rows == N
    assert info.format.lower()[:2] in name.lower() + " numpy json hdf5"
    columns = {column.name: column for column in info.columns}
    assert columns["pt"] == ("pt", "number", PT.min(), PT.max(), None, 0, N, "feature")
    assert columns["run"][-2:] == (1, "left out: it does not vary")  # as floats, so large they are
    if name != "tree.root":
        assert columns["label"][1:4] == ("category", None, None)
        assert columns["label"][-3:] == (0, 3, "feature")
        assert columns["label"].example == "kind 0"


def test_a_description_tells_what_is_missing(make, monkeypatch):
    monkeypatch.setattr(source, "BLOCK_ROWS", 2)
    text = "a,b,c,d\n1,,x,\n2,5,NA,\n-3,nan,,\n4,1,y,\n5,2,3,\n6,?,4,\n"
    info = describe(make("x.csv", text))
    assert info.format == "CSV"
    assert info.rows == 6
    assert info.columns == (
        ("a", "number", -3, 6, None, 0, 6, "feature"),
        ("b", "text", None, None, "?", 2, 4, "text: embed it, or leave it out"),
        ("c", "text", None, None, "x", 2, 4, "text: embed it, or leave it out"),
        ("d", "number", None, None, None, 6, 0, "left out: it has no values"),
    )

    text = '{"x": NaN, "y": "a"}\n{"x": 1, "y": NaN}\n{"x": null, "y": null}\n'
    info = describe(make("x.jsonl", text))
    assert info.columns == (
        ("x", "number", 1, 1, None, 2, 1, "feature"),
        ("y", "text", None, None, "a", 2, 1, "text: embed it, or leave it out"),
    )
    info = describe(make("x.jsonl", '{"x": 1, "y": "a"}\n{"x": [2], "y": "b"}\n'))
    assert info.columns[0] == ("x", "list", None, None, None, 0, 0, "cannot be compared")


def test_a_description_lists_what_it_does_not_look_into(make):
    table = pyarrow.table({"v": [[1.0], [2.0, 3.0]], "x": [1.0, None]})
    info = describe(make("x.parquet", lambda path: pyarrow.parquet.write_table(table, path)))
    assert info.rows == 2
    assert info.columns == (
        ("v", "list", None, None, None, 0, 0, "cannot be compared"),
        ("x", "number", 1, 1, None, 1, 1, "feature"),
    )
    info = describe(make("x.npz", lambda path: np.savez(path, X=MATRIX, w=WEIGHT)))
    assert [column.name for column in info.columns] == ["0", "1", "2", "w"]
    assert [column.role for column in info.columns] == ["feature"] * 3 + ["beside the table"]
