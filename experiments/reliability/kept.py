"""Results, stores, monitors and reports that somebody else changed."""

import functools
import io
import json
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from experiments.reliability.attack import attack, random_attack
from experiments.reliability.box import QUICK, Box, shared
from experiments.reliability.damage import BYTES, MEMBERS, members_of, zipped
from experiments.reliability.ends import Done, check, either, p_value, plain, refused
from experiments.reliability.forgery import forged

from sparker.findings.saved import KIND as RESULT
from sparker.monitor import KIND as MONITOR
from sparker.system import archive

TEST = ["test", "reference.npy", "data.npy", *QUICK, "--store", "store"]
FILES = {RESULT: "result.npz", MONITOR: "monitor.npz"}
HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"


def use(here: Box, kind: str) -> list[Done]:
    """All commands that read such a file."""
    if kind == RESULT:
        return [
            here.inside("info", "result.npz"),
            here.inside("report", "result.npz", "--output", "report.html"),
        ]
    here.copy("quiet.npy")
    return [here.inside("info", "monitor.npz"), here.inside("watch", "monitor.npz", "quiet.npy")]


# --- Stores ---------------------------------------------------------------------------------------


def chunks(folder: Path) -> list[Path]:
    """The files with toys."""
    return sorted(folder.glob("*.npz"))


def with_store(here: Box) -> float:
    """A store, the samples it is of, and the true p-value."""
    here.samples()
    here.copy("store")
    return p_value(here.inside(*TEST))


def another(here: Box, *settings: str) -> Path:
    """The store of another test of the same samples."""
    done = here.inside(*TEST[:-1], "other", *settings)
    check(done.code in (0, 1), done.said)
    return here / "other"


@attack("kept", "another test's chunk copied into a store", "error")
def foreign_chunk(here: Box) -> None:
    """Of another seed."""
    with_store(here)
    other = another(here, "--seed", "1")
    shutil.copy(chunks(other)[-1], chunks(here / "store")[-1])
    refused(here.inside(*TEST), "another test")


@attack("kept", "a store of other data without its manifest", "error, and never their p-value")
def without_manifest(here: Box) -> None:
    """Its chunks still say which test they are of."""
    true = with_store(here)
    np.save(here / "data.npy", np.load(here / "data.npy")[::-1] + 1e-3)
    (here / "store" / "manifest.json").unlink()
    refused(here.inside(*TEST), "another test")
    here.samples()
    check(p_value(here.inside(*TEST)) == true, "another p-value than before")


@attack("kept", "a store of other data", "error")
def other_data(here: Box) -> None:
    """Refused before any toy is made."""
    with_store(here)
    np.save(here / "data.npy", np.load(here / "data.npy") + 1e-3)
    refused(here.inside(*TEST), "another test")


@attack("kept", "merging stores that contradict each other", "error")
def contradicting(here: Box) -> None:
    """The first must not win."""
    with_store(here)
    other = Path(shutil.copytree(here / "store", here / "copy"))
    path = chunks(other)[-1]
    with np.load(path) as file:
        parts = {name: file[name] for name in file}
    header = json.loads(parts.pop("header").tobytes())
    parts.pop("digest")
    changed = {k: v + 1 if v.dtype.kind == "f" else v for k, v in parts.items()}
    archive.write(path, header, changed)
    refused(here.inside("merge", "store", "copy", "--into", "all"))
    check(not (here / "all").exists(), "a store was made of both")


@attack("kept", "a loss of one's own that changed under its name", "error")
def changed_loss(here: Box) -> None:
    """The library, twice in processes of their own."""
    code = """
import sys, numpy as np, jax, sparker
strength = float(sys.argv[1])
def reference(f): return strength * jax.nn.softplus(f)
def reference_slope(f): return strength * jax.nn.sigmoid(f)
own = sparker.engine.binary_cross_entropy._replace(
    reference=reference, reference_slope=reference_slope)
rng = np.random.default_rng(0)
try:
    print(sparker.test(rng.normal(size=(100, 2)), rng.normal(size=(40, 2)), n_toys=9, store="own",
        config=sparker.FitConfig(n_kernels=2, loss=own), explain=False, progress=False,
        widths=sparker.WidthConfig(steps=20, n_widths=3)).p_value)
except ValueError as error:
    print("Error:", error, file=sys.stderr); sys.exit(2)
"""
    check(here.outside("1.0", code=code).code == 0, "no first answer")
    check(here.outside("1.0", code=code).code == 0, "no second answer")
    refused(here.outside("1.1", code=code), "another test", "loss")


def edited(here: Box, change: Callable[[dict[str, Any]], Any]) -> None:
    """A manifest with other values."""
    with_store(here)
    path = here / "store" / "manifest.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    refused(here.inside(*TEST), "manifest.json")


@attack("kept", "a manifest with a chunk of 10^9, 0, -4 or 'many' toys", "error")
def edited_chunk(here: Box) -> None:
    """Memory is not asked for."""
    for chunk in (10**9, 0, -4, "many", None, 2**70):
        shutil.rmtree(here / "store", ignore_errors=True)
        edited(here, lambda manifest, chunk=chunk: manifest | {"chunk": chunk})  # type: ignore[misc]


