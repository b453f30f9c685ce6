"""Type-I error: anomaly-free samples are called anomalous as often as alpha says, and no more.

The slow tests run a thousand tests for each scheme; the fast ones the same code with fewer.
"""

import numpy as np
import pytest
from experiments.levels.cases import CASES, WRONG
from scipy.stats import binom, binomtest

from sparker.combine import RULES

ALPHAS = (0.01, 0.05, 0.10)
UNLIKELY = 1e-4  # there are hundreds of comparisons
FAST = [
    "permutation; exponential, 1-D",
    "resample; exponential, 1-D",
    "permutation; groups",
]


def assert_levels(p: dict[str, np.ndarray], alphas) -> None:
    for rule, values in p.items():
        for alpha in alphas:
            rejected = int(np.sum(values <= alpha))
            chance = binomtest(rejected, len(values), alpha).pvalue
            assert chance > UNLIKELY, (rule, alpha, rejected / len(values))


@pytest.mark.parametrize("name", FAST)
def test_levels_are_right_in_a_few_tests(name):
    p = CASES[name].many(100, 19)
    assert set(p) == {rule.__name__ for rule in RULES}
    assert_levels(p, (0.05, 0.10, 0.5))


@pytest.mark.parametrize(
    "name",
    [
        "null drawn from the fit's own reference; exponential, 1-D",
        "permutation of rows that belong together",
    ],
)
def test_a_wrong_scheme_would_be_noticed_in_a_few_tests(name):
    p = WRONG[name].many(60, 19)["minimum"]
    assert np.sum(p <= 0.10) > binom.isf(UNLIKELY, len(p), 0.10)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_levels_are_right(name):
    case = CASES[name]
    assert_levels(case.many(1000, 99 + case.set_aside), ALPHAS)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_scheme_fails_that_test(name):
    with pytest.raises(AssertionError):
        assert_levels(WRONG[name].many(1000, 99), ALPHAS)
