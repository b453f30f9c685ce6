"""How far something long is, on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

OnProgress = Callable[[float], None]


@contextmanager
def reporter(
    progress: bool | Callable[[int, int], None] | None, total: int, what: str = "toys"
) -> Iterator[OnProgress]:
    """A function that is told how many of the toys (or ``what``) are done, and parts of them.

    ``progress`` may be a function of (done, total), or whether to draw a bar; left out, a bar is
    drawn where stderr is a terminal.
    """
    if progress is None:
        progress = sys.stderr.isatty()
    if progress is False:
        yield lambda done: None
    elif callable(progress):
        yield _in_whole_toys(progress, total)
    else:
        columns = (
            TextColumn(what),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)


def _in_whole_toys(progress: Callable[[int, int], None], total: int) -> OnProgress:
    """Call a function of (done, total) when another toy is done, and at the beginning."""
    last = -1

    def on_progress(done: float) -> None:
        nonlocal last
        if int(done) > last:
            last = int(done)
            progress(last, total)

    return on_progress
