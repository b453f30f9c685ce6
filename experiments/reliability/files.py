"""Untrusted tables: damaged, poisoned, reaching for other files, larger than they look."""

import gzip
import json
import os
import threading
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import uproot
from experiments.reliability.attack import attack, random_attack
from experiments.reliability.box import READ, Box, samples
from experiments.reliability.damage import mutated
from experiments.reliability.elsewhere import write_tree
from experiments.reliability.ends import check, either, found, p_value, plain, refused, warned

COLUMNS = ("pt", "eta")
N = 200


def table(seed: int = 1) -> dict[str, np.ndarray]:
    """Two columns of numbers and one of texts."""
    rng = np.random.default_rng(seed)
    kinds = np.array(["red", "blue", "green"])
    return {"pt": rng.exponential(size=N), "eta": rng.normal(size=N), "kind": rng.choice(kinds, N)}


def text(separator: str, rows: dict[str, np.ndarray]) -> str:
    """A line of names, and a line for each row."""
    cells = zip(*(column.tolist() for column in rows.values()), strict=True)
    return "\n".join([separator.join(rows), *(separator.join(map(str, row)) for row in cells)])


def to_csv(path: Path, separator: str = ",") -> None:
    """Text, compressed if its name says so."""
    content = text(separator, table()).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def to_json_lines(path: Path) -> None:
    """An object in each line."""
    rows = table()
    cells = zip(*(column.tolist() for column in rows.values()), strict=True)
    path.write_text("\n".join(json.dumps(dict(zip(rows, row, strict=True))) for row in cells))


def to_npy(path: Path) -> None:
    """An array of records."""
    rows = table()
    found = np.empty(N, [(name, column.dtype) for name, column in rows.items()])
    for name, column in rows.items():
        found[name] = column
    np.save(path, found)


def to_parquet(path: Path) -> None:
    """By Arrow."""
    pa.parquet.write_table(pa.table(table()), path)


def to_h5(path: Path) -> None:
    """A group of columns."""
    with h5py.File(path, "w") as file:
        for name, column in table().items():
            file[f"events/{name}"] = column.astype("S5") if column.dtype.kind == "U" else column


def to_root(path: Path) -> None:
    """A tree; texts are left out."""
    rows = {name: column for name, column in table().items() if name in COLUMNS}
    with uproot.recreate(path) as file:
        file.mktree("events", {name: column.dtype for name, column in rows.items()}).extend(rows)


FORMATS: dict[str, Callable[[Path], None]] = {
    "x.csv": to_csv,
    "x.tsv": partial(to_csv, separator="\t"),
    "x.csv.gz": to_csv,
    "x.jsonl": to_json_lines,
    "x.npy": to_npy,
    "x.npz": lambda path: np.savez_compressed(path, **table()),
    "x.parquet": to_parquet,
    "x.h5": to_h5,
    "x.root": to_root,
}


# --- Bytes ----------------------------------------------------------------------------------------


def damaged(here: Box, seed: int, name: str, write: Callable[[Path], None]) -> None:
    """Test and info of a damaged file; nothing else appears in the folder."""
    good = here / f"good-{name}"
    write(good)
    path = here / name
    path.write_bytes(mutated(good.read_bytes(), np.random.default_rng([seed, 20])))
    columns = ["--columns", ",".join(COLUMNS)]
    either(here.inside("test", good.name, name, *READ, *columns))
    either(here.inside("info", name))
    left = sorted(file.name for file in here.folder.iterdir())
    check(left == sorted([good.name, name]), f"the folder holds {left}")


def declare_damage(name: str, write: Callable[[Path], None]) -> None:
    """For one format."""
    suffix = name.removeprefix("x")
    random_attack("files", f"bytes of a {suffix} file changed, copied or cut", "answer or error")(
        lambda here, seed: damaged(here, seed, name, write)
    )
    attack("files", f"a {suffix} file cut short at 20 places", "answer or error")(
        lambda here: cut_short(here, name, write)
    )
    attack("files", f"a {suffix} file of nothing, of a byte, and of noise", "error")(
        lambda here: nothing(here, name)
    )
    attack("files", f"a {suffix} that is a device without end", "error")(
        lambda here: device(here, name)
    )
    attack("files", f"a {suffix} that is a page of the web, or a picture", "error")(
        lambda here: other_kind(here, name)
    )


