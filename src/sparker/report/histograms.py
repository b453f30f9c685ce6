"""Numbers of the data rows beside those of the reference: the features, if few, and observables."""

from typing import Any, NamedTuple

import numpy as np
from bokeh.models import DataRange1d
from bokeh.plotting import figure

from sparker.findings.result import Result
from sparker.plots import REFERENCE
from sparker.report.axes import Plane, exponent, over
from sparker.report.cards import Claim, observed
from sparker.report.figures import colour, draw_bars, new_plot, points_with_bars
from sparker.report.rows import Extras

HISTOGRAMS = 12  # observables that are drawn
STEEP = 0.1  # of the highest bar: a logarithmic scale, if most bars are lower


class Beside(NamedTuple):
    """A number of each row of both samples, by its name."""

    name: str
    data: np.ndarray
    reference: np.ndarray


def beside(extras: Extras, plane: Plane, weight: np.ndarray) -> tuple[list[Beside], int]:
    """What to draw beside the reference, and how many observables there are to choose from.

    The features, if few; the observables, if many, in which ``weight`` makes the most difference.
    """
    features = [Beside(*feature) for feature in plane.features]
    own = {feature.name for feature in features}
    names = [name for name in extras.reference_observables if name not in own]
    chosen = names
    if len(names) > HISTOGRAMS:
        telling = [name for name, *_ in observed(extras, weight) if name in names]
        chosen = [name for name in names if name in telling[:HISTOGRAMS]]
    observables = [
        Beside(name, extras.observables[name], extras.reference_observables[name])
        for name in chosen
    ]
    return [*features, *observables], len(names)


def histogram(result: Result, of: Beside, kernel: int, claim: Claim) -> figure | None:
    """The data over the reference, and the rows that a kernel claims; none without any value."""
    weights = result.reference_counts
    known, beside_known = np.isfinite(of.data), np.isfinite(of.reference) & (weights > 0)
    if not known.any() or not beside_known.any():
        return None
    # Of both samples the rows with a value are compared, as if they lacked it equally often.
    reference, counting = of.reference[beside_known], weights[beside_known]
    counting = counting * (known.mean() * weights.sum() / counting.sum())
    claimed = of.data[known & claim.data]
    edges = _edges(
        np.concatenate([of.data[known], reference]),
        np.concatenate([np.ones(known.sum()), counting]),
        claimed,
    )

    def counts(which: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        inside = np.clip(which, edges[0], edges[-1])
        return np.histogram(inside, edges, weights=weights)[0].astype(float)

    shift = exponent(edges)
    shown = edges / 10.0**shift
    bars, points = counts(reference, counting), counts(of.data[known])
    least = 0.0
    scale: dict[str, Any] = {"y_range": DataRange1d(start=0)}
    if np.median(bars[bars > 0]) < STEEP * bars.max():
        least = float(np.clip(bars[bars > 0].min() / 2, 0.01, 0.5))
        top = 2 * max(bars.max(), points.max())
        scale = {"y_range": (least, top), "y_axis_type": "log"}
    plot = new_plot(over("value", shift), "rows per bin", **scale)
    draw_bars(plot, shown, bars, REFERENCE, bottom=least)
    draw_bars(plot, shown, counts(claimed), colour(kernel), bottom=least,
              hatch_pattern="right_diagonal_line", hatch_color="white")  # fmt: skip
    points_with_bars(plot, (shown[:-1] + shown[1:]) / 2, points, least)
    return plot


def _edges(
    values: np.ndarray, weights: np.ndarray, claimed: np.ndarray, bins: int = 30
) -> np.ndarray:
    """Equal bins; whole numbers lie in the middle of theirs.

    A few stray values must not squeeze all others into one bin: the last bins hold them. But the
    rows that a kernel claims are no strays, few as they may be.
    """
    low, high = np.quantile(values, [0.002, 0.998], method="inverted_cdf", weights=weights)
    if len(claimed):
        first, last = np.quantile(claimed, [0.05, 0.95], method="inverted_cdf")
        low, high = min(low, first), max(high, last)
    if np.all(values == np.round(values)) and max(-low, high) < 2**50:
        step = np.ceil((high - low + 1) / bins)
        n = int(np.ceil((high - low + 1) / step))
        return low - 0.5 + step * np.arange(n + 1)
    wide = high > low and np.all(np.diff(np.linspace(low, high, bins + 1)) > 0)
    return np.linspace(low, high if wide else low + max(1.0, abs(low)), bins + 1)
