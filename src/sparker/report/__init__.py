"""A test's result as one HTML file that explains itself and opens anywhere, without internet.

May import: plots, findings and what findings may import.
"""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.resources import Resources
from markupsafe import Markup
from numpy.typing import ArrayLike

from sparker.findings.result import Result
from sparker.findings.words import LEVEL, reading, seen_by
from sparker.report import answers, axes, figures, histograms, kernels, planes, rows
from sparker.report.pages import page_of, source, write_page
from sparker.report.thumbnails import Picture
from sparker.report.words import as_sentence, verdict
from sparker.system.numbers import is_number

TITLE = "Do the data come from the reference's distribution?"
PAGE = 25  # table rows at a time
NAMED = 6  # columns left out that are named
LINES = 12  # columns in the table of columns, until all are asked for


def render(
    result: Result,
    *,
    texts: Sequence[str] | None = None,
    images: Sequence[Picture] | None = None,
    observables: Mapping[str, ArrayLike] | None = None,
    reference_observables: Mapping[str, ArrayLike] | None = None,
    names: Sequence[str] | None = None,
    title: str = TITLE,
    command: str | None = None,
    alpha: float | None = None,
) -> str:
    """The report of a result as the text of an HTML file.

    Args:
        result: what ``sparker.test`` found.
        texts: one per data row, what the row is about.
        images: one per data row, the path of a PNG or JPEG file or its pixels, an array of uint8 or
            floats; small versions of the most anomalous go into the report.
        observables: numbers per data row that are not among the columns of the test, by name; the
            columns themselves are shown in any case.
        reference_observables: the same for the reference rows, to compare with.
        names: one per data row, what it is called.
        title: the heading of the report.
        command: what made the result, for whoever wants to repeat it.
        alpha: the level to decide at; left out, the report gives the p-value and no decision.
    """
    if alpha is not None and not is_number(alpha, above=0, below=1):
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}")
    texts = result.texts if texts is None else texts
    extras = rows.check_extras(result, texts, names, images, observables, reference_observables)
    told = answers.tell(result)
    views = [histograms.View(told.marked)]
    views += [histograms.View(place.rows, place.conditions) for place in told.places]
    drawn = histograms.draw(histograms.columns(result, extras), views)
    rule, telling = _telling(told, drawn)
    shown = rows.choose(result, extras, told, telling)
    coordinates = axes.axes(result, telling)
    pairs = axes.first(coordinates, rule)
    plots = {
        **planes.planes(result, shown, coordinates, pairs),
        **figures.across_widths(result),
        "way_by_way": figures.way_by_way(result),
        "null_scores": figures.null_scores(result),
    }
    if result.score_counts is not None:
        plots["score_distribution"] = figures.score_distribution(result.score_counts)
    # These hold nothing of the user's. Their digests are the only scripts the page may run, and it
    # may load nothing at all: should a string ever get past the escaping, it stays a string.
    bokeh = Resources(mode="inline", components=["bokeh"], log_level="warn")
    scripts = [*bokeh.js_raw, source("histograms.js"), source("report.js")]
    return page_of(
        "report.html",
        result,
        result=result,
        verdict=verdict(result, alpha),
        title=title,
        command=command,
        told=told,
        is_found=result.p_value <= LEVEL,
        seen_by=as_sentence(seen_by(result)) if seen_by(result) else "",
        reading=reading(result),
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
            "names": ["all data rows", *(f"region {place.number}" for place in told.places)],
        },
        axes_json={
            "labels": {axis.key: axis.label for axis in coordinates},
            "boxes": planes.boxes(told, coordinates),
        },
        **_sizes(result),
        plots=figures.embed(plots),
        scripts=[Markup(script) for script in scripts],
        digests=[_digest(script) for script in scripts],
    )


def write(path: str | os.PathLike[str], result: Result, **options: Any) -> None:
    """Write the report to a file, whole or not at all; ``options`` are those of ``render``."""
    write_page(path, render(result, **options))


def _sizes(result: Result) -> dict[str, Any]:
    """What the two samples amount to, where that is not their number of rows; and the columns."""
    expected, counts = result.expected, result.reference_counts
    effective = None
    if result.reference_weights is not None:
        shown = len(counts) / result.n_reference
        effective = f"{counts.sum() ** 2 / (counts @ counts) / shown:,.0f}"
    features, kept = result.encoding.features, {*result.transform.kept.tolist()}
    used = {feature.column for i, feature in enumerate(features) if i in kept}
    dropped = [
        f"{column.name} (it does not vary)"
        for column in result.encoding.columns
        if column.name not in used
    ]
    dropped += [f"{one.name} ({one.why})" for one in result.encoding.left_out]
    more = f" and {len(dropped) - NAMED} more" if len(dropped) > NAMED else ""
    return {
        "expected": None if expected is None else f"{expected:,.10g}",
        "effective": effective,
        "n_columns": len(used),
        "dropped": ", ".join(dropped[:NAMED]) + more,
        "n_dropped": len(dropped),
    }


def _telling(told: answers.Told, drawn: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """The columns of the first region's rule, and all columns, the most telling first."""
    rule = [one.column for place in told.places[:1] for one in place.conditions]
    order = drawn["order"][min(1, len(told.places))]
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
