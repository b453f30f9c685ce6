"""What ``sparker watch`` does with each batch: test, keep, tell, report, draw, keep new toys."""

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparker.cli.batches import Batch, report_file, state_of
from sparker.cli.errors import explained, plain
from sparker.cli.journal import Journal
from sparker.cli.options import command_line
from sparker.cli.outputs import save_picture
from sparker.cli.terminal import answer_json, note
from sparker.tables.errors import DataWarning

if TYPE_CHECKING:
    from sparker.result import TestResult
    from sparker.tables import Table

EXIT_CODES = {(False, False): 0, (True, False): 1, (False, True): 4, (True, True): 5}
"""By whether there was an alarm, and whether some batch could not be tested or told of."""

N_ROWS_SHOWN = 3


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
        from sparker.monitor import Monitor

        self._state = state_of(self.path)
        known = Monitor.load(self.path, self.embed)
        self.known: Monitor = replace(known, on_new_size=self._say_new)
        self._sizes = self.known.sizes
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
        try:
            found = self._tested(number, batch)
        except BeingWrittenError as error:
            if comes_again:
                return
            found = {"error": str(error)}
        except Exception as error:  # whatever it is, other batches come
            ours = f"internal error: {type(error).__name__}: {error}"
            found = {"error": explained(error) or ours}
        finally:
            self._keep()
        line = {"batch": batch.file, "look": number, **found}
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

    def _read(self, batch: Batch) -> "Table":
        """The rows of a batch that nobody wrote to meanwhile."""
        from sparker import tables

        try:
            rows = tables.read(batch.file, columns=self.known.names or None, key=self.key)
        except Exception:
            _check_calm(batch)
            raise
        _check_calm(batch)
        return rows

    def _tested(self, number: int, batch: Batch) -> dict[str, Any]:
        from sparker.monitor import Look

        rows = self._read(batch)
        result = self.known.test(rows, explain=False)
        look = Look.of(result, number, self.alpha, self.looks)
        found: dict[str, Any] = {
            "p_value": result.p_value,
            "corrected_p_value": look.corrected_p_value,
            "significance": result.significance if result.p_value < 1 else None,
            "alarm": look.alarm,
            "rows": len(result.data_plane),
            "warnings": [one.text for one in result.warnings],
            "most_anomalous": most_anomalous(result),
        }
        if look.alarm and self.reports:
            found["report"] = self._report(self.reports, batch.file, rows)
        return found

    def _say_new(self, size: int) -> None:
        note(f"Batches of {size} rows are new to the monitor: making {self.known.n_toys} toys.")
        for line in self.known.notes_for(size)[len(self.known.notes) :]:  # not of the reference
            note(f"Note: {line}.")

    def _keep(self) -> None:
        """Write toys for new sizes to the monitor's file; without them the watch goes on."""
        if not self.keep or self.known.sizes == self._sizes:
            return
        self._sizes = self.known.sizes
        if state_of(self.path) != self._state:
            note(f"{self.path} has changed since it was read: the toys are not written to it.")
            return
        try:
            self.known.save(self.path)
            self._state = state_of(self.path)
        except OSError as error:
            note(f"The toys could not be written to the monitor: {plain(error)}.")

    def _report(self, folder: Path, file: str, batch: "Table") -> str | None:
        """Write that of an alarm. Whatever goes wrong here, the alarm stands."""
        made = None
        try:
            made = report_file(folder, file)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # they were said
                tested = self.known.test(batch)
            result = replace(tested, files=(str(self.path), file))
            # No rounding of the quotient may take the alarm back.
            alpha = max(self.alpha / (self.looks or 1), result.p_value)
            result.report(made, command=command_line(), alpha=alpha)
        except Exception as error:
            note(f"The report on {file} could not be written: {plain(error)}.")
            if made is not None:
                with suppress(OSError):
                    made.unlink()
            return None
        return str(made)

    def _draw(self, path: Path) -> None:
        """The trend so far. Without a picture the watch goes on."""
        try:
            from matplotlib.figure import Figure

            from sparker.plots import trend

            figure = Figure(figsize=(8, 4), layout="constrained")
            recent = self.journal.recent
            trend(
                recent,
                alpha=self.alpha,
                n_planned=self.looks,
                first=self.journal.n_looks - len(recent) + 1,
                ax=figure.subplots(),
            )
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


def most_anomalous(result: "TestResult") -> list[dict[str, Any]]:
    """The rows of the largest log-ratios: a look is one fit, and asks for no more than that."""
    import numpy as np
    from scipy.special import expit

    log_ratio, components = result.data_log_ratio, result.data_components
    assert log_ratio is not None
    assert components is not None
    return [
        {
            "row": int(result.row_numbers[i]),
            "log_ratio": float(log_ratio[i]),
            "anomaly_score": float(expit(log_ratio[i])),
            "kernel": int(np.argmax(np.abs(components[i]))),
        }
        for i in np.argsort(-log_ratio)[:N_ROWS_SHOWN]
    ]
