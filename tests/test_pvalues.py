"""From a table of statistics to a p-value: exact ranks, rules, early stops, extrapolated tails."""

import contextlib
import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

import sparker
from sparker.calibration.combine import cauchy, harmonic, minimum, minimum_and_product, product
from sparker.calibration.halves import hypergeometric, inflation, n_above
from sparker.calibration.pvalues import (
    clopper_pearson,
    ends_in_sigmas,
    graded_p_values,
    graded_score,
    p_values,
    rank,
    significance,
    smooth_p_values,
    tied,
    tied_scores,
)
from sparker.calibration.tail import REACH, fit_tail

pytestmark = pytest.mark.unit

RULES = [minimum_and_product, minimum, product, cauchy]
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)

properties = settings(max_examples=60, deadline=None, derandomize=True, database=None)
few_values = st.sampled_from([-2.0, -0.0, 0.0, 1.0, 1.5, 1e300, math.inf, -math.inf, math.nan])
tables = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=few_values | st.floats(-3, 3),
)
p_tables = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.floats(1e-6, 1)
)


def as_large_as(one: float, other: float) -> bool:
    """Whether one counts as at least as large as the other, by the rule in words."""
    return math.isnan(one) or (not math.isnan(other) and one >= other) or one == math.inf


@properties
@given(tables)
def test_p_values_count_rows_at_least_as_large_one_by_one(t):
    n, m = t.shape
    found = p_values(t)
    for row, column in itertools.product(range(n), range(m)):
        count = sum(as_large_as(t[other, column], t[row, column]) for other in range(n))
        assert found[row, column] == count / n
    np.testing.assert_array_equal(p_values(t[:, 0]), found[:, 0])


@properties
@given(tables)
def test_p_values_are_never_zero_and_a_lost_row_is_as_extreme_as_can_be(t):
    found = p_values(t)
    assert np.all((found >= 1 / len(t)) & (found <= 1))
    np.testing.assert_array_equal(
        found, p_values(np.where(np.isnan(t) | (t == np.inf), np.nextafter(np.inf, 0), t))
    )


def p_of_each_row(t, rule):
    """The p-value that each row of a table would get if it was the observed one."""
    n = len(t)
    return np.array([rank(np.roll(t, -row, axis=0), rule).p_value for row in range(n)])


@each_rule
@properties
@given(t=tables)
def test_of_exchangeable_rows_just_the_stated_share_is_called_so_extreme(rule, t):
    p = p_of_each_row(t, rule)
    for level in p:
        assert np.mean(p <= level) == pytest.approx(level)
    n = len(t)
    assert np.all(np.sort(p) >= np.arange(1, n + 1) / n - 1e-12)


@pytest.mark.parametrize(
    ("rule", "m"), [(minimum, 1), (product, 1), (minimum_and_product, 1), (minimum_and_product, 3)]
)
def test_without_ties_every_rank_is_as_likely_as_any_other(rule, m):
    t = np.random.default_rng(5).normal(size=(40, m))
    np.testing.assert_allclose(np.sort(p_of_each_row(t, rule)), np.arange(1, 41) / 40)


@each_rule
def test_no_place_in_the_table_changes_a_score(rule):
    t = np.random.default_rng(0).normal(size=(101, 10)).round(1)
    order = np.random.default_rng(1).permutation(101)
    np.testing.assert_array_equal(rule(p_values(t[order])), rule(p_values(t))[order])


def test_a_rank_says_what_it_rests_on():
    t = np.arange(10.0)[:, None] * [1, 2]
    t[0] = 7.5, 15.0
    ranked = rank(t, minimum)
    assert ranked.p_by_column.tolist() == [0.3, 0.3]
    assert (ranked.p_value, ranked.above, ranked.n_toys) == (0.3, 2, 9)
    low, high = ranked.interval
    assert 0 <= low < clopper_pearson(2, 9)[0] < 0.3 < clopper_pearson(2, 9)[1] < high < 1
    np.testing.assert_allclose(ranked.score, -np.log(graded_p_values(t)[:, 0]))


