"""ROOT files that send their reader to other files: uproot does not write such, ROOT does."""

import inspect
import re
import struct
import textwrap
from pathlib import Path

import numpy as np
import uproot
from uproot.writing import _cascadetree

SAME_FILE = r'(?<=# empty fFileName)\s+out\.append\(b"\\x00"\)'
NO_LISTS = r'\s+out\.append\(b"\\x00" \* 28\)'
"""Where uproot writes that a branch lies in the file of its tree, and that there are no friends."""

COUNT = 0x40000000  # a bit of every number of bytes
NEW_CLASS = 0xFFFFFFFF

PLAIN_OBJECT = struct.pack(">HII", 1, 0, 0x03000000)


def write_tree(
    path: Path, columns: dict[str, np.ndarray], *, lies_in: str = "", friend: str = ""
) -> None:
    """A tree whose branches are said to lie in another file, or that has a friend there."""
    kind = _cascadetree.Tree
    usual = getattr(kind, "_build_out", kind.write_anew)
    source = textwrap.dedent(inspect.getsource(usual))
    lists = bytes(16) + (_friends(friend) if friend else bytes(4)) + bytes(8)
    for place, content in ((SAME_FILE, _text(lies_in)), (NO_LISTS, lists)):
        found = re.search(place, source)
        if found is None:
            raise RuntimeError(f"uproot writes trees in another way than is known: no {place}")
        before = re.match(r"\s+", found[0])[0]  # type: ignore[index]
        source = f"{source[: found.start()]}{before}out.append({content!r}){source[found.end() :]}"
    names = dict(vars(_cascadetree))
    exec(source, names)
    setattr(kind, usual.__name__, names[usual.__name__])
    try:
        with uproot.recreate(path, compression=None) as file:
            file.mktree("events", {name: own.dtype for name, own in columns.items()}).extend(
                columns
            )
    finally:
        setattr(kind, usual.__name__, usual)


def _friends(path: str) -> bytes:
    """A list of one: the tree ``events`` of a file."""
    named = _counted(struct.pack(">H", 1) + PLAIN_OBJECT + _text("events") + _text(path))
    friend = _object("TFriendElement", _counted(struct.pack(">H", 2) + named + _text("events")))
    size = struct.pack(">i", 1)
    return _object(
        "TList",
        _counted(struct.pack(">H", 5) + PLAIN_OBJECT + _text("") + size + friend + _text("")),
    )


def _text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()


def _counted(content: bytes) -> bytes:
    return struct.pack(">I", len(content) | COUNT) + content


def _object(kind: str, content: bytes) -> bytes:
    return _counted(struct.pack(">I", NEW_CLASS) + kind.encode() + b"\0" + content)
