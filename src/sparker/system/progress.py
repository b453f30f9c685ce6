"""How far a calibration is, on stderr."""

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

Tell = Callable[[int], None]


@contextmanager
def reporter(progress: bool | Callable[[int, int], None] | None, total: int) -> Iterator[Tell]:
    """Something to tell how many of the toys are done.

    ``progress`` may be a function of (done, total), or whether to draw a bar; left out, a bar is
    drawn where stderr is a terminal.
    """
    if progress is None:
        progress = sys.stderr.isatty()
    if progress is False:
        yield lambda done: None
    elif callable(progress):
        tell = progress
        yield lambda done: tell(done, total)
    else:
        columns = (
            TextColumn("toys"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("toys", total=total)
            yield lambda done: bar.update(task, completed=done)
