"""Which of several generators is closest to the data? The question of many samples, turned round.

The data are one sample and every generator has made another one. How far they are apart is measured
on rows that were not fitted (``findings.distance``), with an interval by halves of the rows.
"""

import os
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
from sparker.engine.config import FitConfig
from sparker.engine.widths import WidthConfig
from sparker.findings.closest import Candidate, Closest, compare
from sparker.findings.distance import Distances, held_out
from sparker.intake import two_samples
from sparker.nulls import ToySource, samples
from sparker.statistics.kernels import KernelStatistic
from sparker.system.numbers import is_number
from sparker.system.progress import reporter
from sparker.system.versions import versions
from sparker.tables.frames import as_table, library_of


class ClosestResult(Closest):
    """The outcome of ``sparker.closest``: a ``findings.closest.Closest`` that can report itself."""

    def report(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write one HTML page with all distances and the table.

        ``options`` are those of ``sparker.report.closest.render``: ``title`` and ``command``.
        """
        from sparker.report.closest import render
        from sparker.report.pages import write_page

        write_page(path, render(self, **options))


MAX_FOLDS = 100
MIN_SPLITS, MAX_SPLITS = 3, 1000


def closest(
    data: ArrayLike,
    generated: Mapping[str, Any] | Sequence[Any],
    *,
    n_folds: int = 5,
    n_splits: int = 10,
    **settings: Unpack[TestKeywords],
) -> ClosestResult:
    """Rank generators by how far what they generated is from the data.

    The distance is t for each data row, twice the Kullback-Leibler divergence of the data from the
    generator as far as kernels see it: about 0 for a perfect generator, and never too large on
    average. Its interval is about other rows and other fits to as many rows.

    Args:
        data: the rows that generators imitate, as for ``sparker.test``.
        generated: what each generator made, by its name or one after the other: arrays, data
            frames, files, with the same columns.
        n_folds: so many fits of all rows for each generator, each without one fold of them.
        n_splits: how often rows are split into halves, in which all is done again, for the
            intervals.
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
    _check(n_folds, n_splits)
    given = named(generated)
    table = as_table("data", data)
    compared: dict[str, tuple[Distances, tuple[int, int], tuple[str, ...]]] = {}
    failed: dict[str, Exception] = {}
    with reporter(config.progress, len(given)) as on_progress:
        for place, name in enumerate(given, 1):
            try:
                with quietly():
                    compared[name] = _distances(table, given[name], config, n_folds, n_splits)
            except FAULTS as error:
                failed[name] = error
            on_progress(place)
    if not compared:
        raise next(iter(failed.values()))
    names = list(compared)
    found, n_rows, cautions = zip(*compared.values(), strict=True)
    candidates = []
    for line in compare(found):
        i = line.pop("number")
        candidates.append(Candidate(names[i], n_rows[i][1], warnings=cautions[i], **line))
    candidates += [Candidate.failed(name, str(error)) for name, error in failed.items()]
    return ClosestResult(
        candidates=tuple(candidates),
        n_data=n_rows[0][0],
        frame=library_of(data),
        settings={
            "n_folds": int(n_folds),
            "n_splits": int(n_splits),
            "seed": int(config.seed),
            "preprocess": plain(config.preprocess),
            "statistic": plain(_kernels(config)),
        },
        versions=versions(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _distances(
    data: Any, generated: Any, config: TestConfig, n_folds: int, n_splits: int
) -> tuple[Distances, tuple[int, int], tuple[str, ...]]:
    """How far one generator is, the rows of the data and its own, and what looks suspicious."""
    intake = two_samples(generated, data, config)
    observed = samples(intake.reference, intake.data, reference_weights=intake.weights)
    statistic, seed = _kernels(config), int(config.seed)
    n_data, n_generated = len(observed.data), len(observed.reference)
    needed = 2 * n_folds * statistic.min_rows
    if min(n_data, n_generated) < needed:
        raise ValueError(
            f"the data have {n_data} rows and the generator {n_generated}; two halves of {n_folds} "
            f"folds of at least {statistic.min_rows} rows need {needed} of each"
        )
    rows = np.concatenate([observed.data, observed.reference])
    source = ToySource(rows, _no_toys)
    prepared = prepare(source, config.preprocess, statistic, intake.encoding.is_numeric)
    fit = partial(held_out, statistic, prepared.statistic, prepared.transform(rows), n_data)
    folds = {"n_folds": n_folds, "n_splits": n_splits}
    found = fit(observed.weights, **folds, seed=seed, chunk=config.chunk)
    return found, (n_data, n_generated), tuple(one.text for one in intake.cautions)


def _kernels(config: TestConfig) -> KernelStatistic:
    """The kernels without their company, which has no log density ratio."""
    return KernelStatistic(
        config=config.config or FitConfig(), widths=config.widths or WidthConfig()
    )


def _no_toys(transform: Any) -> Any:
    """Nothing is calibrated here."""
    return None


def _check(n_folds: int, n_splits: int) -> None:
    for name, value, least, most in (
        ("n_folds", n_folds, 2, MAX_FOLDS),
        ("n_splits", n_splits, MIN_SPLITS, MAX_SPLITS),
    ):
        if not is_number(value, least=least, most=most, whole=True):
            raise ValueError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
