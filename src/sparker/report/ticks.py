"""Round numbers along an axis, and how they are written."""

import numpy as np

from sparker.report.numbers import MINUS, number
from sparker.tables.encoding import when

N_TICKS = 6  # at most
ROOM = 40  # characters of all labels of an axis
LONGEST = 1e6  # from here on, and below SHORTEST, powers of ten are written
SHORTEST = 1e-3


def labelled(low: float, high: float) -> list[tuple[float, str]]:
    """Round values between two ends, as shares of the way, and their texts.

    >>> labelled(0.0, 1.0)[:2]
    [(0.0, '0.0'), (0.2, '0.2')]
    """
    span = high - low
    if not np.isfinite(span):
        return []
    rough = span / (N_TICKS - 1)
    ten = 10.0 ** np.floor(np.log10(rough))
    step = ten * next(m for m in (1, 2, 5, 10) if m * ten >= rough * (1 - 1e-9))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    ticks = [float(i) * step + 0.0 for i in np.arange(first, last + 1)[:N_TICKS]]
    return _thinned([(float((tick - low) / span), _text(tick, step, ticks)) for tick in ticks])


DAY = 86400
STEPS = (
    *(1, 10, 60, 600, 3600, 6 * 3600),
    *(DAY, 2 * DAY, 5 * DAY, 10 * DAY, 20 * DAY, 60 * DAY, 182 * DAY),
)
"""Seconds between two ticks of a calendar; for longer times, whole years."""


def calendar(low: float, high: float) -> list[tuple[float, str]]:
    """The same for seconds since 1970.

    >>> calendar(0.0, 86400.0)[:2]
    [(0.0, '1970-01-01'), (0.5, '1970-01-01 12:00')]
    """
    span = high - low
    year = 365.25 * DAY
    rough = span / 4
    step = next((s for s in STEPS if s >= rough), year * max(1.0, np.ceil(rough / year)))
    ticks = np.arange(np.ceil(low / step), np.floor(high / step) + 1)[:N_TICKS] * step
    return _thinned(
        [(float((tick - low) / span), when(float(tick)).removesuffix(":00")) for tick in ticks]
    )


def _thinned(found: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Every second tick, or fewer, until their texts have room."""
    while sum(len(text) for _, text in found) > ROOM and len(found) > 2:
        found = found[::2]
    return found


def _text(tick: float, step: float, ticks: list[float]) -> str:
    largest = max(abs(one) for one in ticks) or step
    if largest >= LONGEST or largest < SHORTEST:
        digits = int(np.ceil(np.log10(largest / step) - 1e-9)) + 1
        return number(tick, max(1, min(digits, 12)))
    decimals = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    return f"{tick:,.{decimals}f}".replace("-", MINUS)
