"""What was measured, a JSON line each: a study can stop at any time, and be made in pieces.

Lines are appended to one file of a folder; all its .jsonl files are read, so those of other
machines can be laid beside it. A line knows the versions that made it, but not the code: after a
change to a test take a new folder.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

FILE = "samples.jsonl"
Line = dict[str, Any]


class Work(NamedTuple):
    """One test of one sample: what a line is known by."""

    problem: str
    method: str
    sample: int
    n_toys: int


def key_of(line: Line) -> Work:
    """What a line is of."""
    return Work(*(line[field] for field in Work._fields))


def lines(folder: Path) -> Iterator[Line]:
    """All that was measured; half a line, where a machine stopped, counts for nothing."""
    for path in sorted(folder.glob("*.jsonl")):
        for text in path.read_text().splitlines():
            with suppress(json.JSONDecodeError):
                yield json.loads(text)


def add(folder: Path, line: Line) -> None:
    """Append a line, and begin a new one where the last is not whole."""
    path = folder / FILE
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.tell() > 0:
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(line).encode() + b"\n")
