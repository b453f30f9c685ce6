"""Calibrate once, test many batches in the time of one fit each.

The toys are splits of the reference (``nulls.Resample``), made before there are any data. Each
batch then faces the reference without as many rows as it has itself, exactly as the data of a toy
did. The toys share one reference with each other and with all batches: averaged over references the
level is right, for a given reference it scatters around it, the less the larger the reference
beside a batch. ``docs/calibration.md`` has the measured levels.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sparker import together
from sparker.calibration import toys
from sparker.calibration.combine import Combination
from sparker.calibration.plan import describe, prepare
from sparker.calibration.pvalues import rank
from sparker.calibration.settings import from_names, option, option_name, plain, to_names
from sparker.config import TestKeywords, from_keywords
from sparker.engine.config import FitConfig
from sparker.engine.measured import Measured
from sparker.engine.preprocess import Preprocess
from sparker.engine.sample import as_points, check_columns, column_names
from sparker.engine.widths import WidthConfig
from sparker.findings.explain import explain as find_answers
from sparker.findings.frames import kind_of
from sparker.findings.interpret import interpret
from sparker.nulls import Resample, Samples, samples, toy_rng
from sparker.nulls.unweighted import keep_by_weight, kept_note
from sparker.presets import unexplored
from sparker.result import TestResult
from sparker.statistics.contract import Chunk
from sparker.statistics.kernels import KernelStatistic
from sparker.system import archive
from sparker.system.progress import reporter
from sparker.system.versions import versions

KIND = "monitor"

MIN_BATCHES = 10
"""With a reference of fewer batches than this, the monitor's notes warn of it."""


