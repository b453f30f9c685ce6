"""``sparker watch``: batches as they come, with one file that remembers them."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from typing import Any

import numpy as np
from experiments.reliability.attack import attack
from experiments.reliability.box import Box, lines, send, when
from experiments.reliability.ends import Done, check, plain, refused

MONITOR = "monitor.sparker"


def ready(here: Box, n: int = 0, monitor: str = MONITOR) -> None:
    """A monitor, two batches, and an inbox of n others."""
    for name in (monitor, "quiet.npy", "strange.npy"):
        here.copy(name)
    (here / "inbox").mkdir()
    rng = np.random.default_rng(26)
    for number in range(n):
        np.save(here / "inbox" / f"{number:03}.npy", rng.normal(size=(40, 2)))


def watch(here: Box, *batches: object, code: int = 0, monitor: str = MONITOR) -> list[Any]:
    """The lines of a watch that ends with this code."""
    done = plain(here.inside("watch", monitor, *batches))
    check(done.code == code, f"exit code {done.code} in place of {code}: {done.said}")
    return lines(done.out)


def looks(here: Box, n: int, monitor: str = MONITOR) -> None:
    """The monitor remembers n looks, each at another file, and in order."""
    history = json.loads(plain(here.inside("info", monitor, "--json")).out)["looks"]
    numbers = [one["number"] for one in history]
    check(numbers == [*range(1, n + 1)], f"looks {numbers}, not {n}")
    check(len({one["file"][0] for one in history}) == n, "a batch was tested twice")


def stopped_midway(here: Box, number: int) -> Done:
    """A watch of the inbox that gets a signal once it has printed two lines."""
    process = here.begin("watch", MONITOR, "inbox", stdout=(here / "out").open("w"))
    when(lambda: (here / "out").read_text().count("\n") >= 2 or process.poll() is not None)
    send(process, number)
    return here.ended(process)


@attack("watch", "four batches for three planned looks, in two runs", "the fourth is refused")
def planned(here: Box) -> None:
    """No more looks than were planned, across runs too."""
    here.samples()
    ready(here, 4)
    settings = ["--alpha", "0.05", "--looks", "3", "--kernels", "2", "--steps", "20"]
    plain(here.inside("calibrate", "reference.npy", MONITOR, *settings))
    names = [f"inbox/{number:03}.npy" for number in range(4)]
    watch(here, *names[:2])
    found = watch(here, *names[2:], code=4)
    check("planned looks were made" in found[1].get("error", ""), f"a fourth look: {found[1]}")
    looks(here, 3)


@attack("watch", "kill -9 again and again over twelve batches", "each is tested once")
def killed(here: Box) -> None:
    """A look is in the file whole, or made anew."""
    ready(here, 12)
    for _ in range(4):
        done = stopped_midway(here, signal.SIGKILL)
        check(done.code in (0, 1, -signal.SIGKILL), f"exit code {done.code}: {done.said}")
    plain(here.inside("watch", MONITOR, "inbox"))
    looks(here, 12)


@attack("watch", "SIGTERM and Ctrl-C, and the same command again", "goes on at its place")
def restarted(here: Box) -> None:
    """Exit codes 143 and 130, within seconds."""
    ready(here, 8)
    for number in (signal.SIGTERM, signal.SIGINT):
        began = time.monotonic()
        done = plain(stopped_midway(here, number))
        check(done.code in (0, 1, 128 + number), f"exit code {done.code}: {done.said}")
        check(time.monotonic() - began < 120, "it took too long")
    plain(here.inside("watch", MONITOR, "inbox"))
    looks(here, 8)


@attack("watch", "the same command again, and batches under other names", "all are skipped")
def again(here: Box) -> None:
    """A link, a copy, other rights, another time."""
    ready(here, 3)
    plain(here.inside("watch", MONITOR, "inbox"))
    first = here / "inbox" / "000.npy"
    os.link(first, here / "inbox" / "hard.npy")
    shutil.copy(first, here / "inbox" / "copy.npy")
    first.chmod(0o600)
    os.utime(here / "inbox" / "001.npy", (0, 0))
    check(all("skipped" in line for line in watch(here, "inbox")), "a batch was tested twice")
    looks(here, 3)


@attack("watch", "a batch that another one takes the place of", "tested")
def replaced(here: Box) -> None:
    """Same name, size and time of modification."""
    ready(here)
    shutil.copy(here / "quiet.npy", here / "inbox" / "x.npy")
    old = (here / "inbox" / "x.npy").stat()
    check(not watch(here, "inbox")[0]["alarm"], "an alarm of the quiet batch")
    os.utime(here / "strange.npy", ns=(old.st_atime_ns, old.st_mtime_ns))
    (here / "strange.npy").replace(here / "inbox" / "x.npy")
    check(watch(here, "inbox", code=1)[0]["alarm"], "no alarm of the batch that took its place")


@attack("watch", "| head -1 before an alarm", "exit code 1, all batches tested")
def head(here: Box) -> None:
    """A reader that leaves."""
    ready(here)
    process = here.begin("watch", MONITOR, "quiet.npy", "strange.npy", "--reports", "reports")
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    done = plain(here.ended(process))
    check(done.code == 1, f"exit code {done.code}")
    check((here / "reports" / "strange.html").exists(), "the alarm has no report")
    looks(here, 2)


@attack("watch", "stdout on a full disk", "all tested, exit code 5")
def full_stdout(here: Box) -> None:
    """The monitor has the looks."""
    ready(here)
    with open("/dev/full", "w") as full:
        done = plain(here.outside("watch", MONITOR, "quiet.npy", "strange.npy", stdout=full))
    check(done.code == 5, f"exit code {done.code}")
    looks(here, 2)


@attack("watch", "a monitor without room on its disk", "error, and the monitor as it was")
def full_monitor(here: Box) -> None:
    """Nothing is tested that could not be remembered."""
    ready(here)
    before = (here / MONITOR).read_bytes()
    most = len(before) - 100
    done = here.outside(
        "watch", MONITOR, "quiet.npy", "strange.npy",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )  # fmt: skip
    refused(done, MONITOR, "does not count")
    check((here / MONITOR).read_bytes() == before, "the monitor was changed")
    check(not list(here.folder.glob(".*")), "unfinished files are left")


@attack("watch", "two watches on one monitor", "the second is refused; each batch once")
def two(here: Box) -> None:
    """Looks would be lost."""
    ready(here, 12)
    process = here.begin("watch", MONITOR, "inbox", stdout=(here / "out").open("w"))
    when(lambda: "\n" in (here / "out").read_text() or process.poll() is not None)
    check(process.poll() is None, "the first one ended before the second began")
    refused(here.inside("watch", MONITOR, "quiet.npy"), "another process uses")
    plain(here.ended(process))
    looks(here, 12)


@attack("watch", "300 batches at once", "all tested, in order")
def hundreds(here: Box) -> None:
    """Of an anytime monitor, in one file of history."""
    ready(here, 300, "anytime.sparker")
    found = watch(here, "inbox", monitor="anytime.sparker")
    names = [line["batch"] for line in found]
    check(names == sorted(names) and len(names) == 300, f"{len(names)} lines")
    looks(here, 300, "anytime.sparker")


@attack("watch", "an empty folder", "exit code 4, and words")
def empty(here: Box) -> None:
    """No success."""
    ready(here)
    done = plain(here.inside("watch", MONITOR, "inbox"))
    check(done.code == 4 and done.err, f"exit code {done.code}: {done.said}")


@attack("watch", "rows shifted by 10 sigma with one of 1e30 among them", "alarm, or not tested")
def shifted(here: Box) -> None:
    """A far value must not hide the others."""
    ready(here)
    rows = 10 + np.load(here / "quiet.npy")
    for value in (1e30, 1e9, 1e120):
        rows[3] = value
        np.save(here / "x.npy", rows)
        done = plain(here.inside("watch", MONITOR, "x.npy"))
        check(done.code in (1, 4, 5), f"{value:g}: exit code {done.code}: {done.out}")


BATCHES = {
    "empty.csv": b"",
    "words.csv": b"x,y\na,b\n",
    "noise.npy": b"\x93NUMPY\x01\x00\xff\xff",
    "noise.h5": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "noise.root": b"root\x00" + bytes(100),
    "noise.parquet": b"PAR1\x15" + bytes(100),
}


@attack("watch", "batches of noise, words, other columns, nothing", "a line each, others tested")
def wrong_batches(here: Box) -> None:
    """No batch stops the others."""
    ready(here)
    for name, content in BATCHES.items():
        (here / name).write_bytes(content)
    np.save(here / "wide.npy", np.ones((40, 5)))
    np.save(here / "missing.npy", np.full((40, 2), np.nan))
    np.save(here / "one.npy", np.ones((1, 2)))
    names = [*BATCHES, "wide.npy", "missing.npy", "one.npy", "gone.npy", "strange.npy"]
    found = watch(here, *names, code=5)
    check(len(found) == len(names), f"{len(found)} lines")
    check(found[-1].get("alarm"), "no alarm of the last batch")
    errors = [line for line in found if "error" in line]
    check(len(errors) >= len(BATCHES) + 2, f"{len(errors)} errors")


@attack("watch", "pipes, folders, circles and devices among the batches", "others are tested")
def inbox(here: Box) -> None:
    """What is no file is no batch; one that is named is said not to be one."""
    ready(here)
    folder = here / "inbox"
    os.mkfifo(folder / "a.npy")
    (folder / "b.npy").mkdir()
    (folder / "c.npy").symlink_to("c.npy")
    (folder / "d.npy").symlink_to("/dev/zero")
    shutil.copy(here / "quiet.npy", folder / "e.npy")
    check([line["batch"] for line in watch(here, "inbox")] == ["inbox/e.npy"], "another batch")
    named = watch(here, *(f"inbox/{name}.npy" for name in "acd"), code=4)
    check(all("error" in line for line in named) and len(named) == 3, f"lines {named}")


@attack("watch", "batches whose names have line breaks and escape sequences", "a line each")
def batch_names(here: Box) -> None:
    """A reader of lines is not misled."""
    ready(here)
    rng = np.random.default_rng(1)
    names = ['a\n{"alarm": true}.npy', "b\x1b[2J.npy", os.fsdecode(b"c\xff.npy")]
    for name in names:
        np.save(here / "inbox" / name, rng.normal(size=(40, 2)))
    done = plain(here.inside("watch", MONITOR, "inbox"))
    found = [json.loads(line)["batch"] for line in done.out.splitlines()]
    check([name.removeprefix("inbox/") for name in found] == sorted(names), f"lines {found}")
    check(all("skipped" in line for line in watch(here, "inbox")), "batches were tested twice")


@attack("watch", "a writer that pauses in the middle of a batch", "tested again when it is whole")
def pauses(here: Box) -> None:
    """Half of a CSV, then all of it."""
    ready(here)
    rows = [f"{x},{y}\n" for x, y in np.load(here / "strange.npy")]
    path = here / "inbox" / "x.csv"
    path.write_text("".join(rows[:20]))
    plain(here.inside("watch", MONITOR, "inbox"))
    with path.open("a") as file:
        file.writelines(rows[20:])
    check(watch(here, "inbox", code=1)[-1].get("alarm"), "no alarm of the whole batch")


@attack("watch", "a report of an alarm without room", "the alarm stands, exit code 5")
def full_report(here: Box) -> None:
    """A limit on the size of files that the monitor keeps to."""
    ready(here)
    done = here.outside(
        "watch", MONITOR, "strange.npy", "--reports", "reports", stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000)),
    )  # fmt: skip
    found = lines(plain(done).out)
    check(done.code == 5 and found[0]["alarm"], f"exit code {done.code}: {done.out}")
    check(found[0]["report"] is None, "half a report")
    looks(here, 1)
