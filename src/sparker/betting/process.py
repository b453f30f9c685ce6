"""The bets on a stream: every row is bet on first and learned from afterwards.

The stream is learned from each time ``STEP`` more rows have come, in stretches of the last 256,
512, ... rows. Whatever is found there becomes a new bet if it stands out among what was found
before. Which bets are made depends on the stream and on one part of the reference; the rows that
are held back tell what the bets have won, and nothing else (``wealth``). Old bets that have won
least make room for new ones: what they had is given up.

Bet number j counts with a weight, decided when it is made. Then

* ever: the weights of all bets that will ever be made sum to 1 at most. The sum of weight times
  evidence has mean 1 at most at any moment, and ever reaches 1/alpha with a probability of at most
  alpha.
* change: there is a weight of 1 to spend for each look. The sum has a mean of at most k after k
  looks, and reaches 2/alpha within the first k looks with a probability of at most k alpha / 2, so
  that the mean number of looks until it does is at least 1/alpha. (Shin, Ramdas and Rinaldo call it
  an e-detector. With a known distribution 1/alpha would do. Here all bets share the rows that are
  held back, and whether there is a bet at all depends on what earlier ones won with them.)
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import asdict, replace

from sparker.betting.scan import LOOKS, Ground, ground
from sparker.betting.wealth import (
    N_LEVELS,
    Book,
    Terms,
    log_evidence,
    opened,
    reference_bets,
    stream_bets,
    together,
)
from sparker.betting.witnesses import KINDS, Witness
from sparker.system.archive import ArraySpec
from sparker.system.machine import one_blas_thread

STEP = 256
"""Rows."""

LENGTHS = tuple(STEP * 2**k for k in range(5))
"""Rows of a stretch. One of twice the length is looked at half as often."""

MAX_BETS = 16
"""At a time."""

RARE = 0.1
"""Of all that is found, the share that becomes a bet while nothing changes."""

SUM_OF_WEIGHTS = 2.2
"""More than the sum of 1 / (k log(k)^2) for k = 2, 3, ..., which is 2.1097."""


Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class Bet(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One witness, and the rows that it was asked about."""

    number: Count
    log_weight: float
    witness: Witness
    terms: Terms
    held_back: Annotated[np.ndarray, ArraySpec(f"{N_LEVELS}", kinds="iu", low=0)]
    stream: Annotated[np.ndarray, ArraySpec(f"{N_LEVELS}", kinds="iu", low=0)]

    @property
    def kind(self) -> str:
        """What it looks at."""
        return KINDS[int(self.witness.kind)]


