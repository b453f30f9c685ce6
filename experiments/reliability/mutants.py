"""Other contents for files and folders, drawn at random, with new digests where there are any.

Each function takes a generator and what is there now, and names what it did.
"""

import io
import json
import os
import re
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from experiments.reliability.damage import (
    BYTES,
    MEMBERS,
    leave_out,
    members_of,
    swap,
    twice,
    zipped,
)
from safetensors import numpy as safetensors

from sparker.system import archive
from sparker.system.digest import digest_of_plain

Rng = np.random.Generator

STRANGE = [
    None, True, False, 0, -1, 1, 7, 2**31, 2**63 - 1, 10**18, 0.5, -0.5, 1e300, 5e-324, "", "x",
    "../../etc/passwd", "<script>alert(1)</script>", "0", "a" * 10_000, [], [0], [None], ["x", 1],
    {}, {"option": "softmax"}, {"is": []}, [[[]]], [1e308] * 3, ["0", "<f8"], ["1", "<i8"],
    ["0", "|O"], ["99", "<f8"], ["0", "<U9"],
]  # fmt: skip

TEXTS = [
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"-1", b"1e-400", b"9" * 5000, b"0x10",
    b"[" * 100_000, b"[" * 5000 + b"]" * 5000, b'"\\ud800"', b'{"a":1,"a":2}', b"", b"'x'", b"//",
    b"{" + b",".join([b'"a":1'] * 100_000) + b"}", b'"' + b"x" * 10**6 + b'"', b"\xff", b"1,1",
    b"null", b"true",
]  # fmt: skip
"""What JSON may not hold, holds at most, or holds elsewhere."""

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null')

KINDS = [
    "<f8", ">f8", "<f4", "<f2", "<i8", "<u8", "|i1", "|b1", "<c16", "<U4", "|S3", "|O", "|V8",
    "<M8[s]", "<M8[as]", "<m8[ns]", "<f16", "<U1000000000", "f", "", "(2,)f8", "O", "<f0", "|V0",
    "<U0", "datetime64",
]  # fmt: skip

SHAPES: list[Any] = [
    (), (0,), (0, 2), (60,), (60, 0), (60, 1), (120,), (2, 60), (60, 2, 1), (10**18,), (-1, 2),
    (2**63, 2), (2**62, 4), (0, 10**18), (1, 10**9), (60.0, 2), ("60", 2), 60, None, (True, 120),
    (1,) * 40, (60, 2, -1),
]  # fmt: skip


def pick(rng: Rng, of: Any) -> Any:
    """One of a sequence."""
    return of[rng.integers(len(of))]


# --- Values ---------------------------------------------------------------------------------------


