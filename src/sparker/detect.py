"""Algorithm 1: does this sample come from the same distribution as that reference?"""

import inspect
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, NamedTuple, Unpack

from numpy.typing import ArrayLike

from sparker import together
from sparker.calibration import toys
from sparker.calibration.plan import Plan, Recipe, describe
from sparker.calibration.pvalues import Ranked, rank
from sparker.calibration.settings import plain
from sparker.calibration.toys import Executor, Table
from sparker.config import DecidedKeywords, TestConfig, defaults, from_keywords
from sparker.findings.decision import Level
from sparker.findings.explain import Answers, UnexplainedError, explain
from sparker.findings.interpret import interpret
from sparker.intake import Intake, two_samples
from sparker.nulls import Pull, Samples, largest_toy, samples
from sparker.nulls import scheme as as_scheme
from sparker.result import TestResult
from sparker.statistics.contract import Statistic, families_of
from sparker.system.progress import reporter
from sparker.system.versions import versions

AS_IF_KNOWN = (
    "how many rows, where and which is said as if the nuisance values were known: a region where a "
    "nuisance parameter moves an edge may be what a value that is a little off leaves there"
)


def test(reference: ArrayLike, data: ArrayLike, **settings: Unpack[DecidedKeywords]) -> TestResult:
    """Test whether ``data`` come from the distribution of ``reference``; say where they do not.

    The result says how sure that is, how many rows are anomalous at least, where they are and which
    (``summary``, ``rows``, ``regions``, ``columns``, ``report``).

    Args:
        reference: anomaly-free rows, several times as many as data rows if possible: an array
            (N_R, d), a data frame, columns by name, or a file.
        data: the rows in question, with the same columns, in any order where they have names.
        **settings: how, as ``sparker.TestConfig`` explains them one by one: ``alpha``, ``n_toys``,
            ``seed``, ``null``, ``columns``, ``ignore``, ``keep``, ``missing``, ``text``,
            ``images``, ``embed``, ``strict``, ``reference_weights``, ``expected``,
            ``systematics``, ``normalisation``, ``at``, ``groups``, ``strata``, ``config``,
            ``widths``, ``preprocess``, ``combine``, ``statistic``, ``explain``, ``stop``,
            ``store``, ``progress``, ``chunk``, ``cluster``.

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(0)
    >>> reference, data = rng.normal(size=(2000, 2)), rng.normal(size=(300, 2))
    >>> data[:12] = [2, 2] + 0.1 * rng.normal(size=(12, 2))
    >>> result = sparker.test(reference, data, n_toys=50)
    >>> round(result.p_value, 4), bool(np.all(np.argsort(-result.data_log_ratio)[:10] < 12))
    (0.0196, True)
    """
    began = time.perf_counter()
    config = from_keywords(dict(settings))
    experiment = prepare(reference, data, config)
    with reporter(config.progress, experiment.n_toys + 1) as on_progress:
        found = conclude(experiment, began, on_progress)
    files = [os.fspath(given) for given in (reference, data) if isinstance(given, str | PathLike)]
    return replace(found, files=tuple(files)) if len(files) == 2 else found


def conclude(
    experiment: "Experiment",
    began: float,
    on_progress: Callable[[float], None],
    *,
    level: Level | None = None,
) -> TestResult:
    """Make the toys, rank the data among them, and find the answers.

    Args:
        experiment: The test.
        began: When, by ``time.perf_counter``.
        on_progress: Called with the number of toys that are made.
        level: The level of a call that has one of its own: answers are then found only where the
            difference is significant.
    """
    prepared = time.perf_counter()
    # Number 0 is the fit to the data, the others to anomaly-free toys.
    table = experiment.run(
        range(experiment.n_toys + 1),
        on_progress=on_progress,
        should_stop=lambda table: (
            experiment.config.stop is not None and experiment.rank(table) is not None
        ),
    )
    # Ranks among the toys, one for each width and family, combined and ranked once more.
    ranked = experiment.rank(table)
    assert ranked is not None  # all toys are there, or stop said so
    timings = {"prepare": prepared - began, "toys": time.perf_counter() - prepared}
    if level is not None and ranked.p_value > level.alpha:
        experiment = experiment._replace(config=replace(experiment.config, explain=False))
    found = experiment.result(table, ranked, timings, began)
    return found if level is None else replace(found, level=level)


