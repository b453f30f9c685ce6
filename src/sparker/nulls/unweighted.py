"""From rows with weights to fewer rows without."""

from typing import NamedTuple

import numpy as np


class Sample(NamedTuple):
    """Weighted rows that may be thinned, and the words and limits for them."""

    argument: str
    rows: str
    min_kept: tuple[float, float]
    """Rows that must be left for each data row: if the weights have a bound, and if not."""
    remedy: str
    note: str = ""


REFERENCE = Sample(
    "reference_weights",
    "reference rows",
    (0.25, 1.0),
    "If the weight is a function of the row, give this function, or the weights of the data rows "
    "as well: then no row is lost. Or take more reference rows, and none of far larger weight than "
    "the others",
    "; weights that are given for the data rows too, or as a function, lose none",
)
POOL = Sample(
    "pool_weights",
    "rows of the simulator's pool",
    (1.0, 1.0),
    "Take a larger pool, without rows of far larger weight than the others",
)

MIN_SHARED = 5
"""If this many rows share the largest weight, further rows are expected to have no larger one."""

MAX_BEYOND = 0.1
"""The largest number of data rows that may be expected beyond the bound of the weights."""


def keep_by_weight(
    rng: np.random.Generator, weights: np.ndarray, n_data: float, of: Sample = REFERENCE
) -> np.ndarray:  # (N,) -> (N,)
    """Keep rows with a probability proportional to their weight: they have the weighted density.

    If only reference rows have weights, it is not known what weight a data row would have. So
    weighted rows cannot change places with data rows. But rows that were kept with a probability
    proportional to their weight can: given how many they are, they are independent rows of the
    density that the weights describe, whatever the weights depend on.

    The same holds for a pool that is to change places with the data.

    This needs a bound on the weights. Where several rows share the largest weight, that is the
    bound. Otherwise further rows may weigh more: twice the largest weight is taken as the bound,
    and data rows beyond it have no counterpart in the reference. Their number is estimated as if
    the tail of the weights were a power law; if it is too large, the weights are refused.
    """
    largest = weights.max()
    n_largest, n_large = (int(np.sum(weights > part * largest)) for part in (1 - 1e-6, 0.5))
    n_possible = weights.sum() / largest
    is_bounded = n_largest >= MIN_SHARED
    # A row of the largest weight stands for one in n_possible data rows. If a power-law tail has
    # n_large rows within the last factor of two, the next factor of two has 2 / n_large as many
    # data rows.
    n_beyond = 0.0 if is_bounded else n_data / n_possible * 2 / n_large
    bound = largest if is_bounded else 2 * largest
    is_kept = rng.random(len(weights)) * bound < weights
    n_kept = int(is_kept.sum())
    least = of.min_kept[0 if is_bounded else 1] * n_data
    if n_kept < max(2, least) or n_beyond > MAX_BEYOND:
        raise ValueError(
            f"{of.argument} are too uneven: row {int(weights.argmax())} weighs "
            f"{largest / weights.mean():.3g} times the mean, and of {len(weights)} rows only "
            f"{n_kept} are left when each is kept with a probability proportional to its weight, "
            f"for {n_data:g} data rows. {of.remedy}"
        )
    return is_kept


def kept_note(is_kept: np.ndarray, of: Sample = REFERENCE) -> str:
    """The number of rows that are left, in words."""
    return (
        f"{is_kept.sum():,} of {len(is_kept):,} {of.rows} take part, kept with a probability "
        f"proportional to their weight{of.note}"
    )
