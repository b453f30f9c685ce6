"""Typed values with arrays in one file that is safe to load, whoever wrote it.

A file in the safetensors format: the arrays, and in its metadata one JSON text with everything
else, a format version, and a digest of all of it. safetensors refuses shapes that lie, overlaps and
sizes beyond the file; msgspec checks every value against the type and the bounds that its field
declares, so numbers are finite; ``ArraySpec`` declares the same of arrays. Nothing is unpickled, no
link is followed, and the size is compared with the free memory before anything is read. The digest
notices damage and edits; it is no signature.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, BinaryIO, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from safetensors import numpy as safetensors

from sparker.system.atomic import whole_file
from sparker.system.digest import digest_by_name
from sparker.system.machine import free_on_machine

SUFFIX = ".sparker"
"""Of the files' names, where we choose them."""
FORMAT = "sparker"
VERSION = 1

COPIES = 3
"""Of the file, in memory while it is read."""
BYTES_A_CHARACTER = 32
"""Memory that a character of JSON can take once it is read: an empty list has two."""
MAX_HEADER = 100_000_000
"""Bytes of the metadata and the shapes; safetensors reads no more."""
MAX_DEPTH = 32
"""Lists and objects inside each other; what is written has fewer than ten."""

Restore = Mapping[type, tuple[type, Callable[[Any], Any]]]
"""By type: the type of what is written in its place, and a function that makes it of this again."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

Cells = list[str | bool | int | float | None]


class ArraySpec(NamedTuple):
    """The declaration of an array field, ``Annotated[np.ndarray, ArraySpec("N d")]``.

    Args:
        shape: the axes by name; an axis has the same length wherever it is named in a value. A
            number is that length, and ``"k | k r"`` allows two shapes.
        kinds: the letters of the NumPy kinds that are allowed.
        low: the smallest value.
        high: the largest value.
        finite: whether infinite values and NaN are refused.
    """

    shape: str
    kinds: str = "f"
    low: float = -np.inf
    high: float = np.inf
    finite: bool = True

    def after(self, axes: str) -> "ArraySpec":
        """Return the declaration of such arrays with further axes in front."""
        shapes = (" ".join([*axes.split(), *one.split()]) for one in self.shape.split("|"))
        return self._replace(shape=" | ".join(shapes))

    def problem(self, array: np.ndarray, axes: dict[str, int]) -> str:
        """Return what is wrong with an array, or nothing; lengths of new axes go into ``axes``."""
        for shape in self.shape.split("|"):
            named, found = shape.split(), dict(axes)
            if len(named) == array.ndim and all(
                found.setdefault(name, int(name) if name.isdigit() else length) == length
                for name, length in zip(named, array.shape, strict=True)
            ):
                axes.update(found)
                break
        else:
            return f"has shape {array.shape}, not ({self.shape})"
        if array.dtype.kind not in self.kinds:
            return f"holds {array.dtype}"
        if array.dtype.kind == "f" and self.finite and not np.isfinite(array).all():
            return "has values that are not finite"
        if array.dtype.kind in "fiu" and not np.all(
            np.isnan(array) | ((array >= self.low) & (array <= self.high))
        ):
            return f"has values that are not between {self.low:g} and {self.high:g}"
        return ""


class Each(NamedTuple):
    """The declaration of several values as one, ``Annotated[Ensemble, Each("m")]``.

    Args:
        axis: what all arrays in it have in front.
    """

    axis: str


class _Any(msgspec.Struct):
    """Of the text in the metadata, what all versions have."""

    version: Any = None


class About(msgspec.Struct, forbid_unknown_fields=True):
    """The text in the metadata."""

    version: int
    kind: str
    digest: str
    value: msgspec.Raw


def write(path: str | os.PathLike[str], kind: str, value: Any) -> None:
    """Write the file whole or not at all, even if the machine stops halfway.

    Args:
        path: where.
        kind: what it is called when it is read.
        value: a dataclass, NamedTuple or ``msgspec.Struct`` of plain values, arrays and more of
            these.
    """
    with whole_file(path) as file:
        file.write(packed(kind, value))


def packed(kind: str, value: Any) -> bytes:
    """Return the content of a file."""
    arrays: dict[str, np.ndarray] = {}

    def reference(found: Any) -> Any:
        if isinstance(found, np.generic):
            return found.item()
        if not hasattr(found, "__array__"):
            raise TypeError(f"{type(found).__name__} cannot be written to a file")
        array, name = np.asarray(found), f"{len(arrays)}"
        arrays[name] = np.asarray(_stored(array), order="C")
        return [name, array.dtype.str]

    return sealed(kind, msgspec.json.encode(value, enc_hook=reference), arrays)


def sealed(kind: str, value: bytes, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the content of a file with this JSON text and these arrays."""
    about = About(VERSION, kind, "", msgspec.Raw(value))
    about.digest = _digest(about, arrays)
    return safetensors.save(dict(arrays), {FORMAT: msgspec.json.encode(about).decode()})


