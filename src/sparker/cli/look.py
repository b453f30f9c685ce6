"""``sparker report``, ``sparker info`` and ``sparker power``."""

import math
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparker.cli.options import (
    A_LEVEL,
    FILE,
    annealed_option,
    check_together,
    column_options,
    fit_options,
    fit_settings,
    names_option,
    preset,
    read_two,
    statistic_option,
    table_options,
    table_settings,
)
from sparker.cli.outputs import Attempts, check_outputs, check_picture, save_picture
from sparker.cli.pictures import of_rows, picture_column, picture_files, picture_folder
from sparker.cli.speak import to_json
from sparker.cli.terminal import (
    BadInput,
    Out,
    answer,
    answer_json,
    brief,
    cell,
    note,
    reader_may_leave,
)

if TYPE_CHECKING:
    from sparker.findings.power import PowerStudy


@click.command()
@click.argument("result", type=FILE)
@preset("--output", default="report.html", type=FILE)
@click.option("--data", help="The data file, for texts, pictures and observables.")
@click.option("--text", help="Column of --data with a text for each row.")
@click.option("--images", help="Column of --data with picture files, or a folder of one a row.")
@names_option("--observables", help="Columns of --data with numbers.")
@column_options
@click.option(
    "--alpha", type=A_LEVEL, help="Level to decide at anew (default: that of the result)."
)
def report(result: Path, output: Path, **options: Any) -> None:
    """Write the report of a RESULT that `sparker test --save` kept.

    Example: sparker report result.sparker --output report.html
    """
    from dataclasses import replace

    from sparker import tables
    from sparker.findings.decision import Level
    from sparker.result import TestResult

    data, text, images = (options[name] for name in ("data", "text", "images"))
    check_outputs({"--output": output}, [result, data, *picture_folder(images)])
    observables = options["observables"]
    if data is None and (text or images or observables):
        raise BadInput("--text, --images and --observables need the data; name its file by --data")
    found = TestResult.load(result)
    extras: dict[str, Any] = {}
    if data is not None:
        pictures = picture_column(images, data, options["key"])
        table = tables.read(
            data,
            columns=options["columns"] or list(found.names) or None,
            ignore=options["ignore"],
            extra=[*observables, *(name for name in (text, pictures) if name)],
            key=options["key"],
        )
        shown = picture_files(images, pictures, data, table)
        check_outputs({"--output": output}, shown or ())
        if found.data_rows is not None and len(table.points) <= found.data_rows.max():
            raise BadInput(f"{data} has fewer rows than the data that were tested")
        table, shown = of_rows(found.data_rows, table, shown)
        extras = {
            "texts": table.extra[text].tolist() if text else None,
            "images": shown,
            "observables": {name: table.extra[name] for name in observables} or None,
        }
    if options["alpha"] is not None:
        found = replace(found, level=Level.of(options["alpha"]))
    found.report(output, **extras)
    note(f"The report is in {output}.")


