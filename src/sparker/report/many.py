"""Many samples as one HTML page: a ranked table, and a card for each that can be opened."""

from typing import NamedTuple

import numpy as np

from sparker.findings.many import Many, SampleOutcome
from sparker.report.numbers import number
from sparker.report.pages import page_of

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 260, 60, 36
"""Of the picture of all p-values, in points."""


class Card(NamedTuple):
    """What is said of one sample."""

    anchor: str
    sample: SampleOutcome
    q_value: str
    listed: bool


class Point(NamedTuple):
    """A sample in the picture."""

    anchor: str
    name: str
    x: float
    y: float
    listed: bool


def render(many: Many, *, title: str | None = None, command: str | None = None) -> str:
    """The page as the text of an HTML file; it runs no script and loads nothing."""
    q, listed, order = many.q_values, many.listed, many.ranking
    p = many.p_values[order]
    p = p[~np.isnan(p)]
    n = len(p)
    cards = [
        Card(
            f"sample-{rank}",
            many.samples[i],
            "" if np.isnan(q[i]) else number(q[i], 2),
            bool(listed[i]),
        )
        for rank, i in enumerate(order, 1)
    ]
    lowest = int(np.floor(np.log10(min(p.min(initial=1.0), many.fdr / max(n, 1)))))

    def x(rank: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 10) * (rank - 1) / (max(n, 2) - 1), 1)

    def y(p: float) -> float:
        return round(10 + (HEIGHT - BOTTOM - 10) * float(np.log10(p)) / lowest, 1)

    # Benjamini and Hochberg's line: the list ends with the last sample that is below it.
    ranks = np.unique(np.round(np.geomspace(1, max(n, 1), 60)).astype(int)).tolist()
    return page_of(
        "many.html",
        many,
        many=many,
        kicker=title,
        title=title or many.verdict(),
        command=command,
        cards=cards,
        points=[
            Point(card.anchor, one.name, x(rank), y(one.p_value), card.listed)
            for rank, card in enumerate(cards, 1)
            if (one := card.sample).error is None
        ],
        ticks=[(y(10.0**power), number(10.0**power)) for power in range(lowest, 1)],
        line=" ".join(f"{x(rank)},{y(many.fdr * rank / max(n, 1))}" for rank in ranks),
        frame={"width": WIDTH, "height": HEIGHT, "left": LEFT, "bottom": BOTTOM},
    )
