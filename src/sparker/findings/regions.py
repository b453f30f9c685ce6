"""Where the data differ, each region with its own evidence.

``rules`` finds them without knowing which rows of a mixture are data. So these can be counted here:
in a region of ordinary rows, data and hidden rows are labelled at random.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from sparker.findings.mixtures import Mixture
from sparker.findings.rules import Condition, Found
from sparker.system.archive import Count, Share
from sparker.tables.encoding import Feature


class Region(NamedTuple):
    """A region with what was counted in it."""

    conditions: tuple[Condition, ...]
    """In the user's columns and units, all of which hold."""
    around: str | None
    """What rows there are like, where no rule describes them."""
    lack: bool
    """Whether rows are missing there, rather than too many."""
    n_data: Count
    """Data rows there."""
    expected: float
    """How many there should be, from the hidden reference rows there."""
    too_many: float
    """Anomalous rows there, or minus the number missing: ``n_data - expected``."""
    interval: tuple[float, float] | None
    """A 95 % interval of the anomalous rows there, up to all of them; None where rows cannot be
    compared one by one."""
    p_value: Share | None
    """Of the rows that are in no region found before, corrected for the number of regions; None
    where rows cannot be compared one by one."""
    rows: tuple[Count, ...]
    """The data rows there, counted from 0."""

    def is_significant(self, level: float) -> bool:
        """Return whether the rows that were counted bear out what the search found."""
        return self.p_value is not None and self.p_value <= level

    @property
    def kind(self) -> str:
        """``"excess"`` or ``"deficit"``."""
        return "deficit" if self.lack else "excess"

    @property
    def least(self) -> float | None:
        """At least so many rows are too many, or missing; None where rows cannot be compared."""
        if self.interval is None:
            return None
        return max(0.0, -self.interval[1]) if self.lack else self.interval[0]

    def rule(self, features: Sequence[Feature]) -> str:
        """Return its conditions, or the neighbourhood that it is."""
        return self.around or ", ".join(one.text(features) for one in self.conditions)

    def to_dict(
        self, features: Sequence[Feature], numbers: np.ndarray, level: float
    ) -> dict[str, object]:
        """As JSON knows it; ``numbers`` are those of the user's rows."""
        low, high = self.interval or (None, None)
        return {
            "rule": self.rule(features),
            "conditions": [
                one._asdict() | {"column": features[one.column].label} for one in self.conditions
            ],
            "kind": self.kind,
            "data_rows": self.n_data,
            "expected": self.expected,
            "excess": {"estimate": self.too_many, "low": low, "high": high},
            "p_value": self.p_value,
            "significant": self.is_significant(level),
            "rows": numbers[list(self.rows)].tolist(),
        }


def confirm(
    found: Found, mixture: Mixture, n_regions: int, expected: float | None, *, independent: bool
) -> tuple[int, float, tuple[float, float] | None, float | None]:
    """Data rows, expected ones, the interval of their difference, and a p-value.

    ``expected`` is the number of data rows expected in all, where that is known.
    """
    (n_data, n_hidden), (own_data, own_hidden) = map(mixture.counts, (found.inside, found.own))
    odds = (expected or mixture.is_data.sum()) / mixture.hidden.sum()
    if not independent:
        return n_data, n_hidden * odds, None, None
    share = odds / (1 + odds)
    total = own_data + own_hidden
    tail = binom.cdf(own_data, total, share) if found.lack else binom.sf(own_data - 1, total, share)
    low, high = ordinary(n_hidden, share)
    # The more of the data are anomalous, the fewer ordinary rows there are anywhere. So all rows
    # there may be anomalous: only the lower end is limited.
    ends = (n_data - high, n_data - low) if found.lack else (max(0, n_data - high), n_data)
    return (
        n_data,
        n_hidden * odds,
        (float(ends[0]), float(ends[1])),
        float(min(1, n_regions * tail)),
    )


def ordinary(n_hidden: int, share: float, level: float = 0.05) -> tuple[int, int]:
    """How many ordinary data rows there may be where there are so many hidden ones, at 95 %.

    Of ``b`` ordinary and ``n_hidden`` hidden rows each is data with the probability ``share``. The
    range is that of all b among which so many hidden rows are not surprisingly few or many.

    >>> ordinary(0, 0.5), ordinary(10, 0.5)
    ((0, 5), (3, 22))
    """
    most = int(10 + 4 * (n_hidden + 5) * share / (1 - share) + 10 * np.sqrt(n_hidden + 1))
    b = np.arange(most + 1)
    fits = (binom.cdf(n_hidden, b + n_hidden, 1 - share) > level / 2) & (
        binom.sf(n_hidden - 1, b + n_hidden, 1 - share) > level / 2
    )
    inside = np.flatnonzero(fits)
    return int(inside[0]), int(inside[-1])
