"""Finished toys on disk: a calibration that is killed at any moment continues where it was.

A store is a folder with ``manifest.json``, which says which test the toys belong to, and a file for
each finished chunk. Files appear whole or not at all, and a toy is known by its number alone. So
several processes may fill one folder, and folders filled on different machines can be merged. Every
chunk carries the digest of its test: one of another test is refused, wherever it is found.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from sparker.statistics.contract import COUNTED, Chunk
from sparker.system import archive
from sparker.system.atomic import whole_file
from sparker.system.digest import digest, digest_of_plain

MANIFEST = "manifest.json"
KIND = "chunk of toys"

MAX_MANIFEST = 2**20
"""Bytes; those of a manifest are a few thousand."""

MAX_CHUNK = 2**12
"""Toys at once; sparker itself chooses 256 at most."""

N_NAMED = 5
"""Problems that are named one by one."""


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """The test that the toys of a store belong to."""

    chunk: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHUNK)]
    """How many are made at once."""
    test: dict[str, Any]
    digest: str = ""

    @property
    def seal(self) -> str:
        """Its digest as it should be."""
        return digest_of_plain([self.chunk, self.test])


class SavedChunk(msgspec.Struct, forbid_unknown_fields=True):
    """A chunk of toys as a file has it."""

    test: str
    """The digest of the test."""
    made_by: dict[str, str]
    chunk: Chunk


class Store:
    """The toys of one manifest in one folder."""

    def __init__(self, folder: str | os.PathLike[str], test: Mapping[str, Any], chunk: int) -> None:
        self.folder = Path(folder)
        if not 1 <= chunk <= MAX_CHUNK:
            raise ValueError(f"chunk must be between 1 and {MAX_CHUNK} toys at once, got {chunk}")
        wanted = Manifest(chunk, archive.parsed(msgspec.json.encode(test), dict[str, Any]))
        self.test = digest_of_plain(wanted.test)
        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        found = read_manifest(self.folder)
        if found is None:
            self.read()  # toys of another test do not become those of this one
            with _writing(self.folder), suppress(FileExistsError):  # another process was faster
                _write_manifest(self.folder, wanted)
            found = read_manifest(self.folder) or wanted
        self.chunk = found.chunk
        if different := _differences(found.test, wanted.test):
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
        numbers = [*map(int, chunk.numbers)]
        with _writing(self.folder):
            archive.write(
                self.folder / chunk_name(numbers),
                KIND,
                SavedChunk(self.test, made_by, chunk._replace(numbers=numbers)),
            )

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
        if different := _differences(manifests[0].test, manifest.test):
            raise ValueError(
                f"{folder} and {folders[0]} hold toys of different tests: {'; '.join(different)}"
            )
    given = [path for folder in folders for path in chunk_files(folder)]
    test = digest_of_plain(manifests[0].test)
    read_chunks(given, test)  # they are whole and agree, before anything is made of them
    target = Store(into, manifests[0].test, manifests[0].chunk)
    everything = read_chunks([*given, *chunk_files(target.folder)], test)
    for path in given:
        copy = target.folder / path.name
        if not os.path.lexists(copy):
            content = archive.content_of(path)
            with _writing(target.folder), whole_file(copy) as file:
                file.write(content)
    return len({number for chunk in everything for number in chunk.numbers})


def read_chunks(paths: Iterable[Path], test: str) -> list[Chunk]:
    """The chunks in these files, if all of them are whole, of this test and of one mind.

    One error names all files that are not. A file that is gone by now is left out.
    """
    found: list[Chunk] = []
    first: dict[int, tuple[Path, np.ndarray]] = {}  # where each experiment was seen first
    problems = []
    for path in paths:
        try:
            saved: SavedChunk = archive.read(path, {KIND: SavedChunk})
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{path} cannot be read: {error.strerror}")
            continue
        except ValueError as error:
            problems.append(str(error))
            continue
        chunk = saved.chunk
        if saved.test != test:
            problems.append(f"{path} holds toys of another test")
        elif not _fits_together(chunk):
            problems.append(f"{path} has parts that do not belong together")
        elif path.name != (name := chunk_name(chunk.numbers)):  # and would make room for others
            problems.append(f"{path} holds the toys of {name}")
        elif found and _shapes(chunk) != _shapes(found[0]):
            problems.append(f"{path} has other statistics than {next(iter(first.values()))[0]}")
        else:
            found.append(chunk)
            for number, row in zip(chunk.numbers, chunk.statistics, strict=True):
                other, known = first.setdefault(number, (path, row))
                if other != path and not np.array_equal(known, row, equal_nan=True):
                    problems.append(
                        f"{path} and {other} contradict each other in experiment {number}"
                    )
                    break
    if problems:
        more = f"; and {len(problems) - N_NAMED} more" if len(problems) > N_NAMED else ""
        it, its = ("it", "its") if len(problems) == 1 else ("them", "their")
        raise ValueError(
            f"{'; '.join(problems[:N_NAMED])}{more}; delete {it} and {its} toys are made anew"
        )
    return found


def _fits_together(chunk: Chunk) -> bool:
    numbers, statistics, models, counts = chunk
    if not 0 < len(numbers) == len({*numbers}) == len(statistics):
        return False
    if models is not None and (counts is None or 0 not in numbers):
        return False
    return counts is None or len(counts) == sum(number <= COUNTED for number in numbers)


def _shapes(chunk: Chunk) -> tuple[tuple[int, ...], ...]:
    counts = chunk.score_counts
    return chunk.statistics.shape[1:], () if counts is None else counts.shape[1:]


def read_manifest(folder: Path) -> Manifest | None:
    """Which test a store belongs to; None where there is no store."""
    path = folder / MANIFEST
    try:
        with archive.reading(path, "manifest of a store"):
            text = msgspec.json.format(archive.content_of(path, MAX_MANIFEST), indent=-1)
            found: Manifest = archive.parsed(text, Manifest)
            if found.digest != found.seal:
                raise ValueError("it is not as sparker wrote it")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(
            f"{error}; choose another folder for the store, or delete that file: toys that are "
            "this test's are then found again"
        ) from error
    return found


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    manifest.digest = manifest.seal
    with whole_file(folder / MANIFEST, new=True) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))


def begun(folder: str | os.PathLike[str]) -> int | None:
    """The size of the chunks that a store was begun with; None where there is no store."""
    manifest = read_manifest(Path(folder))
    return None if manifest is None else manifest.chunk


def chunk_name(numbers: Sequence[int]) -> str:
    """Return what the file of these toys is called."""
    name = f"toys-{min(numbers):06d}-{max(numbers):06d}"
    if max(numbers) - min(numbers) + 1 != len(numbers):  # others may fill the gaps
        name += f"-{digest(np.asarray(numbers, np.int64))[:8]}"
    return f"{name}{archive.SUFFIX}"


def chunk_files(folder: Path) -> list[Path]:
    """The finished chunks, in the order of their toys."""
    return sorted(folder.glob(f"toys-*{archive.SUFFIX}"))


def _differences(found: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    different = []
    for key in sorted(found.keys() | wanted.keys()):
        one, other = found.get(key), wanted.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            different += _differences(one, other, f"{prefix}{key}.")
        elif one != other:
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
