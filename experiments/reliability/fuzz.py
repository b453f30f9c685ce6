"""Files and folders changed at random, and what the commands that read them make of them.

    python -m experiments.reliability.fuzz [--cases N] [--processes N] [--seconds S]

Results, monitors, stores, NumPy's files, folders of pictures and of batches: case number N changes
one or two of them as the seed N says, most of the time with the digest that belongs to the new
contents, so that it is read, and runs the commands that read it. Each must end within 20 s of work
and 2 GiB of resident memory in an answer, a warning or a plain error with the exit code that
docs/commands.md gives it. No input may change, no file may be made elsewhere, and nothing may be
read through a link into another folder. ``fuzz.json`` has the settings and the counts; where it
holds some cases already, the next ones follow, or with ``--again`` first those that fell short.
"""

import argparse
import hashlib
import json
import os
import queue
import shutil
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.record import as_text
from experiments.reliability.box import READ, Inside, clean_up
from experiments.reliability.ends import Done, NotHandled, check, plain
from experiments.reliability.mutants import Rng, changed, pick, replaced
from PIL import Image

from sparker.calibration.store import chunk_files
from sparker.system.versions import versions

RESULT = Path(__file__).with_name("fuzz.json")

SECONDS, MIB = 20.0, 2048
BLOCK = 100
"""Cases after which the counts are written."""
N_LOOKED_AT = 2**26
"""Bytes of a file that are compared."""

WATCHED = 0, 1, 2, 4, 5
"""Exit codes of a watch; other commands have the first three."""

TEST = ["test", "given/reference.npy", "given/data.npy", *READ]
PICTURES = [
    "test", "given/pictures", "given/others", "--embed", "experiments.reliability.fuzz:colours",
    *READ,
]  # fmt: skip

KERNELS = ["--toys", "39", "--kernels", "2", "--steps", "20"]

Run = Callable[[Path, list[str]], Done]


def colours(pictures: list[Any]) -> np.ndarray:
    """The mean colour of each picture: an embedder that takes no time."""
    return np.stack([np.asarray(one, float).mean((0, 1)) for one in pictures])


# --- What is there before -------------------------------------------------------------------------