def _with_settings(function: Callable[..., Any], *positional: str) -> None:
    """Let ``help`` and notebooks show all settings with their defaults."""
    parameter, keyword = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
    own = [parameter(name, parameter.POSITIONAL_OR_KEYWORD) for name in positional]
    others = [parameter(name, keyword, default=value) for name, value in defaults().items()]
    function.__signature__ = inspect.Signature([*own, *others])  # type: ignore[attr-defined]


_with_settings(test, "reference", "data")
test.__test__ = False  # type: ignore[attr-defined]  # no test case, whatever pytest thinks


def run_toys(
    reference: ArrayLike,
    data: ArrayLike,
    *,
    only: Sequence[int],
    store: str | PathLike[str],
    **settings: Any,
) -> int:
    """Make some of the experiments of a test, to be merged or continued later; how many were made.

    Number 0 is the fit to the data, 1 to ``n_toys`` are toys. ``settings`` are those of ``test``.
    Stores that several machines filled are brought together by ``merge``, and ``test`` with the
    merged store then finds everything done.
    """
    for name in ("alpha", "combine", "stop"):  # of the decision, not of the toys
        settings.pop(name, None)
    config = from_keywords({**settings, "store": store})
    together.check({*config.features, "some toys"})
    numbers = sorted({int(number) for number in only})
    whole = all(int(number) == number for number in only)
    if not whole or not numbers or numbers[0] < 0 or numbers[-1] > config.n_toys:
        raise ValueError(f"only must be numbers from 0 to n_toys = {config.n_toys}")
    experiment = prepare(reference, data, config)
    numbers = [number for number in numbers if number <= experiment.n_toys]
    with reporter(config.progress, len(numbers)) as on_progress:
        experiment.run(numbers, on_progress=on_progress)
    return len(numbers)


class Experiment(NamedTuple):
    """A test with everything decided but nothing run."""

    config: TestConfig
    intake: Intake
    observed: Samples
    statistic: Statistic
    plan: Plan
    n_toys: int  # as asked for, or as many as there are
    n_labellings: int | None  # where there are no more than all that were asked for
    chunk: int | Callable[[], int]  # or a function that finds it out when it is needed
    description: dict[str, Any]
    executor: Executor | None  # other processes that make the toys
    notes: tuple[str, ...]  # what became of the samples
    pulls: tuple[Pull, ...] = ()  # of the nuisance parameters that were fitted

    def run(self, numbers: Sequence[int], **options: Any) -> Table:
        """Make the experiments of these numbers, see ``toys.run``."""
        return toys.run(
            self.plan.prepared,
            numbers,
            seed=int(self.config.seed),
            chunk=self.chunk,
            manifest=self.description,
            store=self.config.store,
            executor=self.executor,
            **options,
        )

    def rank(self, table: Table) -> Ranked | None:
        """The verdict, once there is one: after all toys, or when ``stop`` says so."""
        n = min(table.n_in_a_row, self.n_toys + 1)
        complete = n > self.n_toys
        stop, combine = self.config.stop, self.config.combine
        if not (complete or (stop is not None and n)):
            return None
        families = families_of(self.plan.prepared.statistic.component_tests)
        measured = table.first(n)
        if stop is not None:
            return stop.rank(measured, combine, complete=complete, families=families)
        return rank(measured, combine, families)

    def result(
        self,
        table: Table,
        ranked: Ranked,
        timings: dict[str, float],
        began: float,
    ) -> TestResult:
        """Everything there is to say."""
        config, prepared = self.config, self.plan.prepared
        n_made = len(ranked.score)
        labels = self.intake.encoding.labels
        found = interpret(self.observed, self.statistic, prepared, table, ranked, n_made, labels)
        explaining = time.perf_counter()
        answers: Answers | None = None
        unexplained: tuple[str, ...] = ()
        if config.explain:
            try:
                answers = self.explain(table.lowered_to)
            except UnexplainedError as error:
                unexplained = (str(error),)
            except Exception as error:  # hours of toys are not lost for what is said beside them
                unexplained = (f"how many rows, where and which is not known: {error!r}",)
        timings["explain"] = time.perf_counter() - explaining
        if self.n_labellings is not None:  # all there are: nothing is left to chance
            found["interval"] = (ranked.p_value, ranked.p_value)
        if self.pulls and answers is not None:
            unexplained = (AS_IF_KNOWN,)
        found["notes"] = (*self.notes, *table.notes, *found["notes"], *unexplained)
        settings = {
            **self.description,
            "n_toys": self.n_toys,
            "labellings": self.n_labellings,
            "combine": plain(config.combine),
            "stop": plain(config.stop),
            "at": {name: float(value) for name, value in (config.at or {}).items()},
        }
        result = TestResult(
            **found,
            **self.intake.of_result,
            answers=answers,
            level=Level.of(config.alpha),
            n_toys_asked=self.n_toys,
            nuisances=self.pulls,
            preprocess=plain(config.preprocess),
            combine=plain(config.combine),
            n_labellings=self.n_labellings,
            settings=settings,
            seed=int(config.seed),
            versions=versions(),
            timings={**timings, "total": time.perf_counter() - began},
        )
        return result.with_pictures(self.intake.pictures)

    def explain(self, lowered_to: int | None) -> Answers:
        """How many, where, which rows, which columns; of fits at a time, no more than fit."""
        return explain(
            self.observed,
            self.statistic,
            self.plan.prepared,
            seed=int(self.config.seed),
            chunk=None if callable(self.chunk) else lowered_to or self.chunk,
            group_rows=self.config.scheme.group_rows,
            encoding=self.intake.encoding,
            numbers=(self.intake.reference_rows, self.intake.data_rows),
        )


