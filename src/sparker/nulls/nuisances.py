"""The reference at some values of its nuisance parameters, and at those that fit the data best."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from sparker.nulls.density_ratio import N_FOLDS, Weighted, density_ratio
from sparker.nulls.inputs import Samples
from sparker.nulls.labels import DATA, REFERENCE
from sparker.nulls.systematics import Curves, Place, Variation
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
    fixed: Mapping[str, float] = MappingProxyType({})
    """The parameters that are not fitted, and their values."""
    notes: tuple[str, ...] = ()
    """What was decided about them."""
    cautions: tuple[str, ...] = ()
    """What looks suspicious."""

    @property
    def prior(self) -> np.ndarray:  # (K,)
        """What is known of each parameter beforehand."""
        return np.array([one.prior for one in self.variations])

    @property
    def free(self) -> np.ndarray:  # (K,)
        """Which parameters are fitted."""
        return np.array([one.name not in self.fixed for one in self.variations])

    def best(self, observed: Samples, seed: int) -> "Profile":
        """The values that fit the data best, those that toys are made at, and the samples there."""
        free = self.free
        values = np.array([self.fixed.get(one.name, 0.0) for one in self.variations])
        error = np.where(free, self.prior, 0.0)
        if not free.any():
            there = self.at(observed, values, seed, error)
            return Profile(self, there, values, error, there, values)
        for _ in range(MAX_ROUNDS if self.moved is not None else 1):
            found, error[free] = best_values(self.at(observed, values, seed, error))
            before, values = values, values.copy()
            values[free] = np.clip(found, -FAR * self.prior[free], FAR * self.prior[free])
            if np.all(np.abs(values - before) <= CLOSE * error):
                break
        there = self.at(observed, values, seed, error)
        alone = values.copy()
        alone[free] = best_values(there, looser=UNCONSTRAINED).values
        toy_values = self._within_reach(values, alone)
        toys = there
        if np.any(np.abs(toy_values - values) > CLOSE * error):
            toys = self.at(observed, toy_values, seed, error)
        else:
            toy_values = values
        return Profile(self, there, values, error, toys, toy_values)

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
        none = np.zeros(len(pooled))
        curves = [
            # Rows that a parameter moved to a fixed value stay there.
            Curves(none, none) if one.moves and one.name in self.fixed else one.curves(place)
            for one in self.variations
        ]
        slope = np.stack([one.slope for one in curves], axis=1)
        bend = np.stack([one.bend for one in curves], axis=1)
        motion = None
        if self.moved is not None:
            still = np.zeros(pooled.shape)
            motion = np.stack([still if one.motion is None else one.motion for one in curves])
        tilt = Tilt(slope, bend, values, self.prior, None, motion)
        # Rows that functions moved are where they should be; what else is there is a weight.
        still = np.where([one.moves for one in self.variations], 0.0, values)
        own = self._own_weights(observed, place)
        measure = own * np.exp(replace(tilt, base=np.zeros(len(values))).log_ratio(still))
        expected = observed.expected
        if expected is not None:
            expected *= float(measure[:n].sum() / own[:n].sum())
        uneven = np.ptp(measure) > 0
        measure = measure / measure.max()
        free = self.free
        return observed._replace(
            reference=observed.reference if moved is None else moved,
            weights=measure[:n] if uneven else None,
            data_weights=measure[n:] if uneven else None,
            expected=expected,
            tilt=replace(tilt.free(free), expected=expected) if free.any() else None,
        )

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


def best_values(there: Samples, looser: float = 1.0) -> Best:
    """The values that fit the data best, as seen from these samples; with looser priors."""
    assert there.tilt is not None
    roles = np.repeat([REFERENCE, DATA], [len(there.reference), len(there.data)])
    measure = None
    if there.weights is not None and there.data_weights is not None:
        measure = np.concatenate([there.weights, there.data_weights])
    return replace(there.tilt, prior=looser * there.tilt.prior).best(roles, measure)


class Profile(NamedTuple):
    """The nuisance parameters at the values that fit the data best, or that were given."""

    nuisances: Nuisances
    samples: Samples  # the reference at the best values
    values: np.ndarray  # (K,)
    error: np.ndarray  # (K,) the standard deviations of the best values; 0 of fixed ones
    toys: Samples  # the reference where toys are made
    toy_values: np.ndarray  # (K,)

    @property
    def pulls(self) -> tuple[Pull, ...]:
        """How far each parameter that is fitted is pulled."""
        return tuple(
            Pull(one.name, float(value / one.prior), float(error / one.prior), float(one.prior))
            for one, value, error in zip(
                self.nuisances.variations, self.values, self.error, strict=True
            )
            if one.name not in self.nuisances.fixed
        )
