"""``sparker calibrate``: the monitor that ``sparker watch`` asks."""

from pathlib import Path
from typing import Any

import click

from sparker.cli.options import (
    A_LEVEL,
    FILE,
    Real,
    column_options,
    embed_option,
    embed_settings,
    fit_options,
    fit_settings,
    is_default,
    preset,
    read_table,
    table_options,
    table_settings,
)
from sparker.cli.outputs import check_outputs
from sparker.cli.terminal import BadInput, note

OF_TOYS = (
    "looks", "weights", "expected", "groups", "strata", "toys", "kernels", "clip", "steps",
    "combine", "all_toys", "text", "images", "embed",
)  # fmt: skip
"""Options without a meaning where there are no toys."""


@click.command()
@click.argument("reference")
@click.argument("monitor", type=FILE)
@preset(
    "--alpha",
    default=0.01,
    type=A_LEVEL,
    help="Level: of all planned looks together, or of each look without --looks; with --anytime, "
    "the probability that there is ever a false alarm.",
)
@click.option(
    "--looks",
    type=click.IntRange(1),
    help="Planned number of looks; further ones are refused.",
)
@click.option(
    "--anytime",
    is_flag=True,
    help="Bet on the rows of all batches together, for any number of looks.",
)
@click.option(
    "--change",
    is_flag=True,
    help="With --anytime, look for a change again and again: false alarms are at least 1/alpha "
    "looks apart on average.",
)
@click.option("--weights", help="Column of REFERENCE with the weights of its rows.")
@click.option(
    "--expected",
    type=Real(max=1e15),
    help="Expected number of rows of a batch, to test it as well.",
)
@click.option("--groups", help="Column of all files; rows of a group are relabelled together.")
@click.option("--strata", help="Column of all files; labels are exchanged within strata only.")
@click.option("--all-toys", is_flag=True, help="Make all toys of each batch; do not stop early.")
@column_options
@table_options
@click.option("--text", help="Column of REFERENCE with texts, for --embed.")
@click.option("--images", help="Column of REFERENCE with picture files, for --embed.")
@embed_option
@fit_options
def calibrate(reference: str, monitor: Path, **options: Any) -> None:  # fmt: skip
    """Write a monitor of an anomaly-free REFERENCE to the file MONITOR.

    It holds the reference, the settings, the level and the planned looks. `sparker watch` tests
    batches against it and keeps every look in it.

    With --anytime only --columns, --ignore, --keep, --missing, --strict, --preprocess, --seed,
    --alpha and --change have a meaning.

    Example: sparker calibrate reference.npy monitor.sparker --alpha 0.01 --looks 100
    """
    if not options["embed"] and (options["text"] or options["images"]):
        raise BadInput("--text and --images say what --embed makes numbers of; name it, too")
    check_outputs({"MONITOR": monitor}, [reference])
    _check_kind(options)
    beside = [options[name] for name in ("weights", "groups", "strata") if options[name]]
    table = read_table(reference, options, beside)
    settings = table_settings(options, table)
    made: Any
    if options["anytime"]:
        from sparker.anytime import AnytimeMonitor
        from sparker.calibration.settings import option

        made = AnytimeMonitor.start(
            table,
            alpha=options["alpha"],
            change=options["change"],
            seed=options["seed"],
            preprocess=option("preprocess", options["preprocess"]),
            **settings,
        )
    else:
        from sparker.monitor import Monitor

        settings |= embed_settings(options) | fit_settings(options, anneal=False)
        if is_default("toys"):
            del settings["n_toys"]
        if options["all_toys"]:
            settings["stop"] = None
        made = Monitor(
            table,
            alpha=options["alpha"],
            looks=options["looks"],
            reference_weights=options["weights"],
            expected=options["expected"],
            groups=options["groups"],
            strata=options["strata"],
            **settings,
        )
    made.save(monitor)
    note(f"{monitor}: {made.summary()}.")


def _check_kind(options: dict[str, Any]) -> None:
    """Refuse options that belong to the other kind of monitor."""
    if not options["anytime"]:
        if options["change"]:
            raise BadInput("--change needs --anytime: it says what is bet on")
        return
    given = ["--" + name.replace("_", "-") for name in OF_TOYS if not is_default(name)]
    if given:
        raise BadInput(
            f"{', '.join(given)} and --anytime do not go together: it bets on single rows, makes "
            "no toys and takes any number of looks; leave out the one or the other"
        )
