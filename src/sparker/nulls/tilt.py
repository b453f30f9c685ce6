"""How the reference changes with nuisance parameters, and the values that fit an experiment best.

At the values nu the density of a row is exp(sum_k l_k(x; nu_k)) times that of the base, with

    l_k(x; nu) = (nu - base) a_k(x) + (q(nu) - q(base)) b_k(x),

q(nu) = nu^2 / 2 up to one and linear beyond (as HistFactory extrapolates). The best values maximise
the likelihood of the experiment, of its labels given its rows: a row is data with the odds of its
density ratio, the same odds by which toys draw their labels. With an expected count its Poisson
term is part of it, and so are the auxiliary measurements, Gaussians of the width of the priors.
These were made once, at 0, which is what the nominal reference was made for; toys keep them.

Where a parameter moves rows, the ratio is only for the fit. The reference of an experiment is then
not weighted but moved to its best values: what a fit that is a little off leaves behind, at an edge
for instance, is thus the same in toys and data.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sparker.nulls.labels import DATA, REFERENCE

MAX_STEPS = 50
CLOSE = 1e-6
"""A fit has converged when no step is larger, in units of the priors."""


class Refitted(NamedTuple):
    """The reference of one experiment, at the nuisance values that fit it best."""

    measure: np.ndarray  # (N,)
    rate: float  # by how much the expected count changes
    motion: np.ndarray | None  # (N, d) how far rows are moved, where any are


class Best(NamedTuple):
    """The nuisance values that fit an experiment best."""

    values: np.ndarray  # (K,)
    error: np.ndarray  # (K,) their standard deviations


@dataclass(frozen=True, eq=False)
class Tilt:
    """What nuisance parameters do to each row of a pool, around a base."""

    slope: np.ndarray  # (N, K) a_k
    bend: np.ndarray  # (N, K) b_k
    base: np.ndarray  # (K,) the values at which the pool's own measure holds
    prior: np.ndarray  # (K,) the widths of the auxiliary measurements
    expected: float | None  # data rows at the base, where the count is tested as well
    motion: np.ndarray | None = None
    """(K, N, d) how far a step of one of each parameter moves a row, where any does."""

    def of(self, rows: np.ndarray) -> "Tilt":
        """The same for some rows, in their order."""
        motion = None if self.motion is None else self.motion[:, rows]
        return replace(self, slope=self.slope[rows], bend=self.bend[rows], motion=motion)

    def free(self, which: np.ndarray) -> "Tilt":  # (K,)
        """The same for some parameters; the others stay at the base."""
        return replace(
            self,
            slope=self.slope[:, which],
            bend=self.bend[:, which],
            base=self.base[which],
            prior=self.prior[which],
            motion=None if self.motion is None else self.motion[which],
        )

    @property
    def weighs(self) -> np.ndarray:  # (K,)
        """Which parameters change the weights of rows, and do not move them."""
        if self.motion is None:
            return np.ones(len(self.base), bool)
        return ~np.any(self.motion != 0, axis=(1, 2))

    def log_ratio(self, values: np.ndarray) -> np.ndarray:  # (K,) -> (N,)
        """The log of how much the density of each row changes from the base to these values."""
        return self.slope @ (values - self.base) + self.bend @ (_bent(values) - _bent(self.base))

    def fitted(self, roles: np.ndarray, measure: np.ndarray | None) -> Refitted:  # (N,), (N,)
        """The reference of an experiment at its best values."""
        values = self.best(roles, measure).values
        own = np.ones(len(roles)) if measure is None else measure
        change = np.exp(self.log_ratio(np.where(self.weighs, values, self.base)))
        is_reference = roles == REFERENCE
        rate = (own * change)[is_reference].sum() / own[is_reference].sum()
        motion = None
        if self.motion is not None:
            motion = np.tensordot(values - self.base, self.motion, axes=1)
        return Refitted(own * change, float(rate), motion)

    def best(self, roles: np.ndarray, measure: np.ndarray | None) -> Best:  # (N,), (N,)
        """Fit the nuisance parameters to an experiment, by Fisher scoring with step halving."""
        used = (roles == DATA) | (roles == REFERENCE)
        still = replace(self, motion=None)  # which the likelihood does not ask for
        problem = _Problem(
            still.of(np.flatnonzero(used)),
            roles[used] == DATA,
            np.ones(used.sum()) if measure is None else measure[used],
        )
        at = np.concatenate([[problem.first], self.base])
        loss = problem.loss(at)
        for _ in range(MAX_STEPS):
            slope, information = problem.slope(at)
            step = np.linalg.solve(information, slope)
            size, trial = 1.0, at + step
            while not (new := problem.loss(trial)) <= loss and size > 1e-4:
                size /= 2
                trial = at + size * step
            if not new <= loss:
                break
            at, loss = trial, new
            if np.all(np.abs(size * step[1:]) < CLOSE * self.prior):
                break
        covariance = np.linalg.inv(problem.slope(at)[1])[1:, 1:]
        return Best(at[1:], np.sqrt(np.diag(covariance)))


class _Problem:
    """The likelihood of one experiment, as a function of an intercept and the K values."""

    def __init__(self, tilt: Tilt, is_data: np.ndarray, measure: np.ndarray) -> None:
        self.tilt, self.is_data = tilt, is_data
        with np.errstate(divide="ignore"):
            self.offset = np.log(measure)  # (n,)
        self.of_reference = np.where(is_data, 0.0, measure)
        # The share of data is what it is: the intercept takes it up, so that only shapes count.
        self.first = float(np.log(is_data.sum() / self.of_reference.sum()))

    def loss(self, at: np.ndarray) -> float:  # (1 + K,) -> ()
        """Minus the log likelihood."""
        tilt, values = self.tilt, at[1:]
        change = tilt.log_ratio(values)
        log_odds = at[0] + self.offset + change
        with np.errstate(invalid="ignore"):  # of rows without weight, which are no data
            wrong = np.where(self.is_data, -log_odds, log_odds)
        total = np.logaddexp(0, wrong).sum()
        total += 0.5 * np.sum((values / tilt.prior) ** 2)
        if tilt.expected is not None:
            expected, _ = self._count(change, values)
            total += expected - self.is_data.sum() * np.log(expected)
        return float(total)

    def slope(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # (1 + K,), (1+K, 1+K)
        """The slope of the log likelihood, and its Fisher information."""
        tilt, values = self.tilt, at[1:]
        change = tilt.log_ratio(values)
        along = self._along(values)
        chance = expit(at[0] + self.offset + change)
        rows = np.column_stack([np.ones(len(change)), along])  # (n, 1 + K)
        slope = (self.is_data - chance) @ rows
        information = (rows * (chance * (1 - chance))[:, None]).T @ rows
        slope[1:] -= values / tilt.prior**2
        information[1:, 1:] += np.diag(tilt.prior**-2)
        if tilt.expected is not None:
            expected, relative = self._count(change, values)
            slope[1:] += (self.is_data.sum() - expected) * relative
            information[1:, 1:] += expected * np.outer(relative, relative)
        return slope, information

    def _along(self, values: np.ndarray) -> np.ndarray:  # (K,) -> (n, K)
        return self.tilt.slope + self.tilt.bend * np.clip(values, -1, 1)

    def _count(self, change: np.ndarray, values: np.ndarray) -> tuple[float, np.ndarray]:
        """Data rows expected, and the relative change of this with each value."""
        assert self.tilt.expected is not None
        weights = self.of_reference * np.exp(change)
        rate = weights.sum() / self.of_reference.sum()
        return self.tilt.expected * float(rate), weights @ self._along(values) / weights.sum()


def _bent(values: np.ndarray) -> np.ndarray:
    size = np.abs(values)
    return np.where(size <= 1, size**2 / 2, size - 0.5)