def read(
    path: str | os.PathLike[str], kinds: Mapping[str, Any], restore: Restore | None = None
) -> Any:
    """Return the value of a file.

    Args:
        path: a file that ``write`` wrote; a link is refused.
        kinds: the types of the values that are wanted, by what they are called.
        restore: how to make objects that are neither plain nor arrays.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds anything else, or is damaged.
    """
    with reading(path, *kinds):
        return unpacked(content_of(path), kinds, restore)


@contextmanager
def reading(path: str | os.PathLike[str], *kinds: str) -> Iterator[None]:
    """Let whatever a file's contents raise end in a ``ValueError`` that names the file.

    Args:
        path: the file.
        kinds: what it should hold.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # a file made to do harm may raise anything
        raise ValueError(
            f"{os.fspath(path)} holds no {' or '.join(kinds)} that this version of sparker wrote, "
            f"or is damaged: {error}"
        ) from error


def unpacked(content: bytes, kinds: Mapping[str, Any], restore: Restore | None = None) -> Any:
    """Return the value of the content of a file; see ``read``."""
    about = _about(content)
    if about.kind not in kinds:
        raise ValueError(f"it holds a {about.kind}")
    needed = COPIES * len(content) + BYTES_A_CHARACTER * len(bytes(about.value))
    if needed > (free := free_on_machine()):
        raise ValueError(
            f"to read it takes {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free"
        )
    arrays = safetensors.load(content)
    if about.digest != _digest(about, arrays):
        raise ValueError("its contents are not those it was written with")

    def restored(wanted: type, found: Any) -> Any:
        if wanted is np.ndarray:
            name, dtype = msgspec.convert(found, tuple[str, str])
            return _as_given(arrays[name], np.dtype(dtype))
        if restore is None or wanted not in restore:
            raise NotImplementedError(f"nothing makes a {wanted.__name__}")
        saved, made = restore[wanted]
        return made(msgspec.convert(found, saved, dec_hook=restored))

    value = parsed(bytes(about.value), kinds[about.kind], restored)
    if problems := list(array_problems(value, kinds[about.kind], {})):
        raise ValueError("; ".join(problems))
    return value


def parsed(text: bytes, of: Any, restored: Callable[[type, Any], Any] | None = None) -> Any:
    """Return the value of a JSON text that we wrote, with each key once and nothing deep in it.

    Args:
        text: what ``msgspec.json.encode`` gave.
        of: the type of the value.
        restored: how to make values of types that JSON does not have.

    Raises:
        ValueError: if it is anything else.

    >>> parsed(b'{"a":[1,2]}', dict[str, list[int]])
    {'a': [1, 2]}
    >>> parsed(b'{"a":1,"a":2}', dict[str, int])
    Traceback (most recent call last):
    ...
    ValueError: a key stands in it twice, or it is not as it was written
    """
    found = msgspec.json.decode(text)
    inner = [one for one in [found] if isinstance(one, dict | list)]
    for _ in range(MAX_DEPTH):
        several = (one.values() if isinstance(one, dict) else one for one in inner)
        inner = [one for some in several for one in some if isinstance(one, dict | list)]
    if inner:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    if msgspec.json.encode(found) != text:
        raise ValueError("a key stands in it twice, or it is not as it was written")
    return msgspec.json.decode(text, type=of, dec_hook=restored)


def content_of(path: str | os.PathLike[str], most: float = np.inf) -> bytes:
    """Return all bytes of an ordinary file; refuse links, pipes, devices and what is too large."""
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > min(most, free_on_machine() / COPIES):
            raise ValueError(f"it has {size:,} bytes, which is far too large")
        return file.read()


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    flags = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError("it is a link, which is not followed; name the file itself") from None
        raise
    with open(descriptor, "rb") as file:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(kind):
            raise ValueError("it is no ordinary file")
        yield file


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Return whether a file was written by ``write``, as far as its metadata tells."""
    with suppress(Exception), _opened(path) as file:
        return bool(_about(_start(file)))
    return False


