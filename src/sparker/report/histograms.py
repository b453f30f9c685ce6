"""Every column beside the reference: what the page needs to draw its histograms.

Plain numbers, and few: a report of hundreds of columns must stay a small file. The page draws them
when they are asked for.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sparker.findings.result import Result
from sparker.findings.rules import Condition
from sparker.report.numbers import clip
from sparker.report.rows import Extras
from sparker.report.ticks import ROOM, calendar, labelled
from sparker.tables.encoding import DAYS, IS, NUMBER, TIME, WEEKDAY, which

BINS = 30
FIRST = 4  # drawn at once; the others when they are asked for
MOST = 1000  # histograms in a report
STRAYS = 0.002  # of all values, on either side: the range without them
STRETCHED = 0.5  # of that range: so far an axis goes, on either side, to show all values
TALL = 40  # counts: above it one row would vanish, and the scale is logarithmic
LEAST = 0.3  # rows, where a logarithmic scale begins


class Beside(NamedTuple):
    """A number of each row of both samples, by its name."""

    name: str
    data: np.ndarray
    reference: np.ndarray
    counting: np.ndarray  # how many data rows each reference row stands for
    members: tuple[int, ...] = ()
    """The features it shows: one, or those of the values of a category; none of an observable."""
    levels: tuple[str, ...] = ()
    """Of values that have names, these; then the numbers count them."""
    kind: str = NUMBER

    @property
    def column(self) -> int | None:
        """The feature by which it is called."""
        return self.members[0] if self.members else None

    def place(self, conditions: tuple[Condition, ...]) -> int:
        """The first condition that is about it; beyond the last, if none is."""
        about = (i for i, one in enumerate(conditions) if one.column in self.members)
        return next(about, len(conditions))


class View(NamedTuple):
    """Rows to look at: some of the data, and the rule that they keep."""

    rows: np.ndarray
    conditions: tuple[Condition, ...] = ()


def columns(result: Result, extras: Extras) -> list[Beside]:
    """All columns that vary, and the observables that are known of both samples."""
    counts, labels = result.reference_counts, result.column_labels
    kept = counts[result.reference_rows]
    kept = kept * (counts.sum() / (kept.sum() or 1))
    features, lacking = result.encoding.features, result.encoding.lacking
    tested = result.tested_labels
    found = []
    for block in result.encoding.blocks:
        first = block[0]
        if not any(i in result.transform.kept or np.ptp(result.data[:, i]) > 0 for i in block):
            continue
        kind, name = features[first].kind, labels[first]
        levels: tuple[str, ...] = ()
        if features[first].kind == IS and len(block) > 1:
            name, levels = tested[first], tuple(features[i].level or "others" for i in block)
        elif kind == WEEKDAY:
            levels = tuple(day[:3] for day in DAYS)
        elif features[first].is_flag:
            levels = ("no", "yes")
        data, reference = (
            _values(rows, block, lacking.get(first)) for rows in (result.data, result.reference)
        )
        found.append(Beside(name, data, reference, kept, tuple(block), levels, kind))
    return found + [
        Beside(name, extras.observables[name], values, counts)
        for name, values in extras.reference_observables.items()
    ]


def _values(rows: np.ndarray, block: list[int], flag: int | None) -> np.ndarray:
    """The numbers to count; of a category, which of its values a row has. NaN where missing."""
    values = rows[:, block[0]].astype(np.float64)
    if len(block) > 1:
        codes = which(rows[:, block])
        values = np.where(codes < len(block), codes.astype(float), np.nan)
    return values if flag is None else np.where(rows[:, flag] > 0, np.nan, values)


def draw(given: Sequence[Beside], views: Sequence[View]) -> dict[str, Any]:
    """Everything the page needs: the histograms, and for each view the most telling first."""
    rules = {one.column for view in views for one in view.conditions}
    known = sorted(filter(_known, given), key=lambda one: not rules.intersection(one.members))
    drawn = [(one, *histogram(one, views)) for one in known[:MOST]]
    order = []
    for v, view in enumerate(views):
        # The columns of the rule, then those in which the rows of the view differ most.
        keys = [(one.place(view.conditions), -apart[v]) for one, _, apart in drawn]
        order.append(sorted(range(len(drawn)), key=keys.__getitem__))
    return {
        "columns": [of for _, of, _ in drawn],
        "order": order,
        "first": FIRST,
        "left_out": max(0, len(known) - MOST),
    }


def _known(one: Beside) -> bool:
    has_value = np.isfinite(one.reference) & (one.counting > 0)
    return bool(np.isfinite(one.data).any() and has_value.any())


def histogram(of: Beside, views: Sequence[View]) -> tuple[dict[str, Any], list[float]]:
    """Counts of both samples and of every view, and how much each view differs from the reference.

    That is the largest difference of the distribution functions, as far as bins tell.
    """
    known, beside_known = np.isfinite(of.data), np.isfinite(of.reference) & (of.counting > 0)
    # Of both samples the rows with a value are compared, as if they lacked it equally often.
    reference, counting = of.reference[beside_known], of.counting[beside_known]
    counting = counting * (known.mean() * of.counting.sum() / counting.sum())
    data = of.data[known].astype(np.float64)
    picked = [of.data[view.rows[known[view.rows]]].astype(np.float64) for view in views]
    if of.levels:
        edges = np.arange(len(of.levels) + 1) - 0.5
    else:
        edges = _edges(
            np.concatenate([data, reference.astype(np.float64)]),
            np.concatenate([np.ones(len(data)), counting]),
            np.concatenate(picked),
        )

    def counts(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        inside = np.clip(values, edges[0], edges[-1])
        return np.histogram(inside, edges, weights=weights)[0].astype(float)

    bars, points, tops = counts(reference, counting), counts(data), [counts(p) for p in picked]
    tallest = float(max(bars.max(), points.max(), 1))
    low, high = float(edges[0]), float(edges[-1])
    found = {
        "name": of.name,
        "column": of.column,
        "low": low,
        "high": high,
        "reference": [float(f"{bar:.3g}") for bar in bars],
        "data": points.astype(int).tolist(),
        "picked": [top.astype(int).tolist() for top in tops],
        "least": LEAST if tallest > TALL else 0,
        "most": float(f"{tallest:.4g}"),
        "ticks": _ticks(of, low, high),
        "bands": [_bands(of, view.conditions, low, high) for view in views],
        "beyond": _names(of) or _beyond(data, reference, low, high),
    }
    expected = np.cumsum(bars) / bars.sum()
    apart = []
    for v, top in enumerate(tops):
        # Where a view has no rows, such as those that are missing, all data are looked at.
        shares = top if len(picked[v]) else points
        apart.append(float(np.abs(np.cumsum(shares) / shares.sum() - expected).max()))
    return found, apart


def _ticks(of: Beside, low: float, high: float) -> list[tuple[float, str]]:
    if of.levels:
        n = len(of.levels)
        return [((i + 0.5) / n, clip(name, max(3, ROOM // n))) for i, name in enumerate(of.levels)]
    return calendar(low, high) if of.kind == TIME else labelled(low, high)


def _names(of: Beside) -> str:
    """The values of a category in full, where the axis has no room for them."""
    if sum(map(len, of.levels)) <= ROOM:
        return ""
    return f"From left to right: {', '.join(clip(name, 30) for name in of.levels)}."


def _bands(
    of: Beside, conditions: tuple[Condition, ...], low: float, high: float
) -> list[float] | None:
    """Where the rule wants this column to be, as shares of the axis."""
    for one in conditions:
        if one.column in of.members and len(of.members) > 1:
            if one.above is None:
                return None  # anything but one value
            place, n = of.members.index(one.column), len(of.members)
            return [place / n, (place + 1) / n]
        if one.column in of.members:
            ends = (
                (low if one.above is None else one.above),
                (high if one.at_most is None else one.at_most),
            )
            return [float(np.clip((end - low) / (high - low), 0, 1)) for end in ends]
    return None


def _beyond(data: np.ndarray, reference: np.ndarray, low: float, high: float) -> str:
    """What lies outside the axis; nothing is left out without saying so."""
    n_data, n_reference = (int(np.sum((v < low) | (v > high))) for v in (data, reference))
    if not n_data + n_reference:
        return ""
    said = [
        f"{n:,} {what} row{'s' if n != 1 else ''}"
        for n, what in ((n_data, "data"), (n_reference, "reference"))
        if n
    ]
    lie = "lies" if n_data + n_reference == 1 else "lie"
    return f"{' and '.join(said)} {lie} further out; the outermost bars count them too."


def _edges(
    values: np.ndarray, weights: np.ndarray, picked: np.ndarray, bins: int = BINS
) -> np.ndarray:
    """Equal bins; whole numbers lie in the middle of theirs.

    A few stray values must not squeeze all others into one bin. But rows that are looked at are no
    strays, few as they may be.
    """
    low, high = np.quantile(values, [STRAYS, 1 - STRAYS], method="inverted_cdf", weights=weights)
    if len(picked):
        first, last = np.quantile(picked, [0.05, 0.95], method="inverted_cdf")
        low, high = min(low, first), max(high, last)
    far = STRETCHED * (high - low)
    low, high = values[values >= low - far].min(), values[values <= high + far].max()
    if np.all(values == np.round(values)) and max(-low, high) < 2**50:
        step = np.ceil((high - low + 1) / bins)
        n = int(np.ceil((high - low + 1) / step))
        return low - 0.5 + step * np.arange(n + 1)
    wide = high > low and np.all(np.diff(np.linspace(low, high, bins + 1)) > 0)
    return np.linspace(low, high if wide else low + max(1.0, abs(low)), bins + 1)
