"""Column by column: does it differ on its own?

Drift is often looked for one column at a time. This is the same table, beside the verdict on all
columns together: an anomaly that no single column shows is a finding of its own.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

from sparker.nulls.labels import DATA, REFERENCE
from sparker.nulls.pool import Pool
from sparker.system.archive import Count, Share
from sparker.tables.encoding import Encoding, which

MAX_LEVELS = 12
"""Up to this many different values a column is counted value by value."""

MIN_EXPECTED = 5.0
"""Values that are expected less often than this are counted together."""

MAX_VALUES = 2**24
"""Of more values than this, some reference rows are left out."""

MAX_TOYS = 199

SMOOTH, COUNTED, RELABELLED = "Kolmogorov-Smirnov", "chi-square", "relabelled"


Quartiles = tuple[float, float, float]


class ColumnTest(NamedTuple):
    """What one column shows."""

    column: Count
    test: str
    distance: Share
    """The largest difference of the distribution functions; of counted values, half the sum of the
    differences of their shares. Between 0 and 1."""
    p_value: Share
    """Corrected for the number of columns."""
    reference_quartiles: Quartiles | None
    """None of a category."""
    data_quartiles: Quartiles | None

    def is_significant(self, level: float) -> bool:
        """Return whether the column differs by itself at this level."""
        return self.p_value <= level


def column_tests(
    pool: Pool, rng: np.random.Generator, encoding: Encoding, *, independent: bool
) -> list[ColumnTest]:
    """Test every column that varies, its values where it has any and where they are missing.

    Where rows are exchangeable one by one, by the classical tests, corrected after Holm. Where they
    are not, by the labels that are possible, corrected by the largest difference of all columns.
    """
    roles = pool.roles(0)
    is_data, is_reference = np.flatnonzero(roles == DATA), np.flatnonzero(roles == REFERENCE)
    n_columns = pool.points.shape[1]
    most = max(len(is_data), MAX_VALUES // n_columns - len(is_data))
    if len(is_reference) > most and independent:
        is_reference = rng.choice(is_reference, most, replace=False)
    values, blocks, lacking = pool.points.astype(np.float64), encoding.blocks, encoding.lacking
    for block in blocks:
        if len(block) > 1:  # of a category: which of its values a row has
            values[:, block[0]] = which(values[:, block])
    categories = {block[0] for block in blocks if len(block) > 1}
    varying = [block[0] for block in blocks if np.ptp(values[:, block[0]]) > 0]
    if not independent:
        return _relabelled(pool, values, varying, categories)

    def of(rows: np.ndarray, i: int) -> np.ndarray:
        there = values[rows, lacking[i]] == 0 if i in lacking else slice(None)
        return np.asarray(values[rows, i][there])

    varying = [i for i in varying if len(of(is_data, i)) and len(of(is_reference, i))]
    found = [
        (i, *_alone(of(is_data, i), of(is_reference, i), counted=i in categories)) for i in varying
    ]
    corrected = holm(np.array([p for *_, p in found]))
    return [
        _shown(i, test, distance, p, i in categories, of(is_reference, i), of(is_data, i))
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


def _alone(
    data: np.ndarray, reference: np.ndarray, *, counted: bool = False
) -> tuple[str, float, float]:
    """The test of one column by itself: its name, a distance, a p-value."""
    levels, code = np.unique(np.concatenate([data, reference]), return_inverse=True)
    if len(levels) > MAX_LEVELS and not counted:
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


def _relabelled(
    pool: Pool, values: np.ndarray, varying: list[int], categories: set[int]
) -> list[ColumnTest]:
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
    samples = [values[weight > 0] for weight in weights[0]]
    return [
        _shown(i, RELABELLED, d, q, i in categories, *(rows[:, i] for rows in samples))
        for i, d, q in zip(varying, distance[0], p, strict=True)
    ]


def _shown(
    column: int, test: str, distance: float, p: float, is_category: bool, *samples: np.ndarray
) -> ColumnTest:
    quartiles: list[Any] = [None, None]
    if not is_category:
        quartiles = [tuple(np.quantile(one, [0.25, 0.5, 0.75]).tolist()) for one in samples]
    return ColumnTest(column, test, float(distance), float(p), *quartiles)