def test_graded_p_values_are_ranks_below_the_tail_and_go_on_falling_above():
    t = np.random.default_rng(0).exponential(size=(500, 3)) * [1.0, 5.0, 0.1]
    graded, ranks = graded_p_values(t), p_values(t)
    top = ranks <= 0.1
    np.testing.assert_array_equal(graded[~top], ranks[~top])
    for column in range(3):
        above = top[:, column]
        x, y = t[above, column], np.log(graded[above, column])
        threshold = np.sort(t[:, column])[-51]
        scale = np.sqrt(np.mean((x - threshold) ** 2) / 2)
        tail = np.log(0.1) - (x - threshold) / scale
        ranks = np.log(p_values(t)[above, column])
        np.testing.assert_allclose(y, (ranks + tail) / 2)
    assert np.all(np.argsort(graded, axis=0) == np.argsort(-t, axis=0))


def test_graded_p_values_survive_ties_infinities_and_small_tables():
    ties = np.repeat([1.0, 2.0], [95, 5])[:, None]
    assert np.all(graded_p_values(ties)[-5:] <= 0.05)
    assert np.all(graded_p_values(np.ones((50, 2))) == 1)
    t = np.arange(80.0)[:, None]
    t[[3, 7]] = np.inf
    graded = graded_p_values(t)
    assert np.all(np.isfinite(graded))
    assert np.all(graded > 0)
    assert set(np.argsort(graded[:, 0])[:2]) == {3, 7}
    for n in (1, 2, 3):
        few = np.arange(float(n))[:, None]
        np.testing.assert_array_equal(graded_p_values(few), p_values(few))
    for n in (4, 10, 50):  # at least ten are graded, but never more than half
        few = np.arange(float(n))[:, None]
        n_graded = np.sum(graded_p_values(few) != p_values(few))
        assert n_graded == min(10, n // 2)


def test_far_ahead_in_one_column_beats_just_ahead_in_many():
    """What ranks cannot tell: with m columns about m rows lead one."""
    t = np.random.default_rng(0).normal(size=(101, 30))
    t[0] = 0
    t[0, 4] = 10
    assert rank(t, minimum).p_value == 1 / 101
    assert p_values(minimum(p_values(t)))[0] > 0.1


def test_rules_by_hand():
    p = np.array([[0.5, 0.01, 0.2], [0.07, 0.07, 0.07]])
    logs = np.log([0.5, 0.01, 0.2]).sum()
    np.testing.assert_allclose(minimum(p), [-np.log(0.01), -np.log(0.07)])
    np.testing.assert_allclose(product(p), [-logs, -3 * np.log(0.07)])
    np.testing.assert_allclose(
        minimum_and_product(p), [-np.log(0.01) / 2 - logs / 6, -np.log(0.07)]
    )
    tangents = [0, 1 / np.tan(0.01 * np.pi), 1 / np.tan(0.2 * np.pi)]
    np.testing.assert_allclose(cauchy(p), [np.mean(tangents), 1 / np.tan(0.07 * np.pi)])


@each_rule
@properties
@given(p=p_tables, data=st.data())
def test_a_smaller_p_value_never_lowers_a_score(rule, p, data):
    row = data.draw(st.integers(0, len(p) - 1))
    column = data.draw(st.integers(0, p.shape[1] - 1))
    smaller = p.copy()
    smaller[row, column] *= data.draw(st.floats(0.01, 1))
    before, after = rule(p), rule(smaller)
    assert after[row] >= before[row] - 1e-12 * abs(before[row])
    others = np.arange(len(p)) != row
    np.testing.assert_array_equal(after[others], before[others])


def test_one_width_without_any_evidence_does_not_outweigh_the_others_in_cauchys_rule():
    isolated, ordinary = cauchy(np.array([[1e-4, 1.0], [0.4, 0.4]]))
    assert np.isfinite(isolated)
    assert isolated > ordinary


@properties
@given(st.integers(1, 2000), st.data())
def test_intervals_are_scipys_exact_ones(n, data):
    k = data.draw(st.integers(0, n))
    low, high = clopper_pearson(k, n)
    exact = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
    assert low == pytest.approx(exact.low, rel=1e-9, abs=1e-12)
    assert high == pytest.approx(exact.high, rel=1e-9)


def test_a_significance_is_printed_with_that_of_both_ends():
    t = np.arange(300.0)[:, None]
    beyond = rank(np.concatenate([[[1e3]], t]), minimum)
    among = rank(np.concatenate([[[298.5]], t]), minimum)
    z = stats.norm.isf
    high = clopper_pearson(0, 300)[1]
    assert significance(beyond.p_value) == pytest.approx(z(1 / 301))
    assert ends_in_sigmas(beyond.interval) == f"{z(high):.2f} or more"
    low, high = clopper_pearson(1, 300)
    assert significance(among.p_value) == pytest.approx(z(2 / 301))
    assert ends_in_sigmas(among.interval) == f"{z(high):.2f} to {z(low):.2f}"
    assert significance(1.0) == -np.inf


@pytest.mark.parametrize("k", [0, 1, 7, 150, 300])
def test_of_a_single_column_the_interval_is_the_exact_one(k):
    t = np.random.default_rng(0).normal(size=(301, 1))
    t[0] = np.sort(t[1:, 0])[-k] if k else 10
    ranked = rank(t, minimum)
    assert ranked.above == k
    assert ranked.interval == clopper_pearson(k, 300)


def test_of_many_columns_the_interval_is_wider_and_repeats():
    t = np.random.default_rng(0).normal(size=(301, 20))
    ranked, again = rank(t, minimum), rank(t.copy(), minimum)
    assert ranked.interval == again.interval
    low, high = clopper_pearson(ranked.above, 300)
    assert ranked.interval[0] < low < ranked.p_value < high < ranked.interval[1]


def test_a_count_of_independent_toys_is_not_inflated_and_the_best_of_many_ranks_is():
    rng = np.random.default_rng(0)
    score = functools.partial(graded_score, minimum)
    alone, alike, apart = [], [], []
    for _ in range(40):
        t = rng.normal(size=(201, 30))
        alone.append(inflation(t, lambda rows: rows[:, 0]))
        alike.append(inflation(np.repeat(t[:, :1], 30, axis=1), score))
        apart.append(inflation(t, score))
    # The larger of two estimates of one is a little more than one.
    assert np.median(alone) == pytest.approx(1.1, abs=0.25)
    np.testing.assert_array_equal(alike, alone)
    assert np.median(apart) > 5


def test_halves_of_a_row_scatter_as_counts_without_replacement_do():
    above, n, size = np.array([1, 30, 98]), 100, 51
    mean, variance = hypergeometric(above, n, size)
    truth = [stats.hypergeom(n - 1, k, size - 1) for k in above]
    np.testing.assert_allclose(mean, [one.mean() for one in truth])
    np.testing.assert_allclose(variance, [one.var() for one in truth])
    assert n_above(np.array([3.0, 1.0, 3.0, 5.0])).tolist() == [2, 3, 2, 0]


@pytest.mark.parametrize("n_toys", [1, 2, 5, 9, 10, 11, 25])
def test_an_interval_holds_its_p_value_however_few_toys_there_are(n_toys):
    t = correlated(np.random.default_rng(0), n_toys + 1)
    for rows in (t, np.ones_like(t), with_lost_toys(t)):
        ranked = rank(rows, minimum)
        low, high = ranked.interval
        assert 0 <= low <= ranked.p_value <= high <= 1


def with_lost_toys(t):
    t = t.copy()
    t[1 + len(t) // 2 :] = np.nan
    return t


def correlated_columns(rng, n):  # (n, 20)
    return rng.normal(size=(n, 1)) + rng.normal(size=(n, 20))


def heavy_columns(rng, n):  # (n, 20), a part of them Student's t
    t = rng.normal(size=(n, 1)) + rng.normal(size=(n, 20))
    t[:, ::4] = rng.standard_t(3, size=(n, 5))
    return t


@functools.cache
def known_p_values(draw):
    """A large table, and the p-value of each of its rows."""
    t = draw(np.random.default_rng(0), 8000)
    return t, p_values(graded_score(minimum, t))


def drawn(rng, draw, n_toys, most):
    """A row of this p-value at most as the observed one among toys, and its p-value."""
    t, p = known_p_values(draw)
    row = rng.choice(np.flatnonzero(p <= most))
    toys = rng.choice(np.delete(np.arange(len(t)), row), n_toys, replace=False)
    return np.concatenate([t[[row]], t[toys]]), p[row]


@pytest.mark.parametrize("draw", [correlated_columns, heavy_columns])
def test_the_interval_covers_what_many_more_toys_give(draw):
    rng = np.random.default_rng(1)
    covered, exact = [], []
    for _ in range(300):
        t, p = drawn(rng, draw, 200, most=0.5)
        ranked = rank(t, minimum)
        for found, (low, high) in (
            (covered, ranked.interval),
            (exact, clopper_pearson(ranked.above, 200)),
        ):
            found.append(low <= p <= high)
    assert np.mean(covered) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 300)
    assert np.mean(exact) < 0.8  # what it would be for a count


@pytest.mark.parametrize("draw", [correlated_columns, heavy_columns])
def test_a_significance_that_is_said_to_be_so_much_or_more_is(draw):
    rng = np.random.default_rng(2)
    true, naive = [], []
    for _ in range(1500):
        t, p = drawn(rng, draw, 100, most=0.2)
        ranked = rank(t, minimum)
        if ranked.above == 0:
            true.append(stats.norm.isf(p) >= significance(ranked.interval[1]))
            naive.append(p <= ranked.p_value)
    assert len(true) > 40
    assert np.mean(true) >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / len(true))
    assert np.mean(naive) < 0.75


