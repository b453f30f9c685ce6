"""Figures of the rows: anomaly scores, kernel components, and principal coordinates."""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from sparker.findings.result import Result
from sparker.plots.style import (
    DATA,
    KERNELS,
    REFERENCE,
    axes_or_new,
    kernel_style,
    legend_above,
    middles,
    plain,
)

ONE, TWO = "first principal coordinate", "second principal coordinate"
TOP = 20  # rows that are ringed


def score_distribution(result: Result, *, ax: Axes | None = None) -> list[Artist]:
    """Draw data rows by anomaly score at the width shown, over mean and spread of the toys."""
    if result.score_counts is None:
        raise ValueError("the statistic of this test fits no kernels: there is nothing to draw")
    ax = axes_or_new(ax)
    counts, null = result.score_counts[0], result.score_counts[1:]
    edges = np.linspace(0, 1, len(counts) + 1)
    some = counts > 0
    (points,) = ax.plot(
        middles(edges)[some], counts[some], "o", color=DATA, ms=4, zorder=3, label="data"
    )
    drawn: list[Artist] = [points]
    if len(null):
        mean, spread = null.mean(0), null.std(0)
        drawn += [
            ax.stairs(mean + spread, edges, baseline=np.maximum(mean - spread, 0), fill=True,
                      color=REFERENCE, label="spread of toys"),
            ax.stairs(mean, edges, baseline=None, color="grey", ls="--", label="mean of toys"),
        ]  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.3)
    ax.set_xlabel("anomaly score c")
    ax.set_ylabel("data rows")
    legend_above(ax)
    return drawn


def activation_pattern(result: Result, n_rows: int = 40, *, ax: Axes | None = None) -> list[Artist]:
    """Draw the kernel components of the most anomalous rows.

    Dashes mark what is negative, which a print in grey would not show.
    """
    components = _need_kernels(result)
    ax = axes_or_new(ax)
    top = components[_top(result, n_rows)].T  # (M, rows)
    most = float(np.abs(top[np.isfinite(top)]).max(initial=0)) or 1.0
    n_kernels, n_rows = top.shape
    image = ax.imshow(
        top, aspect="auto", cmap="RdBu_r", vmin=-most, vmax=most, interpolation="nearest",
        extent=(0.5, n_rows + 0.5, n_kernels - 0.5, -0.5),
    )  # fmt: skip
    kernel, row = np.nonzero(top < -most / 20)
    dashes = ax.scatter(row + 1, kernel, s=16, marker="_", color=DATA, lw=1)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("data rows, the most anomalous first")
    ax.set_ylabel("kernel")
    ax.figure.colorbar(image, ax=ax, label="component of the log-ratio")
    return [image, dashes]


def component_plane(
    result: Result,
    kernels: tuple[int, int] | None = None,
    *,
    n_rows: int = TOP,
    ax: Axes | None = None,
) -> list[Artist]:
    """Data and reference rows in the plane of the two leading components, the top rows ringed.

    A single kernel's component stands against the first principal coordinate.
    """
    components = _need_kernels(result)
    assert result.reference_components is not None
    x, *other = _checked(components, kernels or _leading(result))
    label = f"component of kernel {other[0]}" if other else ONE
    reference, data = (
        np.column_stack([rows[:, x], rows[:, other[0]] if other else plane[:, 0]])
        for rows, plane in (
            (result.reference_components, result.reference_plane),
            (components, result.data_plane),
        )
    )
    return _clouds(ax, result, reference, data, n_rows, f"component of kernel {x}", label)


def principal_plane(result: Result, *, n_rows: int = TOP, ax: Axes | None = None) -> list[Artist]:
    """Data and reference rows in the plane in which the reference varies most, top rows ringed.

    A single feature has no plane: the log-ratio f stands against it.
    """
    reference, data, label = result.reference_plane, result.data_plane, TWO
    if result.data_log_ratio is not None and not np.any(reference[:, 1]):
        assert result.reference_log_ratio is not None
        label = "log-ratio f"
        reference = np.column_stack([reference[:, 0], result.reference_log_ratio])
        data = np.column_stack([data[:, 0], result.data_log_ratio])
    return _clouds(ax, result, reference, data, n_rows, ONE, label)


