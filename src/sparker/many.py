"""Many samples against one reference: which of them differ, at a false discovery rate?

Each sample is tested as ``sparker.test`` does, with toys of its own, or samples of one size share
toys that are made once (``sparker.shared``). Both give each an exact p-value; a monitor's toys give
nearly one. What is made of all of them together is Benjamini and Hochberg's list. ``docs/many.md``
says what each assumes, and has the measured levels and rates of false discoveries.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sparker import together
from sparker.by_name import FAULTS, folder_of, named, quietly, seed_of
from sparker.calibration.false_discovery import fewest_listed
from sparker.calibration.settings import plain
from sparker.config import TestConfig, TestKeywords, from_keywords
from sparker.detect import conclude, prepare
from sparker.findings.many import Many, SampleOutcome
from sparker.findings.words import LEVEL
from sparker.monitor import Monitor
from sparker.result import TestResult
from sparker.shared import TABLE, SharedCalibration
from sparker.streaming.reference import Streamed
from sparker.system.numbers import is_number
from sparker.system.progress import OnProgress, reporter
from sparker.system.versions import versions
from sparker.tables.frames import as_table

OnResult = Callable[[str, TestResult], None]
"""Told the name of a sample and all that was found, of which only some lines are kept."""

Outcome = tuple[str, TestResult | Exception]

Tests = Callable[[Any, Mapping[str, Any], TestConfig, float], Iterator[Outcome]]
"""The reference, the samples, the settings, up to which p-value to explain -> what was found."""


class ManyResult(Many):
    """The outcome of ``sparker.test_many``: a ``findings.many.Many`` that can report itself."""

    def report(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write one HTML page with the ranked table and a card for each sample.

        ``options`` are those of ``sparker.report.many.render``: ``title`` and ``command``.
        """
        from sparker.report.many import write

        write(path, self, **options)