def test_values_that_differ_by_rounding_alone_are_ties():
    rng = np.random.default_rng(0)
    t = rng.normal(size=(60, 4)) * [1e-200, 1, 1e6, 1e200]
    t = np.concatenate([t, t])
    apart = t * (1 + 1e-14 * rng.normal(size=t.shape))
    assert np.all(p_values(tied(apart)) == p_values(t))
    assert not np.all(p_values(apart) == p_values(t))
    for rule in RULES:
        assert rank(apart, rule).p_value == rank(t, rule).p_value
    np.testing.assert_array_equal(tied(tied(apart)), tied(apart))


def test_a_tie_keeps_what_is_not_finite_all_zeros_and_the_order():
    t = np.array([[np.inf, 0.0], [-np.inf, 0.0], [np.nan, 0.0], [3.0, 0.0], [3.0 - 1e-6, 0.0]])
    found = tied(t)
    np.testing.assert_allclose(found, t, rtol=1e-9)
    assert found[4, 0] < found[3, 0]
    tiny = np.array([[5e-324], [0.0], [1e-320]])
    np.testing.assert_array_equal(tied(tiny), tiny)
    # Beside a unit that is not their own, large values are none to be rounded.
    beside = np.append(np.full(19, 1e-3), 1e305)[:, None]
    assert tied(beside)[-1] == 1e305


