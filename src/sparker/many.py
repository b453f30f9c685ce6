"""Many samples against one reference: which of them differ, at a false discovery rate?

Each sample is tested by ``sparker.test``, with toys of its own and an exact p-value; all together
give Benjamini and Hochberg's list. ``docs/many.md`` says what that assumes, and has the measured
levels and rates of false discoveries.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sparker import together
from sparker.by_name import FAULTS, folder_of, named, quietly, seed_of
from sparker.calibration.false_discovery import fewest_listed
from sparker.calibration.sequential import Sequential
from sparker.calibration.settings import plain
from sparker.config import TestConfig, TestKeywords, from_keywords
from sparker.detect import conclude, prepare
from sparker.findings.decision import Level
from sparker.findings.many import Many, SampleOutcome
from sparker.result import TestResult
from sparker.system.numbers import is_number
from sparker.system.progress import OnProgress, reporter
from sparker.system.versions import versions
from sparker.tables.frames import as_table

OnResult = Callable[[str, TestResult], None]
"""Told the name of a sample and all that was found, of which only some lines are kept."""

Outcome = tuple[str, TestResult | Exception]


class ManyResult(Many):
    """The outcome of ``sparker.test_many``: a ``findings.many.Many`` that can report itself."""

    def report(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write one HTML page with the ranked table and a card for each sample.

        ``options`` are those of ``sparker.report.many.render``: ``title`` and ``command``.
        """
        from sparker.report.many import render
        from sparker.report.pages import write_page

        write_page(path, render(self, **options))


def test_many(
    reference: ArrayLike,
    samples: Mapping[str, Any] | Sequence[Any],
    *,
    fdr: float = 0.1,  # noqa: PT028
    on_result: OnResult | None = None,  # noqa: PT028
    **settings: Unpack[TestKeywords],
) -> ManyResult:
    """Test each of many samples against one reference, and list those that differ.

    Of the samples in the list at most a share ``fdr`` does not differ, on average (Benjamini and
    Hochberg). A sample that cannot be read or tested has an error in its line, and stops none of
    the others.

    Args:
        reference: anomaly-free rows, as for ``sparker.test``, read once.
        samples: the samples by name, or one after the other: arrays, data frames, files. Files are
            read when it is their turn.
        fdr: the false discovery rate of the list.
        on_result: called with the name of each sample and its whole ``TestResult``, to save it or
            to write its report; afterwards only some lines of it are kept.
        **settings: those of ``sparker.test``. ``groups`` and ``strata`` are names of columns that
            all samples have. ``store`` has a folder for each sample: a call that was ended goes on.
            Toys stop early unless ``stop=None``; without ``n_toys`` there are as many as one
            sample alone needs to be listed, 300 at least. Only samples that are
            listed have answers.

    Returns:
        A line for each sample, ranked.

    Raises:
        ValueError: if the settings are wrong, or if no sample can be tested.

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(1)
    >>> reference = rng.normal(size=(400, 2))
    >>> runs = {f"run {i}": rng.normal(size=(50, 2)) for i in range(6)}
    >>> runs["run 3"][:8] = [2, 2] + 0.1 * rng.normal(size=(8, 2))
    >>> found = sparker.test_many(reference, runs)
    >>> found.found, bool(found.q_values.min() < 0.1)
    (['run 3'], True)
    """
    began = time.perf_counter()
    config = from_keywords({"stop": Sequential(), **settings})
    given = named(samples)
    if not is_number(fdr, above=0, below=1):
        raise ValueError(f"fdr must lie between 0 and 1, got {fdr!r}")
    if "n_toys" not in settings:
        config = replace(config, n_toys=max(300, int(np.ceil(len(given) / fdr)) - 1))
    together.check({*config.features, "many"})
    _check_fdr(fdr, int(config.n_toys), len(given))
    rows: Any = reference
    if not callable(config.reference_weights):  # which are given rows as they came
        rows = as_table("reference", reference)
    outcomes, common = {}, None
    try:
        for name, found in _one_by_one(rows, given, config, Level(fdr, given=True, by_itself=True)):
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
    ranked = ManyResult(
        samples=tuple(outcomes[name] for name in given),
        fdr=fdr,
        frame=common.frame,
        n_reference=common.n_reference,
        settings=_common(config, common),
        versions=versions(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=time.perf_counter() - began,
        files=tuple(files),
    )
    answered = (
        one if listed else one.without_answers()
        for one, listed in zip(ranked.samples, ranked.listed, strict=True)
    )
    return replace(ranked, samples=tuple(answered))


test_many.__test__ = False  # type: ignore[attr-defined]  # no test case, whatever pytest thinks


def _one_by_one(
    reference: Any, given: Mapping[str, Any], config: TestConfig, level: Level
) -> Iterator[Outcome]:
    """Each sample with toys of its own, exactly as ``sparker.test`` would."""
    n_each = int(config.n_toys) + 1
    with reporter(config.progress, n_each * len(given)) as on_progress:
        for place, name in enumerate(given):
            folder = None if config.store is None else Path(config.store) / folder_of(name)
            own = replace(config, seed=seed_of(config, name), store=folder)
            yield (
                name,
                _tested(reference, given, name, own, place * n_each, on_progress, level),
            )
            on_progress((place + 1) * n_each)


def _tested(
    reference: Any,
    given: Mapping[str, Any],
    name: str,
    config: TestConfig,
    n_before: int,
    on_progress: OnProgress,
    level: Level,
) -> TestResult | Exception:
    """One sample by itself, or what went wrong."""
    began = time.perf_counter()
    try:
        with quietly():
            experiment = prepare(reference, given[name], config)
            return conclude(
                experiment,
                began,
                lambda done: on_progress(n_before + done),
                level=level,
            )
    except FAULTS as error:
        return error


def _check_fdr(fdr: float, n_toys: int, n_samples: int) -> None:
    if fewest_listed(n_samples, fdr, 1 / (n_toys + 1)) is None:
        raise ValueError(
            f"{n_toys} toys resolve p-values down to {1 / (n_toys + 1):.2g}, so no sample could be "
            f"listed at fdr = {fdr:g}; ask for {int(np.ceil(1 / fdr)) - 1} or more by n_toys, or "
            "for a larger fdr"
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
