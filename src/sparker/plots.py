"""Figures: each function draws into the axes it is given and returns what it drew."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from sparker.batch import Fit
from sparker.ensemble import Competition, Ensemble, log_ratio, softmax
from sparker.power import PowerStudy
from sparker.result import TestResult

DATA = "black"
REFERENCE = "#9db8d2"
KERNELS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # colour-blind safe
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def kernel_style(i: int) -> dict[str, object]:
    """Colour and dashes of kernel i, told apart in black and white too."""
    return {"color": KERNELS[i % len(KERNELS)], "linestyle": DASHES[i % len(DASHES)]}


def samples_1d(
    ax: Axes,
    reference: np.ndarray,
    data: np.ndarray,
    expected: float,
    bins: int = 60,
    reference_weights: ArrayLike | None = None,
) -> list[object]:
    """One feature: counts of the data as points with Poisson bars, over the expected counts."""
    reference, data = np.ravel(reference), np.ravel(data)
    both = np.concatenate([reference, data])
    edges = np.linspace(both.min(), both.max(), bins + 1).tolist()
    counts, _ = np.histogram(data, edges)
    own = np.ones(len(reference)) if reference_weights is None else np.asarray(reference_weights)
    weights = own * (expected / own.sum())
    _, _, expectation = ax.hist(
        reference, edges, weights=weights, color=REFERENCE, label="reference, scaled"
    )
    filled = counts > 0
    points = ax.errorbar(
        np.convolve(edges, [0.5, 0.5], "valid")[filled],
        counts[filled],
        np.sqrt(counts[filled]),
        fmt=".",
        color=DATA,
        label="data",
    )
    ax.set_yscale("log")
    ax.set_ylim(bottom=expected / len(reference) / 3)  # a third of an average row
    ax.set_ylabel(f"events / {edges[1] - edges[0]:.2g}")
    return [expectation, points]


def log_ratio_1d(
    ax: Axes, model: Ensemble, x: np.ndarray, competition: Competition = softmax
) -> list[object]:
    """One feature: the learned log-ratio along x, and where each kernel ended."""
    (curve,) = ax.plot(x, log_ratio(model, x[:, None], competition), color=DATA, lw=1)
    ax.axhline(0, color="grey", lw=0.5)
    marks: list[PathCollection] = [
        ax.scatter(mu, a, s=70, color=str(kernel_style(i)["color"]), marker=f"${i}$", zorder=3)
        for i, (mu, a) in enumerate(zip(model.mu[:, 0], model.a, strict=True))
    ]
    ax.set_ylabel("log-ratio f(x)")
    return [curve, *marks]


def trajectories(ax: Axes, fit: Fit, feature: int = 0) -> list[Line2D]:
    """Kernel locations in one feature against the width they were annealed to, wide to narrow.

    The more widths the fit was read off at the finer: see ``Schedule.every``.
    """
    mu, sigma = fit.models.mu, fit.models.sigma
    lines = [
        ax.plot(mu[:, i, feature], sigma, lw=1.2, **kernel_style(i), label=f"kernel {i}")[0]  # type: ignore[arg-type]
        for i in range(mu.shape[1])
    ]
    ax.set_yscale("log")
    ax.set_ylabel("width, annealed downwards")
    return lines


def null_distribution(ax: Axes, result: TestResult, bins: int = 30) -> list[object]:
    """The combined scores of the anomaly-free experiments, and where the data fall."""
    finite = result.null_score[np.isfinite(result.null_score)]
    edges = np.linspace(min(0, finite.min()), max(finite.max(), result.score) * 1.05, bins + 1)
    _, _, bars = ax.hist(
        finite, edges.tolist(), color=REFERENCE, label=f"{result.n_toys} anomaly-free experiments"
    )
    sigma = f"{result.significance} sigma"
    line = ax.axvline(
        result.score, color=DATA, lw=2, label=f"the data: p = {result.p_value:.2g}, {sigma}"
    )
    ax.set_xlabel("combined score, larger where the samples differ more")
    ax.set_ylabel("experiments")
    return [bars, line]


def p_across_widths(ax: Axes, result: TestResult) -> list[object]:
    """The p-value at each width, and that of all of them together."""
    (each,) = ax.plot(result.widths, result.p_by_width, "o-", color=DATA, label="at each width")
    together = ax.axhline(result.p_value, color=KERNELS[1], ls="--", label="combined")
    floor = ax.axhspan(0, 1 / (len(result.null_t) + 1), color=REFERENCE, alpha=0.5, lw=0)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(0.7 / (len(result.null_t) + 1), 1.2)
    ax.set_xlabel("width")
    ax.set_ylabel("p-value")
    return [each, together, floor]


def score_distribution(ax: Axes, result: TestResult) -> list[object]:
    """Data rows by anomaly score at the best width, over the band of anomaly-free experiments."""
    _need_kernels(result)
    counts = result.score_counts[result.best]
    null = result.null_score_counts[:, result.best]
    edges = np.linspace(0, 1, len(counts) + 1)
    mean, spread = null.mean(0), null.std(0)
    band = ax.stairs(
        mean + spread, edges, baseline=np.maximum(mean - spread, 0), fill=True, color=REFERENCE,
        label="anomaly-free, mean and spread",
    )  # fmt: skip
    filled = counts > 0
    (points,) = ax.plot(
        np.convolve(edges, [0.5, 0.5], "valid")[filled], counts[filled], "o", color=DATA, ms=4,
        label="data",
    )  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.3)
    ax.set_xlabel("anomaly score c")
    ax.set_ylabel("rows")
    return [band, points]


def activation_pattern(ax: Axes, result: TestResult, n_rows: int = 40) -> object:
    """Which kernels see the most anomalous rows: their components, row by row."""
    components, scores = _need_kernels(result)
    top = components[np.argsort(-scores)[:n_rows]]
    most = float(np.abs(top).max()) or 1.0
    image = ax.imshow(top.T, aspect="auto", cmap="RdBu_r", vmin=-most, vmax=most)
    ax.set_xlabel("most anomalous data rows, in order")
    ax.set_ylabel("kernel")
    ax.set_yticks(range(top.shape[1]))
    return image


def component_plane(ax: Axes, result: TestResult) -> list[object]:
    """Data and reference rows in the plane of the two leading components."""
    components, _ = _need_kernels(result)
    assert result.reference_components is not None
    leading = np.argsort(-np.abs(components).sum(0))[:2]
    x, y = leading[0], leading[-1]
    drawn = _two_clouds(ax, result, result.reference_components[:, [x, y]], components[:, [x, y]])
    ax.set_xlabel(f"component of kernel {x}")
    ax.set_ylabel(f"component of kernel {y}")
    return drawn


def principal_plane(ax: Axes, result: TestResult) -> list[object]:
    """Data and reference rows in the plane in which the reference varies most."""
    drawn = _two_clouds(ax, result, result.reference_plane, result.data_plane)
    ax.set_xlabel("first principal direction")
    ax.set_ylabel("second principal direction")
    return drawn


def component_against(
    ax: Axes, result: TestResult, observable: ArrayLike, kernel: int | None = None, name: str = ""
) -> PathCollection:
    """A kernel's component at each data row against a number the test did not see."""
    components, _ = _need_kernels(result)
    values = np.asarray(observable)
    if values.shape != (len(components),):
        raise ValueError(
            f"the observable must have shape ({len(components)},), one a data row, got "
            f"{values.shape}"
        )
    i = int(np.argmax(np.abs(components).sum(0))) if kernel is None else kernel
    ax.set_xlabel(name or "observable")
    ax.set_ylabel(f"component of kernel {i}")
    return ax.scatter(values, components[:, i], s=8, color=str(kernel_style(i)["color"]))


