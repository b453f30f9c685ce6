"""``--scheduler``, ``--only`` and ``sparker merge``: a calibration shared out among machines."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from sparker.cli.options import FOLDER, options
from sparker.cli.terminal import BadInput, answer


def toy_range(ctx: click.Context, parameter: click.Parameter, value: str | None) -> range | None:
    """A click callback: A:B as the range it means."""
    if value is None:
        return None
    ends = re.fullmatch(r"(\d{1,9}):(\d{1,9})", value)
    if not ends or int(ends[1]) >= int(ends[2]):
        raise click.BadParameter(f"{value!r} is not A:B, two whole numbers with A < B, as in 0:100")
    return range(int(ends[1]), int(ends[2]))


share_options = options(
    click.option("--only", metavar="A:B", callback=toy_range,
                 help="Only make experiments A to B - 1, 0 being the data, and keep them in "
                      "--store, to be merged."),
    click.option("--scheduler", metavar="ADDRESS",
                 help="Let the workers of the Dask scheduler at tcp://HOST:PORT make them."),
)  # fmt: skip


def check_share(only: range | None, n_toys: int) -> None:
    """Refuse a share of what does not exist."""
    if only is not None and only[-1] > n_toys:
        raise BadInput(
            f"--only {only.start}:{only.stop} is more than there is: --toys {n_toys} means "
            f"experiments 0 to {n_toys}, so 0:{n_toys + 1} is all of them"
        )


@contextmanager
def cluster_at(scheduler: str | None) -> Iterator[Any]:
    """A client of this scheduler, or none."""
    if scheduler is None:
        yield None
        return
    from sparker.calibration.cluster import connected

    with connected(scheduler) as client:
        yield client


@click.command()
@click.argument("stores", nargs=-1, required=True, type=FOLDER)
@click.option("--into", required=True, type=FOLDER, help="The folder that has them all then.")
def merge(stores: tuple[Path, ...], into: Path) -> None:
    """Bring together what `sparker test --only` kept in several STORES.

    `sparker test --store`, with the merged one and without --only, then finds it done.

    Example: sparker merge part-0 part-1 part-2 --into all
    """
    from sparker.calibration.store import merge as merge_stores

    n_experiments = merge_stores(stores, into)
    answer(f"{n_experiments} experiments are in {into}")