def cut_short(here: Box, name: str, write: Callable[[Path], None]) -> None:
    """As a copy that was interrupted."""
    write(here / name)
    whole = (here / name).read_bytes()
    for share in np.linspace(0.01, 0.99, 20):
        (here / name).write_bytes(whole[: int(share * len(whole))])
        either(here.inside("info", name))


def nothing(here: Box, name: str) -> None:
    """Files without a table."""
    for content in (b"", b"\x00", np.random.default_rng(0).bytes(5000)):
        (here / name).write_bytes(content)
        either(here.inside("info", name))
        refused(here.inside("test", name, name, *READ), name)


def device(here: Box, name: str) -> None:
    """/dev/zero by another name."""
    (here / name).symlink_to("/dev/zero")
    refused(here.inside("info", name), "is no ordinary file")


def other_kind(here: Box, name: str) -> None:
    """What a browser saves in place of a download."""
    for content in (b"<!DOCTYPE html><html>404</html>", b"\x89PNG\r\n\x1a\n" + b"\0" * 99):
        (here / name).write_bytes(content)
        refused(here.inside("info", name), name)


for _name, _write in FORMATS.items():
    declare_damage(_name, _write)


# --- Other files ----------------------------------------------------------------------------------


def secret(here: Box) -> Path:
    """What nobody named."""
    path = here / "secret.h5"
    with h5py.File(path, "w") as file:
        file["X"] = samples()[1]
    return path


def never_reads(here: Box, write: Callable[[h5py.File], None]) -> None:
    """A file that sends its reader to another one."""
    with h5py.File(here / "x.h5", "w") as file:
        write(file)
    for command in (["info", "x.h5"], ["test", "x.h5", "x.h5", *READ]):
        refused(here.inside(*command), "no file is read that was not named")


@attack("files", "an HDF5 table by an external link", "error")
def external_link(here: Box) -> None:
    """h5py.ExternalLink."""
    path = secret(here)
    never_reads(here, lambda file: file.__setitem__("X", h5py.ExternalLink(path, "/X")))


@attack("files", "an HDF5 table whose bytes lie in another file", "error")
def external_bytes(here: Box) -> None:
    """External raw storage: of /etc/passwd."""
    path = "/etc/passwd"
    size = os.path.getsize(path) // 2
    never_reads(
        here, lambda f: f.create_dataset("X", (size, 2), "u1", external=[(path, 0, 2 * size)])
    )


def virtual(here: Box, path: Path) -> None:
    """A dataset that is put together of others."""
    shape = samples()[1].shape
    layout = h5py.VirtualLayout(shape, "f8")
    layout[:] = h5py.VirtualSource(path, "X", shape)
    never_reads(here, lambda file: file.create_virtual_dataset("X", layout))


@attack("files", "an HDF5 table made of another file's", "error")
def virtual_there(here: Box) -> None:
    """The other file is there."""
    virtual(here, secret(here))


@attack("files", "an HDF5 table made of a file that is missing", "error, and no zeros")
def virtual_missing(here: Box) -> None:
    """HDF5 reads zeros there."""
    virtual(here, here / "none.h5")


@attack("files", "an HDF5 table that was never written", "error, and no zeros")
def never_written(here: Box) -> None:
    """Room without values."""
    with h5py.File(here / "x.h5", "w") as file:
        file.create_dataset("X", (500, 2), "f8")
    refused(here.inside("info", "x.h5"), "nothing was ever written there")


@attack("files", "a Parquet file whose columns are said to lie in another file", "answer or error")
def parquet_elsewhere(here: Box) -> None:
    """The field file_path of a column chunk, as _metadata files have it."""
    rows = pa.table({name: table()[name] for name in COLUMNS})
    pa.parquet.write_table(rows, here / "secret.parquet")
    collected: list[pa.parquet.FileMetaData] = []
    pa.parquet.write_table(rows, here / "whole.parquet", metadata_collector=collected)
    collected[0].set_file_path("secret.parquet")
    collected[0].write_metadata_file(here / "x.parquet")
    done = here.inside("test", "secret.parquet", "x.parquet", *READ)
    refused(done, "x.parquet")


@attack("files", "a ROOT file with the name of another one in place of a tree", "error")
def root_named(here: Box) -> None:
    """A text is no tree, and nothing of the other file is read."""
    write_tree(here / "secret.root", {"x": np.arange(9.0)})
    with uproot.recreate(here / "x.root") as file:
        file["events"] = "secret.root:events"
    refused(here.inside("info", "x.root"), "holds no tree")


