"""Figures of a fit: the two samples, what the kernels learned of them, and their way there."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from sparker.engine.ensemble import Competition, Ensemble, log_ratio, softmax
from sparker.engine.fit import Fit
from sparker.findings.result import Result
from sparker.plots.style import (
    DATA,
    REFERENCE,
    axes_or_new,
    bin_edges,
    kernel_style,
    label_widths,
    middles,
    plain,
)


def samples_1d(
    reference: ArrayLike,
    data: ArrayLike,
    expected: float,
    *,
    reference_weights: ArrayLike | None = None,
    bins: int = 60,
    name: str = "",
    ax: Axes | None = None,
) -> list[Artist]:
    """One feature: counts of the data as points with Poisson bars, over the expected counts."""
    ax = axes_or_new(ax)
    reference, data = np.ravel(reference), np.ravel(data)
    own = np.ones(len(reference)) if reference_weights is None else np.asarray(reference_weights)
    edges = bin_edges(np.concatenate([reference, data]), bins)
    counts, _ = np.histogram(data, edges)
    scaled, _ = np.histogram(reference, edges, weights=own * (expected / own.sum()))
    expectation = ax.stairs(scaled, edges, fill=True, color=REFERENCE, label="reference, scaled")
    some = counts > 0
    points = ax.errorbar(
        middles(edges)[some], counts[some], np.sqrt(counts[some]), fmt=".", color=DATA,
        label="data",
    )  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(bottom=expected / len(reference) / 3)  # a third of an average row
    ax.set_xlabel(plain(name) or "feature")
    ax.set_ylabel(f"events / {edges[1] - edges[0]:.2g}")
    ax.legend(fontsize="small")
    return [expectation, *points.get_children()]


def log_ratio_1d(
    model: Ensemble,
    x: np.ndarray,
    competition: Competition = softmax,
    *,
    name: str = "",
    ax: Axes | None = None,
) -> list[Artist]:
    """One feature: the learned log-ratio along x, and where each kernel ended, by its number."""
    ax = axes_or_new(ax)
    (curve,) = ax.plot(x, log_ratio(model, x[:, None], competition), color=DATA, lw=1)
    ax.axhline(0, color="grey", lw=0.5)
    marks = [
        ax.scatter(mu, a, s=70, color=kernel_style(i)["color"], marker=f"${i}$", zorder=3)
        for i, (mu, a) in enumerate(zip(model.mu[:, 0], model.a, strict=True))
    ]
    ax.set_xlabel(plain(name) or "feature")
    ax.set_ylabel("log-ratio f(x)")
    return [curve, *marks]


def trajectories(
    fit: Fit | Result, feature: int = 0, *, name: str = "", ax: Axes | None = None
) -> list[Artist]:
    """Kernel locations in one feature at every width, wide to narrow.

    The feature is one of the fit's, which are decorrelated as a rule. The more widths the fit was
    read off at the finer: see ``Schedule.every``. Markers stand where kernels end.
    """
    if fit.models is None:
        raise ValueError("the statistic of this test fits no kernels: there is nothing to draw")
    mu, sigma = np.asarray(fit.models.mu), np.asarray(fit.models.sigma)
    if mu.ndim != 3:
        raise ValueError(f"this holds {len(mu)} fits; choose one first, with .toy(i)")
    if not 0 <= feature < mu.shape[2]:
        raise ValueError(f"feature must lie between 0 and {mu.shape[2] - 1}, got {feature}")
    ax = axes_or_new(ax)
    lines = [
        ax.plot(mu[:, i, feature], sigma, lw=1.2, ms=5, markevery=[-1], **kernel_style(i),
                label=f"kernel {i}")[0]
        for i in range(mu.shape[1])
    ]  # fmt: skip
    ax.set_yscale("log")
    label_widths(ax.yaxis, sigma)
    ax.set_xlabel(plain(name) or f"feature {feature} of the fit")
    ax.set_ylabel("width, narrower downwards")
    ax.legend(fontsize="small", ncols=1 + len(lines) // 9, handlelength=3)
    return list(lines)
