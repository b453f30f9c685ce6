"""A test's result as one HTML file that explains itself and opens anywhere, without internet.

May import: plots, findings and what findings may import.
"""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bokeh.resources import Resources
from markupsafe import Markup
from numpy.typing import ArrayLike

from sparker.findings import text
from sparker.findings.decision import NOT_SIGNIFICANT, SIGNIFICANT, TOO_FEW_TOYS
from sparker.findings.result import Result
from sparker.report import answers, axes, figures, histograms, kernels, planes, rows
from sparker.report.numbers import clip
from sparker.report.pages import page_of, source, write_page
from sparker.report.thumbnails import Picture

PAGE = 10  # table rows at a time
LINES = 10  # columns in the table of columns, until all are asked for
PICTURES, TEXTS = 12, 5  # rows in the head
LONG = 160  # characters of such a text
KINDS = {SIGNIFICANT: "significant", NOT_SIGNIFICANT: "not-significant", TOO_FEW_TOYS: "open"}
HEAD = ("How many", "Where", "Rows", "Columns", "Region")
"""Labels of the answers that stand in the head, the first of each."""


class Example(NamedTuple):
    """One of the most anomalous rows, in the head."""

    row: int
    image: str | None
    text: str | None


def render(
    result: Result,
    *,
    texts: Sequence[str] | None = None,
    images: Sequence[Picture] | None = None,
    observables: Mapping[str, ArrayLike] | None = None,
    reference_observables: Mapping[str, ArrayLike] | None = None,
    names: Sequence[str] | None = None,
    title: str | None = None,
    command: str | None = None,
) -> str:
    """Return the report of a result as the text of an HTML file.

    Args:
        result: what ``sparker.test`` found.
        texts: one per data row, what the row is about.
        images: one per data row, the path of a PNG or JPEG file or its pixels, an array of uint8 or
            floats; small versions of the most anomalous go into the report.
        observables: numbers per data row that are not among the columns of the test, by name; the
            columns themselves are shown in any case.
        reference_observables: the same for the reference rows, to compare with.
        names: one per data row, what it is called.
        title: a line above the decision, such as the question that was asked.
        command: what made the result, for whoever wants to repeat it.
    """
    texts = result.texts if texts is None else texts
    extras = rows.check_extras(result, texts, names, images, observables, reference_observables)
    found = answers.collect(result)
    views = [histograms.View(found.marked)]
    views += [histograms.View(place.rows, place.conditions) for place in found.places]
    drawn = histograms.draw(histograms.columns(result, extras), views)
    rule, telling = _telling(found, drawn)
    shown = rows.choose(result, extras, found, telling)
    coordinates = axes.axes(result, telling)
    pairs = axes.first(coordinates, rule)
    boxes = planes.boxes(found, coordinates)
    plots = {
        **planes.planes(result, shown, coordinates, pairs),
        "null_scores": figures.null_scores(result),
        "p_by_scale": figures.p_by_scale(result),
    }
    if len(result.families) > 1:
        plots["p_by_family"] = figures.p_by_family(result)
    if result.score_counts is not None:
        plots["score_distribution"] = figures.score_distribution(result.score_counts)
    examples = _examples(result, shown)
    region = None
    if result.is_significant and found.places and pairs and pairs[0][0].column is not None:
        region = None if examples else pairs[0]
    if region is not None:
        plots["region"] = planes.region(region, shown, found.places[0].rows, boxes[1])
    said = dict(reversed([*text.answers(result)]))
    # These hold nothing of the user's. Their digests are the only scripts the page may run, and it
    # may load nothing at all: should a string ever get past the escaping, it stays a string.
    bokeh = Resources(mode="inline", components=["bokeh"], log_level="warn")
    scripts = [*bokeh.js_raw, source("histograms.js"), source("report.js")]
    return page_of(
        "report.html",
        result,
        result=result,
        text=text,
        kind=KINDS[result.decision.outcome],
        kicker=title,
        title=title or f"{text.outcome(result)}: {text.compared(result)}",
        command=command,
        head=[(label, said[label]) for label in HEAD if label in said],
        examples=examples,
        region=region,
        answers=found,
        shown=shown,
        ranked=rows.ranked(result) is not None,
        histograms=drawn,
        axes=coordinates,
        planes=pairs,
        fields=planes.FIELDS,
        directions=axes.directions(result) if len(result.directions) > 2 else [],
        kernels=[] if result.models is None else kernels.table(result),
        settings=_flat(result.settings),
        page=PAGE,
        lines=LINES,
        reach=figures.smallest_p(result),
        rows_json={
            "columns": shown.columns,
            "rows": shown.cells,
            "page": PAGE,
            "views": shown.views,
            "names": ["all data rows", *(f"region {place.number}" for place in found.places)],
        },
        axes_json={"labels": {axis.key: axis.label for axis in coordinates}, "boxes": boxes},
        plots=figures.embed(plots),
        scripts=[Markup(script) for script in scripts],
        digests=[_digest(script) for script in scripts],
    )


def write(path: str | os.PathLike[str], result: Result, **options: Any) -> None:
    """Write the report to a file, whole or not at all; ``options`` are those of ``render``."""
    write_page(path, render(result, **options))


def _examples(result: Result, shown: rows.Shown) -> list[Example]:
    """Return the pictures or texts of the most anomalous rows, where they show a difference."""
    known = result.is_significant and rows.ranked(result) is not None
    if not known or not (shown.images or shown.texts):
        return []
    # The rows are in the order of the ranking.
    first = shown.rows[: PICTURES if shown.images else TEXTS].tolist()
    return [
        Example(
            int(result.row_numbers[row]),
            shown.images.get(row),
            clip(shown.texts[row], LONG) if shown.texts else None,
        )
        for row in first
    ]


def _telling(found: answers.ReportAnswers, drawn: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Return the columns of the first region's rule, and all columns, the most telling first."""
    rule = [one.column for place in found.places[:1] for one in place.conditions]
    order = drawn["order"][min(1, len(found.places))]
    ordered = [drawn["columns"][i]["column"] for i in order]
    return rule, list(dict.fromkeys([*rule, *(i for i in ordered if i is not None)]))


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _flat(settings: Mapping[str, Any], path: str = "") -> list[tuple[str, str]]:
    """Nested settings as one list of names and values."""
    found: list[tuple[str, str]] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{path}{name}.")
        elif value is not None:
            found.append((f"{path}{name}", str(value)))
    return found
