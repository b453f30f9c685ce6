"""Figures: each function draws into the axes it is given and returns what it drew."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D

from sparker.batch import Fit
from sparker.ensemble import Competition, Ensemble, log_ratio, softmax
from sparker.result import TestResult

DATA = "black"
REFERENCE = "#9db8d2"
KERNELS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # colour-blind safe
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def kernel_style(i: int) -> dict[str, object]:
    """Colour and dashes of kernel i, told apart in black and white too."""
    return {"color": KERNELS[i % len(KERNELS)], "linestyle": DASHES[i % len(DASHES)]}


def samples_1d(
    ax: Axes, reference: np.ndarray, data: np.ndarray, expected: float, bins: int = 60
) -> list[object]:
    """One feature: counts of the data as points with Poisson bars, over the expected counts."""
    reference, data = np.ravel(reference), np.ravel(data)
    both = np.concatenate([reference, data])
    edges = np.linspace(both.min(), both.max(), bins + 1).tolist()
    counts, _ = np.histogram(data, edges)
    weights = np.full(len(reference), expected / len(reference))
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
    ax.set_ylim(bottom=expected / len(reference) / 3)
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
