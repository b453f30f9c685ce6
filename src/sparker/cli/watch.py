"""``sparker watch``: many batches against one monitor."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from sparker.cli.batches import STDIN, Batch, batch_files, follow, lines
from sparker.cli.errors import no_device
from sparker.cli.journal import Journal
from sparker.cli.options import A_LEVEL, FILE, Real, keep_programs
from sparker.cli.outputs import check_outputs, check_picture
from sparker.cli.session import Session
from sparker.cli.terminal import BadInput, note
from sparker.system.numbers import counted


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
    "--journal",
    type=FILE,
    help="Append the lines to this file, too; what stands there is not tested again.",
)
@click.option(
    "--embed",
    help="The embedder of texts or pictures that MONITOR was made with, where that is a function "
    "or a model of a hub, which no file can hold.",
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
    type=Real(0.1, 86_400),
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
    journal: Path | None,
    embed: str | None,
    keep: bool,
    is_followed: bool,
    poll: float,
) -> None:
    """Test BATCHES, files or folders of files, against MONITOR: one line of JSON each.

    With - for BATCHES, every line of stdin is one: a row or a list of rows as JSON.

    A batch that cannot be read or tested gives a line with an error and does not stop the others.
    The first batch of a size that MONITOR has no toys for waits until they are made.

    If MONITOR was made with `calibrate --anytime`, it bets on the rows of all batches together:
    look as often as you like, the chance that it ever raises a false alarm is at most alpha.

    With --journal, a watch that was ended goes on where it was.

    Exit codes: 0 all batches were tested and none raised an alarm, 1 an alarm, 4 some batch could
    not be tested or there was none, or lines could not be written, 5 both of these, 2 bad options
    or MONITOR, 130 interrupted, 143 terminated.

    Example: sparker watch monitor.npz monday.npy tuesday.npy --alpha 0.01
    """
    _check(monitor, batches, reports, picture, journal)
    if is_followed and (len(batches) != 1 or not Path(batches[0]).is_dir()):
        raise BadInput("--follow needs one folder to look into")
    so_far = Journal(journal)
    click.get_current_context().call_on_close(so_far.close)
    keep_programs()
    session = Session(monitor, alpha, looks, key, reports, picture, keep, so_far, embed=embed)
    problem = no_device()
    if problem:  # of all batches, and not of each
        raise BadInput(problem)
    own = [monitor, *([journal] if journal else [])]
    files: Iterable[Batch]
    if STDIN in batches:
        if len(batches) > 1 or is_followed:
            raise BadInput("- stands for all batches, and goes neither with others nor --follow")
        files = lines(sys.stdin.buffer, so_far.n_looks + 1)
    elif is_followed:
        files = follow(Path(batches[0]), poll, own, so_far.tested)
    else:
        every = list(batch_files(batches, own))
        if not every:
            note("No batch was tested: there are no files in " + ", ".join(batches) + ".")
            session.failed = True
        files = new = [batch for batch in every if not so_far.knows(batch)]
        n_looks = so_far.n_looks + len(new)
        if looks is not None and n_looks > looks:
            raise BadInput(
                f"there are {n_looks} batches for {counted(looks, 'look')}; plan as many --looks "
                "as there will be batches, or name fewer"
            )
    try:
        if is_followed or STDIN in batches:
            _follow(session, files, looks)
        else:
            for batch in files:
                session.look(batch)
    except KeyboardInterrupt as stop:
        where = f"are kept in {journal}; the same command goes on there"
        stop.add_note(
            f"{so_far.n_looks} looks were made"
            + (
                f" and {where}"
                if journal
                else "; with --journal the same command would go on there"
            )
        )
        raise
    sys.exit(session.exit_code)


def _follow(session: Session, files: Iterable[Batch], most: int | None) -> None:
    """Look at batch after batch, at no more than were planned."""
    so_far = session.journal
    if so_far.n_looks != most:
        for batch in files:
            session.look(batch, comes_again=True)
            if so_far.n_looks == most:
                break
        else:  # the end of stdin; a folder has none
            return
    note(f"All {most} planned looks are made; further batches are not tested.")


def _check(
    monitor: Path,
    batches: tuple[str, ...],
    reports: Path | None,
    picture: Path | None,
    journal: Path | None,
) -> None:
    """Say now what could not be written, or would be taken for a batch."""
    check_outputs(
        {"--picture": picture, "--journal": journal},
        [monitor, *batches],
        folders={"--reports": reports},
    )
    check_picture("--picture", picture)
    watched = {Path(batch).resolve() for batch in batches if Path(batch).is_dir()}
    for name, folder in (("reports", reports), ("picture", picture and picture.parent)):
        if folder and folder.resolve() in watched:
            raise BadInput(f"--{name} would be among the batches in {folder}; choose another place")
    if reports:
        reports.mkdir(exist_ok=True)
