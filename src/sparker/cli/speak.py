"""A result on stdout, for people or as JSON; its rows as CSV."""

import csv
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparker.cli.terminal import Out, brief, cell
from sparker.system.atomic import whole_file

if TYPE_CHECKING:
    import numpy as np

    from sparker.result import TestResult


N_ROWS_SHOWN = 10


SCHEMA = 6
"""Of ``--json``; within a schema keys are only ever added."""


def to_json(result: "TestResult", texts: list[Any] | None, *, tail: bool) -> dict[str, Any]:
    """Return the result with the schema of ``--json``, see docs/commands.md."""
    found: dict[str, Any] = {"schema": SCHEMA, **result.to_dict()}
    if texts is not None and "rows" in found:
        first = result.ranking[: len(found["rows"]["most_anomalous"])]
        for row, i in zip(found["rows"]["most_anomalous"], first, strict=True):
            row["text"] = str(texts[i])
    if tail:
        try:
            fitted = result.tail_fit()
            found["extrapolated"] = {
                "p_value": fitted.p_value,
                "at_reach": fitted.at_reach,
                "p_interval": list(fitted.interval),
                "significance": fitted.significance,
                "goodness_of_fit": fitted.goodness_of_fit,
            }
        except ValueError as error:
            found["extrapolated"] = {"refused": str(error)}
    return found


def speak(result: "TestResult", texts: list[Any] | None, *, tail: bool) -> None:
    """Print the summary, whose warnings stand on stderr already, and the texts of the rows."""
    from sparker.findings.text import outcome

    out = Out()
    headline = outcome(result)
    for line in result.summary(warnings=False).splitlines():
        out.say(line, style="bold" if line.startswith(headline) else None)
    if tail:
        try:
            out.say(str(result.tail_fit()))
        except ValueError as error:
            out.say(f"not extrapolated: {error}")
    if texts is not None and result.is_significant:
        first = result.ranking[:N_ROWS_SHOWN]
        rows = [str(row) for row in result.row_numbers[first]]
        shown = [cell(str(texts[row]), cut=True) for row in first]
        out.table("Most anomalous data rows, counted from 0", {"row": rows, "text": shown})


def write_rows(path: Path, result: "TestResult") -> None:
    """Write what is known of every data row, and its values."""
    from sparker.findings.frames import free_name
    from sparker.findings.text import FDR

    own: dict[str, list[str]] = {"row": [str(row) for row in result.row_numbers]}
    found = result.answers
    if found is not None:
        own["probability"] = [brief(value) for value in found.probability]
        if found.row_p_values is not None:
            own["p_value"] = [brief(value) for value in found.row_p_values]
            own["flagged"] = [str(int(yes)) for yes in result.listed(FDR)]
        own["region"] = [str(number) for number in result.region_of_row]
    if result.data_log_ratio is not None:
        own["log_ratio"] = [brief(value) for value in result.data_log_ratio]
    given = result.values
    file = StringIO(newline="")
    writer = csv.writer(file)
    # The user's own columns keep their names, whatever else is said of the rows.
    writer.writerow([*(free_name(name, given) for name in own), *given])
    shown = [*own.values(), *(as_cells(column) for column in given.values())]
    writer.writerows(zip(*shown, strict=True))
    with whole_file(path) as target:
        target.write(file.getvalue().encode())


def as_cells(column: "np.ndarray") -> list[str]:
    """A column of any kind as text; nothing where a value is missing."""
    if column.dtype.kind == "f":
        # Ids have many digits, and all of them count.
        return [
            "" if value != value else f"{value:.{16 if value.is_integer() else 9}g}"
            for value in column.tolist()
        ]
    if column.dtype.kind == "M":
        return ["" if text == "NaT" else text for text in column.astype(str).tolist()]
    return ["" if value is None else str(value) for value in column]
