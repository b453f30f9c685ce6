"""Algorithm 1: does this sample come from the same distribution as that reference?"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sparker import calibrate
from sparker.calibrate import Makers, Plan, Ready, Recipe, Table
from sparker.combine import Combination, minimum
from sparker.design import FitConfig
from sparker.ensemble import Ensemble, components
from sparker.nulls import Permutation, Samples, Scheme, Weights, largest_toy, samples, scheme
from sparker.preprocess import Preprocess, Transform, decorrelate
from sparker.progress import reporter
from sparker.pvalues import Ranked, rank
from sparker.record import plain, versions
from sparker.result import TestResult
from sparker.rows import Rows, streamed
from sparker.sample import TwoSample, column_names
from sparker.sequential import Sequential
from sparker.statistic import KernelStatistic, Statistic, as_statistic
from sparker.widths import WidthConfig

if TYPE_CHECKING:
    from distributed import Client

AnyStatistic = Statistic | Callable[[np.random.Generator, TwoSample], Any]
Progress = bool | Callable[[int, int], None]


def test(
    reference: ArrayLike,
    data: ArrayLike,
    *,
    n_calibration: int = 300,
    seed: int = 0,
    null: str | Scheme = "permutation",
    reference_weights: Weights | None = None,
    expected: float | None = None,
    groups: tuple[ArrayLike, ArrayLike] | None = None,
    strata: tuple[ArrayLike, ArrayLike] | None = None,
    config: FitConfig | None = None,
    widths: WidthConfig | None = None,
    preprocess: Preprocess = decorrelate,
    combine: Combination = minimum,
    statistic: AnyStatistic | None = None,
    stop: Sequential | None = None,
    store: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    chunk: int | None = None,
    cluster: "Client | None" = None,
) -> TestResult:
    """Test whether ``data`` come from the distribution of ``reference``; say where they do not.

    Args:
        reference: anomaly-free rows (N_R, d), several times as many as data rows if possible; or
            ``sparker.stream(...)``, for more of them than fit into memory.
        data: the rows in question (N_D, d), with the same columns.
        n_calibration: number of anomaly-free experiments; p-values go down to one over this + 1. To
            be chosen beforehand: raised until p is small, it makes p-values too small.
        seed: decides the toys and the fits; the same seed gives the same p-value.
        null: how anomaly-free experiments are made, ``"permutation"`` or ``Simulator(source)``.
        reference_weights: what reference rows must be weighted by to have the density expected of
            the data: a function of rows; a pair, the weights of the reference rows and those that
            the data rows would have as reference rows; or, at the cost of rows, the first alone.
        expected: the number of data rows expected; if given, the total count is tested too.
        groups: a pair, the group of each reference row and of each data row; groups stay together.
        strata: a pair, the stratum of each reference row and of each data row (run, site, period,
            pair); labels are exchanged within strata only, and only within them are rows compared.
        config: the settings of the kernels and their training.
        widths: which widths the kernels go through, how, and in how many steps.
        preprocess: ``decorrelate``, ``standardise``, ``whiten`` or ``unchanged`` of
            ``sparker.preprocess``.
        combine: how the widths become one test, a rule of ``sparker.combine``.
        statistic: another statistic than SparKer's, a function (rng, sample) -> t for one; it
            makes no use of config and widths.
        stop: when to stop early, see ``Sequential``; left out, all toys are made.
        store: a folder that keeps finished toys, so that an interrupted call can be continued.
        progress: whether to draw a progress bar on stderr (where that is a terminal, if left out),
            or a function of (done, total).
        chunk: toys trained at once; as many as are good for speed and fit into memory if left out.
        cluster: a Dask client whose workers make the toys (``sparker[cluster]``).

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(0)
    >>> reference, data = rng.normal(size=(2000, 2)), rng.normal(size=(300, 2))
    >>> data[:12] = [2, 2] + 0.1 * rng.normal(size=(12, 2))
    >>> result = sparker.test(reference, data, n_calibration=50)
    >>> round(result.p_value, 4), bool(np.all(np.argsort(-result.scores)[:10] < 12))
    (0.0196, True)
    """
    began = time.perf_counter()
    if not callable(combine):
        raise ValueError(f"combine must be a rule of sparker.combine, got {combine!r}")
    if stop is not None and not isinstance(stop, Sequential):
        raise ValueError(f"stop must be a Sequential, got {stop!r}")
    experiment = prepare(
        reference,
        data,
        n_calibration=n_calibration,
        seed=seed,
        null=null,
        reference_weights=reference_weights,
        expected=expected,
        groups=groups,
        strata=strata,
        config=config,
        widths=widths,
        preprocess=preprocess,
        statistic=statistic,
        chunk=chunk,
        cluster=cluster,
    )
    n_calibration, seed = experiment.n_calibration, experiment.seed
    if stop is not None and experiment.n_labellings is not None:
        raise ValueError(
            f"labels can be given in {experiment.n_labellings} ways only, and all of them are "
            "tried; there is nothing to stop early, so leave stop out"
        )
    if stop is not None and n_calibration <= stop.table:
        raise ValueError(
            f"n_calibration must be more than the {stop.table} toys of stop's table, got "
            f"{n_calibration}"
        )
    prepared = time.perf_counter()

    def verdict(table: Table) -> Ranked | None:
        n = min(table.n_in_a_row, n_calibration + 1)
        if stop is None:
            return rank(table.first(n).readings, combine) if n > n_calibration else None
        return (
            stop.rank(table.first(n).readings, combine, complete=n > n_calibration) if n else None
        )

    with reporter(progress, n_calibration + 1) as tell:
        table = experiment.run(
            range(n_calibration + 1),
            store=store,
            tell=tell,
            enough=lambda table: stop is not None and verdict(table) is not None,
        )
    trained = time.perf_counter()
    ranked = verdict(table)
    assert ranked is not None  # all toys are there, or stop said so
    n_made = len(ranked.score) if stop is None else stop.table + len(ranked.score)
    found = interpret(
        experiment.observed, experiment.statistic, experiment.plan.observed, table, ranked, n_made
    )
    timings = {
        "prepare": prepared - began,
        "toys": trained - prepared,
        "total": time.perf_counter() - began,
    }
    more: dict[str, Any] = {"notes": (*experiment.notes, *found["notes"])}
    if experiment.n_labellings is not None:  # all there are: nothing is left to chance
        more["interval"] = (ranked.p_value, ranked.p_value)
    settings = {
        **experiment.description,
        "n_calibration": n_calibration,
        "labellings": experiment.n_labellings,
        "combine": plain(combine),
        "stop": plain(stop),
    }
    return TestResult(
        **found | more,
        columns=column_names(reference) or column_names(data),
        settings=settings,
        seed=seed,
        versions=versions(),
        timings=timings,
    )


test.__test__ = False  # type: ignore[attr-defined]  # no test case, whatever pytest thinks


def run_toys(
    reference: ArrayLike,
    data: ArrayLike,
    *,
    toys: Sequence[int],
    store: str | PathLike[str],
    n_calibration: int = 300,
    progress: Progress | None = None,
    **settings: Any,
) -> int:
    """Make some of the experiments of a test, to be merged or continued later; how many were made.

    Number 0 is the fit to the data, 1 to ``n_calibration`` are toys. ``settings`` are those of
    ``test``. Stores that several machines filled are brought together by ``merge``, and ``test``
    with the merged store then finds everything done.
    """
    numbers = sorted({int(number) for number in toys})
    whole = all(int(number) == number for number in toys)
    if not whole or not numbers or numbers[0] < 0 or numbers[-1] > n_calibration:
        raise ValueError(f"toys must be numbers from 0 to n_calibration = {n_calibration}")
    for name in ("combine", "stop"):  # settings of the verdict, not of the toys
        settings.pop(name, None)
    experiment = prepare(reference, data, n_calibration=n_calibration, **settings)
    numbers = [number for number in numbers if number <= experiment.n_calibration]
    with reporter(progress, len(numbers)) as tell:
        experiment.run(numbers, store=store, tell=tell)
    return len(numbers)


class Experiment(NamedTuple):
    """A test with everything decided but nothing run."""

    observed: Samples
    statistic: Statistic
    plan: Plan
    n_calibration: int  # as asked for, or as many toys as there are
    seed: int
    chunk: int | Callable[[], int]  # or who finds out, once it is needed
    description: dict[str, Any]
    makers: Makers | None  # other processes that make the toys
    notes: tuple[str, ...]  # what became of the samples
    n_labellings: int | None  # where there are no more than all that were asked for

    def run(self, numbers: Sequence[int], **options: Any) -> Table:
        """Make the experiments of these numbers, see ``calibrate.run``."""
        return calibrate.run(
            self.plan,
            numbers,
            seed=self.seed,
            chunk=self.chunk,
            manifest=self.description,
            makers=self.makers,
            **options,
        )


def prepare(
    reference: ArrayLike,
    data: ArrayLike,
    *,
    n_calibration: int,
    seed: int = 0,
    null: str | Scheme = "permutation",
    reference_weights: Weights | None = None,
    expected: float | None = None,
    groups: tuple[ArrayLike, ArrayLike] | None = None,
    strata: tuple[ArrayLike, ArrayLike] | None = None,
    config: FitConfig | None = None,
    widths: WidthConfig | None = None,
    preprocess: Preprocess = decorrelate,
    statistic: AnyStatistic | None = None,
    chunk: int | None = None,
    cluster: "Client | None" = None,
) -> Experiment:
    """Check everything, and decide all that the toys share."""
    if not 1 <= n_calibration < np.inf or int(n_calibration) != n_calibration:
        raise ValueError(f"n_calibration must be a whole number from 1 on, got {n_calibration}")
    if int(seed) != seed or not 0 <= seed < 2**32:
        raise ValueError(f"seed must be a whole number between 0 and 2**32 - 1, got {seed}")
    if chunk is not None and (chunk < 1 or int(chunk) != chunk):
        raise ValueError(f"chunk must be at least 1, got {chunk}")
    if not callable(preprocess):
        raise ValueError(f"preprocess must be a function of sparker.preprocess, got {preprocess!r}")
    n_calibration, seed = int(n_calibration), int(seed)
    by = scheme(null)
    streams = isinstance(by, Permutation) and statistic is None and cluster is None
    no_blocks = groups is not None or strata is not None
    if streams and not no_blocks and (reference_weights is None or expected is None):
        reference = streamed(reference)
    if isinstance(reference, Rows) and not streams:
        raise ValueError(
            "a streamed reference goes with relabelled toys (null='permutation'), SparKer's own "
            "statistic and no cluster; batch jobs that make some of the toys each do (run_toys)"
        )
    observed = samples(
        reference,
        data,
        reference_weights=reference_weights,
        expected=expected,
        groups=groups,
        strata=strata,
        may_stream=True,
    )
    chosen = as_statistic(statistic, config or FitConfig(), widths or WidthConfig())
    if isinstance(chosen, KernelStatistic):
        check_enough_rows(observed, chosen.config.n_kernels)
    recipe = Recipe(observed, by, preprocess, chosen, seed)
    plan = recipe.plan()
    notes, n_labellings = plan.notes, None
    if plan.n_toys is not None and plan.n_toys <= n_calibration:
        n_calibration, n_labellings = plan.n_toys, plan.n_toys + 1
        notes += (
            f"labels can be given in {n_labellings} ways only; all were tried, and no p-value "
            f"below {1 / n_labellings:.2g} is possible",
        )
    # The largest toy meets every limit there is, now rather than hours into the calibration.
    largest = largest_toy(observed.expected, n_calibration, seed)
    one = plan.toys.draw([largest])
    size: int | Callable[[], int]
    makers = None
    if cluster is None:
        size = chunk or plan.toys.statistic.chunk_size(one, n_calibration + 1)
    else:
        from sparker.cluster import Workers  # its extra is not always there

        makers = Workers(cluster, recipe)
        size = chunk or partial(makers.chunk_size, largest, n_calibration + 1)
    description = calibrate.describe(plan.toys.statistic, observed, by, preprocess, seed)
    return Experiment(
        observed, chosen, plan, n_calibration, seed, size, description, makers, notes, n_labellings
    )


def interpret(
    observed: Samples,
    statistic: Statistic,
    ready: Ready,
    table: Table,
    ranked: Ranked,
    n_made: int,
) -> dict[str, Any]:
    """What the observed row of the table says beside its toys: most of a ``TestResult``."""
    transform = ready.transform
    data, reference = transform(observed.data), transform(observed.reference)
    outcome = table.first(n_made)
    evidence, excess, deficit, score_counts, _ = outcome
    calibrate.check_finite(evidence[0])
    p_by_reading = ranked.p_by_column.reshape(evidence.shape[1:])
    best, best_reading = clearest(evidence, p_by_reading)
    columns = ready.statistic.columns
    data_components = reference_components = None
    if table.models is not None and isinstance(statistic, KernelStatistic):
        model = Ensemble(*(array[best] for array in table.models))
        data_components, reference_components = (
            components(model, rows, statistic.config.competition) for rows in (data, reference)
        )
    failed = ~np.all(np.isfinite(outcome.readings[1:]), axis=1)
    return {
        "p_value": ranked.p_value,
        "interval": ranked.interval,
        "above": ranked.above,
        "n_toys": ranked.n_toys,
        "n_failed": int(failed.sum()),
        "widths": columns if len(columns) else np.arange(evidence.shape[1]),
        "readings": ready.statistic.readings,
        "evidence": evidence[0],
        "null_evidence": evidence[1:],
        "p_by_reading": p_by_reading,
        "score": float(ranked.score[0]),
        "null_score": ranked.score[1:],
        "best": best,
        "best_reading": best_reading,
        "excess": excess[0],
        "deficit": deficit[0],
        "null_excess": excess[1:],
        "null_deficit": deficit[1:],
        "score_counts": score_counts[0],
        "null_score_counts": score_counts[1:],
        "models": table.models,
        "transform": transform,
        "data_components": data_components,
        "reference_components": reference_components,
        **_plane(transform, data, reference, observed.weights),
        "reference_weights": observed.weights,
        "notes": _notes(transform, observed),
    }


def clearest(evidence: np.ndarray, p: np.ndarray) -> tuple[int, int]:  # (n, m, r), (m, r)
    """The width whose kernels tell most, and what is read off there most clearly.

    Of the widths at which the statistic of the whole model has its smallest p-value, the one where
    it is furthest above that of the toys: both are log-likelihoods, and comparable. Of its
    readings, which are not, the one furthest out in spreads of the toys.
    """
    toys = np.where(np.isfinite(evidence[1:]), evidence[1:], np.nan)
    toys = np.where(np.isnan(toys).all(0), evidence[0], toys)  # no toy there: it says nothing
    beyond = evidence[0] - np.nanmean(toys, axis=0)
    spread = np.nanstd(toys, axis=0)
    width = int(np.argmax(np.where(p[:, 0] == p[:, 0].min(), beyond[:, 0], -np.inf)))
    distance = beyond[width] / np.where(spread[width] > 0, spread[width], 1)
    return width, int(np.argmax(np.where(p[width] == p[width].min(), distance, -np.inf)))


MOST_FOR_PLANE = 20_000
"""Rows that decide in which plane all are drawn."""


def _plane(
    transform: Transform, data: np.ndarray, reference: np.ndarray, weights: np.ndarray | None
) -> dict[str, np.ndarray]:
    """The rows in the plane in which the reference varies most, to draw them in."""
    some = np.arange(len(reference))
    if len(some) > MOST_FOR_PLANE:
        some = np.random.default_rng(0).choice(len(some), MOST_FOR_PLANE, replace=False)
    directions = transform.principal(reference[some], 2, None if weights is None else weights[some])
    return {
        "data_plane": data @ directions,
        "reference_plane": reference @ directions,
        "directions": directions,
    }


def check_enough_rows(observed: Samples, n_kernels: int) -> None:
    """Every kernel needs a row to start from."""
    for name, rows in (("reference", observed.reference), ("data", observed.data)):
        if len(rows) < n_kernels:
            raise ValueError(
                f"{name} has {len(rows)} rows, fewer than the {n_kernels} kernels; take more rows "
                "or a config with fewer kernels"
            )


def _notes(transform: Transform, observed: Samples) -> tuple[str, ...]:
    notes = []
    if len(transform.dropped):
        notes.append(f"columns {transform.dropped.tolist()} do not vary and were left out")
        strays = transform.strays(observed.data)
        for column, n in zip(transform.dropped, strays, strict=True):
            if n:
                notes.append(
                    f"column {column} never varies in the reference, but {n} data rows differ "
                    "from it there: an anomaly that this test does not see"
                )
    if observed.rows is not None and len(observed.reference) < len(observed.rows):
        notes.append(
            f"the reference was streamed; a random {len(observed.reference):,} of its "
            f"{len(observed.rows):,} rows are kept to be shown"
        )
    return tuple(notes)
