"""Large tables of anomaly-free experiments, of which each row's true p-value is known.

All rows of a table are alike. So a row drawn from it is an observed sample, others are its toys,
and its rank among all rows is the p-value that infinitely many toys would give, as nearly as tens
of thousands can tell.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import rankdata

import sparker
from sparker.calibration.pvalues import graded_score
from sparker.calibration.tail import smooth_score
from sparker.statistics import KernelStatistic

RULE = sparker.minimum
N_COLUMNS = 40
Make = Callable[[int], np.ndarray]  # number of toys -> (toys + 1, columns)


def exponential(rng: np.random.Generator, n: int) -> np.ndarray:  # (n, 1)
    """One dimension."""
    return rng.exponential(size=(n, 1))


def normal(d: int, rng: np.random.Generator, n: int) -> np.ndarray:  # (n, d)
    """Independent columns."""
    return rng.normal(size=(n, d))


def kernels(draw: Callable[..., np.ndarray], n_reference: int, n_data: int, n: int) -> np.ndarray:
    """What the kernels alone read off, forty columns."""
    rng = np.random.default_rng(0)
    reference, data = draw(rng, n_reference), draw(rng, n_data)
    found = sparker.test(
        reference, data, n_toys=n, statistic=KernelStatistic(), progress=False, explain=False
    )
    return np.concatenate([found.statistics[None], found.null_statistics])


def correlated(rng: np.random.Generator, n: int) -> np.ndarray:  # (n + 1, columns)
    """Normal columns, each pair correlated by a half."""
    common, own = rng.normal(size=(n + 1, 1)), rng.normal(size=(n + 1, N_COLUMNS))
    return (common + own) / 2**0.5


def independent(n: int) -> np.ndarray:
    """Columns that have nothing in common, the worst case for the best of them."""
    return np.random.default_rng(1).normal(size=(n + 1, N_COLUMNS))


def heavy(freedom: int, n: int) -> np.ndarray:
    """Every fourth column Student's t, the others normal."""
    rng = np.random.default_rng(2)
    t = correlated(rng, n)
    t[:, ::4] = rng.standard_t(freedom, size=t[:, ::4].shape)
    return t


def outlying(n: int) -> np.ndarray:
    """One row in a hundred is six times as large as it would be."""
    rng = np.random.default_rng(3)
    t = correlated(rng, n) ** 2
    t[rng.random(len(t)) < 0.01] *= 6
    return t


KERNELS: dict[str, Make] = {
    "kernels, exponential 1-D, 300 + 60 rows": partial(kernels, exponential, 300, 60),
    "kernels, normal 2-D, 600 + 120 rows": partial(kernels, partial(normal, 2), 600, 120),
    "kernels, normal 10-D, 400 + 80 rows": partial(kernels, partial(normal, 10), 400, 80),
}
OTHERS: dict[str, Make] = {
    "40 independent normal columns": independent,
    "10 of 40 columns t with 2 degrees of freedom": partial(heavy, 2),
    "10 of 40 columns t with 3 degrees of freedom": partial(heavy, 3),
    "10 of 40 columns t with 4 degrees of freedom": partial(heavy, 4),
    "1 % outlying toys": outlying,
}
QUICK = (next(iter(KERNELS)), "1 % outlying toys")


@dataclass
class Known:
    """A large table, and the p-value of each of its rows among all of them."""

    t: np.ndarray  # (n, m)
    p: np.ndarray  # (n,) by the test's ranks
    p_smooth: np.ndarray  # (n,) by the score whose tail is fitted

    @classmethod
    def of(cls, t: np.ndarray) -> "Known":
        """Rank all rows."""
        return cls(t, _ranks(graded_score(RULE, t)), _ranks(smooth_score(RULE, t)))

    def row_at(self, p: float, of: np.ndarray) -> int:
        """The row whose p-value, by one of the two scores, is the next to this one."""
        return int(np.argmin(np.abs(of - p)))

    def table(self, rng: np.random.Generator, row: int, n_toys: int) -> np.ndarray:
        """This row as the observed one, and toys drawn from the others."""
        others = rng.choice(len(self.t) - 1, n_toys, replace=False)
        return self.t[np.append(row, others + (others >= row))]


def _ranks(score: np.ndarray) -> np.ndarray:
    return rankdata(-score, method="max") / len(score)
