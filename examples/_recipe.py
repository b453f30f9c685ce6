"""What recipes share: what they need, their options, what they leave behind.

A recipe that needs more than sparker itself names it in ``requirements/NAME.txt``. The site runs
those recipes whose requirements are met where it is built, and shows the code of the others. Data
that no package of Python's has are files to be put into ``data/``, each named there by a comment:
``# file: URL sha256``.
(The name begins with an underscore: this is no page of the gallery.)
"""

import argparse
import hashlib
import json
import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from packaging.requirements import Requirement

from sparker.system.versions import versions

HERE = Path(__file__).resolve().parent
OUTPUT = HERE / "output"
DATA = HERE / "data"


def requirements(name: str, folder: Path = HERE / "requirements") -> list[Requirement]:
    """What a recipe needs beyond sparker's own dependencies; comments are left out."""
    path = folder / f"{name}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    wanted = [Requirement(text) for line in lines if (text := line.partition("#")[0].strip())]
    return [one for one in wanted if one.marker is None or one.marker.evaluate()]


class Download(NamedTuple):
    """A file that whoever runs the recipe has fetched."""

    url: str
    sha256: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return DATA / self.url.rpartition("/")[2]

    @property
    def command(self) -> str:
        """What fetches it."""
        return f"curl --create-dirs -o examples/data/{self.path.name} {self.url}"


def downloads(name: str, folder: Path = HERE / "requirements") -> list[Download]:
    """The files that a recipe needs."""
    path = folder / f"{name}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [Download(*line.split()[2:]) for line in lines if line.startswith("# file: ")]


def installed(name: str) -> str | None:
    """The version of a package that is installed here."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def file_of(package: str, ending: str) -> str:
    """A text file of a package, found without running any of it."""
    (path,) = (one for one in distribution(package).files or () if str(one).endswith(ending))
    return Path(str(path.locate())).read_text(encoding="utf-8")


def missing(name: str, folder: Path = HERE / "requirements") -> list[str]:
    """Those requirements of a recipe that are not met here."""
    found = {str(one): (one.specifier, installed(one.name)) for one in requirements(name, folder)}
    return [
        one
        for one, (specifier, here) in found.items()
        if here is None or not specifier.contains(here, prereleases=True)
    ]


def runnable() -> list[str]:
    """The recipes whose requirements are met here."""
    names = [path.stem for path in HERE.glob("[!_]*.py") if not missing(path.stem)]
    return sorted(name for name in names if all(one.path.exists() for one in downloads(name)))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One run of a recipe: how large, where to, and what is kept of it."""

    name: str
    full: bool
    recording: bool
    options: argparse.Namespace = field(default_factory=argparse.Namespace)
    """Those of its own."""
    began: float = field(default_factory=time.perf_counter)

    @property
    def report(self) -> Path:
        """Where its report goes; the site takes it from there."""
        return OUTPUT / f"{self.name}_report.html"

    def record(self, **found: Any) -> None:
        """With ``--record``, keep what this run found; texts elsewhere quote that file."""
        if not self.recording:
            return
        own = {one.name: installed(one.name) for one in requirements(self.name)}
        result = {
            "command": " ".join(["python", f"examples/{self.name}.py", *sys.argv[1:]]),
            "versions": versions() | own,
            "seconds": round(time.perf_counter() - self.began, 1),
        }
        path = HERE / "results" / (self.name + "_full" * self.full + ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result | found, indent=1) + "\n")


def stop(why: str) -> NoReturn:
    """End the recipe, with one line that says why."""
    print(why, file=sys.stderr)
    raise SystemExit(2)


def fetched(name: str) -> Path:
    """The file that a recipe needs, if it is the one that is meant."""
    (wanted,) = downloads(name)
    with wanted.path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted.sha256:
        stop(f"{wanted.path} is another file, sha256 {found}; remove it, then {wanted.command}")
    return wanted.path


def begin(name: str, **own: dict[str, Any]) -> Recipe:
    """Read the options; end with one line where a package is missing.

    ``own`` are further options, each with what ``add_argument`` takes: ``side={"type": int}``.
    """
    parser = argparse.ArgumentParser(prog=f"{name}.py")
    for option, how in own.items():
        parser.add_argument(f"--{option}", **how)
    parser.add_argument("--full", action="store_true", help="larger, for an accelerator")
    parser.add_argument("--record", action="store_true", help="keep the numbers in results/")
    options = parser.parse_args()
    if lacking := missing(name):
        command = f"pip install -r examples/requirements/{name}.txt"
        stop(f"{name}.py needs {', '.join(lacking)}: {command}")
    for one in downloads(name):
        if not one.path.exists():
            stop(f"{name}.py needs a file: {one.command}")
    OUTPUT.mkdir(exist_ok=True)
    return Recipe(name=name, full=options.full, recording=options.record, options=options)
