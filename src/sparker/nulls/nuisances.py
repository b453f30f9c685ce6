"""The reference at some values of its nuisance parameters, and at those that fit the data best."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from sparker.nulls.density_ratio import N_FOLDS, Weighted, density_ratio
from sparker.nulls.inputs import Samples
from sparker.nulls.labels import DATA, REFERENCE
from sparker.nulls.systematics import Place, Variation, nearest
from sparker.nulls.tilt import Best, Tilt

FOLDS = 0xF01D
MAX_ROUNDS = 6
CLOSE = 0.25
"""Rows are moved until the best values lie within so many of their errors of where they are. What
is left is moved in every experiment."""

STEP, MIN_STEP = 4.0, 0.25
"""What a parameter does is learned so many errors around its value, and so many priors at least."""

FAR = 5.0
"""In priors: no value further away is looked at."""

UNCONSTRAINED, REACH = 10.0, 2.0
"""Toys are made at the values that the data alone suggest, as if the priors were so much wider, but
no further out than so many priors, or than the best values. Wherever in this range the truth is,
toys then lie about as far from 0, where the priors hold every fit, as the data do. At the best
values, which the priors have drawn towards 0, toys would look too tame."""

STEPS = (-2.0, -1.0, 1.0, 2.0)
"""Where else p-values are looked at, in standard deviations from the best values."""


class Pull(NamedTuple):
    """How far the data pull a nuisance parameter, in units of its prior."""

    name: str
    value: float
    """The best one; 0 is nominal."""
    error: Annotated[float, Meta(ge=0)]
    """Its standard deviation; 1 where the data tell nothing of it."""
    prior: Annotated[float, Meta(gt=0)]
    """The unit: the standard deviation as known before."""


class Nuisances(NamedTuple):
    """All that is not known exactly of a reference."""

    variations: tuple[Variation, ...]
    moved: Callable[[dict[str, float]], np.ndarray] | None = None
    """(N_R, d) the reference rows as they are moved to these values, by name."""
    unsure: Callable[[int, dict[str, float]], np.ndarray] | None = None
    """(N_R, d) by number of a toy and values: how far moved rows may be off."""

    @property
    def prior(self) -> np.ndarray:  # (K,)
        """What is known of each parameter beforehand."""
        return np.array([one.prior for one in self.variations])

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided about them."""
        return tuple(note for one in self.variations if (note := one.note()) is not None)

    def best(self, observed: Samples, seed: int) -> "Profile":
        """The values that fit the data best, those that toys are made at, and the samples there."""
        values, error = np.zeros(len(self.variations)), self.prior
        for _ in range(MAX_ROUNDS if self.moved is not None else 1):
            found, covariance = best_values(self.at(observed, values, seed, error))
            error = np.sqrt(np.diag(covariance))
            before, values = values, np.clip(found, -FAR * self.prior, FAR * self.prior)
            if np.all(np.abs(values - before) < CLOSE * error):
                break
        there = self.at(observed, values, seed, error)
        toy_values = self._within_reach(values, best_values(there, looser=UNCONSTRAINED).values)
        toys = there
        if np.any(np.abs(toy_values - values) >= CLOSE * error):
            toys = self.at(observed, toy_values, seed, error)
        else:
            toy_values = values
        return Profile(self, observed, there, values, covariance, toys, toy_values)

    def _within_reach(self, best: np.ndarray, alone: np.ndarray) -> np.ndarray:  # (K,), (K,)
        """As far from the best values to those of the data alone as the reach allows.

        All parameters together, so that what the data know of them stays as it is: several that do
        much the same may run away from each other.
        """
        most = np.maximum(REACH * self.prior, np.abs(best))
        step = alone - best
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step != 0, (np.sign(step) * most - best) / step, np.inf)
        return best + min(1.0, float(room.min())) * step

    def at(
        self, observed: Samples, values: np.ndarray, seed: int, error: np.ndarray
    ) -> Samples:  # (K,), (K,)
        """The samples with the reference at these values, and what changes around them."""
        n = len(observed.reference)
        named = self._by_name(values)
        steps = self._by_name(np.clip(STEP * error, MIN_STEP * self.prior, self.prior))
        moved = None if self.moved is None else self.moved(named)
        rows = observed.reference if moved is None else moved
        rng = np.random.default_rng([seed, FOLDS])
        folds = np.append(np.arange(n), rng.integers(N_FOLDS, size=len(observed.data)))
        reference = Weighted(rows, observed.weights)
        pooled = np.concatenate([rows, observed.data])
        place = Place(named, steps, reference, pooled, folds, self.moved, seed)
        curves = [one.curves(place) for one in self.variations]
        slope = np.stack([one.slope for one in curves], axis=1)
        bend = np.stack([one.bend for one in curves], axis=1)
        motion = None
        if self.moved is not None:
            still = np.zeros(pooled.shape)
            motion = np.stack([still if one.motion is None else one.motion for one in curves])
        known = 1 - np.minimum(error / self.prior, 1) ** 2
        unsure = self._unsure(place, motion, known)
        tilt = Tilt(slope, bend, values, self.prior, None, motion, unsure)
        # Rows that functions moved are where they should be; what else is there is a weight.
        still = np.where([one.moves for one in self.variations], 0.0, values)
        own = self._own_weights(observed, place)
        measure = own * np.exp(replace(tilt, base=np.zeros(len(values))).log_ratio(still))
        expected = observed.expected
        if expected is not None:
            expected *= float(measure[:n].sum() / own[:n].sum())
        uneven = np.ptp(measure) > 0
        measure = measure / measure.max()
        return observed._replace(
            reference=observed.reference if moved is None else moved,
            weights=measure[:n] if uneven else None,
            data_weights=measure[n:] if uneven else None,
            expected=expected,
            tilt=replace(tilt, expected=expected),
        )

    def _unsure(
        self, place: Place, motion: np.ndarray | None, known: np.ndarray
    ) -> Callable[[int], np.ndarray] | None:  # (K, N, d), (K,)
        """How far rows may be off, by number of a toy; those of the data as the nearest others.

        Of what a parameter can undo, the fit of an experiment undoes the share that the data, and
        not the prior, ``known`` of it.
        """
        unsure = self.unsure
        if unsure is None or motion is None:
            return None
        n = len(place.reference.rows)
        rows = np.append(np.arange(n), nearest(place.reference.rows, place.rows[n:]))
        own, values = motion[:, :n], place.values
        undone = seen_as(place.reference, own)

        def left(number: int) -> np.ndarray:  # (N, d)
            off = unsure(number, values)
            return (off - np.tensordot(known * undone(off), own, axes=1))[rows]

        return left

    def _by_name(self, values: np.ndarray) -> dict[str, float]:  # (K,)
        return {one.name: float(v) for one, v in zip(self.variations, values, strict=True)}

    def _own_weights(self, observed: Samples, place: Place) -> np.ndarray:  # (N,)
        """The weights of the nominal reference, at all rows.

        Where those of the data rows are not known, or rows have moved, they are learned from the
        weights of the reference rows.
        """
        if observed.weights is None:
            return np.ones(len(place.rows))
        if observed.data_weights is not None and self.moved is None:
            return np.concatenate([observed.weights, observed.data_weights]).astype(float)
        unweighted = Weighted(place.reference.rows)
        learned = density_ratio(place.reference, unweighted, place.seed)
        return np.exp(learned(place.rows, place.folds))