@attack("kept", "a manifest without its digest", "error")
def without_digest(here: Box) -> None:
    """As an older version, or a hand, would write it."""
    edited(here, lambda manifest: {k: v for k, v in manifest.items() if k != "digest"})


TEXTS = {
    "deep": b"[" * 100_000,
    "twice": b'{"chunk": 4, "chunk": 8}',
    "huge": b" " * 2**24 + b'{"chunk": 4}',
    "a long number": b'{"chunk": ' + b"9" * 10_000 + b"}",
    "empty": b"",
    "no text": b"\xff\xfe\x00",
}


@attack("kept", "a manifest that is deep, huge, empty, or has a key twice", "error")
def hostile_manifest(here: Box) -> None:
    """JSON that is read without trust."""
    here.samples()
    (here / "store").mkdir()
    for content in TEXTS.values():
        (here / "store" / "manifest.json").write_bytes(content)
        refused(here.inside(*TEST), "manifest.json")


@random_attack("kept", "bytes and parts of a chunk changed", "the same p-value, or error", 0.5)
def damaged_chunk(here: Box, seed: int) -> None:
    """Noticed by its digest."""
    here.samples()
    here.copy("store")
    paths = chunks(here / "store")
    rng = np.random.default_rng([seed, 22])
    path = paths[rng.integers(len(paths))]
    ways = BYTES + MEMBERS
    whole = path.read_bytes()
    other = (shared() / "result.npz").read_bytes()
    path.write_bytes(ways[seed % len(ways)](rng, whole, other))
    done = either(here.inside(*TEST))
    if done.code != 2:
        check(p_value(done) == true_p_value(), "another p-value in silence")


@functools.cache
def true_p_value() -> float:
    """Of the shared samples."""
    return p_value(Box(shared()).inside(*TEST))


# --- Results and monitors -------------------------------------------------------------------------