def test_the_harmonic_mean_of_very_small_p_values_does_not_overflow():
    """Scores that were infinite were ties: data far out had p = 0.13."""
    tiny = np.finfo(float).tiny
    found = harmonic(np.array([[tiny] * 8, [tiny] * 4 + [1.0] * 4, [4 * tiny] * 8]))
    assert np.isfinite(found).all()
    assert found[0] > found[1] > found[2]
    np.testing.assert_allclose(found[0], -np.log(tiny))


def test_scores_are_tied_by_their_own_digits():
    score = np.array([0.1 + 0.2, 0.3, 1e15, -0.3, -(0.1 + 0.2), np.inf, 0.0, 0.3 + 1e-9])
    found = tied_scores(score)
    assert found[0] == found[1] == -found[3] == -found[4]
    assert found[7] > found[0]
    np.testing.assert_allclose(found, score, rtol=1e-11)


@pytest.mark.parametrize(
    ("truth", "factor"), [(stats.gumbel_r(3, 2), 1.5), (stats.gamma(5), 2.5), (stats.chi2(10), 2.5)]
)
def test_smooth_p_values_are_near_the_true_ones(truth, factor):
    toys = truth.rvs(size=(4000, 2), random_state=0)
    for p in (0.5, 0.1, 0.01, 0.001):
        found = smooth_p_values(truth.isf([[p, p]]), toys)
        assert np.all((found > p / factor) & (found < p * factor))


