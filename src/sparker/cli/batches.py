"""Which files are batches: those named, those in a folder, and those that come into it.

Or lines of stdin.
"""

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sparker.cli.errors import plain
from sparker.cli.terminal import note
from sparker.tables.lines import rows_of

LONGEST = 60  # characters of a batch's name that the name of its report takes over


class State(NamedTuple):
    """What tells one version of a file from another."""

    size: int
    modified: int  # nanoseconds
    changed: int  # nanoseconds; also of a file that took its place with an old time of its own


class Batch(NamedTuple):
    """A file as it was named, and its version; none where it cannot be told."""

    file: str
    state: State | None
    rows: Callable[[], Any] | None = None
    """What gives its rows, where it is no file."""

    @property
    def place(self) -> str:
        """Its name wherever the command runs; lines have none."""
        return os.path.abspath(self.file) if self.rows is None else STDIN

    @classmethod
    def kept(cls, place: str, state: list[int] | None) -> "Batch":
        """One that was done with, as it stands in a file."""
        return cls(place, None if state is None else State(*state))


STDIN = "-"
"""Instead of a file: lines of JSON from stdin."""

Tested = dict[str, State | None]
"""By their place, the versions of batches that were tested."""


def state_of(file: str | Path) -> State | None:
    """Its state now; None where there is no such file, or no longer."""
    try:
        return _state(os.stat(file))
    except OSError:
        return None


def named(file: str) -> Batch:
    """A batch by its name, which may go on with that of a table in it."""
    return Batch(file, state_of(file) or state_of(file.rpartition(":")[0]))


def batch_files(batches: Collection[str], own: Collection[Path]) -> Iterator[Batch]:
    """The files that are named, and those of the folders that are; not our own."""
    for batch in batches:
        folder = Path(batch)
        yield from _in_folder(folder, own) if folder.is_dir() else [named(batch)]


def lines(stream: Iterable[bytes], first: int) -> Iterator[Batch]:
    """Lines of JSON as batches, numbered from ``first`` on; see ``sources.rows_of``."""
    filled = (line for line in stream if line.strip())
    for number, line in enumerate(filled, first):
        yield Batch(f"line {number}", None, partial(rows_of, line))


def follow(folder: Path, poll: float, own: Collection[Path], tested: Tested) -> Iterator[Batch]:
    """The files of a folder, each as soon as it is the same at two polls; again if it changes.

    Which of them are ``tested`` is said there by whoever tests them.
    """
    seen: Tested = {}
    complained = False
    while True:
        files: list[Batch] = []
        try:
            files = _in_folder(folder, own)
            complained = False
        except OSError as error:  # a network drive may come back
            if not complained:
                note(f"The folder cannot be listed now: {plain(error)}; trying again.")
            complained = True
        for batch in files:
            place, state = batch.place, batch.state
            # Others were tested since the folder was listed.
            is_calm = state == seen.get(place) == state_of(batch.file)
            if is_calm and state != tested.get(place):
                yield batch
        if files:  # or else it may be the place of a drive that is gone for now
            seen = {batch.place: batch.state for batch in files}
            for gone in tested.keys() - seen.keys():
                del tested[gone]
        time.sleep(poll)


def report_file(folder: Path, batch: str) -> Path:
    """A new file in the folder, called after a batch, with a number if there is one already."""
    stem = Path(Path(batch).name.removesuffix(".gz")).stem
    name = re.sub(r"[^\w.-]+", "-", stem)[:LONGEST].strip(".-") or "batch"
    number = 1
    while True:
        file = folder / (f"{name}.html" if number == 1 else f"{name}-{number}.html")
        try:
            file.touch(exist_ok=False)  # taken at once: others may write here too
        except FileExistsError:
            number += 1
        else:
            return file


def _in_folder(folder: Path, own: Collection[Path]) -> list[Batch]:
    ours = [os.stat(file) for file in own if file.exists()]
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                state = entry.stat()
                is_ours = any(os.path.samestat(state, one) for one in ours)
                if entry.name.startswith(".") or not entry.is_file() or is_ours:
                    continue
            except OSError:  # gone already
                continue
            found.append(Batch(os.path.join(folder, entry.name), _state(state)))
    return sorted(found)


def _state(found: os.stat_result) -> State:
    return State(found.st_size, found.st_mtime_ns, found.st_ctime_ns)
