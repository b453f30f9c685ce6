"""What nobody thinks of: pipes, odd names, circles, things in the place of others."""

import gzip
import io
import os
import shutil
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from experiments.reliability.attack import attack
from experiments.reliability.box import READ, Box, samples
from experiments.reliability.ends import check, either, p_value, plain, refused

CIRCLE = "a link that leads to itself"


def saved(array: np.ndarray) -> bytes:
    """As .npy."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def csv(rows: np.ndarray, names: str = "x,y", end: str = "\n") -> str:
    """As text."""
    return end.join([names, *(",".join(map(repr, row)) for row in rows.tolist())])


# --- Tables ---------------------------------------------------------------------------------------


@attack("files", "halves of characters in names and values of JSON", "error")
def halves(here: Box) -> None:
    """No text can be written with them."""
    for name, value in (("x\\ud800", "a"), ("x", "\\udfff")):
        line = f'{{"{name}": "{value}", "y": 1}}\n'
        (here / "x.jsonl").write_text(line * 40)
        refused(here.inside("info", "x.jsonl"), "half a character")


@attack("files", "an .npz with two arrays of one name", "error")
def same_name(here: Box) -> None:
    """The last one would win."""
    np.savez(here / "x.npz", X=samples()[0])
    with zipfile.ZipFile(here / "x.npz", "a") as archive:
        archive.writestr("X.npy", saved(samples()[1]))
    refused(here.inside("info", "x.npz"), "twice")


@attack("files", "an .npz whose parts are called ../../x and /x", "answer, and no file elsewhere")
def leaving(here: Box) -> None:
    """Nothing is unpacked into files."""
    (here / "deep" / "er").mkdir(parents=True)
    for name in ("../../x.npy", "/x.npy"):
        with zipfile.ZipFile(here / "deep" / "er" / "x.npz", "w") as archive:
            archive.writestr(name, saved(samples()[1]))
        either(here.inside("info", "deep/er/x.npz"))
    found = [path.name for path in here.folder.rglob("*") if path.is_file()]
    check(found == ["x.npz"], f"there are {found}")


@attack("files", "an .npy of texts, times, records, long doubles, nothing", "answer or error")
def kinds(here: Box) -> None:
    """Every kind of value that NumPy saves without pickle."""
    nested = [("a", "f8", (3,)), ("b", [("c", "f4")])]
    for kind in ("U9", "S9", "c16", "M8[s]", "m8[s]", "V7", nested, "?", "f2", "g", "u8", ">i2"):
        for shape in ((30,), (30, 2), (0, 2), (30, 0), (), (3, 3, 3)):
            np.save(here / "x.npy", np.zeros(shape, kind))
            either(here.inside("info", "x.npy"))
    np.save(here / "x.npy", np.full((40, 2), 2**64 - 1, np.uint64))
    either(here.inside("test", "x.npy", "x.npy", *READ))


@attack("files", "an .npy with a header of 60,000 brackets, or of a value of 4 GB", "error")
def headers(here: Box) -> None:
    """What NumPy parses before anything is known."""
    start = b"\x93NUMPY\x01\x00" + (60_000).to_bytes(2, "little")
    (here / "x.npy").write_bytes(start + b"(" * 59_999 + b"\n" + bytes(99))
    refused(here.inside("info", "x.npy"), "x.npy")
    with open(here / "x.npy", "wb") as file:
        head = {"descr": "<U1000000000", "fortran_order": False, "shape": (1,)}
        np.lib.format.write_array_header_1_0(file, head)
    refused(here.inside("info", "x.npy"), "x.npy")


@attack(
    "files", "a Parquet file with columns of every kind, and two of one name", "answer or error"
)
def arrow_kinds(here: Box) -> None:
    """What Arrow can write."""
    n = 60
    columns = {
        "nothing": pa.nulls(n),
        "lists": [[1, 2]] * n,
        "structs": [{"a": 1}] * n,
        "decimals": pa.array([1] * n, pa.decimal128(38, 0)),
        "durations": pa.array([1] * n, pa.duration("s")),
        "times": pa.array([2**62] * n, pa.timestamp("ns", tz="Europe/Paris")),
        "hours": pa.array([1] * n, pa.time32("s")),
        "bytes": pa.array([b"\xff"] * n),
        "half": np.zeros(n, np.float16),
        "x": np.random.default_rng(0).normal(size=n),
        "kinds": pa.array(["a", "b"] * (n // 2)).dictionary_encode(),
    }
    pa.parquet.write_table(pa.table(columns), here / "x.parquet")
    either(here.inside("info", "x.parquet"))
    refused(here.inside("test", "x.parquet", "x.parquet", *READ), "lists, structs")
    either(here.inside("test", "x.parquet", "x.parquet", *READ, "--ignore", "lists,structs"))
    twice = pa.Table.from_arrays([pa.array([1.0] * n)] * 2, names=["a", "a"])
    pa.parquet.write_table(twice, here / "x.parquet")
    refused(here.inside("info", "x.parquet"), "'a'")


@attack("files", "HDF5 links in circles, references, enumerations", "answer or error")
def circles(here: Box) -> None:
    """Groups that hold themselves."""
    with h5py.File(here / "x.h5", "w") as file:
        group = file.create_group("a")
        group["itself"] = group
        file["soft"] = h5py.SoftLink("/soft")
        file["events/x"] = samples()[1][:, 0]
        file["events/e"] = np.zeros(200, h5py.enum_dtype({"a": 0, "b": 1}))
        file["events/r"] = np.array([file["events/x"].ref] * 200, h5py.ref_dtype)
    for name in ("x.h5", "x.h5:a/itself/itself", "x.h5:soft", "x.h5:events", "x.h5:../../etc"):
        either(here.inside("info", name))
        either(here.inside("test", name, name, *READ))


@attack("files", "a byte order mark, and lines that end as elsewhere", "the same p-value")
def line_ends(here: Box) -> None:
    """As Windows and old Macs write them."""
    reference, data = samples()
    found = set()
    for end in ("\n", "\r\n", "\r"):
        (here / "a.csv").write_text("\ufeff" + csv(reference, end=end), newline="")
        (here / "b.csv").write_text(csv(data, end=end) + end, newline="")
        found.add(p_value(here.inside("test", "a.csv", "b.csv", *READ)))
    check(len(found) == 1, f"p-values {sorted(found)}")


@attack("files", "a .csv.gz with something behind its end, and one of two parts", "error; all rows")
def behind(here: Box) -> None:
    """As appending makes them."""
    packed = gzip.compress(csv(samples()[1]).encode())
    (here / "x.csv.gz").write_bytes(packed + b"something")
    refused(here.inside("info", "x.csv.gz"), "x.csv.gz")
    (here / "x.csv.gz").write_bytes(packed + gzip.compress(b"\n1,2"))
    check("201 rows" in plain(here.inside("info", "x.csv.gz")).out, "rows were lost")


@attack("files", "names of files: no UTF-8, 300 letters, line breaks, a minus", "answer or error")
def file_names(here: Box) -> None:
    """And what is written under such names can be read again."""
    here.samples()
    for name in (os.fsdecode(b"\xff\xfe"), "n" * 300, "a\nb", "-x", "*", "a:b"):
        given = ["--", f"{name}.npy"]
        if len(name) < 200:
            shutil.copy(here / "data.npy", here / f"{name}.npy")
            plain(here.inside("info", *given))
        save = f"--save={name}.sparker"
        either(here.inside("test", *READ, save, "--", "reference.npy", given[1]))
        if f"{name}.sparker" in os.listdir(here.folder):
            plain(here.inside("info", "--", f"{name}.sparker"))


@attack("files", "links that are broken or in a circle, and a folder called x.csv", "error")
def no_files(here: Box) -> None:
    """Each is said to be what it is."""
    (here / "x.csv").mkdir()
    (here / "circle.csv").symlink_to("circle.csv")
    (here / "broken.csv").symlink_to("none.csv")
    for name in ("x.csv", "circle.csv", "broken.csv", "", "/", "."):
        refused(here.inside("info", name))
        refused(here.inside("test", name, name, *READ))


@attack(
    "files", "columns called __proto__, constructor, None, self, row, p_value", "answer, report"
)
def column_names(here: Box) -> None:
    """Names that mean something in Python, JavaScript and our own tables."""
    names = ["__proto__", "constructor", "None", "self", "row", "p_value", "length", "index"]
    rng = np.random.default_rng(0)
    for name, n in (("a.csv", 200), ("b.csv", 60)):
        (here / name).write_text(csv(rng.normal(size=(n, len(names))), ",".join(names)))
    done = here.inside("test", "a.csv", "b.csv", *READ, "--rows", "r.csv", "--report", "r.html")
    p_value(done)
    first = (here / "r.csv").read_text().splitlines()[0].split(",")
    check(len(set(first)) == len(first) and {*names} <= {*first}, f"columns {first}")


# --- Stores, results, monitors --------------------------------------------------------------------


@attack("kept", "a store that is a link, and one that is merged into itself", "the same p-value")
def links(here: Box) -> None:
    """Folders go by any name."""
    here.samples()
    test = ["test", "reference.npy", "data.npy", *READ]
    first = p_value(here.inside(*test, "--store", "store"))
    (here / "link").symlink_to("store")
    check(p_value(here.inside(*test, "--store", "link")) == first, "another p-value")
    either(here.inside("merge", "store", "link", "--into", "store"))
    check(p_value(here.inside(*test, "--store", "store")) == first, "another p-value")


# --- Options --------------------------------------------------------------------------------------


@attack(
    "options", "--columns of nothing, of commas, of 100,000 names, of escape sequences", "error"
)
def no_columns(here: Box) -> None:
    """An empty variable of a script does not mean all columns."""
    here.samples()
    (here / "a.csv").write_text(csv(samples()[0]))
    many = ",".join(f"c{i}" for i in range(10_000))
    for given in ("", ",,,", " ", many, "x\x1b[31m", "x,x", "x,\n"):
        done = here.inside("test", "a.csv", "a.csv", *READ, "--columns", given)
        refused(done) if given != "x,\n" else either(done)


@attack("options", "outputs into folders, devices, names that are too long", "error, or written")
def odd_outputs(here: Box) -> None:
    """Said before any work, where it can be known."""
    here.samples()
    for option in ("--save", "--rows", "--report"):
        for name in ("", ".", "/", "n" * 300, "/dev/full", "none/x", "\x00", "/dev/null"):
            done = here.inside("test", "reference.npy", "data.npy", *READ, option, name)
            plain(done) if name == "/dev/null" else refused(done)


@attack("options", "a store that is a device, a circle, a file, nothing", "error")
def odd_stores(here: Box) -> None:
    """Toys go into folders."""
    here.samples()
    (here / "circle").symlink_to("circle")
    for name in ("/dev/null", "circle", "data.npy", "n" * 300, "data.npy/x"):
        refused(here.inside("test", "reference.npy", "data.npy", *READ, "--store", name))


# --- Machines -------------------------------------------------------------------------------------


@attack("environments", "numpy.py, json.py, h5py.py, struct.py in the folder", "never run")
def shadows(here: Box) -> None:
    """Neither by the command as it is installed nor by the process that reads files."""
    here.samples()
    with h5py.File(here / "x.h5", "w") as file:
        file["X"] = samples()[1]
    for name in ("numpy", "json", "h5py", "struct", "sparker", "site", "sitecustomize"):
        (here / f"{name}.py").write_text("open('sprung', 'w').close()\n")
    code = "from sparker.cli.main import main; main()"
    p_value(here.outside("test", "reference.npy", "x.h5", *READ, code=code, python=["-P"]))
    check(not (here / "sprung").exists(), "a module of the folder was run")


@attack("environments", "other time zones and other orders of sets", "the same p-value")
def elsewhere(here: Box) -> None:
    """With times and categories."""
    rng = np.random.default_rng(0)
    for name, n in (("a.csv", 300), ("b.csv", 60)):
        hours = np.datetime64("2026-03-01T00:00") + rng.integers(0, 10**5, n)
        rows = zip(hours, rng.choice([*"abcdef"], n), rng.normal(size=n), strict=True)
        text = "\n".join(f"{when},{kind},{x}" for when, kind, x in rows)
        (here / name).write_text("when,kind,x\n" + text)
    found = {
        p_value(
            here.outside(
                "test", "a.csv", "b.csv", *READ, variables={"TZ": zone, "PYTHONHASHSEED": number}
            )
        )
        for zone, number in (("UTC", "0"), ("Asia/Kathmandu", "1"), ("nonsense", "2"))
    }
    check(len(found) == 1, f"p-values {found}")


@attack("environments", "32 files that may be open, Python's development mode", "answer or error")
def few_files(here: Box) -> None:
    """Ulimit -n, and -X dev."""
    here.samples()
    with h5py.File(here / "x.h5", "w") as file:
        file["X"] = samples()[1]
    command = ["test", "reference.npy", "x.h5", *READ]
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)); {MAIN}"
    either(here.outside(*command, code=limited))
    p_value(here.outside(*command, python=["-X", "dev"]))


MAIN = "from sparker.cli.main import main; main()"