def originals(run: Run, here: Path, quick: bool = False) -> Path:
    """All files that cases begin with: ``given``, and the same in ``secret``, which nobody reads.

    Args:
        run: runs a command line in a folder.
        here: a new folder.
        quick: whether the result is of another statistic, and the monitor without a look.
    """
    given, rng = here / "given", np.random.default_rng(0)
    given.mkdir()
    for name, n in (("reference", 300), ("data", 60), ("batch", 40)):
        np.save(given / f"{name}.npy", rng.normal(size=(n, 2)))
    np.savez(given / "data.npz", x=rng.normal(size=60), y=rng.normal(size=60))
    (given / "batches").mkdir()
    for number in range(4):
        rows = rng.normal(size=(40, 2))
        np.save(given / "batches" / f"{number}.npy", rows)
    np.savez(given / "batches" / "4.npz", rows)
    np.savetxt(given / "batches" / "5.csv", rows, delimiter=",", header="a,b", comments="")
    for name, n in (("pictures", 80), ("others", 60)):
        (given / name).mkdir()
        for number in range(n):
            pixels = rng.integers(256, size=(8, 8, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(given / name / f"{number}.png")
    saved = TEST[:-1] if quick else ["test", *TEST[1:3], *KERNELS]
    commands = [
        [*TEST[:-1], "--store", "given/store", "--only", "0:10"],
        [*TEST[:-1], "--store", "given/other", "--only", "10:20"],
        [*saved, "--save", "given/result.sparker"],
        ["calibrate", TEST[1], "given/monitor.sparker", *KERNELS, "--alpha", "0.2"],
        ["calibrate", TEST[1], "given/anytime.sparker", "--anytime"],
        ["watch", "given/anytime.sparker", *(f"given/batches/{n}.npy" for n in range(3))],
    ]
    if not quick:
        commands.append(["watch", "given/monitor.sparker", "given/batches/0.npy"])
    for command in commands:
        done = run(here, command)
        if done.code not in (0, 1):
            raise RuntimeError(f"{command}: {done.err}")
    for path in given.glob("*.sparker"):
        (here / f"{path.name}.txt").write_text(run(here, ["info", f"given/{path.name}"]).out)
    return Path(shutil.copytree(given, here / "secret"))


def chunk_of(store: Path) -> Path:
    """The one file with toys in a store."""
    (found,) = chunk_files(store)
    return found


# --- Cases ----------------------------------------------------------------------------------------


class Case(NamedTuple):
    """What was done, and the commands to run."""

    way: str
    commands: list[list[str]]
    all_run: bool = True
    """Otherwise none is run after an error."""
    rewritten: tuple[str, ...] = ()
    """Files that a command writes anew."""
    grows: str = "out"
    """The folder that files may be made in."""
    must: tuple[str, ...] = ()
    """Words that stdout must have."""


def archive(name: str, *more: list[str]) -> Callable[[Rng, Path, Path], Case]:
    """Cases of a result or a monitor."""

    def make(rng: Rng, here: Path, secret: Path) -> Case:
        path = here / "given" / name
        others = [secret / other for other in ("result.sparker", "monitor.sparker", "data.npz")]
        way = changed(rng, path, [*others, chunk_of(secret / "store")], secret / name)
        is_odd = not path.is_file() or path.is_symlink()  # each command opens it by itself
        rewritten = (f"given/{name}",) * (more[0][0] == "watch")
        return Case(way, [["info", f"given/{name}"], *more], is_odd, rewritten)

    return make


def store(rng: Rng, here: Path, secret: Path) -> Case:
    """Of a store: a chunk, the manifest, or what else lies there."""
    own = here / "given" / "store"
    manifest, chunk = own / "manifest.json", chunk_of(own)
    where, way = rng.random(), ""
    if where < 0.45:
        way = changed(
            rng, chunk, [secret / "result.sparker", chunk_of(secret / "other")],
            chunk_of(secret / "store"),
        )  # fmt: skip
    elif where < 0.75:
        way = changed(rng, manifest, [chunk, chunk], secret / "store" / "manifest.json")
    else:
        names = [
            f"toys-000010-000019{chunk.suffix}", f"toys-x{chunk.suffix}", chunk.name,
            "manifest.json", f"toys-{'9' * 80}{chunk.suffix}", "x", ".x.part",
        ]  # fmt: skip
        way = replaced(rng, own / pick(rng, names), chunk_of(secret / "other"))
    if rng.random() < 0.2:
        shutil.rmtree(here / "given" / "other")
        (here / "given" / "other").symlink_to(own.name)
        way += ", and the other one is a link to it"
    merge = ["merge", "given/store", "given/other", "--into", "out/all"]
    test = [*TEST, "--store", "given/store"]
    return Case(way, [[test, merge], [merge, test]][rng.integers(2)], grows="given/store")


def numpy_file(suffix: str) -> Callable[[Rng, Path, Path], Case]:
    """Cases of a table."""

    def make(rng: Rng, here: Path, secret: Path) -> Case:
        path = here / "given" / f"data{suffix}"
        others = [secret / other for other in ("data.npy", "data.npz", "result.sparker")]
        way = changed(rng, path, others, secret / path.name)
        reference = f"given/reference{suffix}"
        if suffix == ".npz":
            reference = "secret/data.npz"
        info, test = ["info", f"given/{path.name}"], ["test", reference, f"given/{path.name}"]
        return Case(way, [info, [*test, *READ]], all_run=False)

    return make


def pictures(rng: Rng, here: Path, secret: Path) -> Case:
    """Of a folder of pictures: one of them, or something beside them."""
    folder = here / "given" / pick(rng, ["pictures", "others"])
    if rng.random() < 0.5:
        path = folder / f"{rng.integers(20)}.png"
        way = changed(rng, path, [folder / "1.png", secret / "data.npy"], secret / "others/2.png")
    else:
        name = pick(rng, ["x.png", "x.JPG", "0.jpeg", "\n.png", "x", "9" * 200 + ".png", "-.png"])
        way = replaced(rng, folder / name, secret / "others" / "2.png")
    shown = [*TEST, "--images", "given/others", "--report", "out/report.html"]
    return Case(way, [[PICTURES, shown][rng.integers(2)]])


NEW = ["x.npy", "x", "x.csv", "\n.npy", '"a": 1.npy', "0.npy.gz", ".x.npy"]
"""Names of batches that are not there."""


def batches(rng: Rng, here: Path, secret: Path) -> Case:
    """Of a folder of batches: one or two of them, or something beside them."""
    folder = here / "given" / "batches"
    others = [secret / "result.sparker", secret / "data.npz"]
    way = []
    for name in rng.choice([*NEW, "3.npy", "4.npz", "5.csv"], rng.integers(1, 3), replace=False):
        path = folder / str(name)
        make = replaced if name in NEW else partial(changed, others=others)
        way.append(make(rng, path, secret=secret / "batch.npy"))
    monitor = "given/monitor.sparker" if rng.random() < 0.1 else "given/anytime.sparker"
    watch = ["watch", monitor, "given/batches"]
    must = tuple(f'"batch": "given/batches/{n}.npy"' for n in range(3))
    return Case(", ".join(way), [watch], rewritten=(monitor,), must=must)


KINDS: dict[str, Callable[[Rng, Path, Path], Case]] = {
    "result": archive("result.sparker", ["report", "given/result.sparker", "--output", "out/r"]),
    "monitor": archive("monitor.sparker", ["watch", "given/monitor.sparker", "given/batch.npy"]),
    "anytime monitor": archive(
        "anytime.sparker", ["watch", "given/anytime.sparker", "given/batch.npy"]
    ),
    "store": store,
    "array (.npy)": numpy_file(".npy"),
    "arrays (.npz)": numpy_file(".npz"),
    "folder of pictures": pictures,
    "folder of batches": batches,
}


def kind_of(number: int) -> str:
    """The kind of a case."""
    return list(KINDS)[number % len(KINDS)]


# --- What becomes of them -------------------------------------------------------------------------


def state(here: Path) -> dict[str, str]:
    """What is there: kinds, contents, where links lead."""
    found = {}
    for path in here.rglob("*"):
        name, of = str(path.relative_to(here)), path.lstat()
        what = f"{stat.S_IFMT(of.st_mode)} "
        if stat.S_ISLNK(of.st_mode):
            what += os.readlink(path)
        elif stat.S_ISREG(of.st_mode):
            content = b"" if of.st_size > N_LOOKED_AT else path.read_bytes()
            what += f"{of.st_size} {hashlib.sha256(content).hexdigest()}"
        found[name] = what
    return found


def judged(case: Case, before: dict[str, str], here: Path, done: Done, command: str) -> None:
    """What must be so after a command."""
    plain(done)
    check(done.code in (WATCHED if command == "watch" else WATCHED[:3]), f"exit code {done.code}")
    check(done.code != 2 or "Error:" in done.err, f"exit code 2 without an error: {done.said}")
    check(len(done.err) < 20_000, f"{len(done.err)} characters of an error")
    after = state(here)
    for name, what in before.items():
        same = after.get(name) == what or (name in case.rewritten and name in after)
        check(same, f"{name} was {what[:60]} and is {after.get(name, 'gone')[:60]}")
    for name in after.keys() - before.keys():
        check(name.startswith(("out/", f"{case.grows}/")), f"{name!r} was made")
        check(not name.endswith(".part") or name in before, f"{name!r} was left")
    if command == "watch":
        check("internal error" not in done.out, f"internal error: {done.out[-300:]}")
        lines = [json.loads(line) for line in done.out.splitlines()]
        check(all("batch" in line for line in lines), "a line that is about no batch")
        for word in case.must:
            check(done.code == 2 or word in done.out, f"no line with {word}")


class Outcome(NamedTuple):
    """What became of a case."""

    number: int
    kind: str
    way: str
    codes: list[str]
    seconds: float
    what: str
    """How it fell short; nothing if it did not."""


def attempt(number: int, there: Path, run: Run) -> Outcome:
    """Make a case, run its commands and judge.

    Args:
        number: the case, and the seed.
        there: the folder of ``originals``.
        run: runs a command line in a folder, and raises ``NotHandled`` where that took too much.
    """
    rng, kind = np.random.default_rng([number, 35]), kind_of(number)
    codes, seconds, what = [], 0.0, ""
    with tempfile.TemporaryDirectory(dir=there, prefix=f"{number}-") as folder:
        here = Path(folder)
        unused = [] if "pictures" in kind else ["pictures", "others"]
        shutil.copytree(there / "given", here / "given", ignore=lambda *_: unused)
        (here / "out").mkdir()
        try:
            case = KINDS[kind](rng, here, there / "secret")
        except Exception as error:
            error.add_note(f"while case {number} was made")
            raise
        before = state(here)
        try:
            for command in case.commands:
                command = [word.replace("secret/", f"{there}/secret/") for word in command]
                done = run(here, command)
                codes.append(f"{command[0]} {done.code}")
                seconds = max(seconds, done.seconds)
                judged(case, before, here, done, command[0])
                if case.way == "bytes_of" and command[0] == "info":
                    check(same_answer(there, done, command), "damage was taken as it is")
                if done.code == 2 and not case.all_run:
                    break
                before = state(here)
        except NotHandled as short:
            what = f"{command[0]}: {short}"
    return Outcome(number, kind, case.way, codes, seconds, what)


def same_answer(there: Path, done: Done, command: list[str]) -> bool:
    """Whether a file that was damaged is refused, or read as it was."""
    whole = there / f"{Path(command[1]).name}.txt"
    return done.code == 2 or not whole.exists() or done.out == whole.read_text()


class Worker:
    """A process that runs commands for many cases, and what it may take."""

    def __init__(self) -> None:
        self.inside = Inside()
        self.most = 0.0

    def __call__(self, folder: Path, command: list[str]) -> Done:
        """Run a command."""
        done = self.inside.run(folder, command, SECONDS)
        most = self.inside.most
        self.most = max(self.most, most)
        named = [*command, "secret/batch.npy", "secret/data.npy", "secret/data.npz"]
        # Tables may be links: who names one means it.
        elsewhere = [one for one in self.inside.elsewhere if not one.endswith(tuple(named))]
        check(not elsewhere, f"elsewhere: {elsewhere}")
        if most > MIB:
            self.inside.end()
        check(most < MIB, f"{most:.0f} MiB of resident memory")
        return done


def main() -> None:
    """As the options say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=3000, help="how many in the end")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin none after these")
    parser.add_argument("--again", action="store_true", help="those that fell short, once more")
    parser.add_argument("--output", type=Path, default=RESULT)
    wanted = parser.parse_args()
    until = time.monotonic() + wanted.seconds
    workers: queue.Queue[Worker] = queue.Queue()
    every = [Worker() for _ in range(wanted.processes)]
    for one in every:
        workers.put(one)
    found = read(wanted.output)
    with tempfile.TemporaryDirectory(prefix="sparker-fuzz-") as folder:
        there = Path(folder)
        originals(every[0], there)

        def one_case(number: int) -> Outcome:
            worker = workers.get()
            try:
                outcome = attempt(number, there, worker)
            finally:
                workers.put(worker)
            print(*outcome, flush=True)
            return outcome

        try:
            with ThreadPoolExecutor(wanted.processes) as pool:
                if wanted.again:
                    numbers = [one["case"] for one in found["fell_short"]]
                    mend(found, list(pool.map(one_case, numbers)))
                    wanted.output.write_text(as_text(found))
                while found["cases"] < wanted.cases and time.monotonic() < until:
                    numbers = range(wanted.cases)[found["cases"] :][:BLOCK]
                    add(found, list(pool.map(one_case, numbers)), max(one.most for one in every))
                    wanted.output.write_text(as_text(found))
        finally:
            for one in every:
                one.inside.end()
            clean_up()


def read(path: Path) -> dict[str, Any]:
    """The counts so far."""
    if path.exists():
        return json.loads(path.read_text())
    return {
        "command": "python -m experiments.reliability.fuzz",
        "versions": versions(),
        "limits": {"seconds": SECONDS, "MiB": MIB},
        "cases": 0,
        "seeds": "the numbers of the cases, from 0 on",
        "slowest_s": 0.0,
        "peak_MiB": 0,
        "kinds": {kind: {"cases": 0, "exit_codes": {}, "fell_short": 0} for kind in KINDS},
        "ways": {},
        "fell_short": [],
        "mended": [],
    }


def add(found: dict[str, Any], outcomes: list[Outcome], most: float) -> None:
    """Count some more."""
    for one in outcomes:
        kind = found["kinds"][one.kind]
        kind["cases"] += 1
        codes = Counter(kind["exit_codes"]) + Counter(one.codes)
        kind["exit_codes"] = dict(sorted(codes.items()))
        kind["fell_short"] += bool(one.what)
        if one.what:
            found["fell_short"].append({"case": one.number, "way": one.way, "what": one.what})
        found["ways"][one.way] = found["ways"].get(one.way, 0) + 1
        found["slowest_s"] = round(max(found["slowest_s"], one.seconds), 1)
    found["ways"] = dict(sorted(found["ways"].items()))
    found["cases"] += len(outcomes)
    found["peak_MiB"] = round(max(found["peak_MiB"], most))
    print(f"{found['cases']} cases, {len(found['fell_short'])} fell short", flush=True)


def mend(found: dict[str, Any], outcomes: list[Outcome]) -> None:
    """Take those that no longer fall short, after a mend, from those that do."""
    fine = {one.number for one in outcomes if not one.what}
    every = found["fell_short"]
    found["mended"] += [one for one in every if one["case"] in fine]
    found["fell_short"] = [one for one in every if one["case"] not in fine]
    for number in fine:
        found["kinds"][kind_of(number)]["fell_short"] -= 1


if __name__ == "__main__":
    main()
