"""Finished toys on disk: a calibration that is killed at any moment continues where it was.

A store is a folder with ``manifest.json``, which says which test the toys belong to, and a file for
each finished chunk. Files appear whole or not at all, and a toy is known by its number alone. So
several processes may fill one folder, and folders filled on different machines can be merged.
"""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sparker.engine.ensemble import Ensemble
from sparker.engine.measured import Measured
from sparker.statistics.contract import Chunk
from sparker.system import archive
from sparker.system.atomic import whole_file
from sparker.system.digest import digest

MANIFEST = "manifest.json"
KIND = "chunk of toys"


class Store:
    """The toys of one manifest in one folder."""

    def __init__(self, folder: str | os.PathLike[str], manifest: dict[str, Any]) -> None:
        self.folder = Path(folder)
        wanted = json.loads(json.dumps(manifest))  # as it comes back from a file
        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            found = read_manifest(self.folder)
            if found is None:
                with whole_file(self.folder / MANIFEST) as file:
                    file.write(json.dumps(manifest, indent=1).encode())
                found = wanted
            else:
                tempfile.TemporaryFile(dir=self.folder).close()  # whether it can be written to
        self.chunk: int = found["chunk"]
        different = _differences(found, wanted)
        if different:
            raise ValueError(
                f"the store {self.folder} holds toys of another test; it differs in "
                f"{'; '.join(different)}. Choose another folder, or make the call as it was"
            )

    def write(self, chunk: Chunk, made_by: dict[str, str]) -> None:
        """Keep a finished chunk."""
        numbers, measured, models = chunk
        contents = {name: np.asarray(array) for name, array in measured._asdict().items()}
        contents["numbers"] = np.asarray(numbers, np.int64)
        if models is not None:
            contents |= {f"observed_{name}": array for name, array in models._asdict().items()}
        name = f"toys-{min(numbers):06d}-{max(numbers):06d}"
        if max(numbers) - min(numbers) + 1 != len(numbers):  # others may fill the gaps
            name += f"-{digest(np.asarray(numbers, np.int64))[:8]}"
        name += ".npz"
        with _writing(self.folder):
            archive.write(self.folder / name, {"kind": KIND, "made_by": made_by}, contents)

    def read(self) -> Iterator[Chunk]:
        """All finished chunks."""
        for path in chunk_files(self.folder):
            try:
                _, found = archive.read(path, KIND)
                missing = {"numbers", *Measured._fields} - found.keys()
                if missing:
                    raise ValueError(f"{path} lacks {sorted(missing)}")
            except ValueError as error:
                raise ValueError(f"{error}; delete it and its toys are made anew") from error
            measured = Measured(*(found[name] for name in Measured._fields))
            models = None
            if "observed_mu" in found:
                models = Ensemble(*(found[f"observed_{name}"] for name in Ensemble._fields))
            yield Chunk(found["numbers"].tolist(), measured, models)


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
    target = Store(into, manifests[0])
    for folder in folders:
        for path in chunk_files(folder):
            archive.read(path, KIND)  # a damaged one is noticed here, before it is passed on
            copy = target.folder / path.name
            if not copy.exists():
                with _writing(target.folder), whole_file(copy) as file:
                    file.write(path.read_bytes())
    return len({number for chunk in target.read() for number in chunk.numbers})


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Which test a store belongs to; None where there is no store."""
    try:
        found = json.loads((folder / MANIFEST).read_text())
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise ValueError(f"{folder / MANIFEST} cannot be read: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("chunk"), int):
        raise ValueError(f"{folder / MANIFEST} is not the manifest of a store")
    return found


def begun(folder: str | os.PathLike[str]) -> int | None:
    """The size of the chunks that a store was begun with; None where there is no store."""
    manifest = read_manifest(Path(folder))
    return None if manifest is None else int(manifest["chunk"])


def chunk_files(folder: Path) -> list[Path]:
    """The finished chunks, in the order of their toys."""
    return sorted(folder.glob("toys-*.npz"))


def _differences(found: dict[str, Any], wanted: dict[str, Any], prefix: str = "") -> list[str]:
    different = []
    for key in sorted(found.keys() | wanted.keys()):
        one, other = found.get(key), wanted.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            different += _differences(one, other, f"{prefix}{key}.")
        elif one != other and f"{prefix}{key}" != "chunk":
            different.append(f"{prefix}{key} ({_short(one)} there, {_short(other)} here)")
    return different


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:12]}..."


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"the store {folder} cannot be written: {error.strerror}; free some room or choose "
            "another folder. What was finished before is kept"
        ) from error
