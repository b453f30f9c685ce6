"""Injection studies: how often would an anomaly of this size be found?

Anomaly-free toys calibrate the statistic once; then toys with a fraction of anomalies in their data
are each ranked among them, as an observed sample would be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sparker import calibrate
from sparker.calibrate import Plan
from sparker.combine import Combination, minimum
from sparker.design import FitConfig
from sparker.detect import AnyStatistic, Progress
from sparker.nulls import Arm, Draw, Fitted, most_rows, own_rows, relabelled
from sparker.preprocess import Preprocess, decorrelate
from sparker.progress import reporter
from sparker.pvalues import CONFIDENCE, Significance, clopper_pearson, rank, significance
from sparker.record import plain, versions
from sparker.sample import TwoSample, as_alike, as_points, pad, stack
from sparker.statistic import as_statistic
from sparker.widths import WidthConfig

Source = Callable[[np.random.Generator, int], ArrayLike]


class Power(NamedTuple):
    """The fate of the toys with one fraction of anomalies."""

    fraction: float
    p_values: np.ndarray  # (n_tests,)
    power: float
    """Share of the toys found at alpha; at a fraction of 0 this is the false-positive rate."""
    interval: tuple[float, float]
    """Its exact 95 % interval."""
    median_significance: Significance


@dataclass(frozen=True, kw_only=True, eq=False)
class PowerStudy:
    """Power against the fraction of anomalies, at one alpha."""

    alpha: float
    points: tuple[Power, ...]
    null_t: np.ndarray  # (B, m)
    settings: dict[str, Any]
    versions: dict[str, str]

    def summary(self) -> str:
        """A line for each fraction."""
        lines = [f"power at alpha = {self.alpha:g}, {len(self.null_t)} calibration toys"]
        for point in self.points:
            low, high = point.interval
            lines.append(
                f"fraction {point.fraction:<8.4g} power {point.power:.3f} "
                f"({low:.3f} to {high:.3f} of {len(point.p_values)} toys), median significance "
                f"{point.median_significance}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The study as JSON knows it."""
        return {
            "alpha": self.alpha,
            "points": [
                {
                    "fraction": point.fraction,
                    "power": point.power,
                    "interval": {
                        "low": point.interval[0],
                        "high": point.interval[1],
                        "confidence": CONFIDENCE,
                    },
                    "n_tests": len(point.p_values),
                    "median_significance": point.median_significance.plain,
                    "median_significance_is_lower_bound": point.median_significance.at_least,
                    "p_values": point.p_values.tolist(),
                }
                for point in self.points
            ],
            "settings": self.settings,
            "versions": self.versions,
        }


