"""What the figures share: colours, dashes and markers, axes, and labels made of names."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter

DATA = "black"
REFERENCE = "#9db8d2"
"""The colour of the reference."""
KERNELS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of kernels, and of what else stands side by side; safe for the colour-blind."""
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = "osD^vPX"  # as many as make 35 pairs with the dashes
LONGEST = 60  # characters of a name


def kernel_style(i: int) -> dict[str, Any]:
    """Colour, dashes and marker of kernel i, distinct in black and white, too."""
    return {
        "color": KERNELS[i % len(KERNELS)],
        "linestyle": DASHES[i % len(DASHES)],
        "marker": MARKERS[i % len(MARKERS)],
    }


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure that pyplot does not know."""
    return Figure(layout="constrained").subplots() if ax is None else ax


def bin_edges(values: np.ndarray, bins: int) -> np.ndarray:  # (bins + 1,)
    """Bins over all finite values; around them where they are all the same."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    margin = 0.0 if high > low else max(1.0, abs(low)) / 2
    return np.linspace(low - margin, high + margin, bins + 1)


def middles(edges: np.ndarray) -> np.ndarray:  # (bins,)
    """Where to put the points of a histogram."""
    return (edges[:-1] + edges[1:]) / 2


def label_widths(axis: Axis, widths: np.ndarray) -> None:
    """Numbers that do not overlap on a logarithmic axis, and at least one."""
    low, high = np.min(widths), np.max(widths)
    if high < 10 * low:  # may hold no power of ten
        ticks = np.geomspace(low, high, 3 if high > low else 1)
        axis.set_major_locator(FixedLocator(ticks.tolist()))
    else:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
    axis.set_major_formatter("{x:.3g}")
    axis.set_minor_formatter(NullFormatter())


def legend_above(ax: Axes) -> None:
    """A legend that hides nothing, and need not look for a place among many points."""
    ax.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)


def plain(name: str) -> str:
    """The user's words as a label: in one line of some length, and no formula."""
    text = "".join(c if c.isprintable() else " " for c in name).strip()
    if len(text) > LONGEST:
        text = text[: LONGEST - 3] + "..."
    # A legend leaves out what begins with an underscore.
    return (" " * text.startswith("_") + text).replace("$", r"\$")
