"""Who is data in a toy: rows, or whole groups of them, chosen at random out of a pool."""

from typing import NamedTuple

import numpy as np


class Labeller(NamedTuple):
    """Chooses the data rows of a toy out of a pool, and weights the rest."""

    measure: np.ndarray  # (N,) in proportion to which rows become data
    units: np.ndarray  # (N,) number of the group a row belongs to, or of the row itself
    n_units: int  # groups, or rows, that become data
    expected: float | None
    n_reference: int | None = None  # units that stay reference, if not all

    def __call__(
        self, rng: np.random.Generator, n_chosen: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:  # (N,), (N,): reference and data weights
        """The weights of a toy's rows; with so many units as data, if not as many as usual."""
        if n_chosen is None:
            n_chosen = self.n_units if self.expected is None else int(rng.poisson(self.expected))
        n_all = int(self.units.max()) + 1
        # Room for the observed number of data rows is kept in toys that fluctuate below it, so that
        # the reference does not grow.
        taken = max(n_chosen, self.n_units)
        if taken >= n_all:
            raise ValueError(
                f"a toy with {n_chosen} data rows leaves no reference in a pool of {n_all}; "
                "use a larger reference, or a simulator"
            )
        # Groups are all alike: they do not go with weights.
        measure = self.measure if n_all == len(self.measure) else np.ones(n_all)
        order, stays = _choose(rng, measure, taken)
        role = np.zeros(n_all, np.int8)  # reference
        role[order[:taken]] = 2  # out
        role[rng.permutation(order[:taken])[:n_chosen]] = 1  # data
        if self.n_reference is not None:
            role[rng.permutation(order[taken:])[self.n_reference :]] = 2
        by_row = role[self.units]
        is_data = by_row == 1
        weight = np.where(by_row == 0, self.measure / stays[self.units], 0)
        weight *= (self.expected or is_data.sum()) / weight.sum()
        return weight, is_data.astype(float)


def _choose(
    rng: np.random.Generator, measure: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:  # (N,) rows, the chosen n first; (N,) chances to stay
    """Choose n rows without replacement, with probabilities in proportion to the measure.

    Rosen's Pareto sampling (J. Stat. Plan. Inference 62, 159, 1997): of fixed size, with these
    inclusion probabilities to a very good approximation, and for a uniform measure simple random
    sampling, exactly.
    """
    chance = n * measure / measure.sum()
    u = rng.random(len(measure))
    if np.ptp(measure) > 0:
        if chance.max() > 0.5:
            row = int(chance.argmax())
            raise ValueError(
                f"reference_weights are too uneven: row {row} alone stands for {chance[row]:.2g} "
                f"of the {n} data rows, and a relabelling needs many rows for each; merge or drop "
                "such rows, or use a simulator"
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            u = u / (1 - u) * (1 - chance) / chance  # rows without weight go last
    return np.argpartition(u, n), 1 - chance