def array_problems(
    value: Any, declared: Any, axes: dict[str, int], at: str = "", before: str = ""
) -> Iterator[str]:
    """Yield what is wrong with the arrays in a value, by what its types declare of them."""
    notes: list[Any] = []
    for of in get_args(declared) if get_origin(declared) in (Union, UnionType) else [declared]:
        if get_origin(of) is Annotated:
            declared, *notes = get_args(of)
    before = " ".join([before, *(note.axis for note in notes if isinstance(note, Each))])
    if isinstance(value, np.ndarray):
        specs = (note for note in notes if isinstance(note, ArraySpec))
        problems = (spec.after(before).problem(value, axes) for spec in specs)
        yield from (f"{at} {problem}" for problem in problems if problem)
    elif is_dataclass(value) or isinstance(value, msgspec.Struct) or hasattr(value, "_fields"):
        for name, of in _fields(value.__class__).items():
            inner = getattr(value, name)
            yield from array_problems(inner, of, axes, f"{at}.{name}".strip("."), before)
    elif isinstance(value, dict | tuple | list):
        *_, of = [Any, *(of for of in get_args(declared) if of is not Ellipsis)]
        for inner in value.values() if isinstance(value, dict) else value:
            if not isinstance(inner, str | int | float):
                yield from array_problems(inner, of, axes, at, before)


@cache
def _fields(of: Any) -> dict[str, Any]:
    return get_type_hints(of, include_extras=True)


def _about(content: bytes) -> About:
    """Return the metadata of a file of ours."""
    size = int.from_bytes(content[:8], "little")
    if content[:2] == b"PK" or not 0 < size <= min(len(content) - 8, MAX_HEADER):
        raise ValueError("it has another format, which an older version may have written")
    found = msgspec.json.decode(content[8 : 8 + size], type=dict[str, msgspec.Raw])
    texts = msgspec.json.decode(found.get("__metadata__", b"{}"), type=dict[str, str])
    if FORMAT not in texts:
        raise ValueError("sparker did not write it")
    if (version := msgspec.json.decode(texts[FORMAT], type=_Any).version) != VERSION:
        raise ValueError(f"its format has version {version}, not {VERSION}")
    return msgspec.json.decode(texts[FORMAT], type=About)


def _start(file: BinaryIO) -> bytes:
    size = file.read(8)
    return size + file.read(min(int.from_bytes(size, "little"), MAX_HEADER))


def _digest(about: About, arrays: Mapping[str, np.ndarray]) -> str:
    text = msgspec.json.encode([about.version, about.kind, about.value])
    return digest_by_name({**arrays, FORMAT: np.frombuffer(text, np.uint8)})


def _stored(array: np.ndarray) -> np.ndarray:
    """Return what safetensors can hold: times as whole numbers, texts as JSON."""
    if array.dtype.kind in "OSU":
        return np.frombuffer(msgspec.json.encode(array.tolist()), np.uint8)
    return array.view(np.int64) if array.dtype.kind in "mM" else array


def _as_given(stored: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind not in "OU":
        return stored.view(dtype) if dtype.kind in "mM" else stored
    cells = msgspec.json.decode(stored.tobytes(), type=Cells)
    found = np.empty(len(cells), object)
    found[:] = cells
    return found if dtype.kind == "O" else np.array([str(cell) for cell in cells])
