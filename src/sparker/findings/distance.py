"""How far the data are from generated rows: t for each data row, on rows that were not fitted.

With the log density ratio f of data to generated rows, t per row is

    2 (mean of f over the data - mean of (exp f - 1) over the generated rows),

the paper's statistic divided by the number of data rows. For the true f it is twice the
Kullback-Leibler divergence; for any other f it is less (Nguyen, Wainwright and Jordan, IEEE
Transactions on Information Theory 56, 5847, 2010). On the rows that f was fitted to it is larger by
what was learned by heart. So the rows are split into folds, f is fitted without one of them and
evaluated there. A perfect generator then has about 0, or a little less.

Which width, and how much of f is believed, is chosen for a fold by what served best on the others.
"""

from typing import NamedTuple

import numpy as np

from sparker.engine.sample import TwoSample
from sparker.statistics.contract import Prepared, Statistic

STRENGTHS = np.array([0.25, 0.5, 0.75, 1.0])
"""Shares of f to choose from: what was learned from few rows is better not believed in full."""

STREAM = 0xD157


class Terms(NamedTuple):
    """What each row adds, as if it were new: the distance is the sum of their means."""

    data: np.ndarray  # (N_D,)
    generated: np.ndarray  # (N_G,)
    weights: np.ndarray  # (N_G,) of the generated rows, whose mean is 1

    @property
    def distance(self) -> float:
        """So large is t for each data row."""
        return float(self.data.mean() + np.average(self.generated, weights=self.weights))


def folds_of(n_rows: int, n_folds: int, rng: np.random.Generator) -> np.ndarray:  # (n,)
    """Which fold each row is in: as many rows in each as in the others, or one more."""
    return rng.permutation(np.arange(n_rows) % n_folds)


def held_out(
    statistic: Statistic,
    prepared: Prepared,
    points: np.ndarray,  # (N_D + N_G, d) the data first, as they are fitted
    n_data: int,
    weights: np.ndarray | None,  # (N_G,)
    *,
    n_folds: int,
    seed: int,
    chunk: int | None,
) -> Terms:
    """Fit without each fold in turn, and say what its rows add."""
    n_generated = len(points) - n_data
    folds = np.concatenate(  # those of the data are the same beside any generated rows
        [
            folds_of(n_data, n_folds, np.random.default_rng([seed, STREAM, 0])),
            folds_of(n_generated, n_folds, np.random.default_rng([seed, STREAM, 1])),
        ]
    )
    own = np.ones(n_generated) if weights is None else weights / weights.mean()
    as_data = np.concatenate([np.ones(n_data), np.zeros(n_generated)])
    as_generated = np.concatenate([np.zeros(n_data), own])
    fitted = folds != np.arange(n_folds)[:, None]  # (J, N)
    data_weight, generated_weight = as_data * fitted, as_generated * fitted
    scale = data_weight.sum(1) / generated_weight.sum(1)
    samples = TwoSample(points, generated_weight * scale[:, None], data_weight)
    f = statistic.log_ratios(prepared, seed, samples, chunk)  # (J, N, m)
    # Of each row, what the fit without its fold says.
    unseen = f[folds, np.arange(len(points))].astype(np.float64)  # (N, m)
    t = row_terms(unseen[:, :, None] * STRENGTHS, n_data)  # (N, m, S)
    chosen = np.empty(len(points))
    for fold in range(n_folds):
        others, here = folds != fold, folds == fold
        value = _mean(t[:n_data], others[:n_data]) + _mean(t[n_data:], others[n_data:], own)
        width, strength = np.unravel_index(np.argmax(value), value.shape)
        chosen[here] = t[here, width, strength]
    return Terms(chosen[:n_data], chosen[n_data:], own)


def row_terms(f: np.ndarray, n_data: int) -> np.ndarray:  # (N, ...) -> (N, ...)
    """What rows add to t: 2 f of the data, -2 (exp f - 1) of generated rows."""
    return np.concatenate([2 * f[:n_data], -2 * np.expm1(f[n_data:])])


def _mean(t: np.ndarray, some: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The mean over some rows, (N, m, S) -> (m, S)."""
    w = some.astype(float) if weights is None else some * weights
    return np.tensordot(w, t, axes=1) / w.sum()


def resampled(terms: list[Terms], n_resamples: int, seed: int) -> np.ndarray:  # -> (n_resamples, K)
    """The distances of rows drawn anew, with replacement; of all, the same data rows.

    The fits stay as they are. The distance is largest at the true f, so near it changes only to
    second order with f: what fits to other rows would say differs by less than other rows add.
    """
    rng = np.random.default_rng([seed, STREAM, 2])
    data = np.stack([one.data for one in terms], axis=1)  # (N_D, K)
    n_data = len(data)
    found = np.empty((n_resamples, len(terms)))
    for i in range(n_resamples):
        counts = np.bincount(rng.integers(n_data, size=n_data), minlength=n_data)
        found[i] = counts @ data / n_data
        for k, one in enumerate(terms):
            n = len(one.generated)
            weight = np.bincount(rng.integers(n, size=n), minlength=n) * one.weights
            found[i, k] += weight @ one.generated / weight.sum()
    return found