def like(rng: Rng, value: Any) -> Any:
    """Another value of the same kind, if there is one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return pick(rng, [value + 1, value - 1, -value, 0, value * 10**6, 2**31, 2**53, 2**63 - 1])
    if isinstance(value, float):
        return pick(rng, [-value, 0.0, value * 1e9, value * 1e-9, 1e308, 5e-324, 1.0, value + 1])
    if isinstance(value, str):
        return pick(rng, ["", value + "x", value[:-1], value * 2, value.upper(), "none", "../x"])
    if isinstance(value, list):
        return pick(rng, [[], value * 2, value[::-1], value[:-1], value[:1], [*value, None]])
    if isinstance(value, dict):
        return pick(rng, [{}, {**value, "x": 1}, dict(list(value.items())[1:])])
    return pick(rng, STRANGE)


def forged(rng: Rng, value: Any) -> Any:
    """Something else somewhere inside a value of JSON."""
    if isinstance(value, dict | list) and value and rng.random() < 0.9:
        key = pick(rng, list(value) if isinstance(value, dict) else range(len(value)))
        changed = dict(value) if isinstance(value, dict) else list(value)
        if rng.random() < 0.05:
            del changed[key]
        else:
            changed[key] = forged(rng, value[key])
        return changed
    return like(rng, value) if rng.random() < 0.8 else pick(rng, STRANGE)


def respelled(rng: Rng, words: bytes) -> bytes:
    """Another text in place of a number, string or word of JSON, or a key once more."""
    found = list(TOKEN.finditer(words))
    if not found:
        return pick(rng, TEXTS)
    one = pick(rng, found)
    if rng.random() < 0.1 and words[one.end() :].startswith(b":"):
        return words[: one.end()] + b":1," + words[one.start() :]
    return words[: one.start()] + pick(rng, TEXTS) + words[one.end() :]


def other_array(rng: Rng, array: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    """Another shape, another kind, other values, or another array altogether."""
    way = rng.integers(9)
    if way == 0:
        return array[:-1] if array.ndim and len(array) else np.zeros(2)
    if way == 1:
        return pick(rng, [array[..., None], array[None], array.ravel(), array.T])
    if way == 2:
        return np.zeros(array.shape, pick(rng, ["f4", "f2", "f8", "i8", "?", "u1", "u8", "i4"]))
    if way <= 5 and array.dtype.kind in "fiu" and array.size:
        changed = array.copy()
        whole = [-1, 0, 1, 2**31 - 1, np.iinfo(np.int64).min]
        real = [np.nan, np.inf, -np.inf, -5, 1e30, 1e308, 5e-324, 0]
        values = real if array.dtype.kind == "f" else whole
        places = rng.integers(array.size, size=pick(rng, [1, array.size]))
        with np.errstate(all="ignore"):
            changed.flat[places] = np.array(pick(rng, values)).astype(array.dtype)
        return changed
    if way == 6:
        return np.zeros((0, *array.shape[1:]), array.dtype)
    if way == 7:
        return np.concatenate([array] * 3) if array.ndim else np.zeros(2)
    return pick(rng, others)


# --- Archives: results, monitors, chunks ----------------------------------------------------------


def parts_of(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The text of an archive, read, and its arrays."""
    size = int.from_bytes(content[:8], "little")
    texts = json.loads(content[8 : 8 + size])["__metadata__"]
    arrays = safetensors.load(content)  # in any order
    return json.loads(texts[archive.FORMAT]), dict(sorted(arrays.items()))


def sealed(kind: str, value: bytes, arrays: dict[str, np.ndarray]) -> bytes:
    """An archive of both with the digest that belongs to them."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return archive.sealed(kind, value, arrays)


def value(rng: Rng, content: bytes) -> bytes:
    """Other values in the text."""
    about, arrays = parts_of(content)
    found = about["value"]
    for _ in range(rng.integers(1, 3)):
        found = forged(rng, found)
    return sealed(about["kind"], msgspec.json.encode(found), arrays)


def text(rng: Rng, content: bytes) -> bytes:
    """Another text where a value stands."""
    about, arrays = parts_of(content)
    found = respelled(rng, msgspec.json.encode(about["value"]))
    return sealed(about["kind"], found.decode(errors="replace").encode(), arrays)


def arrays(rng: Rng, content: bytes) -> bytes:
    """Other arrays."""
    about, found = parts_of(content)
    for _ in range(rng.integers(1, 3)):
        name = pick(rng, list(found))
        found[name] = other_array(rng, found[name], list(found.values()))
        if rng.random() < 0.1:
            del found[name]
            break
    return sealed(about["kind"], msgspec.json.encode(about["value"]), found)


def metadata(rng: Rng, content: bytes) -> bytes:
    """Another version or kind, or other words around them."""
    about, found = parts_of(content)
    if rng.random() < 0.5:
        kind = pick(rng, ["", "monitor", "anytime monitor", "test result", "chunk of toys", "{}"])
        return sealed(kind, msgspec.json.encode(about["value"]), found)
    around = msgspec.json.encode(forged(rng, about))
    if rng.random() < 0.5:
        around = respelled(rng, around)
    return safetensors.save(found, {archive.FORMAT: around.decode(errors="replace")})


def shapes(rng: Rng, content: bytes) -> bytes:
    """Other shapes, places and kinds of arrays, in the words of the format."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    about = header.pop("__metadata__")
    found = forged(rng, header)
    found = {"__metadata__": about, **found} if isinstance(found, dict) else found
    text = json.dumps(found).encode()
    if rng.random() < 0.3:
        text = respelled(rng, text)
    length = len(text) if rng.random() < 0.8 else int(pick(rng, [0, 1, 2**31, 2**62, 10**8]))
    return struct.pack("<Q", length) + text + content[8 + size :]