def edit(path: Path, part: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Another array in an archive, with the old digest."""
    with np.load(path) as file:
        parts = {name: file[name] for name in file}
    np.savez(path, **(parts | {part: change(parts[part])}))


def reseal(path: Path, kind: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Another header, with the digest that belongs to it."""
    header, arrays = archive.read(path, kind)
    archive.write(path, change(header), arrays)


def first_number(header: bytes, value: str) -> bytes:
    """The header with another p-value, wherever it stands."""
    found, n = re.subn(rb'("p_value": )[^,}]+', rb"\g<1>" + value.encode(), header)
    return found if n else header.replace(b"}", b', "p_value": ' + value.encode() + b"}", 1)


@attack("kept", "a result edited to p = 0.5, -5, NaN", "error in info and report")
def edited_result(here: Box) -> None:
    """Its digest is another one then."""
    for value in ("0.5", "-5", "NaN"):
        path = here.copy("result.npz")
        edit(
            path,
            "header",
            lambda old, value=value: np.frombuffer(first_number(old.tobytes(), value), np.uint8),  # type: ignore[misc]
        )
        for done in use(here, RESULT):
            refused(done, "result.npz")
        check(not (here / "report.html").exists(), "a report was written")


@attack("kept", "statistics of the toys edited, and resealed", "error, or the p-value that follows")
def edited_toys(here: Box) -> None:
    """A verdict must follow from what the file holds."""
    path = here.copy("result.npz")
    header, arrays = archive.read(path, RESULT)
    for value in (np.nan, np.inf, -1e300):
        for name, array in arrays.items():
            if array.dtype.kind == "f" and array.ndim == 2:
                archive.write(path, header, arrays | {name: np.full_like(array, value)})
                for done in use(here, RESULT):
                    either(done)


@attack("kept", "a monitor with another reference", "error in info and watch")
def edited_monitor(here: Box) -> None:
    """Its toys are of another one."""
    path = here.copy("monitor.npz")
    edit(path, "reference", lambda rows: rows + 1)
    for done in use(here, MONITOR):
        refused(done, "monitor.npz")


@attack("kept", "a monitor with chunk or steps of 10^9, resealed", "error")
def huge_monitor(here: Box) -> None:
    """No memory and no time is given for it."""

    def deep(value: Any, name: str, to: int) -> Any:
        if isinstance(value, dict):
            return {k: to if k == name else deep(v, name, to) for k, v in value.items()}
        return [deep(v, name, to) for v in value] if isinstance(value, list) else value

    for name in ("chunk", "steps"):
        path = here.copy("monitor.npz")
        reseal(path, MONITOR, lambda header, name=name: deep(header, name, 10**9))  # type: ignore[misc]
        for done in use(here, MONITOR):
            refused(done, "monitor.npz")


def declare(kind: str) -> None:
    """Damage and forgery of a kind of files."""

    @random_attack("kept", f"bytes and parts of a {kind} changed", "what it was, or error")
    def damaged(here: Box, seed: int) -> None:
        path = here.copy(FILES[kind])
        rng = np.random.default_rng([seed, 23])
        ways = BYTES + MEMBERS
        whole, other = path.read_bytes(), (shared() / FILES[kind]).read_bytes()
        path.write_bytes(ways[seed % len(ways)](rng, whole, other))
        done = either(here.inside("info", path.name))
        check(done.code == 2 or is_same(path, whole, kind), "taken as it is")

    @random_attack("kept", f"a {kind} forged, with its digest", "answer or error")
    def forgery(here: Box, seed: int) -> None:
        path = here.copy(FILES[kind])
        forged(np.random.default_rng([seed, 24]), kind, shared() / FILES[kind], path)
        for done in use(here, kind):
            if kind == MONITOR and done.code in (1, 4, 5):
                plain(done)  # a batch that was not tested, or an alarm
            else:
                either(done)


def is_same(path: Path, whole: bytes, kind: str) -> bool:
    """Whether all that is read of it is what it was."""
    path.with_name("whole.npz").write_bytes(whole)
    (header, arrays), (first, others) = (
        archive.read(one, kind) for one in (path, path.with_name("whole.npz"))
    )
    return (
        header == first
        and arrays.keys() == others.keys()
        and all(arrays[name].tobytes() == others[name].tobytes() for name in arrays)
    )


declare(RESULT)
declare(MONITOR)


# --- Reports --------------------------------------------------------------------------------------


@attack("kept", "markup in names of columns, cells, texts and files", "a report where it is text")
def hostile_texts(here: Box) -> None:
    """Through a table, as users bring it."""
    rng = np.random.default_rng(0)
    name = f"x{HOSTILE}"
    for file, n in (("reference.jsonl", 200), ("data.jsonl", 60)):
        rows = [
            {name: float(x), "kind": str(kind), "note": HOSTILE}
            for x, kind in zip(rng.normal(size=n), rng.choice([HOSTILE, "b"], n), strict=True)
        ]
        (here / file).write_text("\n".join(map(json.dumps, rows)))
    done = here.inside(
        "test", "reference.jsonl", "data.jsonl", "--toys", "19", "--statistic", "mahalanobis",
        "--ignore", "note", "--text", "note", "--report", "report.html",
    )  # fmt: skip
    plain(done)
    check(done.code in (0, 1), done.said)
    page = (here / "report.html").read_text()
    check("onerror" in page, "the texts are not there at all")
    check("<img src=x" not in page, "markup in the page")


@attack("kept", "pictures by absolute paths and by ..", "error, nothing of them in the report")
def reaching_pictures(here: Box) -> None:
    """Only what lies in the folder of the table."""
    from PIL import Image

    (here / "inner").mkdir()
    Image.new("RGB", (8, 8), (1, 2, 3)).save(here / "secret.png")
    rng = np.random.default_rng(0)
    for picture in (str(here / "secret.png"), "../secret.png"):
        for file, n in (("reference.csv", 100), ("data.csv", 40)):
            rows = [f"{x},{y},{picture}" for x, y in rng.normal(size=(n, 2))]
            (here / "inner" / file).write_text("x,y,picture\n" + "\n".join(rows))
        done = here.inside(
            "test", "inner/reference.csv", "inner/data.csv", "--toys", "19", "--statistic",
            "mahalanobis", "--ignore", "picture", "--images", "picture", "--report", "report.html",
        )  # fmt: skip
        refused(done)
        check(not (here / "report.html").exists(), "a report was written")


@attack("kept", "pictures that are bombs, SVG, or pages", "error, or a report without them")
def hostile_pictures(here: Box) -> None:
    """Pixels are counted before they are decoded."""
    from PIL import Image

    rng = np.random.default_rng(0)
    with warnings.catch_warnings(action="ignore"):
        large = io.BytesIO()
        Image.new("1", (30_000, 30_000)).save(large, "PNG")
    contents = {
        "bomb.png": large.getvalue(),
        "page.png": b"\x89PNG\r\n\x1a\n<script>alert(1)</script>",
        "vector.png": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    }
    for name, content in contents.items():
        (here / name).write_bytes(content)
        for file, n in (("reference.csv", 100), ("data.csv", 40)):
            rows = [f"{x},{y},{name}" for x, y in rng.normal(size=(n, 2))]
            (here / file).write_text("x,y,picture\n" + "\n".join(rows))
        done = here.inside(
            "test", "reference.csv", "data.csv", "--toys", "19", "--statistic", "mahalanobis",
            "--ignore", "picture", "--images", "picture", "--report", "report.html",
        )  # fmt: skip
        either(done)
        if (here / "report.html").exists():
            check("alert(1)" not in (here / "report.html").read_text(), "the file is in the page")


@attack("kept", "a zip inside a result twice, and parts that claim more than the file", "error")
def overlapping(here: Box) -> None:
    """Two parts of one name."""
    path = here.copy("result.npz")
    members = members_of(path.read_bytes())
    with warnings.catch_warnings(action="ignore"):
        path.write_bytes(zipped([*members, members[0]]))
    for done in use(here, RESULT):
        refused(done, "twice")
