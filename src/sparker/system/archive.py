"""Arrays and plain values in one file that is safe to load, whoever wrote it.

An uncompressed NumPy archive with a JSON header and a digest of all that is in it. Nothing is ever
unpickled, and nothing is read before its size was found to agree with the file's and to fit into
memory. The digest notices damage and edits; it is no signature: whoever writes a whole file of his
own can write its digest, too. So those who read a file check what it says as well.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparker.system.atomic import whole_file
from sparker.system.digest import digest_by_name
from sparker.system.machine import free_on_machine
from sparker.system.plain_json import BYTES_A_CHARACTER, parse

HEADER = "header"
DIGEST = "digest"

DAMAGE = ArithmeticError, AttributeError, LookupError, TypeError, ValueError
"""What may be raised where the contents of a file, made by others, are put to use."""

COPIES = 3
"""Of a part, in memory while it is read."""


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file whole or not at all, even if the machine stops halfway."""
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    members = {HEADER: text, **arrays}
    if objects := [name for name, array in members.items() if array.dtype.hasobject]:
        raise ValueError(f"{', '.join(objects)} would be pickled: only plain arrays are written")
    members[DIGEST] = np.frombuffer(digest_by_name(members).encode(), np.uint8)
    with whole_file(path) as file:
        # Not allow_pickle=False, which NumPy 2.1 would take for an array of that name.
        np.savez(file, **members)  # type: ignore[arg-type]


def read(path: Path, *kinds: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file, or a ``ValueError`` if it is of none of these kinds."""
    kind = " or ".join(kinds)
    try:
        _check_kind(path)
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, path.stat().st_size)
            arrays = {
                info.filename.removesuffix(".npy"): _member(archive, info)
                for info in archive.infolist()
            }
        if lacking := {HEADER, DIGEST} - arrays.keys():
            raise ValueError(f"it lacks its {' and '.join(sorted(lacking))}")
        stated = arrays.pop(DIGEST).tobytes()
        if stated != digest_by_name(arrays).encode():
            raise ValueError("its contents are not those it was written with")
        header = parse(arrays.pop(HEADER).tobytes())
        if not isinstance(header, dict) or header.get("kind") not in kinds:
            raise ValueError(f"it is not a {kind}")
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # a file made to do harm may raise anything
        raise ValueError(
            f"{path} is not a {kind} saved by sparker, or is damaged: {error}"
        ) from error
    return header, arrays


def is_archive(path: Path) -> bool:
    """Whether a file was written by ``write``, as far as its list of parts tells."""
    try:
        _check_kind(path)
        with zipfile.ZipFile(path) as archive:
            return f"{HEADER}.npy" in archive.namelist()
    except Exception:  # as above
        return False


def _check_kind(path: Path) -> None:
    """Refuse devices and pipes: the end of an archive is looked for, and these may have none."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError("it is no ordinary file")


def _check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """Before any part is read: each is there once, and all of them fit into file and memory."""
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    if len(sizes) < len(archive.infolist()):
        raise ValueError("it has a part twice")
    total = sum(sizes.values())
    if total > size:
        raise ValueError("its parts claim to be larger than the whole")
    needed = COPIES * total + BYTES_A_CHARACTER * sizes.get(f"{HEADER}.npy", 0)
    free = free_on_machine()
    if needed > free:
        raise ValueError(
            f"to read it takes {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free"
        )


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename} is compressed")  # and may be any size once unpacked
    with archive.open(info) as file:
        content = io.BytesIO(file.read())
    version = np.lib.format.read_magic(content)
    header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = header[version](content)
    if dtype.hasobject:
        raise ValueError(f"{info.filename} holds Python objects")
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if size != len(content.getbuffer()) - content.tell():
        raise ValueError(f"{info.filename} does not have the size it claims")
    content.seek(0)
    return np.lib.format.read_array(content, allow_pickle=False)
