"""Calibrate once, test many batches in the time of one fit each.

The toys are splits of the reference (``nulls.Resample``), and know nothing of any data. Those for
a size of batches are made once, beforehand or when the first batch of that size comes. Each batch
faces the reference without as many rows as it has itself, exactly as the data of a toy
did. The toys share one reference with each other and with all batches: averaged over references the
level is right, for a given reference it scatters around it, the less the larger the reference
beside a batch. ``docs/calibration.md`` has the measured levels.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sparker import together
from sparker.calibration import toys
from sparker.calibration.combine import Combination
from sparker.calibration.monitor_file import pack, unpack
from sparker.calibration.plan import prepare
from sparker.calibration.pvalues import rank
from sparker.calibration.settings import plain
from sparker.calibration.sizes import Calibration, for_size, in_words
from sparker.config import Progress, TestKeywords, from_keywords
from sparker.engine.preprocess import Preprocess
from sparker.findings.explain import Answers, UnexplainedError
from sparker.findings.explain import explain as find_answers
from sparker.findings.interpret import interpret
from sparker.findings.saved import embedded_again
from sparker.intake import one_sample, told
from sparker.nulls import Resample, samples, toy_rng
from sparker.nulls.unweighted import keep_by_weight, kept_note
from sparker.presets import unexplored
from sparker.result import TestResult
from sparker.statistics.contract import Chunk, families_of
from sparker.statistics.kernels import KernelStatistic
from sparker.system import archive
from sparker.system.progress import reporter
from sparker.system.versions import versions
from sparker.tables.checks import Caution, far_values, in_both
from sparker.tables.encoding import Encoding
from sparker.tables.frames import library_of
from sparker.tables.rows import more_rows

KIND = "monitor"

MAX_LOOKS = 10**8
"""Planned ones; even one toy for each would be too many."""

MIN_BATCHES = 10
"""With a reference of fewer batches than this, the monitor's notes warn of it."""


