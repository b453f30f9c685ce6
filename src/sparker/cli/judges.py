"""Who says whether a batch raises an alarm: a monitor by its toys, or one by its bets.

A session asks the same of both: the columns, what came of a batch, why, and what to keep.
"""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from sparker.anytime import AnytimeMonitor
from sparker.cli.batches import Batch, state_of
from sparker.cli.errors import plain
from sparker.cli.journal import Journal
from sparker.cli.terminal import BadInput, note
from sparker.files import load
from sparker.monitor import Look, Monitor
from sparker.result import TestResult
from sparker.tables.errors import DataWarning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_ROWS_SHOWN = 3
CANNOT_WRITE = 4
"""The exit code."""


class Judged(NamedTuple):
    """What came of a batch."""

    found: dict[str, Any]
    """The keys of its line."""
    is_new_alarm: bool
    """Worth a report."""


class Judge(Protocol):
    """What a session asks."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""

    def judged(self, rows: Any, number: int) -> Judged:
        """Test a batch, which is the look of this number."""

    def explained(self, rows: Any) -> tuple[TestResult, float]:
        """What is known of a batch that raised an alarm, and the level it is to be shown with."""

    def keep(self, batch: Batch, line: dict[str, Any]) -> None:
        """Keep what is to outlive the watch, before the line is told."""

    def draw(self, recent: list[dict[str, Any]], first: int) -> "Figure":
        """The looks so far."""


def judge(
    path: Path,
    alpha: float,
    looks: int | None,
    keep: bool,
    journal: Journal,
    embed: str | None = None,
) -> Judge:
    """That of the file of a monitor."""
    known = load(path, embed)
    if isinstance(known, AnytimeMonitor):
        if looks is not None:
            raise BadInput(
                f"--looks does not go with {path}, which may be asked for ever; leave it out"
            )
        return ByBets(known, alpha, journal)
    if isinstance(known, Monitor):
        known.check_reach(alpha, looks)
        return ByToys(path, known, alpha, looks, keep)
    raise BadInput(f"{path} holds the result of a test, and no monitor")


class ByToys:
    """Each batch by itself, at a level that is corrected for the planned looks."""

    def __init__(
        self, path: Path, known: Monitor, alpha: float, looks: int | None, keep: bool
    ) -> None:
        self._path, self._state = path, state_of(path)
        self.known = replace(known, on_new_size=self._say_new)
        self._alpha, self._looks, self._is_kept = alpha, looks, keep
        self._sizes = self.known.sizes

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the reference."""
        return self.known.names

    def judged(self, rows: Any, number: int) -> Judged:
        """By its rank among the toys."""
        try:
            result = self.known.test(rows, explain=False)
        finally:
            self._keep_toys()
        look = Look.of(result, number, self._alpha, self._looks)
        found = {
            "p_value": result.p_value,
            "corrected_p_value": look.corrected_p_value,
            "significance": result.significance if result.p_value < 1 else None,
            "alarm": look.alarm,
            "rows": len(result.data_plane),
            "warnings": [one.text for one in result.warnings],
            "most_anomalous": most_anomalous(result),
        }
        return Judged(found, look.alarm)

    def explained(self, rows: Any) -> tuple[TestResult, float]:
        """The same test, with what it found."""
        result = self.known.test(rows)
        # No rounding of the quotient may take the alarm back.
        return result, max(self._alpha / (self._looks or 1), result.p_value)

    def keep(self, batch: Batch, line: dict[str, Any]) -> None:
        """Toys were kept when they were made."""

    def draw(self, recent: list[dict[str, Any]], first: int) -> "Figure":
        """The p-values."""
        from matplotlib.figure import Figure

        from sparker.plots import trend

        figure = Figure(figsize=(8, 4), layout="constrained")
        ax = figure.subplots()
        trend(recent, alpha=self._alpha, n_planned=self._looks, first=first, ax=ax)
        return figure

    def _say_new(self, size: int) -> None:
        note(f"Batches of {size} rows are new to the monitor: making {self.known.n_toys} toys.")
        for line in self.known.notes_for(size)[len(self.known.notes) :]:  # not of the reference
            note(f"Note: {line}.")

    def _keep_toys(self) -> None:
        """Write toys for new sizes to the monitor's file; without them the watch goes on."""
        if not self._is_kept or self.known.sizes == self._sizes:
            return
        self._sizes = self.known.sizes
        if state_of(self._path) != self._state:
            note(f"{self._path} has changed since it was read: the toys are not written to it.")
            return
        try:
            self.known.save(self._path)
            self._state = state_of(self._path)
        except OSError as error:
            note(f"The toys could not be written to the monitor: {plain(error)}.")