def test_many(
    reference: ArrayLike | Monitor,
    samples: Mapping[str, Any] | Sequence[Any],
    *,
    fdr: float = 0.1,  # noqa: PT028
    shared: bool = False,  # noqa: PT028
    on_result: OnResult | None = None,  # noqa: PT028
    **settings: Unpack[TestKeywords],
) -> ManyResult:
    """Test each of many samples against one reference, and list those that differ.

    Of the samples in the list at most a share ``fdr`` is fine, on average (Benjamini and Hochberg).
    A sample that cannot be read or tested is said so in its line, and stops none of the others.

    Args:
        reference: anomaly-free rows, as for ``sparker.test``, read once; or a ``Monitor``, whose
            toys all samples then share, with its settings and its measured level.
        samples: the samples by name, or one after the other: arrays, data frames, files. Files are
            read when it is their turn.
        fdr: the false discovery rate of the list.
        shared: whether samples of one size share their toys, which are then made once. That takes
            a reference of ``n_toys`` times as many rows as a sample has: every toy takes rows of
            its own out of it. With ``null=Simulator(rows or function)`` it takes them from there
            and leaves the reference whole.
        on_result: called with the name of each sample and its whole ``TestResult``, to save it or
            to write its report; afterwards only some lines of it are kept.
        **settings: those of ``sparker.test``. ``groups`` and ``strata`` are names of columns that
            all samples have. ``store`` has a folder for each sample: a call that was ended goes on.
            ``explain`` is about samples whose p-value is at most ``fdr`` or 5 %, for only these can
            be listed.

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(1)
    >>> reference = rng.normal(size=(400, 2))
    >>> runs = {f"run {i}": rng.normal(size=(50, 2)) for i in range(6)}
    >>> runs["run 3"][:8] = [2, 2] + 0.1 * rng.normal(size=(8, 2))
    >>> found = sparker.test_many(reference, runs, n_toys=99)
    >>> found.found, round(float(found.q_values.min()), 3)
    (['run 3'], 0.06)
    """
    began = time.perf_counter()
    config = from_keywords(dict(settings))
    given = named(samples)
    tests: Tests = _with_shared_toys if shared else _one_by_one
    if isinstance(reference, Monitor):
        config, tests = _as_calibrated(reference, config, settings, shared=shared), _by_monitor
    known = _Known.of(reference, config, shared=shared)
    together.check(known.features)
    _check_fdr(fdr, config, len(given), shared=shared)
    explain_up_to = max(fdr, LEVEL)
    outcomes, common = {}, None
    try:
        for name, found in tests(known.rows, given, config, explain_up_to):
            seed = seed_of(config, name)
            if isinstance(found, Exception):
                outcomes[name] = SampleOutcome.failed(name, seed, _said(found))
                if len(outcomes) == len(given) and common is None:
                    raise found  # it is not the samples that are wrong
                continue
            if on_result is not None:
                on_result(name, found)
            outcomes[name] = SampleOutcome.of(name, found)
            common = found
    except KeyboardInterrupt as stop:
        kept = "the same call goes on there" if config.store else "with a store they would be kept"
        stop.add_note(f"{len(outcomes)} of {len(given)} samples were finished; {kept}")
        raise
    assert common is not None  # or the error would have been raised
    files = [os.fspath(reference)] if isinstance(reference, str | os.PathLike) else []
    return ManyResult(
        samples=tuple(outcomes[name] for name in given),
        fdr=fdr,
        shared=tests is not _one_by_one,
        frame=common.frame,
        n_reference=common.n_reference,
        settings=_common(config, common),
        versions=versions(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=time.perf_counter() - began,
        files=tuple(files),
    )


test_many.__test__ = False  # type: ignore[attr-defined]  # no test case, whatever pytest thinks


class _Known(NamedTuple):
    """The reference, read once, and all features that may not go together."""

    rows: Any
    features: set[str]

    @classmethod
    def of(cls, reference: Any, config: TestConfig, *, shared: bool) -> "_Known":
        features = {*config.features, "many"}
        if shared:
            features |= {"shared"}
        if any(not isinstance(one, str | None) for one in (config.groups, config.strata)):
            features |= {"row by row"}
        if isinstance(reference, Streamed):
            return cls(reference, {*features, "streamed"})
        if isinstance(reference, Monitor):
            return cls(reference, features)
        if callable(config.reference_weights):  # of rows as they came
            return cls(reference, features)
        return cls(as_table("reference", reference), features)


def _one_by_one(
    reference: Any, given: Mapping[str, Any], config: TestConfig, explain_up_to: float
) -> Iterator[Outcome]:
    """Each sample with toys of its own, exactly as ``sparker.test`` would."""
    n_each = int(config.n_toys) + 1
    with reporter(config.progress, n_each * len(given)) as on_progress:
        for place, name in enumerate(given):
            folder = None if config.store is None else Path(config.store) / folder_of(name)
            own = replace(config, seed=seed_of(config, name), store=folder)
            yield (
                name,
                _tested(reference, given, name, own, place * n_each, on_progress, explain_up_to),
            )
            on_progress((place + 1) * n_each)


def _tested(
    reference: Any,
    given: Mapping[str, Any],
    name: str,
    config: TestConfig,
    n_before: int,
    on_progress: OnProgress,
    explain_up_to: float,
) -> TestResult | Exception:
    """One sample by itself, or what went wrong."""
    began = time.perf_counter()
    try:
        with quietly():
            experiment = prepare(reference, given[name], config)
            return conclude(
                experiment.trials,
                began,
                lambda done: on_progress(n_before + done),
                explain_up_to=explain_up_to,
            )
    except FAULTS as error:
        return error


def _with_shared_toys(
    reference: Any, given: Mapping[str, Any], config: TestConfig, explain_up_to: float
) -> Iterator[Outcome]:
    """Samples of one size with the same toys."""
    with quietly():
        calibration = SharedCalibration.of(reference, given, config)
    yield from calibration.unread.items()
    with reporter(config.progress, calibration.n_experiments) as on_progress:
        yield from calibration.tests(partial(seed_of, config), explain_up_to, on_progress)


def _by_monitor(
    monitor: Monitor, given: Mapping[str, Any], config: TestConfig, explain_up_to: float
) -> Iterator[Outcome]:
    """Samples with the toys of a monitor; one of a new size waits until its toys are made."""
    with reporter(config.progress, len(given)) as on_progress:
        for place, name in enumerate(given, 1):
            found: TestResult | Exception
            try:
                with quietly():
                    found = monitor.test(given[name], explain=False)
                    if config.explain and found.p_value <= explain_up_to:
                        found = monitor.test(given[name])
            except FAULTS as error:
                found = error
            yield name, found
            on_progress(place)


def _as_calibrated(
    monitor: Monitor, config: TestConfig, settings: Mapping[str, Any], *, shared: bool
) -> TestConfig:
    """The settings that a monitor decided before."""
    decided = [name for name in settings if name not in ("explain", "progress")]
    decided += ["shared"] * shared
    if decided:
        raise ValueError(
            f"a monitor was calibrated with settings of its own: leave out {', '.join(decided)}"
        )
    return replace(config, n_toys=monitor.n_toys, seed=monitor.seed, combine=monitor.combine)


def _check_fdr(fdr: float, config: TestConfig, n_samples: int, *, shared: bool) -> None:
    if not is_number(fdr, above=0, below=1):
        raise ValueError(f"fdr must lie between 0 and 1, got {fdr!r}")
    stop = config.stop
    n_aside = TABLE if shared else 0 if stop is None else stop.table
    n_compared = int(config.n_toys) - n_aside
    if n_compared < 1:
        raise ValueError(
            f"n_toys must be more than the {n_aside} toys that put readings on one scale where "
            f"toys are shared, got {config.n_toys}"
        )
    if fewest_listed(n_samples, fdr, 1 / (n_compared + 1)) is None:
        raise ValueError(
            f"{n_compared} toys resolve p-values down to {1 / (n_compared + 1):.2g}, so no sample "
            f"could be listed at fdr = {fdr:g}; ask for {int(np.ceil(1 / fdr)) - 1 + n_aside} or "
            "more by n_toys, or for a larger fdr"
        )


def _common(config: TestConfig, one: TestResult) -> dict[str, Any]:
    """What the settings of all tests have in common."""
    same = ("null", "statistic", "preprocess", "reference")
    return {
        **{name: one.settings.get(name) for name in same},
        "n_toys": int(config.n_toys),
        "seed": int(config.seed),
        "combine": plain(config.combine),
        "stop": plain(config.stop),
    }


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