class SavedProcess(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A process as a file has it, without the reference."""

    change: bool
    n_rows: Count
    n_looks: Count
    n_bets: Count
    spare: Annotated[float, msgspec.Meta(ge=0)]
    widths: Annotated[np.ndarray, ArraySpec("widths", low=np.finfo(float).tiny)]
    usual: Annotated[np.ndarray, ArraySpec(f"{len(LENGTHS)} {len(LOOKS)}")]
    recent: Annotated[np.ndarray, ArraySpec("recent d")]
    bets: Annotated[tuple[Bet, ...], msgspec.Meta(max_length=MAX_BETS)]

    def restored(self, reference: np.ndarray, held_back: np.ndarray) -> "Process":
        """Return the process beside the two parts of a reference.

        Raises:
            ValueError: if it was beside another reference.
        """
        n_recent = min(self.n_rows, LENGTHS[-1])
        if len(self.recent) != n_recent or not len(self.widths):
            raise ValueError(f"it has {len(self.recent)} recent rows of {n_recent}")
        if any(bet.held_back.sum() != len(held_back) for bet in self.bets):
            raise ValueError("its bets are on other rows")
        own = asdict(self)
        beside = ground(reference, own.pop("widths"))
        own |= {"usual": self.usual.copy(), "bets": list(self.bets)}
        return Process(beside=beside, held_back=held_back, **own)


class Standing(NamedTuple):
    """After a look."""

    log_wealth: float  # of all bets together
    leading: Bet
    """The one that has won most."""


@dataclass(kw_only=True)
class Process:
    """All bets on a stream, and what was learned of it."""

    beside: Ground
    """The part of the reference that is learned from."""
    held_back: np.ndarray  # (n, d)
    """The other part."""
    change: bool
    """Whether a change at any time is looked for, again and again, or any difference, once."""
    n_rows: int = 0
    n_looks: int = 0
    n_bets: int = 0
    spare: float = 0.0
    """Weight that is not spent yet, where changes are looked for."""
    usual: np.ndarray  # (lengths, looks)
    """Nats that a find must gain on its own stretch to become a bet."""
    recent: np.ndarray  # (n, d)
    """The last rows, as many as the longest stretch."""
    bets: list[Bet] = field(default_factory=list)
    _books: tuple[tuple[int, ...], Book] | None = None  # of these bets, in one

    @classmethod
    def begun(cls, reference: np.ndarray, held_back: np.ndarray, *, change: bool) -> "Process":
        """Before the first row of the stream."""
        beside = ground(reference)
        return cls(
            beside=beside,
            held_back=held_back,
            change=change,
            usual=_usual(beside),
            recent=np.empty((0, held_back.shape[1])),
        )

    def saved(self) -> SavedProcess:
        """Return what a file has of it."""
        names = set(SavedProcess.__struct_fields__) - {"widths", "bets"}
        own = {name: getattr(self, name) for name in names}
        return SavedProcess(widths=self.beside.widths, bets=tuple(self.bets), **own)

    def look(self, points: np.ndarray) -> Standing:  # (N, d)
        """Bet on these rows, learn from them, and say how it stands."""
        with one_blas_thread():
            self.spare += 1
            if not self.bets:  # what can be known beforehand
                self._try(self.beside.tails[0], points[:0])
            while len(points):
                now, points = np.split(points, [STEP - self.n_rows % STEP])
                self.bets = [
                    replace(bet, stream=bet.stream + bet.witness.counts(now)) for bet in self.bets
                ]
                self.recent = np.concatenate([self.recent, now])[-LENGTHS[-1] :]
                self.n_rows += len(now)
                if self.n_rows % STEP == 0:
                    self._learn()
            self.n_looks += 1
            each = self.log_evidence + [bet.log_weight for bet in self.bets]
            return Standing(float(np.logaddexp.reduce(each)), self.bets[int(np.argmax(each))])

    @property
    def log_evidence(self) -> np.ndarray:  # (A,)
        """That of each bet's witness."""
        numbers = tuple(bet.number for bet in self.bets)
        if self._books is None or self._books[0] != numbers:
            books = [opened(bet.terms, bet.held_back) for bet in self.bets]
            self._books = numbers, together(books)
        return log_evidence(self._books[1], np.stack([bet.stream for bet in self.bets]))

    def begin_anew(self) -> None:
        """Forget all bets, and what looks had been granted; what was learned is kept."""
        self.bets, self.spare, self.n_looks = [], 0.0, 0

    def _learn(self) -> None:
        for i, length in enumerate(LENGTHS):
            if self.n_rows % length:
                continue
            stretch = self.recent[-length:]
            for j, look_for in enumerate(LOOKS):
                witness = look_for(stretch, self.beside)
                stands_out = self._try(witness, stretch, self.usual[i, j])
                # Where it goes up as often as so many finds stand out, it stays.
                self.usual[i, j] += 1 - RARE if stands_out else -RARE

    def _try(self, witness: Witness, stretch: np.ndarray, least: float = -1.0) -> bool:
        """Make it a bet if it would have gained that much on a stretch."""
        reference, seen = (witness.counts(rows) for rows in (self.beside.points, stretch))
        bets, gain = stream_bets(witness.values, reference, seen)
        if gain <= least:
            return False
        terms = Terms(
            witness.values, bets, reference_bets(witness.values, reference, len(self.held_back))
        )
        held_back = witness.counts(self.held_back)
        if len(self.bets) == MAX_BETS:
            del self.bets[int(np.argmin(self.log_evidence))]
        self.bets.append(
            Bet(
                number=self.n_bets,
                log_weight=self._log_weight(),
                witness=witness,
                terms=terms,
                held_back=held_back,
                stream=np.zeros_like(held_back),
            )
        )
        self.n_bets += 1
        return True

    def _log_weight(self) -> float:
        """That of the next bet."""
        if self.change:
            self.spare /= 2
            return float(np.log(self.spare))
        k = self.n_bets + 2
        return float(-np.log(SUM_OF_WEIGHTS * k * np.log(k) ** 2))


def _usual(beside: Ground) -> np.ndarray:  # (lengths, looks)
    """What is found in rows of the reference itself, beside the others, for a start."""
    points = np.random.default_rng(0).permutation(beside.points)
    found = np.zeros((len(LENGTHS), len(LOOKS)))
    for i, length in enumerate(LENGTHS):
        stretch, others = np.split(points, [min(length, len(points) // 2)])
        for j, look_for in enumerate(LOOKS):
            witness = look_for(stretch, beside._replace(points=others))
            counts = (witness.counts(rows) for rows in (others, stretch))
            found[i, j] = stream_bets(witness.values, *counts)[1]
    return found
