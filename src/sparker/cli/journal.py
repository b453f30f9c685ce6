"""What a watch has done, in a file that outlives it.

Each batch adds a line, whole or not at all: that of stdout, with the version of the file that was
tested. A watch that is ended at any moment, and started again, goes on after the last of them.
"""

import json
import os
from collections import deque
from pathlib import Path
from typing import Any

from sparker.cli.batches import Batch, State, Tested
from sparker.cli.terminal import BadInput
from sparker.system.plain_json import parse

START = b'{"batch": '
N_RECENT = 1000
"""Looks that are remembered, to be drawn."""


class Journal:
    """The looks so far; only in memory where there is no file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.n_looks = 0
        self.n_bet_on = 0
        """The last look that was not an error."""
        self.tested: Tested = {}
        self.recent: deque[dict[str, Any]] = deque(maxlen=N_RECENT)
        self._file: int | None = None
        self._length = 0
        if path is not None:
            self._file = _opened(path)
            try:
                self._read(path)
            except BaseException:
                self.close()
                raise
            os.ftruncate(self._file, self._length)

    def knows(self, batch: Batch) -> bool:
        """Whether this version of a file was tested."""
        return batch.state is not None and self.tested.get(batch.place) == batch.state

    def add(self, batch: Batch, line: dict[str, Any]) -> None:
        """Keep a line; where it cannot be written, the batch counts as tested all the same."""
        whole = {**line, "file": batch.place, "state": batch.state}
        self._count(whole)
        if self._file is None:
            return
        content = json.dumps(whole).encode() + b"\n"
        try:
            written = 0
            while written < len(content):
                written += os.write(self._file, content[written:])
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, self._length)  # no half of a line stays
            raise
        self._length += len(content)

    def close(self) -> None:
        """Leave the file to others."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self, path: Path) -> None:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n") and _is_ours(line):
                    break  # the machine stopped in the middle of it
                try:
                    self._count(parse(line))
                except (ValueError, TypeError, KeyError) as error:
                    raise BadInput(
                        f"line {number} of {path} is none of a journal that a watch has kept; "
                        "choose another --journal"
                    ) from error
                self._length += len(line)

    def _count(self, line: dict[str, Any]) -> None:
        self.n_looks = int(line["look"])
        state = line["state"]
        self.tested[str(line["file"])] = None if state is None else State(*state)
        if "error" in line:
            self.recent.append({"error": ""})
            return
        self.n_bet_on = self.n_looks
        drawn = {key: line[key] for key in ("p_value", "alarm")}
        self.recent.append(drawn | {key: line[key] for key in ("wealth",) if key in line})


def _opened(path: Path) -> int:
    """A descriptor that adds to the file."""
    if path.exists() and not path.is_file():  # to open a pipe would wait for its reader
        raise BadInput(f"--journal must name a plain file, which can be read again, got {path}")
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        _lock(file, path)
    except BaseException:
        os.close(file)
        raise
    return file


def _lock(file: int, path: Path) -> None:
    """Let it belong to one watch at a time, where files can be locked."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadInput(
            f"another watch keeps its journal in {path}; end it, or choose another --journal"
        ) from None
    except OSError:
        return


def _is_ours(half: bytes) -> bool:
    """Whether it may be the beginning of a line; a disk may have kept zeros for the rest."""
    half = half.rstrip(b"\0")
    return half.startswith(START) or START.startswith(half)
