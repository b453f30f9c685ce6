"""Many samples as one HTML page: a ranked table, and a card for each that can be opened."""

import os
from typing import Any, NamedTuple

import numpy as np

from sparker.calibration.pvalues import in_sigmas
from sparker.findings.many import Many, SampleOutcome
from sparker.report.pages import plain_page, write_page
from sparker.report.words import as_sentence, number

TITLE = "Which samples differ from the reference?"
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 260, 60, 36
"""Of the picture of all p-values, in points."""


class Card(NamedTuple):
    """What is said of one sample."""

    anchor: str
    sample: SampleOutcome
    q_value: str
    listed: bool
    verdict: str
    sentences: list[str]


class Point(NamedTuple):
    """A sample in the picture."""

    anchor: str
    name: str
    x: float
    y: float
    listed: bool


def render(many: Many, *, title: str = TITLE, command: str | None = None) -> str:
    """The page as the text of an HTML file; it runs no script and loads nothing."""
    q, listed = many.q_values, many.listed
    cards = [
        _card(rank, many.samples[i], q[i], bool(listed[i]))
        for rank, i in enumerate(many.ranking, 1)
    ]
    return plain_page(
        "many.html",
        many,
        many=many,
        title=title,
        command=command,
        cards=cards,
        n_listed=int(listed.sum()),
        verdict=as_sentence(many.verdict()),
        points=_points(many, cards),
        ticks=_ticks(many),
        line=_line(many),
        frame={"width": WIDTH, "height": HEIGHT, "left": LEFT, "bottom": BOTTOM},
    )


def write(path: str | os.PathLike[str], many: Many, **options: Any) -> None:
    """Write the page to a file, whole or not at all; ``options`` are those of ``render``."""
    write_page(path, render(many, **options))


def _card(rank: int, one: SampleOutcome, q: float, listed: bool) -> Card:
    if one.error is not None:
        verdict = as_sentence(f"could not be tested: {one.error}")
    else:
        differs = "differs from the reference" if listed else "is not in the list"
        verdict = (
            f"{one.above} of {one.n_toys} anomaly-free experiments look at least as different from "
            f"the reference as these {one.n_rows:,} rows do: p-value {number(one.p_value)}, "
            f"{in_sigmas(one.p_value, one.interval)}. Corrected for all samples it {differs} "
            f"(q-value {number(q)})."
        )
    said = [as_sentence(sentence) for sentence in one.sentences]
    return Card(f"sample-{rank}", one, "" if np.isnan(q) else number(q, 2), listed, verdict, said)


def _tested(many: Many) -> np.ndarray:  # (n,)
    p = many.p_values[many.ranking]
    return p[~np.isnan(p)]


def _lowest(many: Many) -> float:
    """The power of ten at the bottom of the picture."""
    p = _tested(many)
    lowest = min(p.min(initial=1.0), many.fdr / max(len(p), 1))
    return float(np.floor(np.log10(lowest)))


def _x(many: Many, rank: float) -> float:
    n = max(len(_tested(many)), 2)
    return round(LEFT + (WIDTH - LEFT - 10) * (rank - 1) / (n - 1), 1)


def _y(many: Many, p: float) -> float:
    return round(10 + (HEIGHT - BOTTOM - 10) * float(np.log10(p)) / _lowest(many), 1)


def _points(many: Many, cards: list[Card]) -> list[Point]:
    return [
        Point(card.anchor, card.sample.name, _x(many, rank), _y(many, card.sample.p_value),
              card.listed)
        for rank, card in enumerate(cards, 1)
        if card.sample.error is None
    ]  # fmt: skip


def _line(many: Many) -> str:
    """Benjamini and Hochberg's line: the list ends with the last sample that is below it."""
    n = len(_tested(many))
    ranks = np.unique(np.round(np.geomspace(1, max(n, 1), 60)).astype(int))
    return " ".join(f"{_x(many, r)},{_y(many, many.fdr * r / max(n, 1))}" for r in ranks.tolist())


def _ticks(many: Many) -> list[tuple[float, str]]:
    return [(_y(many, 10.0**power), number(10.0**power)) for power in range(int(_lowest(many)), 1)]
