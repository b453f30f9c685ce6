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


def hide(pool: Pool, rng: np.random.Generator, share: float) -> Mixture:
    """Hide so many reference rows for each data row, but no more than half of them.

    Within every stratum the same share: there data and hidden rows can be compared. Rows that
    weigh more are hidden more often. Of groups, all rows or none.
    """
    roles = pool.roles(0)
    is_data, is_reference = roles == DATA, roles == REFERENCE
    strata = np.zeros(len(roles), int) if pool.strata is None else pool.strata
    hidden = np.zeros(len(roles), bool)
    units = pool.labeller.units
    for stratum in np.unique(strata[is_data]):
        inside = strata == stratum
        candidates = np.unique(units[inside & is_reference])
        size = np.bincount(units, minlength=units.max() + 1)
        weight = np.ones(len(units)) if pool.measure is None else pool.measure
        each = np.bincount(units, weight)[candidates] / size[candidates]
        # The smallest of exponential times at the rate of the weights: drawn in proportion to them.
        turn = candidates[np.argsort(rng.exponential(size=len(candidates)) / each)]
        n_reference = int(np.sum(inside & is_reference))
        wanted = min(share * np.sum(inside & is_data), n_reference / 2)
        taken = turn[np.cumsum(size[turn]) <= max(wanted, 1)]
        hidden |= np.isin(units, taken) & is_reference
    return Mixture(is_data, hidden, is_reference & ~hidden)


def as_samples(points: np.ndarray, mixtures: list[Mixture], pool: Pool) -> TwoSample:
    """The mixtures as a batch of experiments, each mixture against the rest of the reference."""
    own, _ = pool.weights(0)  # of strata and weights, if there are any
    reference = []
    for mixture in mixtures:
        weight = np.where(mixture.rest, own, 0.0)
        reference.append(weight * (mixture.marked.sum() / weight.sum()))
    data = [mixture.marked.astype(float) for mixture in mixtures]
    return TwoSample(points, np.stack(reference), np.stack(data))
