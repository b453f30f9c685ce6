"""A reference with its settings, a level and planned looks: batch after batch is tested against it.

Each look is ``sparker.test``: the batch is relabelled with the rows of the reference and ranked by
the same component tests. So its p-value is exact, whatever rows the reference has, and with
``looks`` planned in advance the probability of any false alarm is at most ``alpha`` (Bonferroni).
All looks share one reference: for a given reference the rate of alarms scatters around ``alpha``,
see ``docs/watch.md``.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Unpack, overload

import numpy as np
from msgspec import to_builtins
from msgspec.structs import asdict
from numpy.typing import ArrayLike

from sparker import together
from sparker.by_name import quietly
from sparker.calibration.sequential import Sequential
from sparker.config import TestConfig, TestKeywords, from_keywords
from sparker.detect import conclude, prepare
from sparker.embed import Remembered
from sparker.findings.decision import Level
from sparker.history import FileVersion, LookRecord, tested_before
from sparker.intake import embedded_column, one_sample
from sparker.monitor_file import SavedMonitor
from sparker.result import TestResult
from sparker.system import archive
from sparker.system.digest import digest_of_plain
from sparker.system.numbers import is_number
from sparker.system.progress import reporter
from sparker.tables.frames import as_table, library_of
from sparker.tables.kinds import as_texts, is_missing
from sparker.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KIND = "monitor"

MAX_LOOKS = 10**8
"""Planned ones; even one toy for each would be too many."""

ROUNDING = 1e-12
"""Relative; the smallest p-value of the fewest toys must raise an alarm."""

BATCHES = 30
"""Of a larger reference, rows for so many batches are drawn at random for each look."""

WEIGHTS = "(reference_weights)"
"""The column in which weights are kept that came as an array."""


class Look(NamedTuple):
    """One batch among many."""

    number: int
    """Counted from 1."""
    result: TestResult
    corrected_p_value: float
    """The p-value times the number of planned looks, at most 1; as it is if none were planned."""
    alarm: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; how many rows differ and where only if there is an alarm."""
        found = self.result
        line: dict[str, Any] = {
            "look": self.number,
            "p_value": found.p_value,
            "corrected_p_value": self.corrected_p_value,
            "significance": found.significance if found.p_value < 1 else None,
            "alarm": self.alarm,
            "rows": len(found.data),
            "warnings": [one.text for one in found.warnings],
        }
        if self.alarm and found.answers is not None:
            line["at_least"] = found.at_least
            line["where"] = [one.rule(found.features) for one in found.answers.regions]
        return line


