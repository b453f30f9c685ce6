"""Type-I error: anomaly-free samples are called anomalous as often as alpha says, and no more.

The whole study is ``experiments.levels``; here are its cells with fewer tests, and what it found.
"""

import json

import numpy as np
import pytest
from experiments.levels import tables, weighted_pools
from experiments.levels.cells import CELLS, MISTAKES, p_values
from experiments.levels.populations import POPULATIONS
from experiments.levels.run import ALPHAS, RESULT
from scipy.stats import binom

UNLIKELY = 1e-4  # there are hundreds of comparisons
QUICK = {
    "permutation, 300 and 9": "binary",
    "counts, 60 and 30": "integers",
    "strata": "heavy tails",
    "pairs": "normal",
    "groups of one to four": "exponential",
    "groups of 3 and of 6, cut": "binary",
    "weights, a function": "exponential",
    "weights of the reference alone": "normal",
    "simulator, 150 rows": "normal",
    "simulator, 300 rows, and counts": "integers",
}


def too_many(p: np.ndarray, alpha: float) -> bool:
    return bool(binom.sf(np.sum(p <= alpha + 1e-9) - 1, len(p), alpha) < UNLIKELY)


@pytest.mark.parametrize(("name", "population"), QUICK.items())
def test_levels_are_kept_in_a_few_tests(name, population):
    found = p_values(name, population, kernels=False, numbers=range(10_000, 10_100), n_toys=19)
    for statistic, p in found.items():
        for alpha in (0.05, 0.1, 0.5):
            assert not too_many(p, alpha), (statistic, alpha, np.mean(p <= alpha))
    # And they are not kept by never rejecting anything.
    assert np.mean(found["mean"] <= 0.5) > 0.25


@pytest.mark.parametrize("name", ["permutation, 300 and 60", "simulator, 150 rows"])
def test_levels_of_kernels_are_kept_in_a_few_tests(name):
    p = p_values(name, "exponential", kernels=True, numbers=range(10_000, 10_060), n_toys=19)
    assert not any(too_many(p["kernels"], alpha) for alpha in (0.05, 0.1, 0.5))


@pytest.mark.parametrize(
    ("name", "population", "statistic"),
    [
        ("null drawn from the reference", "exponential", "all four"),
        ("a pool of 150 kept apart", "exponential", "all four"),
        ("groups of three, ignored", "exponential", "Kolmogorov-Smirnov"),
        ("groups of 2 and of 20, alike", "exponential", "deficit"),
        ("strata, ignored", "normal", "mean"),
    ],
)
def test_a_mistake_is_noticed_in_a_few_tests(name, population, statistic):
    found = p_values(name, population, kernels=False, numbers=range(10_000, 10_100), n_toys=19)
    assert too_many(found[statistic], 0.1)


@pytest.fixture(scope="module")
def cells() -> dict:
    return json.loads(RESULT.read_text())["cells"]


def test_the_study_is_whole_and_every_cell_holds_its_level(cells):
    found = tables.comparisons(cells)
    n_statistics = {name: 1 if "stopped" in name else 5 for name in CELLS}
    expected = sum(n_statistics.values()) * len(POPULATIONS) * len(ALPHAS)
    assert sum(one[2] != "kernels" for one in found) == expected
    assert min(found)[0] > 0.05 / len(found)
    assert sum(one[0] < 0.01 for one in found) < binom.isf(1e-3, len(found), 0.01)


def test_the_study_sees_every_mistake(cells):
    for name in MISTAKES:
        chances = [
            binom.sf(count.k - 1, count.n, 0.05)
            for statistic in tables.STATISTICS
            for count in tables.counts(cells, name, statistic).values()
        ]
        assert min(chances) < 1e-6, name


def test_page_and_readme_have_all_tables_of_the_study(cells):
    both = tables.README.read_text(), tables.PAGE.read_text()
    for text in both:
        assert tables.page(text, cells) == text
    for name in tables.made(cells):
        assert sum(tables.BEGIN.format(name) in text for text in both) == 1


def test_levels_are_kept_where_pool_and_reference_have_weights():
    found = json.loads(weighted_pools.RESULT.read_text())["units"]
    for weights in weighted_pools.WEIGHTS:
        for counts in weighted_pools.COUNTS:
            cell = [one for key, one in found.items() if key.startswith(f"{weights}; {counts};")]
            p = np.array([one["rank"] for one in cell]) / (weighted_pools.N_TOYS + 1)
            assert not any(too_many(p, alpha) for alpha in weighted_pools.ALPHAS)
            assert not any(one["warned"] for one in cell)


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_levels_of_kernels_are_kept(name):
    found = p_values(name, "exponential", kernels=True, numbers=range(10_000, 11_000))
    assert not any(too_many(found["kernels"], alpha) for alpha in ALPHAS)
