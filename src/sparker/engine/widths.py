"""The widths that kernels go through, and those at which the model is read off.

Everything here depends on the pooled points and not on which of them are data, so a calibration
that relabels them stays exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.spatial.distance import pdist, squareform

from sparker.engine.sample import as_points
from sparker.system.numbers import is_number

Annealing = Callable[[float, float, int], np.ndarray]

MAX_STEPS = 10**6
"""Of training; a thousand are many already, and each has its place in memory."""


class Schedule(NamedTuple):
    """The width at each training step, and after which steps the model is read off."""

    sigma: np.ndarray  # (T,) falling
    read_off: np.ndarray  # (m,) rising step indices, the last one T - 1
    explore: np.ndarray = np.empty(0, int)  # (e,) steps before which idle kernels are placed anew

    @property
    def widths(self) -> np.ndarray:  # (m,)
        """The widths at which the model is read off, widest first."""
        return self.sigma[self.read_off]

    def every(self, n_steps: int = 1) -> "Schedule":
        """The same annealing read off every ``n_steps``: a fit's whole trajectory."""
        if n_steps < 1:
            raise ValueError(f"n_steps must be at least 1, got {n_steps}")
        return self._replace(read_off=np.arange(len(self.sigma) - 1, -1, -n_steps)[::-1])


def linear(first: float, last: float, steps: int) -> np.ndarray:  # (T,)
    """Equal decrements, ``sigma_t = sigma_0 - (sigma_0 - sigma_T) t / T``.

    Paper: prints a plus sign, with which the widths would grow.
    """
    rest = np.arange(steps - 1, -1, -1) / steps
    return last + (first - last) * rest  # in this form the last width is exact


def geometric(first: float, last: float, steps: int) -> np.ndarray:  # (T,)
    """Equal ratios, ``sigma_t = sigma_0 (sigma_T / sigma_0)^(t / T)``."""
    return first * (last / first) ** (np.arange(1, steps + 1) / steps)