@click.command()
@click.argument("file")
@click.option("--key", help="Which dataset, array or tree, where a file has several.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(file: str, key: str | None, as_json: bool) -> None:
    """Say what a FILE holds: a table, a result or a monitor.

    Of a table, column by column: what it holds, how many values are missing, how many are
    different, and what a test makes of it.

    Example: sparker info data.parquet
    """
    from sparker import tables
    from sparker.system import archive

    if Path(file).suffix == archive.SUFFIX or archive.is_archive(file):  # and no table
        _say_saved(file, as_json)
        return
    found = tables.describe(file, key)
    columns = found.columns
    if as_json:
        plain = {
            "format": found.format,
            "rows": found.rows,
            "columns": [
                column._asdict() | {"low": _finite(column.low), "high": _finite(column.high)}
                for column in columns
            ],
        }
        answer_json(plain)
        return
    shown: dict[str, list[Any]] = {
        "column": [cell(column.name) for column in columns],
        "holds": [cell(column.kind) for column in columns],
        "from": [brief(column.low) for column in columns],
        "to": [brief(column.high) for column in columns],
        "missing": [str(column.n_missing or "") for column in columns],
        "distinct": [_distinct(column.distinct) for column in columns],
        "role": [cell(_role(column.role, column.example)) for column in columns],
    }
    with reader_may_leave():
        Out().table(f"{found.format}, {found.rows} rows", shown)
    for column in columns:
        if told := _embedding(column.name, column.role):
            answer(told)


def _say_saved(file: str, as_json: bool) -> None:
    """Print the summary of a result or a monitor."""
    from sparker.files import load
    from sparker.result import TestResult

    found = load(file)
    if not as_json:
        answer(found.summary())
    elif isinstance(found, TestResult):
        answer_json(to_json(found, None, tail=False), indent=1)
    else:
        answer_json(found.to_dict(), indent=1)


def _distinct(n: int) -> str:
    from sparker.tables.info import MAX_DISTINCT

    return f"over {MAX_DISTINCT}" if n > MAX_DISTINCT else str(n)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _embedding(name: str, role: str) -> str:
    """How a column is made numbers of, if it must be."""
    from sparker.tables.info import PICTURES, TEXTS

    how = {
        TEXTS: ("texts", "text", "tfidf"),
        PICTURES: ("pictures", "images", "efficientnet-lite0"),
    }
    if role not in how:
        return ""
    word, option, embedder = how[role]
    quoted = shlex.quote(name)
    return (
        f"{name} holds {word}: compare them by --{option} {quoted} --embed {embedder}, "
        f"or leave them out by --ignore {quoted}"
    )


def _role(role: str, example: str | None) -> str:
    from sparker.tables.errors import short

    return role if example is None else f"{role}, such as {short(example, 20)}"


@click.command()
@click.argument("reference")
@click.argument("anomalies")
@names_option(
    "--fractions",
    default=("0,0.01,0.02,0.05",),
    help="Shares of anomalies in the data, separated by commas.",
)
@click.option(
    "--n-reference",
    required=True,
    type=click.IntRange(1),
    help="Reference rows of each experiment.",
)
@click.option(
    "--n-data", required=True, type=click.IntRange(1), help="Data rows of each experiment."
)
@click.option("--poisson", is_flag=True, help="The number of data rows fluctuates and is tested.")
@preset(
    "--tests",
    default=100,
    type=click.IntRange(1),
    help="Experiments with anomalies, for each fraction.",
)
@preset("--alpha", default=0.05, type=A_LEVEL)
@column_options
@table_options
@statistic_option
@annealed_option
@fit_options
@click.option("--figure", type=FILE, help="Draw the power against the fraction into this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def power(reference: str, anomalies: str, **options: Any) -> None:  # fmt: skip
    """How often would ANOMALIES be found among rows of REFERENCE?

    Experiments draw reference and data anew from the rows of REFERENCE, which are anomaly-free, and
    mix rows of ANOMALIES into the data.

    Example: sparker power normal.npy strange.npy --n-reference 2000 --n-data 400
    """
    from sparker.power import power_study

    check_together()
    figure = options["figure"]
    check_outputs({"--figure": figure}, [reference, anomalies])
    check_picture("--figure", figure)
    try:
        fractions = [float(fraction) for fraction in options["fractions"]]
    except ValueError:
        raise BadInput(f"--fractions must be numbers, got {options['fractions']}") from None
    first, second = read_two(reference, anomalies, options)
    study = power_study(
        first,
        second,
        fractions,
        n_reference=options["n_reference"],
        n_data=options["n_data"],
        poisson=options["poisson"],
        n_tests=options["tests"],
        alpha=options["alpha"],
        **table_settings(options, first),
        **fit_settings(options, anneal=options.pop("annealed")),
    )
    attempts = Attempts()
    with attempts.at("answer"):
        if options["as_json"]:
            answer_json(study.to_dict(), indent=1)
        else:
            answer(study.summary())
    attempts.write("figure", figure, partial(_draw, study))
    attempts.end()


def _draw(study: "PowerStudy", path: Path) -> None:
    from matplotlib.figure import Figure

    from sparker.plots import power_curve

    drawn = Figure(figsize=(6, 4), layout="constrained")
    power_curve(study, ax=drawn.subplots())
    save_picture(drawn, path)
