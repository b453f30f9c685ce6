"""Finished toys on disk: a calibration that is killed at any moment continues where it was.

A store is a folder with ``manifest.json``, which says which test the toys belong to, and a file for
each finished chunk. Files appear whole or not at all, and a toy is known by its number alone. So
several processes may fill one folder, and folders filled on different machines can be merged. Every
chunk carries the digest of its test: one of another test is refused, wherever it is found.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from sparker.calibration.chunk_file import read_chunks, write_chunk
from sparker.statistics.contract import Chunk
from sparker.system.atomic import whole_file
from sparker.system.digest import digest, digest_of_plain
from sparker.system.plain_json import parse

MANIFEST = "manifest.json"
DIGEST = "digest"
CHUNK = "chunk"

MAX_MANIFEST = 2**20
"""Bytes; those of a manifest are a few thousand."""

MAX_CHUNK = 2**12
"""Toys at once; sparker itself chooses 256 at most."""


class Store:
    """The toys of one manifest in one folder."""

    def __init__(self, folder: str | os.PathLike[str], manifest: dict[str, Any]) -> None:
        self.folder = Path(folder)
        wanted = parse(json.dumps(manifest).encode())  # as it comes back from a file
        _check_chunk("chunk", wanted[CHUNK])
        self.test = digest_of_test(wanted)
        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        found = read_manifest(self.folder)
        if found is None:
            self.read()  # toys of another test do not become those of this one
            with _writing(self.folder), suppress(FileExistsError):  # another process was faster
                _write_manifest(self.folder, wanted)
            found = read_manifest(self.folder) or wanted
        self.chunk: int = found[CHUNK]
        different = _differences(found, wanted)
        if different:
            raise ValueError(
                f"the store {self.folder} holds toys of another test; it differs in "
                f"{'; '.join(different)}. Choose another folder, or make the call as it was"
            )

    def check_writable(self) -> None:
        """Say before any work what would keep its outcome from being written."""
        with _writing(self.folder):
            tempfile.TemporaryFile(dir=self.folder).close()

    def write(self, chunk: Chunk, made_by: dict[str, str]) -> None:
        """Keep a finished chunk."""
        numbers = chunk.numbers
        name = f"toys-{min(numbers):06d}-{max(numbers):06d}"
        if max(numbers) - min(numbers) + 1 != len(numbers):  # others may fill the gaps
            name += f"-{digest(np.asarray(numbers, np.int64))[:8]}"
        with _writing(self.folder):
            write_chunk(self.folder / f"{name}.npz", chunk, self.test, made_by)

    def read(self) -> list[Chunk]:
        """All finished chunks."""
        return read_chunks(chunk_files(self.folder), self.test)


def merge(stores: Sequence[str | os.PathLike[str]], into: str | os.PathLike[str]) -> int:
    """Bring the toys of several stores of the same test into one; how many it then holds.

    >>> import tempfile
    >>> merge([tempfile.mkdtemp()], "anywhere")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: ... has no manifest.json; it is not a store
    """
    folders = [Path(store) for store in stores]
    if not folders:
        raise ValueError("stores is empty; name at least one to merge")
    manifests = []
    for folder in folders:
        manifest = read_manifest(folder)
        if manifest is None:
            raise ValueError(f"{folder} has no {MANIFEST}; it is not a store")
        manifests.append(manifest)
    for folder, manifest in zip(folders, manifests, strict=True):
        different = _differences(manifests[0], manifest)
        if different:
            raise ValueError(
                f"{folder} and {folders[0]} hold toys of different tests: {'; '.join(different)}"
            )
    given = [path for folder in folders for path in chunk_files(folder)]
    test = digest_of_test(manifests[0])
    read_chunks(given, test)  # they are whole and agree, before anything is made of them
    target = Store(into, manifests[0])
    everything = read_chunks([*given, *chunk_files(target.folder)], test)
    for path in given:
        copy = target.folder / path.name
        if not copy.exists():
            with _writing(target.folder), whole_file(copy) as file:
                file.write(path.read_bytes())
    return len({number for chunk in everything for number in chunk.numbers})


def digest_of_test(manifest: dict[str, Any]) -> str:
    """What tells the toys of a test from those of others: all but how many were made at once."""
    return digest_of_plain({name: value for name, value in manifest.items() if name != CHUNK})


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Which test a store belongs to; None where there is no store."""
    path = folder / MANIFEST
    try:
        if path.exists() and not path.is_file():  # nobody may ever write into a pipe
            raise ValueError("it is no ordinary file")
        with path.open("rb") as file:
            text = file.read(MAX_MANIFEST + 1)
        if len(text) > MAX_MANIFEST:
            raise ValueError("it is far too large")
        found = parse(text)
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get(CHUNK), int):
        raise ValueError(f"{path} is not the manifest of a store")
    sealed = found.pop(DIGEST, None)
    if sealed != digest_of_plain(found):
        raise ValueError(
            f"{path} is not as sparker wrote it; choose another folder for the store, or delete "
            "that file: toys that are this test's are then found again"
        )
    _check_chunk(f"chunk in {path}", found[CHUNK])
    return found


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    sealed = manifest | {DIGEST: digest_of_plain(manifest)}
    with whole_file(folder / MANIFEST, new=True) as file:
        file.write(json.dumps(sealed, indent=1).encode())


def begun(folder: str | os.PathLike[str]) -> int | None:
    """The size of the chunks that a store was begun with; None where there is no store."""
    manifest = read_manifest(Path(folder))
    return None if manifest is None else int(manifest[CHUNK])


def chunk_files(folder: Path) -> list[Path]:
    """The finished chunks, in the order of their toys."""
    return sorted(folder.glob("toys-*.npz"))


def _check_chunk(what: str, chunk: Any) -> None:
    if not 1 <= chunk <= MAX_CHUNK:
        raise ValueError(f"{what} must be between 1 and {MAX_CHUNK} toys at once, got {chunk}")


def _differences(found: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    different = []
    for key in sorted(found.keys() | wanted.keys()):
        one, other = found.get(key), wanted.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            different += _differences(one, other, f"{prefix}{key}.")
        elif one != other and f"{prefix}{key}" != CHUNK:
            different.append(f"{prefix}{key} ({_short(one)} there, {_short(other)} here)")
    return different


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:12]}..."


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise ValueError(
            f"the store {folder} was removed while it was in use; the same call begins it anew"
        ) from error
    except OSError as error:
        raise ValueError(
            f"the store {folder} cannot be written: {error.strerror or error}; free some room or "
            "choose another folder. What was finished before is kept"
        ) from error