@attack("files", "a ROOT tree with a friend in another file", "only its own columns")
def root_friend(here: Box) -> None:
    """What stands in the other file is not asked for."""
    write_tree(here / "secret.root", {"secret": np.arange(50.0)})
    write_tree(here / "x.root", {"x": np.arange(50.0)}, friend="secret.root")
    done = plain(here.inside("info", "x.root"))
    check(done.code == 0 and "secret" not in done.out, f"{done.out} {done.said}")


@attack("files", "a ROOT tree whose branches lie in another file", "error")
def root_elsewhere(here: Box) -> None:
    """At the same places of this one there is something else."""
    rows = np.random.default_rng(0).normal(size=500)
    write_tree(here / "secret.root", {"x": rows})
    write_tree(here / "x.root", {"x": rows}, lies_in="secret.root")
    content = (here / "x.root").read_bytes()
    place = content.index(rows.astype(">f8").tobytes())
    for other in (bytes(8 * len(rows)), content[:4000]):
        (here / "x.root").write_bytes(content[: place - 60] + other + content[place + 4000 :])
        refused(here.inside("test", "x.root", "secret.root", *READ), "x.root")


@attack("files", "pickled objects in .npy and .npz", "error, nothing is run")
def pickled(here: Box) -> None:
    """An object whose loading writes a file."""

    class Trap:
        def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
            return os.mkdir, (str(here / "sprung"),)

    array = np.array([[Trap(), 1], [2, 3]], object)
    np.save(here / "x.npy", array, allow_pickle=True)
    np.savez(here / "x.npz", X=array)
    for name in ("x.npy", "x.npz"):
        refused(here.inside("info", name), "pickled")
    check(not (here / "sprung").exists(), "the pickle was loaded")


# --- Sizes ----------------------------------------------------------------------------------------


@attack("files", "an HDF5 file of a few kB with 20 GB of one value", "error, bounded memory")
def bomb_h5(here: Box) -> None:
    """One chunk written, the others are fill values."""
    with h5py.File(here / "x.h5", "w") as file:
        rows = file.create_dataset("X", (10**9, 2), "f8", chunks=(10**5, 2), compression="gzip")
        rows[:10] = 1.0
        rows[-10:] = 1.0
    refused(here.inside("test", "x.h5", "x.h5", *READ), "x.h5")
    refused(here.inside("info", "x.h5"), "x.h5")


@attack("files", "an HDF5 file whose one chunk unpacks to 8 GB", "error, bounded memory")
def bomb_h5_chunk(here: Box) -> None:
    """A chunk is unpacked whole."""
    with h5py.File(here / "x.h5", "w") as file:
        rows = file.create_dataset("X", (10**8, 2), "f4", chunks=(10**8, 2), compression="gzip")
        rows.id.write_direct_chunk((0, 0), gzip.zlib.compress(bytes(10**6)))  # type: ignore[attr-defined]
    refused(here.inside("info", "x.h5"), "x.h5")


