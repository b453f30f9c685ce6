"""Experiments by number, ready to be measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sparker.engine import batch
from sparker.engine.config import FitConfig
from sparker.engine.fit import Fit
from sparker.engine.sample import TwoSample
from sparker.engine.train import OnPart, ignore
from sparker.engine.widths import Schedule


@dataclass(frozen=True)
class Toys:
    """Experiments that are drawn as batches of rows: number 0 the observed one, others toys."""

    draw: Callable[[Sequence[int]], TwoSample]
    on_part: OnPart = ignore
    """Hears of parts that are fitted, in toys."""

    def chunk_size(self, number: int, n_toys: int, schedule: Schedule, config: FitConfig) -> int:
        """How many experiments like this one are best fitted at once, and fit into memory."""
        return batch.chunk_size(self.draw([number]), n_toys, schedule, config)

    def fit_chunks(
        self,
        seed: int,
        numbers: Sequence[int],
        schedule: Schedule,
        config: FitConfig,
        *,
        chunk: int,
    ) -> Iterator[tuple[Sequence[int], Fit]]:
        """Fit the experiments of these numbers, a chunk at a time."""
        return batch.fit_chunks(
            seed, self.draw, numbers, schedule, config, chunk=chunk, on_part=self.on_part
        )
