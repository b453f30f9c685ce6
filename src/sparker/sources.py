"""Where batches come from, for a watch that is to bet on each of them once and only once.

A source gives batches in order, each with its *place*, plain values by which it can go on later:
a number, the offsets of partitions, the name of a file. A watch that was ended at any moment goes
on after the place that its state was saved with, whatever the source believes was read.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sparker.anytime import AnytimeLook, AnytimeMonitor
from sparker.tables.lines import rows_of


class Placed(NamedTuple):
    """A batch."""

    rows: Any
    """An array, a data frame, a list of rows: whatever a monitor takes."""
    place: Any
    """Plain values, as JSON has them."""


class Source(Protocol):
    """A stream of batches that can be read on from a place."""

    def batches(self, after: Any) -> Iterator[Placed]:
        """Those that come after this place; all there are for None."""

    def commit(self, place: Any) -> None:
        """All up to this place is done with, and will not be asked for again."""


def follow(
    monitor: AnytimeMonitor,
    source: Source,
    state: str | os.PathLike[str],
    *,
    alpha: float = 0.05,
) -> Iterator[AnytimeLook]:
    """Bet on every batch of a source, and keep place and bets together in the file ``state``.

    The state is written, whole or not at all, before the place is committed and before the look is
    given out. Ended in between, the same call goes on after the last batch that was bet on.
    """
    path = Path(state)
    after = monitor.load_state(path)["place"] if path.exists() else None
    for rows, place in source.batches(after):
        if json.loads(json.dumps(place)) != place:
            raise ValueError(
                f"a place must be plain values that JSON gives back, got {place!r:.80}"
            )
        look = monitor.look(rows, alpha=alpha)
        monitor.save_state(path, place=place)
        source.commit(place)
        yield look


class JsonLines:
    """Lines of JSON as batches: a row each, or a list of rows; a place is a number of lines.

    >>> source = JsonLines([b'[[1.5, 2], [0.5, 3]]', b'{"x": 1, "kind": "a"}'])
    >>> [one.rows for one in source.batches(after=1)]
    [{'x': [1], 'kind': ['a']}]
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.lines = lines

    def batches(self, after: Any) -> Iterator[Placed]:
        """Skip as many lines as were done with; empty ones do not count."""
        filled = (line for line in self.lines if line.strip())
        for number, line in enumerate(filled, 1):
            if number > (after or 0):
                yield Placed(rows_of(line), number)

    def commit(self, place: Any) -> None:
        """Nothing remembers it here."""
