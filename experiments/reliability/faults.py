"""Processes that are killed, disks that are full, folders that vanish."""

import ctypes
import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from experiments.reliability.attack import attack, random_attack
from experiments.reliability.box import QUICK, Box, send, shared, when
from experiments.reliability.ends import Done, check, p_value, plain, refused

TEST = ["test", "reference.npy", "data.npy", *QUICK[2:], "--toys", "400", "--store", "store"]


def answer(done: Done) -> dict[str, Any]:
    """All numbers of a test."""
    p_value(done)
    return {name: json.loads(done.out)[name] for name in ("p_value", "families", "toys")}


@functools.cache
def whole() -> tuple[dict[str, Any], float]:
    """The answer of a test that nobody disturbed, and how long it takes."""
    here = Box(shared())
    answer(here.outside(*TEST[:-1], "first"))  # compiles
    began = time.monotonic()
    found = answer(here.outside(*TEST[:-1], "second"))
    return found, time.monotonic() - began


def goes_on(here: Box) -> None:
    """The same command finds the same, to the bit."""
    check(answer(here.outside(*TEST)) == whole()[0], "another answer than without a fault")


def chunks(here: Box) -> int:
    """Finished ones."""
    return len(list((here / "store").glob("toys-*")))


def ended_by(here: Box, seed: int, number: int) -> Done:
    """A signal at a random moment."""
    here.samples()
    rng = np.random.default_rng([seed, 25])
    process = here.begin(*TEST)
    try:
        process.wait(rng.uniform(0.1, 0.9) * whole()[1])
    except subprocess.TimeoutExpired:
        send(process, number)
    began = time.monotonic()
    done = here.ended(process)
    check(time.monotonic() - began < 20, f"it took {time.monotonic() - began:.1f} s to end")
    return done


@random_attack("faults", "kill -9 at a random moment", "goes on to the same p-value", 0.1)
def killed(here: Box, seed: int) -> None:
    """With a store."""
    done = ended_by(here, seed, signal.SIGKILL)
    check(done.code in (-signal.SIGKILL, 0), f"exit code {done.code}")
    goes_on(here)


@random_attack("faults", "SIGTERM at a random moment", "exit code 143 within 20 s, goes on", 0.05)
def terminated(here: Box, seed: int) -> None:
    """As a batch system sends it."""
    done = plain(ended_by(here, seed, signal.SIGTERM))
    check(done.code in (143, 0), f"exit code {done.code}")
    goes_on(here)


@random_attack("faults", "Ctrl-C at a random moment", "exit code 130 within 20 s, goes on", 0.05)
def interrupted(here: Box, seed: int) -> None:
    """Chunks that were finished are kept."""
    done = plain(ended_by(here, seed, signal.SIGINT))
    check(done.code in (130, 0), f"exit code {done.code}")
    goes_on(here)


