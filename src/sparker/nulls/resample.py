"""Toys by splitting the reference."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparker.nulls.experiments import (
    Arm,
    Draw,
    Experiments,
    Fitted,
    against,
    most_rows,
    own_rows,
    relabelled,
    toy_rng,
)
from sparker.nulls.given import Samples
from sparker.nulls.labels import Labeller
from sparker.sample import TwoSample, pad, stack


@dataclass(frozen=True)
class Resample:
    """Split the reference, an anomaly-free pool, into data and reference anew for every toy.

    Needs no data, so a calibration can be made before there are any. Toys differ from the observed
    experiment in nothing but whose rows are tested, yet they share one pool among each other, which
    exchangeable rows would not: the level is right up to that, and measured.
    """

    n_reference: int | None = None
    """Reference rows of each experiment; all that are not data if left out."""

    one_pool = True
    """Toys share rows that the data are not among."""

    def __post_init__(self) -> None:
        n = self.n_reference
        if n is not None and (n < 1 or int(n) != n):
            raise ValueError(f"n_reference must be a whole number from 1 on, got {n}")

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """Toys from the pool, and the data against as many rows of it as a toy has."""
        n_units = observed.n_units
        return Experiments(
            self.observed(observed, n_units, seed), self.toys(observed, n_units, seed)
        )

    def toys(self, observed: Samples, n_units: int, seed: int) -> Arm:
        """Toys with so many data rows, or groups of them; the data themselves are not needed."""
        pool = observed.reference
        labeller = self._labeller(observed, n_units)
        most = len(pool)
        if self.n_reference is not None and observed.groups is None:
            most = self.n_reference + most_rows(n_units, observed.expected)

        def draw(transform: Fitted) -> Draw:
            fitted = transform(pool)

            def batch(numbers: Sequence[int]) -> TwoSample:
                shared = relabelled(fitted, (labeller(toy_rng(seed, i)) for i in numbers))
                # Copies of the rows in use cost less than passing over all the others.
                return own_rows(shared, most) if most < len(pool) / 2 else shared

            return batch

        return Arm(pool, draw)

    def observed(self, observed: Samples, n_units: int, seed: int) -> Arm:
        """The data against what a toy of their size faces: the pool without as many rows."""
        pool, data = observed.reference, observed.data
        kept, _ = self._labeller(observed, n_units)(toy_rng(seed, 0), observed.n_units)
        rest = np.flatnonzero(kept > 0)
        sample = against(pool[rest], kept[rest], data, observed.expected)
        points = np.asarray(sample.points)
        n_rows = len(points)
        if observed.expected is not None:  # one compiled program for data sets of any size
            n_rows = max(n_rows, len(pool) - n_units + most_rows(n_units, observed.expected))

        def draw(transform: Fitted) -> Draw:
            one = stack([pad(sample._replace(points=transform(points)), n_rows)])
            return lambda numbers: one

        return Arm(points, draw)

    def _labeller(self, observed: Samples, n_units: int) -> Labeller:
        units, kind = np.arange(len(observed.reference)), "rows"
        if observed.groups is not None:  # their numbers leave gaps for those of the data
            units, kind = np.unique(observed.groups[0], return_inverse=True)[1], "groups"
        n_all = int(units.max()) + 1
        needed = n_units + (self.n_reference or 1)
        if n_all < needed:
            raise ValueError(
                f"resampling takes {n_units} {kind} out of the reference as data and needs "
                f"{needed} in all, the reference has {n_all}; take a larger one, or relabel "
                "with the permutation scheme"
            )
        return Labeller(observed.own_weights, units, n_units, observed.expected, self.n_reference)
