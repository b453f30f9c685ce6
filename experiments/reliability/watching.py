"""``sparker watch`` as a service."""

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
from experiments.reliability.ends import check, plain, refused

FOLLOW = ["watch", "monitor.npz", "inbox", "--follow", "--poll", "0.2", "--alpha", "0.05"]


def ready(here: Box, *batches: str) -> None:
    """A monitor, batches, and an inbox."""
    for name in ("monitor.npz", "quiet.npy", "strange.npy"):
        here.copy(name)
    (here / "inbox").mkdir()
    for name in batches:
        shutil.copy(here / name, here / "inbox" / name)


class Service:
    """A watch that follows a folder, and the lines it writes."""

    def __init__(self, here: Box, *more: object) -> None:
        self.here = here
        self.out = here / f"out-{time.monotonic_ns()}"
        self.process = here.begin(*FOLLOW, *more, stdout=self.out.open("w"))

    def lines(self) -> list[dict[str, Any]]:
        """So far."""
        return lines(self.out)

    def until(self, n: int) -> list[dict[str, Any]]:
        """So many lines."""
        there = when(lambda: len(self.lines()) >= n or self.process.poll() is not None, 300)
        check(there and len(self.lines()) >= n, f"{len(self.lines())} lines in place of {n}")
        return self.lines()

    def end(self, number: int = signal.SIGTERM, code: int = 143) -> list[dict[str, Any]]:
        """By a signal."""
        send(self.process, number)
        done = self.here.ended(self.process)
        if done.code == -number:  # before it could say so, at its start; shells see the same
            done = done._replace(code=128 + number)
        check(done.code == code, f"exit code {done.code} in place of {code}: {done.said}")
        if code >= 0:
            plain(done)
        return self.lines()


@attack("watch", "| head -1 before an alarm", "exit code 1, all batches tested")
def head(here: Box) -> None:
    """A reader that leaves."""
    ready(here)
    batches = ["quiet.npy"] * 3 + ["strange.npy"]
    command = ["watch", "monitor.npz", *batches, "--alpha", "0.05", "--reports", "reports"]
    process = here.begin(*command)
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    done = plain(here.ended(process))
    check(done.code == 1, f"exit code {done.code}")
    check((here / "reports" / "strange.html").exists(), "the alarm has no report")


@attack("watch", "a writer that pauses in the middle of a batch", "tested again when it is whole")
def pauses(here: Box) -> None:
    """Half of a CSV, then all of it."""
    ready(here)
    rows = [f"{x},{y}\n" for x, y in np.load(here / "strange.npy")]
    path = here / "inbox" / "x.csv"
    path.write_text("".join(rows[:20]))
    service = Service(here)
    service.until(1)
    with path.open("a") as file:
        file.writelines(rows[20:])
    last = service.until(2)[-1]
    check(last.get("alarm"), f"no alarm of the whole batch: {last}")
    service.end()


@attack("watch", "a batch that another one takes the place of", "tested again")
def replaced(here: Box) -> None:
    """Same name, size and time of modification."""
    ready(here, "quiet.npy")
    service = Service(here)
    check(not service.until(1)[0]["alarm"], "an alarm of the quiet batch")
    old = (here / "inbox" / "quiet.npy").stat()
    os.utime(here / "strange.npy", ns=(old.st_atime_ns, old.st_mtime_ns))
    (here / "strange.npy").replace(here / "inbox" / "quiet.npy")
    check(service.until(2)[1]["alarm"], "no alarm of the batch that took its place")
    service.end()


@attack("watch", "batches that vanish, and a folder that does", "the watch goes on")
def vanishing(here: Box) -> None:
    """And come back."""
    ready(here, "quiet.npy")
    service = Service(here)
    service.until(1)
    for number in range(20):
        path = here / "inbox" / f"gone{number}.npy"
        shutil.copy(here / "quiet.npy", path)
        time.sleep(0.03)
        path.unlink()
    (here / "inbox").rename(here / "away")
    time.sleep(0.6)
    (here / "away").rename(here / "inbox")
    shutil.copy(here / "strange.npy", here / "inbox" / "strange.npy")
    check(
        when(lambda: any(line.get("alarm") for line in service.lines()), 300),
        "no alarm after the folder came back",
    )
    service.end()


@attack("watch", "--looks 1 with six batches", "one look, or error")
def one_look(here: Box) -> None:
    """No more than were planned."""
    ready(here)
    done = here.inside("watch", "monitor.npz", *["quiet.npy"] * 6, "--looks", "1")
    tested = [line for line in lines(done.out) if "p_value" in line]
    if plain(done).code == 2:
        refused(done, "--looks")
    else:
        check(len(tested) == 1, f"{len(tested)} looks")


@attack("watch", "an empty folder", "exit code 4, and words")
def empty(here: Box) -> None:
    """No success."""
    ready(here)
    done = plain(here.inside("watch", "monitor.npz", "inbox"))
    check(done.code == 4 and done.err, f"exit code {done.code}: {done.said}")


@attack("watch", "rows shifted by 10 sigma with one of 1e30 among them", "alarm, or not tested")
def shifted(here: Box) -> None:
    """A far value must not hide the others."""
    ready(here)
    rows = 10 + np.load(here / "quiet.npy")
    for value in (1e30, 1e9, 1e120):
        rows[3] = value
        np.save(here / "x.npy", rows)
        done = plain(here.inside("watch", "monitor.npz", "x.npy", "--alpha", "0.05"))
        check(done.code in (1, 4, 5), f"{value:g}: exit code {done.code}: {done.out}")


