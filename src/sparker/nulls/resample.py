"""Toys by splitting the reference, for monitors that are calibrated before there are data."""

import numpy as np

from sparker.engine.sample import pad, stack
from sparker.engine.toys import Toys
from sparker.nulls.experiments import Fitted, ToySource, against, most_rows, toy_rng
from sparker.nulls.labels import DATA, REFERENCE, Exchange, Labeller
from sparker.nulls.pool import Pool


class Resample:
    """Split the reference, an anomaly-free pool, into data and reference anew for every toy.

    Toys differ from the observed experiment only in the rows that are tested. But all toys share
    one pool, and the data are not in it. So the level is not exact; it is measured. Where there are
    data already, relabelling them is exact (``Permutation``).
    """

    def __init__(
        self, reference: np.ndarray, batch_size: int, expected: float | None, seed: int
    ) -> None:
        n_rows = len(reference)
        if n_rows <= batch_size:
            raise ValueError(
                f"resampling takes {batch_size} rows out of the reference as data and needs "
                f"{batch_size + 1} in all, the reference has {n_rows}; take a larger one"
            )
        rows = np.arange(n_rows)
        roles = np.where(rows < batch_size, DATA, REFERENCE).astype(np.int8)
        labeller = Labeller(rows, roles, (Exchange(rows[None], batch_size),))
        self.batch_size = batch_size
        self.pool = Pool(reference, labeller, seed, expected=expected, may_list=False)

    def toys(self) -> ToySource:
        """Toys of the batch size, from the pool; from number 1 on."""
        return self.pool.source()

    def observed(self, data: np.ndarray) -> ToySource:
        """The data against the pool without as many rows, as for a toy of their size."""
        labeller, expected = self.pool.labeller, self.pool.expected
        rng = toy_rng(self.pool.seed, 0)
        n_taken = max(len(data), self.batch_size)
        if n_taken >= len(self.pool.points):
            raise ValueError(
                f"the batch has {len(data)} rows, the monitor's reference {len(self.pool.points)}; "
                "calibrate with a larger one"
            )
        roles = labeller.draw_some(rng, self.batch_size, n_taken)
        rest = self.pool.points[roles == REFERENCE]
        sample = against(rest, np.ones(len(rest)), data, expected)
        points = np.asarray(sample.points)
        n_rows = len(points)
        if expected is not None:  # one compiled program for data sets of any size
            most = most_rows(self.batch_size, expected)
            n_rows = max(n_rows, len(self.pool.points) - self.batch_size + most)

        def toys(transform: Fitted) -> Toys:
            one = stack([pad(sample._replace(points=transform(points)), n_rows)])
            return Toys(lambda numbers: one)

        return ToySource(points, toys)
