"""The interactive plots, as one Bokeh document.

No string of the user's enters it: names and captions stand in the page around the plots, where they
are escaped. Bokeh would typeset a label like ``$$x$$`` with a library it loads from the internet.
Colours for the dark theme are set in the page; renderers named ``ink`` are drawn in the text's.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.document import Document
from bokeh.models import (
    BasicTickFormatter,
    BoxZoomTool,
    ColumnDataSource,
    DataRange1d,
    HoverTool,
    ResetTool,
)
from bokeh.plotting import figure

from sparker.plots import KERNELS, REFERENCE, relative_sizes
from sparker.report.cards import claimed_rows
from sparker.report.rows import Extras, Shown
from sparker.result import TestResult

INK = "#1f2328"
HEIGHT = 260
PLANE_HEIGHT = 380
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star", "plus")
SYMBOLS = "\u25cf\u25a0\u25b2\u25c6\u25bc\u2b22\u2605\u271a"  # the same, in text
UNCLAIMED = "#808890"
HISTOGRAMS = 12  # observables that are drawn


def colour(kernel: int) -> str:
    """The colour of a kernel, wherever it appears."""
    return KERNELS[kernel % len(KERNELS)]


def symbol(kernel: int) -> str:
    """Its marker, as a character."""
    return SYMBOLS[kernel % len(SYMBOLS)]


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


def _plot(x: str, y: str, *, height: int = HEIGHT, tools: str = "", **options: Any) -> figure:
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
    plot.grid.grid_line_color = UNCLAIMED
    plot.grid.grid_line_alpha = 0.25
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_color = plot.axis.major_label_text_color = INK
    return plot


def across_widths(result: TestResult) -> dict[str, figure]:
    """P-value and statistic against the width; of a statistic without widths, by its columns."""
    widths = np.asarray(result.widths, float)
    log = result.models is not None
    x_axis: dict[str, Any] = {"x_axis_type": "log" if log else "linear"}
    x = "kernel width" if log else "column of the statistic"

    floor = 0.6 * min(result.p_by_width.min(), 1 / (result.n_toys + 1))
    p = _plot(x, "p-value", y_axis_type="log", y_range=(floor, 1.3), **x_axis)
    p.line(widths, result.p_by_width, color=INK, name="ink")
    p.scatter(widths, result.p_by_width, color=INK, size=8, name="ink")
    best = result.best
    p.scatter(widths[best], result.p_by_width[best], size=16, fill_color=None, line_width=2,
              line_color=KERNELS[1])  # fmt: skip

    null = np.where(np.isfinite(result.null_t), result.null_t, np.nan)
    null = null[~np.all(np.isnan(null), axis=1)]
    t = _plot(x, "statistic t", **x_axis)
    if len(null):
        low, middle, high = np.nanquantile(null, [0.025, 0.5, 0.975], axis=0)
        t.varea(widths, low, high, color=REFERENCE, alpha=0.6)
        t.line(widths, middle, color=INK, line_dash="dashed", name="ink")
    t.line(widths, result.t, color=INK, name="ink")
    t.scatter(widths, result.t, color=INK, size=8, name="ink")
    if log:
        # Bokeh's own choice leaves most of a range that spans no power of ten without labels.
        ticks = [m * 10.0**e for e in range(-30, 31) for m in (1, 2, 5)]
        for plot in (p, t):
            plot.xaxis.ticker = [x for x in ticks if widths.min() / 2 <= x <= widths.max() * 2]
            plot.xaxis.formatter = BasicTickFormatter()
    return {"p_by_width": p, "t_by_width": t}


def null_scores(result: TestResult, bins: int = 30) -> figure:
    """The combined scores of the anomaly-free experiments, and the data's."""
    finite = result.null_score[np.isfinite(result.null_score)]
    plot = _plot("combined score", "experiments", y_range=DataRange1d(start=0))
    everything = np.append(finite, result.score)
    low, high = everything.min(), everything.max()
    margin = 0.05 * (high - low) or 1.0
    counts, edges = np.histogram(finite, np.linspace(low - margin, high + margin, bins + 1))
    _bars(plot, edges, counts, REFERENCE)
    plot.vspan([result.score], line_color=INK, line_width=2, name="ink")
    return plot


def _bars(plot: figure, edges: np.ndarray, counts: np.ndarray, fill: str, **options: Any) -> None:
    plot.quad(left=edges[:-1], right=edges[1:], top=counts, bottom=0, fill_color=fill,
              line_color=UNCLAIMED, line_width=0.5, **options)  # fmt: skip


def _points_with_bars(plot: figure, x: np.ndarray, counts: np.ndarray) -> None:
    some = counts > 0
    x, counts = x[some], counts[some]
    spread = np.sqrt(counts)
    plot.segment(x, counts - spread, x, counts + spread, color=INK, name="ink")
    plot.scatter(x, counts, color=INK, size=6, name="ink")


def score_distribution(result: TestResult) -> figure:
    """Data rows by anomaly score, over what anomaly-free experiments have."""
    counts = np.asarray(result.score_counts[result.best], float)
    null = np.asarray(result.null_score_counts[:, result.best], float)
    null = null[np.all(np.isfinite(result.null_t), axis=1)]
    edges = np.linspace(0, 1, len(counts) + 1)
    # The counts span orders of magnitude; empty bins are left out of a logarithmic axis.
    plot = _plot("anomaly score c", "data rows", y_axis_type="log", x_range=(0, 1),
                 y_range=(0.3, 2.5 * max(counts.max(), 1)))  # fmt: skip
    if len(null):
        low, high = np.quantile(null, [0.025, 0.975], axis=0)
        plot.quad(left=edges[:-1], right=edges[1:], top=np.maximum(high, 0.3),
                  bottom=np.maximum(low, 0.3), fill_color=REFERENCE, fill_alpha=0.6,
                  line_color=None)  # fmt: skip
        mean = null.mean(0)
        some = mean > 0.3
        plot.segment(edges[:-1][some], mean[some], edges[1:][some], mean[some],
                     color=INK, line_width=1, name="ink")  # fmt: skip
    _points_with_bars(plot, (edges[:-1] + edges[1:]) / 2, counts)
    return plot


