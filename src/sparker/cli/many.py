"""``sparker test REFERENCE DATA DATA ...``: many samples against one reference."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparker.cli.batches import batch_files, report_file
from sparker.cli.errors import plain
from sparker.cli.options import command_line
from sparker.cli.outputs import Attempts
from sparker.cli.terminal import BadInput, Out, answer_json, brief, cell, note, reader_may_leave

if TYPE_CHECKING:
    from sparker.many import ManyResult
    from sparker.result import TestResult
    from sparker.tables import Table

N_SHOWN = 40
"""Samples in the table on a terminal; --json and --report have all."""


def are_many(data: Sequence[str], *, embedded: bool) -> bool:
    """Whether these names mean many samples: several files, or a folder, but not of pictures."""
    return len(data) > 1 or (Path(data[0]).is_dir() and not embedded)


def sample_files(data: Sequence[str], own: Sequence[str | Path | None]) -> list[str]:
    """The files that are samples: those named, and those in folders, but not our own."""
    ours = [Path(file) for file in own if file]
    found = list(batch_files(data, ours))
    if not found:
        raise BadInput(f"there are no files in {', '.join(data)}; name some samples")
    twice = sorted({file for file in found if found.count(file) > 1})
    if twice:
        raise BadInput(f"{', '.join(twice)} is named twice; name each sample once")
    return found


def check_places(
    data: Sequence[str], outputs: Mapping[str, Path | None], what: str = "samples"
) -> None:
    """Refuse to write into a folder of samples, where it would be the next one."""
    folders = {Path(one).resolve() for one in data if Path(one).is_dir()}
    for name, path in outputs.items():
        if path is not None and path.resolve() in folders:
            raise BadInput(f"{name} would be among the {what} in {path}; choose another place")


class Files(Mapping[str, "Table"]):
    """Samples by their file's name, each read when it is asked for."""

    def __init__(self, files: Sequence[str], read: Callable[[str], "Table"]) -> None:
        self._files, self._read = files, read

    def __getitem__(self, name: str) -> "Table":
        try:
            return self._read(name)
        except BadInput as error:  # of this sample, and not of the command
            raise ValueError(error.message) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


class Reports:
    """A report for each sample that may be in the list, in a folder; one that fails is said."""

    def __init__(self, folder: Path | None, reference: str) -> None:
        self._folder, self._reference, self._n = folder, reference, 0
        if folder is not None:
            folder.mkdir(exist_ok=True)

    def __call__(self, name: str, result: "TestResult") -> None:
        """Write that of a sample with answers, which are those that may be in the list."""
        from dataclasses import replace

        if self._folder is None or result.answers is None:
            return
        file = report_file(self._folder, name)
        try:
            replace(result, files=(self._reference, name)).report(file, command=command_line())
            self._n += 1
        except Exception as error:  # other samples come
            file.unlink(missing_ok=True)
            note(f"The report on {name} could not be written: {plain(error)}.")

    def end(self) -> None:
        """Say where they are."""
        if self._folder is not None:
            note(f"{self._n} reports of single samples are in {self._folder}.")


def say(found: "ManyResult", options: Mapping[str, Any], reports: Reports) -> None:
    """Everything that was found, wherever it is wanted; the exit code is that of the decision."""
    attempts = Attempts()
    decided = options["fdr"] is not None
    with attempts.at("answer"), reader_may_leave():
        if options["as_json"]:
            answer_json(found.to_dict(), indent=1)
        else:
            speak(found)
    reports.end()
    attempts.write("report", options["report"], partial(found.report, command=command_line()))
    if found.failed:
        first = found.failed[0]
        attempts.failed(
            f"{len(found.failed)} of {len(found)} samples could not be tested, the first of them "
            f"{first.name}: {first.error}"
        )
    attempts.end()
    if decided and found.found:
        sys.exit(1)


def speak(found: "ManyResult") -> None:
    """The ranked table on stdout, for people."""
    out = Out()
    out.say(found.verdict(), style="bold")
    q, listed, order = found.q_values, found.listed, found.ranking[:N_SHOWN]
    shown = [found.samples[i] for i in order]
    more = f", {len(shown)} of {len(found)}" if len(found) > len(shown) else ""
    out.table(
        f"Samples, the most different first{more}",
        {
            "sample": [cell(one.name) for one in shown],
            "rows": [str(one.n_rows) if one.error is None else "" for one in shown],
            "p-value": [brief(one.p_value, 3) for one in shown],
            "q-value": [brief(q[i], 3) for i in order],
            "listed": ["yes" if listed[i] else "" for i in order],
            "at least": [str(one.at_least or "") for one in shown],
            "where": [
                cell(one.regions[0] if one.regions else "not tested" if one.error else "", cut=True)
                for one in shown
            ],
        },
    )
    for line in found.notes:
        out.say(f"note: {line}")
