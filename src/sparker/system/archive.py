"""Arrays and plain values in one file that is safe to load, whoever wrote it.

An uncompressed NumPy archive with a JSON header. Nothing is ever unpickled, and nothing is read
before its size was found to agree with the file's.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparker.system.atomic import whole_file

HEADER = "header"


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file whole or not at all, even if the machine stops halfway."""
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **{HEADER: text}, **arrays)


def read(path: Path, *kinds: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a file, or a ``ValueError`` if it is of none of these kinds."""
    kind = " or ".join(kinds)
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > path.stat().st_size:
                raise ValueError("its parts claim to be larger than the whole")
            arrays = {
                info.filename.removesuffix(".npy"): _member(archive, info)
                for info in archive.infolist()
            }
        header = json.loads(arrays.pop(HEADER).tobytes())
        if not isinstance(header, dict) or header.get("kind") not in kinds:
            raise ValueError(f"it is not a {kind}")
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # a file made to do harm may raise anything
        raise ValueError(
            f"{path} is not a {kind} saved by sparker, or is damaged: {error}"
        ) from error
    return header, arrays


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
