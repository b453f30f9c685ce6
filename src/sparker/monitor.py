"""Calibrate once, test many batches in the time of one fit each.

The toys are splits of the reference (``nulls.Resample``), made before there are any data. Each
batch then faces the reference without as many rows as it has itself, exactly as the data of a toy
did. The toys share one reference with each other and with all batches: averaged over references the
level is right, for a given reference it scatters around it, the less the larger the reference
beside a batch. ``docs/calibration.md`` has the measured levels.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sparker import arrays, calibrate
from sparker.calibrate import Plan
from sparker.combine import Combination, minimum
from sparker.design import FitConfig
from sparker.detect import check_enough_rows, interpret
from sparker.nulls import Resample, Samples, samples, toy_rng
from sparker.nulls.unweighted import keep_by_weight, kept_note
from sparker.preprocess import Preprocess, decorrelate
from sparker.presets import resampled
from sparker.progress import reporter
from sparker.pvalues import rank
from sparker.record import from_names, option, option_name, plain, to_names, versions
from sparker.result import TestResult
from sparker.sample import as_points, check_columns, column_names
from sparker.statistic import TABLES, KernelStatistic, Outcome
from sparker.widths import WidthConfig

KIND = "monitor"

MIN_BATCHES = 10
"""With fewer batches of reference a monitor is told to be doubtful."""


class Look(NamedTuple):
    """One batch among many."""

    number: int  # counted from 1
    result: TestResult
    corrected_p_value: float
    """The p-value times the number of planned looks, at most 1; as it is if none were planned."""
    alarm: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Monitor:
    """A reference, and the toys for batches of one size."""

    reference: np.ndarray  # (N, d)
    batch_size: int
    expected: float | None
    null: Outcome
    """What the toys gave, without their models."""
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
        n_calibration: int = 300,
        seed: int = 0,
        reference_weights: ArrayLike | None = None,
        poisson: bool = False,
        config: FitConfig | None = None,
        widths: WidthConfig | None = None,
        preprocess: Preprocess = decorrelate,
        combine: Combination = minimum,
        store: str | os.PathLike[str] | None = None,
        progress: bool | Callable[[int, int], None] | None = None,
        chunk: int | None = None,
    ) -> "Monitor":
        """Make the toys for batches of ``batch_size`` rows.

        With ``poisson`` the size is the expected one, batches fluctuate around it, and the test
        sees their number of rows too. The other arguments are those of ``sparker.test``.
        """
        points = as_points("reference", reference)
        for name, value in (("batch_size", batch_size), ("n_calibration", n_calibration)):
            if int(value) != value or value < 1:
                raise ValueError(f"{name} must be a whole number from 1 on, got {value}")
        expected = float(batch_size) if poisson else None
        nobody = points[:1]  # stands in for data: the toys take none
        known = samples(points, nobody, reference_weights=reference_weights, expected=expected)
        notes = []
        if known.weights is not None:
            is_kept = keep_by_weight(toy_rng(seed, 0), known.weights, int(batch_size))
            notes.append(kept_note(is_kept))
            known = known._replace(reference=points[is_kept], weights=None)
        config, widths = resampled(config, widths)
        statistic = KernelStatistic(config=config, widths=widths)
        if batch_size < statistic.config.n_kernels:
            raise ValueError(
                f"batch_size is {batch_size}, fewer than the {statistic.config.n_kernels} kernels; "
                "test larger batches or take a config with fewer kernels"
            )
        if len(known.reference) < MIN_BATCHES * batch_size:
            notes.append(
                f"the reference has {len(known.reference)} rows, fewer than {MIN_BATCHES} batches "
                f"of {batch_size}: all batches share what is peculiar to it, and the rate of false "
                "alarms may be several times alpha; sparker.test relabels each batch, and is exact"
            )
        scheme = Resample(known.reference, int(batch_size), expected, seed)
        toys = calibrate.ready(scheme.toys(), preprocess, statistic)
        description = {
            **calibrate.describe(toys.statistic, known, scheme, preprocess, seed),
            "batch_size": batch_size,
        }
        del description["data"]
        with reporter(progress, n_calibration) as tell:
            table = calibrate.run(
                Plan(toys, toys),
                range(1, n_calibration + 1),
                seed=seed,
                chunk=chunk,
                manifest=description,
                store=store,
                tell=tell,
            )
        return cls(
            reference=known.reference,
            batch_size=int(batch_size),
            expected=expected,
            null=table.first(n_calibration + 1, start=1),
            seed=seed,
            columns=column_names(reference),
            statistic=statistic,
            preprocess=preprocess,
            combine=combine,
            settings={
                **description,
                "n_calibration": int(n_calibration),
                "labellings": None,
                "combine": plain(combine),
                "stop": None,
            },
            notes=tuple(notes),
        )

    def test(self, batch: ArrayLike) -> TestResult:
        """Test one batch against the reference."""
        began = time.perf_counter()
        names = column_names(batch)
        check_columns("the batch", names, "the monitor's reference", self.columns)
        observed = samples(self.reference, batch, expected=self.expected)
        self._check_size(observed)
        scheme = Resample(self.reference, self.batch_size, self.expected, self.seed)
        one = calibrate.ready(scheme.observed(observed.data), self.preprocess, self.statistic)
        prepared = time.perf_counter()
        table = calibrate.run(Plan(one, one), [0], seed=self.seed)
        n_toys = len(self.null.evidence)
        table.add(range(1, n_toys + 1), self.null)
        fitted = time.perf_counter()
        ranked = rank(table.first(n_toys + 1).readings, self.combine)
        found = interpret(observed, self.statistic, one, table, ranked, n_toys + 1)
        timings = {
            "prepare": prepared - began,
            "toys": fitted - prepared,
            "total": time.perf_counter() - began,
        }
        return TestResult(
            **found | {"notes": (*self.notes, *found["notes"])},
            columns=self.columns or names,
            settings=self.settings,
            seed=self.seed,
            versions=versions(),
            timings=timings,
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
        n_toys = len(self.null.evidence)
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
            result = self.test(batch)
            corrected = min(1.0, factor * result.p_value)
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
        contents = {name: getattr(self.null, name) for name in TABLES} | {
            "reference": self.reference
        }
        arrays.write(Path(path), header, contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Monitor":
        """Read what ``save`` wrote; whatever the file holds instead, it can do no harm."""
        header, contents = arrays.read(Path(path), KIND)
        try:
            null = Outcome._make([*(contents[name] for name in TABLES), None])
            shape = null.evidence.shape[:2]
            if null.evidence.ndim != 3 or any(array.shape[:2] != shape for array in null[:-1]):
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
        check_enough_rows(observed, self.statistic.config.n_kernels)
        if self.expected is None and len(observed.data) != self.batch_size:
            raise ValueError(
                f"the batch has {len(observed.data)} rows, the monitor was calibrated for "
                f"{self.batch_size}; cut batches to that size, or calibrate for this one"
            )