def planes(result: TestResult, shown: Shown) -> dict[str, figure]:
    """The two leading components and the plane of largest variance, linked by one source."""
    data, reference = result.data_components, result.reference_components
    assert data is not None
    assert reference is not None
    claimed = [claimed_rows(result, kernel)[0] for kernel in range(data.shape[1])]
    rows, leading = shown.rows, shown.leading[shown.rows]
    is_claimed = np.array([claimed[k][row] for row, k in zip(rows, leading, strict=True)])
    one, two, only = "first principal coordinate", "second principal coordinate", shown.listed[0]
    alone = len(shown.listed) == 1
    flat = not np.any(result.reference_plane[:, 1])  # one feature only: its score against it

    def coordinates(components: np.ndarray, plane: np.ndarray) -> dict[str, np.ndarray]:
        # The page draws other kernels' components by copying them over u and v.
        found = {f"k{kernel}": components[:, kernel] for kernel in shown.listed}
        found["u"] = components[:, only]
        found["v"] = plane[:, 0] if alone else components[:, shown.listed[1]]
        found["x"], found["y"] = plane[:, 0], components.sum(1) if flat else plane[:, 1]
        return {name: values.astype(np.float32) for name, values in found.items()}

    everything = coordinates(data, result.data_plane)
    source = ColumnDataSource(
        {name: values[rows] for name, values in everything.items()}
        | {
            "row": rows.astype(np.int32),
            "f": data[rows].sum(1).astype(np.float32),
            "kernel": leading.astype(np.int32),
            "marker": [MARKERS[k % len(MARKERS)] if on else "circle"
                       for k, on in zip(leading, is_claimed, strict=True)],
            "colour": [colour(k) if on else UNCLAIMED
                       for k, on in zip(leading, is_claimed, strict=True)],
            "size": np.where(is_claimed, 9, 4).astype(np.int8),
        },
        name="data",
    )  # fmt: skip
    beside = coordinates(reference, result.reference_plane)
    beside["size"] = 5 * relative_sizes(result).astype(np.float32)
    behind = ColumnDataSource(
        {name: values[shown.reference] for name, values in beside.items()}, name="reference"
    )
    labels = {
        "components": (f"f of kernel {only}", one if alone else f"f of kernel {shown.listed[1]}"),
        "plane": (one, "f" if flat else two),
    }
    plots = {}
    for name, (x, y) in {"components": ("u", "v"), "plane": ("x", "y")}.items():
        plot = _plot(*labels[name], height=PLANE_HEIGHT, tools="pan,box_select,lasso_select,tap",
                     active_drag="box_select", name=name)  # fmt: skip
        plot.scatter(x, y, source=behind, marker="x", size="size", color=REFERENCE, alpha=0.6)
        points = plot.scatter(x, y, source=source, marker="marker", size="size", color="colour",
                              fill_alpha=0.7, nonselection_alpha=0.12)  # fmt: skip
        plot.add_tools(
            HoverTool(
                renderers=[points],
                tooltips=[("row", "@row"), ("f", "@f{0.00}"), ("kernel", "@kernel")],
            ),
            BoxZoomTool(),
            ResetTool(),
        )
        plots[name] = plot
    return plots


def observable_histograms(
    result: TestResult, extras: Extras, kernel: int, bins: int = 30
) -> list[tuple[str, figure]]:
    """Observables of the data over the reference's, and of the rows that a kernel claims."""
    claimed = claimed_rows(result, kernel)[0]
    weights = result.reference_counts
    found = []
    for name, beside in list(extras.reference_observables.items())[:HISTOGRAMS]:
        values = extras.observables[name]
        known, beside_known = np.isfinite(values), np.isfinite(beside) & (weights > 0)
        if not known.any() or not beside_known.any():
            continue
        # Of both samples the rows with a value are compared, as if they lacked it equally often.
        reference, counting = beside[beside_known], weights[beside_known]
        counting = counting * (known.mean() * weights.sum() / counting.sum())
        # A few stray values must not squeeze all others into one bin: the last bins hold them.
        low, high = np.quantile(
            np.concatenate([values[known], reference]),
            [0.002, 0.998],
            method="inverted_cdf",
            weights=np.concatenate([np.ones(known.sum()), counting]),
        )
        edges = np.linspace(low, high if high > low else low + 1, bins + 1)

        def counts(
            which: np.ndarray, weights: np.ndarray | None = None, edges: np.ndarray = edges
        ) -> np.ndarray:
            inside = np.clip(which, edges[0], edges[-1])
            return np.histogram(inside, edges, weights=weights)[0].astype(float)

        plot = _plot("value", "rows", y_range=DataRange1d(start=0))
        _bars(plot, edges, counts(reference, counting), REFERENCE)
        _bars(plot, edges, counts(values[known & claimed]), colour(kernel),
              hatch_pattern="right_diagonal_line", hatch_color="white")  # fmt: skip
        _points_with_bars(plot, (edges[:-1] + edges[1:]) / 2, counts(values[known]))
        found.append((name, plot))
    return found
