"""The test as scikit-learn knows estimators: to be cloned, searched over and put in pipelines.

scikit-learn has no two-sample tests, but it has classifiers: ``y`` says which rows are data, and
what the kernels learn are the log odds of that. ``sparker.test`` has more settings than this.
"""

# ruff: noqa: N803 (scikit-learn passes X by name)

from typing import Any

import narwhals as nw
import numpy as np
from scipy.special import expit, logsumexp
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from sparker import detect
from sparker.calibration.combine import Combination, harmonic
from sparker.engine.config import FitConfig
from sparker.engine.preprocess import Preprocess, decorrelate
from sparker.engine.widths import WidthConfig
from sparker.nulls import Scheme
from sparker.result import TestResult
from sparker.tables.frames import is_frame

FLOATS = (np.float64, np.float32)
"""Single precision stays as it is; anything else numeric becomes the first."""


class SparKer(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """``sparker.test`` as a binary classifier and transformer.

    ``y`` is 0 or False for reference rows, 1 or True for the data in question; classes of other
    names need ``reference``, the one of the anomaly-free rows: the two are not interchangeable.
    ``X`` may be an array or a data frame with columns of any kind, as for ``sparker.test``.

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
        combine: how component tests become one test, a rule of ``sparker.calibration.combine``.
        null: how toys are made, ``"permutation"`` or ``Simulator(source)``.
        n_toys: number of these experiments; p-values go down to one over this + 1.
        reference: the class in ``y`` of the reference rows, where classes are not 0 and 1.
        missing: what to do where values are missing, ``"indicator"``, ``"drop"`` or ``"error"``.
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
        combine: Combination = harmonic,
        null: str | Scheme = "permutation",
        n_toys: int = 300,
        reference: Any = None,
        missing: str = "indicator",
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
        self.reference = reference
        self.missing = missing
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "SparKer":
        """Test the rows of the second class against those of the first."""
        rows, labels = self._checked(X, y=y)
        labels = column_or_1d(labels, warn=True)
        check_consistent_length(rows, labels)
        classes = _two_classes(labels, self.reference)
        first, second = (_chosen(rows, labels == one) for one in classes)
        result = detect.test(
            first,
            second,
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
            missing=self.missing,
            progress=False,
        )
        self.result_: TestResult = result
        self.p_value_ = result.p_value
        f = result.log_ratio(first)
        self.offset_ = float(logsumexp(f) - np.log(len(f)))
        self.classes_ = classes
        return self

    def transform(self, X: Any) -> np.ndarray:  # (N, M)
        """The kernels' components, which sum to ``-score_samples``: which kernel sees a row."""
        rows = self._new(X)  # first: it says so if there is no result yet
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
        rows = self._new(X)
        return -self.result_.log_ratio(rows)

    def _new(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._checked(X)

    def _checked(self, X: Any, **labels: Any) -> Any:
        """What scikit-learn wants of rows and labels; data frames keep their columns."""
        how: dict[str, Any] = {"dtype": FLOATS, "ensure_all_finite": "allow-nan"}
        if is_frame(X):
            how = {"skip_check_array": True}
        elif labels:
            how |= {"ensure_min_samples": 2}
        return validate_data(self, X, **labels, reset=bool(labels), **how)

    @property
    def _n_features_out(self) -> int:  # for the names sparker0, sparker1, ... of the components
        return len(self.result_.model.a)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _chosen(rows: Any, chosen: np.ndarray) -> Any:
    """Some rows of an array or a data frame."""
    if not is_frame(rows):
        return rows[chosen]
    return nw.from_native(rows, eager_only=True).filter(chosen.tolist()).to_native()


def _two_classes(labels: np.ndarray, reference: Any) -> np.ndarray:
    """The labels of reference and data."""
    check_classification_targets(labels)
    kind = type_of_target(labels)
    if kind != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes[0]}; a test needs reference rows (0) and data rows (1)"
        )
    if reference is None:
        if classes.dtype.kind not in "biuf" or classes.tolist() != [0, 1]:
            raise ValueError(
                f"y has the classes {classes[0]} and {classes[1]}, and it must be known which of "
                "them are the reference rows: name that class by reference=, or give 0 and 1"
            )
        return classes
    if reference not in classes.tolist():
        raise ValueError(f"reference is {reference!r}, but y has {classes[0]} and {classes[1]}")
    return classes if classes[0] == reference else classes[::-1]