@attack("files", "a Parquet file of 0.1 MB with 1.6 GB of zeros", "error, bounded memory")
def bomb_parquet(here: Box) -> None:
    """Runs of one value take no room."""
    zeros = pa.table({"x": np.zeros(10**7), "y": np.zeros(10**7)})
    with pa.parquet.ParquetWriter(here / "x.parquet", zeros.schema, compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(zeros)
    refused(here.inside("test", "x.parquet", "x.parquet", *READ, seconds=240), "x.parquet")


@attack("files", "an .npz of 0.6 MB with 640 MB of zeros", "error, bounded memory")
def bomb_npz(here: Box) -> None:
    """Deflated zeros."""
    with (
        zipfile.ZipFile(here / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w", force_zip64=True) as file,
    ):
        head = np.lib.format.header_data_from_array_1_0(np.zeros((1, 2)))
        np.lib.format.write_array_header_1_0(file, head | {"shape": (40_000_000, 2)})
        for _ in range(40):
            file.write(bytes(16 * 10**6))
    refused(here.inside("test", "x.npz", "x.npz", *READ), "x.npz")


@attack("files", "a .csv.gz of 0.6 MB with 600 MB of lines", "error, bounded memory")
def bomb_csv(here: Box) -> None:
    """Lines that are all alike."""
    with gzip.open(here / "x.csv.gz", "wb") as file:
        for _ in range(30):
            file.write(b"0,0\n" * 5 * 10**6)
    refused(here.inside("test", "x.csv.gz", "x.csv.gz", *READ, seconds=240), "x.csv.gz")


@attack("files", "a .jsonl.gz of lines that become many objects", "error, bounded memory")
def bomb_json(here: Box) -> None:
    """Empty lists within a list."""
    with gzip.open(here / "x.jsonl.gz", "wt") as file:
        for _ in range(3):
            file.write("[" + "[]," * (2 * 10**7) + "[]]\n")
    refused(here.inside("info", "x.jsonl.gz"), "x.jsonl.gz")


@attack("files", "a .csv.gz of one line without end", "error, bounded memory")
def endless_line(here: Box) -> None:
    """A hundred megabytes of ones."""
    with gzip.open(here / "x.csv.gz", "wb") as file:
        for _ in range(10):
            file.write(b"1" * 10**7)
    refused(here.inside("info", "x.csv.gz"), "without end")


@attack("files", "an .npy that claims 10^18 rows, and one of -1", "error")
def claims(here: Box) -> None:
    """Headers are believed only as far as the file goes."""
    for shape in ((10**18, 2), (-1, 2), (2**63, 2**63), (10,) * 40):
        with open(here / "x.npy", "wb") as file:
            head = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, head)
            file.write(bytes(1600))
        refused(here.inside("info", "x.npy"), "x.npy")


@attack("files", "40,000 named columns", "answer within 120 s")
def many_columns(here: Box) -> None:
    """Linear, not quadratic."""
    rng = np.random.default_rng(0)
    names = ",".join(f"column {i}" for i in range(40_000))
    for name, n in (("a.csv", 12), ("b.csv", 6)):
        np.savetxt(
            here / name, rng.normal(size=(n, 40_000)), "%.3f", ",", header=names, comments=""
        )
    either(here.inside("info", "a.csv", seconds=60))
    p_value(here.inside("test", "a.csv", "b.csv", *READ))


@attack("files", "a million named columns", "answer or error within 120 s")
def million_columns(here: Box) -> None:
    """A file of 20 MB."""
    line = ",".join(f"c{i}" for i in range(1_000_000))
    (here / "x.csv").write_text(line + "\n" + ",".join(["1"] * 1_000_000) + "\n")
    either(here.inside("test", "x.csv", "x.csv", *READ))


@attack("files", "3,000 HDF5 groups within each other", "error within 60 s")
def nested_groups(here: Box) -> None:
    """Each knows the path to the root."""
    with h5py.File(here / "x.h5", "w") as file:
        group: h5py.Group = file
        for _ in range(3000):
            group = group.create_group("g")
        group["X"] = np.ones((9, 2))
    refused(here.inside("info", "x.h5", seconds=60), "groups within each other")


@attack("files", "an .npy cut short while it is read", "answer or error, no SIGBUS")
def cut_while_read(here: Box) -> None:
    """Ten times, by another process, as it were."""
    here.samples()
    for number in range(10):
        np.save(here / "x.npy", np.ones((2 * 10**6, 2)))

        def cut(wait: float = number / 100) -> None:
            time.sleep(wait)
            os.truncate(here / "x.npy", 10_000)

        cutter = threading.Thread(target=cut)
        cutter.start()
        either(here.inside("info", "x.npy"))
        cutter.join()


# --- Text -----------------------------------------------------------------------------------------


@attack("files", "a CSV whose header is numbers, in both files", "warning")
def number_header(here: Box) -> None:
    """Names that are read as a row."""
    reference, data = samples()
    for name, rows in (("a.csv", reference), ("b.csv", data)):
        np.savetxt(here / name, rows, delimiter=",", header="100,200", comments="")
    done = here.inside("test", "a.csv", "b.csv", *READ)
    warned(done, "begin with the same line of numbers")


@attack("files", "escape sequences in names, cells and file names", "made printable")
def escapes(here: Box) -> None:
    """What a terminal would obey."""
    evil = "a\x1b[31mred\x9b2J\u202e"
    here.samples()
    for name in ("x.csv", f"{evil}.csv"):
        (here / name).write_text(f"{evil},y\n1,2\n{evil},{evil}\n")
        plain(here.inside("info", name))
        plain(here.inside("test", name, "data.npy"))
    plain(here.inside("test", "reference.npy", "data.npy", "--columns", evil))
    plain(here.inside("info", evil))
    plain(here.inside(evil))


@attack("files", "a name twice in an object of JSON", "error")
def twice(here: Box) -> None:
    """The last one would win."""
    (here / "x.jsonl").write_text('{"a": 1, "b": 2, "a": 3}\n' * 9)
    refused(here.inside("info", "x.jsonl"), "'a' twice")


TEXTS = {
    "quotes that do not end": b'a,b\n"1,2\n3,4\n',
    "lines of other lengths": b"a,b\n1,2\n3\n4,5,6\n",
    "no UTF-8": b"a,b\n\xff\xfe,1\n",
    "UTF-16": "a,b\n1,2\n".encode("utf-16"),
    "null bytes": b"a,b\n1,\x002\n",
    "only separators": b",,,\n,,,\n",
    "the same name twice": b"a,a\n1,2\n",
    "a row of words and numbers in place of names": b"red,1\nblue,3\n",
}


@attack("files", "CSV: quotes without end, wrong lengths, UTF-16, null bytes, names twice", "error")
def wrong_text(here: Box) -> None:
    """Each is an error that names the file."""
    for content in TEXTS.values():
        (here / "x.csv").write_bytes(content)
        refused(here.inside("info", "x.csv"), "x.csv")


JSONS = {
    "deep": b"[" * 100_000 + b"\n",
    "a number": b"3\n",
    "other names": b'{"a": 1}\n{"b": 2}\n',
    "a list after an object": b'{"a": 1}\n[2]\n',
    "no JSON": b"{a: 1}\n",
    "NaN of another kind": b'{"a": nan}\n',
}


@attack("files", "JSON: 100,000 lists within lists, other names, no JSON", "error")
def wrong_json(here: Box) -> None:
    """Each is an error that names the file."""
    for content in JSONS.values():
        (here / "x.jsonl").write_bytes(content)
        refused(here.inside("info", "x.jsonl"), "x.jsonl")


@attack("files", "numbers of 5,000 digits", "answer or error")
def long_numbers(here: Box) -> None:
    """Python refuses to convert them by itself."""
    digits = "9" * 5000
    (here / "x.jsonl").write_text("\n".join(f'{{"a": {digits}, "b": {i}}}' for i in range(40)))
    (here / "x.csv").write_text("a,b\n" + "\n".join(f"{digits},{i}" for i in range(40)))
    for name in ("x.jsonl", "x.csv"):
        either(here.inside("info", name))
        either(here.inside("test", name, name, *READ))


@random_attack("files", "random text as .csv", "answer or error", 1.0)
def random_csv(here: Box, seed: int) -> None:
    """Cells, quotes, separators and line ends in any order."""
    random_text(here, seed, "x.csv", [*'01-.e,;\t"\n\r a', "nan", "inf", "1e999", "\n1,2\n"])


@random_attack("files", "random text as .jsonl", "answer or error", 1.0)
def random_json(here: Box, seed: int) -> None:
    """Tokens of JSON in any order."""
    tokens = ['{"a": 1}\n', "[1, 2]\n", "{", "}", "[", "]", ",", ":", '"a"', "1", "\n", "null"]
    random_text(here, seed, "x.jsonl", [*tokens, "1e999", "NaN", "-Infinity", "true"])


def random_text(here: Box, seed: int, name: str, tokens: list[str]) -> None:
    """A file of tokens."""
    rng = np.random.default_rng([seed, 21])
    (here / name).write_text("".join(rng.choice(tokens, rng.integers(1, 80))), newline="")
    either(here.inside("info", name))
    either(here.inside("test", name, name, *READ))


@attack("files", "two files of different formats and orders of columns", "the same p-value")
def other_order(here: Box) -> None:
    """By name, not by place."""
    reference, data = samples()
    for name, rows, order in (("a.csv", reference, (0, 1)), ("b.jsonl", data, (1, 0))):
        names = ("x", "y")
        if name.endswith("csv"):
            np.savetxt(here / name, rows, "%.17g", ",", header="x,y", comments="")
        else:
            (here / name).write_text(
                "\n".join(json.dumps({names[i]: float(row[i]) for i in order}) for row in rows)
            )
    here.samples()
    first = p_value(here.inside("test", "reference.npy", "data.npy", *READ))
    other = p_value(found(here.inside("test", "a.csv", "b.jsonl", *READ)))
    check(first == other, f"p = {other} in place of {first}")
