"""One calibration for many samples: toys that are made once for each size of samples.

Toys have rows of their own, which are neither in the reference nor in a sample (``nulls.shared``).
The first toys are set aside: they put all readings on one scale. So there is one score for
everything that comes after, toys and samples alike, and it depends on none of them. That makes the
p-values of all samples together those of split conformal prediction, for which Benjamini and
Hochberg's list keeps its false discovery rate (Bates et al. 2023).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sparker.calibration import toys
from sparker.calibration.plan import PreparedToys, describe, prepare
from sparker.calibration.pvalues import Ranked
from sparker.calibration.sequential import Sequential
from sparker.calibration.settings import plain
from sparker.calibration.toys import Table as ToyTable
from sparker.config import TestConfig
from sparker.engine.ensemble import Ensemble
from sparker.engine.measured import Measured
from sparker.findings.explain import Answers, UnexplainedError, explain
from sparker.findings.interpret import interpret
from sparker.intake import Alone, one_sample, told
from sparker.nulls import Samples, Simulator, blocks_of, hold_out, samples, shared_toys
from sparker.nulls.repeats import check_disjoint
from sparker.nulls.shared import Draw
from sparker.result import TestResult
from sparker.statistics.contract import Statistic, families_of
from sparker.system.digest import digest
from sparker.system.progress import OnProgress
from sparker.system.versions import versions
from sparker.tables.checks import Caution, far_values, in_both
from sparker.tables.frames import as_table, library_of
from sparker.tables.rows import Encoded, more_rows
from sparker.tables.table import Table

TABLE = 30
"""Toys set aside to put the readings on one scale, as where a test stops early."""

FIRST = 2**30
"""Numbers of samples begin here: no toy has them."""


class Sample(NamedTuple):
    """One sample as numbers."""

    encoded: Encoded
    cautions: tuple[Caution, ...]
    frame: str | None


class OfSize(NamedTuple):
    """Toys for samples of one size, and the samples."""

    prepared: PreparedToys
    null: ToyTable
    settings: dict[str, Any]
    chunk: int


class Apart(NamedTuple):
    """Rows that all are compared with, and other rows for the toys."""

    reference: Alone
    draw: Draw
    source: np.ndarray
    """What tells the rows of toys from others."""

    @classmethod
    def of(cls, table: Table, config: TestConfig, size: int) -> "Apart":
        """Take the rows of toys of so many rows from the null, or hold them out of the reference.

        Rows that are held out decide nothing that is shared: toys would be more at home than
        samples are.
        """
        seed, scheme = int(config.seed), config.scheme
        if not isinstance(scheme, Simulator):
            kept, others = hold_out(len(table.points), int(config.n_toys), size, seed)
            alone = one_sample(table.rows(kept), config)
            rows, _ = more_rows("reference", table.rows(others), alone.encoding, config.missing)
            held = rows.points.astype(alone.points.dtype, copy=False)
            return cls(alone, blocks_of(held), held)
        alone = one_sample(table, config)
        if callable(scheme.source):
            return cls(alone, scheme.by_number(alone.points, seed), scheme.fingerprint())
        name = "the simulator's pool"
        rows, _ = more_rows(name, scheme.source, alone.encoding, config.missing)
        check_disjoint(name, rows.points, "reference", alone.points)
        turn = np.random.default_rng([seed, FIRST]).permutation(len(rows.points))
        pool = rows.points[turn].astype(alone.points.dtype, copy=False)
        return cls(alone, blocks_of(pool), pool)


class SharedCalibration(NamedTuple):
    """What samples share, and the samples."""

    config: TestConfig
    statistic: Statistic
    apart: Apart
    samples: dict[str, Sample]
    unread: dict[str, Exception]
    """Samples that cannot be tested, and why."""

    @classmethod
    def of(
        cls, reference: Any, given: Mapping[str, Any], config: TestConfig
    ) -> "SharedCalibration":
        """Decide everything that samples and toys share, before any is fitted."""
        tables, unread = _read(given)
        if not tables:
            raise next(iter(unread.values()))
        largest = max(len(one.points) for one, _ in tables.values())
        apart = Apart.of(as_table("reference", reference), config, largest)
        made = cls(config, config.chosen_statistic(), apart, {}, unread)
        for name, brought in tables.items():
            try:
                made.samples[name] = made._sample(*brought)
            except ValueError as error:
                unread[name] = error
        for size in made.sizes:
            apart.draw(int(config.n_toys), size)  # whether there are rows for the last toy
        return made

    @property
    def reference(self) -> Alone:
        """The rows that all are compared with."""
        return self.apart.reference

    def _sample(self, table: Table, frame: str | None) -> Sample:
        encoding, missing = self.reference.encoding, self.config.missing
        encoded, noted = more_rows("the sample", table, encoding, missing)
        points = encoded.points.astype(self.reference.points.dtype, copy=False)
        self._observed(points).check_rows(self.statistic.min_rows)
        noted += (
            *far_values(points, names=encoding.names, beside=self.reference.points),
            *in_both(self.reference.points, points),
        )
        told(noted, strict=self.config.strict, caller=2)
        return Sample(encoded._replace(points=points), noted, frame)

    @property
    def sizes(self) -> dict[int, list[str]]:
        """The names of the samples by their size."""
        found: dict[int, list[str]] = {}
        for name, one in self.samples.items():
            found.setdefault(len(one.encoded.points), []).append(name)
        return found

    @property
    def n_experiments(self) -> int:
        """Toys of all sizes, and samples."""
        return len(self.sizes) * int(self.config.n_toys) + len(self.samples)

    def tests(
        self, seed_of: Callable[[str], int], explain_up_to: float, on_progress: OnProgress
    ) -> Iterator[tuple[str, TestResult | Exception]]:
        """Test all samples, those of one size together."""
        n_before = 0
        for size, names in self.sizes.items():
            numbers = {name: FIRST + seed_of(name) % FIRST for name in names}
            rows = {numbers[name]: self.samples[name].encoded.points for name in names}

            def further(done: float, n_before: int = n_before) -> None:
                on_progress(n_before + done)

            made = self._calibrated(size, rows, further)
            n_before += int(self.config.n_toys)
            fitted = toys.run(
                made.prepared, sorted(rows), seed=int(self.config.seed), chunk=made.chunk
            )
            for name in names:
                yield name, self._result(name, made, fitted.rows[numbers[name]], explain_up_to)
            n_before += len(names)
            on_progress(n_before)

    def _calibrated(
        self, size: int, rows: Mapping[int, np.ndarray], on_progress: OnProgress
    ) -> OfSize:
        """The toys for samples of one size, made or from the store."""
        config, reference = self.config, self.reference.points
        n_toys, seed = int(config.n_toys), int(config.seed)
        source = shared_toys(reference, size, self.apart.draw, rows)
        prepared = prepare(source, config.preprocess, self.statistic)
        described = describe(
            prepared, self._observed(reference[:1]), config.preprocess, seed, config.scheme
        )
        del described["data"]
        described |= {
            "null": "shared",
            "null_source": digest(self.apart.source),
            "sample_rows": size,
        }
        chunk = config.chunk or prepared.statistic.chunk_size(prepared.toys, 1, n_toys)
        null = toys.run(
            prepared,
            range(1, n_toys + 1),
            seed=seed,
            chunk=chunk,
            manifest=described,
            store=None if config.store is None else Path(config.store) / f"samples-of-{size}",
            on_progress=on_progress,
        )
        return OfSize(prepared, null, described, null.lowered_to or chunk)

    def _observed(self, points: np.ndarray) -> Samples:
        return samples(self.reference.points, points)

    @property
    def score(self) -> Sequential:
        """One score for toys and samples, by toys that are set aside; nothing stops early."""
        return Sequential(exceedances=int(self.config.n_toys) + 1, table=TABLE)

    def rank(self, statistics: np.ndarray, families: list[str]) -> Ranked:  # (1 + n_toys, K)
        """The first row among the toys that were not set aside."""
        combine = self.config.combine
        ranked = self.score.rank(statistics, combine, complete=True, families=families)
        assert ranked is not None  # n_toys is more than are set aside
        return ranked

    def _result(
        self, name: str, made: OfSize, row: Measured, explain_up_to: float
    ) -> TestResult | Exception:
        """All that is said of one sample, or what went wrong."""
        began, config = time.perf_counter(), self.config
        sample, seed = self.samples[name], int(config.seed)
        encoding, n_toys = self.reference.encoding, int(config.n_toys)
        observed = self._observed(sample.encoded.points)
        table = ToyTable({0: row, **{i: made.null.rows[i] for i in range(1, n_toys + 1)}})
        statistics = np.asarray(table.first(n_toys + 1).statistics)
        answers: Answers | None = None
        unexplained: tuple[str, ...] = ()
        try:
            toys.check_finite(statistics[0])
            ranked = self.rank(statistics, families_of(made.prepared.statistic.readings))
            if config.explain and ranked.p_value <= explain_up_to:
                table.models = self._models(sample.encoded.points)
                answers = explain(
                    observed, self.statistic, made.prepared, ranked.p_value, seed=seed, chunk=None,
                    group_rows=None, encoding=encoding, numbers=(None, sample.encoded.rows),
                )  # fmt: skip
        except UnexplainedError as error:
            unexplained = (str(error),)
        except FloatingPointError as error:
            return error
        found = interpret(
            observed, self.statistic, made.prepared, table, ranked, n_toys + 1, encoding.labels
        )
        found["notes"] = (*made.null.notes, *found["notes"], *unexplained)
        total = time.perf_counter() - began
        return TestResult(
            **found,
            answers=answers,
            frame=sample.frame,
            encoding=encoding,
            given=sample.encoded.given,
            data_rows=sample.encoded.rows,
            warnings=sample.cautions,
            preprocess=plain(config.preprocess),
            combine=plain(config.combine),
            n_labellings=None,
            settings={
                **made.settings,
                "n_toys": n_toys,
                "labellings": None,
                "combine": plain(config.combine),
                "stop": plain(self.score),
            },
            seed=seed,
            versions=versions(),
            timings={"prepare": 0.0, "toys": 0.0, "explain": total, "total": total},
        )

    def _models(self, points: np.ndarray) -> Ensemble | None:
        """The kernels of a sample, from a fit of its own: none are kept of many side by side."""
        source = shared_toys(self.reference.points, len(points), self.apart.draw, {0: points})
        own = prepare(source, self.config.preprocess, self.statistic)
        return toys.run(own, [0], seed=int(self.config.seed)).models


def _read(
    given: Mapping[str, Any],
) -> tuple[dict[str, tuple[Table, str | None]], dict[str, Exception]]:
    """What can be read, and what cannot."""
    tables: dict[str, tuple[Table, str | None]] = {}
    unread: dict[str, Exception] = {}
    for name in given:
        try:
            sample = given[name]
            tables[name] = as_table("the sample", sample), library_of(sample)
        except (ValueError, OSError, ImportError) as error:
            unread[name] = error
    return tables, unread
