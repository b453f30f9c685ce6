"""Which of several generators is closest to the data? The question of many samples, turned round.

The data are one sample and every generator has made another one. How far they are apart is measured
on rows that were not fitted (``findings.distance``), with an interval by resampling.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sparker import together
from sparker.by_name import FAULTS, named, quietly
from sparker.calibration.plan import prepare
from sparker.calibration.settings import plain
from sparker.config import TestConfig, TestKeywords, from_keywords
from sparker.findings.closest import Candidate, Closest, compare
from sparker.findings.distance import Terms, held_out, resampled
from sparker.intake import two_samples
from sparker.nulls import ToySource, samples
from sparker.statistics.contract import Statistic
from sparker.streaming.reference import as_reference
from sparker.system.numbers import is_whole
from sparker.system.programs import compiled_programs
from sparker.system.progress import reporter
from sparker.system.versions import versions
from sparker.tables.frames import as_table, library_of

MAX_FOLDS = 100
MAX_RESAMPLES = 10**6


def closest(
    data: ArrayLike,
    generated: Mapping[str, Any] | Sequence[Any],
    *,
    n_folds: int = 5,
    n_resamples: int = 999,
    **settings: Unpack[TestKeywords],
) -> Closest:
    """Rank generators by how far what they generated is from the data.

    The distance is t for each data row, twice the Kullback-Leibler divergence of the data from the
    generator as far as kernels see it: about 0 for a perfect generator, and never too large on
    average. Its interval is that of the fits as they are, on new rows.

    Args:
        data: the rows that generators imitate, as for ``sparker.test``.
        generated: what each generator made, by its name or one after the other: arrays, data
            frames, files, with the same columns.
        n_folds: so many fits for each generator, each without one fold of the rows.
        n_resamples: how often rows are drawn anew, for the intervals.
        **settings: those of ``sparker.test`` that are about columns, kernels and weights of the
            generated rows.

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(0)
    >>> data = rng.normal(size=(500, 2))
    >>> generated = {"good": rng.normal(size=(500, 2)), "shifted": rng.normal(1, size=(500, 2))}
    >>> found = sparker.closest(data, generated)
    >>> found.best.name, found.is_sure, found.best.interval[0] < 0 < found.best.interval[1]
    ('good', True, True)
    """
    config = from_keywords(dict(settings))
    together.check({*config.features, "closest"})
    _check(n_folds, n_resamples)
    given = named(generated)
    table = as_table("data", data)
    found: dict[str, Terms] = {}
    failed: dict[str, Exception] = {}
    cautions: dict[str, tuple[str, ...]] = {}
    with reporter(config.progress, len(given)) as on_progress:
        for place, name in enumerate(given, 1):
            try:
                with quietly():
                    found[name], cautions[name] = _terms(table, given[name], config, n_folds)
            except FAULTS as error:
                failed[name] = error
            on_progress(place)
    if not found:
        raise next(iter(failed.values()))
    terms, names = list(found.values()), list(found)
    drawn = resampled(terms, n_resamples, int(config.seed))
    lines = compare(np.array([one.distance for one in terms]), drawn)
    candidates = []
    for line in lines:
        k = line.pop("number")
        n_rows, said = len(terms[k].generated), cautions[names[k]]
        candidates.append(Candidate(name=names[k], n_rows=n_rows, warnings=said, **line))
    candidates += [Candidate.failed(name, str(error)) for name, error in failed.items()]
    return Closest(
        candidates=tuple(candidates),
        n_data=len(terms[0].data),
        frame=library_of(data),
        settings={
            "n_folds": int(n_folds),
            "n_resamples": int(n_resamples),
            "seed": int(config.seed),
            "preprocess": plain(config.preprocess),
            "statistic": plain(_kernels(config)),
        },
        versions=versions(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _terms(
    data: Any, generated: Any, config: TestConfig, n_folds: int
) -> tuple[Terms, tuple[str, ...]]:
    """What the rows of the data and of one generator add, and what looks suspicious."""
    known = as_reference(generated)
    if known.streamed:
        together.check({*config.features, "closest", "streamed"})
    intake = two_samples(known, data, config)
    observed = samples(intake.reference, intake.data, reference_weights=intake.weights)
    statistic, seed = _kernels(config), int(config.seed)
    n_data, n_generated = len(observed.data), len(observed.reference)
    if min(n_data, n_generated) < n_folds * statistic.min_rows:
        raise ValueError(
            f"the data have {n_data} rows and the generator {n_generated}; {n_folds} folds of at "
            f"least {statistic.min_rows} rows need {n_folds * statistic.min_rows} of each"
        )
    rows = np.concatenate([observed.data, observed.reference.shown])
    source = ToySource(rows, _no_toys, len(rows))
    with compiled_programs():
        prepared = prepare(source, config.preprocess, statistic)
        fit = partial(held_out, statistic, prepared.statistic, prepared.transform(rows), n_data)
        terms = fit(observed.weights, n_folds=n_folds, seed=seed, chunk=config.chunk)
    return terms, tuple(one.text for one in intake.cautions)


def _kernels(config: TestConfig) -> Statistic:
    """The kernels without their company, which has no log density ratio."""
    return config.chosen_statistic().streamed()


def _no_toys(transform: Any) -> Any:
    """Nothing is calibrated here."""
    return None


def _check(n_folds: int, n_resamples: int) -> None:
    if not is_whole(n_folds) or not 2 <= n_folds <= MAX_FOLDS:
        raise ValueError(f"n_folds must be a whole number from 2 to {MAX_FOLDS}, got {n_folds}")
    if not is_whole(n_resamples) or not 99 <= n_resamples <= MAX_RESAMPLES:
        raise ValueError(
            f"n_resamples must be a whole number from 99 to {MAX_RESAMPLES:,}, got {n_resamples}"
        )
