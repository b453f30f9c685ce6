"""One contract for every test statistic, so that calibration is written once.

A ``Statistic`` first sees the rows that may decide its settings (never who is data) and is then
evaluated on experiments, a chunk at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from sparker.engine.ensemble import Competition, Ensemble
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.engine.toys import Toys
from sparker.system.archive import ArraySpec, Count, Each

Evaluate = Callable[[Sequence[int], TwoSample], np.ndarray]
"""The numbers of experiments and their batch -> (B, m)."""


class Component(NamedTuple):
    """One number that a statistic gives an experiment, larger where the samples differ more."""

    family: str
    """The way to look, by name: component tests of a family are combined first."""
    scale: float
    """At which scale: a width, a number of neighbours; a number of order if it has none."""


class Chunk(NamedTuple):
    """Experiments that were measured together."""

    numbers: Sequence[Count]
    statistics: Annotated[np.ndarray, ArraySpec("B K", finite=False)]
    models: Annotated[Ensemble, Each("m")] | None = None
    """Those of the observed experiment, if it is among them and has any: no other fit
    is ever looked at again."""
    score_counts: Annotated[np.ndarray, ArraySpec("b m bins", low=0, finite=False)] | None = None
    """Data rows by anomaly score, at each width, in those of these experiments that
    are among the first, see ``COUNTED``; None where the statistic fits no kernels."""


COUNTED = 100
"""The last experiment whose data rows are counted by anomaly score, to be shown beside the data's;
all widths of it are kept, as the one that is shown is known only when all toys are ranked."""


class Prepared(Protocol):
    """A statistic whose settings are fixed."""

    @property
    def component_tests(self) -> tuple[Component, ...]:
        """(K,) what each of its numbers is; none where all are alike."""

    @property
    def widths(self) -> np.ndarray:
        """(m,) those of its models, if it fits any."""

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the outcome, as plain values."""

    def chunk_size(self, toys: Toys, number: int, n_toys: int) -> int:
        """How many experiments like this one are best evaluated at once."""

    def chunks(self, seed: int, toys: Toys, numbers: Sequence[int], chunk: int) -> Iterator[Chunk]:
        """Evaluate the experiments of these numbers, a chunk at a time."""


class Statistic(ABC):
    """What a test ranks. A new one must define ``prepare`` and, for commands, a ``name``."""

    name: ClassVar[str | None] = None
    """By which the command line knows it."""

    @abstractmethod
    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> Prepared:
        """Fix all settings that depend on the points, without knowing which are data.

        ``transform`` is how they came from the user's columns.
        """

    @property
    def min_rows(self) -> int:
        """How many rows either sample needs."""
        return 1

    @property
    def competition(self) -> Competition | None:
        """How the kernels of its models share a point, if it has any."""
        return None

    def log_ratios(
        self, prepared: Prepared, seed: int, samples: TwoSample, chunk: int | None
    ) -> np.ndarray:  # (B, N, m)
        """Fit a batch that shares its points, and give the log-ratio at all of them.

        One for each of m widths; none where the statistic fits no models.
        """
        return np.zeros((*samples.data_weight.shape, 0))


def one_by_one(
    seed: int, numbers: Sequence[int], batch: TwoSample
) -> Iterator[tuple[np.random.Generator, TwoSample]]:
    """Every experiment of a batch as a single sample, and all that it may draw from."""
    for position, number in enumerate(numbers):
        yield np.random.default_rng([seed, number, 1]), batch.alone(position)


def value_chunks(
    toys: Toys, numbers: Sequence[int], chunk: int, evaluate: Evaluate
) -> Iterator[Chunk]:
    """Chunks of a statistic that fits no models."""
    for start in range(0, len(numbers), chunk):
        now = numbers[start : start + chunk]
        yield Chunk(now, evaluate(now, toys.draw(now)))


def rounded(values: np.ndarray) -> list[str]:
    """Settings, not to the last bit: another machine may round the sums behind them otherwise."""
    return [f"{value:.6g}" for value in values]


def families_of(component_tests: Sequence[Component]) -> list[str]:  # (K,)
    """The family of each reading, by which they are combined."""
    return [reading.family for reading in component_tests]


def scales(values: np.ndarray) -> tuple[Component, ...]:
    """The component tests of a statistic that looks in one way, at several scales."""
    return tuple(Component("statistic", float(value)) for value in values)
