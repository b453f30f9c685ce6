"""A stream that is watched for ever: look, stop or go on at any time, and alarms stay rare.

Beside ``Monitor``, which tests each batch by itself at a level of its own, this one bets on the
rows of all batches together (``sparker.betting``). The probability that it *ever* raises an alarm
while the stream has the reference's distribution is at most alpha, however often and for whatever
reason one looks. Or, with ``change=True``, it looks for a change again and again, and the mean
number of looks until a false alarm is at least 1/alpha.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Unpack, overload

import msgspec
import numpy as np
from msgspec import to_builtins
from msgspec.structs import asdict
from numpy.typing import ArrayLike

from sparker import together
from sparker.betting.process import Process, SavedProcess
from sparker.calibration.settings import option, option_name
from sparker.config import TestKeywords, from_keywords
from sparker.detect import test
from sparker.engine.preprocess import Preprocess, Transform, fit_transform
from sparker.history import FileVersion, LookRecord, tested_before
from sparker.intake import one_sample, told
from sparker.result import TestResult
from sparker.system import archive
from sparker.system.archive import ArraySpec
from sparker.system.numbers import is_number
from sparker.tables.checks import Caution
from sparker.tables.encoding import Encoding
from sparker.tables.frames import as_table
from sparker.tables.rows import MISSING_VALUES, more_rows
from sparker.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KIND = "anytime monitor"

MIN_ROWS = 100
"""Of a reference; a tenth of this could not tell a stream of nothing but anomalies from chance."""

N_ROWS_SHOWN = 3

MAX_LOG = 700.0
"""Wealth beyond its exponential is said to be that."""


class AnytimeLook(NamedTuple):
    """What is known after one more batch."""

    number: int
    """Counted from 1."""
    n_rows: int
    """Of all batches so far."""
    wealth: float
    """What the bets have made of 1; with ``change``, of 1 for every look since the last alarm."""
    p_value: float
    """Valid at any time: where nothing differs, the probability that it is ever as small as u is at
    most u. With ``change`` it is that of the looks since the last alarm, at any number of looks
    that is chosen beforehand."""
    alarm: bool
    strongest: str
    """The kind of the bet that has won most: kernels, shift, far or edge."""
    payoffs: np.ndarray
    """(N,) what that bet pays for each row of the batch; the rows it is about have the highest."""
    cautions: tuple[Caution, ...] = ()
    """What looks suspicious in the batch."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; the rows it is about only if there is an alarm."""
        line: dict[str, Any] = {
            "look": self.number,
            "p_value": self.p_value,
            "wealth": self.wealth,
            "alarm": self.alarm,
            "rows": len(self.payoffs),
            "rows_so_far": self.n_rows,
            "strongest": self.strongest,
            "warnings": [one.text for one in self.cautions],
        }
        if self.alarm:
            best = np.argsort(-self.payoffs, kind="stable")[:N_ROWS_SHOWN]
            line["highest_payoffs"] = [
                {"row": int(i), "payoff": float(self.payoffs[i])} for i in best
            ]
        return line


