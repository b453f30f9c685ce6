"""The figure of a monitor: batch after batch."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from sparker.plots.style import DATA, KERNELS, axes_or_new, legend_above


def trend(
    looks: Iterable[Any],
    *,
    alpha: float | None = None,
    n_planned: int | None = None,
    first: int = 1,
    ax: Axes | None = None,
) -> list[Artist]:
    """The p-values of batches in the order given, which were alarms, and which could not be tested.

    ``looks`` are those of ``Monitor.watch``, or the lines of ``sparker watch`` as dictionaries.
    ``alpha`` is the level of all ``n_planned`` looks together, or of each where none were planned.
    The ``first`` look has this number.
    """
    ax = axes_or_new(ax)
    rows = [_p_and_alarm(look) for look in looks]
    p, alarm = np.reshape(np.array(rows, float), (-1, 2)).T
    number = np.arange(first, first + len(p))
    (line,) = ax.plot(number, p, "o-", color=DATA, ms=4, lw=1, label="batches")  # NaN is a gap
    drawn: list[Artist] = [line]
    if np.any(alarm):
        drawn += ax.plot(
            number[alarm > 0], p[alarm > 0], "D", ms=11, mfc="none", mew=1.5, color=KERNELS[1],
            ls="none", label="alarms",
        )  # fmt: skip
    missing = np.isnan(p)
    if np.any(missing):
        drawn.append(
            ax.vlines(
                number[missing], 0, 1, transform=ax.get_xaxis_transform(), color="grey", ls=":",
                label="could not be tested",
            )
        )  # fmt: skip
    least = float(np.min(p[~missing], initial=1))
    if alpha is not None:
        level = alpha / (n_planned or 1)
        label = f"alpha = {alpha:g}" + (f" / {n_planned} batches" if n_planned else "")
        drawn.append(ax.axhline(level, color=KERNELS[1], ls="--", lw=1, label=label))
        least = min(least, level)
    ax.set_yscale("log")
    ax.set_ylim(least / 2, 1.5)
    ax.set_xlim(first - 0.5, first + max(len(p), 1) - 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("batch")
    ax.set_ylabel("p-value")
    legend_above(ax)
    return drawn


def wealth(
    looks: Iterable[Mapping[str, Any]],
    *,
    needed: float | None = None,
    first: int = 1,
    ax: Axes | None = None,
) -> list[Artist]:
    """What the bets of an ``AnytimeMonitor`` have made of 1, look after look.

    ``looks`` are the lines of ``sparker watch``, or dictionaries of ``AnytimeLook``. ``needed`` is
    the wealth at which there is an alarm.
    """
    ax = axes_or_new(ax)
    values = np.array([look.get("wealth", np.nan) for look in looks], float)
    number = np.arange(first, first + len(values))
    drawn: list[Artist] = [*ax.plot(number, values, "-", color=DATA, lw=1.5, label="wealth")]
    if needed is not None:
        label = f"alarm at {needed:g}"
        drawn.append(ax.axhline(needed, color=KERNELS[1], ls="--", lw=1, label=label))
    ax.set_yscale("log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("batch")
    ax.set_ylabel("wealth")
    legend_above(ax)
    return drawn


def _p_and_alarm(look: Any) -> tuple[float, bool]:
    """NaN stands for the p-value of a batch that could not be tested."""
    if not isinstance(look, Mapping):
        return look.result.p_value, look.alarm  # a ``Look`` of a monitor
    if "p_value" in look:
        return look["p_value"], bool(look.get("alarm"))
    if "error" in look:
        return np.nan, False
    raise ValueError(f"a look has a p_value or an error, got the keys {sorted(look)}")
