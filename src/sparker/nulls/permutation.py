"""Toys by relabelling the pooled rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparker.nulls.blocks import relabelled_rows
from sparker.nulls.experiments import Arm, Draw, Experiments, Fitted, against, relabelled, toy_rng
from sparker.nulls.given import Samples
from sparker.nulls.labels import Labeller
from sparker.sample import TwoSample


@dataclass(frozen=True)
class Permutation:
    """Relabel the pooled rows: if data and reference are alike, any labelling is as likely.

    With ``groups`` whole groups are relabelled. With ``expected`` the number of rows labelled data
    fluctuates as Poisson around it. With weights a row is labelled data with a probability
    proportional to its weight and, where it stays reference, is weighted up by one over the
    probability of staying, so that the reference keeps describing the same density.
    """

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """One pool for the observed sample and all toys."""
        if observed.rows is not None:
            return relabelled_rows(observed, seed)
        own, expected = observed.own_weights, observed.expected
        first = against(observed.reference, own, observed.data, expected)
        points = np.asarray(first.points)
        # As many as the unweighted rows that would fluctuate as much.
        effective = own.sum() / np.sum(own**2)
        measure = np.concatenate([own * effective, np.ones(len(observed.data))])
        units = np.arange(len(points))
        if observed.groups is not None:
            units = np.concatenate(observed.groups)
        labeller = Labeller(measure, units, observed.n_units, expected)

        def draw(transform: Fitted) -> Draw:
            fitted = transform(points)

            def batch(numbers: Sequence[int]) -> TwoSample:
                weights = (first[1:] if i == 0 else labeller(toy_rng(seed, i)) for i in numbers)
                return relabelled(fitted, weights)

            return batch

        arm = Arm(points, draw)
        return Experiments(arm, arm)