@dataclass(kw_only=True, eq=False, repr=False)
class AnytimeMonitor:
    """A reference, and all that was bet on the stream so far."""

    reference: np.ndarray  # (N, d)
    """As numbers: first the rows that are learned from, then those that are held back."""
    n_learned_from: int
    encoding: Encoding
    """How the columns of the reference became numbers; batches become the same."""
    missing: str
    preprocess: Preprocess
    transform: Transform
    seed: int
    alpha: float
    """The probability of a false alarm, ever; with ``change``, one over the mean number of looks
    until there is one."""
    process: Process
    best: float = -np.inf
    """The largest logarithm of the wealth; with ``change``, since the last alarm."""
    history: list[LookRecord] = field(default_factory=list)
    """The looks so far."""

    @classmethod
    def start(
        cls,
        reference: ArrayLike,
        *,
        alpha: float = 0.01,
        change: bool = False,
        **settings: Unpack[TestKeywords],
    ) -> "AnytimeMonitor":
        """Begin to monitor a stream, with a reference that holds no anomalies.

        Args:
            reference: anomaly-free rows, as for ``sparker.test``. Half of them, drawn at random,
                are learned from; the others are held back, and decide what bets are worth.
            alpha: the probability that there is ever a false alarm. With ``change``, there are at
                least 1/alpha looks between false alarms, on average.
            change: look for a change at any time, again and again; without it, for any difference
                from the reference, once.
            **settings: those of ``sparker.test`` for columns, ``preprocess`` and ``seed``.

        Raises:
            ValueError: if alpha is no level, or the reference cannot be used.
        """
        if not is_number(alpha, above=0, below=1):
            raise ValueError(f"alpha must be between 0 and 1, got {alpha!r}")
        config = from_keywords(dict(settings))
        together.check({*config.features, "anytime"})
        table = as_table("reference", reference)
        n_rows = len(table.points)
        if n_rows < MIN_ROWS:
            raise ValueError(
                f"the reference has {n_rows} rows, and at least {MIN_ROWS} are needed: half of "
                "them are learned from, and what the others have in common with the stream decides"
            )
        # Nothing may be learned from rows that are held back, not even names of categories.
        order = np.random.default_rng(config.seed).permutation(n_rows)
        first, second = (table.rows(np.sort(part)) for part in np.array_split(order, 2))
        brought = one_sample(first, config)
        held_back, _ = more_rows("reference", second, brought.encoding, config.missing)
        points = np.concatenate([brought.points, held_back.points]).astype(float)
        learned_from, is_numeric = points[: len(brought.points)], brought.encoding.is_numeric
        transform = fit_transform(config.preprocess, learned_from, is_numeric)
        process = Process.begun(
            *np.split(transform(points), [len(brought.points)]), change=bool(change)
        )
        return cls(
            reference=points,
            n_learned_from=len(brought.points),
            encoding=brought.encoding,
            missing=config.missing,
            preprocess=config.preprocess,
            transform=transform,
            seed=int(config.seed),
            alpha=alpha,
            process=process,
        )

    @property
    def change(self) -> bool:
        """Whether a change is looked for again and again."""
        return self.process.change

    looks: ClassVar[None] = None
    """None are planned."""

    @property
    def alarm_stays(self) -> bool:
        """Whether every look after an alarm is one, too."""
        return not self.change

    def explained(self, look: AnytimeLook, batch: ArrayLike) -> TestResult:
        """Return what is known of a batch that raised an alarm."""
        return self.explain(batch, progress=False)

    def figure(self) -> "Figure":
        """Draw the wealth of all looks, and their p-values below it."""
        from matplotlib.figure import Figure

        from sparker.plots import trend, wealth

        figure = Figure(figsize=(8, 6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        looks = [asdict(look) for look in self.history]
        wealth(looks, needed=(2 if self.change else 1) / self.alpha, ax=above)
        trend(looks, alpha=None if self.change else self.alpha, ax=below)
        return figure

    @property
    def beside(self) -> list[str]:
        """The columns that are no features, but that batches need: none."""
        return []

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are compared, where there are any."""
        return tuple(one.name for one in self.encoding.columns) if self.encoding.named else ()

    @property
    def p_value(self) -> float:
        """That of all looks so far."""
        looks = self.process.n_looks if self.change else 1
        return float(min(1.0, max(looks, 1) * np.exp(-self.best)))

    @overload
    def look(self, batch: ArrayLike) -> AnytimeLook: ...

    @overload
    def look(
        self, batch: ArrayLike, *, key: str | None = None, file: FileVersion | None = None
    ) -> AnytimeLook | None: ...

    def look(
        self, batch: ArrayLike, *, key: str | None = None, file: FileVersion | None = None
    ) -> AnytimeLook | None:
        """Bet on the rows of a batch, of one row or many, and return how it stands.

        There is an alarm once the p-value is at most alpha; without ``change`` it stays. With it,
        there is one where the wealth reaches 2/alpha, and all bets begin anew after it.

        Args:
            batch: rows with the columns of the reference.
            key: a name of the batch; one that was bet on under this name already is skipped.
                Without a key, rows always count.
            file: the version of the file that the batch comes from; one that was bet on already is
                skipped.

        Returns:
            The look, or None if the batch was skipped.

        Raises:
            ValueError: if the rows cannot be encoded as those of the reference were.
        """
        rows = as_table("the batch", batch)
        if tested_before(self.history, rows, key, file) is not None:
            return None
        encoded, noted = more_rows("the batch", rows, self.encoding, self.missing)
        points = encoded.points.astype(float)
        noted = told((*noted, *self._strays(points)), strict=False, caller=2)
        fitted = self.transform(points)
        log_wealth, leading = self.process.look(fitted)
        self.best = max(self.best, log_wealth)
        p_value, wealth = self.p_value, float(np.exp(min(log_wealth, MAX_LOG)))
        alarm = bool(p_value <= self.alpha)
        if self.change and (alarm := bool(log_wealth >= np.log(2 / self.alpha))):
            self.process.begin_anew()
            self.best = -np.inf
        number = len(self.history) + 1
        self.history.append(
            LookRecord(
                number=number,
                rows=len(points),
                p_value=p_value,
                alarm=alarm,
                wealth=wealth,
                key=key,
                file=file,
            )
        )
        return AnytimeLook(
            number,
            self.process.n_rows,
            wealth,
            p_value,
            alarm,
            leading.kind,
            leading.witness.payoffs(fitted),
            noted,
        )

    def watch(self, batches: Iterable[ArrayLike]) -> Iterator[AnytimeLook]:
        """Look at batch after batch.

        Args:
            batches: several batches.
        """
        for batch in batches:
            yield self.look(batch)

    def explain(self, batch: ArrayLike, **settings: Unpack[TestKeywords]) -> TestResult:
        """Test one batch by itself against the whole reference, to see what an alarm is about.

        It changes nothing in the bets. Its p-value is that of this batch alone, chosen because of
        an alarm perhaps: the alarm stands on its own.

        Args:
            batch: rows with the columns of the reference.
            **settings: those of ``sparker.test``.
        """
        encoded, _ = more_rows("the batch", batch, self.encoding, self.missing)
        names = tuple(self.encoding.names)
        reference, data = (Table(rows, names) for rows in (self.reference, encoded.points))
        settings.setdefault("seed", self.seed)
        settings.setdefault("keep", names)
        return test(reference, data, **settings)

    def summary(self) -> str:
        """What it is for and what it stands on, in a sentence."""
        n_rows, n_features = self.reference.shape
        for_what = "changes" if self.change else "any difference"
        return (
            f"anytime monitor for {for_what} at alpha = {self.alpha:g}: {n_rows} reference rows "
            f"with {n_features} features, {n_rows - self.n_learned_from} of them held back; "
            f"{len(self.history)} looks made"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return its level, its looks and their history as JSON has them."""
        return {
            "format": KIND,
            "reference_rows": len(self.reference),
            "alpha": self.alpha,
            "planned_looks": self.looks,
            "looks": [to_builtins(look) for look in self.history],
        }

    def __repr__(self) -> str:
        return f"<A{self.summary()[1:]}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the monitor with its history to one file, whole or not at all.

        Args:
            path: where.
        """
        archive.write(path, KIND, self.saved())

    def packed(self) -> bytes:
        """Return the content of its file."""
        return archive.packed(KIND, self.saved())

    def saved(self) -> "SavedAnytime":
        """Return what its file has."""
        return SavedAnytime(
            **vars(self)
            | {
                "preprocess": option_name("preprocess", self.preprocess),
                "process": self.process.saved(),
                "best": None if np.isinf(self.best) else self.best,
                "history": tuple(self.history),
            }
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], embed: Any = None) -> "AnytimeMonitor":
        """Read what ``save`` wrote; whatever the file holds instead, it can do no harm.

        Args:
            path: the file.
            embed: refused, since an anytime monitor embeds nothing.

        Returns:
            The monitor, which goes on where it was.

        Raises:
            ValueError: if the file holds anything else.
        """
        with archive.reading(path, KIND):
            return cls.restored(
                archive.unpacked(archive.content_of(path), {KIND: SavedAnytime}), embed
            )

    @classmethod
    def restored(cls, saved: "SavedAnytime", embed: Any = None) -> "AnytimeMonitor":
        """Return the monitor of what a file has."""
        if embed is not None:
            raise ValueError("an anytime monitor embeds nothing; leave embed (--embed) out")
        points, n = saved.reference, saved.n_learned_from
        encoding = saved.encoding
        encoding.check()
        if saved.missing not in MISSING_VALUES or not n < len(points):
            raise ValueError("its settings are none")
        if len(encoding.features) != points.shape[1]:
            raise ValueError("its encoding is of other columns")
        first, second = np.split(saved.transform(points), [n])
        if not (np.isfinite(first).all() and np.isfinite(second).all()):
            raise ValueError("its transformation is none")
        if saved.process.recent.shape[1] != second.shape[1]:
            raise ValueError("its bets are on other columns")
        return cls(
            **asdict(saved)
            | {
                "preprocess": option("preprocess", saved.preprocess),
                "process": saved.process.restored(first, second),
                "best": -np.inf if saved.best is None else saved.best,
                "history": list(saved.history),
            }
        )

    def _strays(self, points: np.ndarray) -> list[Caution]:
        dropped = self.transform.dropped
        return [
            Caution(
                "stray",
                f"{n:,} row{'s' * (n != 1)} of the batch differ{'s' * (n == 1)} in "
                f"{self.encoding.names[place]}, which never varies in the reference; the bets do "
                "not see that",
            )
            for place, n in zip(dropped, self.transform.strays(points).tolist(), strict=True)
            if n
        ]


class SavedAnytime(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """All of an anytime monitor, as its file has it."""

    reference: Annotated[np.ndarray, ArraySpec("N d")]
    n_learned_from: Annotated[int, msgspec.Meta(ge=1)]
    encoding: Encoding
    missing: str
    preprocess: str
    transform: Transform
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
    alpha: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    process: SavedProcess
    best: float | None
    history: tuple[LookRecord, ...]