class Look(NamedTuple):
    """One batch among many."""

    number: int  # counted from 1
    result: TestResult
    corrected_p_value: float
    """The p-value times the number of planned looks, at most 1; as it is if none were planned."""
    alarm: bool


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Monitor:
    """A reference, and the toys for batches of one size."""

    reference: np.ndarray  # (N, d)
    batch_size: int
    expected: float | None
    null: Measured
    """What the toys gave."""
    seed: int
    columns: tuple[str, ...]
    statistic: KernelStatistic
    preprocess: Preprocess
    combine: Combination
    settings: dict[str, Any]
    notes: tuple[str, ...]
    """What to know of the calibration; every result says it again."""

    @classmethod
    def calibrate(
        cls,
        reference: ArrayLike,
        batch_size: int,
        *,
        poisson: bool = False,
        **settings: Unpack[TestKeywords],
    ) -> "Monitor":
        """Make the toys for batches of ``batch_size`` rows.

        With ``poisson`` the size is the expected one, batches fluctuate around it, and the test
        sees their number of rows too. The other arguments are those of ``sparker.test``, as far as
        they make sense before there are data.
        """
        config = from_keywords(dict(settings))
        together.check({*config.features, "monitor"})
        points = as_points("reference", reference)
        if int(batch_size) != batch_size or batch_size < 1:
            raise ValueError(f"batch_size must be a whole number from 1 on, got {batch_size}")
        batch_size, n_toys, seed = int(batch_size), int(config.n_toys), int(config.seed)
        expected = float(batch_size) if poisson else None
        nobody = points[:1]  # stands in for data: the toys take none
        known = samples(
            points, nobody, reference_weights=config.reference_weights, expected=expected
        )
        notes = []
        if known.weights is not None:
            is_kept = keep_by_weight(toy_rng(seed, 0), known.weights, batch_size)
            notes.append(kept_note(is_kept))
            points = points[is_kept]
            known = samples(points, nobody, expected=expected)
        statistic = unexplored(config.config, config.widths)
        if batch_size < statistic.min_rows:
            raise ValueError(
                f"batch_size is {batch_size}, fewer than the {statistic.min_rows} kernels; "
                "test larger batches or take a config with fewer kernels"
            )
        if len(points) < MIN_BATCHES * batch_size:
            notes.append(
                f"the reference has {len(points)} rows, fewer than {MIN_BATCHES} batches "
                f"of {batch_size}: all batches share what is peculiar to it, and the rate of false "
                "alarms may be several times alpha; sparker.test relabels each batch, and is exact"
            )
        source = Resample(points, batch_size, expected, seed).toys()
        prepared = prepare(source, config.preprocess, statistic)
        description = {
            **describe(prepared.statistic, known, config.preprocess, seed),
            "null": "resampled",
            "batch_size": batch_size,
        }
        del description["data"]
        with reporter(config.progress, n_toys) as on_progress:
            table = toys.run(
                prepared,
                range(1, n_toys + 1),
                seed=seed,
                chunk=config.chunk,
                manifest=description,
                store=config.store,
                on_progress=on_progress,
            )
        return cls(
            reference=points,
            batch_size=batch_size,
            expected=expected,
            null=table.first(n_toys + 1, start=1),
            seed=seed,
            columns=column_names(reference),
            statistic=statistic,
            preprocess=config.preprocess,
            combine=config.combine,
            settings={
                **description,
                "n_toys": n_toys,
                "labellings": None,
                "combine": plain(config.combine),
                "stop": None,
            },
            notes=tuple(notes),
        )

    def test(self, batch: ArrayLike, *, explain: bool = True) -> TestResult:
        """Test one batch against the reference.

        Without ``explain`` it takes one fit and not ten, and says no more than how sure it is.
        """
        began = time.perf_counter()
        names = column_names(batch)
        check_columns("the batch", names, "the monitor's reference", self.columns)
        observed = samples(self.reference, batch, expected=self.expected)
        self._check_size(observed)
        scheme = Resample(self.reference, self.batch_size, self.expected, self.seed)
        one = prepare(scheme.observed(observed.data), self.preprocess, self.statistic)
        prepared = time.perf_counter()
        table = toys.run(one, [0], seed=self.seed)
        table.add(Chunk(range(1, self.n_toys + 1), self.null))
        fitted = time.perf_counter()
        ranked = rank(table.first(self.n_toys + 1).columns, self.combine)
        found = interpret(
            observed, self.statistic, one, table, ranked, self.n_toys + 1, self.columns or names
        )
        interpreted = time.perf_counter()
        answers = None
        if explain:
            answers = find_answers(
                observed, self.statistic, one, ranked.p_value, seed=self.seed, chunk=None,
                group_rows=None,
            )  # fmt: skip
        timings = {
            "prepare": prepared - began,
            "toys": fitted - prepared,
            "explain": time.perf_counter() - interpreted,
            "total": time.perf_counter() - began,
        }
        return TestResult(
            **found | {"notes": (*self.notes, *found["notes"])},
            answers=answers,
            frame=kind_of(batch),
            preprocess=plain(self.preprocess),
            combine=plain(self.combine),
            n_labellings=None,
            settings=self.settings,
            seed=self.seed,
            versions=versions(),
            timings=timings,
        )

    @property
    def n_toys(self) -> int:
        """How many toys batches are compared with."""
        return len(self.null.statistics)

    def __repr__(self) -> str:
        n_reference, n_features = self.reference.shape
        return (
            f"<Monitor for batches of {self.batch_size} rows with {n_features} features: "
            f"{self.n_toys} toys from {n_reference} reference rows>"
        )

    def watch(
        self, batches: Iterable[ArrayLike], *, alpha: float = 0.01, looks: int | None = None
    ) -> Iterator[Look]:
        """Test batch after batch, and say which are anomalous at alpha.

        With ``looks`` planned in advance, the chance of any false alarm in all of them is kept
        below alpha by Bonferroni's correction, as far as the p-values of single batches are right;
        it does not matter that they share reference and toys. Without, every look has a chance of
        alpha, and one false alarm in 1/alpha looks is expected.
        """
        n_toys = self.n_toys
        least = 1 / (n_toys + 1)
        factor = 1 if looks is None else looks
        if not 0 < alpha < 1 or factor < 1:
            raise ValueError(f"need 0 < alpha < 1 and looks >= 1, got {alpha} and {looks}")
        if least * factor > alpha:
            raise ValueError(
                f"{n_toys} toys resolve p-values down to {least:.2g}, but "
                f"{'each look' if looks is None else f'one of {looks} looks'} needs "
                f"{alpha / factor:.2g} for an alarm; calibrate with at least "
                f"{int(np.ceil(factor / alpha))} toys"
            )
        for number, batch in enumerate(batches, 1):
            result = self.test(batch, explain=False)
            corrected = min(1.0, factor * result.p_value)
            if corrected <= alpha:  # only an alarm is worth an explanation
                result = self.test(batch)
            yield Look(number, result, corrected, corrected <= alpha)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which ``load`` reads; no code is stored in it."""
        header = {
            "kind": KIND,
            "batch_size": self.batch_size,
            "expected": self.expected,
            "seed": self.seed,
            "columns": self.columns,
            "config": to_names(self.statistic.config),
            "widths": to_names(self.statistic.widths),
            "preprocess": option_name("preprocess", self.preprocess),
            "combine": option_name("combine", self.combine),
            "settings": self.settings,
            "notes": self.notes,
        }
        contents = {name: np.asarray(array) for name, array in self.null._asdict().items()}
        contents["reference"] = self.reference
        archive.write(Path(path), header, contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Monitor":
        """Read what ``save`` wrote; whatever the file holds instead, it can do no harm."""
        return cls.restored(path, *archive.read(Path(path), KIND))

    @classmethod
    def restored(
        cls, path: object, header: dict[str, Any], contents: dict[str, np.ndarray]
    ) -> "Monitor":
        """A monitor of what an archive held."""
        try:
            null = Measured(*(contents[name] for name in Measured._fields))
            shape = null.statistics.shape[:2]
            if null.statistics.ndim != 3 or any(array.shape[:2] != shape for array in null):
                raise ValueError("its tables do not have the same shape")
            return cls(
                reference=as_points("reference", contents["reference"]),
                batch_size=int(header["batch_size"]),
                expected=header["expected"],
                null=null,
                seed=int(header["seed"]),
                columns=tuple(str(name) for name in header["columns"]),
                statistic=KernelStatistic(
                    config=FitConfig(**from_names(header["config"])),
                    widths=WidthConfig(**from_names(header["widths"])),
                ),
                preprocess=option(header["preprocess"]),
                combine=option(header["combine"]),
                settings=dict(header["settings"]),
                notes=tuple(str(note) for note in header["notes"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a {KIND} of this version: {error}") from error

    def _check_size(self, observed: Samples) -> None:
        observed.check_rows(self.statistic.min_rows)
        if self.expected is None and len(observed.data) != self.batch_size:
            raise ValueError(
                f"the batch has {len(observed.data)} rows, the monitor was calibrated for "
                f"{self.batch_size}; cut batches to that size, or calibrate for this one"
            )