def test_smooth_p_values_fall_with_the_statistic_and_do_not_end_with_the_toys():
    toys = np.random.default_rng(0).gumbel(size=(50, 1)) * 5 + 100
    t = np.linspace(50, 200, 40)[:, None]
    p = smooth_p_values(t, toys)[:, 0]
    assert np.all(np.diff(p[p < 1]) < 0)
    assert p[0] > 0.99
    assert 0 < p[-1] < 1e-6
    moved = smooth_p_values(3 * t + 7, 3 * toys + 7)[:, 0]
    np.testing.assert_allclose(moved, p, rtol=1e-6)


def test_smooth_p_values_bear_lost_toys_and_a_column_without_spread():
    toys = np.random.default_rng(0).normal(size=(50, 2))
    whole = smooth_p_values(toys, toys)
    toys = np.concatenate([toys, [[np.nan, np.inf]]])
    np.testing.assert_allclose(smooth_p_values(toys[:50], toys), whole)
    assert np.all(smooth_p_values(np.full((1, 2), np.nan), toys) == np.finfo(float).tiny)
    assert np.all(smooth_p_values(np.full((1, 2), -1e9), toys) == 1)
    level = smooth_p_values(np.array([[3.0], [4.0]]), np.full((20, 1), 3.0))
    assert level[0] > level[1] > 0


def correlated(rng, n):  # (n, 3)
    return rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 3))


def with_ties(t):
    t[3] = t[1]
    return t


def with_a_lost_toy(t):
    t[4] = np.nan
    return t


def with_lost_readings(t):
    t[1, 0], t[3, 2], t[4, 1] = np.nan, np.inf, np.nan
    return t


STOP = sparker.Sequential(exceedances=3, first=10)


@each_rule
@pytest.mark.parametrize("change", [None, with_ties, with_a_lost_toy, with_lost_readings])
def test_an_early_stop_is_exact_over_all_orders_of_the_rows(rule, change):
    rows = correlated(np.random.default_rng(1), 12)
    if change is not None:
        rows = change(rows)
    found, at_first = [], []
    # Of all orders only the first row and the last matter, which comes after the look.
    for first, last in itertools.permutations(range(12), 2):
        if np.any(np.isfinite(rows[first])):  # a lost observed row is refused elsewhere
            t = rows[[first, *(row for row in range(12) if row not in (first, last)), last]]
            found.append(STOP.rank(t, rule, complete=True))
            at_first.append(rank(t[:11], rule).p_value)
    assert {ranked.n_toys for ranked in found} == {10, 11}
    p = np.array([ranked.p_value for ranked in found])
    for level in p:
        assert np.sum(p <= level + 1e-12) <= (level + 1e-12) * 12 * 11
        if level >= 4 / 11:  # the least of those that a stop reports
            assert np.all(np.array(at_first)[p <= level + 1e-12] <= level + 1e-12)


@functools.cache
def simulated_p_values():  # of anomaly-free experiments
    rng = np.random.default_rng(0)
    tables = (correlated(rng, 71) for _ in range(3000))
    return np.array([STOP.rank(t, minimum_and_product, complete=True).p_value for t in tables])


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.2, 0.3, 0.5])
def test_an_early_stop_is_valid_at_every_level(alpha):
    p = simulated_p_values()
    k = np.sum(p <= alpha)
    # Beyond such a bound in one run of 10^5, if the level is what it should be.
    assert k <= stats.binom.isf(1e-5, len(p), alpha)
    if alpha == 0.5:  # the first look decides: here it is not only valid but exact
        assert k >= stats.binom.ppf(1e-5, len(p), 5 / 11)
    if alpha == 0.05:  # and here, almost as powerful as a ranking of all 70 toys
        assert k >= 0.8 * len(p) * 3 / 71


