"""The test as scikit-learn knows estimators: to be cloned, searched over and put in pipelines.

scikit-learn has no two-sample tests, but it has classifiers: ``y`` says which rows are data, and
what the kernels learn are the log odds of that. ``sparker.test`` has more settings than this.
"""

# ruff: noqa: N803 (scikit-learn passes X by name)

import dataclasses
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from sparker import detect
from sparker.calibration.combine import Combination, minimum
from sparker.engine.config import FitConfig
from sparker.engine.preprocess import Preprocess, decorrelate
from sparker.engine.widths import WidthConfig
from sparker.nulls import Scheme
from sparker.result import TestResult

FLOATS = (np.float64, np.float32)
"""Single precision stays as it is; anything else numeric becomes the first."""


class SparKer(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """``sparker.test`` as a binary classifier and transformer.

    Of the two classes in ``y`` the first in sorted order is the reference and the second the data
    in question: 0 and 1, False and True. The two are not interchangeable, so mind names ("data"
    sorts before "reference") and scikit-learn's outlier labels (-1, the anomaly, before 1).

    There is no ``sample_weight``: in scikit-learn a row of weight two stands for two rows, but here
    data rows are counted, not weighted, and two equal ones are a hint of an anomaly that one is
    not. For a weighted reference use ``sparker.test``.

    Args:
        n_kernels: as all down to ``amplitude_rate``, a setting of ``sparker.FitConfig``.
        clip: largest amplitude of a kernel.
        l2: penalty on the squared amplitudes.
        location_rate: step size of the locations, in widths.
        amplitude_rate: step size of the amplitudes.
        steps: training steps, an equal share at each width.
        n_widths: at how many widths the test is read off.
        preprocess: ``decorrelate``, ``standardise``, ``whiten`` or ``unchanged`` of
            ``sparker.engine.preprocess``.
        combine: how the widths become one test, a rule of ``sparker.calibration.combine``.
        null: how anomaly-free experiments are made, ``"permutation"`` or ``Simulator(source)``.
        n_toys: number of these experiments; p-values go down to one over this + 1.
        random_state: decides the seed of the test; an int makes every fit give the same.

    Attributes:
        result_: the ``TestResult``; its scores are in the order of the rows of each class.
        offset_: the log of the mean density ratio over the reference. Kernels need not make that
            one; relative to it, a row that no kernel reaches is a row of the reference.
        p_value_: that of the test. It does not know of other settings that were tried on the same
            rows: a search over settings needs rows of its own.
        classes_: the labels of reference and data.
        n_features_in_: the number of columns of ``X``.
        feature_names_in_: their names, where it has any.

    >>> import numpy as np
    >>> from sparker.estimator import SparKer
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(1000, 2)), np.arange(1000) >= 800
    >>> X[-10:] = [2, 2] + 0.05 * rng.normal(size=(10, 2))
    >>> model = SparKer(n_kernels=3, n_toys=20, random_state=1).fit(X, y)
    >>> round(model.p_value_, 3), np.sort(np.argsort(model.score_samples(X))[:5]).tolist()
    (0.048, [990, 995, 996, 998, 999])
    """

    def __init__(
        self,
        n_kernels: int = 5,
        *,
        clip: float = 5.0,
        l2: float = 0.0,
        location_rate: float = 0.01,
        amplitude_rate: float = 0.1,
        steps: int = 200,
        n_widths: int = 10,
        preprocess: Preprocess = decorrelate,
        combine: Combination = minimum,
        null: str | Scheme = "permutation",
        n_toys: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        # As they are: scikit-learn clones by get_params, and fit checks.
        self.n_kernels = n_kernels
        self.clip = clip
        self.l2 = l2
        self.location_rate = location_rate
        self.amplitude_rate = amplitude_rate
        self.steps = steps
        self.n_widths = n_widths
        self.preprocess = preprocess
        self.combine = combine
        self.null = null
        self.n_toys = n_toys
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "SparKer":
        """Test the rows of the second class against those of the first."""
        rows, labels = validate_data(self, X, y, dtype=FLOATS, ensure_min_samples=2)
        classes = _two_classes(labels)
        result = detect.test(
            rows[labels == classes[0]],
            rows[labels == classes[1]],
            n_toys=self.n_toys,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            null=self.null,
            config=FitConfig(
                n_kernels=self.n_kernels,
                clip=self.clip,
                l2=self.l2,
                location_rate=self.location_rate,
                amplitude_rate=self.amplitude_rate,
            ),
            widths=WidthConfig(steps=self.steps, n_widths=self.n_widths),
            preprocess=self.preprocess,
            combine=self.combine,
            progress=False,
        )
        names = tuple(getattr(self, "feature_names_in_", ()))  # the test saw a bare array
        self.result_: TestResult = dataclasses.replace(result, names=names)
        self.p_value_ = result.p_value
        f = result.log_ratio(rows[labels == classes[0]])
        self.offset_ = float(logsumexp(f) - np.log(len(f)))
        self.classes_ = classes
        return self

    def transform(self, X: Any) -> np.ndarray:  # (N, M)
        """The kernels' components, which sum to ``-score_samples``: which kernel sees a row."""
        rows = self._checked(X)  # first: it says so if there is no result yet
        return self.result_.components(rows)

    def decision_function(self, X: Any) -> np.ndarray:  # (N,)
        """The log ratio of the normalised densities of data and reference, ``f - offset_``."""
        return -self.score_samples(X) - self.offset_

    def predict_proba(self, X: Any) -> np.ndarray:  # (N, 2)
        """The probabilities of reference and data if both were equally frequent."""
        f = self.decision_function(X)
        return np.stack([expit(-f), expit(f)], axis=1)

    def predict(self, X: Any) -> np.ndarray:  # (N,)
        """The class that is denser at each row."""
        is_data = self.decision_function(X) > 0
        return self.classes_[is_data.astype(int)]

    def score_samples(self, X: Any) -> np.ndarray:  # (N,)
        """``-f``: as with scikit-learn's outlier detectors, the lower the more anomalous.

        ``f`` is the log density ratio that the kernels of the width that tells most have learned.
        """
        rows = self._checked(X)
        return -self.result_.log_ratio(rows)

    def _checked(self, X: Any) -> np.ndarray:  # (N, d)
        check_is_fitted(self)
        return validate_data(self, X, dtype=FLOATS, reset=False)

    @property
    def _n_features_out(self) -> int:  # for the names sparker0, sparker1, ... of the components
        return len(self.result_.model.a)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _two_classes(labels: np.ndarray) -> np.ndarray:
    check_classification_targets(labels)
    kind = type_of_target(labels)
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes[0]}; a test needs reference rows (the first class) "
            "and data rows (the second)"
        )
    return classes