def bytes_of(rng: Rng, content: bytes) -> bytes:
    """Other bytes, anywhere."""
    return pick(rng, BYTES)(rng, content, content[::-1])


ARCHIVE = [value] * 6 + [text, arrays, arrays, arrays, metadata, shapes, bytes_of]


def manifest_value(rng: Rng, content: bytes) -> bytes:
    """Other values in a manifest, with the digest that belongs to them."""
    found = forged(rng, json.loads(content))
    if isinstance(found, dict):
        found["digest"] = digest_of_plain([found.get("chunk"), found.get("test")])
    return json.dumps(found).encode()


def manifest_text(rng: Rng, content: bytes) -> bytes:
    """Another text in a manifest."""
    return respelled(rng, content)


MANIFEST = [manifest_value, manifest_value, manifest_text, bytes_of]


# --- NumPy's files --------------------------------------------------------------------------------


def npy_header(rng: Rng, content: bytes) -> bytes:
    """Another kind, shape or order of values, or no header at all."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    shape, order, kind = np.lib.format.read_array_header_1_0(file)
    body = content[file.tell() :]
    header = {"descr": kind.str, "fortran_order": order, "shape": shape}
    name = pick(rng, list(header))
    changes = {"descr": [*KINDS, [("x", "<f8"), ("y", "<f8")], [("x", "|O")], [("x", "<f8")] * 2],
               "fortran_order": [not order, 1, "x", None], "shape": SHAPES}  # fmt: skip
    header[name] = pick(rng, changes[name])
    text = repr(header).encode()
    way = rng.random()
    if way < 0.2:
        text = respelled(rng, text.replace(b"'", b'"')).replace(b'"', b"'")
    elif way < 0.3:
        text = pick(rng, [b"(" * 60_000, b"{" + text + b"}", b"__import__('os').abort()", b""])
    if way > 0.9:
        version = pick(rng, [(0, 0), (2, 0), (3, 0), (9, 9), (255, 255)])
    wide = version[0] >= 2
    length = len(text) + 1
    if 0.3 < way < 0.4:
        length = pick(rng, [0, 1, 60_000, 2**31 if wide else 65_535])
    length = min(length, 2**32 - 1 if wide else 65_535)
    return (
        b"\x93NUMPY" + bytes(version) + length.to_bytes(4 if wide else 2, "little") + text + b"\n"
        + body
    )  # fmt: skip


def npy_values(rng: Rng, content: bytes) -> bytes:
    """Other values, shapes and kinds, saved as they should be."""
    array = np.load(io.BytesIO(content))
    array = other_array(rng, array, [array, array * 1e300, np.full((60, 2), np.nan)])
    if rng.random() < 0.3:
        with np.errstate(all="ignore"):
            array = np.asarray(array).astype(pick(rng, ["U4", "S3", "c16", "f2", "V8", "M8[s]"]))
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


NPY = [npy_header] * 3 + [npy_values, bytes_of]


def npz_member(rng: Rng, content: bytes) -> bytes:
    """Another array in an archive of NumPy's."""
    members = members_of(content)
    i = rng.integers(len(members))
    members[i] = (members[i][0], pick(rng, NPY)(rng, members[i][1]))
    return zipped(members)


