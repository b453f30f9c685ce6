"""Where commands write: asked before any work, each tried whatever becomes of the others."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sparker.cli.errors import EXPECTED, plain
from sparker.cli.terminal import BadInput, note
from sparker.system.atomic import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".svg", ".pdf")


def check_outputs(
    outputs: Mapping[str, Path | None],
    inputs: Iterable[str | Path | None] = (),
    *,
    folders: Mapping[str, Path | None] | None = None,
) -> None:
    """Say now, not after the calibration, what could not be written or would be lost.

    Outputs and folders go by what the user calls them, such as ``--save``. Of inputs that are
    folders, no file may be overwritten.
    """
    read = {_identity(file): file for given in inputs if given for file in _files(given)}
    taken: dict[object, str] = {}
    problems = [
        f"there is no folder {path.parent}; make it, or choose another {name}"
        for name, path in (folders or {}).items()
        if path is not None and not path.parent.is_dir()
    ]
    for name, path in outputs.items():
        if path is None:
            continue
        found = [*_place(name, path)]
        one = _identity(path)
        if one in read:
            found.append(f"{name} would overwrite {read[one]}, which is read; choose another file")
        elif one in taken:
            found.append(f"{name} and {taken[one]} are the same file, {path}; choose another one")
        elif one is not None:
            taken[one] = name
        problems += found
    if problems:
        raise BadInput("; ".join(problems))


def check_picture(name: str, path: Path | None) -> None:
    """Refuse a picture of a kind that is not drawn."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise BadInput(f"{name} must end with {', '.join(PICTURES)}, got {path}")


def save_picture(figure: "Figure", path: Path) -> None:
    """Write a figure as the kind of picture that the name says."""
    with whole_file(path) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=130)


class Attempts:
    """Outputs one after the other; one that fails costs none of the others."""

    def __init__(self) -> None:
        self._failed: list[str] = []
        self._foreign: Exception | None = None

    @contextmanager
    def at(self, what: str, path: Path | None = None) -> Iterator[None]:
        """Try one; what was written to a file is said at once, what was not in the end."""
        try:
            yield
        except OSError as error:
            where = "stdout" if path is None else path
            self.failed(f"the {what} could not be written to {where}: {error.strerror or error}")
        except EXPECTED as error:
            self.failed(plain(error))
        except Exception as error:  # a mistake of ours, and no reason to lose the others
            self._foreign = self._foreign or error
        else:
            if path is not None:
                note(f"The {what} {'are' if what.endswith('s') else 'is'} in {path}.")

    def write(self, what: str, path: Path | None, how: Callable[[Path], None]) -> None:
        """Try to write a file, if one is wanted."""
        if path is not None:
            with self.at(what, path):
                how(path)

    def failed(self, problem: str) -> None:
        """Remember what could not be done."""
        self._failed.append(problem)

    def end(self) -> None:
        """Say all that failed."""
        problems = "; ".join(self._failed)
        if self._foreign is not None:
            if problems:
                note(f"Error: {problems}")
            raise self._foreign
        if problems:
            raise BadInput(problems)


def _place(name: str, path: Path) -> Iterator[str]:
    """What keeps a file from being written there."""
    folder = path.parent
    if not path.name:
        yield f"{name} must name a file, got {str(path)!r}"
    elif not folder.is_dir():
        yield f"there is no folder {folder}; make it, or choose another {name}"
    elif path.exists():
        if path.is_dir():
            yield f"{name} must name a file, and {path} is a folder"
        elif not os.access(path, os.W_OK):
            yield f"{path} may not be written to; choose another {name}"
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield f"the folder {folder} may not be written to; choose another {name}"


def _files(given: str | Path) -> Iterator[Path]:
    """The file that is meant, with or without the name of a table in it; of a folder, all in it."""
    if os.path.isdir(given):
        yield from Path(given).iterdir()
        return
    yield Path(given)
    inner, _, key = str(given).rpartition(":")
    if inner and key:
        yield Path(inner)


def _identity(path: Path) -> object:
    """The same for all names of a file, links included; None for devices and pipes."""
    try:
        found = path.stat()
    except OSError:
        return os.path.realpath(path)
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
