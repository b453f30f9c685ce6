"""One contract for every test statistic, so that calibration is written once.

A ``Statistic`` first sees the rows that may decide its settings (never who is data) and is then
evaluated on batches of experiments. ``KernelStatistic`` is SparKer; any function of one sample is
made a statistic by ``EachSample``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from sparker import streamed
from sparker.batch import chunk_size, fit_chunks
from sparker.design import FitConfig
from sparker.ensemble import Ensemble
from sparker.nulls import Draw
from sparker.nulls.blocks import Labels, StreamedToys
from sparker.sample import TwoSample
from sparker.train import READINGS
from sparker.widths import Schedule, WidthConfig


class Outcome(NamedTuple):
    """The statistic of B experiments, at m widths or whatever else its columns are."""

    evidence: np.ndarray  # (B, m, r): r readings a width, larger where the samples differ more
    excess: np.ndarray  # (B, m) data events too many; NaN for statistics that do not say
    deficit: np.ndarray  # (B, m)
    score_counts: np.ndarray  # (B, m, bins) data events by anomaly score; no bins if it has none
    models: Ensemble | None  # of (B, m, ...), where the statistic fits any

    @property
    def t(self) -> np.ndarray:  # (B, m)
        """The first reading: of kernels, the statistic of the whole model."""
        return self.evidence[..., 0]

    @property
    def readings(self) -> np.ndarray:  # (B, m * r)
        """All readings of all columns, as they are ranked."""
        return self.evidence.reshape(len(self.evidence), -1)


TABLES = tuple(name for name in Outcome._fields if name != "models")
"""What is kept of every experiment; of the models, only the observed one's are."""


