"""A test's result as one HTML file that explains itself and opens anywhere, without internet.

May import: plots, findings and what findings may import.
"""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.resources import Resources
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import ArrayLike

from sparker.findings.result import Result
from sparker.report import axes, cards, figures, histograms, rows
from sparker.report.thumbnails import Picture
from sparker.report.words import number, verdict
from sparker.system.atomic import whole_file

TITLE = "Do the data come from the reference's distribution?"
PAGE = 25  # table rows at a time
TILE = 20  # characters of a text that fits below a small picture


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
        observables: numbers per data row that the test did not see, by name.
        reference_observables: the same for the reference rows, to compare with.
        names: one per data row, what it is called.
        title: the heading of the report.
        command: what made the result, for whoever wants to repeat it.
        alpha: the level to decide at; left out, the report gives the p-value and no decision.
    """
    if alpha is not None and not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")
    extras = rows.check_extras(result, texts, names, images, observables, reference_observables)
    plots = {**figures.across_widths(result), "null_scores": figures.null_scores(result)}
    values: dict[str, Any] = {
        "result": result,
        "verdict": verdict(result, alpha),
        "title": title,
        "command": command,
        "settings": _flat(result.settings),
        "page": PAGE,
        "reach": figures.smallest_p(result),
        **_sizes(result),
    }
    if result.models is not None:
        values |= _interpretation(result, extras, plots)
    return _page(values, plots)


def write(path: str | os.PathLike[str], result: Result, **options: Any) -> None:
    """Write the report to a file, whole or not at all; ``options`` are those of ``render``."""
    content = render(result, **options).encode()
    try:
        with whole_file(path) as file:
            file.write(content)
    except OSError as error:
        raise ValueError(
            f"the report could not be written to {path}: {error.strerror}; choose a file in a "
            "folder that exists and that you may write to"
        ) from error


def _sizes(result: Result) -> dict[str, str | None]:
    """What the two samples amount to, where that is not their number of rows."""
    expected, counts = result.expected, result.reference_counts
    effective = None
    if result.reference_weights is not None:
        shown = len(counts) / result.n_reference
        effective = f"{counts.sum() ** 2 / (counts @ counts) / shown:,.0f}"
    return {"expected": None if expected is None else f"{expected:,.10g}", "effective": effective}


def _interpretation(result: Result, extras: rows.Extras, plots: dict[str, Any]) -> dict[str, Any]:
    """What only a test with kernels can say; its plots are added to ``plots``."""
    assert result.data_components is not None
    claimed, plane = cards.claims(result), axes.plane(result)
    order = list(claimed)
    strongest = order[0]
    kernels = cards.cards(result, extras, claimed)
    examples = [row for card in kernels for row in card.rows]
    shown = rows.choose(result, extras, order, cards.axes(kernels, order), examples)
    strength = np.abs(result.data_components[:, strongest])
    chosen, n_observables = histograms.beside(extras, plane, strength)
    drawn = [(one.name, histograms.histogram(result, one, strongest, claimed[strongest]))
             for one in chosen]  # fmt: skip
    filled = [(name, plot) for name, plot in drawn if plot is not None]
    kinds = ["features"] * bool(plane.features)
    kinds += ["observables"] * (len(chosen) > len(plane.features))
    plots["score_distribution"] = figures.score_distribution(result)
    plots |= figures.planes(result, shown, claimed, plane)
    plots |= {f"observable{i}": plot for i, (_, plot) in enumerate(filled)}
    return {
        "cards": kernels,
        "shown": shown,
        "plane": plane,
        "histograms": [name for name, _ in filled],
        "beside": " and ".join(kinds).capitalize(),
        "n_observables": n_observables,
        "n_drawn": len(chosen) - len(plane.features),
        "tiles": all(len(shown.texts.get(row, "")) <= TILE for row in examples),
    }


def _page(values: dict[str, Any], plots: dict[str, Any]) -> str:
    environment = Environment(
        loader=PackageLoader("sparker.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "colour": figures.colour,
        "symbol": figures.symbol,
        "cell": _cell,
    }

    # Not sorted, which is the default: Bokeh's objects are defined where they first appear.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}

    def own(name: str) -> str:
        assert environment.loader is not None
        return environment.loader.get_source(environment, name)[0]

    # These hold nothing of the user's. Their digests are the only scripts the page may run, and it
    # may load nothing at all: should a string ever get past the escaping, it stays a string.
    bokeh = Resources(mode="inline", components=["bokeh"], log_level="warn")
    scripts = [*bokeh.js_raw, own("report.js")]
    page = environment.get_template("report.html").render(
        **values,
        plots=figures.embed(plots),
        style=Markup(own("report.css")),
        scripts=[Markup(script) for script in scripts],
        digests=[_digest(script) for script in scripts],
    )
    return page.encode(errors="replace").decode()  # half a surrogate pair is no text


def _cell(value: Any, column: Mapping[str, Any]) -> str:
    """A cell of the table as it is shown."""
    if value is None:
        return ""
    return f"{value:.{column['digits']}f}" if "digits" in column else str(value)


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
