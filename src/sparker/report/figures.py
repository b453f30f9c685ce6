"""The interactive plots, as one Bokeh document.

No string of the user's enters it: names and captions stand in the page around the plots, where they
are escaped. Bokeh would typeset a label like ``$$x$$`` with a library it loads from the internet.
Colours for the dark theme are set in the page; renderers named ``ink`` are drawn in the text's.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.document import Document
from bokeh.models import BasicTickFormatter, DataRange1d, FactorRange
from bokeh.plotting import figure

from sparker.findings.component_tests import across
from sparker.findings.result import Result
from sparker.plots import KERNELS, REFERENCE

INK = "#1f2328"
HEIGHT = 260
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")
GREY = "#808890"
PICKED = "#d55e00"  # the rows that are looked at, wherever they appear
UNITS = {
    "decorrelate": "in units of the fit",
    "standardise": "in standard deviations",
    "whiten": "in whitened units",
    "unchanged": "in the features' units",
}
LEAST = 0.3  # rows, where a logarithmic axis begins


def embed(plots: Mapping[str, figure]) -> dict[str, Any]:
    """All plots as plain values, for BokehJS's ``embed_items``: each goes to the element named."""
    document = Document()
    for plot in plots.values():
        document.add_root(plot)
    roots = {plot.id: name for name, plot in plots.items()}
    return {
        "docs": {"report": document.to_json(deferred=False)},
        "items": [{"docid": "report", "roots": roots, "root_ids": list(roots)}],
    }


def new_plot(x: str, y: str, *, height: int = HEIGHT, tools: str = "", **options: Any) -> figure:
    """An empty plot in the report's style; what is drawn in the text's colour is named ``ink``."""
    plot = figure(
        sizing_mode="stretch_width",
        height=height,
        min_width=200,
        tools=tools,
        toolbar_location="above" if tools else None,
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        x_axis_label=x,
        y_axis_label=y,
        **options,
    )
    plot.toolbar.logo = None
    plot.grid.grid_line_color = GREY
    plot.grid.grid_line_alpha = 0.25
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_color = plot.axis.major_label_text_color = INK
    return plot


def p_by_scale(result: Result) -> figure:
    """Draw the p-value of each component test of kernels; of all tests where there are none."""
    lines = across(result)
    log = result.models is not None
    reach = smallest_p(result)
    x = width_label(result) if log else "component test"
    plot = new_plot(x, "p-value", y_axis_type="log", y_range=(0.6 * reach, 1.3),
                    x_axis_type="log" if log else "linear")  # fmt: skip
    plot.hstrip(y0=[1e-300], y1=[reach], fill_color=REFERENCE, fill_alpha=0.6, line_color=None)
    for i, line in enumerate(lines):
        label: dict[str, Any] = {"legend_label": line.family} if len(lines) > 1 else {}
        dash, alpha = ("solid", 1.0) if i == 0 else ("dotted", 0.7)
        plot.line(line.x, line.p, color=INK, name="ink", line_dash=dash, alpha=alpha, **label)
        plot.scatter(line.x, line.p, color=INK, size=8, name="ink", alpha=alpha,
                     marker=MARKERS[i % len(MARKERS)], **label)  # fmt: skip
        if result.best_component_test in line.component_tests:
            at = line.component_tests.index(result.best_component_test)
            _ring(plot, line.x[at], line.p[at])
    if len(lines) > 1:  # above the plot, where it hides no point
        plot.legend.ncols, plot.legend.label_text_font_size = 2, "9pt"
        plot.legend.border_line_color, plot.legend.background_fill_alpha = None, 0
        plot.legend.label_text_color = INK
        plot.add_layout(plot.legend[0], "above")
    _ticks(plot, np.concatenate([line.x for line in lines]), log=log)
    return plot


def _ring(plot: figure, x: Any, y: Any) -> None:
    """Mark the most significant component test."""
    plot.scatter(x, y, size=16, fill_color=None, line_width=2, line_color=KERNELS[1])


