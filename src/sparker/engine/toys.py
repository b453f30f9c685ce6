"""Experiments by number, ready to be measured: the contract of rows in memory and rows streamed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sparker.engine import batch
from sparker.engine.config import FitConfig
from sparker.engine.fit import Fit
from sparker.engine.sample import TwoSample
from sparker.engine.train import OnPart, ignore
from sparker.engine.widths import Schedule


class Toys(Protocol):
    """Number 0 is the observed experiment, the others are anomaly-free."""

    def draw(self, numbers: Sequence[int]) -> TwoSample:
        """Some of them as a batch in memory."""

    def watched(self, on_part: OnPart) -> "Toys":
        """The same, with someone to hear of parts that are fitted, in toys."""

    def check(self, number: int) -> None:
        """Make one of them, so that a limit is met now and not after hours of calibration."""

    def chunk_size(self, number: int, n_toys: int, schedule: Schedule, config: FitConfig) -> int:
        """How many experiments like this one are best fitted at once."""

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


@dataclass(frozen=True)
class ToysInMemory:
    """Experiments that are drawn as batches of rows."""

    draw: Callable[[Sequence[int]], TwoSample]
    on_part: OnPart = ignore

    def watched(self, on_part: OnPart) -> "ToysInMemory":
        """The same, with someone to hear of parts that are fitted."""
        return replace(self, on_part=on_part)

    def check(self, number: int) -> None:
        """Draw it."""
        self.draw([number])

    def chunk_size(self, number: int, n_toys: int, schedule: Schedule, config: FitConfig) -> int:
        """As many as are good for speed and fit into memory."""
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
        """Fit them as batches."""
        return batch.fit_chunks(
            seed, self.draw, numbers, schedule, config, chunk=chunk, on_part=self.on_part
        )