def power_study(
    reference: ArrayLike | Source,
    anomaly: ArrayLike | Source,
    fractions: Sequence[float],
    *,
    n_reference: int,
    n_data: int,
    poisson: bool = False,
    alpha: float = 0.05,
    n_calibration: int = 300,
    n_tests: int = 100,
    seed: int = 0,
    config: FitConfig | None = None,
    widths: WidthConfig | None = None,
    preprocess: Preprocess = decorrelate,
    combine: Combination = minimum,
    statistic: AnyStatistic | None = None,
    progress: Progress | None = None,
    chunk: int | None = None,
) -> PowerStudy:
    """How often anomalies are found at alpha when they make up these fractions of the data.

    Every toy draws its reference and its data anew, disjointly, from ``reference``, and anomalies
    from ``anomaly``; each is a pool of rows or a function (rng, n) -> rows. The number of
    anomalies is Poisson around fraction times ``n_data``. They take the place of background rows,
    so that the data keep their number; with ``poisson`` they come on top of a background that
    fluctuates around ``n_data``, and the number of rows is part of the test.

    A fraction of 0 measures the false-positive rate.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")
    if not len(fractions) or any(not 0 <= fraction <= 1 for fraction in fractions):
        raise ValueError(f"fractions must lie between 0 and 1, got {list(fractions)}")
    if alpha < 1 / (n_calibration + 1):
        raise ValueError(
            f"{n_calibration} toys resolve p-values down to {1 / (n_calibration + 1):.2g} only; "
            f"for alpha = {alpha:g} calibrate with at least {int(np.ceil(1 / alpha)) - 1}"
        )
    for name, value in (("n_reference", n_reference), ("n_data", n_data), ("n_tests", n_tests)):
        if int(value) != value or value < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, got {value}")
    injection = _Injection(
        *_checked(reference, anomaly, n_reference + n_data), n_reference, n_data, poisson, seed,
        np.concatenate([np.zeros(n_calibration), np.repeat(np.asarray(fractions, float), n_tests)]),
    )  # fmt: skip
    chosen = as_statistic(statistic, config or FitConfig(), widths or WidthConfig())
    toys = calibrate.ready(injection.arm(), preprocess, chosen)
    n_toys = len(injection.fraction)
    with reporter(progress, n_toys) as tell:
        numbers = range(1, n_toys + 1)  # none of them is the observed one
        table = calibrate.run(Plan(toys, toys), numbers, seed=seed, chunk=chunk, tell=tell)
    t = table.first(n_toys + 1, start=1).readings
    null, tested = t[:n_calibration], np.split(t[n_calibration:], len(fractions))
    settings = {
        "n_reference": n_reference,
        "n_data": n_data,
        "poisson": poisson,
        "n_calibration": n_calibration,
        "seed": seed,
        "statistic": plain(toys.statistic.settings),
        "preprocess": plain(preprocess),
        "combine": plain(combine),
    }
    return PowerStudy(
        alpha=alpha,
        points=tuple(
            _power(fraction, rows, null, alpha, combine)
            for fraction, rows in zip(fractions, tested, strict=True)
        ),
        null_t=null,
        settings=settings,
        versions=versions(),
    )


def _power(
    fraction: float, rows: np.ndarray, null: np.ndarray, alpha: float, combine: Combination
) -> Power:
    ranked = [rank(np.concatenate([row[None], null]), combine) for row in rows]
    p = np.array([one.p_value for one in ranked])
    found = int(np.sum(p <= alpha))
    middle = float(np.median(p))
    at_floor = middle <= 1 / (len(null) + 1)
    return Power(
        float(fraction),
        p,
        found / len(p),
        clopper_pearson(found, len(p)),
        significance(middle, above=0 if at_floor else 1),
    )


class _Injection(NamedTuple):
    """Toys with background and anomalies, each toy's fraction by its number."""

    background: np.ndarray | Source
    anomaly: np.ndarray | Source
    n_reference: int
    n_data: int
    poisson: bool
    seed: int
    fraction: np.ndarray  # (toys,) from number 1 on

    def arm(self) -> Arm:
        basis = self.background
        if callable(basis):
            rng = np.random.default_rng([self.seed, 2**32])
            basis = np.asarray(basis(rng, self.n_reference + self.n_data))
        return Arm(basis, self.draw)

    def draw(self, transform: Fitted) -> Draw:
        expected = self.n_data * (1 + self.fraction.max()) if self.poisson else None
        most = self.n_reference + most_rows(self.n_data, expected)
        if callable(self.background) or callable(self.anomaly):
            return lambda numbers: stack([pad(self._own(i, transform), most) for i in numbers])
        n_pool = len(self.background) + len(self.anomaly)
        points = transform(np.concatenate([self.background, self.anomaly]))

        def shared(numbers: Sequence[int]) -> TwoSample:
            return relabelled(points, (self._weights(i, n_pool) for i in numbers))

        # Copies of the rows in use cost less than passing over twice as many that are not.
        if n_pool <= 2 * most:
            return shared
        return lambda numbers: own_rows(shared(numbers), most)

    def _counts(self, rng: np.random.Generator, number: int) -> tuple[int, int]:
        """How many background and anomalous rows the data of a toy have."""
        n_anomalies = int(rng.poisson(self.fraction[number - 1] * self.n_data))
        if self.poisson:
            return int(rng.poisson(self.n_data)), n_anomalies
        n_anomalies = min(n_anomalies, self.n_data)
        return self.n_data - n_anomalies, n_anomalies

    def _weights(self, number: int, n_pool: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([self.seed, number])
        n_background, n_anomalies = self._counts(rng, number)
        n_pool_background = len(self.background)  # type: ignore[arg-type]
        chosen = rng.permutation(n_pool_background)[: self.n_reference + n_background]
        reference, data = np.zeros(n_pool), np.zeros(n_pool)
        reference[chosen[: self.n_reference]] = self._expected(n_background + n_anomalies)
        reference /= self.n_reference
        data[chosen[self.n_reference :]] = 1
        n_anomaly_pool = n_pool - n_pool_background
        data[n_pool_background + _few_of(rng, n_anomaly_pool, n_anomalies)] = 1
        return reference, data

    def _own(self, number: int, transform: Fitted) -> TwoSample:
        rng = np.random.default_rng([self.seed, number])
        n_background, n_anomalies = self._counts(rng, number)
        background = _rows(self.background, rng, self.n_reference + n_background)
        anomalies = _rows(self.anomaly, rng, n_anomalies)
        parts = [background, *([anomalies] if n_anomalies else [])]
        points = transform(np.concatenate(parts))
        n_data = n_background + n_anomalies
        w_reference = self._expected(n_data) / self.n_reference
        return TwoSample(
            points,
            np.repeat([w_reference, 0.0], [self.n_reference, n_data]),
            np.repeat([0.0, 1.0], [self.n_reference, n_data]),
        )

    def _expected(self, n_data: int) -> float:
        return self.n_data if self.poisson else n_data


def _rows(source: np.ndarray | Source, rng: np.random.Generator, n: int) -> np.ndarray:
    if not callable(source):
        return source[_few_of(rng, len(source), n)]
    if n == 0:
        return np.empty((0, 0))
    rows = as_points("a simulator's output", source(rng, n))
    if len(rows) != n:
        raise ValueError(f"a simulator was asked for {n} rows and gave shape {rows.shape}")
    return rows


def _few_of(rng: np.random.Generator, n_all: int, n: int) -> np.ndarray:
    if n > n_all:
        raise ValueError(f"a toy needs {n} rows of a pool that has {n_all}; use a larger pool")
    return rng.choice(n_all, n, replace=False)


def _checked(
    reference: ArrayLike | Source, anomaly: ArrayLike | Source, n_rows: int
) -> tuple[np.ndarray | Source, np.ndarray | Source]:
    background = reference if callable(reference) else as_points("reference", reference)
    anomalies = anomaly if callable(anomaly) else as_points("anomaly", anomaly)
    if not callable(reference) and not callable(anomaly):
        background, anomalies = as_alike("reference", reference, "anomaly", anomaly)
    if not callable(background) and len(background) < n_rows:
        raise ValueError(
            f"reference has {len(background)} rows; toys with n_reference + n_data = {n_rows} "
            "need at least as many"
        )
    return background, anomalies