def planes(
    result: Result, *, n_rows: int = TOP, axes: Sequence[Axes] | None = None
) -> list[Artist]:
    """The plane of the two leading components beside that of the principal coordinates."""
    _need_kernels(result)
    if axes is None:
        axes = Figure(figsize=(10, 4.5), layout="constrained").subplots(1, 2)
    left, right = axes
    return [
        *component_plane(result, n_rows=n_rows, ax=left),
        *principal_plane(result, n_rows=n_rows, ax=right),
    ]


def component_against(
    result: Result,
    observable: ArrayLike,
    kernel: int | None = None,
    *,
    name: str = "",
    ax: Axes | None = None,
) -> list[Artist]:
    """Draw a kernel's component at each data row against a number that was not tested."""
    components = _need_kernels(result)
    n_data = len(components)
    try:
        values = np.asarray(observable, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the observable must be numbers: {error}") from error
    if values.shape != (n_data,):
        raise ValueError(
            f"the observable must have shape ({n_data},), one a data row, got {values.shape}"
        )
    (i,) = _checked(components, _leading(result)[:1] if kernel is None else [kernel])
    ax = axes_or_new(ax)
    ax.axhline(0, color="grey", lw=0.5)
    ax.set_xlabel(plain(name) or "observable")
    ax.set_ylabel(f"component of kernel {i}")
    known = np.isfinite(values)
    style = kernel_style(i)
    return [
        ax.scatter(values[known], components[known, i], s=10, color=style["color"],
                   marker=style["marker"], rasterized=True)
    ]  # fmt: skip


def relative_sizes(result: Result) -> np.ndarray:  # (N_R,)
    """Marker sizes of the reference rows, whose areas go by weight; 3 at most."""
    counts = result.reference_counts
    return np.minimum(np.sqrt(counts / counts.mean()), 3)


def _clouds(
    ax: Axes | None,
    result: Result,
    reference: np.ndarray,  # (N_R, 2)
    data: np.ndarray,  # (N_D, 2)
    n_rows: int,
    *labels: str,
) -> list[Artist]:
    """The rows of both samples, and rings around the most anomalous ones."""
    ax = axes_or_new(ax)
    (x_ref, y_ref), (x, y) = reference.T, data.T
    area = 6 * relative_sizes(result) ** 2
    drawn: list[Artist] = [
        ax.scatter(x_ref, y_ref, s=area, color=REFERENCE, rasterized=True, label="reference"),
        ax.scatter(x, y, s=8, color=DATA, marker="x", lw=0.7, rasterized=True, label="data"),
    ]
    top = _top(result, n_rows)
    if len(top):
        drawn.append(
            ax.scatter(x[top], y[top], s=45, facecolors="none", edgecolors=KERNELS[1], lw=1,
                       label=f"{len(top)} most anomalous")
        )  # fmt: skip
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    legend_above(ax)
    return drawn


def _leading(result: Result) -> list[int]:
    """Return the kernel with the largest components of the top rows; of the others, of all rows.

    By all rows alone, two wide kernels that cancel each other would hide a narrow one.
    """
    sizes = np.abs(_need_kernels(result))
    first = int(np.argmax(sizes[_top(result, TOP)].sum(0)))
    others = [i for i in np.argsort(-sizes.sum(0), kind="stable").tolist() if i != first]
    return [first, *others[:1]]


def _top(result: Result, n: int) -> np.ndarray:
    """The most anomalous rows: by the answers, or else by f; none where there is neither."""
    known = result.answers is not None or result.data_log_ratio is not None
    return result.ranking[:n] if known else np.empty(0, int)


def _checked(components: np.ndarray, kernels: Sequence[int]) -> Sequence[int]:
    n_kernels = components.shape[1]
    for i in kernels:
        if not 0 <= i < n_kernels:
            raise ValueError(f"kernels have the numbers 0 to {n_kernels - 1}, got {i}")
    return kernels


def _need_kernels(result: Result) -> np.ndarray:
    if result.data_components is None:
        raise ValueError("the statistic of this test fits no kernels: there is nothing to draw")
    return result.data_components
