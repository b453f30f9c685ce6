"""``--scheduler``, ``--toys`` and ``sparker merge``: a calibration shared out among machines."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sparker.commands.common import BadInput, options, reader_may_leave

FOLDER = click.Path(file_okay=False, path_type=Path)

OF_A_VERDICT = (
    "stop", "alpha", "tail", "text", "images", "observables", "report", "rows", "save", "as_json"
)  # fmt: skip


def toy_range(ctx: click.Context, parameter: click.Parameter, value: str | None) -> range | None:
    """A click callback: A:B as the range it means."""
    if value is None:
        return None
    ends = re.fullmatch(r"(\d{1,9}):(\d{1,9})", value)
    if not ends or int(ends[1]) >= int(ends[2]):
        raise click.BadParameter(f"{value!r} is not A:B, two whole numbers with A < B, as in 0:100")
    return range(int(ends[1]), int(ends[2]))


share_options = options(
    click.option("--toys", metavar="A:B", callback=toy_range,
                 help="Only make experiments A to B - 1, 0 being the data, and keep them in "
                      "--store, to be merged."),
    click.option("--scheduler", metavar="ADDRESS",
                 help="Let the workers of the Dask scheduler at tcp://HOST:PORT make them."),
)  # fmt: skip


def check_share(toys: range | None, store: Path | None, n_calibration: int) -> None:
    """Refuse a share of what does not exist, with nowhere to go, or with a verdict."""
    if toys is None:
        return
    if store is None:
        raise BadInput("--toys makes a part of the experiments; name a folder for them by --store")
    if toys[-1] > n_calibration:
        raise BadInput(
            f"--toys {toys.start}:{toys.stop} is more than there is: --calibrations "
            f"{n_calibration} means experiments 0 to {n_calibration}, so 0:{n_calibration + 1} "
            "is all of them"
        )
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") == ParameterSource.COMMANDLINE
        if parameter.name in OF_A_VERDICT and given:
            raise BadInput(
                f"{parameter.opts[0]} is about the verdict, which --toys does not reach; merge "
                "all parts and leave --toys out to get it"
            )


@contextmanager
def cluster_at(scheduler: str | None) -> Iterator[Any]:
    """A client of this scheduler, or none."""
    if scheduler is None:
        yield None
        return
    from sparker.cluster import connected

    with connected(scheduler) as client:
        yield client


def say_made(toys: range, store: Path, n_calibration: int) -> None:
    """What there is now."""
    with reader_may_leave():
        click.echo(
            f"experiments {toys[0]} to {toys[-1]} of 0 to {n_calibration} are made and kept in "
            f"{store}"
        )


@click.command()
@click.argument("stores", nargs=-1, required=True, type=FOLDER)
@click.option("--into", required=True, type=FOLDER, help="The folder that has them all then.")
def merge(stores: tuple[Path, ...], into: Path) -> None:
    """Bring together what `sparker test --toys` kept in several STORES.

    `sparker test --store`, with the merged one and without --toys, then finds it done.

    Example: sparker merge part-0 part-1 part-2 --into all
    """
    from sparker.store import merge as merge_stores

    n_experiments = merge_stores(stores, into)
    with reader_may_leave():
        click.echo(f"{n_experiments} experiments are in {into}")
