"""A result on stdout, for people or as JSON, and its rows as CSV."""

import csv
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparker.cli.options import BadInput, Out, cell
from sparker.system.atomic import whole_file

if TYPE_CHECKING:
    from sparker.result import TestResult


N_ROWS_SHOWN = 10


def most_anomalous(result: "TestResult", n: int, texts: list[Any] | None) -> list[dict[str, Any]]:
    """The rows of the highest scores, as plain values."""
    import numpy as np
    from scipy.special import expit

    log_ratio, components = result.data_log_ratio, result.data_components
    if log_ratio is None or components is None:
        return []
    return [
        {
            "row": int(i),
            "log_ratio": float(log_ratio[i]),
            "anomaly_score": float(expit(log_ratio[i])),
            "kernel": int(np.argmax(np.abs(components[i]))),
            **({} if texts is None else {"text": str(texts[i])}),
        }
        for i in np.argsort(-log_ratio)[:n]
    ]


def to_json(
    result: "TestResult",
    anomaly: bool | None,
    alpha: float | None,
    texts: list[Any] | None,
    *,
    tail: bool,
) -> dict[str, Any]:
    """The schema of ``--json``, see docs/commands.md."""
    found: dict[str, Any] = {"schema": 2, "alpha": alpha, "anomaly": anomaly, **result.to_dict()}
    found["most_anomalous"] = most_anomalous(result, N_ROWS_SHOWN, texts)
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


def speak(
    result: "TestResult",
    anomaly: bool | None,
    alpha: float | None,
    texts: list[Any] | None,
    *,
    tail: bool,
) -> None:
    """The result on stdout, for people."""
    out = Out()
    if anomaly is not None:
        out.say(f"{'anomaly' if anomaly else 'compatible'} at alpha = {alpha:g}", style="bold")
    out.say(result.summary())
    if tail:
        try:
            out.say(str(result.tail_fit()))
        except ValueError as error:
            out.say(f"not extrapolated: {error}")
    rows = most_anomalous(result, N_ROWS_SHOWN, texts)
    if rows:
        columns: dict[str, list[Any]] = {
            "row": [str(row["row"]) for row in rows],
            "log density ratio": [f"{row['log_ratio']:+.2f}" for row in rows],
            "leading kernel": [str(row["kernel"]) for row in rows],
        }
        if texts is not None:
            columns["text"] = [cell(row["text"], cut=True) for row in rows]
        out.table("Most anomalous data rows, counted from 0", columns)


def write_rows(path: Path, result: "TestResult") -> None:
    """Score, leading kernel and components of every data row."""
    import numpy as np
    from scipy.special import expit

    log_ratio, components = result.data_log_ratio, result.data_components
    assert log_ratio is not None
    assert components is not None
    file = StringIO(newline="")
    writer = csv.writer(file)
    names = [f"component_{i}" for i in range(components.shape[1])]
    writer.writerow(["row", "log_ratio", "anomaly_score", "leading_kernel", *names])
    leading = np.argmax(np.abs(components), axis=1)
    for i, (f, kernel, parts) in enumerate(zip(log_ratio, leading, components, strict=True)):
        numbers = (f, expit(f))
        writer.writerow([i, *map(brief, numbers), kernel, *map(brief, parts)])
    try:
        with whole_file(path) as target:
            target.write(file.getvalue().encode())
    except OSError as error:
        raise BadInput(f"the rows could not be written to {path}: {error.strerror}") from error


def brief(value: float) -> str:
    """A number for a table."""
    return f"{value:.6g}"
