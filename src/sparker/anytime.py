"""A stream that is watched for ever: look, stop or go on at any time, and alarms stay rare.

Beside ``Monitor``, which tests each batch by itself at a level of its own, this one bets on the
rows of all batches together (``sparker.betting``). The probability that it *ever* raises an alarm
while the stream has the reference's distribution is at most alpha, however often and for whatever
reason one looks. Or, with ``change=True``, it looks for a change again and again, and the mean
number of looks until a false alarm is at least 1/alpha.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from sparker import together
from sparker.betting import saved
from sparker.betting.process import Process
from sparker.betting.scan import ground
from sparker.calibration.settings import option, option_name
from sparker.config import TestKeywords, from_keywords
from sparker.detect import test
from sparker.engine.preprocess import Preprocess, Transform, fit_transform
from sparker.engine.sample import as_points
from sparker.intake import one_sample, told
from sparker.result import TestResult
from sparker.system import archive
from sparker.system.digest import digest
from sparker.tables.checks import Caution
from sparker.tables.encoding import Encoding
from sparker.tables.frames import as_table
from sparker.tables.rows import MISSING_VALUES, more_rows
from sparker.tables.table import Table

KIND = "anytime monitor"
STATE = "state of an anytime monitor"

MIN_ROWS = 100
"""Of a reference; a tenth of this could not tell a stream of nothing but anomalies from chance."""

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
    seen_by: str
    """The kind of the bet that has won most: kernels, shift, far or edge."""
    payoffs: np.ndarray
    """(N,) what that bet pays for each row of the batch; the rows it is about have the highest."""
    cautions: tuple[Caution, ...] = ()
    """What looks suspicious in the batch."""


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
    process: Process
    best: float = -np.inf
    """The largest logarithm of the wealth; with ``change``, since the last alarm."""
    n_looks: int = 0

    @classmethod
    def start(
        cls, reference: ArrayLike, *, change: bool = False, **settings: Unpack[TestKeywords]
    ) -> "AnytimeMonitor":
        """Begin to watch, with a reference that holds no anomalies.

        With ``change``, look for a change at any time, again and again; without, for any difference
        from the reference, once. The other arguments are those of ``sparker.test`` that say what to
        do with columns, ``preprocess`` and ``seed``, which decides the half of the reference that
        is learned from. The other half is held back, and tells what bets are worth.
        """
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
            process=process,
        )

    @property
    def change(self) -> bool:
        """Whether a change is looked for again and again."""
        return self.process.change

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are compared, where there are any."""
        return tuple(one.name for one in self.encoding.columns) if self.encoding.named else ()

    @property
    def p_value(self) -> float:
        """That of all looks so far."""
        looks = self.process.n_looks if self.change else 1
        return float(min(1.0, max(looks, 1) * np.exp(-self.best)))

    def look(self, batch: ArrayLike, *, alpha: float = 0.05) -> AnytimeLook:
        """Bet on the rows of a batch, of one row or many, and say how it stands.

        There is an alarm once the p-value is at most alpha; without ``change`` it stays. With it,
        there is one where the wealth reaches 2/alpha, and all bets begin anew after it.
        """
        check_alpha(alpha)
        encoded, noted = more_rows("the batch", batch, self.encoding, self.missing)
        points = encoded.points.astype(float)
        noted = told((*noted, *self._strays(points)), strict=False, caller=2)
        fitted = self.transform(points)
        wealth, leading = self.process.look(fitted)
        self.n_looks += 1
        self.best = max(self.best, wealth)
        p_value = self.p_value
        alarm = p_value <= alpha if not self.change else wealth >= np.log(2 / alpha)
        if alarm and self.change:
            self.process.begin_anew()
            self.best = -np.inf
        return AnytimeLook(
            self.n_looks,
            self.process.n_rows,
            float(np.exp(min(wealth, MAX_LOG))),
            p_value,
            bool(alarm),
            leading.kind,
            leading.witness.payoffs(fitted),
            noted,
        )

    def watch(self, batches: Iterable[ArrayLike], *, alpha: float = 0.05) -> Iterator[AnytimeLook]:
        """Look at batch after batch."""
        check_alpha(alpha)
        for batch in batches:
            yield self.look(batch, alpha=alpha)

    def test(self, batch: ArrayLike, **settings: Unpack[TestKeywords]) -> TestResult:
        """Test one batch by itself against the whole reference, to see what an alarm is about.

        It changes nothing in the bets. Its p-value is that of this batch alone, chosen because of
        an alarm perhaps: the alarm stands on its own.
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
            f"anytime monitor for {for_what} in {n_features} features: {n_rows} reference rows, "
            f"{n_rows - self.n_learned_from} of them held back; {self.n_looks} looks so far"
        )

    def __repr__(self) -> str:
        return f"<A{self.summary()[1:]}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, which ``load`` reads; no code is stored in it."""
        header, arrays = self._state()
        header |= {
            "encoding": self.encoding.to_dict(),
            "missing": self.missing,
            "preprocess": option_name("preprocess", self.preprocess),
            "seed": self.seed,
            "change": self.change,
            "n_learned_from": self.n_learned_from,
        }
        arrays |= {f"transform_{name}": part for name, part in self.transform._asdict().items()}
        arrays |= {"reference": self.reference, "widths": self.process.beside.widths}
        archive.write(Path(path), {"kind": KIND, **header}, arrays)

    def save_state(self, path: str | os.PathLike[str], **more: Any) -> None:
        """Write only what changes from look to look; the reference stays in the file of ``save``.

        ``more`` are plain values that belong to it, such as the place in the stream.
        """
        header, arrays = self._state()
        archive.write(Path(path), {"kind": STATE, **header, "more": more}, arrays)

    def load_state(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Go on from a state that ``save_state`` wrote; give what was saved with it."""
        header, arrays = archive.read(Path(path), STATE)
        try:
            if header["of"] != self._digest:
                raise ValueError("it belongs to another reference or other settings")
            self._go_on(header, arrays)
            return dict(header["more"])
        except archive.DAMAGE as error:
            raise ValueError(f"{path} is no {STATE} that goes with this one: {error}") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "AnytimeMonitor":
        """Read what ``save`` wrote; whatever the file holds instead, it can do no harm."""
        return cls.restored(path, *archive.read(Path(path), KIND))

    def embedded_by(self, embed: Any) -> "AnytimeMonitor":
        """Refuse an embedder: streams are watched by numbers."""
        raise ValueError("an anytime monitor embeds nothing; give it rows of numbers, and no embed")

    @classmethod
    def restored(
        cls, path: object, header: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> "AnytimeMonitor":
        """A monitor of what an archive held."""
        try:
            made = cls(**_unpacked(header, arrays))
            if header["of"] != made._digest:
                raise ValueError("its bets are on another reference")
            made._go_on(header, arrays)
        except archive.DAMAGE as error:
            raise ValueError(f"{path} is not an {KIND} of this version: {error}") from error
        return made

    @cached_property
    def _digest(self) -> str:
        """What bets depend on beside the stream."""
        parts = [self.reference, *self.transform, np.array([self.n_learned_from, self.change])]
        return digest(*parts)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = saved.pack(self.process)
        best = None if np.isinf(self.best) else self.best
        return {**header, "of": self._digest, "best": best, "looks": self.n_looks}, arrays

    def _go_on(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        best, looks = header["best"], header["looks"]
        if not isinstance(looks, int) or looks < 0 or not isinstance(best, float | None):
            raise ValueError("its looks cannot be counted")
        before = self.process
        self.process = saved.unpack(
            header, arrays, before.beside, before.held_back, change=before.change
        )
        self.best, self.n_looks = -np.inf if best is None else best, looks

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


def check_alpha(alpha: float) -> None:
    """Refuse what is no level."""
    if not 0 < alpha < 1:
        raise ValueError(f"need 0 < alpha < 1, got {alpha}")


def _unpacked(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a monitor; one of ``archive.DAMAGE`` where they cannot be those of any."""
    reference, widths = as_points("reference", arrays["reference"]), arrays["widths"]
    n, change, seed = header["n_learned_from"], header["change"], header["seed"]
    encoding = Encoding.from_dict(header["encoding"])
    if header["missing"] not in MISSING_VALUES or not isinstance(change, bool):
        raise ValueError("its settings are none")
    if not isinstance(n, int) or not 0 < n < len(reference):
        raise ValueError(f"{n!r:.40} of {len(reference)} rows are learned from")
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(f"its seed is {seed!r:.40}")
    if len(encoding.features) != reference.shape[1]:
        raise ValueError("its encoding is of other columns")
    if widths.ndim != 1 or not len(widths) or not np.all((widths > 0) & np.isfinite(widths)):
        raise ValueError("its widths are none")
    transform = Transform(*(arrays[f"transform_{name}"] for name in Transform._fields))
    first, second = np.split(transform(reference), [n])
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("its transformation is none")
    process = Process(
        beside=ground(first, widths),
        held_back=second,
        change=change,
        usual=np.empty(0),
        recent=np.empty((0, first.shape[1])),
    )
    return {
        "reference": reference,
        "n_learned_from": n,
        "encoding": encoding,
        "missing": header["missing"],
        "preprocess": option("preprocess", header["preprocess"]),
        "transform": transform,
        "seed": seed,
        "process": process,
    }