def distance_range(
    points: ArrayLike, *, max_points: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """The 1 % and 99 % percentiles of the pairwise distances, on a random subset of the points.

    Distances of zero between repeated points are left out: a width of zero makes no sense.
    """
    return _percentiles(_distances(as_points("points", points), max_points, seed))


def width_range(points: ArrayLike, *, max_points: int = 2000, seed: int = 0) -> tuple[float, float]:
    """The paper's first and last width: twice the 99 % and half the 1 % distance percentile."""
    low, high = distance_range(points, max_points=max_points, seed=seed)
    return 2 * high, low / 2


def resolvable_range(
    points: ArrayLike,
    *,
    fewest: int = 100,
    max_points: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """The widest and the narrowest width at which a sample of this size can tell anything.

    The first is the 99 % percentile of the distances: a kernel that wide sees every point. The last
    leaves the median point ``fewest`` others under its kernel (or a tenth of all, if that is less):
    narrower kernels would fit single points. A number of points means the same for any sample size
    and any number of features, which a percentile of the distances does not.
    """
    x = as_points("points", points)
    distances = _distances(x, max_points, seed)
    _, first = _percentiles(distances)
    # In units of the widest. Exponentials of single precision take a fraction of the time.
    exponent = -0.5 * squareform((distances / first).astype(np.float32)) ** 2
    wanted = min(fewest, len(x) / 10) / len(x) * len(exponent)

    def others(log_width: float) -> float:
        under = np.exp(exponent * np.float32(np.exp(-2 * log_width)))
        return float(np.median(under.sum(1)) - 1 - wanted)

    # Down to a millionth. Where points repeat so often that even this is too wide, we stop there.
    narrowest = -np.log(1e6)
    if others(narrowest) >= 0 or others(0.0) <= 0:
        return first, first * 1e-2
    return first, first * float(np.exp(brentq(others, narrowest, 0.0, xtol=1e-3)))


def _distances(x: np.ndarray, max_points: int, seed: int) -> np.ndarray:  # of each pair
    """The distances between all points, or between those of a random subset."""
    if len(x) > max_points:
        x = x[np.random.default_rng(seed).choice(len(x), max_points, replace=False)]
    x = x - x.mean(0, dtype=np.float64)
    if x.shape[1] <= MAX_DIFFERENCES:
        return pdist(x)
    one, other = np.triu_indices(len(x), 1)
    norms = np.einsum("ij,ij->i", x, x)
    squared = norms[one] + norms[other] - 2 * (x @ x.T)[one, other]
    # Only for close neighbours does the difference of large numbers leave too few digits.
    near = np.flatnonzero(squared < 1e-6 * norms.max())
    for some in np.array_split(near, 1 + len(near) // len(x)):
        squared[some] = np.sum((x[one[some]] - x[other[some]]) ** 2, 1)
    return np.sqrt(squared)


MAX_DIFFERENCES = 16
"""With more features than this, distances are faster by one matrix product."""


def _percentiles(distances: np.ndarray) -> tuple[float, float]:
    apart = distances[distances > 0]
    if len(apart) == 0:
        n_points = round((1 + (1 + 8 * len(distances)) ** 0.5) / 2)
        raise ValueError(
            f"all of the {n_points} points looked at are the same, or so near to each other that "
            "the squares of their distances vanish; widths need points that differ"
        )
    low, high = np.quantile(apart, [0.01, 0.99])
    return float(low), float(high)


def stairs(first: float, last: float, *, steps: int = 200, n_widths: int = 10) -> Schedule:
    """Stop at ``n_widths`` log-spaced widths, the first and the last among them.

    At each of them the kernels that have found nothing are placed anew, all are trained for an
    equal share of the steps, and the model is read off.

    >>> plan = stairs(8.0, 1.0, steps=8, n_widths=4)
    >>> plan.sigma.round(1).tolist()
    [8.0, 8.0, 4.0, 4.0, 2.0, 2.0, 1.0, 1.0]
    >>> plan.explore.tolist(), plan.read_off.tolist()
    ([0, 2, 4, 6], [1, 3, 5, 7])
    """
    steps, n_widths = _check_plan(first, last, steps, n_widths)
    ends = _equal_shares(steps, n_widths)
    starts = np.append(0, ends[:-1])
    sigma = np.repeat(np.geomspace(first, last, n_widths), ends - starts)
    return Schedule(sigma, ends - 1, starts)


def schedule(
    first: float,
    last: float,
    *,
    steps: int = 1000,
    n_widths: int = 10,
    annealing: Annealing = linear,
) -> Schedule:
    """Anneal from the first width to the last, read off at ``n_widths`` log-spaced widths.

    Paper: reads off at equally spaced steps of a linear annealing, nine of ten of which lie where
    the kernels are still wider than any local signal. Widths at equal ratios cover every scale
    alike. The first width itself is not read off: there the amplitudes are still zero. Where a
    linear annealing passes several of the last widths in one step, the steps just before the end
    are taken, so that the ``n_widths`` read-offs are always distinct. A constant width is read off
    after equal numbers of steps.

    >>> s = schedule(8.0, 0.5, steps=1000, n_widths=4)
    >>> s.widths.round(2).tolist()
    [4.0, 2.0, 1.0, 0.5]
    """
    steps, n_widths = _check_plan(first, last, steps, n_widths)
    sigma = annealing(first, last, steps)
    if first == last:
        return Schedule(sigma, np.linspace(0, steps, n_widths + 1, dtype=int)[1:] - 1)
    passed = np.searchsorted(-sigma, -geometric(first, last, n_widths))
    latest = np.arange(steps - n_widths, steps)
    # Distinct: after the read-off before, and early enough that the others still have a step.
    order = np.arange(n_widths)
    read_off = np.maximum.accumulate(np.minimum(passed, latest) - order) + order
    read_off[-1] = steps - 1
    return Schedule(sigma, read_off)


def _equal_shares(steps: int, n_widths: int) -> np.ndarray:  # (m,)
    """Where each width's share of the steps ends."""
    return np.arange(1, n_widths + 1) * steps // n_widths


def _check_plan(first: float, last: float, steps: int, n_widths: int) -> tuple[int, int]:
    if not 0 < last <= first < np.inf:
        raise ValueError(f"widths must fall from first to last > 0, got {first} to {last}")
    whole = is_number(steps, whole=True, most=MAX_STEPS) and is_number(n_widths, whole=True)
    if not whole or not 1 <= n_widths <= steps:
        raise ValueError(
            f"n_widths and steps must be whole numbers, 1 <= n_widths <= steps <= {MAX_STEPS:,}, "
            f"got n_widths {n_widths} and steps {steps}"
        )
    return int(steps), int(n_widths)


@dataclass(frozen=True, kw_only=True)
class WidthConfig:
    """How to make a schedule for any points: the range of widths, and the way through it."""

    steps: int = 200
    n_widths: int = 10
    annealing: Annealing | None = None
    """How the width shrinks at every step, with kernels that only training moves (``schedule``). If
    None, the width stops at ``n_widths`` values, and idle kernels are placed anew at each
    (``stairs``)."""
    evenly: bool = False
    """Whether an annealing is read off after equal numbers of steps, as in the paper, instead of at
    equal ratios of the width."""
    span: Callable[[np.ndarray], tuple[float, float]] = resolvable_range
    """Chooses the first and the last width from the points, without knowing which are data."""
    first: float | None = None
    """The first width, of points as they are fitted (decorrelated, as a rule), if not span's."""
    last: float | None = None
    """The last width, likewise."""

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            value = getattr(self, name)
            if value is not None and not is_number(value, above=0):
                raise ValueError(f"{name} must be a positive width, got {value!r}")
        if self.first is not None and self.last is not None and self.first < self.last:
            raise ValueError(
                f"widths must fall from first to last > 0, got {self.first} to {self.last}"
            )
        evenly: object = self.evenly
        if not isinstance(evenly, bool):
            raise ValueError(f"evenly must be True or False, got {evenly!r:.40}")
        _check_plan(1.0, 0.5, self.steps, self.n_widths)

    def schedule(self, points: ArrayLike) -> Schedule:
        """The schedule for these points."""
        first, last = self.first, self.last
        if first is None or last is None:
            widest, narrowest = self.span(np.asarray(points))
            first, last = first or widest, last or narrowest
        if self.annealing is None:
            return stairs(first, last, steps=self.steps, n_widths=self.n_widths)
        plan = schedule(
            first, last, steps=self.steps, n_widths=self.n_widths, annealing=self.annealing
        )
        if not self.evenly:
            return plan
        return plan._replace(read_off=_equal_shares(self.steps, self.n_widths) - 1)


def check_schedule(plan: Schedule) -> None:
    """Refuse a schedule, made by hand perhaps, that training cannot follow."""
    sigma, read_off, explore = plan
    if (
        len(sigma) == 0
        or not np.all((sigma > 0) & np.isfinite(sigma))
        or np.any(np.diff(sigma) > 0)
    ):
        raise ValueError("sigma must be positive widths that never grow from step to step")
    rising = len(read_off) > 0 and np.all(np.diff(read_off) > 0)
    if not rising or read_off[0] < 0 or read_off[-1] != len(sigma) - 1:
        raise ValueError(
            f"read_off must be rising step indices that end with the last, {len(sigma) - 1}, got "
            f"{np.asarray(read_off).tolist()}"
        )
    if len(explore) and (
        explore[0] != 0 or explore[-1] >= len(sigma) or np.any(np.diff(explore) < 1)
    ):
        raise ValueError(
            f"explore must be rising step indices from 0 on, below {len(sigma)}, got "
            f"{np.asarray(explore).tolist()}"
        )
