"""Figures of the decision: the toys, the component tests, and the power."""

from collections.abc import Mapping

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from sparker.findings.component_tests import across
from sparker.findings.power import PowerStudy
from sparker.findings.result import Result
from sparker.plots.style import (
    DATA,
    KERNELS,
    MARKERS,
    REFERENCE,
    axes_or_new,
    bin_edges,
    kernel_style,
    label_widths,
    plain,
)


def null_distribution(result: Result, *, bins: int = 30, ax: Axes | None = None) -> list[Artist]:
    """Draw the combined test statistic of the toys, and that of the data."""
    ax = axes_or_new(ax)
    finite = result.null_combined_score[np.isfinite(result.null_combined_score)]
    counts, edges = np.histogram(finite, bin_edges(np.append(finite, result.combined_score), bins))
    failed = len(result.null_combined_score) - len(finite)
    label = f"{len(finite)} toys"
    bars = ax.stairs(
        counts, edges, fill=True, color=REFERENCE,
        label=f"{label}, {failed} more without a finite statistic" if failed else label,
    )  # fmt: skip
    label = f"the data: p = {result.p_value:.2g}"
    if np.isfinite(result.significance):
        label += f", {result.significance:.2f} sigma"
    line = ax.axvline(result.combined_score, color=DATA, lw=2, label=label)
    ax.set_xlabel("combined test statistic, larger where the samples differ more")
    ax.set_ylabel("toys per bin")
    ax.set_ylim(0, 1.4 * max(counts.max(), 1))  # the legend stands above the bars, beside the line
    far = result.combined_score > edges.mean()
    ax.legend(fontsize="small", loc="upper left" if far else "upper right")
    return [bars, line]


def p_across_widths(result: Result, *, ax: Axes | None = None) -> list[Artist]:
    """Draw the p-value of each component test of kernels by width, and that of the whole test.

    Of a statistic without kernels, the p-values of all its component tests, by their numbers.
    """
    ax = axes_or_new(ax)
    lines = across(result)
    each = [
        ax.plot(
            line.x, line.p, marker=MARKERS[i % len(MARKERS)], ls="-" if i == 0 else ":",
            color=DATA, alpha=1 if i == 0 else 0.6, lw=1.8 if i == 0 else 1,
            label=line.family if len(lines) > 1 else "component tests",
        )[0]
        for i, line in enumerate(lines)
    ]  # fmt: skip
    drawn: list[Artist] = [*each]
    for line in lines:
        if result.best_component_test in line.component_tests:
            at = line.component_tests.index(result.best_component_test)
            drawn += ax.plot(
                line.x[at], line.p[at], "o", ms=13, mfc="none", color=DATA, ls="none",
                label="most significant",
            )  # fmt: skip
    drawn.append(ax.axhline(result.p_value, color=KERNELS[1], ls="--", label="whole test"))
    least = min(1 / (result.n_toys + 1), min(line.p.min() for line in lines))
    floor = ax.axhspan(
        least / 10, least, color=REFERENCE, alpha=0.5, lw=0,
        label=f"not possible with {result.n_toys} toys",
    )  # fmt: skip
    if result.models is None:  # numbers of component tests then, from 0 on
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        ax.set_xscale("log")
        label_widths(ax.xaxis, result.widths)
    ax.set_yscale("log")
    ax.set_ylim(0.6 * least, 1.3)
    ax.set_xlabel("component test" if result.models is None else "kernel width")
    ax.set_ylabel("p-value")
    ax.legend(fontsize="small")
    return [*drawn, floor]


def p_by_family(result: Result, *, ax: Axes | None = None) -> list[Artist]:
    """Draw the p-value of each family of component tests, and that of the whole test."""
    ax = axes_or_new(ax)
    names, p = result.families, result.p_by_family
    y = np.arange(len(names))
    least = min(1 / (result.n_toys + 1), p.min())
    stems = ax.hlines(y, p, 1, color=REFERENCE, lw=4)
    (dots,) = ax.plot(p, y, "o", color=DATA, label="each family")
    together = ax.axvline(result.p_value, color=KERNELS[1], ls="--", label="whole test")
    ax.set_xscale("log")
    ax.set_xlim(0.6 * least, 1.3)
    ax.set_yticks(y, names)
    ax.invert_yaxis()
    ax.set_xlabel("p-value")
    ax.set_ylabel("component tests")
    ax.legend(fontsize="small")
    return [stems, dots, together]


def power_curve(
    study: PowerStudy | Mapping[str, PowerStudy], *, ax: Axes | None = None
) -> list[Artist]:
    """Draw power by the fraction of anomalies, with exact bars; of several studies by name."""
    ax = axes_or_new(ax)
    studies = {"power": study} if isinstance(study, PowerStudy) else study
    drawn: list[Artist] = []
    for i, (name, one) in enumerate(studies.items()):
        points = sorted(one.points, key=lambda point: point.fraction)
        power = np.array([point.power for point in points])
        low, high = np.array([point.interval for point in points]).T
        style = kernel_style(i) if len(studies) > 1 else {"color": DATA, "marker": "o"}
        bars = ax.errorbar(
            [point.fraction for point in points], power,
            [np.maximum(power - low, 0), np.maximum(high - power, 0)], capsize=3, ms=5,
            label=f"{plain(name)}, 95 % intervals", **style,
        )  # fmt: skip
        drawn += bars.get_children()
    for alpha in sorted({one.alpha for one in studies.values()}):
        drawn.append(ax.axhline(alpha, color="grey", ls=":", label=f"alpha = {alpha:g}"))
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("fraction of anomalies in the data")
    ax.set_ylabel("power")
    ax.legend(fontsize="small", handlelength=3)
    return drawn