class Prepared(Protocol):
    """A statistic whose settings are fixed."""

    @property
    def columns(self) -> np.ndarray:
        """(m,) what the columns are: the widths, for kernels."""

    @property
    def readings(self) -> tuple[str, ...]:
        """(r,) what is read off at each of them."""

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides the outcome, as plain values."""

    def chunk_size(self, sample: TwoSample, n_toys: int) -> int:
        """How many experiments like this batch are best evaluated at once."""

    def chunks(
        self, seed: int, draw: Draw, numbers: Sequence[int], chunk: int
    ) -> Iterator[tuple[Sequence[int], Outcome]]:
        """Evaluate the experiments of these numbers, a chunk at a time."""


class Statistic(Protocol):
    """What a test ranks."""

    def prepare(self, points: np.ndarray) -> Prepared:
        """Fix all settings that depend on the points, without knowing which are data."""


@dataclass(frozen=True, kw_only=True)
class KernelStatistic:
    """SparKer: what training and exploration find at each width (``train.READINGS``)."""

    config: FitConfig = FitConfig()
    widths: WidthConfig = WidthConfig()

    def prepare(self, points: np.ndarray, n_rows: int | None = None) -> "_PreparedKernels":
        """Choose the widths, for points that may be some of so many rows."""
        return _PreparedKernels(self.config, self.widths.schedule(points, n_rows))


class _PreparedKernels(NamedTuple):
    config: FitConfig
    schedule: Schedule

    @property
    def columns(self) -> np.ndarray:
        return self.schedule.widths

    @property
    def readings(self) -> tuple[str, ...]:
        return READINGS if len(self.schedule.explore) else READINGS[:1]

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "kernels": self.config,
            "steps": len(self.schedule.sigma),
            "annealing": rounded(self.schedule.sigma[:: max(1, len(self.schedule.sigma) // 4)]),
            "widths": rounded(self.columns),
            "explorations": len(self.schedule.explore),
        }

    def chunk_size(self, sample: Any, n_toys: int) -> int:
        if isinstance(sample, Labels):
            return streamed.chunk_size(sample.toys, n_toys)
        return chunk_size(sample, n_toys, self.schedule, self.config)

    def chunks(
        self, seed: int, draw: Draw, numbers: Sequence[int], chunk: int
    ) -> Iterator[tuple[Sequence[int], Outcome]]:
        plan = (numbers, self.schedule, self.config)
        if isinstance(draw, StreamedToys):
            chunks = streamed.fit_chunks(seed, draw, *plan, chunk=chunk)
        else:
            chunks = fit_chunks(seed, draw, *plan, chunk=chunk)
        for done, fits in chunks:
            evidence = np.where(fits.finite[:, None, None], fits.evidence, np.nan)
            yield done, Outcome(evidence, fits.excess, fits.deficit, fits.score_counts, fits.models)


@dataclass(frozen=True)
class EachSample:
    """A statistic from a function ``(rng, sample) -> t``, one experiment at a time.

    ``sample`` is a ``TwoSample`` of preprocessed points without padding, ``t`` a number or an array
    of m numbers, larger where the samples differ more.
    """

    function: Callable[[np.random.Generator, TwoSample], Any]

    def prepare(self, points: np.ndarray) -> "_PreparedFunction":
        """Nothing to prepare; one value tells functions of the same name apart."""
        half = (np.arange(len(points)) % 2).astype(float)
        prepared = _PreparedFunction(self.function, [])
        value = prepared._one(np.random.default_rng(0), TwoSample(points, 1 - half, half))
        return _PreparedFunction(self.function, rounded(value))


class _PreparedFunction(NamedTuple):
    function: Callable[[np.random.Generator, TwoSample], Any]
    example: list[str]  # its value on some sample

    @property
    def columns(self) -> np.ndarray:
        return np.empty(0)

    @property
    def readings(self) -> tuple[str, ...]:
        return ("statistic",)

    @property
    def settings(self) -> dict[str, Any]:
        return {"function": self.function, "example": self.example}

    def chunk_size(self, sample: TwoSample, n_toys: int) -> int:
        return 16

    def chunks(
        self, seed: int, draw: Draw, numbers: Sequence[int], chunk: int
    ) -> Iterator[tuple[Sequence[int], Outcome]]:
        def evaluate(now: Sequence[int], batch: TwoSample) -> np.ndarray:
            return np.stack([self._one(*toy) for toy in one_by_one(seed, now, batch)])

        return plain_chunks(draw, numbers, chunk, evaluate)

    def _one(self, rng: np.random.Generator, sample: TwoSample) -> np.ndarray:
        t = np.atleast_1d(np.asarray(self.function(rng, sample), np.float64))
        if t.ndim != 1:
            raise ValueError(
                f"a statistic must return a number or a 1-D array of them, got shape {t.shape}"
            )
        return t


def one_by_one(
    seed: int, numbers: Sequence[int], batch: TwoSample
) -> Iterator[tuple[np.random.Generator, TwoSample]]:
    """Every experiment of a batch as a single sample, and all that it may draw from."""
    for position, number in enumerate(numbers):
        yield np.random.default_rng([seed, number, 1]), batch.alone(position)


def plain_chunks(
    draw: Draw,
    numbers: Sequence[int],
    chunk: int,
    evaluate: Callable[[Sequence[int], TwoSample], np.ndarray],  # -> (B, m)
) -> Iterator[tuple[Sequence[int], Outcome]]:
    """Chunks of a statistic that has one reading a column and says nothing else."""
    for start in range(0, len(numbers), chunk):
        now = numbers[start : start + chunk]
        t = evaluate(now, draw(now))
        unknown = np.full_like(t, np.nan)
        yield now, Outcome(t[..., None], unknown, unknown, np.empty((*t.shape, 0)), None)


def rounded(values: np.ndarray) -> list[str]:
    """Settings, not to the last bit: another machine may round the sums behind them otherwise."""
    return [f"{value:.6g}" for value in values]


def as_statistic(
    statistic: "Statistic | Callable[[np.random.Generator, TwoSample], Any] | None",
    config: FitConfig,
    widths: WidthConfig,
) -> Statistic:
    """The statistic a caller means: SparKer if none, a plain function wrapped."""
    if statistic is None:
        return KernelStatistic(config=config, widths=widths)
    if isinstance(statistic, type):
        raise ValueError(f"statistic is a class, make one of it: {statistic.__name__}()")
    if hasattr(statistic, "prepare"):
        return statistic
    if callable(statistic):
        return EachSample(statistic)
    raise ValueError(
        f"statistic must be a function (rng, sample) -> t or have a prepare(points), got "
        f"{statistic!r}"
    )