def seen_as(reference: Weighted, motion: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Which steps of motions (K, N, d) look most like a given one: (N, d) -> (K,).

    As means and spreads of columns tell it, with the precision that rows like these have of them.
    """
    rows, weights = reference.rows.astype(float), reference.own / reference.own.sum()
    mean = weights @ rows
    spread = np.sqrt(weights @ (rows - mean) ** 2)
    scale = np.where(spread > 0, spread, 1)
    z = (rows - mean) / scale
    features = np.concatenate([z, z**2], axis=1)
    covariance = np.cov(features, rowvar=False, aweights=weights)
    metric = np.linalg.pinv(np.atleast_2d(covariance), hermitian=True)

    def change(field: np.ndarray) -> np.ndarray:  # (N, d) -> (2 d,) of the features' means
        u = field / scale
        return np.concatenate([weights @ u, weights @ (2 * z * u)])

    basis = np.stack([change(one) for one in motion], axis=1)  # (2 d, K)
    solve = np.linalg.pinv(basis.T @ metric @ basis, hermitian=True) @ basis.T @ metric
    return lambda field: solve @ change(field)


def best_values(there: Samples, looser: float = 1.0) -> Best:
    """The values that fit the data best, as seen from these samples; with looser priors."""
    assert there.tilt is not None
    roles = np.repeat([REFERENCE, DATA], [len(there.reference), len(there.data)])
    measure = None
    if there.weights is not None and there.data_weights is not None:
        measure = np.concatenate([there.weights, there.data_weights])
    return replace(there.tilt, prior=looser * there.tilt.prior).best(roles, measure)


class Profile(NamedTuple):
    """The nuisance parameters at the values that fit the data best."""

    nuisances: Nuisances
    given: Samples  # as they came, the reference nominal
    samples: Samples  # the reference at the best values
    values: np.ndarray  # (K,)
    covariance: np.ndarray  # (K, K) of the best values
    toys: Samples  # the reference where toys are made
    toy_values: np.ndarray  # (K,)

    @property
    def pulls(self) -> tuple[Pull, ...]:
        """How far each parameter is pulled."""
        return tuple(
            Pull(one.name, float(value / one.prior), float(error / one.prior), float(one.prior))
            for one, value, error in zip(
                self.nuisances.variations, self.values, self.error, strict=True
            )
        )

    @property
    def error(self) -> np.ndarray:  # (K,)
        """The standard deviations of the best values."""
        return np.sqrt(np.diag(self.covariance))

    def around(self) -> list[np.ndarray]:  # (K,) each
        """Values one and two standard deviations away, along each direction that is independent."""
        sizes, directions = np.linalg.eigh(self.covariance)
        return [
            self.values + step * np.sqrt(size) * direction
            for size, direction in zip(sizes, directions.T, strict=True)
            for step in STEPS
        ]
