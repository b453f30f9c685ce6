"""``sparker watch``: files against a monitor, which remembers them."""

import os
import stat
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparker.cli.batches import batch_files, report_file
from sparker.cli.errors import explained, no_device, plain
from sparker.cli.many import check_places
from sparker.cli.options import FILE, FOLDER, command_line, keep_programs
from sparker.cli.outputs import check_outputs, check_picture, save_picture
from sparker.cli.terminal import BadInput, answer_json, note
from sparker.tables.errors import DataWarning

if TYPE_CHECKING:
    from sparker.anytime import AnytimeMonitor
    from sparker.monitor import Monitor

EXIT_CODES = {(False, False): 0, (True, False): 1, (False, True): 4, (True, True): 5}
"""By whether there was an alarm, and whether some batch could not be tested or reported."""


@click.command()
@click.argument("monitor", type=FILE)
@click.argument("batches", nargs=-1, required=True)
@click.option("--key", help="Which dataset, array or tree, where a file has several.")
@click.option(
    "--reports",
    type=FOLDER,
    help="Folder for an HTML report of each alarm.",
)
@click.option(
    "--picture", type=FILE, help="Draw the p-values of all looks into this .png, .svg or .pdf."
)
@click.option(
    "--embed",
    help="The embedder of texts or pictures that MONITOR was made with, where that is a function "
    "or a model of a hub, which no file can hold.",
)
def watch(
    monitor: Path,
    batches: tuple[str, ...],
    key: str | None,
    reports: Path | None,
    picture: Path | None,
    embed: str | None,
) -> None:
    """Test BATCHES, files or folders of files, against MONITOR: one line of JSON each.

    MONITOR, made by `sparker calibrate`, has the level and the number of looks. Each batch is
    written into it before its line is printed. A file that was tested before is skipped, so the
    same command can run every hour on the same folder. One process at a time may use MONITOR.

    A batch that cannot be read or tested gives a line with an error and does not stop the others.

    Exit codes: 0 no alarm, 1 an alarm, 4 some batch could not be tested or reported, 5 both of
    these, 2 bad options or MONITOR, 130 interrupted, 143 terminated.

    Example: sparker watch monitor.sparker monday.npy tuesday.npy
    """
    from sparker.system.owned import owned

    _check(monitor, batches, reports, picture)
    keep_programs()
    if problem := no_device():  # of all batches, and not of each
        raise BadInput(problem)
    try:
        with owned(monitor) as write:
            session = _Session(_loaded(monitor, embed), write, monitor, key, reports)
            files = list(batch_files(batches, [monitor]))
            if not files:
                note("No batch was tested: there are no files in " + ", ".join(batches) + ".")
                session.failed = True
            for file in files:
                session.look(file)
    except BlockingIOError:
        raise BadInput(
            f"another process uses {monitor}; run this again when it has ended, or use a copy of "
            "the file for another stream"
        ) from None
    if picture:
        session.draw(picture)
    sys.exit(EXIT_CODES[session.alarm, session.failed])


@dataclass
class _Session:
    """A monitor from its file, and what became of all batches together."""

    monitor: "Monitor | AnytimeMonitor"
    write: Callable[[bytes], None]
    path: Path
    key: str | None
    reports: Path | None
    alarm: bool = False
    failed: bool = False

    def look(self, file: str) -> None:
        """Test a batch, keep the look, and print its line."""
        line: dict[str, Any] = {"batch": file}
        try:
            line |= self._tested(file)
        except _CannotWriteError:
            raise
        except Exception as error:  # whatever it is, other batches come
            line["error"] = explained(error) or f"internal error: {type(error).__name__}: {error}"
        self.failed |= "error" in line
        try:
            answer_json(line)
        except OSError as error:
            if not self.failed:
                note(f"Lines cannot be written to stdout any more: {plain(error)}.")
            self.failed = True

    def _tested(self, file: str) -> dict[str, Any]:
        from sparker import tables
        from sparker.history import FileVersion

        before = os.stat(path := _path(file))
        if not stat.S_ISREG(before.st_mode):  # a pipe may never be written to
            return {"error": f"{file} is no ordinary file"}
        rows = tables.read(
            file,
            columns=self.monitor.columns or None,
            extra=[name for name in self.monitor.beside if name not in self.monitor.columns],
            key=self.key,
        )
        version = FileVersion.of(path)  # only now: what cannot be read may have no end
        if version[1:] != (before.st_ino, before.st_mtime_ns):
            return {"error": f"{file} changed while it was read; test it when it is complete"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # they are in the line
            look = self.monitor.look(rows, file=version)
        if look is None:
            return {"skipped": "this file was tested before"}
        try:
            self.write(self.monitor.packed())
        except OSError as error:  # nothing more is tested: it could not be remembered
            raise _CannotWriteError(
                f"{self.path} could not be written: {plain(error)}; the look at {file} does not "
                "count, and nothing after it was tested"
            ) from error
        self.alarm |= look.alarm
        line = look.to_dict()
        if look.alarm and self.reports and self._is_first_alarm():
            line["report"] = self._report(self.reports, file, look, rows)
        return line

    def _is_first_alarm(self) -> bool:
        """Return whether the last look raised an alarm that the one before it had not."""
        before = self.monitor.history[:-1]
        return not (self.monitor.alarm_stays and before and before[-1].alarm)

    def _report(self, folder: Path, file: str, look: Any, rows: Any) -> str | None:
        """Write that of an alarm. Whatever goes wrong here, the alarm stands."""
        made = None
        try:
            made = report_file(folder, file)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # they are in the line
                found = self.monitor.explained(look, rows)
            result = replace(found, files=(str(self.path), file))
            result.report(made, command=command_line())
        except Exception as error:
            note(f"The report on {file} could not be written: {plain(error)}.")
            self.failed = True
            if made is not None:
                with suppress(OSError):
                    made.unlink()
            return None
        return str(made)

    def draw(self, path: Path) -> None:
        """Draw the looks so far. Without a picture the exit code says so."""
        try:
            save_picture(self.monitor.figure(), path)
        except Exception as error:
            note(f"The picture could not be written: {plain(error)}.")
            self.failed = True


class _CannotWriteError(BadInput):
    """The monitor cannot keep its looks."""


def _path(file: str) -> str:
    """Return the file without the name of a table in it."""
    return file if Path(file).exists() else file.rpartition(":")[0] or file


def _loaded(path: Path, embed: str | None) -> "Monitor | AnytimeMonitor":
    from sparker.files import load
    from sparker.result import TestResult

    found = load(path, embed)
    if isinstance(found, TestResult):
        raise BadInput(f"{path} holds the result of a test, and no monitor")
    return found


def _check(
    monitor: Path, batches: tuple[str, ...], reports: Path | None, picture: Path | None
) -> None:
    """Refuse now what could not be written, or would be taken for a batch."""
    check_outputs({"--picture": picture}, [monitor, *batches], folders={"--reports": reports})
    check_picture("--picture", picture)
    places = {"--reports": reports, "--picture": picture and picture.parent}
    check_places(batches, places, "batches")
    if reports:
        reports.mkdir(exist_ok=True)
