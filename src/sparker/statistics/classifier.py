"""The classifier two-sample test: can a classifier tell data from reference out of fold?

Lopez-Paz and Oquab, "Revisiting classifier two-sample tests", ICLR 2017, arXiv:1610.06545. They
count correct answers; here it is the area under the ROC curve, which needs no threshold, does not
care how well probabilities are calibrated where one sample is much larger, and takes weights.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sparker.engine.memory import Need
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches
from sparker.statistics.contract import Evaluate, Statistic, one_by_one
from sparker.system.numbers import check_whole, counted

AT_ONCE = 16
"""Toys of a chunk, which are classified one by one: often enough to see them advance."""

FEW_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class ClassifierTwoSample(Statistic):
    """The area under the ROC curve of a scikit-learn classifier, out of fold."""

    name: ClassVar[str] = "c2st"
    classifier: Any = None
    """One with ``predict_proba`` whose ``fit`` takes ``sample_weight``; None: boosted trees,
    ``HistGradientBoostingClassifier()``."""
    n_folds: int = 2

    def __post_init__(self) -> None:
        check_whole("n_folds", self.n_folds, least=2)
        if self.classifier is not None and not (
            hasattr(self.classifier, "predict_proba") and hasattr(self.classifier, "get_params")
        ):
            raise ValueError(
                f"classifier must be a scikit-learn one with predict_proba, got {self.classifier!r}"
            )

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Nothing depends on the points."""
        model = self._model()
        parameters = {
            name: value if isinstance(value, int | float | str | None) else repr(value)
            for name, value in sorted(model.get_params().items())
        }
        return PreparedBatches(
            settings={
                "classifier": f"{type(model).__module__}.{type(model).__qualname__}",
                "parameters": parameters,
                "n_folds": int(self.n_folds),
            },
            start=self._start,
            # One toy's rows at a time, of which a model may keep copies.
            room=lambda sample: Need(
                64 * sample.points.shape[-2] * sample.points.shape[-1],
                160 * sample.points.shape[-2],
            ),
            most=AT_ONCE,
        )

    def _model(self) -> Any:
        if self.classifier is not None:
            return self.classifier
        from sklearn.ensemble import HistGradientBoostingClassifier  # who asks for it waits for it

        return HistGradientBoostingClassifier()

    def _start(self, seed: int, chunk: int) -> Evaluate:
        model = self._model()

        def evaluate(numbers: Any, batch: TwoSample) -> np.ndarray:
            from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

            # Threads that wait for each other cost more than they gain on few rows.
            few = batch.points.shape[-2] < FEW_ROWS
            with threadpool_limits(1 if few else None):
                toys = one_by_one(seed, numbers, batch)
                return np.array([[self.area(model, *toy)] for toy in toys])

        return evaluate

    def area(self, model: Any, rng: np.random.Generator, sample: TwoSample) -> float:
        """The mean over folds of the area under the ROC curve, each by the other folds' model."""
        from sklearn.base import clone
        from sklearn.metrics import roc_auc_score

        x = np.asarray(sample.points)
        is_data = np.asarray(sample.data_weight) > 0
        weight = np.asarray(sample.reference_weight + sample.data_weight, np.float64)
        for name, rows in (("data", is_data), ("reference", ~is_data)):
            if rows.sum() < self.n_folds:
                raise ValueError(
                    f"{name} has {counted(rows.sum(), 'row')}, fewer than the {self.n_folds} folds"
                )
        fold = np.empty(len(x), int)
        for rows in (is_data, ~is_data):  # each sample spread evenly over the folds
            fold[rows] = rng.permutation(np.arange(rows.sum()) % self.n_folds)
        areas = []
        for i in range(self.n_folds):
            out = fold == i
            one = clone(model)
            if one.get_params().get("random_state", 0) is None:
                one.set_params(random_state=int(rng.integers(2**31)))
            one.fit(x[~out], is_data[~out], sample_weight=weight[~out])
            score = one.predict_proba(x[out])[:, 1]
            areas.append(roc_auc_score(is_data[out], score, sample_weight=weight[out]))
        return float(np.mean(areas))
