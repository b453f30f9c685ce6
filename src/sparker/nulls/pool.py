"""A pool of rows that the observed experiment and all toys share; they differ by the labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparker.engine.sample import TwoSample, stack
from sparker.engine.toys import Toys
from sparker.nulls.experiments import (
    Experiments,
    Fitted,
    ToySource,
    most_rows,
    own_rows,
    relabelled,
    toy_rng,
)
from sparker.nulls.labels import DATA, REFERENCE, Labeller
from sparker.nulls.tilt import Tilt

ORDER = 0x02DE2


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows, and the ways to label them."""

    points: np.ndarray  # (N, d)
    labeller: Labeller
    seed: int
    rows: np.ndarray | None = None
    """(N,) which rows they are, of the reference and then of the data."""
    measure: np.ndarray | None = None  # (N,) how much a row counts as reference; None for ones
    strata: np.ndarray | None = None  # (N,) within which reference and data add up to as much
    expected: float | None = None
    """The number of data rows where it is known; toys then fluctuate around it."""
    tilt: Tilt | None = None
    """Nuisance parameters, fitted anew in every experiment."""
    keep_reference: bool = True
    """Whether a toy with fewer data rows than observed still has as many reference rows."""
    notes: tuple[str, ...] = ()

    def experiments(self) -> Experiments:
        """The observed experiment and the toys."""
        n_toys = len(self._others) if self._lists else None
        return Experiments(ToySource(self.points, self.toys), n_toys, self.notes)

    def toys(self, transform: Fitted) -> Toys:
        """All experiments by number, given the preprocessing."""
        if self.tilt is not None and self.tilt.motion is not None:
            return Toys(lambda numbers: stack([self.moved(i, transform) for i in numbers]))
        fitted = transform(self.points)
        counts = np.bincount(self.roles(0), minlength=3)
        n_used = int(counts[REFERENCE]) + most_rows(int(counts[DATA]), self.expected)
        # Copying the rows in use costs less than going over all the others.
        sparse = n_used < len(fitted) / 2

        def batch(numbers: Sequence[int]) -> TwoSample:
            shared = relabelled(fitted, (self.weights(i) for i in numbers))
            return own_rows(shared, n_used) if sparse else shared

        return Toys(batch)

    def moved(self, number: int, transform: Fitted) -> TwoSample:
        """Experiment ``number`` with its reference rows where nuisance parameters move them."""
        reference, data, motion = self._labelled(number)
        assert motion is not None
        points = self.points + np.where(reference > 0, 1, 0)[:, None] * motion
        return TwoSample(transform(points.astype(self.points.dtype)), reference, data)

    def weights(self, number: int) -> tuple[np.ndarray, np.ndarray]:  # (N,), (N,)
        """How much each row counts, as reference and as data, in experiment ``number``."""
        return self._labelled(number)[:2]

    def _labelled(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Weights, as above, and how far rows of the reference are moved."""
        roles = self.roles(number)
        is_data = roles == DATA
        measure, expected, motion = self.measure, self.expected, None
        if self.tilt is not None:
            measure, rate, motion = self.tilt.fitted(roles, measure)
            expected = None if expected is None else expected * rate
        reference = np.where(roles == REFERENCE, 1.0 if measure is None else measure, 0.0)
        if self.strata is None:
            reference *= (expected or is_data.sum()) / reference.sum()
        else:
            n_data, total = (np.bincount(self.strata, some) for some in (is_data, reference))
            reference *= (n_data / np.where(total > 0, total, 1))[self.strata]
        return reference, is_data.astype(float), motion

    def roles(self, number: int) -> np.ndarray:  # (N,)
        """What each row is in experiment ``number``."""
        labeller = self.labeller
        if number == 0:
            return labeller.observed[labeller.units]
        rng = toy_rng(self.seed, number)
        if self.expected is not None:
            n_data = int(rng.poisson(self.expected))
            n_taken = n_data
            if self.keep_reference:
                # A toy with fewer data rows than observed leaves the spare rows out, so that its
                # reference is no larger.
                n_taken = max(n_data, int(np.sum(labeller.observed == DATA)))
            self._check_room(n_data, n_taken)
            return labeller.draw_some(rng, n_data, n_taken)
        if self._lists:
            return labeller.listed(self._others[number - 1])
        return labeller.draw(rng)

    @property
    def _lists(self) -> bool:
        """Whether toys are different labellings, none twice: where there are only few."""
        return self.expected is None and self.labeller.n_labellings is not None

    @cached_property
    def _others(self) -> np.ndarray:
        """All labellings but the observed one, in random order."""
        assert self.labeller.n_labellings is not None
        others = np.delete(np.arange(self.labeller.n_labellings), self.labeller.index)
        # A random stream of its own, independent of the one that shuffled the rows.
        return np.random.default_rng([self.seed, 1, ORDER]).permutation(others)

    def _check_room(self, n_data: int, n_taken: int) -> None:
        (exchange,) = self.labeller.exchanges
        n_all = exchange.n_possible
        if n_taken > n_all - (self.labeller.rest == REFERENCE):
            raise ValueError(
                f"a toy with {n_data} data rows leaves no reference in a pool of {n_all}; "
                "use a larger reference, or a simulator"
                if self.labeller.rest == REFERENCE
                else f"the simulator's pool has {n_all} rows, a toy needs {n_data}; add rows"
            )