@attack("faults", "Ctrl-C for a command that ignores it, as nohup's do", "goes on to its end")
def ignored(here: Box) -> None:
    """Ignored signals stay ignored."""
    here.samples()
    process = here.begin(*TEST, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    for _ in range(3):
        when(lambda: process.poll() is not None, whole()[1] / 5)
        send(process, signal.SIGINT)
    check(answer(here.ended(process)) == whole()[0], "another answer")


@attack("faults", "a reader of stdout that leaves", "no traceback, files are written")
def reader_leaves(here: Box) -> None:
    """| head -0."""
    here.samples()
    process = here.begin(*TEST[:-2], "--save", "result.sparker", "--rows", "rows.csv")
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    plain(here.ended(process))
    for name in ("result.sparker", "rows.csv"):
        check((here / name).exists(), f"{name} was lost")


# --- Disks ----------------------------------------------------------------------------------------


def files_of(n_bytes: int) -> Callable[[], None]:
    """No file may be larger: a disk with little room."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


@attack("faults", "no room for the chunks of a store", "error, goes on when there is room")
def full_store(here: Box) -> None:
    """A limit on the size of files."""
    here.samples()
    refused(here.outside(*TEST, preexec_fn=files_of(2000)), "store")
    goes_on(here)


@attack("faults", "no room for the report, but for the other outputs", "error, others are written")
def full_output(here: Box) -> None:
    """The report is larger than the limit."""
    here.samples()
    outputs = {"--rows": "rows.csv", "--save": "result.sparker", "--report": "report.html"}
    command = [*TEST[:-2], *(word for pair in outputs.items() for word in pair)]
    done = refused(here.outside(*command, preexec_fn=files_of(1_200_000)), "report")
    p_value(done._replace(code=0))  # the answer is there
    check((here / "rows.csv").stat().st_size > 0, "rows.csv was lost")
    check((here / "result.sparker").exists(), "result.sparker was lost")
    check(not (here / "report.html").exists(), "half a report")
    check(not list(here.folder.glob(".*")), "unfinished files are left")


@attack("faults", "stdout on a full disk", "error, files are written")
def full_stdout(here: Box) -> None:
    """/dev/full."""
    here.samples()
    with open("/dev/full", "w") as full:
        done = here.outside(*TEST[:-2], "--save", "result.sparker", stdout=full)
    refused(done, "stdout")
    check((here / "result.sparker").exists(), "result.sparker was lost")


@attack("faults", "stdout closed", "files are written, nothing gets into them")
def closed_stdout(here: Box) -> None:
    """>&-."""
    here.samples()
    done = here.outside(*TEST[:-2], "--save", "result.sparker", preexec_fn=lambda: os.close(1))
    plain(done)
    plain(here.outside("info", "result.sparker"))
    check((here / "result.sparker").exists(), "result.sparker was lost")


@attack("faults", "--rows /dev/stdout beside other outputs", "all are written")
def rows_to_stdout(here: Box) -> None:
    """Devices are not replaced."""
    here.samples()
    words = [word for word in TEST[:-2] if word != "--json"]
    done = here.outside(*words, "--rows", "/dev/stdout", "--save", "result.sparker")
    plain(done)
    check(done.code == 0, f"exit code {done.code}: {done.said}")
    check(len(done.out.splitlines()) > 200, "rows were lost")
    check((here / "result.sparker").exists(), "result.sparker was lost")
    check(os.path.exists("/dev/stdout"), "stdout was replaced")


def keep_from_writing(here: Box, name: str) -> dict[str, Any]:
    """Make a folder read-only, also for one who is root."""
    for folder, folders, files in os.walk(here.folder):
        for one in (*folders, *files):
            os.chmod(os.path.join(folder, one), 0o755)
    os.chmod(here.folder.parent, 0o755)
    os.chmod(here.folder, 0o755)
    os.chmod(here / name, 0o555)
    return {"preexec_fn": obey_permissions} if os.geteuid() == 0 else {}


def obey_permissions() -> None:
    """Root writes where nobody may: give up that right, in a process that is about to start."""
    drop_from_bounding_set, dac_override = (
        24,
        1,
    )  # of prctl and of capabilities, see Linux's headers
    if ctypes.CDLL(None, use_errno=True).prctl(drop_from_bounding_set, dac_override, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "permissions cannot be made to hold for root")


@attack("faults", "a store that may only be read", "error; a finished one gives its answer")
def read_only_store(here: Box) -> None:
    """By permissions."""
    here.samples()
    (here / "store").mkdir()
    how = keep_from_writing(here, "store")
    variables = {"SPARKER_CACHE": str(here / "none"), "HOME": str(here.folder)}
    refused(here.outside(*TEST, variables=variables, **how), "store")
    os.chmod(here / "store", 0o755)
    goes_on(here)
    how = keep_from_writing(here, "store")
    done = here.outside(*TEST, variables=variables, **how)
    check(answer(done) == whole()[0], "another answer")


def midway(here: Box, act: Callable[[], Any]) -> Done:
    """Do this once the first chunk is there."""
    here.samples()
    process = here.begin(*TEST)
    check(when(lambda: chunks(here) or process.poll() is not None), "no chunk was written")
    act()
    return here.ended(process)


@attack("faults", "a store that is removed midway", "error or the same p-value; goes on")
def removed_store(here: Box) -> None:
    """By somebody who tidies up."""
    done = midway(here, lambda: shutil.rmtree(here / "store", ignore_errors=True))
    if done.code == 2:
        refused(done, "removed")
    else:
        check(answer(done) == whole()[0], "another answer")
    goes_on(here)


@attack("faults", "a manifest that is removed midway", "the same p-value")
def removed_manifest(here: Box) -> None:
    """Chunks know their test."""
    done = midway(here, lambda: (here / "store" / "manifest.json").unlink(missing_ok=True))
    check(answer(done) == whole()[0], "another answer")
    goes_on(here)


@attack("faults", "half a chunk, as an old system may leave it", "error that names it; goes on")
def half_chunk(here: Box) -> None:
    """Cut off in the middle."""
    here.samples()
    goes_on(here)
    path = sorted((here / "store").glob("toys-*"))[-1]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused(here.outside(*TEST), path.name)
    path.unlink()
    goes_on(here)


@attack("faults", "three processes on one store", "all have the same p-value")
def together(here: Box) -> None:
    """Begun at the same time."""
    here.samples()
    processes = [here.begin(*TEST) for _ in range(3)]
    for process in processes:
        check(answer(here.ended(process)) == whole()[0], "another answer")


@attack("faults", "a clock set back: files of the store are of tomorrow and of 1980", "the same")
def clock(here: Box) -> None:
    """No time decides anything."""
    here.samples()
    refused(here.outside(*TEST[:-2], "--store", "store", preexec_fn=files_of(2000)))
    goes_on(here)
    for number, path in enumerate(sorted((here / "store").iterdir())):
        when_written = 315532800 if number % 2 else time.time() + 86400
        os.utime(path, (when_written, when_written))
    goes_on(here)


# --- Outputs --------------------------------------------------------------------------------------


@attack("faults", "--save over an input, by name, link and other ways to write it", "error")
def over_input(here: Box) -> None:
    """The input is as it was."""
    here.samples()
    before = (here / "data.npy").read_bytes()
    (here / "link.npy").symlink_to(here / "data.npy")
    os.link(here / "data.npy", here / "hard.npy")
    for name in ("data.npy", "./data.npy", "link.npy", "hard.npy"):
        for option in ("--save", "--rows", "--report"):
            refused(here.inside(*TEST[:-2], option, name), "would overwrite")
    check((here / "data.npy").read_bytes() == before, "the input was overwritten")


@attack("faults", "three outputs on one path", "error")
def one_path(here: Box) -> None:
    """None survives by chance."""
    here.samples()
    done = here.inside(*TEST[:-2], "--save", "x", "--rows", "./x", "--report", "x")
    refused(done, "the same file")


@attack("faults", "links at names that unfinished files might have", "never followed")
def guessable(here: Box) -> None:
    """Every file is created under a name that nobody has, and random."""
    here.samples()
    code = """
import os, sys
created = []
def hook(event, arguments):
    # A descriptor has no name, and a file that is opened by the name of a folder gets none.
    if event != "open" or isinstance(arguments[0], int) or os.path.isdir(arguments[0]):
        return
    if arguments[2] and arguments[2] & os.O_CREAT:
        created.append((str(arguments[0]), arguments[2] & os.O_EXCL))
sys.addaudithook(hook)
from sparker.cli.main import main
try:
    main(sys.argv[1:])
finally:
    here = os.getcwd()
    for name, exclusive in created:
        if os.path.abspath(name).startswith(here):
            print("created", name, bool(exclusive), file=sys.stderr)
"""
    command = [*TEST, "--save", "result.sparker", "--rows", "rows.csv", "--report", "report.html"]
    names = []
    for _ in range(2):
        done = here.outside(*command, code=code)
        created = [line.split() for line in done.err.splitlines() if line.startswith("created")]
        check(len(created) >= 3, "nothing was seen to be created")
        check(all(line[-1] == "True" for line in created), "a name that may exist already")
        names.append({line[1] for line in created})
    check(not names[0] & names[1], "the same name twice")


@attack("faults", "eight threads that save to one file while it is read", "never half a file")
def torn(here: Box) -> None:
    """The library."""
    here.copy("result.sparker")
    code = """
import sys, threading, sparker
found = sparker.TestResult.load("result.sparker")
found.save("x.sparker")
wrong = []
def write():
    for _ in range(10): found.save("x.sparker")
def read():
    for _ in range(40):
        try: sparker.TestResult.load("x.sparker")
        except Exception as error: wrong.append(repr(error))
threads = [threading.Thread(target=f) for f in [write] * 8 + [read] * 2]
for t in threads: t.start()
for t in threads: t.join()
print(wrong[:1], file=sys.stderr)
sys.exit(bool(wrong))
"""
    done = plain(here.outside(code=code))
    check(done.code == 0, done.said)
    check(not list(here.folder.glob(".*")), "unfinished files are left")


@attack("faults", "little memory: a limit of 1 GiB on what the process has", "answer or error")
def little_memory(here: Box) -> None:
    """Ulimit -d."""
    rng = np.random.default_rng(0)
    np.save(here / "a.npy", rng.normal(size=(200_000, 20)))
    np.save(here / "b.npy", rng.normal(size=(50_000, 20)))
    limit = 2**30
    done = here.outside(
        "test", "a.npy", "b.npy", "--toys", "19", "--statistic", "mahalanobis", "--json",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)), seconds=300,
    )  # fmt: skip
    plain(done)


@attack("faults", "an exception in a watcher thread of one's own", "the store keeps its chunks")
def progress_raises(here: Box) -> None:
    """The library: a progress function that ends the test."""
    here.samples()
    code = """
import sys, numpy as np, sparker
def stop(done, total):
    if done > 8: raise RuntimeError("enough")
settings = dict(n_toys=40, store="own", explain=False, chunk=4,
    statistic=lambda rng, sample: float(np.average(sample.points[:, 0], weights=sample[2])))
a, b = np.load("reference.npy"), np.load("data.npy")
try: sparker.test(a, b, progress=stop, **settings)
except RuntimeError: pass
else: sys.exit("it went on")
again = sparker.test(a, b, progress=False, **settings)
del settings["store"]
print(again.p_value == sparker.test(a, b, progress=False, **settings).p_value)
"""
    done = plain(here.outside(code=code))
    check(done.out.strip() == "True", done.said)