class Monitor:
    """A reference that batches are tested against, with a level and a number of planned looks.

    Args:
        reference: anomaly-free rows, as for ``sparker.test``.
        alpha: the level. With ``looks``, the probability of any false alarm in all of them is at
            most this; without, that of a false alarm at each look.
        looks: the number of looks that are planned; a further one is refused.
        **settings: those of ``sparker.test``, as far as they make sense before there are data.
            ``groups``, ``strata`` and ``reference_weights`` may name columns. Toys stop early
            unless ``stop=None``, and ``n_toys`` is by default the number that can raise an alarm,
            300 at least.

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(0)
    >>> monitor = sparker.Monitor(rng.normal(size=(1000, 2)), alpha=0.05, looks=2)
    >>> monitor.look(rng.normal(size=(100, 2))).alarm
    False
    >>> monitor.look(rng.normal(0.5, 1, size=(100, 2))).alarm
    True
    """

    def __init__(
        self,
        reference: ArrayLike,
        *,
        alpha: float = 0.01,
        looks: int | None = None,
        **settings: Unpack[TestKeywords],
    ) -> None:
        given: dict[str, Any] = {"stop": Sequential(), **settings}
        config = from_keywords(given)
        together.check({*config.features, "monitor"})
        _check_level(alpha, looks)
        table, config = _with_weights(as_table("reference", reference), config)
        if "n_toys" not in given:
            config = replace(config, n_toys=max(300, fewest_toys(alpha, looks)))
        _check_toys(int(config.n_toys), alpha, looks)
        self.reference, self.config = _with_vectors(table, config)
        self.alpha, self.looks = alpha, looks
        self.history: list[LookRecord] = []
        one_sample(self.reference, self.config)  # what is wrong with it is said now

    @overload
    def look(self, batch: ArrayLike) -> Look: ...

    @overload
    def look(
        self, batch: ArrayLike, *, key: str | None = None, file: FileVersion | None = None
    ) -> Look | None: ...

    def look(
        self, batch: ArrayLike, *, key: str | None = None, file: FileVersion | None = None
    ) -> Look | None:
        """Test a batch, count it as a look and decide.

        Args:
            batch: rows with the columns of the reference.
            key: a name of the batch; one that was tested under this name already is skipped.
            file: the version of the file that the batch comes from; one that was tested already is
                skipped.

        Returns:
            The look, with its result; that explains how many rows differ, where and which only if
            there is an alarm. None if the batch was skipped.

        Raises:
            ValueError: if all planned looks were made, or the batch cannot be tested.
        """
        rows = as_table("the batch", batch)
        if tested_before(self.history, rows, key, file) is not None:
            return None
        number = len(self.history) + 1
        if self.looks is not None and number > self.looks:
            raise ValueError(
                f"all {self.looks} planned looks were made; make a monitor with more looks before "
                "the first one"
            )
        factor, level = self.looks or 1, self.alpha * (1 + ROUNDING)
        # A frame is handed on as it is, for results in its library; all else was read once now.
        given = rows if library_of(batch) is None else batch
        result = self._tested(given, len(rows.points), number)
        corrected = min(1.0, factor * result.p_value)
        look = Look(number, result, corrected, corrected <= level)
        self.history.append(
            LookRecord(
                number=number,
                rows=len(rows.points),
                p_value=result.p_value,
                alarm=look.alarm,
                key=key,
                file=file,
            )
        )
        return look

    def test(self, batch: ArrayLike) -> TestResult:
        """Test a batch as ``look`` does, which counts, and return the result.

        Args:
            batch: rows with the columns of the reference.
        """
        return self.look(batch).result

    def watch(self, batches: Iterable[ArrayLike]) -> Iterator[Look]:
        """Look at batch after batch.

        Args:
            batches: several batches.
        """
        for batch in batches:
            yield self.look(batch)

    alarm_stays: ClassVar[bool] = False
    """Whether every look after an alarm is one, too."""

    def explained(self, look: Look, batch: ArrayLike) -> TestResult:
        """Return what is known of a batch that raised an alarm."""
        return look.result

    def figure(self) -> "Figure":
        """Draw the p-values of all looks."""
        from matplotlib.figure import Figure

        from sparker.plots import trend

        figure = Figure(figsize=(8, 4), layout="constrained")
        looks = [asdict(look) for look in self.history]
        trend(looks, alpha=self.alpha, n_planned=self.looks, ax=figure.subplots())
        return figure

    @property
    def beside(self) -> list[str]:
        """The columns that are no features, but that batches need: groups and strata."""
        named = (self.config.groups, self.config.strata)
        return [one for one in named if isinstance(one, str)]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the reference's columns, where there are any."""
        return self.reference.columns

    def summary(self) -> str:
        """Return what it is, in a sentence."""
        n_rows, n_columns = self.reference.points.shape
        planned = "" if self.looks is None else f" of {self.looks}"
        return (
            f"monitor at alpha = {self.alpha:g}: {n_rows} reference rows with {n_columns} columns, "
            f"at most {self.config.n_toys} toys a look; {len(self.history)}{planned} looks made"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return its level, its looks and their history as JSON has them."""
        return {
            "format": KIND,
            "reference_rows": len(self.reference.points),
            "alpha": self.alpha,
            "planned_looks": self.looks,
            "looks": [to_builtins(look) for look in self.history],
        }

    def __repr__(self) -> str:
        return f"<M{self.summary()[1:]}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the monitor with its history to one file, whole or not at all.

        Args:
            path: where.

        Raises:
            ValueError: if a setting is a function of yours, which no file can hold.
        """
        archive.write(path, KIND, self.saved())

    def packed(self) -> bytes:
        """Return the content of its file."""
        return archive.packed(KIND, self.saved())

    def saved(self) -> SavedMonitor:
        """Return what its file has."""
        return SavedMonitor.of(
            self.config,
            reference=self.reference,
            alpha=self.alpha,
            looks=self.looks,
            history=tuple(self.history),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], embed: Any = None) -> "Monitor":
        """Read what ``save`` wrote; whatever the file holds instead, it can do no harm.

        Args:
            path: the file.
            embed: the function that embeds texts or pictures, which no file can hold.

        Returns:
            The monitor, which goes on where it was.

        Raises:
            ValueError: if the file holds anything else.
        """
        with archive.reading(path, KIND):
            return cls.restored(
                archive.unpacked(archive.content_of(path), {KIND: SavedMonitor}), embed
            )

    @classmethod
    def restored(cls, saved: SavedMonitor, embed: Any = None) -> "Monitor":
        """Return the monitor of what a file has."""
        with quietly():  # what is suspicious was said when it was made
            made = cls(
                saved.reference, alpha=saved.alpha, looks=saved.looks, **saved.keywords(embed)
            )
        made.history = list(saved.history)
        if [look.number for look in made.history] != [*range(1, len(made.history) + 1)]:
            raise ValueError("its looks are not numbered from 1 on")
        return made

    def _tested(self, batch: Any, n_rows: int, number: int) -> TestResult:
        level = Level.of(self.alpha / (self.looks or 1) * (1 + ROUNDING))
        began = time.perf_counter()
        seed = int(digest_of_plain([int(self.config.seed), number])[:8], 16)
        config = replace(self.config, seed=seed)
        reference, note = self._part(n_rows, seed)
        with reporter(config.progress, config.n_toys + 1) as on_progress:
            found = conclude(prepare(reference, batch, config), began, on_progress, level=level)
        return replace(found, notes=(*note, *found.notes))

    def _part(self, n_rows: int, seed: int) -> tuple[Table, tuple[str, ...]]:
        """Return the reference rows for a look: a random part if there are very many."""
        n_all, n = (
            len(self.reference.points),
            BATCHES * int(np.ceil(self.config.expected or n_rows)),
        )
        if n >= n_all or self.beside:
            return self.reference, ()
        kept = np.sort(np.random.default_rng([seed, n]).choice(n_all, n, replace=False))
        return self.reference.rows(kept), (
            f"a random part of the reference was used, {n:,} of {n_all:,} rows: {BATCHES} times "
            "the rows of the batch",
        )


