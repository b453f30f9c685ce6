"""Stopping early, validly: look at the ranking after more and more toys.

All rows so far are ranked exactly as all rows are in the end (``pvalues.rank``), after ``first``
toys, after twice as many, four times as many and so on. Where at least ``exceedances`` toys lie
above the data, the test ends with this ranking. Otherwise it goes on, to the ranking of all toys.

The p-value p_j after look j, of m_j toys, is exact: P(p_j <= u) <= u. The test goes on only if
p_j < c_j = (exceedances + 1) / (m_j + 1), and c_j falls. For a level u let j be the first look
with c_j <= u. A stop before it reports p >= c_i > u, a stop at it reports p_j, and to go on means
p_j < c_j <= u. So the reported p is at most u only where p_j is, with a probability of at most u.
If no c_j is as small as u, only the ranking of all toys can be, and it is exact. At levels below
the last c_j, power is lost only by samples that were stopped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparker.calibration.combine import Combination
from sparker.calibration.pvalues import Ranked, rank
from sparker.system.numbers import is_number


@dataclass(frozen=True, kw_only=True)
class Sequential:
    """When to stop."""

    exceedances: int = 20
    """Stop at a look when at least this many toys are above the data."""
    first: int = 50
    """Toys before the first look; each further look is after twice as many."""

    def __post_init__(self) -> None:
        if not is_number(self.exceedances, least=1, whole=True):
            raise ValueError(
                f"exceedances must be a whole number of at least 1, got {self.exceedances!r}"
            )
        if not is_number(self.first, least=10, whole=True):
            raise ValueError(f"first must be a whole number of at least 10, got {self.first!r}")

    def rank(
        self,
        t: np.ndarray,
        combine: Combination,
        *,
        complete: bool,
        families: Sequence[str] = (),
    ) -> Ranked | None:
        """Return the verdict from the rows so far; None while undecided.

        Args:
            t: statistics (n, m), of the data in row 0 and of the toys so far. Toys beyond the look
                at which the test stops change nothing.
            combine: the rule that combines the columns.
            complete: that no more toys will come.
            families: names of the families that the columns belong to (m,).
        """
        number = int(self.first)
        while number < len(t):
            ranked = rank(t[: number + 1], combine, families)
            if ranked.above >= self.exceedances:
                return ranked
            number *= 2
        return rank(t, combine, families) if complete else None
