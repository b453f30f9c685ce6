"""A folder of its own for each attack, and the commands that are run there."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil
from experiments.reliability.ends import MAX_MIB, Done

MAX_SECONDS = 120.0
"""Of work, for one command; what takes longer hangs. (Readers of files have 60 s of their own.)"""

WAIT = 8
"""How many times as long a command may wait, for what does not work at all, or is not let."""

IDLE = 30.0
"""Seconds without any work after which a command waits for what never comes."""

RESTART = 200
"""Command lines after which the process inside is begun anew."""

ROOT = Path(__file__).parents[2]
QUICK = ["--toys", "99", "--kernels", "2", "--steps", "20", "--json"]
TWO = ["reference.npy", "data.npy"]
READ = ["--toys", "19", "--statistic", "mahalanobis", "--json"]
"""As quick as it goes, where only the reading of files matters."""


def environment(**changes: str) -> dict[str, str]:
    """As users have it, on the processor; compiled programs are kept for the other attacks."""
    kept = {
        "JAX_PLATFORMS": "cpu",
        "SPARKER_CACHE": os.environ.get("SPARKER_CACHE", str(_folder() / "cache")),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    return {k: v for k, v in (os.environ | kept | changes).items() if v != ""}


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="sparker-reliability-"))


def clean_up() -> None:
    """Remove all folders."""
    INSIDE.end()
    shutil.rmtree(_folder(), ignore_errors=True)
    _folder.cache_clear()


class Measured:
    """What a process and its children take while something runs, and whether it was stopped."""

    def __init__(self, process_id: int, seconds: float) -> None:
        self.process: psutil.Process | None = None
        with suppress(psutil.NoSuchProcess):  # it may have ended before anybody looked
            self.process = psutil.Process(process_id)
        self.seconds = seconds
        self.first = self.taken()
        self.began = time.monotonic()
        self.worked = self.peak = 0.0
        self.is_stopped = False

    def taken(self) -> tuple[float, float]:
        """Seconds of work, and MiB of memory, of all of them."""
        seconds = size = 0.0
        if self.process is None:
            return seconds, size
        with suppress(psutil.Error):
            for one in (self.process, *self.process.children(recursive=True)):
                with suppress(psutil.Error):
                    times = one.cpu_times()
                    seconds += times.user + times.system
                    size += one.memory_info().rss / 2**20
        return seconds, size

    def look(self) -> None:
        """Take note, and stop what takes more than it may, before the machine has none left."""
        seconds, size = self.taken()
        self.worked = max(self.worked, seconds - self.first[0])
        self.peak = max(self.peak, size - self.first[1])
        waited = time.monotonic() - self.began
        is_idle = waited > IDLE and self.worked < 0.1
        if self.worked > self.seconds or waited > WAIT * self.seconds or is_idle:
            self.is_stopped = True
        if self.process is not None and (self.is_stopped or self.peak > MAX_MIB):
            end_tree(self.process)


@contextmanager
def measured(process_id: int, seconds: float) -> Iterator[Measured]:
    """While something runs that may work for so long, and wait for longer on a busy machine."""
    found = Measured(process_id, seconds)
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.1):
            found.look()

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield found
    finally:
        is_over.set()
        watcher.join()


def end_tree(process: psutil.Process) -> None:
    """A process and its children, at once."""
    with suppress(psutil.Error):
        for one in (*process.children(recursive=True), process):
            with suppress(psutil.Error):
                one.kill()


def stop(process: subprocess.Popen[Any]) -> None:
    """A process that we started."""
    with suppress(psutil.Error):
        end_tree(psutil.Process(process.pid))
    process.wait()


class Inside:
    """A process that runs command lines one after the other, see ``inside``."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.n_run = 0
        self.most = 0.0
        """MiB that it had at most since it began."""
        self.elsewhere: list[str] = []
        """What the last command touched outside of its folder."""

    def run(self, folder: Path, arguments: Sequence[str], seconds: float) -> Done:
        """One command line."""
        if self.process is None or self.n_run >= RESTART:
            self.begin()
        assert self.process is not None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.n_run += 1
        with measured(self.process.pid, seconds) as found:
            try:
                self.process.stdin.write(json.dumps([str(folder), list(arguments)]) + "\n")
                self.process.stdin.flush()
                line = self.process.stdout.readline()
            except BrokenPipeError:
                line = ""
        if not line:
            code = self.process.wait()
            self.process = None
            ended = None if found.is_stopped else code
            return Done(ended, "", "the process was ended", found.worked, found.peak)
        *said, self.most, self.elsewhere = json.loads(line)
        return Done(*said, found.worked, found.peak)

    def begin(self) -> None:
        """Start it."""
        self.end()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "experiments.reliability.inside"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=environment(),
        )
        self.n_run = 0

    def end(self) -> None:
        """Stop it."""
        if self.process is not None:
            stop(self.process)
            self.process = None


