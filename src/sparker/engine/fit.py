"""What a fit leaves behind."""

from typing import NamedTuple

import jax
import numpy as np

from sparker.engine.ensemble import Ensemble
from sparker.engine.widths import Schedule


class Fit(NamedTuple):
    """What a fit leaves behind; a batch of fits has one more axis in front."""

    models: Ensemble  # mu (m, M, d), a (m, M), sigma (m,): the ensemble at each width read off
    statistics: np.ndarray  # (m, r) those of train.FAMILIES, larger where the samples differ more
    score_counts: np.ndarray  # (m, bins) data events by anomaly score
    finite: np.ndarray  # () whether all of it is

    @property
    def t(self) -> np.ndarray:  # (m,)
        """The test statistic of the whole model, in double precision."""
        return self.statistics[..., 0]

    def at(self, width: int) -> Ensemble:
        """The ensemble of a single fit at one of its widths, counted from the widest."""
        if self.t.ndim != 1:
            raise ValueError(f"this holds {len(self.t)} fits; choose one first, with .toy(i)")
        return Ensemble(*(array[width] for array in self.models))

    def toy(self, position: int) -> "Fit":
        """One fit of a batch."""
        if self.t.ndim != 2:
            raise ValueError("this is a single fit already")
        return jax.tree.map(lambda array: array[position], self)


def as_fit(done: Fit, n_toys: int, origin: np.ndarray, unit: float, schedule: Schedule) -> Fit:
    """The first toys of a chunk, in the coordinates that their points came in."""
    found: Fit = jax.tree.map(lambda array: np.asarray(array)[:n_toys], done)
    mu, a, _ = found.models
    origin = np.expand_dims(origin, -3)
    dtype = np.result_type(origin, mu)
    sigma = np.broadcast_to(schedule.widths.astype(dtype), a.shape[:-1])
    return found._replace(models=Ensemble(mu * dtype.type(unit) + origin, a, sigma))
