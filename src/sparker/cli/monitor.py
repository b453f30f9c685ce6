"""``sparker calibrate`` and ``sparker watch``: one calibration, many batches."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparker.cli.options import (
    FILE,
    BadInput,
    check_outputs,
    column_options,
    fit_options,
    fit_settings,
    note,
    store_option,
)

if TYPE_CHECKING:
    from sparker.result import TestResult

N_ROWS_SHOWN = 3


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
@fit_options
@store_option
def calibrate(reference: str, monitor: Path, **options: Any) -> None:  # fmt: skip
    """Calibrate a monitor on an anomaly-free REFERENCE and write it to MONITOR.

    `sparker watch` then tests batches against it, in the time of one fit each, wherever the file
    is taken to.

    Example: sparker calibrate reference.npy monitor.npz --batch-size 1000 --toys 1000
    """
    from sparker import tables
    from sparker.monitor import Monitor

    check_outputs({"monitor": monitor})
    weights = [options["weights"]] if options["weights"] else []
    table = tables.read(
        reference,
        columns=options["columns"] or None,
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
        **fit_settings(options, anneal=True),
    )
    made.save(monitor)
    for line in dict.fromkeys(line for size in made.sizes for line in made.notes_for(size)):
        note(f"Note: {line}.")
    note(f"In {monitor} is a {made.summary()}.")


@click.command()
@click.argument("monitor", type=FILE)
@click.argument("batches", nargs=-1, required=True)
@click.option(
    "--alpha",
    default=0.01,
    show_default=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Alarm where p <= alpha.",
)
@click.option(
    "--looks",
    type=click.IntRange(1),
    help="Planned number of looks; alpha is then for all of them together.",
)
@click.option("--key", help="Which dataset, array or tree, where a file has several.")
@click.option(
    "--follow",
    is_flag=True,
    help="BATCHES is a folder: wait for new files in it, until interrupted.",
)
@click.option(
    "--poll",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Seconds between two looks into the folder.",
)
def watch(
    monitor: Path,
    batches: tuple[str, ...],
    alpha: float,
    looks: int | None,
    key: str | None,
    follow: bool,
    poll: float,
) -> None:
    """Test BATCHES, files or folders of files, against MONITOR: one line of JSON each.

    Exit code 1 if any of them raised an alarm. A file that cannot be read gives a line with an
    error, exit code 2 at the end, and does not stop the others.

    Example: sparker watch monitor.npz monday.npy tuesday.npy --alpha 0.01
    """
    from sparker import tables
    from sparker.monitor import Monitor

    known = Monitor.load(monitor)
    files = list(_files(batches)) if not follow else _follow(batches, poll)
    alarmed = failed = False

    def one(file: str) -> dict[str, Any]:
        nonlocal alarmed
        batch = tables.read(file, columns=known.columns or None, key=key)
        # Each file is one look of the planned ones, whatever became of those before.
        look = next(known.watch([batch], alpha=alpha, looks=looks))
        alarmed = alarmed or look.alarm
        result = look.result
        return {
            "p_value": result.p_value,
            "corrected_p_value": look.corrected_p_value,
            "significance": result.significance if result.p_value < 1 else None,
            "alarm": look.alarm,
            "rows": len(result.data_plane),
            "most_anomalous": _most_anomalous(result),
        }

    next(known.watch([], alpha=alpha, looks=looks), None)  # says at once if it cannot be kept
    for number, file in enumerate(files, 1):
        try:
            found = one(file)
        except (ValueError, OSError) as error:
            found, failed = {"error": str(error)}, True
        click.echo(json.dumps({"batch": file, "look": number, **found}))
        sys.stdout.flush()
    if alarmed or failed:
        sys.exit(1 if alarmed else 2)


def _most_anomalous(result: "TestResult") -> list[dict[str, Any]]:
    """The rows of the largest log-ratios: a look is one fit, and asks for no more than that."""
    import numpy as np
    from scipy.special import expit

    log_ratio, components = result.data_log_ratio, result.data_components
    assert log_ratio is not None
    assert components is not None
    return [
        {
            "row": int(i),
            "log_ratio": float(log_ratio[i]),
            "anomaly_score": float(expit(log_ratio[i])),
            "kernel": int(np.argmax(np.abs(components[i]))),
        }
        for i in np.argsort(-log_ratio)[:N_ROWS_SHOWN]
    ]


def _files(batches: tuple[str, ...]) -> Iterator[str]:
    for batch in batches:
        folder = Path(batch)
        if folder.is_dir():
            yield from (str(file) for file in sorted(folder.iterdir()) if _is_batch(file))
        else:
            yield batch


def _follow(batches: tuple[str, ...], poll: float) -> Iterator[str]:
    """New files of the folder, each once its size has stopped changing."""
    if len(batches) != 1 or not Path(batches[0]).is_dir():
        raise BadInput("--follow needs one folder to look into")
    folder, seen, sizes = Path(batches[0]), set[Path](), dict[Path, int]()
    while True:
        for file in sorted(folder.iterdir()):
            if file in seen or not _is_batch(file):
                continue
            size = file.stat().st_size
            if sizes.get(file) == size:
                seen.add(file)
                yield str(file)
            sizes[file] = size
        time.sleep(poll)


def _is_batch(file: Path) -> bool:
    return file.is_file() and not file.name.startswith(".")
