"""Generators by their distance from the data, as one HTML page."""

from typing import NamedTuple

from sparker.findings.closest import Closest
from sparker.report.pages import page_of
from sparker.report.ticks import labelled

WIDTH, LEFT, RIGHT, LINE = 640, 190, 20, 26
"""Of the picture of all distances, in points."""


class Bar(NamedTuple):
    """A generator in the picture."""

    name: str
    y: float
    low: float
    at: float
    high: float


def render(found: Closest, *, title: str | None = None, command: str | None = None) -> str:
    """The page as the text of an HTML file; it runs no script and loads nothing."""
    compared = found.compared
    ends = [0.0, *(end for one in compared for end in (*one.interval, one.distance))]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / span, 1)

    bars = [
        Bar(one.name, 16 + LINE * i, x(one.interval[0]), x(one.distance), x(one.interval[1]))
        for i, one in enumerate(compared)
    ]
    sure = {True: "is closest", False: "may be closest", None: "was compared"}[found.is_sure]
    return page_of(
        "closest.html",
        found,
        found=found,
        compared=compared,
        kicker=title,
        title=title or f"{found.best.name} {sure}",
        command=command,
        headline=f"{found.best.name} {sure}",
        verdict=f"{found.verdict()}.",  # which begins with a name
        bars=bars,
        ticks=[(x(low + share * span), label) for share, label in labelled(low, low + span)],
        frame={"width": WIDTH, "height": 40 + LINE * len(bars), "left": LEFT, "zero": x(0.0)},
    )
