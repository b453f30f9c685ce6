"""Which of several generators is closest to the data, how far they are, and how sure that is."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from sparker.findings.distance import Distances
from sparker.findings.frames import Frame, as_frame
from sparker.system.numbers import finite, span

CONFIDENCE = 0.95
LEVEL = 1 - CONFIDENCE

SCHEMA = 1
"""Of ``to_dict``; within a schema keys are only ever added."""


class Candidate(NamedTuple):
    """One generator beside the data."""

    name: str
    n_rows: int
    distance: float
    """t for each data row, on rows that were not fitted; about 0 for a perfect generator."""
    interval: tuple[float, float]
    """Its 95 % interval, by how much it differs between halves of the rows."""
    behind: float
    """Its distance minus that of the closest."""
    behind_interval: tuple[float, float]
    p_value: float
    """Two-sided, that it is as close as the closest; 1 of that one itself."""
    warnings: tuple[str, ...] = ()
    error: str | None = None
    """Why it could not be compared."""

    @classmethod
    def failed(cls, name: str, error: str) -> "Candidate":
        """One that could not be compared."""
        nothing = (np.nan, np.nan)
        return cls(name, 0, np.nan, nothing, np.nan, nothing, np.nan, error=error)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Closest:
    """The outcome of ``sparker.closest``: the candidates, the closest first."""

    candidates: tuple[Candidate, ...]
    n_data: int
    frame: str | None
    settings: dict[str, Any]
    versions: dict[str, str]
    made: str

    @property
    def best(self) -> Candidate:
        """The closest."""
        return self.candidates[0]

    @property
    def compared(self) -> list[Candidate]:
        """Those that could be compared."""
        return [one for one in self.candidates if one.error is None]

    @property
    def is_sure(self) -> bool | None:
        """Whether the first is closer than the second beyond chance; None where there is none.

        The two are compared as if nobody had chosen them as the best and the second best. For
        independent estimates of one spread this is valid (Hung and Fithian, Annals of Statistics
        47, 758, 2019), for these it was measured (docs/many.md).
        """
        return self.compared[1].p_value <= LEVEL if len(self.compared) > 1 else None

    def table(self) -> Frame:
        """A line for each, the closest first."""
        shown = self.candidates
        return as_frame(
            {
                "sample": [one.name for one in shown],
                "rows": [one.n_rows for one in shown],
                "distance": [one.distance for one in shown],
                "low": [one.interval[0] for one in shown],
                "high": [one.interval[1] for one in shown],
                "behind": [one.behind for one in shown],
                "behind_low": [one.behind_interval[0] for one in shown],
                "behind_high": [one.behind_interval[1] for one in shown],
                "p_value": [one.p_value for one in shown],
                "error": [one.error or "" for one in shown],
            },
            self.frame,
        )

    def verdict(self) -> str:
        """The outcome in a sentence."""
        first, *others = self.compared
        low, high = first.interval
        at = f"{first.distance:.3g} ({low:.3g} to {high:.3g})"
        said = f"{first.name} is closest to the data, at {at}"
        if not others:
            return said
        second = others[0]
        how = "closer than" if self.is_sure else "not surely closer than"
        return f"{said}, {how} {second.name} (p = {second.p_value:.2g})"

    def summary(self) -> str:
        """A line for each."""
        lines = [self.verdict()]
        for one in self.candidates:
            if one.error is not None:
                lines.append(f"{one.name}: could not be compared: {one.error}")
                continue
            low, high = one.interval
            lines.append(f"{one.name}: distance {one.distance:.3g} ({low:.3g} to {high:.3g})")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON knows it."""
        return {
            "schema": SCHEMA,
            "closest": self.best.name,
            "sure": self.is_sure,
            "data_rows": self.n_data,
            "candidates": [
                {
                    "sample": one.name,
                    "rows": one.n_rows,
                    "distance": finite(one.distance),
                    "interval": span(one.interval, CONFIDENCE),
                    "behind": finite(one.behind),
                    "behind_interval": span(one.behind_interval, CONFIDENCE),
                    "p_value": finite(one.p_value),
                    "warnings": list(one.warnings),
                    "error": one.error,
                }
                for one in self.candidates
            ],
            "settings": self.settings,
            "versions": self.versions,
            "made": self.made,
        }

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    def __repr__(self) -> str:
        return f"<Closest: {self.verdict()}>"


def compare(found: Sequence[Distances]) -> list[dict[str, Any]]:
    """The distances, the closest first: with intervals, and beside the closest.

    >>> import numpy as np
    >>> halves = np.random.default_rng(0).normal(size=(10, 2))
    >>> first, second = compare([Distances(9.0, 3 * halves + 9), Distances(0.0, halves)])
    >>> first["number"], first["p_value"], second["behind"], second["p_value"] < 1e-4
    (1, 1.0, 9.0, True)
    """
    order = np.argsort([one.whole for one in found], kind="stable")
    first = found[order[0]]
    lines = []
    for place, k in enumerate(order):
        one = found[k]
        low, high = interval(one)
        behind = Distances(one.whole - first.whole, one.halves - first.halves)
        lines.append(
            {
                "number": int(k),
                "distance": one.whole,
                # Fits to noise are worth less than nothing on new rows; no distance is below 0.
                "interval": (low, max(high, 0.0)),
                "behind": behind.whole,
                "behind_interval": interval(behind),
                "p_value": p_value(behind) if place else 1.0,
            }
        )
    return lines


def spread(found: Distances) -> float:
    """The standard deviation, of half the differences of halves."""
    half = (found.halves[:, 0] - found.halves[:, 1]) / 2
    return float(np.sqrt(np.mean(half**2)))


def interval(found: Distances) -> tuple[float, float]:
    """By Student's distribution, with as many degrees of freedom as there are splits."""
    reach = float(stats.t.isf(LEVEL / 2, len(found.halves))) * spread(found)
    return found.whole - reach, found.whole + reach


def p_value(found: Distances) -> float:
    """Two-sided, that it is zero."""
    own = spread(found)
    if own == 0:
        return 1.0 if found.whole == 0 else 0.0
    return float(2 * stats.t.sf(abs(found.whole) / own, len(found.halves)))
