"""Injection studies: how often would an anomaly of this size be found?

Samples with a fraction of anomalies in their data are tested one by one, each as ``sparker.test``
tests what a user brings, with toys of its own: what is measured is the power that users have.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparker import together
from sparker.calibration.pvalues import clopper_pearson, significance
from sparker.config import Progress, from_keywords
from sparker.detect import test
from sparker.engine.sample import as_points
from sparker.findings.power import Power, PowerStudy
from sparker.intake import pools
from sparker.system.numbers import is_number
from sparker.system.progress import reporter
from sparker.system.versions import versions
from sparker.tables.errors import DataWarning

Source = Callable[[np.random.Generator, int], ArrayLike]

MAX_COUNT = 10**7
"""Of the tests of a study, and of the rows of each."""

OF_TABLES = ("columns", "ignore", "keep", "missing", "text", "images", "embed", "strict")
"""Settings of a test that are about its columns."""


def power_study(
    reference: ArrayLike | Source,
    anomaly: ArrayLike | Source,
    fractions: Sequence[float],
    *,
    n_reference: int,
    n_data: int,
    poisson: bool = False,
    alpha: float = 0.05,
    n_toys: int = 300,
    n_tests: int = 100,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> PowerStudy:
    """How often anomalies are found at alpha when they make up these fractions of the data.

    Every sample draws its reference and its data anew, disjointly, from ``reference``, and
    anomalies from ``anomaly``; each is a pool of rows or a function (rng, n) -> rows. The number of
    anomalies is Poisson around fraction times ``n_data``. They take the place of background rows,
    so that the data keep their number; with ``poisson`` they come on top of a background that
    fluctuates around ``n_data``, and the number of rows is part of the test; the reference then has
    as many rows more or less, so that all samples have the same size.

    Each sample is then tested by ``sparker.test``, whose other settings may follow: ``null``,
    ``statistic``, ``stop`` and so on. That is ``n_tests`` calibrations a fraction; with fewer toys
    (99 for alpha = 0.05, say) or with ``stop=Sequential()`` it is done sooner, and shows what a
    test with these settings would find.

    A fraction of 0 measures the false-positive rate. Intervals count samples as independent: those
    of a pool hardly larger than one of them share most of their rows, and tell of this pool only.
    """
    _check(alpha, fractions, n_toys, settings)
    for name, value in (("n_reference", n_reference), ("n_data", n_data), ("n_tests", n_tests)):
        if not is_number(value, least=1, most=MAX_COUNT, whole=True):
            raise ValueError(
                f"{name} must be a whole number from 1 to {MAX_COUNT:,}, got {value!r}"
            )
    # What is done with columns is decided once, on both pools together; samples are numbers.
    of_tables = {name: settings.pop(name) for name in OF_TABLES if name in settings}
    background, anomalies = _checked(reference, anomaly, n_reference + n_data, of_tables)

    def drawn(number: int, fraction: float) -> tuple[np.ndarray, np.ndarray, int]:
        """Reference, data and a seed, by the number of the sample."""
        rng = np.random.default_rng([seed, number])
        n_anomalies, n_background = int(rng.poisson(fraction * n_data)), n_data
        if poisson:
            n_background = int(rng.poisson(n_data))
        else:
            n_anomalies = min(n_anomalies, n_data)
            n_background -= n_anomalies
        # Reference and data together keep their number: one compiled program serves all samples.
        n_rest = max(1, n_reference + n_data - n_background - n_anomalies)
        rows = _rows(background, rng, n_rest + n_background)
        data = rows[n_rest:]
        if n_anomalies:
            data = np.concatenate([data, _rows(anomalies, rng, n_anomalies)])
        return rows[:n_rest], data, int(rng.integers(2**32))

    settings |= {
        "n_toys": n_toys,
        "expected": float(n_data) if poisson else None,
        "progress": False,
        "explain": False,
    }
    points = []
    n_samples = len(fractions) * n_tests
    with reporter(progress, n_samples) as on_progress:
        for number, fraction in enumerate(fractions):
            p = np.empty(n_tests)
            for i in range(n_tests):
                n_done = number * n_tests + i
                *rows, own_seed = drawn(n_done, fraction)
                with warnings.catch_warnings():
                    # Of rows that were drawn here, nothing suspicious is to be said.
                    warnings.simplefilter("ignore", DataWarning)
                    result = test(*rows, seed=own_seed, **settings)
                p[i] = result.p_value
                on_progress(n_done + 1)
            found = int(np.sum(p <= alpha))
            interval, z = clopper_pearson(found, len(p)), significance(float(np.median(p)))
            points.append(Power(float(fraction), p, found / len(p), interval, z))
    return PowerStudy(
        alpha=alpha,
        points=tuple(points),
        settings={
            "n_reference": n_reference,
            "n_data": n_data,
            "poisson": poisson,
            "n_toys": n_toys,
            "seed": seed,
            **{name: result.settings[name] for name in SAME},
        },
        versions=versions(),
    )


SAME = ("null", "statistic", "preprocess", "combine", "stop")
"""What the settings of all tests have in common."""


def _rows(source: np.ndarray | Source, rng: np.random.Generator, n: int) -> np.ndarray:
    if not callable(source):
        if n > len(source):
            raise ValueError(
                f"a sample needs {n} rows of a pool that has {len(source)}; use a larger pool"
            )
        return source[rng.choice(len(source), n, replace=False)]
    rows = as_points("a simulator's output", source(rng, n))
    if len(rows) != n:
        raise ValueError(f"a simulator was asked for {n} rows and gave shape {rows.shape}")
    return rows


def _check(alpha: float, fractions: Sequence[float], n_toys: int, settings: dict[str, Any]) -> None:
    if not is_number(alpha, above=0, below=1):
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}")
    if not len(fractions) or not all(is_number(one, least=0, most=1) for one in fractions):
        raise ValueError(f"fractions must lie between 0 and 1, got {list(fractions)}")
    if alpha < 1 / (n_toys + 1):
        raise ValueError(
            f"{n_toys} toys resolve p-values down to {1 / (n_toys + 1):.2g} only; "
            f"for alpha = {alpha:g} calibrate with at least {int(np.ceil(1 / alpha)) - 1}"
        )
    together.check({*from_keywords({**settings, "n_toys": n_toys}).features, "power"})


def _checked(
    reference: ArrayLike | Source,
    anomaly: ArrayLike | Source,
    n_rows: int,
    of_tables: dict[str, Any],
) -> tuple[np.ndarray | Source, np.ndarray | Source]:
    given = {"reference": reference, "anomaly": anomaly}
    tables = {name: rows for name, rows in given.items() if not callable(rows)}
    found: dict[str, Any] = {
        **given,
        **pools(tables, from_keywords(of_tables), drawn=len(tables) < len(given)),
    }
    background, anomalies = found.values()
    if not callable(background) and len(background) < n_rows:
        raise ValueError(
            f"reference has {len(background)} rows; samples with n_reference + n_data = {n_rows} "
            "need at least as many"
        )
    return background, anomalies