INSIDE = Inside()


class Box:
    """Where an attack takes place: files, and commands that read them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[Done] = []

    def __truediv__(self, name: str) -> Path:
        """A file in it."""
        return self.folder / name

    def inside(self, *arguments: object, seconds: float = MAX_SECONDS) -> Done:
        """A command line, in a process that runs many."""
        done = INSIDE.run(self.folder, list(map(str, arguments)), seconds)
        self.ran.append(done)
        return done

    def begin(
        self, *arguments: object, code: str | None = None, **how: Any
    ) -> subprocess.Popen[str]:
        """A command line in a process of its own; or a program in Python, which has arguments."""
        program = ["-m", "sparker"] if code is None else ["-c", code]
        settings: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "errors": "replace",
            "cwd": self.folder,
            "env": environment(**how.pop("variables", {})),
        }
        return subprocess.Popen(
            [sys.executable, *how.pop("python", ()), *program, *map(str, arguments)],
            **(settings | how),
        )

    def ended(self, process: subprocess.Popen[str], seconds: float = MAX_SECONDS) -> Done:
        """What became of it."""
        with measured(process.pid, seconds) as found:
            out, err = process.communicate()
        code = None if found.is_stopped else process.returncode
        done = Done(code, out or "", err or "", found.worked, found.peak)
        self.ran.append(done)
        return done

    def outside(self, *arguments: object, seconds: float = MAX_SECONDS, **how: Any) -> Done:
        """A command line in a process of its own, to its end."""
        return self.ended(self.begin(*arguments, **how), seconds)

    def samples(self, planted: bool = True) -> None:
        """``reference.npy`` and ``data.npy``."""
        reference, data = samples(planted=planted)
        np.save(self / "reference.npy", reference)
        np.save(self / "data.npy", data)

    def copy(self, name: str) -> Path:
        """One of the files that all attacks share: monitor, result, store, batches."""
        source = shared() / name
        if source.is_dir():
            return Path(shutil.copytree(source, self / name))
        return Path(shutil.copy(source, self / name))


@contextmanager
def box() -> Iterator[Box]:
    """A new one."""
    folder = Path(tempfile.mkdtemp(dir=_folder()))
    try:
        yield Box(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def samples(seed: int = 0, *, planted: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """A thousand reference rows and 200 data rows of two columns; a tenth lies where few do."""
    rng = np.random.default_rng([seed, 20])
    reference, data = rng.normal(size=(1000, 2)), rng.normal(size=(200, 2))
    if planted:
        data[:20] = [2.5, 2.5] + 0.2 * data[:20]
    return reference, data


@functools.cache
def shared() -> Path:
    """Files of ours that attacks change: a result, a store, a monitor, and two batches for it."""
    here = Box(_folder() / "shared")
    here.folder.mkdir()
    here.samples()
    rng = np.random.default_rng(3)
    np.save(here / "quiet.npy", rng.normal(size=(40, 2)))
    np.save(here / "strange.npy", 3 + 0.2 * rng.normal(size=(40, 2)))
    commands: list[list[str]] = [
        [
            "test",
            "reference.npy",
            "data.npy",
            *QUICK,
            "--store",
            "store",
            "--save",
            "result.sparker",
        ],
        ["calibrate", "reference.npy", "monitor.sparker", "--alpha", "0.05", *QUICK[:-1]],
        ["calibrate", "reference.npy", "anytime.sparker", "--alpha", "0.05", "--anytime"],
    ]
    for command in commands:
        done = here.inside(*command)
        if done.code:
            raise RuntimeError(f"{command}: {done.err}")
    return here.folder


def when(is_so: Callable[[], object], seconds: float = MAX_SECONDS) -> bool:
    """Wait until something is so."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.01)
    return False


def send(process: subprocess.Popen[Any], number: int) -> None:
    """A signal, if it still runs."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.Signals(number))


def lines(file: IO[str] | Path | str) -> list[dict[str, Any]]:
    """Lines of JSON."""
    text = file.read_text() if isinstance(file, Path) else file if isinstance(file, str) else ""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
