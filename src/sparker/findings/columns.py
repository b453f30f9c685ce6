"""Column by column: does it differ on its own?

Drift is often looked for one column at a time. This is the same table, beside the verdict on all
columns together: an anomaly that no single column shows is a finding of its own.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

from sparker.nulls.labels import DATA, REFERENCE
from sparker.nulls.pool import Pool

MAX_LEVELS = 12
"""Up to this many different values a column is counted value by value."""

MIN_EXPECTED = 5.0
"""Values that are expected less often than this are counted together."""

MAX_VALUES = 2**24
"""Of more values than this, some reference rows are left out."""

MAX_TOYS = 199
LEVEL = 0.05

SMOOTH, COUNTED, RELABELLED = "Kolmogorov-Smirnov", "chi-square", "relabelled"


class ColumnTest(NamedTuple):
    """What one column shows."""

    column: int
    test: str
    distance: float
    """The largest difference of the distribution functions; of counted values, half the sum of the
    differences of their shares. Between 0 and 1."""
    p_value: float
    """Corrected for the number of columns."""
    reference_quartiles: tuple[float, float, float]
    data_quartiles: tuple[float, float, float]

    @property
    def differs(self) -> bool:
        """At 5 %, whatever the other columns do."""
        return self.p_value <= LEVEL


def column_tests(pool: Pool, rng: np.random.Generator, *, independent: bool) -> list[ColumnTest]:
    """Test every column that varies.

    Where rows are exchangeable one by one, by the classical tests, corrected after Holm. Where they
    are not, by the labels that are possible, corrected by the largest difference of all columns.
    """
    roles = pool.roles(0)
    is_data, is_reference = np.flatnonzero(roles == DATA), np.flatnonzero(roles == REFERENCE)
    n_columns = pool.points.shape[1]
    most = max(len(is_data), MAX_VALUES // n_columns - len(is_data))
    if len(is_reference) > most and independent:
        is_reference = rng.choice(is_reference, most, replace=False)
    varying = [i for i in range(n_columns) if np.ptp(pool.points[:, i]) > 0]
    values = pool.points.astype(np.float64)
    if not independent:
        return _relabelled(pool, values, varying)
    found = [(i, *_alone(values[is_data, i], values[is_reference, i])) for i in varying]
    corrected = holm(np.array([p for *_, p in found]))
    return [
        ColumnTest(
            i,
            test,
            distance,
            float(p),
            _quartiles(values[is_reference, i]),
            _quartiles(values[is_data, i]),
        )
        for (i, test, distance, _), p in zip(found, corrected, strict=True)
    ]


def holm(p: np.ndarray) -> np.ndarray:  # (k,) -> (k,)
    """P-values that hold for all together: Holm, Scandinavian Journal of Statistics 6, 65 (1979).

    >>> import numpy as np
    >>> holm(np.array([0.01, 0.5, 0.02])).tolist()
    [0.03, 0.5, 0.04]
    """
    order = np.argsort(p)
    factors = len(p) - np.arange(len(p))
    found = np.empty(len(p))
    found[order] = np.minimum(1, np.maximum.accumulate(p[order] * factors))
    return found


def _alone(data: np.ndarray, reference: np.ndarray) -> tuple[str, float, float]:
    """The test of one column by itself: its name, a distance, a p-value."""
    levels, code = np.unique(np.concatenate([data, reference]), return_inverse=True)
    if len(levels) > MAX_LEVELS:
        found = ks_2samp(data, reference, method="auto")
        return SMOOTH, float(found.statistic), float(found.pvalue)
    table = np.stack(
        [np.bincount(part, minlength=len(levels)) for part in np.split(code, [len(data)])]
    )
    shares = table / table.sum(1, keepdims=True)
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    expected = table.sum(0) * table.sum(1).min() / table.sum()
    rare = expected < MIN_EXPECTED
    if rare.any():
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(1)])
    table = table[:, table.sum(0) > 0]
    if table.shape[1] < 2:
        return COUNTED, distance, 1.0
    return COUNTED, distance, float(chi2_contingency(table, correction=False).pvalue)


def _relabelled(pool: Pool, values: np.ndarray, varying: list[int]) -> list[ColumnTest]:
    """The largest differences of distribution functions, beside those of other labellings."""
    most = pool.experiments().n_toys
    n_toys = MAX_TOYS if most is None else min(most, MAX_TOYS)
    weights = [pool.weights(number) for number in range(n_toys + 1)]
    steps = np.stack([data / data.sum() - own / own.sum() for own, data in weights])  # (B + 1, N)
    distance = np.empty((n_toys + 1, len(varying)))
    for k, column in enumerate(varying):
        order = np.argsort(values[:, column], kind="stable")
        own = values[order, column]
        ends = np.append(own[1:] != own[:-1], True)
        distance[:, k] = np.abs(np.cumsum(steps[:, order], axis=1)[:, ends]).max(1)
    largest = distance.max(1)
    p = np.mean(largest[:, None] >= distance[0] - 1e-12, axis=0)
    own, data = (np.flatnonzero(weight > 0) for weight in weights[0])
    return [
        ColumnTest(
            column,
            RELABELLED,
            float(distance[0, k]),
            float(p[k]),
            _quartiles(values[own, column]),
            _quartiles(values[data, column]),
        )
        for k, column in enumerate(varying)
    ]


def _quartiles(values: np.ndarray) -> tuple[float, float, float]:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)
