"""The logarithm of the ratio of two densities, learned from weighted rows by a classifier.

A classifier that tells rows of one sample from rows of another knows the ratio of their densities.
Three are tried: logistic regression in the columns, which is exact for Gaussians that shift and for
exponential spectra; in their squares and products, for Gaussians that widen; and boosted trees,
which follow anything, edges included. What has more to learn also learns more of the chance in the
rows, and a test would see that. So it must predict rows that it has not seen clearly better.

No row is looked at by a model that was trained with it: rows are in folds, and each is given to the
model of its fold, which saw all folds but this one. Otherwise rows of the reference, which models
are trained on, would differ from those of the data, which are not.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

N_FOLDS = 4

GAIN = 3.0
"""By so much, in log likelihood of rows that it has not seen, a model must be better than a simpler
one, or than to say that there is no difference."""

MAX_SQUARED = 20
"""With more columns their squares and products are too many; the columns themselves are taken."""

MAX_TRAINED = 100_000
"""Rows of each sample that models are trained on; more tell little more."""

FAR = 6.0
"""Values further out than so many standard deviations are taken to be there, before squaring."""

MAX_LOG = 8.0
"""The largest log density ratio: e^8 is beyond what so many rows can tell."""


class Weighted(NamedTuple):
    """Rows of one sample."""

    rows: np.ndarray  # (N, d)
    weights: np.ndarray | None = None  # (N,)
    folds: np.ndarray | None = None  # (N,) by the number of the row, if left out

    @property
    def own(self) -> np.ndarray:  # (N,)
        """The weights, ones if there are none."""
        return np.ones(len(self.rows)) if self.weights is None else self.weights


class DensityRatio(NamedTuple):
    """log p(x) / q(x) up to a constant, one model for each fold."""

    models: tuple[Any, ...]
    gain: float
    """In log likelihood of rows that were not seen, over saying that there is no difference; for
    each row."""

    def __call__(self, rows: np.ndarray, folds: np.ndarray) -> np.ndarray:  # (N, d), (N,) -> (N,)
        """The log ratio at each row, as the model says that has not seen its fold."""
        found = np.zeros(len(rows))
        for fold, model in enumerate(self.models):
            here = folds % len(self.models) == fold
            if here.any():
                found[here] = _log_odds(model, rows[here])
        return np.clip(found, -MAX_LOG, MAX_LOG)


def density_ratio(
    p: Weighted, q: Weighted, seed: int, gain: float = GAIN, *, known: bool = False
) -> DensityRatio:
    """Learn log p(x) / q(x); row i of both samples is in fold i mod ``N_FOLDS``.

    So rows that are the same event, moved or weighted otherwise, are in the same fold. ``gain`` is
    how much better a model must be than simpler ones, and the simplest than none, unless it is
    ``known`` that there is something to learn.
    """
    parts = [_some(one, seed) for one in (p, q)]
    rows = np.concatenate([rows for rows, _, _ in parts])
    weights = np.concatenate([own / own.sum() * len(own) for _, own, _ in parts])
    folds = np.concatenate([folds for _, _, folds in parts])
    is_p = np.repeat([True, False], [len(rows) for rows, _, _ in parts])
    # Both samples are to weigh the same: the odds are then the ratio of the densities.
    weights[is_p] *= weights[~is_p].sum() / weights[is_p].sum()
    weights /= weights.mean()
    best: tuple[Any, ...] = ()
    no_difference = float(weights.sum()) * np.log(2)
    lowest = np.inf if known else no_difference
    degrees = (1, 2) if rows.shape[1] <= MAX_SQUARED else (1,)
    makes: list[Callable[[int, int], Any]] = [partial(_smooth, degree) for degree in degrees]
    for make in (*makes, _trees):
        models, loss = [], 0.0
        for fold in range(N_FOLDS):
            unseen = folds == fold
            model = make(int((~unseen).sum()), seed)
            own = {}
            if np.ptp(weights) > 0:  # trees take ten times as long with weights
                own[f"{model.steps[-1][0]}__sample_weight"] = weights[~unseen]
            model.fit(rows[~unseen], is_p[~unseen], **own)
            log_odds = _log_odds(model, rows[unseen])
            wrong = np.where(is_p[unseen], -log_odds, log_odds)
            loss += float(np.sum(weights[unseen] * np.logaddexp(0, wrong)))
            models.append(model)
        if loss < lowest - gain:
            best, lowest = tuple(models), loss
    return DensityRatio(best, (no_difference - lowest) / len(rows))


def mixture(p: Weighted, q: Weighted) -> Weighted:
    """Half of each density."""
    return Weighted(
        np.concatenate([p.rows, q.rows]),
        np.concatenate([one.own / one.own.sum() for one in (p, q)]),
        np.concatenate([np.arange(len(one.rows)) for one in (p, q)]),
    )


def _some(sample: Weighted, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to train on, their weights and folds; not those of no weight."""
    folds = np.arange(len(sample.rows)) if sample.folds is None else sample.folds
    chosen = np.flatnonzero(sample.own > 0)
    if len(chosen) > MAX_TRAINED:
        chosen = np.random.default_rng(seed).choice(chosen, MAX_TRAINED, replace=False)
    return sample.rows[chosen].astype(float), sample.own[chosen], folds[chosen] % N_FOLDS


def _log_odds(model: Any, rows: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
    return np.asarray(model.decision_function(rows.astype(float)), float)


def _smooth(degree: int, n_rows: int, seed: int) -> Any:
    # Imported when it is needed: it takes long, and most tests do without.
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

    near = FunctionTransformer(np.clip, kw_args={"a_min": -FAR, "a_max": FAR})
    squares = PolynomialFeatures(degree, include_bias=False)
    return make_pipeline(
        StandardScaler(), near, squares, StandardScaler(), LogisticRegression(max_iter=1000)
    )


def _trees(n_rows: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline

    trees = HistGradientBoostingClassifier(
        learning_rate=0.1,
        max_iter=200,
        max_leaf_nodes=15,
        min_samples_leaf=max(20, n_rows // 200),
        l2_regularization=1.0,
        early_stopping=True,
        validation_fraction=0.2,
        n_iter_no_change=10,
        random_state=seed,
    )
    return make_pipeline(trees)
