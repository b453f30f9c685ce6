"""What ``sparker watch`` does with each batch: judge, keep, tell, report, draw."""

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sparker.cli.batches import Batch, report_file, state_of
from sparker.cli.errors import explained, plain
from sparker.cli.journal import Journal
from sparker.cli.options import command_line
from sparker.cli.outputs import save_picture
from sparker.cli.terminal import answer_json, note
from sparker.tables.errors import DataWarning

EXIT_CODES = {(False, False): 0, (True, False): 1, (False, True): 4, (True, True): 5}
"""By whether there was an alarm, and whether some batch could not be tested or told of."""


class BeingWrittenError(ValueError):
    """A batch that changed while it was read."""


@dataclass
class Session:
    """A monitor from its file, what it is asked, and what became of all batches together."""

    path: Path
    alpha: float
    looks: int | None
    key: str | None
    reports: Path | None
    picture: Path | None
    keep: bool
    journal: Journal = field(default_factory=lambda: Journal(None))
    alarm: bool = False
    failed: bool = False
    embed: str | None = None

    def __post_init__(self) -> None:
        from sparker.cli.judges import judge

        self.judge = judge(self.path, self.alpha, self.looks, self.keep, self.journal, self.embed)
        self._complaints: dict[str, str] = {}  # the last one of each kind

    @property
    def exit_code(self) -> int:
        """That of all batches so far."""
        return EXIT_CODES[self.alarm, self.failed]

    def look(self, batch: Batch, *, comes_again: bool = False) -> None:
        """Test a batch and say what came of it, whoever still listens.

        One that ``comes_again`` when it is complete is no look yet if it is being written.
        """
        number = self.journal.n_looks + 1
        rows, is_new = None, False
        try:
            rows = self._read(batch)
            found, is_new = self.judge.judged(rows, number)
        except BeingWrittenError as error:
            if comes_again:
                return
            found = {"error": str(error)}
        except Exception as error:  # whatever it is, other batches come
            ours = f"internal error: {type(error).__name__}: {error}"
            found = {"error": explained(error) or ours}
        line = {"batch": batch.file, "look": number, **found}
        if "error" not in found:
            self.judge.keep(batch, line)
        if is_new and self.reports:
            line["report"] = self._report(self.reports, batch.file, rows)
        self.alarm |= bool(found.get("alarm"))
        self.failed |= "error" in found
        try:
            self.journal.add(batch, line)
        except OSError as error:
            self._complain("The journal could not be written", error)
        try:
            answer_json(line)
        except OSError as error:
            self._complain("Lines cannot be written to stdout any more", error)
        if self.picture:
            self._draw(self.picture)

    def _complain(self, what: str, error: Exception) -> None:
        """Say what cannot be written, once, not after every batch; a line is lost by it."""
        self.failed = True
        self._say_once(what, plain(error))

    def _say_once(self, what: str, why: str) -> None:
        if why and why != self._complaints.get(what):
            note(f"{what}: {why}.")
        self._complaints[what] = why

    def _read(self, batch: Batch) -> Any:
        """The rows of a batch; of a file, those that nobody wrote to meanwhile."""
        from sparker import tables

        if batch.rows is not None:
            return batch.rows()
        try:
            rows = tables.read(batch.file, columns=self.judge.names or None, key=self.key)
        except Exception:
            _check_calm(batch)
            raise
        _check_calm(batch)
        return rows

    def _report(self, folder: Path, file: str, rows: Any) -> str | None:
        """Write that of an alarm. Whatever goes wrong here, the alarm stands."""
        made = None
        try:
            made = report_file(folder, file)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # they were said
                tested, alpha = self.judge.explained(rows)
            result = replace(tested, files=(str(self.path), file))
            result.report(made, command=command_line(), alpha=alpha)
        except Exception as error:
            note(f"The report on {file} could not be written: {plain(error)}.")
            if made is not None:
                with suppress(OSError):
                    made.unlink()
            return None
        return str(made)

    def _draw(self, path: Path) -> None:
        """The looks so far. Without a picture the watch goes on."""
        try:
            recent = list(self.journal.recent)
            figure = self.judge.draw(recent, self.journal.n_looks - len(recent) + 1)
            save_picture(figure, path)
            why = ""
        except Exception as error:
            why = plain(error)
        self._say_once("The picture could not be written", why)


def _check_calm(batch: Batch) -> None:
    now = state_of(batch.file)
    if None not in (now, batch.state) and now != batch.state:
        raise BeingWrittenError(
            f"{batch.file} was written to while it was read; test it when it is complete"
        )
