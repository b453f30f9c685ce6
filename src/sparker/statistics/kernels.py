"""SparKer as a statistic: what training and scans find at each width."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparker.engine import batch
from sparker.engine.config import FitConfig
from sparker.engine.ensemble import Competition, log_ratio
from sparker.engine.memory import chunk_size
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.engine.toys import Toys
from sparker.engine.train import FAMILIES
from sparker.engine.widths import Schedule, WidthConfig
from sparker.statistics.contract import COUNTED, Chunk, Component, Statistic, rounded


@dataclass(frozen=True, kw_only=True)
class KernelStatistic(Statistic):
    """SparKer: what training and scans find at each width (``train.FAMILIES``)."""

    config: FitConfig = FitConfig()
    widths: WidthConfig = WidthConfig()

    @property
    def min_rows(self) -> int:
        """Every kernel needs a row to start from."""
        return self.config.n_kernels

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> "PreparedKernels":
        """Choose the widths."""
        return PreparedKernels(self.config, self.widths.schedule(points))

    @property
    def competition(self) -> Competition:
        """As the kernels were told."""
        return self.config.competition

    def log_ratios(
        self, prepared: Any, seed: int, samples: TwoSample, chunk: int | None
    ) -> np.ndarray:  # (B, N, m)
        """At every width; zero where a fit did not stay finite."""
        fits = batch.fit_many(seed, samples, prepared.schedule, self.config, chunk=chunk)
        points, widths = np.asarray(samples.points), range(fits.t.shape[1])
        found = np.stack(
            [
                np.stack([log_ratio(fit.at(i), points, self.competition) for i in widths], axis=-1)
                for fit in map(fits.toy, range(len(fits.t)))
            ]
        )
        return np.where(fits.finite[:, None, None], found, 0)


class PreparedKernels(NamedTuple):
    """Kernels and the widths that they go through."""

    config: FitConfig
    schedule: Schedule

    @property
    def widths(self) -> np.ndarray:
        """The widths read off."""
        return self.schedule.widths

    @property
    def families(self) -> tuple[str, ...]:
        """What is read off at each width: the whole model alone, where there are no scans."""
        return FAMILIES if len(self.schedule.explore) else FAMILIES[:1]

    @property
    def component_tests(self) -> tuple[Component, ...]:
        """All families at the first width, then at the next."""
        return tuple(
            Component(family, float(width)) for width in self.widths for family in self.families
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Of the kernels, and what became of the widths."""
        return {
            "kernels": self.config,
            "steps": len(self.schedule.sigma),
            "annealing": rounded(self.schedule.sigma[:: max(1, len(self.schedule.sigma) // 4)]),
            "widths": rounded(self.widths),
            "explorations": len(self.schedule.explore),
            "families": self.families,
        }

    def chunk_size(self, toys: Toys, number: int, n_toys: int) -> int:
        """As many as are best fitted at once, and fit into memory."""
        return chunk_size(toys.draw([number]), n_toys, self.schedule, self.config)

    def chunks(self, seed: int, toys: Toys, numbers: Sequence[int], chunk: int) -> Iterator[Chunk]:
        """Fit them; a fit that is not finite has no statistics."""
        fits = batch.fit_chunks(
            seed, toys.draw, numbers, self.schedule, self.config, chunk=chunk, on_part=toys.on_part
        )
        for done, fit in fits:
            finite = np.where(fit.finite[:, None, None], fit.statistics, np.nan)
            side_by_side = finite.reshape(len(finite), -1)
            observed = fit.toy(list(done).index(0)) if 0 in done else None
            models = observed.models if observed is not None and observed.finite else None
            counts = fit.score_counts[np.asarray(done) <= COUNTED]
            yield Chunk(done, side_by_side, models, counts)