def npz_members(rng: Rng, content: bytes) -> bytes:
    """Arrays twice, under other names, left out, exchanged."""
    way = pick(rng, MEMBERS)
    if way in (swap, twice) and len(members_of(content)) < 2:
        way = leave_out
    return way(rng, content, content)


NPZ = [npz_member, npz_member, npz_members, bytes_of]


# --- Pictures and tables of text ------------------------------------------------------------------


def png_size(rng: Rng, content: bytes) -> bytes:
    """A picture that claims other sizes and depths."""
    sizes = struct.pack(">II", *(int(pick(rng, [0, 1, 8, 30_000, 2**31 - 1])) for _ in range(2)))
    rest = content[24:33] if rng.random() < 0.5 else rng.bytes(9)
    return content[:16] + sizes + rest + content[33:]


def csv_text(rng: Rng, content: bytes) -> bytes:
    """Other cells."""
    return respelled(rng, content)


PNG = [png_size, bytes_of]
CSV = [csv_text, bytes_of]

WAYS: dict[str, list[Callable[[Rng, bytes], bytes]]] = {
    ".sparker": ARCHIVE, ".json": MANIFEST, ".npy": NPY, ".npz": NPZ, ".png": PNG, ".csv": CSV,
}  # fmt: skip


# --- Places ---------------------------------------------------------------------------------------


def pipe(path: Path, secret: Path) -> None:
    """A FIFO that nobody writes into."""
    os.mkfifo(path)


def folder(path: Path, secret: Path) -> None:
    """A folder."""
    path.mkdir()


def link(path: Path, secret: Path) -> None:
    """A link to a file elsewhere that is what it should be."""
    path.symlink_to(secret)


def circle(path: Path, secret: Path) -> None:
    """A link to itself."""
    path.symlink_to(path.name)


def nowhere(path: Path, secret: Path) -> None:
    """A link to nothing."""
    path.symlink_to("none")


def device(path: Path, secret: Path) -> None:
    """A link to a device without end."""
    path.symlink_to("/dev/zero")


def plug(path: Path, secret: Path) -> None:
    """A socket."""
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(path.with_name("s")))  # a long name is none for a socket
    path.with_name("s").rename(path)


def empty(path: Path, secret: Path) -> None:
    """Nothing."""
    path.write_bytes(b"")


def noise(path: Path, secret: Path) -> None:
    """No format at all."""
    path.write_bytes(np.random.default_rng(len(path.name)).bytes(5000))


def hole(path: Path, secret: Path) -> None:
    """A terabyte of nothing, with a beginning."""
    path.write_bytes(secret.read_bytes() if secret.is_file() else b"\x89PNG\r\n\x1a\n")
    os.truncate(path, 2**40)


def letters(path: Path, secret: Path) -> None:
    """A page of the web."""
    path.write_bytes(b"<!DOCTYPE html><html>404</html>\n")


PLACES = [pipe, folder, link, circle, nowhere, device, plug, empty, noise, hole, letters]


def replaced(rng: Rng, path: Path, secret: Path) -> str:
    """Something else under the name of a file, or in addition to others."""
    path.unlink(missing_ok=True)
    way = pick(rng, PLACES)
    way(path, secret)
    return way.__name__


def changed(rng: Rng, path: Path, others: list[Path], secret: Path) -> str:
    """Another content of a file: changed, cut, joined, another file's, or no file any more."""
    content, way = path.read_bytes(), rng.random()
    if way < 0.08:
        return replaced(rng, path, secret)
    if way < 0.12:
        path.write_bytes(pick(rng, others).read_bytes())
        return "another file"
    if way < 0.16:
        path.write_bytes(content + pick(rng, others).read_bytes())
        return "two files in one"
    if way < 0.2:
        path.write_bytes(content[: rng.integers(len(content))])
        return "cut short"
    change = pick(rng, WAYS[path.suffix])
    path.write_bytes(change(rng, content))
    return change.__name__