def prepare(reference: ArrayLike, data: ArrayLike, config: TestConfig) -> Experiment:
    """Check everything, and decide all that the toys share."""
    statistic = config.chosen_statistic()
    together.check(config.features)
    intake = two_samples(reference, data, config)
    observed = samples(
        intake.reference,
        intake.data,
        reference_weights=intake.weights,
        expected=config.expected,
        groups=intake.groups,
        strata=intake.strata,
        is_numeric=intake.encoding.is_numeric,
    )
    observed.check_rows(statistic.min_rows)
    if intake.nuisances is None:
        return planned(config, intake, observed, statistic)
    profile = intake.nuisances.best(observed, int(config.seed))
    toys = planned(config, intake, profile.toys, statistic, intake.nuisances.notes)
    # Answers are those at the best values.
    return toys._replace(observed=profile.samples, pulls=profile.pulls)


def planned(
    config: TestConfig,
    intake: Intake,
    observed: Samples,
    statistic: Statistic,
    notes: tuple[str, ...] = (),
) -> Experiment:
    """Decide all that the toys of these samples share."""
    scheme, seed = as_scheme(intake.null), int(config.seed)
    recipe = Recipe(observed, scheme, config.preprocess, statistic, seed)
    plan = recipe.plan()
    notes, n_toys, n_labellings = (*plan.notes, *notes), int(config.n_toys), None
    if plan.n_toys is not None and plan.n_toys <= n_toys:
        n_toys, n_labellings = plan.n_toys, plan.n_toys + 1
        notes += (
            f"labels can be given in {n_labellings} ways only; all were tried, and no p-value "
            f"below {1 / n_labellings:.2g} is possible",
        )
        config = replace(config, stop=None)
    # The largest toy meets every limit there is, now rather than hours into the calibration.
    largest = largest_toy(observed.expected, n_toys, seed)
    _, prepared, all_toys = plan.prepared
    all_toys.draw([largest])
    chunk: int | Callable[[], int]
    executor = None
    if config.cluster is None:
        chunk = config.chunk or prepared.chunk_size(all_toys, largest, n_toys + 1)
    else:
        from sparker.calibration.cluster import Workers  # its extra is not always there

        executor = Workers(config.cluster, recipe)
        chunk = config.chunk or partial(executor.chunk_size, largest, n_toys + 1)
    description = describe(plan.prepared, observed, config.preprocess, seed, scheme)
    return Experiment(
        config, intake, observed, statistic, plan, n_toys, n_labellings, chunk, description,
        executor, notes,
    )  # fmt: skip
