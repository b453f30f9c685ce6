"""What is not known exactly of the reference, as the user says it and as curves over rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sparker.nulls.density_ratio import DensityRatio, Weighted, density_ratio, mixture
from sparker.system.numbers import is_number

MAX_SLOPE = 1.5
"""The largest change of a log density by one step of a parameter. Where an edge moves, a density
falls to nothing within one step, but not by the same factor in every part of it: half a step takes
away half of the rows near the edge."""


MAX_OVER = 0.01
"""The share of the reference whose density may change by more."""


@dataclass(frozen=True, eq=False)
class Systematic:
    """A systematic uncertainty of the reference: a nuisance parameter, 0 at the nominal reference.

    Either ``up`` and ``down`` say what the reference is at +1 and at -1: other rows (an array of
    two dimensions, a data frame, the path of a file), or other weights of the same rows (one a row,
    or the name of a column of the reference). With ``up`` alone, -1 is its mirror image. Or
    ``function(rows, nu)`` gives the reference rows, as they were given, at any value ``nu``.
    ``paired`` says whether row i of up and of down is row i of the reference, moved: the same
    event, computed again. Rows are then moved along straight lines, as by a function. If it is left
    out, rows that agree one by one are taken for paired, and a note says so. Other rows tell by
    which weights the reference becomes up and down; they are refused where an edge moves, which no
    weights can do.

    ``prior`` is the standard deviation of the parameter as other measurements know it: 1 where up
    and down are one standard deviation away. ``sparker.test(..., at={name: nu})`` fixes it.

    >>> Systematic("energy scale", function=lambda rows, nu: rows * (1 + 0.01 * nu)).prior
    1.0
    """

    name: str
    up: Any = None
    down: Any = None
    function: Callable[[Any, float], Any] | None = None
    prior: float = 1.0
    paired: bool | None = None

    @property
    def by_weights(self) -> bool:
        """Whether up and down are weights of the reference rows."""
        if isinstance(self.up, str):
            return True
        table = any(hasattr(self.up, name) for name in ("__fspath__", "columns", "keys", "points"))
        return not table and np.ndim(self.up) == 1

    def problems(self) -> list[str]:
        """All that is wrong with it."""
        name: Any = self.name
        if not isinstance(name, str) or not name:
            return [f"a systematic must have a name, got {name!r}"]
        found = []
        if (self.up is None) == (self.function is None):
            found.append(
                f"systematic {name} must have either up (and down), rows or weights, or a function "
                "of rows and of the parameter"
            )
        function: Any = self.function
        if function is not None and not callable(function):
            found.append(f"the function of systematic {name} must be one of (rows, nu)")
        if self.down is not None and self.up is None:
            found.append(f"systematic {name} has down without up; one alone must be up")
        elif self.up is not None and self.down is not None:
            mirrored = Systematic(name, up=self.down)
            if self.by_weights != mirrored.by_weights:
                found.append(f"up and down of systematic {name} must both be rows or both weights")
        if self.paired and (self.up is None or self.by_weights):
            found.append(
                f"systematic {name} is paired, but up is not rows; only rows can be those of the "
                "reference, moved"
            )
        if not is_number(self.prior, above=0):
            found.append(f"the prior of systematic {name} must be positive, got {self.prior!r}")
        return found


class Curves(NamedTuple):
    """What a parameter does to the log density of each row, see ``Tilt``."""

    slope: np.ndarray  # (N,)
    bend: np.ndarray  # (N,)
    motion: np.ndarray | None = None  # (N, d) how far a step of one moves a row, if it does


class Place(NamedTuple):
    """Where curves are wanted: the reference at some values of all parameters, and the data."""

    values: dict[str, float]
    steps: dict[str, float]  # how far away to look for what each parameter does
    reference: Weighted
    rows: np.ndarray  # (N, d) of the reference as it is there, then of the data
    folds: np.ndarray  # (N,)
    moved: Callable[[dict[str, float]], np.ndarray] | None
    seed: int


@dataclass(frozen=True, eq=False)
class Variation(ABC):
    """A systematic in the numbers of the test."""

    name: str
    prior: float
    moves: ClassVar[bool] = False
    """Whether rows themselves change; curves then hold around a place, not around nominal."""

    @abstractmethod
    def curves(self, place: Place) -> Curves:
        """What it does to each row."""


@dataclass(frozen=True, eq=False)
class Scaled(Variation):
    """The expected number of data rows is known to this relative precision (log-normal)."""

    width: float

    def curves(self, place: Place) -> Curves:
        """The same for all rows."""
        return Curves(np.full(len(place.rows), self.width), np.zeros(len(place.rows)))


@dataclass(frozen=True, eq=False)
class Sampled(Variation):
    """Weighted rows at +1 and, if given, at -1, beside those at 0."""

    nominal: Weighted
    up: Weighted
    down: Weighted | None
    rates: tuple[float, float]
    """The logarithm of how many more rows are expected at +1 and at -1 than at 0."""
    seed: int

    @cached_property
    def ratios(self) -> tuple[DensityRatio, DensityRatio | None]:
        """Up beside down and both beside nominal; or up beside nominal, where there is no down."""
        if self.down is None:
            return density_ratio(self.up, self.nominal, self.seed, known=True), None
        return (
            density_ratio(self.up, self.down, self.seed, known=True),
            density_ratio(mixture(self.up, self.down), self.nominal, self.seed),
        )

    @property
    def ends(self) -> dict[str, Weighted]:
        """Up and, if given, down."""
        return {"up": self.up} if self.down is None else {"up": self.up, "down": self.down}

    @property
    def fits(self) -> bool:
        """Whether a classifier cannot tell the weighted rows of the reference from up and down."""
        made = (Weighted(self.nominal.rows, weights) for weights in self.at_ends())
        both = zip(self.ends.values(), made, strict=False)
        return not any(density_ratio(end, own, self.seed).gain for end, own in both)

    def caution(self) -> str | None:
        """Where rows of the reference, weighted, cannot be what up or down is."""
        first, _ = self.ratios
        own = first(self.nominal.rows, np.arange(len(self.nominal.rows)))
        over = np.abs(own) > MAX_SLOPE * (1 if self.down is None else 2)
        share = self.nominal.own[over].sum() / self.nominal.own.sum()
        if share <= MAX_OVER:
            return None
        return (
            f"systematic {self.name} changes the density of {100 * share:.0f} % of the reference "
            "by more than a factor of four, which weights of the reference rows cannot follow: p "
            "is too small"
        )

    def at_ends(self) -> tuple[np.ndarray, np.ndarray]:  # (N_R,), (N_R,)
        """The weights of the nominal rows at +1 and at -1."""
        own = self._unscaled(self.nominal.rows, np.arange(len(self.nominal.rows)))
        up, down = (sign * own.slope + own.bend / 2 for sign in (1, -1))
        return self.nominal.own * np.exp(up), self.nominal.own * np.exp(down)

    def curves(self, place: Place) -> Curves:
        """From the learned ratios."""
        found = self._unscaled(place.rows, place.folds)
        # A constant that makes the nominal reference have the rates at +1 and -1.
        up, down = (
            rate - np.log(weights.sum() / self.nominal.own.sum())
            for weights, rate in zip(self.at_ends(), self.rates, strict=True)
        )
        return Curves(found.slope + (up - down) / 2, found.bend + (up + down))

    def _unscaled(self, rows: np.ndarray, folds: np.ndarray) -> Curves:
        first, second = self.ratios
        if self.down is None:
            slope = np.clip(first(rows, folds), -MAX_SLOPE, MAX_SLOPE)
            return Curves(slope, np.zeros(len(rows)))
        slope = np.clip(first(rows, folds) / 2, -MAX_SLOPE, MAX_SLOPE)
        assert second is not None
        # The mean of up and down, beside nominal, is cosh(slope) exp(bend / 2).
        log_cosh = np.logaddexp(slope, -slope) - np.log(2)
        bend = 2 * (second(rows, folds) - log_cosh)
        return Curves(slope, np.clip(bend, -2 * MAX_SLOPE, 2 * MAX_SLOPE))


@dataclass(frozen=True, eq=False)
class Moved(Variation):
    """Rows that a function moves: the reference itself is moved to a place, and tilted there."""

    moves: ClassVar[bool] = True

    def curves(self, place: Place) -> Curves:
        """From rows moved a little further, and a little less."""
        assert place.moved is not None
        step, at, n = place.steps[self.name], place.values[self.name], len(place.reference.rows)
        up, down = (place.moved({**place.values, self.name: at + sign * step}) for sign in (1, -1))
        weights, own = place.reference.weights, place.reference.own / place.reference.own.sum()
        ends = Weighted(up, weights), Weighted(down, weights)
        learned = density_ratio(*ends, place.seed, gain=0.0, known=True)

        def slope(rows: np.ndarray, folds: np.ndarray) -> np.ndarray:  # (N, d), (N,) -> (N,)
            return np.clip(learned(rows, folds) / 2, -MAX_SLOPE, MAX_SLOPE) / step

        found = slope(place.rows, place.folds)
        # A mean moves with the parameter by its covariance with the true slope. If the learned one
        # is not that, so much of it is what the rows themselves say of the parameter.
        mean = own @ found[:n]
        spread = own @ (found[:n] - mean) ** 2
        response = own @ (slope(up, np.arange(n)) - slope(down, np.arange(n))) / (2 * step)
        found = (found - mean) * (max(0.0, response) / spread if spread > 0 else 0.0)
        motion = ((up - down) / (2 * step)).astype(float)
        near = nearest(place.reference.rows, place.rows[n:])
        return Curves(found, np.zeros(len(found)), np.concatenate([motion, motion[near]]))


def nearest(rows: np.ndarray, others: np.ndarray) -> np.ndarray:  # (N, d), (M, d) -> (M,)
    """Which of the rows is closest to each of the others, in spreads of the columns."""
    from sklearn.neighbors import NearestNeighbors

    spread = rows.std(0, np.float64)
    scale = np.where(spread > 0, spread, 1)
    known = NearestNeighbors(n_neighbors=1).fit(rows / scale)
    return np.asarray(known.kneighbors(others / scale, return_distance=False))[:, 0]
