"""Some reference rows hidden among the data, so that what is found there can be checked.

A search for what tells the data from the reference finds something in any sample. So a part of the
reference is hidden among the data, and the search has to tell this mixture from the rest of the
reference. It cannot know which rows of the mixture are data. Whatever it finds, ordinary data rows
and hidden rows are treated alike: a place that has more data rows than hidden ones has them because
the two differ, not because the search was made for it.

AdaDetect: Marandon, Lei, Mary and Roquain, Annals of Statistics 52 (2024), arXiv:2208.06685.
"""

from typing import NamedTuple

import numpy as np

from sparker.engine.sample import TwoSample
from sparker.nulls.labels import DATA, REFERENCE
from sparker.nulls.pool import Pool


class Mixture(NamedTuple):
    """The rows of a pool, and what each is in the search."""

    is_data: np.ndarray  # (N,)
    hidden: np.ndarray  # (N,) reference rows among the data
    rest: np.ndarray  # (N,) reference rows to compare with

    @property
    def marked(self) -> np.ndarray:  # (N,)
        """Data and hidden rows, which the search cannot tell apart."""
        return self.is_data | self.hidden

    @property
    def odds(self) -> float:
        """Data rows expected for each hidden row."""
        return float(self.is_data.sum() / self.hidden.sum())

    @property
    def odds_of_rest(self) -> float:
        """Rows of the mixture expected for each of the rest."""
        return float(self.marked.sum() / self.rest.sum())

    def counts(self, inside: np.ndarray) -> tuple[int, int]:
        """How many of these rows are data, and how many are hidden."""
        return int(np.sum(inside & self.is_data)), int(np.sum(inside & self.hidden))


def hide(pool: Pool, rng: np.random.Generator, share: float) -> Mixture | None:
    """Hide so many reference rows for each data row, but no more than half of them.

    Rows that weigh more are hidden more often. Of groups, all rows or none. None where nothing
    would be left.
    """
    roles = pool.roles(0)
    is_data, is_reference = roles == DATA, roles == REFERENCE
    units, n_units = pool.labeller.units, int(pool.labeller.units.max()) + 1
    size = np.bincount(units, is_reference, minlength=n_units)
    weight = size if pool.measure is None else np.bincount(units, is_reference * pool.measure)
    candidates = np.flatnonzero(weight > 0)
    # The smallest of exponential times at the rate of the weights: drawn in proportion to them.
    rate = weight[candidates] / size[candidates]
    turn = candidates[np.argsort(rng.exponential(size=len(candidates)) / rate)]
    wanted = min(share * is_data.sum(), size[candidates].sum() / 2)
    n_taken = max(1, int(np.sum(np.cumsum(size[turn]) <= wanted)))
    hidden = np.isin(units, turn[:n_taken]) & is_reference
    rest = is_reference & ~hidden
    if pool.measure is not None:
        rest &= pool.measure > 0
    return Mixture(is_data, hidden, rest) if hidden.any() and rest.any() else None


def as_samples(points: np.ndarray, mixtures: list[Mixture], pool: Pool) -> TwoSample:
    """The mixtures as a batch of experiments, each mixture against the rest of the reference."""
    own, _ = pool.weights(0)  # of strata and weights, if there are any
    reference = []
    for mixture in mixtures:
        weight = np.where(mixture.rest, own, 0.0)
        reference.append(weight * (mixture.marked.sum() / weight.sum()))
    data = [mixture.marked.astype(float) for mixture in mixtures]
    return TwoSample(points, np.stack(reference), np.stack(data))