def _ticks(plot: figure, x: np.ndarray, *, log: bool) -> None:
    if log:
        # Bokeh's own choice leaves most of a range that spans no power of ten without labels.
        ticks = [m * 10.0**e for e in range(-30, 31) for m in (1, 2, 5)]
        plot.xaxis.ticker = [tick for tick in ticks if x.min() / 2 <= tick <= x.max() * 2]
        plot.xaxis.formatter = BasicTickFormatter()
    else:
        plot.xaxis.ticker = x[:: -(-len(x) // 12)].tolist()


def p_by_family(result: Result) -> figure:
    """Draw the p-value of each family of component tests, and that of the whole test."""
    names, p = list(result.families), result.p_by_family
    reach = smallest_p(result)
    plot = new_plot(
        "p-value", "", x_axis_type="log", x_range=(0.6 * reach, 1.3),
        y_range=FactorRange(factors=names[::-1]),
    )  # fmt: skip
    plot.vstrip(x0=[1e-300], x1=[reach], fill_color=REFERENCE, fill_alpha=0.6, line_color=None)
    plot.vspan([result.p_value], color=KERNELS[1], line_dash="dashed")
    plot.segment(p, names, [1.0] * len(p), names, color=GREY, line_width=2, alpha=0.5)
    plot.scatter(p, names, color=INK, size=9, name="ink")
    at = names.index(result.decided.family)
    _ring(plot, [p[at]], [names[at]])
    return plot


def width_label(result: Result) -> str:
    """What a width is measured in; of a preprocessing of the user's own, nothing is known."""
    units = UNITS.get(str(result.preprocess))
    return f"kernel width, {units}" if units else "kernel width"


def smallest_p(result: Result) -> float:
    """Return the smallest p-value that is possible with these toys."""
    return float(min(result.p_by_component_test.min(), 1 / (result.n_toys + 1)))


def null_scores(result: Result, bins: int = 30) -> figure:
    """Draw the combined test statistic of the toys, and that of the data."""
    finite = result.null_combined_score[np.isfinite(result.null_combined_score)]
    plot = new_plot("combined test statistic", "toys per bin", y_range=DataRange1d(start=0))
    everything = np.append(finite, result.combined_score)
    low, high = everything.min(), everything.max()
    margin = 0.05 * (high - low) or 1.0
    counts, edges = np.histogram(finite, np.linspace(low - margin, high + margin, bins + 1))
    plot.quad(left=edges[:-1], right=edges[1:], top=counts, bottom=0, fill_color=REFERENCE,
              line_color=GREY, line_width=0.5)  # fmt: skip
    plot.vspan([result.combined_score], line_color=INK, line_width=2, name="ink")
    return plot


def score_distribution(score_counts: np.ndarray) -> figure:  # (1 + n, bins)
    """Draw data rows by anomaly score, over the toys."""
    counts, null = score_counts[0], score_counts[1:]
    edges = np.linspace(0, 1, len(counts) + 1)
    # The counts span orders of magnitude; empty bins are left out of a logarithmic axis.
    plot = new_plot("anomaly score c", "data rows per bin", y_axis_type="log", x_range=(0, 1),
                 y_range=(LEAST, 2.5 * max(counts.max(), 1)))  # fmt: skip
    if len(null):
        low, high = np.quantile(null, [0.025, 0.975], axis=0)
        plot.quad(left=edges[:-1], right=edges[1:], top=np.maximum(high, LEAST),
                  bottom=np.maximum(low, LEAST), fill_color=REFERENCE, fill_alpha=0.6,
                  line_color=None)  # fmt: skip
        mean = null.mean(0)
        some = mean > LEAST
        plot.segment(edges[:-1][some], mean[some], edges[1:][some], mean[some],
                     color=INK, line_width=1, name="ink")  # fmt: skip
    some = counts > 0
    x, counts = ((edges[:-1] + edges[1:]) / 2)[some], counts[some]
    spread = np.sqrt(counts)  # Poisson's, down to where the axis begins
    plot.segment(x, np.maximum(counts - spread, LEAST), x, counts + spread, color=INK, name="ink")
    plot.scatter(x, counts, color=INK, size=6, name="ink")
    return plot
