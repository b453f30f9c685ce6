"""``sparker calibrate``: the monitor that ``sparker watch`` asks."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

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

if TYPE_CHECKING:
    from sparker import tables


def _sizes(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[int]:
    """A click callback: whole numbers separated by commas."""
    if value is None:
        return []
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
    callback=_sizes,
    help="Rows of the batches to be tested; several sizes are separated by commas.",
)
@click.option(
    "--anytime",
    is_flag=True,
    help="Bet on the rows of all batches together, of any size: the chance of a false alarm, ever, "
    "is at most the alpha of sparker watch.",
)
@click.option(
    "--change",
    is_flag=True,
    help="With --anytime, look for a change again and again: false alarms are at least 1/alpha "
    "looks apart in the mean.",
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

    With --anytime nothing is calibrated: no toys, no sizes, and only --columns, --ignore, --keep,
    --missing, --strict, --preprocess and --seed have a meaning.

    Example: sparker calibrate reference.npy monitor.npz --batch-size 500,1000 --toys 1000
    """
    from sparker.monitor import Monitor

    if not options["embed"] and (options["text"] or options["images"]):
        raise BadInput("--text and --images say what --embed makes numbers of; name it, too")
    check_outputs({"MONITOR": monitor}, [reference])
    _check_kind(options)
    weights = [options["weights"]] if options["weights"] else []
    table = read_table(
        reference,
        columns=with_embedded(options["columns"], options) or None,
        ignore=options["ignore"],
        extra=weights,
        key=options["key"],
    )
    if options["anytime"]:
        _start(table, monitor, options)
        return
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


OF_TOYS = (
    "batch_size",
    "poisson",
    "weights",
    "store",
    "toys",
    "kernels",
    "clip",
    "steps",
    "combine",
)
"""Options without a meaning where there are none."""


def _check_kind(options: dict[str, Any]) -> None:
    """Refuse options that belong to the other kind of monitor."""
    context = click.get_current_context()
    if not options["anytime"]:
        if options["change"]:
            raise BadInput("--change needs --anytime: it says what is bet on")
        if not options["batch_size"]:
            raise BadInput("give --batch-size, the rows of the batches to be tested, or --anytime")
        return
    given = [
        "--" + name.replace("_", "-")
        for name in OF_TOYS
        if context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)
    ]
    if given:
        raise BadInput(
            f"{', '.join(given)} and --anytime do not go together: it bets on single rows, makes "
            "no toys and takes batches of any size; leave out the one or the other"
        )


def _start(table: "tables.Table", monitor: Path, options: dict[str, Any]) -> None:
    from sparker.anytime import AnytimeMonitor
    from sparker.calibration.settings import option

    made = AnytimeMonitor.start(
        table,
        change=options["change"],
        seed=options["seed"],
        preprocess=option("preprocess", options["preprocess"]),
        **table_settings(options, table),
    )
    made.save(monitor)
    note(f"In {monitor} is an {made.summary()}.")
