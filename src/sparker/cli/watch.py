"""``sparker watch``: many batches against one monitor."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from sparker.cli.batches import batch_files, follow
from sparker.cli.options import A_LEVEL, FILE, BadInput, check_outputs, note
from sparker.cli.session import Session

PICTURES = (".png", ".svg", ".pdf")


@click.command()
@click.argument("monitor", type=FILE)
@click.argument("batches", nargs=-1, required=True)
@click.option(
    "--alpha",
    default=0.01,
    show_default=True,
    type=A_LEVEL,
    help="Alarm where p <= alpha.",
)
@click.option(
    "--looks",
    type=click.IntRange(1),
    help="Planned number of looks; alpha is then for all of them together, and there are no more.",
)
@click.option("--key", help="Which dataset, array or tree, where a file has several.")
@click.option(
    "--reports",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for an HTML report of each alarm.",
)
@click.option(
    "--picture", type=FILE, help="Draw the p-values of all batches into this .png, .svg or .pdf."
)
@click.option(
    "--keep/--no-keep",
    default=True,
    show_default=True,
    help="Write toys for new sizes of batches into MONITOR.",
)
@click.option(
    "--follow",
    "is_followed",
    is_flag=True,
    help="BATCHES is a folder: wait for new and changed files in it, until interrupted.",
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
    reports: Path | None,
    picture: Path | None,
    keep: bool,
    is_followed: bool,
    poll: float,
) -> None:
    """Test BATCHES, files or folders of files, against MONITOR: one line of JSON each.

    A batch that cannot be read or tested gives a line with an error and does not stop the others.
    The first batch of a size that MONITOR has no toys for waits until they are made.

    Exit codes: 0 all batches were tested and none raised an alarm, 1 an alarm, 4 some batch could
    not be tested or there was none, 5 both of these, 2 bad options or MONITOR, 130 interrupted.

    Example: sparker watch monitor.npz monday.npy tuesday.npy --alpha 0.01
    """
    _check_outputs(batches, reports, picture)
    session = Session(monitor, alpha, looks, key, reports, picture, keep)
    session.known.check_reach(alpha, looks)
    own = {monitor.resolve()}
    files: Iterable[str]
    if is_followed:
        if len(batches) != 1 or not Path(batches[0]).is_dir():
            raise BadInput("--follow needs one folder to look into")
        files = follow(Path(batches[0]), poll, own)
    else:
        files = list(batch_files(batches, own))
        if looks is not None and len(files) > looks:
            raise BadInput(
                f"there are {len(files)} batches for {looks} looks; plan as many --looks as there "
                "will be batches, or name fewer"
            )
    for number, file in enumerate(files, 1):
        session.look(number, file)
        if is_followed and number == looks:
            note(f"All {looks} planned looks are made; further batches are not tested.")
            break
    if not session.lines:
        note("No batch was tested: there are no files in " + ", ".join(batches) + ".")
    sys.exit(session.exit_code)


def _check_outputs(batches: tuple[str, ...], reports: Path | None, picture: Path | None) -> None:
    """Say now what could not be written, or would be taken for a batch."""
    check_outputs({"reports": reports, "picture": picture})
    if picture and picture.suffix.lower() not in PICTURES:
        raise BadInput(f"--picture must end with {', '.join(PICTURES)}, got {picture}")
    watched = {Path(batch).resolve() for batch in batches if Path(batch).is_dir()}
    for name, folder in (("reports", reports), ("picture", picture and picture.parent)):
        if folder and folder.resolve() in watched:
            raise BadInput(f"--{name} would be among the batches in {folder}; choose another place")
    if reports:
        reports.mkdir(exist_ok=True)
