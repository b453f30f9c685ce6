"""The files that are batches or samples: those named, and those in a folder that is."""

import os
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

LONGEST = 60
"""Characters of a batch's name that the name of its report takes over."""


def batch_files(batches: Collection[str], own: Collection[Path]) -> Iterator[str]:
    """Yield the files that are named, and the ordinary files of the folders that are.

    Args:
        batches: files and folders.
        own: files of the command, which are no batches where a folder has them.
    """
    for batch in batches:
        yield from _in_folder(batch, own) if os.path.isdir(batch) else [batch]


def report_file(folder: Path, batch: str) -> Path:
    """Make a new file in the folder, called after a batch, with a number if there is one already.

    Args:
        folder: where.
        batch: the file of the batch.
    """
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


def _in_folder(folder: str, own: Collection[Path]) -> list[str]:
    ours = [os.stat(file) for file in own if file.exists()]
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                state = entry.stat()
            except OSError:  # gone already, or a link to nowhere
                continue
            is_ours = any(os.path.samestat(state, one) for one in ours)
            if stat.S_ISREG(state.st_mode) and not is_ours and not entry.name.startswith("."):
                found.append(entry.path)
    return sorted(found)
