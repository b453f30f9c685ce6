"""Edges of samples: what chance allows beyond them."""

from itertools import combinations

import numpy as np
import pytest

from sparker.tables.supports import beyond_edges, chance, in_words

pytestmark = pytest.mark.unit


def test_the_chance_is_that_of_all_orders():
    n, m = 4, 3
    orders = list(combinations(range(n + m), n))  # which ranks the n rows have, 0 the largest
    for k in range(n + 1):
        share = np.mean([set(range(k)) <= set(one) for one in orders])
        assert chance(np.array(k), n, m) == pytest.approx(share)


@pytest.mark.parametrize("sizes", [(2000, 2000), (1500, 100), (60, 3000)])
def test_samples_of_one_distribution_are_not_suspected(sizes):
    for seed in range(150):
        rng = np.random.default_rng(seed)
        samples = {}
        for name, n in zip("ab", sizes, strict=True):
            columns = [rng.normal(size=n), rng.exponential(size=n), rng.standard_cauchy(n),
                       rng.integers(0, 3, n), rng.poisson(20, n), rng.uniform(size=n)]  # fmt: skip
            samples[name] = np.column_stack(columns)
        assert beyond_edges(samples) == []


def test_edges_that_differ_are_found_on_either_side_of_either_sample():
    rng = np.random.default_rng(0)
    inner, outer = rng.uniform(0, 1, size=(1000, 2)), rng.uniform(0, 1, size=(800, 2))
    outer[:, 1] = rng.uniform(-0.05, 1.1, size=800)
    low, high = sorted(beyond_edges({"inner": inner, "outer": outer}), key=lambda one: one.n_rows)
    assert (low.column, low.sample, low.below, low.n_all) == (1, "outer", True, 800)
    assert (high.column, high.sample, high.below) == (1, "outer", False)
    assert high.n_rows == np.sum(outer[:, 1] > inner[:, 1].max())
    assert in_words([high, low], ["x", "y"]) == (
        f"{high.n_rows} of the 800 rows of outer lie above all rows of inner in column y, and so "
        "on (1 more)"
    )
    assert in_words([], ["x"]) == ""


def test_tails_that_widen_a_little_are_no_edges():
    rng = np.random.default_rng(1)
    x = rng.exponential(size=(2000, 1))
    assert beyond_edges({"own": x, "up": 1.1 * rng.exponential(size=(2000, 1))}) == []
    assert beyond_edges({"own": x, "up": 1.1 * x}) == []