@attack("watch", "SIGTERM, and the same command again", "goes on at its place")
def restarted(here: Box) -> None:
    """With a journal."""
    ready(here, "quiet.npy")
    first = Service(here, "--journal", "lines.jsonl")
    first.until(1)
    first.end()
    shutil.copy(here / "strange.npy", here / "inbox" / "strange.npy")
    second = Service(here, "--journal", "lines.jsonl")
    found = second.until(1)
    second.end()
    check([line["look"] for line in found] == [2], f"looks {[line['look'] for line in found]}")


@attack("watch", "kill -9 ten times over twenty batches", "each tested once, all looks numbered")
def killed(here: Box) -> None:
    """A line is written whole or tested anew."""
    ready(here)
    rng = np.random.default_rng(26)
    for number in range(20):
        np.save(here / "inbox" / f"{number:02}.npy", rng.normal(size=(40, 2)))
    for _ in range(10):
        process = here.begin(*FOLLOW, "--journal", "lines.jsonl", stdout=subprocess.DEVNULL)
        before = len(lines(here / "lines.jsonl")) if (here / "lines.jsonl").exists() else 0

        def more(before: int = before) -> bool:
            path = here / "lines.jsonl"
            return path.exists() and path.read_text().count("\n") > before + 1

        when(more, 30)
        send(process, signal.SIGKILL)
        here.ended(process)
        if before >= 20:
            break
    last = Service(here, "--journal", "lines.jsonl")
    when(lambda: (here / "lines.jsonl").read_text().count("\n") >= 20, 300)
    last.end()
    kept = lines(here / "lines.jsonl")
    check([line["look"] for line in kept] == [*range(1, 21)], "looks are missing or twice")
    check(len({line["batch"] for line in kept}) == 20, "a batch was tested twice")


@attack("watch", "300 batches at once", "all tested, in order")
def hundreds(here: Box) -> None:
    """Appearing together."""
    ready(here)
    for number in range(300):
        shutil.copy(here / "quiet.npy", here / "inbox" / f"{number:03}.npy")
    done = plain(here.inside("watch", "monitor.npz", "inbox", "--alpha", "0.01", seconds=240))
    names = [line["batch"] for line in lines(done.out)]
    check(names == sorted(names) and len(names) == 300, f"{len(names)} lines")


@attack("watch", "stdout on a full disk", "all tested, exit code 5")
def full_stdout(here: Box) -> None:
    """The journal has the lines."""
    ready(here)
    command = ["watch", "monitor.npz", "quiet.npy", "strange.npy", "--alpha", "0.05"]
    with open("/dev/full", "w") as full:
        done = plain(here.outside(*command, "--journal", "lines.jsonl", stdout=full))
    check(done.code == 5, f"exit code {done.code}")
    check(len(lines(here / "lines.jsonl")) == 2, "lines were lost")


@attack("watch", "a journal without room", "all tested, said once")
def full_journal(here: Box) -> None:
    """Whole lines only."""
    ready(here)
    command = ["watch", "monitor.npz", *["quiet.npy"] * 5, "strange.npy", "--alpha", "0.05"]
    done = here.outside(
        *command, "--journal", "lines.jsonl",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)),
    )  # fmt: skip
    plain(done)
    check(done.code in (4, 5), f"exit code {done.code}")
    check(len(lines(done.out)) == 6, "lines were lost on stdout")
    text = (here / "lines.jsonl").read_text()
    check(not text or text.endswith("\n"), "half a line in the journal")


@attack("watch", "a journal that was cut off, and files that are none", "goes on, or error")
def wrong_journal(here: Box) -> None:
    """What is no journal is left alone."""
    ready(here)
    command = ["watch", "monitor.npz", "quiet.npy", "--journal", "lines.jsonl"]
    plain(here.inside(*command))
    path = here / "lines.jsonl"
    path.write_text(path.read_text()[:-20])
    done = plain(here.inside(*command))
    check(len(lines(done.out)) == 1, "the batch of the lost line was not tested again")
    for content in ("x,y\n1,2\n", '{"look": 1}\n', "3\n", "[" * 10**5 + "\n"):
        path.write_text(content)
        refused(here.inside(*command))
        check(path.read_text() == content, "somebody else's file was changed")


@attack("watch", "two watches with one journal", "the second is refused")
def two(here: Box) -> None:
    """Lines would mix."""
    ready(here, "quiet.npy")
    service = Service(here, "--journal", "lines.jsonl")
    service.until(1)
    refused(here.inside("watch", "monitor.npz", "quiet.npy", "--journal", "lines.jsonl"))
    service.end()


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
    done = plain(here.inside("watch", "monitor.npz", *names, "--alpha", "0.05"))
    found = lines(done.out)
    check(len(found) == len(names), f"{len(found)} lines")
    check(found[-1].get("alarm"), "no alarm of the last batch")
    check(done.code == 5, f"exit code {done.code}")
    errors = [line for line in found if "error" in line]
    check(len(errors) >= len(BATCHES) + 2, f"{len(errors)} errors")
    check(all(json.dumps(line) for line in found), "no JSON")


@attack("watch", "a clock set back: batches of 1980 and of tomorrow", "tested")
def clock(here: Box) -> None:
    """Times only tell whether a file has changed."""
    ready(here, "quiet.npy", "strange.npy")
    os.utime(here / "inbox" / "quiet.npy", (315532800, 315532800))
    os.utime(here / "inbox" / "strange.npy", (time.time() + 86400,) * 2)
    service = Service(here)
    service.until(2)
    os.utime(here / "inbox" / "quiet.npy", (0, 0))
    service.until(3)
    service.end()


@attack("watch", "Ctrl-C in the middle", "exit code 130 within seconds")
def interrupted(here: Box) -> None:
    """And what was done is said."""
    ready(here, "quiet.npy")
    service = Service(here)
    service.until(1)
    began = time.monotonic()
    service.end(signal.SIGINT, 130)
    check(time.monotonic() - began < 20, "it took too long")
