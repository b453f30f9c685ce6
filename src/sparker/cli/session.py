"""What ``sparker watch`` does with each batch: test, tell, report, draw, keep new toys."""

import json
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparker.cli.batches import report_file, state_of
from sparker.cli.errors import EXPECTED, plain
from sparker.cli.options import command_line, note, reader_may_leave, warnings_on_stderr
from sparker.system.atomic import whole_file
from sparker.tables.errors import DataWarning

if TYPE_CHECKING:
    from sparker.result import TestResult
    from sparker.tables import Table

EXIT_CODES = {(False, False): 0, (True, False): 1, (False, True): 4, (True, True): 5}
"""By whether there was an alarm, and whether some batch could not be tested."""

N_ROWS_SHOWN = 3


@dataclass
class Session:
    """A monitor from its file, what it is asked, and what became of each batch."""

    path: Path
    alpha: float
    looks: int | None
    key: str | None
    reports: Path | None
    picture: Path | None
    keep: bool
    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        from sparker.monitor import Monitor

        self._state = state_of(self.path)
        self.known: Monitor = replace(Monitor.load(self.path), on_new_size=self._say_new)
        self._sizes = self.known.sizes
        self._no_picture = ""  # why it could not be drawn the last time

    @property
    def exit_code(self) -> int:
        """That of all batches so far."""
        alarm = any(line.get("alarm") for line in self.lines)
        failed = not self.lines or any("error" in line for line in self.lines)
        return EXIT_CODES[alarm, failed]

    def look(self, number: int, file: str) -> None:
        """Test a batch and say what came of it, whoever still listens."""
        self.lines.append({"batch": file, "look": number, **self._tested(number, file)})
        with reader_may_leave():
            click.echo(json.dumps(self.lines[-1]))
        if self.picture:
            self._draw(self.picture)

    def _tested(self, number: int, file: str) -> dict[str, Any]:
        from sparker import tables
        from sparker.monitor import Look

        try:
            batch = tables.read(file, columns=self.known.names or None, key=self.key)
            with warnings_on_stderr():
                result = self.known.test(batch, explain=False)
        except EXPECTED as error:
            return {"error": plain(error)}
        finally:
            self._keep()
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
            found["report"] = self._report(self.reports, file, batch)
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
        from matplotlib.figure import Figure

        from sparker.plots import trend

        try:
            figure = Figure(figsize=(8, 4), layout="constrained")
            trend(self.lines, alpha=self.alpha, n_planned=self.looks, ax=figure.subplots())
            with whole_file(path) as drawn:
                figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=130)
            self._no_picture = ""
        except Exception as error:
            if plain(error) != self._no_picture:  # not after every batch
                note(f"The picture could not be written: {plain(error)}.")
            self._no_picture = plain(error)


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
