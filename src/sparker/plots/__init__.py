"""Figures: each function draws into the axes it is given, or new ones, and returns what it drew.

May import: findings and what findings may import.

New axes belong to a figure of their own, which the artists know: ``drawn[0].figure.savefig(...)``.
Nothing here needs pyplot or a screen. What overlaps differs in dashes, markers or hatches too, not
in colour alone.
"""

from matplotlib.figure import Figure

from sparker.findings.result import Result
from sparker.plots.kernels import log_ratio_1d, samples_1d, trajectories
from sparker.plots.rows import (
    activation_pattern,
    component_against,
    component_plane,
    planes,
    principal_plane,
    relative_sizes,
    score_distribution,
)
from sparker.plots.style import KERNELS, REFERENCE
from sparker.plots.trend import trend, wealth
from sparker.plots.verdict import null_distribution, p_across_widths, p_by_family, power_curve

__all__ = [
    "KERNELS",
    "REFERENCE",
    "activation_pattern",
    "component_against",
    "component_plane",
    "log_ratio_1d",
    "null_distribution",
    "overview",
    "p_across_widths",
    "p_by_family",
    "planes",
    "power_curve",
    "principal_plane",
    "relative_sizes",
    "samples_1d",
    "score_distribution",
    "trajectories",
    "trend",
    "wealth",
]


def overview(result: Result) -> Figure:
    """Draw the decision, the component tests and the most anomalous rows."""
    if result.models is None:
        figure = Figure(figsize=(10, 4), layout="constrained")
        null, widths = figure.subplots(1, 2)
    else:
        figure = Figure(figsize=(14, 8), layout="constrained")
        (null, widths, scores), (left, right, pattern) = figure.subplots(2, 3)
        score_distribution(result, ax=scores)
        planes(result, axes=(left, right))
        activation_pattern(result, ax=pattern)
    null_distribution(result, ax=null)
    p_across_widths(result, ax=widths)
    return figure
