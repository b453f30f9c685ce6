"""A process that runs command lines: ``python -m experiments.reliability.inside``.

To start Python and JAX takes seconds, so that files damaged in a thousand ways are shown to one
process. It is asked by lines of JSON, the folder and the arguments, and answers with exit code,
stdout, stderr, the most memory it and its children ever had (MiB), and the files elsewhere that it
opened to write, or below a folder called ``secret`` to read. Who asks may stop it at any time.
"""

import json
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

from click.testing import CliRunner

SECRET = f"{os.sep}secret{os.sep}"
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}


class Elsewhere:
    """What is opened or changed outside of a folder, and of those for programs and devices."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.allowed: tuple[str, ...] = ()
        sys.addaudithook(self)

    def begin(self, folder: str) -> None:
        """Look from now on."""
        caches = [os.path.expanduser(f"~/{name}/matplotlib") for name in (".config", ".cache")]
        caches += [os.environ.get("SPARKER_CACHE", "/dev")]
        self.allowed = tuple(map(os.path.realpath, (folder, "/dev", *caches)))
        self.found = []

    def __call__(self, event: str, of: tuple[Any, ...]) -> None:
        """A hook of Python's."""
        if event == "open" and isinstance(of[0], str | bytes | os.PathLike):
            self._opened(os.fsdecode(of[0]), of[2] or 0)
        elif event in CHANGES:
            for name in of[: 1 + (event in ("os.rename", "os.link"))]:
                self._opened(os.fsdecode(name), WRITES)

    def _opened(self, name: str, flags: int) -> None:
        if flags & getattr(os, "O_NOFOLLOW", 0):
            real = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
        else:
            real = os.path.realpath(name)
        if SECRET in real or (flags & WRITES and self.allowed and not self._is_allowed(real)):
            self.found.append(real)

    def _is_allowed(self, real: str) -> bool:
        return any(real == one or real.startswith(one + os.sep) for one in self.allowed)


def most_memory() -> float:
    """MiB that were ever resident."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024


def main() -> None:
    """Until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    from sparker.cli.main import main as sparker

    elsewhere = Elsewhere()
    for line in sys.stdin:
        folder, arguments = json.loads(line)
        os.chdir(folder)
        elsewhere.begin(str(Path(folder)))
        done = CliRunner().invoke(sparker, arguments)
        said = done.stderr
        if done.exc_info and not isinstance(done.exception, SystemExit | None):
            said += "".join(traceback.format_exception(*done.exc_info))
        found = [done.exit_code, done.stdout, said, most_memory(), elsewhere.found[:3]]
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