@pytest.mark.parametrize(("n_above", "n_toys"), [(3, 10), (2, 20), (1, 40)])
def test_a_stop_is_the_ranking_of_all_rows_so_far_and_further_toys_change_nothing(n_above, n_toys):
    """At the first look as many toys are above the data as are said, at each further one twice."""
    t = np.random.default_rng(0).uniform(size=(101, 1))
    t[0] = 0.5
    t[1:, 0] = 0.4 * t[1:, 0] + 0.6 * (np.arange(100) % 10 < n_above)
    ranked = STOP.rank(t, minimum, complete=False)
    expected = rank(t[: n_toys + 1], minimum)
    assert ranked.n_toys == n_toys
    assert ranked.above == n_above * n_toys / 10
    assert ranked.p_value == (ranked.above + 1) / (n_toys + 1)
    assert ranked.interval == expected.interval
    np.testing.assert_array_equal(ranked.score, expected.score)
    assert STOP.rank(t[:n_toys], minimum, complete=False) is None
    t[n_toys + 1 :] = 1e6
    for rows in (t[: n_toys + 1], t):
        again = STOP.rank(rows, minimum, complete=True)
        np.testing.assert_array_equal(again.score, ranked.score)
        np.testing.assert_array_equal(again.p_by_column, ranked.p_by_column)
        assert (again.p_value, again.interval) == (ranked.p_value, ranked.interval)


def test_an_extreme_row_is_compared_with_all_toys():
    t = correlated(np.random.default_rng(0), 101)
    t[0] = 50
    assert STOP.rank(t, minimum, complete=False) is None
    ranked = STOP.rank(t, minimum, complete=True)
    assert (ranked.p_value, ranked.above, ranked.n_toys) == (1 / 101, 0, 100)
    assert ranked.interval == rank(t, minimum).interval


def test_a_lost_toy_counts_as_above_even_an_extreme_row():
    t = correlated(np.random.default_rng(0), 101)
    t[0] = 50
    t[[3, 60]] = np.nan
    ranked = STOP.rank(t, minimum, complete=True)
    assert (ranked.above, ranked.n_toys) == (2, 100)
    t[[12, 20]] = np.inf
    ranked = STOP.rank(t, minimum, complete=False)
    assert (ranked.above, ranked.n_toys) == (3, 20)


@pytest.mark.parametrize("value", [0, 1.5, True, "20"])
def test_a_stop_that_cannot_work_is_refused(value):
    with pytest.raises(ValueError, match="exceedances must be a whole number of at least 1, got"):
        sparker.Sequential(exceedances=value)
    with pytest.raises(ValueError, match="first must be a whole number of at least 10, got"):
        sparker.Sequential(first=value)


CHI2 = stats.chi2(10)


def one_column(rng, n):
    return CHI2.rvs(size=(n, 1), random_state=rng)


def alike_columns(rng, n):
    """Five columns, each a chi-square of 10, that are nearly the same."""
    common, own = rng.normal(size=(n, 1, 10)), rng.normal(size=(n, 5, 10))
    return np.sum((np.sqrt(0.999) * common + np.sqrt(0.001) * own) ** 2, -1)


@functools.cache
def repeated_tail_fits(draw, p):
    """Fits to 1000 toys, fifty times, where the true p-value is known; without those refused."""
    rng = np.random.default_rng(0)
    found = []
    for seed in range(50):
        toys = draw(rng, 1000)
        with contextlib.suppress(ValueError):
            found.append(fit_tail(np.full(toys.shape[1], CHI2.isf(p)), toys, "product", seed))
    return found


@pytest.mark.parametrize(
    ("draw", "p"), [(one_column, 1e-3), (one_column, 1e-5), (alike_columns, 1e-5)]
)
def test_the_interval_of_an_extrapolated_p_value_covers_it(draw, p):
    fits = repeated_tail_fits(draw, p)
    assert len(fits) >= 40  # of a good tail, one in ten is refused by chance
    assert all(p <= found.interval[1] for found in fits)


@pytest.mark.parametrize("draw", [one_column, alike_columns])
def test_an_extrapolated_p_value_is_of_the_right_order(draw):
    fits = repeated_tail_fits(draw, 1e-3)
    near = sum(1e-4 < found.p_value < 1e-2 for found in fits)
    assert near >= 0.75 * len(fits)


def with_outlying_toys(rng, n):
    """One row in a hundred is six times as large as it would be."""
    t = rng.normal(size=(n, 1)) ** 2 + rng.normal(size=(n, 10)) ** 2
    t[rng.random(n) < 0.01] *= 6
    return t