def fewest_toys(alpha: float, looks: int | None) -> int:
    """Return the number of toys with which a look can raise an alarm.

    Args:
        alpha: the level of all looks together.
        looks: their number.
    """
    return int(np.ceil((looks or 1) / alpha * (1 - ROUNDING))) - 1


def _check_level(alpha: float, looks: int | None) -> None:
    if not is_number(alpha, above=0, below=1):
        raise ValueError(f"alpha must be between 0 and 1, got {alpha!r}")
    if looks is not None and not is_number(looks, whole=True, least=1, most=MAX_LOOKS):
        raise ValueError(f"looks must be a whole number from 1 to {MAX_LOOKS:,}, got {looks!r}")


def _check_toys(n_toys: int, alpha: float, looks: int | None) -> None:
    fewest = fewest_toys(alpha, looks)
    if n_toys < fewest:
        raise ValueError(
            f"n_toys must be at least {fewest} for an alarm at alpha = {alpha:g}"
            f"{'' if looks is None else f' with {looks} looks'}, got {n_toys}; leave it out, or "
            "choose a larger alpha"
        )


def _with_weights(table: Table, config: TestConfig) -> tuple[Table, TestConfig]:
    """Return the reference with weights that came as an array in a column of their own."""
    given: Any = config.reference_weights
    if given is None or isinstance(given, str):
        return table, config
    if callable(given) or np.shape(given) != (len(table.points),):
        raise ValueError(
            "reference_weights of a monitor must be one number a reference row, or the name of a "
            "column of the reference"
        )
    extra = {**table.extra, WEIGHTS: np.asarray(given, np.float64)}
    return table._replace(extra=extra), replace(config, reference_weights=WEIGHTS)


def _with_vectors(table: Table, config: TestConfig) -> tuple[Table, TestConfig]:
    """Return both with vectors in place of texts or pictures, if the embedder learns nothing."""
    embedder = config.embedder
    if embedder is None or embedder.learns or isinstance(embedder, Remembered):
        return table, config
    name = embedded_column(config, {"reference": table})
    names = table.columns or tuple(map(str, range(table.points.shape[1])))
    if name not in names:
        return table, config  # which is refused where columns are checked
    place = names.index(name)
    column = table.column(place)
    there = ~is_missing(column)
    vectors = (ready := embedder.fitted(())).encode(as_texts(column[there]))
    marks = np.full(len(column), None, object)
    marks[there] = Remembered.places(len(vectors))
    return table._replace(others={**table.others, place: marks}), replace(
        config, embed=Remembered(own=ready, vectors=vectors)
    )
