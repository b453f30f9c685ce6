"""Many samples as one HTML page: a ranked table, and a card for each that can be opened."""

from typing import NamedTuple

import numpy as np

from sparker.calibration.pvalues import in_sigmas
from sparker.findings.many import Many, SampleOutcome
from sparker.report.pages import page_of
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
    q, listed, order = many.q_values, many.listed, many.ranking
    p = many.p_values[order]
    p = p[~np.isnan(p)]
    n = len(p)
    cards = [_card(rank, many.samples[i], q[i], bool(listed[i])) for rank, i in enumerate(order, 1)]
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
        title=title,
        command=command,
        cards=cards,
        n_listed=int(listed.sum()),
        verdict=as_sentence(many.verdict()),
        points=[
            Point(card.anchor, one.name, x(rank), y(one.p_value), card.listed)
            for rank, card in enumerate(cards, 1)
            if (one := card.sample).error is None
        ],
        ticks=[(y(10.0**power), number(10.0**power)) for power in range(lowest, 1)],
        line=" ".join(f"{x(rank)},{y(many.fdr * rank / max(n, 1))}" for rank in ranks),
        frame={"width": WIDTH, "height": HEIGHT, "left": LEFT, "bottom": BOTTOM},
    )


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