class ByBets:
    """All batches together, at any time.

    The bets are in a file beside the journal, with the line of the last batch they know of. They
    are written first. So a watch that was ended in between finds the line there and adds it, and no
    batch is bet on twice.
    """

    def __init__(self, known: AnytimeMonitor, alpha: float, journal: Journal) -> None:
        self.known, self._alpha = known, alpha
        self._file = None if journal.path is None else Path(f"{journal.path}.bets")
        if self._file is not None:
            self._go_on(self._file, journal)

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the reference."""
        return self.known.names

    def judged(self, rows: Any, number: int) -> Judged:
        """By what all bets have won so far."""
        known, alpha = self.known, self._alpha
        was_raised = not known.change and known.p_value <= alpha
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # they are in the line
            look = known.look(rows, alpha=alpha)
        found = {
            "p_value": look.p_value,
            "wealth": look.wealth,
            "alarm": look.alarm,
            "rows": len(look.payoffs),
            "rows_so_far": look.n_rows,
            "seen_by": look.seen_by,
            "warnings": [one.text for one in look.cautions],
            "most_anomalous": [
                {"row": int(i), "payoff": float(look.payoffs[i])}
                for i in np.argsort(-look.payoffs, kind="stable")[:N_ROWS_SHOWN]
            ],
        }
        return Judged(found, look.alarm and not was_raised)

    def explained(self, rows: Any) -> tuple[TestResult, float]:
        """A test of the batch by itself."""
        return self.known.test(rows, progress=False), self._alpha

    def keep(self, batch: Batch, line: dict[str, Any]) -> None:
        """Where this fails the watch must not go on: the batch would be bet on again."""
        if self._file is not None:
            kept = {"line": line, "file": batch.place, "state": batch.state}
            try:
                self.known.save_state(self._file, **kept)
            except OSError as error:
                note(
                    f"The bets could not be written: {plain(error)}. The watch ends here; the same "
                    "command goes on after the last batch that was kept."
                )
                sys.exit(CANNOT_WRITE)

    def draw(self, recent: list[dict[str, Any]], first: int) -> "Figure":
        """The wealth, and below it the p-values."""
        from matplotlib.figure import Figure

        from sparker.plots import trend, wealth

        figure = Figure(figsize=(8, 6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        needed = (2 if self.known.change else 1) / self._alpha
        wealth(recent, needed=needed, first=first, ax=above)
        trend(recent, alpha=None if self.known.change else self._alpha, first=first, ax=below)
        return figure

    def _go_on(self, file: Path, journal: Journal) -> None:
        """From where the last watch was."""
        if not file.exists():
            if journal.n_bet_on:
                raise BadInput(
                    f"{file} is gone, and {journal.path} has batches that were bet on; choose "
                    "another --journal to begin anew"
                )
            return
        kept = self.known.load_state(file)
        look = kept["line"]["look"]
        if look < journal.n_bet_on:
            raise BadInput(
                f"the bets in {file} end with look {look}, and {journal.path} goes on to look "
                f"{journal.n_bet_on}; both must be of the same watch. Choose another --journal to "
                "begin anew"
            )
        if look > journal.n_looks:  # the watch ended between the two
            journal.add(
                Batch.kept(kept["file"], kept["state"]), json.loads(json.dumps(kept["line"]))
            )


def most_anomalous(result: TestResult) -> list[dict[str, Any]]:
    """The rows of the largest log-ratios: a look is one fit, and asks for no more than that."""
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
