"""Which files are batches: those named, those in a folder, and those that come into it."""

import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from sparker.cli.errors import plain
from sparker.cli.options import note

LONGEST = 60  # characters of a batch's name that the name of its report takes over


class State(NamedTuple):
    """What tells one version of a file from another."""

    size: int
    modified: int  # nanoseconds


def state_of(file: Path) -> State | None:
    """Its state now; None where there is no such file, or no longer."""
    try:
        found = file.stat()
    except OSError:
        return None
    return State(found.st_size, found.st_mtime_ns)


def batch_files(batches: Collection[str], own: Collection[Path]) -> Iterator[str]:
    """The files that are named, and those of the folders that are; not our own."""
    for batch in batches:
        folder = Path(batch)
        yield from map(str, _in_folder(folder, own)) if folder.is_dir() else [batch]


def follow(folder: Path, poll: float, own: Collection[Path]) -> Iterator[str]:
    """The files of a folder, each as soon as it is the same at two polls; again if it changes."""
    seen: dict[Path, State | None] = {}
    tested: dict[Path, State] = {}
    complained = False
    while True:
        try:
            files = _in_folder(folder, own)
            complained = False
        except OSError as error:  # a network drive may come back
            if not complained:
                note(f"The folder cannot be listed now: {plain(error)}; trying again.")
            files, complained = [], True
        for file in files:
            state = state_of(file)
            # State first: what is written while the file is read makes it another one.
            if state is not None and state == seen.get(file) and state != tested.get(file):
                tested[file] = state
                yield str(file)
            seen[file] = state
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


def _in_folder(folder: Path, own: Collection[Path]) -> list[Path]:
    return [
        file
        for file in sorted(folder.iterdir())
        if not file.name.startswith(".") and file.is_file() and file.resolve() not in own
    ]