@pytest.mark.parametrize("draw", [with_outlying_toys, heavy_columns])
def test_no_tail_makes_the_upper_end_of_an_extrapolated_p_value_too_small(draw):
    rng = np.random.default_rng(0)
    large = draw(rng, 20_000)
    p = p_values(minimum(smooth_p_values(large, large)))
    order = np.argsort(p)
    covered, estimates = [], []
    for i in range(120):
        row = order[(200, 60, 20, 6)[i % 4]]
        toys = large[rng.choice(len(large), 200, replace=False)]
        with contextlib.suppress(ValueError):
            found = fit_tail(large[row], toys, "minimum")
            covered.append(p[row] <= found.interval[1])
            estimates.append(p[row] <= found.p_value)
    assert len(covered) > 40
    assert np.mean(covered) >= 0.95
    assert np.mean(estimates) < 0.9  # which the estimate alone would not do


def test_an_extrapolation_goes_no_further_than_it_says():
    toys = one_column(np.random.default_rng(0), 1000)
    far, further = (fit_tail(CHI2.isf([p]), toys, "minimum") for p in (1e-9, 1e-12))
    assert far.p_value == further.p_value == 1 / (REACH * 1001)
    assert far.at_reach
    assert f"p-value <= {far.p_value:.2g}, >= {far.significance:.1f} sigma" in str(far)
    assert far.interval == clopper_pearson(0, 1000)
    near = fit_tail(CHI2.isf([2e-3]), toys, "minimum")
    assert not near.at_reach
    assert "<= " not in str(near).split(",")[0]
    assert str(near).endswith(f"p <= {near.interval[1]:.2g}")


def test_a_tail_fit_says_what_it_rests_on_and_repeats():
    toys = one_column(np.random.default_rng(0), 1000)
    found = fit_tail(CHI2.isf([1e-4]), toys, "minimum_and_product")
    assert (found.n_toys, found.n_tail) == (1000, 250)
    assert found.interval[0] <= found.p_value <= found.interval[1]
    assert found.significance == pytest.approx(stats.norm.isf(found.p_value))
    assert f"{found.p_value:.2g}" in str(found)
    assert found == fit_tail(CHI2.isf([1e-4]), toys, "minimum_and_product")
    nearer = fit_tail(CHI2.isf([1e-3]), toys, "minimum_and_product")
    assert nearer.p_value > found.p_value
    lost = np.concatenate([toys, [[np.nan]]])
    assert fit_tail(CHI2.isf([1e-4]), lost, "minimum_and_product") == found


@each_rule
def test_inside_the_toys_the_tail_agrees_with_their_ranks(rule):
    toys = alike_columns(np.random.default_rng(1), 2000)
    t = np.full(5, CHI2.isf(0.02))
    ranked = rank(np.concatenate([t[None], toys]), rule)
    found = fit_tail(t, toys, rule.__name__)
    assert ranked.p_value / 1.5 < found.p_value < ranked.p_value * 1.5


def two_humps(rng):
    t = rng.normal(size=(1000, 1))
    t[:100] += 8
    return t


def steps(rng):
    return rng.poisson(3, size=(1000, 1)).astype(float)


@pytest.mark.parametrize(
    ("t", "draw", "rule", "message"),
    [
        (30, lambda rng: one_column(rng, 199), "minimum", "at least 200 finite toys, got 199"),
        (5, lambda rng: one_column(rng, 1000), "minimum", "data lie among the toys"),
        (30, two_humps, "minimum", "not a generalised Pareto one .* Make more toys"),
        (30, steps, "minimum", "repeat too often"),
        (
            1e4,
            lambda rng: np.exp(rng.exponential(size=(1000, 1))),
            "minimum",
            "too heavy to extrapolate",
        ),
        (30, lambda rng: one_column(rng, 1000), "mine", r"'cauchy'\] only, not mine"),
    ],
    ids=["too few", "among", "two humps", "steps", "heavy", "rule"],
)
def test_nothing_is_extrapolated_from_a_bad_tail(t, draw, rule, message):
    with pytest.raises(ValueError, match=message):
        fit_tail(np.array([float(t)]), draw(np.random.default_rng(0)), rule)