def power_curve(ax: Axes, study: PowerStudy) -> list[object]:
    """Power against the fraction of anomalies, with exact bars."""
    x = [point.fraction for point in study.points]
    power = np.array([point.power for point in study.points])
    low, high = np.array([point.interval for point in study.points]).T
    curve = ax.errorbar(x, power, [power - low, high - power], fmt="o-", color=DATA, capsize=3)
    level = ax.axhline(study.alpha, color="grey", ls=":", label=f"alpha = {study.alpha:g}")
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("fraction of anomalies in the data")
    ax.set_ylabel("power")
    ax.legend(fontsize="small")
    return [curve, level]


def overview(result: TestResult) -> Figure:
    """The verdict, how it depends on the width, and which rows it is about."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    if result.models is None:
        null, widths = figure.subplots(1, 2)
    else:
        (null, widths), (scores, plane) = figure.subplots(2, 2)
        score_distribution(scores, result)
        principal_plane(plane, result)
        for ax in (scores, plane):
            ax.legend(fontsize="small")
    null_distribution(null, result)
    p_across_widths(widths, result)
    for ax in (null, widths):
        ax.legend(fontsize="small")
    return figure


def relative_sizes(result: TestResult) -> np.ndarray:  # (N_R,)
    """Marker sizes of the reference rows, whose areas go by weight; 3 at most."""
    counts = result.reference_counts
    return np.minimum(np.sqrt(counts / counts.mean()), 3)


def _two_clouds(
    ax: Axes, result: TestResult, reference: np.ndarray, data: np.ndarray
) -> list[object]:
    area = 6 * relative_sizes(result) ** 2
    return [
        ax.scatter(reference[:, 0], reference[:, 1], s=area, color=REFERENCE, label="reference"),
        ax.scatter(data[:, 0], data[:, 1], s=8, color=DATA, marker="x", lw=0.7, label="data"),
    ]


def _need_kernels(result: TestResult) -> tuple[np.ndarray, np.ndarray]:
    if result.data_components is None or result.scores is None:
        raise ValueError("the statistic of this test fits no kernels: there is nothing to draw")
    return result.data_components, result.scores
