"""All rows in two planes, linked by one source, with the rows of a region marked on top."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import BoxZoomTool, ColumnDataSource, DataRange1d, HoverTool, ResetTool
from bokeh.models.annotations import BoxAnnotation
from bokeh.plotting import figure

from sparker.findings.result import Result
from sparker.plots import relative_sizes
from sparker.report.answers import ReportAnswers
from sparker.report.axes import Axis
from sparker.report.figures import GREY, INK, PICKED, new_plot
from sparker.report.kernels import IDLE, peaks
from sparker.report.rows import Shown

HEIGHT = 380
CROSS, CROSS_COLOUR = 6, "#7f9fbd"  # of a reference row: thin lines need more colour than bars
FIELDS = (("x", "y"), ("u", "v"))  # what the axes of the two planes draw
FAR = 3  # spans beyond the rows, where a bound that is not there is drawn


def planes(
    result: Result, shown: Shown, found: Sequence[Axis], pairs: Sequence[tuple[Axis, Axis]]
) -> dict[str, figure]:
    """The planes by name; other axes are drawn by copying them over x and y, or u and v."""
    by_key = {axis.key: axis for axis in found}
    drawn = dict(zip((f for fields in FIELDS for f in fields), sum(pairs, ()), strict=False))
    chosen = {**by_key, **drawn}

    def source(name: str, values: dict[str, np.ndarray], **more: Any) -> ColumnDataSource:
        own = {key: np.asarray(value).astype(np.float32) for key, value in values.items()}
        return ColumnDataSource(own | more, name=name)

    rows, n = shown.rows, len(shown.rows)
    data = source(
        "data",
        {key: axis.data[rows] for key, axis in chosen.items()},
        row=rows.astype(np.int32),
        picked=np.zeros(n, np.int8),
        probability=np.zeros(n, np.float32)
        if result.answers is None
        else result.answers.probability[rows].astype(np.float32),
    )
    sizes = CROSS * relative_sizes(result)[result.reference_rows]
    reference = source(
        "reference",
        {key: axis.reference[shown.reference] for key, axis in chosen.items()}
        | {"size": sizes[shown.reference]},
    )
    kernels = None
    if result.models is not None:
        some = np.flatnonzero(peaks(result) >= IDLE)
        nowhere = np.full(len(some), np.nan)
        kernels = source(
            "kernels",
            {
                key: nowhere if axis.kernels is None else axis.kernels[some]
                for key, axis in chosen.items()
            },
            marker=["triangle" if result.model.a[i] > 0 else "inverted_triangle" for i in some],
        )
    tips = [("row", "@row")]
    if result.answers is not None:
        tips.append(("probability", "@probability{0.00}"))
    plots = {}
    for i, ((x, y), (across, up)) in enumerate(zip(FIELDS, pairs, strict=False)):
        ranges = DataRange1d(), DataRange1d()
        plot = new_plot(across.label, up.label, height=HEIGHT, name=f"plane{i}",
                        x_range=ranges[0], y_range=ranges[1],
                        tools="pan,box_select,lasso_select,tap",
                        active_drag="box_select")  # fmt: skip
        behind = plot.scatter(x, y, source=reference, marker="x", size="size",
                              color=CROSS_COLOUR, alpha=0.7)  # fmt: skip
        points = plot.scatter(x, y, source=data, size=5, color=GREY, fill_alpha=0.7,
                              nonselection_alpha=0.12)  # fmt: skip
        plot.scatter(x, y, source=data, size="picked", color=PICKED, marker="square",
                     fill_alpha=0.8, nonselection_alpha=0.12)  # fmt: skip
        plot.add_layout(BoxAnnotation(name=f"box{i}", visible=False, fill_color=PICKED,
                                      fill_alpha=0.08, line_color=PICKED, line_dash="dashed",
                                      left=0, right=1, bottom=0, top=1))  # fmt: skip
        if kernels is not None:
            plot.scatter(x, y, source=kernels, marker="marker", size=13, fill_color=None,
                         line_color=INK, line_width=1.5, name="ink")  # fmt: skip
        # Kernels may sit far from all rows; the axes are those of the rows.
        ranges[0].renderers = ranges[1].renderers = [behind, points]
        plot.add_tools(HoverTool(renderers=[points], tooltips=tips), BoxZoomTool(), ResetTool())
        plots[f"plane{i}"] = plot
    return plots


def region(
    pair: tuple[Axis, Axis], shown: Shown, rows: np.ndarray, bounds: Mapping[str, list[float]]
) -> figure:
    """Draw the rows of both samples in two columns, and a region with its rows."""
    across, up = pair
    ranges = DataRange1d(), DataRange1d()
    plot = new_plot("", "", x_range=ranges[0], y_range=ranges[1])
    inside = np.isin(shown.rows, rows)

    def scatter(axes: tuple[np.ndarray, np.ndarray], some: np.ndarray, **style: Any) -> Any:
        x, y = (axis[some].astype(np.float32) for axis in axes)
        return plot.scatter(x, y, **style)

    data = across.data, up.data
    behind = scatter((across.reference, up.reference), shown.reference, marker="x", size=CROSS,
                     color=CROSS_COLOUR, alpha=0.7)  # fmt: skip
    points = scatter(data, shown.rows[~inside], size=4, color=GREY, fill_alpha=0.7)
    picked = scatter(data, shown.rows[inside], size=8, color=PICKED, marker="square",
                     fill_alpha=0.8)  # fmt: skip
    box = BoxAnnotation(fill_color=PICKED, fill_alpha=0.08, line_color=PICKED, line_dash="dashed")
    for axis, low, high in ((across, "left", "right"), (up, "bottom", "top")):
        box.update(**dict(zip((low, high), bounds.get(axis.key, ()), strict=False)))
    if bounds:
        plot.add_layout(box)
    ranges[0].renderers = ranges[1].renderers = [behind, points, picked]
    return plot


def boxes(answers: ReportAnswers, found: Sequence[Axis]) -> list[dict[str, list[float]]]:
    """For all rows, which have none, and for each region: its bounds by the keys of axes."""
    by_column = {axis.column: axis for axis in found if axis.column is not None}
    every: list[dict[str, list[float]]] = [{}]
    for place in answers.places:
        own = {}
        for one in place.conditions:
            axis = by_column.get(one.column)
            if axis is None:
                continue
            values = np.concatenate([axis.data, axis.reference])
            low, high = float(values.min()), float(values.max())
            far = FAR * (high - low)
            own[axis.key] = [
                low - far if one.above is None else one.above / axis.unit,
                high + far if one.at_most is None else one.at_most / axis.unit,
            ]
        every.append(own)
    return every
