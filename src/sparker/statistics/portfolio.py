"""SparKer's kernels in company: several ways to look, since no single one sees everything.

Every family of component tests finds something that the others miss: trained kernels and scans
what is local at some width, k-NN counts what is dense or sparse at any, marginal tails what happens
in one column, mean and variance shift what happens to all rows a little. Their p-values are
combined in two stages (``calibration.pvalues``), so that a family with many component tests counts
as much as one with few.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from sparker.engine.ensemble import Competition
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.engine.toys import Toys
from sparker.statistics.contract import Chunk, Component, Statistic
from sparker.statistics.edges import Edges
from sparker.statistics.kernels import KernelStatistic, PreparedKernels
from sparker.statistics.neighbours import Neighbours
from sparker.statistics.shifts import Shifts

COMPANY: tuple[Statistic, ...] = (Neighbours(), Edges(), Shifts())


@dataclass(frozen=True, kw_only=True)
class Portfolio(Statistic):
    """Kernels that explore, and other ways to look at the same experiments."""

    kernels: KernelStatistic
    company: tuple[Statistic, ...] = COMPANY

    @property
    def min_rows(self) -> int:
        """As many as the kernels need."""
        return self.kernels.min_rows

    def prepare(
        self, points: np.ndarray, transform: Transform | None = None
    ) -> "PreparedPortfolio":
        """Prepare all of them."""
        others = tuple(one.prepare(points, transform) for one in self.company)
        return PreparedPortfolio(self.kernels.prepare(points, transform), others)

    @property
    def competition(self) -> Competition:
        """That of the kernels."""
        return self.kernels.competition

    def log_ratios(
        self, prepared: Any, seed: int, samples: TwoSample, chunk: int | None
    ) -> np.ndarray:  # (B, N, m)
        """Those of the kernels."""
        return self.kernels.log_ratios(prepared.kernels, seed, samples, chunk)


class PreparedPortfolio(NamedTuple):
    """Kernels and their company, all settings fixed."""

    kernels: PreparedKernels
    company: tuple[Any, ...]

    @property
    def component_tests(self) -> tuple[Component, ...]:
        """Those of all."""
        return sum((one.component_tests for one in (self.kernels, *self.company)), ())

    @property
    def widths(self) -> np.ndarray:
        """Those of the kernels."""
        return self.kernels.widths

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the kernels, and of the others by their names."""
        return {**self.kernels.settings, "company": [one.settings for one in self.company]}

    def chunk_size(self, toys: Toys, number: int, n_toys: int) -> int:
        """As many as are good for the kernels and fit into memory beside the others."""
        return min(one.chunk_size(toys, number, n_toys) for one in (self.kernels, *self.company))

    def chunks(self, seed: int, toys: Toys, numbers: Sequence[int], chunk: int) -> Iterator[Chunk]:
        """Fit the kernels of a chunk, and look at it in the other ways."""
        looks = [one.start(seed, chunk) for one in self.company]
        for done in self.kernels.chunks(seed, toys, numbers, chunk):
            batch = _on_device(toys.draw(done.numbers))
            found = [done.statistics, *(look(done.numbers, batch) for look in looks)]
            yield done._replace(statistics=np.concatenate(found, axis=1))


def _on_device(batch: TwoSample) -> TwoSample:
    """With weights that all of the company can share: they are the larger part of a pool's toys."""
    if np.ndim(batch.points) == 3:
        return batch
    with jax.enable_x64(True):
        weights = [jax.device_put(np.asarray(weight, np.float64)) for weight in batch[1:]]
    return TwoSample(batch.points, *weights)
