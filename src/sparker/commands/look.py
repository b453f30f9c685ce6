"""``sparker report``, ``sparker info`` and ``sparker power``."""

import json
from pathlib import Path
from typing import Any

import click

from sparker.commands.common import (
    FILE,
    BadInput,
    check_outputs,
    column_options,
    comma_list,
    fit_options,
    fit_settings,
    note,
    read_two,
)


@click.command()
@click.argument("result", type=FILE)
@click.option("--output", default="report.html", show_default=True, type=FILE)
@click.option("--data", help="The data file, for texts and observables.")
@click.option("--text", help="Column of --data with a text for each row.")
@click.option("--observables", callback=comma_list, help="Columns of --data with numbers.")
@click.option("--alpha", type=click.FloatRange(0, 1, min_open=True, max_open=True))
def report(
    result: Path,
    output: Path,
    data: str | None,
    text: str | None,
    observables: list[str],
    alpha: float | None,
) -> None:
    """Write the report of a RESULT that `sparker test --save` kept.

    Example: sparker report result.npz --output report.html
    """
    from sparker import io
    from sparker.result import TestResult

    check_outputs({"output": output})
    if data is None and (text or observables):
        raise BadInput("--text and --observables are columns of the data; name its file by --data")
    found = TestResult.load(result)
    extra = [*observables, *([text] if text else [])]
    values = io.read(data, extra=extra, columns=found.columns or None).extra if data else {}
    found.report(
        output,
        texts=values[text].tolist() if text else None,
        observables={name: values[name] for name in observables} or None,
        alpha=alpha,
    )
    note(f"The report is in {output}.")


@click.command()
@click.argument("file")
@click.option("--key", help="Which dataset, array or tree, where a file has several.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def info(file: str, key: str | None, as_json: bool) -> None:
    """Say what a FILE holds: a table, a result or a monitor.

    Example: sparker info data.parquet
    """
    from sparker import io
    from sparker.monitor import Monitor
    from sparker.result import TestResult

    if file.endswith(".npz"):
        try:
            click.echo(TestResult.load(file).summary())
            return
        except ValueError:
            pass
        try:
            made = Monitor.load(file)
        except ValueError:
            pass
        else:
            click.echo(
                f"monitor for batches of {made.batch_size} rows with {made.reference.shape[1]} "
                f"features: {len(made.null.t)} toys from {len(made.reference)} reference rows"
            )
            return
    found = io.describe(file, key)
    if as_json:
        columns = [column._asdict() for column in found.columns]
        click.echo(json.dumps({"format": found.format, "rows": found.rows, "columns": columns}))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{found.format}, {found.rows} rows", title_justify="left")
    for name in ("column", "holds", "from", "to", "missing"):
        table.add_column(name, justify="left" if name in ("column", "holds") else "right")
    for column in found.columns:
        ends = (
            ["" if end is None else f"{end:.6g}" for end in (column.low, column.high)]
            if column.kind == "number"
            else [(column.example or "")[:40], ""]
        )
        missing = str(column.n_missing or "")
        table.add_row(*map(Text, (column.name, column.kind, *ends, missing)))  # no markup
    Console(highlight=False).print(table)


@click.command()
@click.argument("reference")
@click.argument("anomalies")
@click.option(
    "--fractions",
    default="0,0.01,0.02,0.05",
    show_default=True,
    callback=comma_list,
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
@click.option(
    "--tests",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    help="Experiments with anomalies, for each fraction.",
)
@click.option(
    "--alpha",
    default=0.05,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
)
@column_options
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

    check_outputs({"figure": options["figure"]})
    try:
        fractions = [float(fraction) for fraction in options["fractions"]]
    except ValueError:
        raise BadInput(f"--fractions must be numbers, got {options['fractions']}") from None
    first, second = read_two(
        reference,
        anomalies,
        columns=options["columns"],
        ignore=options["ignore"],
        key=options["key"],
        reference_extra=[],
        data_extra=[],
    )
    study = power_study(
        first,
        second,
        fractions,
        n_reference=options["n_reference"],
        n_data=options["n_data"],
        poisson=options["poisson"],
        n_tests=options["tests"],
        alpha=options["alpha"],
        **fit_settings(options),
    )
    click.echo(json.dumps(study.to_dict(), indent=1) if options["as_json"] else study.summary())
    if options["figure"]:
        from matplotlib.figure import Figure

        from sparker.plots import power_curve

        figure = Figure(figsize=(6, 4), layout="constrained")
        power_curve(study, ax=figure.subplots())
        figure.savefig(options["figure"], dpi=130)
        note(f"The figure is in {options['figure']}.")
