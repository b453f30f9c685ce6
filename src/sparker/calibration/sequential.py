"""Stopping early, validly: Besag and Clifford's sequential Monte Carlo test.

A sample that looks like any toy need not be compared with hundreds of them. Toys are drawn until
``exceedances`` of them lie above the data; if that takes l toys, p = exceedances / l. If it does
not happen within all toys, p = (1 + number above) / (toys + 1) as usual. Both are exact (J. Besag
and P. Clifford, Biometrika 78, 301, 1991) if scores do not depend on how many toys were drawn.
Ranks do depend on it. So the first ``table`` toys are set aside: they fix the scale of each column,
and only the toys after them are compared with the data. For the same reason the interval of the
p-value is exact, for the score that this table defines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import beta

from sparker.calibration.combine import Combination
from sparker.calibration.pvalues import (
    CONFIDENCE,
    Ranked,
    clopper_pearson,
    family_p_values,
    heard,
    p_values,
    smooth_p_values,
    tied,
    tied_scores,
)
from sparker.calibration.stages import staged
from sparker.system.numbers import is_number


@dataclass(frozen=True, kw_only=True)
class Sequential:
    """When to stop."""

    exceedances: int = 10
    """Stop when this many toys are above the data. The p-value's relative error is about one over
    the square root of this."""
    table: int = 30
    """Toys set aside to put the columns on one scale."""

    def __post_init__(self) -> None:
        if not is_number(self.exceedances, least=1, whole=True):
            raise ValueError(f"exceedances must be at least 1, got {self.exceedances!r}")
        if not is_number(self.table, least=10, whole=True):
            raise ValueError(f"table must be at least 10 toys, got {self.table!r}")

    def rank(
        self,
        t: np.ndarray,
        combine: Combination,
        *,
        complete: bool,
        families: Sequence[str] = (),
    ) -> Ranked | None:
        """The verdict from the rows so far (observed, table, compared toys); None while undecided.

        ``complete`` says that no more toys will come. Only the toys up to the decision count, even
        if more were trained in the same chunk.
        """
        t = tied(heard(t), like=t[1 : 1 + self.table])  # toys to come change nothing
        table, compared = t[1 : 1 + self.table], t[1 + self.table :]
        if len(compared) == 0:
            return None
        rows = np.concatenate([t[:1], compared])
        score = tied_scores(staged(combine, families, smooth_p_values, rows, table))
        score = np.where(np.isposinf(rows).all(axis=1), np.inf, score)
        above = np.cumsum(score[1:] >= score[0])
        reached = np.flatnonzero(above == self.exceedances)
        if len(reached):
            n = int(reached[0]) + 1
            k, p_value = self.exceedances, self.exceedances / n
            limits = partial(_inverse_binomial, k, n)
        elif complete:
            n, k = len(compared), int(above[-1])
            p_value, limits = (k + 1) / (n + 1), partial(clopper_pearson, k, n)
        else:
            return None
        looked_at = t[: 1 + self.table + n]
        by_column, by_family = p_values(looked_at)[0], family_p_values(looked_at, families)
        return Ranked(by_column, by_family, score[: n + 1], p_value, k, n, limits)


def _inverse_binomial(
    k: int, n: int, confidence: float = CONFIDENCE
) -> tuple[float, float]:  # the exact interval when trials go on until the k-th success, the n-th
    tail = (1 - confidence) / 2
    high = float(beta.isf(tail, k, n - k)) if n > k else 1.0
    return float(beta.ppf(tail, k, n - k + 1)), high
