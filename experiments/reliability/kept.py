"""Results, stores, monitors and reports that somebody else changed."""

import io
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
from experiments.reliability.attack import attack
from experiments.reliability.box import QUICK, Box
from experiments.reliability.ends import check, either, p_value, plain, refused

from sparker.calibration.store import KIND, SavedChunk, chunk_files
from sparker.system import archive

TEST = ["test", "reference.npy", "data.npy", *QUICK, "--store", "store"]
HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"


# --- Stores ---------------------------------------------------------------------------------------


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
    shutil.copy(chunk_files(other)[-1], chunk_files(here / "store")[-1])
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
    path = chunk_files(other)[-1]
    saved = archive.read(path, {KIND: SavedChunk})
    saved.chunk = saved.chunk._replace(statistics=saved.chunk.statistics + 1)
    archive.write(path, KIND, saved)
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
