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
    rest: np.ndarray  # (N,) how many rows each of the other reference rows counts for

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


MAX_GONE = 30.0
"""What weighs so much that it is hidden but for a chance of exp(-30) counts as if it were that."""


def hide(pool: Pool, rng: np.random.Generator, share: float) -> Mixture | None:
    """Hide so many reference rows for each data row, but no more than half of them.

    Rows that weigh more are hidden more often. Of groups, all rows or none. None where nothing
    would be left.
    """
    roles = pool.roles(0)
    is_data, is_reference = roles == DATA, roles == REFERENCE
    units, n_units = pool.labeller.units, int(pool.labeller.units.max()) + 1
    size = np.bincount(units, is_reference, minlength=n_units)
    is_weighted = pool.measure is not None or pool.tilt is not None
    own = pool.weights(0)[0] if is_weighted else is_reference.astype(float)
    total = np.bincount(units, own, minlength=n_units)
    rate = total / np.where(size > 0, size, 1)
    candidates = np.flatnonzero(rate > 0)
    # The smallest of exponential times at the rate of the weights: drawn in proportion to them.
    times = rng.exponential(size=len(candidates)) / rate[candidates]
    order = np.argsort(times)
    turn = candidates[order]
    wanted = min(share * is_data.sum(), size[candidates].sum() / 2)
    n_taken = max(1, int(np.sum(np.cumsum(size[turn]) <= wanted)))
    hidden = np.isin(units, turn[:n_taken]) & is_reference
    rest = np.where(hidden, 0.0, own)
    if is_weighted and rest.any():
        # A row is left with this probability, and stands for those of its kind that are not.
        left = np.exp(-np.minimum(rate * times[order[n_taken - 1]], MAX_GONE))
        rest = rest / left[units]
        rest /= np.sum(rest**2) / np.sum(rest)  # so many rows fluctuate as these do
    return Mixture(is_data, hidden, rest) if hidden.any() and rest.any() else None


def as_samples(points: np.ndarray, mixtures: list[Mixture]) -> TwoSample:
    """The mixtures as a batch of experiments, each mixture against the rest of the reference."""
    reference = [mixture.rest * mixture.odds_of_rest for mixture in mixtures]
    data = [mixture.marked.astype(float) for mixture in mixtures]
    return TwoSample(points, np.stack(reference), np.stack(data))
