"""Ways to make toys that are wrong: what they do to the level shows that the study would see it."""

import numpy as np

from sparker.engine import Toys, TwoSample, pad, stack
from sparker.nulls import (
    Experiments,
    Fitted,
    Permutation,
    Samples,
    Scheme,
    ToySource,
    relabelled,
    toy_rng,
)
from sparker.nulls.experiments import against
from sparker.nulls.labels import DATA, Labeller, exchanges_of
from sparker.nulls.pool import Pool


class OwnReference(Scheme):
    """Null data drawn from the very rows that are the reference of the same fit."""

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """As a simulator would that is not looked at."""
        return _fixed_reference(observed, seed, observed.reference)


class PoolApart(Scheme):
    """Toys from a pool that the data do not change places with."""

    def __init__(self, pool: np.ndarray) -> None:
        self.pool = pool

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """As above, with other rows."""
        return _fixed_reference(observed, seed, self.pool)


def _fixed_reference(observed: Samples, seed: int, pool: np.ndarray) -> Experiments:
    reference, data = observed.reference, observed.data
    ones = np.ones(len(reference))

    def toys(transform: Fitted) -> Toys:
        def one(number: int) -> TwoSample:
            rows = data
            if number:
                rows = pool[toy_rng(seed, number).choice(len(pool), len(data), replace=False)]
            sample = against(transform(reference), ones, transform(rows), None)
            return pad(sample, len(reference) + len(data))

        return Toys(lambda numbers: stack([one(number) for number in numbers]))

    return Experiments(ToySource(reference, toys))


class Splits(Scheme):
    """Toys that are splits of the reference, where the data are there to be relabelled."""

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """The data face the reference without as many rows, as those of a toy do."""
        reference, n = observed.reference, len(observed.data)

        def toys(transform: Fitted) -> Toys:
            def one(number: int) -> TwoSample:
                taken, kept = np.split(toy_rng(seed, number).permutation(reference), [n])
                rows = taken if number else observed.data
                sample = against(transform(kept), np.ones(len(kept)), transform(rows), None)
                return pad(sample, len(reference))

            return Toys(lambda numbers: stack([one(number) for number in numbers]))

        return Experiments(ToySource(reference, toys))


class AnySize(Scheme):
    """As many groups as there are, whatever their sizes."""

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """One class for all groups."""
        assert observed.groups is not None
        units = np.concatenate(observed.groups)
        roles = np.zeros(units.max() + 1, np.int8)
        roles[np.unique(observed.groups[1])] = DATA
        exchanges = exchanges_of(np.zeros(len(roles), int), roles == DATA)
        points = np.concatenate([observed.reference, observed.data])
        return Pool(points, Labeller(units, roles, exchanges), seed).experiments()


class WeightsAsChances(Scheme):
    """Rows become data by weights that only reference rows have; data rows get the mean weight.

    Those that stay are weighted up by one over their chance to stay. Close to right where weights
    are mild and data few, and it was this package's way once.
    """

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """Pareto sampling, by chances in proportion to the weights."""
        assert observed.weights is not None
        own, n_data = observed.weights, len(observed.data)
        measure = np.concatenate([own * (own.sum() / np.sum(own**2)), np.ones(n_data)])
        chance = n_data * measure / measure.sum()
        points = np.concatenate([observed.reference, observed.data])

        def weights(number: int) -> tuple[np.ndarray, np.ndarray]:
            is_data = np.arange(len(measure)) >= len(own)
            reference = measure
            if number:
                u = toy_rng(seed, number).random(len(measure))
                order = np.argpartition(u / (1 - u) * (1 - chance) / chance, n_data)
                is_data = np.isin(np.arange(len(measure)), order[:n_data])
                reference = measure / (1 - chance)
            reference = np.where(is_data, 0, reference)
            return reference * (n_data / reference.sum()), is_data.astype(float)

        def toys(transform: Fitted) -> Toys:
            fitted = transform(points)
            return Toys(lambda numbers: relabelled(fitted, (weights(i) for i in numbers)))

        return Experiments(ToySource(points, toys))


class Ignoring(Permutation):
    """Relabelling that ignores groups and strata."""

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """As if there were none."""
        return super().experiments(observed._replace(groups=None, strata=None), seed)
