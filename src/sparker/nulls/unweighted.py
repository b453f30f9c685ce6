"""Reference rows with weights of their own, as rows without any."""

import numpy as np

MIN_KEPT = 0.25
"""Rows that must be left, for each data row."""


def keep_by_weight(
    rng: np.random.Generator, weights: np.ndarray, n_data: int
) -> np.ndarray:  # (N,) -> (N,)
    """Keep rows with a probability proportional to their weight: they have the weighted density.

    Weights that only the reference rows have do not say what weight a data row would have had as
    one of them. So weighted rows cannot change places with data rows, but rows that are left after
    each had a chance in proportion to its weight can: given how many they are, they are independent
    rows of the density that the weights describe, whatever the weights depend on.
    """
    is_kept = rng.random(len(weights)) * weights.max() < weights
    n_kept = int(is_kept.sum())
    if n_kept < max(2, MIN_KEPT * n_data):
        row = int(weights.argmax())
        raise ValueError(
            f"reference_weights are too uneven: row {row} weighs "
            f"{weights.max() / weights.mean():.3g} times the mean, and of {len(weights)} rows only "
            f"{n_kept} are left when each is kept with a probability proportional to its weight, "
            f"too few for {n_data} data rows. Drop or merge such rows; or, if the weight is a "
            "function of the row, give this function, or the weights of the data rows as well: "
            "then no row is lost"
        )
    return is_kept


def kept_note(is_kept: np.ndarray) -> str:
    """What became of a reference whose weights say nothing of the data."""
    return (
        f"{is_kept.sum():,} of {len(is_kept):,} reference rows take part, kept with a probability "
        "proportional to their weight; weights that are given for the data rows too, or as a "
        "function, lose none"
    )