class Look(NamedTuple):
    """One batch among many."""

    number: int  # counted from 1
    result: TestResult
    corrected_p_value: float
    """The p-value times the number of planned looks, at most 1; as it is if none were planned."""
    alarm: bool

    @classmethod
    def of(cls, result: TestResult, number: int, alpha: float, looks: int | None) -> "Look":
        """Decide at alpha, which is for all planned looks together."""
        corrected = min(1.0, (1 if looks is None else looks) * result.p_value)
        return cls(number, result, corrected, corrected <= alpha)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Monitor:
    """A reference, and the toys for batches of one or several sizes."""

    reference: np.ndarray  # (N, d)
    weights: np.ndarray | None
    """Those that decided which rows of a larger reference take part; None where all do."""
    expected: float | None
    """The expected number of rows of a batch; None where only the shape is compared."""
    calibrations: dict[int, Calibration]
    """By batch size; a batch of another size adds its own."""
    n_toys: int
    """How many toys batches are compared with."""
    seed: int
    encoding: Encoding
    """How the columns of the reference became numbers; batches become the same."""
    missing: str
    """What to do where values are missing, as for ``sparker.test``."""
    statistic: KernelStatistic
    preprocess: Preprocess
    combine: Combination
    chunk: int | None
    notes: tuple[str, ...]
    """What to know of the reference; every result says it again."""
    progress: Progress | None = None
    """How to show that toys are made, as for ``sparker.test``; not saved."""
    on_new_size: Callable[[int], None] | None = None
    """Called with the size before toys are made for one; not saved."""

    def __post_init__(self) -> None:
        # A copy with other settings must not add its toys to ours.
        object.__setattr__(self, "calibrations", dict(self.calibrations))

    @classmethod
    def calibrate(
        cls,
        reference: ArrayLike,
        batch_size: int | Sequence[int],
        *,
        poisson: bool = False,
        **settings: Unpack[TestKeywords],
    ) -> "Monitor":
        """Make the toys for batches of ``batch_size`` rows, or of several such sizes.

        Batches of other sizes can be tested too; the first of its size then waits for the toys.
        With ``poisson`` the size is the expected one, batches fluctuate around it, and the test
        sees their number of rows too. The other arguments are those of ``sparker.test``, as far as
        they make sense before there are data. A ``store`` has a folder for each size.
        """
        config = from_keywords(dict(settings))
        together.check({*config.features, "monitor"})
        brought = one_sample(reference, config)
        points = brought.points
        sizes, seed = _sizes(batch_size), int(config.seed)
        if poisson and len(sizes) > 1:
            raise ValueError(
                f"with poisson, batch_size is the one that is expected, got {len(sizes)}; make a "
                "monitor for each"
            )
        weights = samples(points, points[:1], reference_weights=brought.weights).weights
        notes = []
        if weights is not None:
            is_kept = keep_by_weight(toy_rng(seed, 0), weights, sizes[-1])
            notes.append(kept_note(is_kept))
            points = points[is_kept]
        made = cls(
            reference=points,
            weights=weights,
            expected=float(sizes[0]) if poisson else None,
            calibrations={},
            n_toys=int(config.n_toys),
            seed=seed,
            encoding=brought.encoding,
            missing=config.missing,
            statistic=unexplored(config.config, config.widths),
            preprocess=config.preprocess,
            combine=config.combine,
            chunk=config.chunk,
            notes=tuple(notes),
            progress=config.progress,
        )
        for size in sizes:  # all of them, before the toys of any are made
            made.check_size(size)
        for size in sizes:
            made.add(size, store=config.store)
        return made

    def add(self, batch_size: int, *, store: str | os.PathLike[str] | None = None) -> None:
        """Make the toys for batches of one more size, as ``calibrate`` does; once only."""
        (size,) = _sizes(batch_size)
        if size in self.calibrations:
            return
        self.check_size(size)
        if self.on_new_size is not None:
            self.on_new_size(size)
        with reporter(self.progress, self.n_toys) as on_progress:
            self.calibrations[size] = for_size(
                self.reference,
                size,
                expected=self.expected,
                preprocess=self.preprocess,
                statistic=self.statistic,
                n_toys=self.n_toys,
                seed=self.seed,
                chunk=self.chunk,
                store=None if store is None else Path(store) / f"batches-of-{size}",
                on_progress=on_progress,
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are compared, where there are any."""
        return tuple(one.name for one in self.encoding.columns) if self.encoding.named else ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of batches for which there are toys."""
        return tuple(sorted(self.calibrations))

    def notes_for(self, batch_size: int) -> tuple[str, ...]:
        """What to know of tests of batches of this size; every result says it again."""
        n_rows = len(self.reference)
        notes = self.notes
        if batch_size in self.calibrations:
            notes += tuple(map(str, self.calibrations[batch_size].settings.get("notes", ())))
        if n_rows >= MIN_BATCHES * batch_size:
            return notes
        few = (
            f"the reference has {n_rows} rows, fewer than {MIN_BATCHES} batches "
            f"of {batch_size}: all batches share what is peculiar to it, and the rate of false "
            "alarms may be several times alpha; sparker.test relabels each batch, and is exact"
        )
        return (*notes, few)

    def test(self, batch: ArrayLike, *, explain: bool = True) -> TestResult:
        """Test one batch against the reference; one of a new size makes its toys first.

        Without ``explain`` it takes one fit and not ten, and says no more than how sure it is.
        """
        began = time.perf_counter()
        encoded, noted = more_rows("the batch", batch, self.encoding, self.missing)
        observed = samples(self.reference, encoded.points, expected=self.expected)
        observed.check_rows(self.statistic.min_rows)
        noted += self._suspicions(observed.data)
        told(noted, strict=False, caller=2)
        size = len(observed.data) if self.expected is None else self.sizes[0]
        self.check_size(size)
        scheme = Resample(self.reference, size, self.expected, self.seed)
        one = prepare(scheme.observed(observed.data), self.preprocess, self.statistic)
        prepared = time.perf_counter()
        self.add(size)
        null, settings = self.calibrations[size]
        table = toys.run(one, [0], seed=self.seed)
        table.add(Chunk(range(1, self.n_toys + 1), null))
        fitted = time.perf_counter()
        families = families_of(one.statistic.readings)
        statistics = np.asarray(table.first(self.n_toys + 1).statistics)
        ranked = rank(statistics, self.combine, families)
        labels = self.encoding.labels
        found = interpret(observed, self.statistic, one, table, ranked, self.n_toys + 1, labels)
        interpreted = time.perf_counter()
        answers: Answers | None = None
        unexplained: tuple[str, ...] = ()
        if explain:
            try:
                answers = find_answers(
                    observed, self.statistic, one, ranked.p_value, seed=self.seed, chunk=None,
                    group_rows=None, encoding=self.encoding, numbers=(None, encoded.rows),
                )  # fmt: skip
            except UnexplainedError as error:
                unexplained = (str(error),)
        timings = {
            "prepare": prepared - began,
            "toys": fitted - prepared,
            "explain": time.perf_counter() - interpreted,
            "total": time.perf_counter() - began,
        }
        result = TestResult(
            **found | {"notes": (*self.notes_for(size), *found["notes"], *unexplained)},
            answers=answers,
            frame=library_of(batch),
            encoding=self.encoding,
            given=encoded.given,
            data_rows=encoded.rows,
            warnings=noted,
            preprocess=plain(self.preprocess),
            combine=plain(self.combine),
            n_labellings=None,
            settings={**settings, "combine": plain(self.combine)},
            seed=self.seed,
            versions=versions(),
            timings=timings,
        )
        return result.with_pictures(encoded.pictures) if explain else result

    def _suspicions(self, batch: np.ndarray) -> tuple[Caution, ...]:
        """What looks suspicious of a batch beside the reference, of which nothing is said again."""
        return (
            *far_values(batch, names=self.encoding.names, beside=self.reference),
            *in_both(self.reference, batch),
        )

    def summary(self) -> str:
        """What it is for and what it stands on, in a sentence."""
        n_reference, n_features = self.reference.shape
        about = "" if self.expected is None else "about "
        return (
            f"monitor for batches of {about}{in_words(self.sizes)} rows with {n_features} "
            f"features: {self.n_toys} toys{' each' if len(self.sizes) > 1 else ''} from "
            f"{n_reference} reference rows"
        )

    def __repr__(self) -> str:
        return f"<M{self.summary()[1:]}>"

    def watch(
        self, batches: Iterable[ArrayLike], *, alpha: float = 0.01, looks: int | None = None
    ) -> Iterator[Look]:
        """Test batch after batch, and say which are anomalous at alpha.

        With ``looks`` planned in advance, the chance of any false alarm in all of them is kept
        below alpha by Bonferroni's correction, as far as the p-values of single batches are right;
        it does not matter that they share reference and toys. Further batches are refused. Without,
        every look has a chance of alpha, and one false alarm in 1/alpha looks is expected.
        """
        self.check_reach(alpha, looks)
        for number, batch in enumerate(batches, 1):
            if looks is not None and number > looks:
                raise ValueError(
                    f"{looks} looks were planned, and there are more batches; plan for all of "
                    "them, before the first"
                )
            look = Look.of(self.test(batch, explain=False), number, alpha, looks)
            # Only an alarm is worth an explanation.
            yield look._replace(result=self.test(batch)) if look.alarm else look

    def check_reach(self, alpha: float, looks: int | None = None) -> None:
        """Refuse a level at which so many toys could raise no alarm."""
        least = 1 / (self.n_toys + 1)
        factor = 1 if looks is None else looks
        if not 0 < alpha < 1 or not 1 <= factor <= MAX_LOOKS:
            raise ValueError(
                f"need 0 < alpha < 1 and 1 <= looks <= {MAX_LOOKS:,}, got {alpha} and {looks}"
            )
        if least * factor > alpha:
            raise ValueError(
                f"{self.n_toys} toys resolve p-values down to {least:.2g}, but "
                f"{'each look' if looks is None else f'one of {looks} looks'} needs "
                f"{alpha / factor:.2g} for an alarm; calibrate with at least "
                f"{int(np.ceil(factor / alpha))} toys"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which ``load`` reads; no code is stored in it."""
        header, contents = pack(vars(self))
        archive.write(Path(path), {"kind": KIND, **header}, contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str], embed: Any = None) -> "Monitor":
        """Read what ``save`` wrote; whatever the file holds instead, it can do no harm.

        A function that embeds texts or pictures is not in the file: give it as ``embed`` again.
        """
        found = cls.restored(path, *archive.read(Path(path), KIND))
        return found if embed is None else found.embedded_by(embed)

    def embedded_by(self, embed: Any) -> "Monitor":
        """The same with an embedder for batches, which must be the one there was."""
        return replace(self, encoding=embedded_again(self.encoding, embed))

    @classmethod
    def restored(
        cls, path: object, header: dict[str, Any], contents: dict[str, np.ndarray]
    ) -> "Monitor":
        """A monitor of what an archive held."""
        try:
            return cls(**unpack(header, contents))
        except archive.DAMAGE as error:
            raise ValueError(f"{path} is not a {KIND} of this version: {error}") from error

    def check_size(self, size: int) -> None:
        """Refuse batches of a size for which there are no toys and none can be made."""
        if size in self.calibrations:
            return
        n_rows, n_kernels = len(self.reference), self.statistic.min_rows
        if self.expected is not None and self.calibrations:
            raise ValueError(
                f"the monitor expects batches of {self.expected:g} rows, whose number it tests; "
                f"calibrate another one that expects {size}"
            )
        if size < n_kernels:
            raise ValueError(
                f"batch_size is {size}, fewer than the {n_kernels} kernels; test larger batches "
                "or take a config with fewer kernels"
            )
        if size >= n_rows:
            raise ValueError(
                f"toys for batches of {size} rows take as many out of the reference, which has "
                f"{n_rows}; calibrate with a larger reference, or test smaller batches"
            )
        if self.weights is not None:  # whether they serve depends on the size; the rows do not
            keep_by_weight(toy_rng(self.seed, 0), self.weights, size)


def _sizes(given: int | Sequence[int]) -> list[int]:
    """Batch sizes as whole numbers, the smallest first, each once."""
    sizes = np.atleast_1d(given).tolist()
    for size in sizes or [None]:
        if not isinstance(size, int | float) or not 1 <= size < np.inf or size % 1:
            raise ValueError(
                f"batch_size must be a whole number from 1 on, or several, got {given}"
            )
    return sorted({int(size) for size in sizes})
