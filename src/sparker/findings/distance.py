"""How far the data are from generated rows: t for each data row, on rows that were not fitted.

With the log density ratio f of data to generated rows, t per row is

    2 (mean of f over the data - mean of (exp f - 1) over the generated rows),

the paper's statistic divided by the number of data rows. For the true f it is twice the
Kullback-Leibler divergence; for any other f it is less (Nguyen, Wainwright and Jordan, IEEE
Transactions on Information Theory 56, 5847, 2010). On the rows that f was fitted to it is larger by
what was learned by heart. So the rows are split into folds, f is fitted without one of them and
evaluated there. A perfect generator then has about 0, or a little less.

Which width, and how much of f is believed, is chosen for a fold by what served best on the others.

How much the distance scatters is seen in halves. Two halves of the rows share none, so their
distances are independent, each of twice the variance: half of their difference scatters as the
distance of all rows does, or more, since fits to fewer rows do. All is done anew in each half, the
fits included: these scatter, too.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sparker.engine.sample import TwoSample
from sparker.statistics.contract import Prepared, Statistic

STRENGTHS = np.array([0.25, 0.5, 0.75, 1.0])
"""Shares of f to choose from: what was learned from few rows is better not believed in full."""

STREAM = 0xD157
Draw = Callable[[int, np.random.Generator], np.ndarray]
MAX_BYTES = 2**28
"""Of the log-ratios that are kept at a time."""


class Distances(NamedTuple):
    """How far the data are from generated rows."""

    whole: float
    halves: np.ndarray
    """(P, 2) of the halves of the rows, split at random P times; data rows are split in the same
    way beside any generated ones."""


class Rows(NamedTuple):
    """Those of the data, then those of a generator, as they are fitted."""

    points: np.ndarray  # (N, d)
    n_data: int
    weights: np.ndarray  # (N,) those of data rows are 1
    folds: np.ndarray  # (N,)

    @property
    def is_data(self) -> np.ndarray:  # (N,)
        """The first ones."""
        return np.arange(len(self.points)) < self.n_data


def held_out(
    statistic: Statistic,
    prepared: Prepared,
    points: np.ndarray,  # (N_D + N_G, d) the data first, as they are fitted
    n_data: int,
    weights: np.ndarray | None,  # (N_G,)
    *,
    n_folds: int,
    n_splits: int,
    seed: int,
    chunk: int | None,
) -> Distances:
    """Fit without each fold in turn, and evaluate there; of all rows, and of halves of them."""
    n_generated = len(points) - n_data
    own = np.ones(n_generated) if weights is None else weights
    folds = _of_both(seed, 0, n_data, n_generated, lambda n, rng: folds_of(n, n_folds, rng))
    rows = Rows(points, n_data, np.concatenate([np.ones(n_data), own]), folds)
    parts = np.stack([np.ones(len(points), bool), *_halves(rows, n_splits, seed)])  # (1 + 2 P, N)
    fits = n_folds * len(points) * max(1, len(prepared.widths)) * 8
    at_a_time = max(1, MAX_BYTES // fits)
    found = np.concatenate(
        [
            _distances(statistic, prepared, rows, some, seed, chunk)
            for some in np.array_split(parts, -(-len(parts) // at_a_time))
        ]
    )
    return Distances(float(found[0]), found[1:].reshape(n_splits, 2))


def folds_of(n_rows: int, n_folds: int, rng: np.random.Generator) -> np.ndarray:  # (n,)
    """Which fold each row is in: as many rows in each as in the others, or one more."""
    return rng.permutation(np.arange(n_rows) % n_folds)


def _halves(rows: Rows, n_splits: int, seed: int) -> Iterator[np.ndarray]:  # (N,) each
    """One half and the other, of random splits within each fold."""
    n_generated = len(rows.points) - rows.n_data
    for split in range(n_splits):
        turn = _of_both(seed, 1 + split, rows.n_data, n_generated, lambda n, rng: rng.random(n))
        # The data first, so that how many generated rows there are does not matter to them.
        order = np.lexsort((turn, rows.folds, ~rows.is_data))
        first = np.empty(len(order), bool)
        first[order] = np.arange(len(order)) % 2 == 0
        yield from (first, ~first)


def _of_both(seed: int, what: int, n_data: int, n_generated: int, draw: Draw) -> np.ndarray:
    """Drawn for the data, the same beside any generated rows, and for these."""
    each = ((0, n_data), (1, n_generated))
    return np.concatenate(
        [draw(n, np.random.default_rng([seed, STREAM, what, of])) for of, n in each]
    )


def _distances(
    statistic: Statistic,
    prepared: Prepared,
    rows: Rows,
    parts: np.ndarray,  # (Q, N)
    seed: int,
    chunk: int | None,
) -> np.ndarray:  # (Q,)
    """The distance in each part of the rows."""
    n_folds = int(rows.folds.max()) + 1
    fitted = (parts[:, None] & (rows.folds != np.arange(n_folds)[:, None])).reshape(
        -1, len(rows.folds)
    )  # (Q J, N)
    as_data = fitted * rows.is_data
    as_generated = fitted * np.where(rows.is_data, 0, rows.weights)
    scale = as_data.sum(1) / as_generated.sum(1)
    samples = TwoSample(rows.points, as_generated * scale[:, None], as_data)
    f = statistic.log_ratios(prepared, seed, samples, chunk)  # (Q J, N, m)
    every_row = np.arange(len(rows.folds))
    return np.array(
        [  # of each row, what the fit without its fold says
            _chosen(rows, part, one[rows.folds, every_row].astype(np.float64))
            for part, one in zip(parts, f.reshape(len(parts), n_folds, *f.shape[1:]), strict=True)
        ]
    )


def _chosen(rows: Rows, part: np.ndarray, f: np.ndarray) -> float:  # (N,), (N, m)
    """The distance, with width and strength of each fold chosen by the others."""
    t = row_terms(f[:, :, None] * STRENGTHS, rows.n_data)  # (N, m, S)
    chosen = np.empty(len(t))
    for fold in range(int(rows.folds.max()) + 1):
        here = rows.folds == fold
        value = sum(_mean(t, side & part & ~here, rows.weights) for side in _sides(rows))
        width, strength = np.unravel_index(np.argmax(value), t.shape[1:])
        chosen[here] = t[here, width, strength]
    return float(sum(_mean(chosen, side & part, rows.weights) for side in _sides(rows)))


def _sides(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    return rows.is_data, ~rows.is_data


def row_terms(f: np.ndarray, n_data: int) -> np.ndarray:  # (N, ...) -> (N, ...)
    """What rows add to t: 2 f of the data, -2 (exp f - 1) of generated rows."""
    return np.concatenate([2 * f[:n_data], -2 * np.expm1(f[n_data:])])


def _mean(t: np.ndarray, some: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean over some rows, (N, ...) -> (...)."""
    w = some * weights
    return np.tensordot(w, t, axes=1) / w.sum()
