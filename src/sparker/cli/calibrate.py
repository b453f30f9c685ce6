"""``sparker calibrate``: the monitor that ``sparker watch`` asks."""

from pathlib import Path
from typing import Any

import click

from sparker.cli.options import (
    FILE,
    column_options,
    embed_option,
    embed_settings,
    fit_options,
    fit_settings,
    read_table,
    store_option,
    table_options,
    table_settings,
    with_embedded,
)
from sparker.cli.outputs import check_outputs
from sparker.cli.terminal import BadInput, note


def _sizes(ctx: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """A click callback: whole numbers separated by commas."""
    try:
        return [int(size) for size in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"must be whole numbers, separated by commas, got {value!r}."
        ) from None


@click.command()
@click.argument("reference")
@click.argument("monitor", type=FILE)
@click.option(
    "--batch-size",
    required=True,
    callback=_sizes,
    help="Rows of the batches to be tested; several sizes are separated by commas.",
)
@click.option(
    "--poisson",
    is_flag=True,
    help="Batches fluctuate around that size, and their number of rows is tested too.",
)
@click.option("--weights", help="Column of REFERENCE with the weights of its rows.")
@column_options
@table_options
@click.option("--text", help="Column of REFERENCE with texts, for --embed.")
@click.option("--images", help="Column of REFERENCE with picture files, for --embed.")
@embed_option
@fit_options
@store_option
def calibrate(reference: str, monitor: Path, **options: Any) -> None:  # fmt: skip
    """Calibrate a monitor on an anomaly-free REFERENCE and write it to MONITOR.

    `sparker watch` then tests batches against it, in the time of one fit each, wherever the file
    is taken to. Batches of other sizes than these wait for their toys once.

    Example: sparker calibrate reference.npy monitor.npz --batch-size 500,1000 --toys 1000
    """
    from sparker.monitor import Monitor

    if not options["embed"] and (options["text"] or options["images"]):
        raise BadInput("--text and --images say what --embed makes numbers of; name it, too")
    check_outputs({"MONITOR": monitor}, [reference])
    weights = [options["weights"]] if options["weights"] else []
    table = read_table(
        reference,
        columns=with_embedded(options["columns"], options) or None,
        ignore=options["ignore"],
        extra=weights,
        key=options["key"],
    )
    made = Monitor.calibrate(
        table,
        options["batch_size"],
        poisson=options["poisson"],
        reference_weights=table.extra[weights[0]] if weights else None,
        store=options["store"],
        **table_settings(options, table),
        **embed_settings(options),
        **fit_settings(options, anneal=True),
    )
    made.save(monitor)
    for line in dict.fromkeys(line for size in made.sizes for line in made.notes_for(size)):
        note(f"Note: {line}.")
    note(f"In {monitor} is a {made.summary()}.")
