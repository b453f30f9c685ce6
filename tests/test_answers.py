"""How many, where, which rows, which columns: each number against what it claims."""

import dataclasses
import json
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from plain_encoding import plain_encoding
from scipy.stats import binom

import sparker
from sparker.engine.sample import TwoSample
from sparker.findings import bound, columns, explain, mixtures, orders, regions, rows, rules, text
from sparker.findings.bound import AtLeast
from sparker.findings.decision import SURE
from sparker.findings.frames import as_frame
from sparker.nulls import Permutation, samples
from sparker.tables.encoding import Feature
from sparker.tables.frames import library_of

N_REFERENCE, N_DATA, N_PLANTED = 600, 150, 20


def spread(rng, sample):
    """A statistic that fits nothing: its answers cost no compilation."""
    return sample.data_weight @ np.sum(np.asarray(sample.points) ** 2, axis=1)


def planted(seed=0, n_planted=N_PLANTED, n_features=3):
    """Data whose first rows sit in one place."""
    rng = np.random.default_rng(seed)
    reference = rng.normal(size=(N_REFERENCE, n_features))
    data = rng.normal(size=(N_DATA, n_features))
    data[:n_planted] = 2 + 0.1 * data[:n_planted]
    return reference, data


def pool_of(reference, data, **known):
    return Permutation().pool(samples(reference, data, **known), 0)


def outcome(seed=0, n_planted=N_PLANTED, **settings):
    settings = {"n_toys": 39, "statistic": spread, "seed": seed} | settings
    return sparker.test(*planted(seed, n_planted), **settings)


@pytest.fixture(scope="module")
def found():
    return outcome()


# Sets without labels


def test_orders_put_rows_in_order_and_never_see_labels():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 2))
    some = list(orders.orders(points, points * 3, np.random.default_rng(1), 20))
    around = [one for one in some if one.kind == orders.AROUND]
    assert len(around) == 50
    for one in around:
        away = np.linalg.norm(points - points[one.centre], axis=1)
        assert one.centre not in one.rows
        np.testing.assert_array_equal(one.rows, np.argsort(away, kind="stable")[1:26])
    tails = {tuple(one.rows) for one in some if one.kind == orders.COLUMN}
    for column in points.T:
        assert tuple(np.argsort(column)[:25]) in tails
        assert tuple(np.argsort(-column)[:25]) in tails


def test_outlyingness_is_the_distance_to_neighbours_by_tree_and_by_table():
    points = np.random.default_rng(0).normal(size=(80, 14))
    for n_features in (2, 14):
        own = points[:, :n_features]
        away = np.sort(np.linalg.norm(own[:, None] - own[None], axis=-1), axis=1)
        middle = np.sum((own - own.mean(0)) ** 2, axis=1)
        expected = np.column_stack([middle, away[:, list(orders.NEIGHBOURS)]])
        np.testing.assert_allclose(
            orders.outlyingness(own, np.random.default_rng(0)), expected, atol=1e-6
        )


def test_counts_are_sums_over_the_first_rows():
    rng = np.random.default_rng(0)
    weights = rng.random((30, 4)).astype(np.float32)
    order, ends = orders.Order("any", rng.permutation(30)[:15]), orders.sizes(30)
    expected = [weights[order.rows[:end]].sum(0) for end in ends]
    np.testing.assert_allclose(orders.counts(order, weights, ends), expected, rtol=1e-5)


def test_surprise_is_the_root_of_the_deviance_on_its_side():
    seen, beside, odds = 9.0, 4.0, 0.5
    share = odds / (1 + odds)
    log_ratio = binom.logpmf(9, 13, 9 / 13) - binom.logpmf(9, 13, share)
    assert orders.surprise(np.array(seen), np.array(beside), odds) ** 2 == pytest.approx(
        2 * log_ratio
    )
    assert orders.surprise(np.array(seen), np.array(beside), odds, lack=True) == 0
    assert orders.surprise(np.array(0.0), np.array(9.0), odds, lack=True) > 0
    assert orders.surprise(np.array(0.0), np.array(0.0), odds) == 0


# At least so many


@pytest.mark.parametrize("n_planted", [0, 12])
def test_the_bound_is_rarely_above_the_truth(n_planted):
    level, n_samples, above, found = 0.1, 60, 0, []
    for seed in range(n_samples):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(240, 2))
        is_data = rng.permutation(240) < 60
        points[np.flatnonzero(is_data)[:n_planted]] = 2 + 0.1 * rng.normal(size=(n_planted, 2))
        labels = np.stack([is_data] + [rng.permutation(is_data) for _ in range(19)]).astype(float)
        toys = TwoSample(points, (1 - labels) * (60 / 180), labels)
        least = bound.at_least(toys, orders.orders(points, points, rng, 20), level, given=True)
        above += least.too_many > n_planted
        found.append(least.too_many)
    # 60 samples in which 10 % may be wrong: more than 13 of them are by chance one time in 1000.
    assert above <= 13
    assert n_planted == 0 or np.median(found) >= n_planted / 2


def test_the_bound_of_missing_rows_sees_a_hole():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(900, 1))
    is_data = rng.permutation(900) < 450
    is_data &= ~((np.abs(points[:, 0]) < 0.3) & is_data)
    labels = np.stack([is_data] + [rng.permutation(is_data) for _ in range(39)]).astype(float)
    odds = is_data.sum() / (~is_data).sum()
    toys = TwoSample(points, (1 - labels) * odds, labels)
    found = bound.at_least(toys, orders.orders(points, points, rng, 40), 0.05, given=True)
    assert 20 < found.missing < 130


def test_counts_of_all_toys_are_not_kept_order_by_order():
    rng = np.random.default_rng(0)
    is_data = np.argsort(rng.random((201, 20))) < 6
    toys = TwoSample(np.zeros((20, 1)), np.where(is_data, 0, 6 / 14), is_data.astype(float))
    many = (orders.Order("places", rng.permutation(20)) for _ in range(1000))
    tracemalloc.start()
    bound.at_least(toys, many, 0.05, given=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    counts_of_toys = 2 * len(orders.sizes(20)) * 201 * 8
    assert peak < 1000 * counts_of_toys / 2


def test_anomalous_rows_leave_fewer_ordinary_ones():
    # All 40 rows that were added to 60 ordinary ones are in the upper half, as are 30 of these.
    seen, beside = np.array([70.0]), np.array([300.0])
    kinds = {"all": [bound._Sets(seen, beside, np.full(19, 1.0))]}
    known, unknown = (bound._least(kinds, 100 / 600, n, 0.1, lack=False) for n in (100, np.inf))
    assert unknown < known <= 40


@pytest.mark.parametrize("clear", [9.0, 1.0])
def test_the_bound_by_scores_is_rarely_above_the_truth(clear):
    """Whether anomalous rows come first of all, which is the worst case, or among the others."""
    n_each, n_planted, level, found = 150, 20, 0.1, []
    is_data = np.repeat([True, False], n_each)
    mixture = mixtures.Mixture(is_data, ~is_data, np.zeros(2 * n_each, bool))
    for seed in range(100):
        rng = np.random.default_rng(seed)
        score = rng.normal(size=2 * n_each)
        score[:n_planted] += clear
        noisy = score + 0.3 * rng.normal(size=2 * n_each)
        found.append(bound.by_scores([score, noisy], mixture, rng, level))
    assert binom.sf(np.sum(np.array(found) > n_planted) - 1, len(found), level) > 1e-3
    assert clear == 1 or np.median(found) >= n_planted / 2


def test_the_bound_by_scores_counts_rows_that_score_highest_in_any_score():
    is_data = np.repeat([True, False], 30)
    mixture = mixtures.Mixture(is_data, ~is_data, np.zeros(60, bool))
    in_turn = -(np.arange(60) % 30) - 0.5 * ~is_data  # a data row, a hidden row, a data row
    first = np.where(np.arange(60) < 25, 100.0, in_turn)

    def proved(*scores):
        return bound.by_scores(scores, mixture, np.random.default_rng(0), 0.05)

    assert proved(in_turn) == proved(-first) == 0
    assert 10 < proved(first) <= 25
    assert 10 <= proved(in_turn, first) <= 25


def test_large_numbers_are_tried_in_steps_of_a_hundredth():
    tried = np.array(list(bound._steps(100_000)))
    assert tried[:100].tolist() == list(range(100))
    assert np.all(np.diff(tried) <= 1 + tried[:-1] / 100)
    assert len(tried) < 900


def test_limits_are_exceeded_in_any_kind_by_the_level_at_most():
    largest = np.random.default_rng(0).exponential([[1.0], [9.0]], size=(2, 199))
    limits = bound._limits(largest, 0.05)
    assert np.mean(np.any(largest > limits[:, None], axis=0)) <= 0.05
    assert np.mean(np.any(largest > limits[:, None], axis=0)) > 0.02


def test_few_labellings_give_no_bound():
    assert bound.can_tell(19, 0.05)
    assert not bound.can_tell(18, 0.05)
    assert not bound.can_tell(19, 0.05 / 3)


def test_bounds_agree_with_the_test():
    assert explain.agreeing(AtLeast(9, 3), 0.01, fewer=False) == (9, 3)
    assert explain.agreeing(AtLeast(0, 0), 0.01, fewer=False) == (1, 0)
    assert explain.agreeing(AtLeast(0, 0), 0.01, fewer=True) == (0, 1)
    assert explain.agreeing(AtLeast(0, 0), 0.06, fewer=False) == (0, 0)  # at a level of 10 %


# Mixtures


def test_hidden_rows_are_reference_rows_as_many_as_asked_for():
    pool = pool_of(*planted())
    for share in (0.5, 1.0):
        mixture = mixtures.hide(pool, np.random.default_rng(0), share)
        assert mixture.hidden.sum() == share * N_DATA
        assert not np.any(mixture.hidden & (mixture.is_data | (mixture.rest > 0)))
        np.testing.assert_array_equal(
            np.sort(pool.rows[mixture.is_data]), N_REFERENCE + np.arange(N_DATA)
        )
    small = mixtures.hide(pool_of(*planted()[::-1]), np.random.default_rng(0), 1.0)
    assert small.hidden.sum() == N_DATA // 2  # never more than half of the reference


def test_hidden_rows_keep_to_groups():
    groups = np.arange(N_REFERENCE) // 5, N_REFERENCE + np.arange(N_DATA) // 5
    pool = pool_of(*planted(), groups=groups)
    mixture = mixtures.hide(pool, np.random.default_rng(0), 0.5)
    n_rows = np.bincount(pool.labeller.units, mixture.hidden)
    assert set(n_rows) == {0, 5}


def test_strata_of_other_sizes_are_no_anomaly():
    """Nothing is hidden there: one stratum has fewer reference rows for its data than another."""
    rng = np.random.default_rng(0)
    strata = np.repeat([0, 1], [30, 600]), np.repeat([0, 1], [100, 100])
    reference, data = (rng.normal(size=(len(some), 2)) for some in strata)
    for rows_, some in zip((reference, data), strata, strict=True):
        rows_[:, 0] += 3 * some
    result = sparker.test(reference, data, n_toys=39, statistic=spread, strata=strata)
    assert (result.at_least, result.answers.regions) == (0, ())
    assert not any(result.columns()["significant"])


def test_rows_without_weight_are_never_hidden_and_what_cannot_be_hidden_is_not():
    reference, data = planted()
    weights = np.where(np.arange(N_REFERENCE) % 3, 1.0, 0.0), np.ones(N_DATA)
    pool = pool_of(reference, data, reference_weights=weights)
    mixture = mixtures.hide(pool, np.random.default_rng(0), 0.5)
    assert np.all(pool.measure[mixture.hidden | (mixture.rest > 0)] > 0)
    groups = np.zeros(N_REFERENCE), 1 + np.arange(N_DATA) // 30
    alone = groups[0], np.where(groups[1] == 1, 0, groups[1]) + 1
    assert len(np.unique(alone[1])) == 5
    one_group = pool_of(reference[:30], data, groups=(np.zeros(30), alone[1]))
    assert mixtures.hide(one_group, np.random.default_rng(0), 0.5) is None


def falling(rows):
    return np.exp(-2 * rows[:, 0])


def test_of_a_weighted_reference_what_weighs_much_is_no_anomaly():
    """Flat rows that weigh less and less stand for data that become fewer and fewer."""
    rng = np.random.default_rng(0)
    reference = rng.uniform([0, 0], [2, 1], size=(2000, 2))
    data = np.column_stack([rng.exponential(0.5, 2000), rng.uniform(size=2000)])
    data = data[data[:, 0] < 2][:400]
    data[:20] = [1.5, 0.5] + 0.04 * rng.normal(size=(20, 2))
    settings = {"n_toys": 39, "statistic": spread, "reference_weights": falling}
    result = sparker.test(reference, data, **settings)
    assert np.mean(result.ranking[:20] < 20) > 0.8
    best = result.answers.regions[0]
    assert np.mean(np.array(best.rows) < 20) > 0.5


def test_the_rest_stands_for_what_is_hidden_too():
    """The weighted mean of the rest is that of all, although what weighs much is hidden first."""
    rng = np.random.default_rng(0)
    reference, data = rng.uniform(size=(4000, 1)), rng.uniform(size=(1500, 1))
    weights = lambda rows: 0.05 + rows[:, 0] ** 4  # noqa: E731
    pool = pool_of(reference, data, reference_weights=(weights(reference), weights(data)))
    means = [
        np.average(pool.points[:, 0], weights=mixtures.hide(pool, rng, 1.0).rest) for _ in range(20)
    ]
    truth = np.average(reference[:, 0], weights=weights(reference))
    error = np.std(means) / 20**0.5
    assert abs(np.mean(means) - truth) < 4 * error
    assert error < 0.01


def test_the_rest_weighs_as_much_as_the_mixture():
    pool = pool_of(*planted())
    some = [mixtures.hide(pool, np.random.default_rng(i), 0.5) for i in range(3)]
    batch = mixtures.as_samples(pool.points, some)
    np.testing.assert_allclose(batch.reference_weight.sum(1), batch.data_weight.sum(1))
    assert np.all((batch.reference_weight > 0) == np.stack([one.rest > 0 for one in some]))


# Which rows


def test_members_share_the_surprise_of_their_sets():
    pool = pool_of(*planted())
    mixture = mixtures.hide(pool, np.random.default_rng(0), 1.0)
    some = list(orders.orders(pool.points, pool.points, np.random.default_rng(1), 20))
    got = rows.membership([mixture], some, len(pool.points))[0]
    odds = mixture.marked.sum() / mixture.rest.sum()
    expected = np.zeros(len(pool.points))
    for order in some:
        for end in orders.sizes(len(pool.points)):
            inside = order.rows[:end]
            told = orders.surprise(
                np.sum(mixture.marked[inside]), np.sum(mixture.rest[inside]), odds
            )
            expected[inside] = np.maximum(expected[inside], told)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_crowds_are_rows_of_the_mixture_among_the_nearest(monkeypatch):
    pool = pool_of(*planted())
    mixture = mixtures.hide(pool, np.random.default_rng(0), 1.0)
    x = pool.points[:, :2]
    away = np.linalg.norm(x[:, None] - x, axis=2)

    def slowly(part):
        away_there = away[np.ix_(part, part)]
        np.fill_diagonal(away_there, np.inf)
        for row, distances in zip(part, away_there, strict=True):
            near = part[np.argsort(distances)]
            told = []
            for k in rows.CROWDS:
                counts = np.sum(mixture.marked[near[:k]]), np.sum(mixture.rest[near[:k]])
                sides = [orders.surprise(*counts, mixture.odds_of_rest, lack=x) for x in (0, 1)]
                told.append(sides[0] - sides[1])
            yield row, np.mean(told)

    def check(got, parts):
        for part in parts:
            for row, expected in slowly(part):
                assert got[row] == pytest.approx(expected, abs=1e-5)

    everything = np.arange(len(x))
    check(rows.crowds([mixture], x, np.random.default_rng(1))[0], [everything])
    monkeypatch.setattr(rows, "MAX_SHARED", len(x) // 2)
    turn = np.random.default_rng(1).permutation(len(x))
    n_parts = -(-len(x) // (len(x) // 2))
    check(rows.crowds([mixture], x, np.random.default_rng(1))[0], np.array_split(turn, n_parts))


def test_probabilities_are_shares_of_rows_that_hidden_ones_do_not_explain():
    is_data = np.repeat([True, False, True, False], [40, 20, 10, 0])
    hidden = ~is_data
    score = np.repeat([0.0, 0.0, 1.0], [40, 20, 10]) + np.linspace(0, 1e-3, 70)
    mixture = mixtures.Mixture(is_data, hidden, np.zeros(70, bool))
    p = rows.probability(score, mixture)
    assert mixture.odds == 2.5
    # Ten data rows above all hidden ones, of which 2.5 would be there by chance.
    np.testing.assert_allclose(p[40:], 0.75)
    assert np.all((p >= 0) & (p <= 1))
    assert np.all(np.diff(p[np.argsort(score[is_data])]) >= 0)


def test_p_values_of_ordinary_rows_are_uniform_or_larger():
    rng = np.random.default_rng(0)
    small = []
    for _ in range(400):
        is_data = rng.permutation(60) < 30
        mixture = mixtures.Mixture(is_data, ~is_data, np.zeros(60, bool))
        small.append(rows.p_values(rng.normal(size=60), mixture)[0] <= 0.1)
    assert binom.sf(sum(small) - 1, 400, 0.1) > 1e-3
    assert rows.p_values(np.arange(60.0), mixture).min() >= 1 / 31


def test_scores_do_not_depend_on_the_order_of_rows_and_need_no_model():
    rng = np.random.default_rng(0)
    member = rng.random((2, 40))
    log_ratios = rng.normal(size=(2, 40, 3))
    turn = rng.permutation(40)

    def scored(log_ratios, member):
        return rows.scores(rows.respects(log_ratios, member), np.random.default_rng(0))

    one, other = scored(log_ratios, member), scored(log_ratios[:, turn], member[:, turn])
    np.testing.assert_allclose(one[:, turn], other)
    alone = scored(np.zeros((2, 40, 0)), member)
    np.testing.assert_array_equal(np.argsort(alone, axis=1), np.argsort(member, axis=1))


def test_planted_rows_come_first_and_make_up_the_list(found):
    assert np.mean(found.ranking[:N_PLANTED] < N_PLANTED) > 0.9
    in_list = np.flatnonzero(found.listed(0.2))
    assert np.mean(in_list < N_PLANTED) > 0.7
    assert len(in_list) >= N_PLANTED * 0.8
    assert set(np.flatnonzero(found.listed(0.05))) <= set(in_list)
    for fdr in (0, 1, -0.1):
        with pytest.raises(ValueError, match="fdr must lie between 0 and 1"):
            found.listed(fdr)


# Where


def test_the_range_of_ordinary_rows_covers_them():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        share = rng.choice([0.3, 0.5, 0.8])
        b, r = rng.poisson([8 * share, 8 * (1 - share)])
        low, high = regions.ordinary(r, share)
        inside.append(low <= b <= high)
    assert np.mean(inside) >= 0.95


def test_a_rule_finds_the_planted_rows(found):
    first = found.answers.regions[0]
    assert first.is_significant(0.05)
    assert set(range(N_PLANTED)) - set(first.rows) == set()
    assert first.n_data == len(first.rows)
    assert first.n_data - first.expected == pytest.approx(first.too_many)
    low, high = first.interval
    assert low <= N_PLANTED <= high
    assert 1 <= len(first.conditions) <= rules.MAX_CONDITIONS


def test_what_is_printed_is_what_was_counted(found):
    for region in found.answers.regions:
        inside = np.ones(N_DATA, bool)
        for condition in region.conditions:
            inside &= condition.holds(found.data)
            for bound_ in (condition.above, condition.at_most):
                if bound_ is not None:
                    assert f"{bound_:g}" in region.rule(found.features)
        if region.conditions:
            np.testing.assert_array_equal(np.flatnonzero(inside), region.rows)


def test_rules_found_one_after_the_other_count_all_their_rows():
    """A second rule may share rows with the first: all that it says holds for all its rows."""
    reference, data = planted()
    data[N_PLANTED : 2 * N_PLANTED] = [2, 2, -3] + 0.1 * data[N_PLANTED : 2 * N_PLANTED]
    pool = pool_of(reference, data)
    mixture = mixtures.hide(pool, np.random.default_rng(0), 1.0)
    some = list(orders.orders(pool.points, pool.points, np.random.default_rng(1), 200))
    score = rows.membership([mixture], some, len(pool.points))[0]
    found = rules.search(pool.points, mixture, some, score)
    assert len([one for one in found if one.conditions]) >= 2
    for one in found:
        if one.conditions:
            holds = np.all([condition.holds(pool.points) for condition in one.conditions], axis=0)
            np.testing.assert_array_equal(holds, one.inside)


def test_of_many_columns_those_that_differ_are_searched(monkeypatch):
    monkeypatch.setattr(rules, "MAX_COLUMNS", 2)
    reference, data = planted(n_planted=0, n_features=6)
    data[:, [1, 4]] += 1
    pool = pool_of(reference, data)
    mixture = mixtures.hide(pool, np.random.default_rng(0), 1.0)
    np.testing.assert_array_equal(np.flatnonzero(rules.telling(pool.points, mixture)), [1, 4])
    found = rules.search(pool.points, mixture, [], np.zeros(len(pool.points)))
    assert {one.column for rule in found for one in rule.conditions} <= {1, 4}


def test_regions_of_ordinary_rows_are_confirmed_no_more_often_than_they_may():
    confirmed = 0
    for seed in range(60):
        pool = pool_of(*planted(seed, n_planted=0, n_features=2))
        mixture = mixtures.hide(pool, np.random.default_rng(seed), 1.0)
        some = list(orders.orders(pool.points, pool.points, np.random.default_rng(seed), 2000))
        score = np.random.default_rng(seed).random(len(pool.points))
        some_regions = rules.search(pool.points, mixture, some, score)
        confirmed += any(
            regions.confirm(one, mixture, len(some_regions), None, independent=True)[3] <= 0.05
            for one in some_regions
        )
    assert binom.sf(confirmed - 1, 60, 0.05) > 1e-3


def test_bounds_of_columns_far_from_zero_keep_their_digits():
    values = 1e6 + np.random.default_rng(0).normal(size=(200, 1))
    codes, edges = rules._coded(values, np.ones(values.shape[1], bool))
    assert len(edges[0]) > 10
    assert len(np.unique(codes)) > 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_are_in_the_precision_of_the_values(dtype):
    """Whoever types the rule as it is printed counts the same rows."""
    rng = np.random.default_rng(0)
    reference, data = (np.round(rng.normal(size=(n, 2)), 1).astype(dtype) for n in (600, 150))
    data[:40, 0] = 1.3
    result = sparker.test(reference, data, n_toys=19, statistic=spread)
    for region in result.answers.regions:
        for one in region.conditions:
            inside = one.holds(data)
            assert set(region.rows) <= set(np.flatnonzero(inside))
            above = -np.inf if one.above is None else one.above
            at_most = np.inf if one.at_most is None else one.at_most
            typed = data[:, one.column].astype(str).astype(float)
            np.testing.assert_array_equal(inside, (typed > above) & (typed <= at_most))


def test_rules_that_take_all_rows_leave_nothing_to_search():
    """Of few values, three rules may hold for all rows there are."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        reference, data = (rng.integers(0, 2, (40, 1)).astype(float) for _ in range(2))
        assert sparker.test(reference, data, n_toys=3, statistic=spread).answers is not None


def test_a_second_region_is_confirmed_by_rows_of_its_own():
    mixture = mixtures.Mixture(*np.array([[1] * 20 + [0] * 40, [0] * 20 + [1] * 20 + [0] * 20,
                                          [0] * 40 + [1] * 20], bool))  # fmt: skip
    inside = np.arange(60) < 22
    shared = rules.Found(inside, inside & (np.arange(60) >= 18), (), None, False, 1.0)
    alone = shared._replace(own=inside)
    assert regions.confirm(alone, mixture, 1, None, independent=True)[3] < 0.001
    n_data, _, _, p = regions.confirm(shared, mixture, 1, None, independent=True)
    assert (n_data, p) == (20, pytest.approx(binom.sf(1, 4, 0.5)))


def test_a_column_of_one_value_has_no_rules():
    values = np.column_stack([np.ones(300), np.random.default_rng(0).normal(size=300)])
    assert len(rules._coded(values, np.ones(values.shape[1], bool))[1][0]) == 0


def test_conditions_in_words():
    names = [Feature("mass"), Feature("a b")]
    assert rules.Condition(0, 1.5, None).text(names) == "mass > 1.5"
    assert rules.Condition(1, None, -2.0).text(names) == "a b <= -2"
    assert rules.Condition(0, 1e6, 2e6).text(names) == "1000000 < mass <= 2000000"
    assert rules.Condition(0, 1e12 + 0.25, None).text(names) == "mass > 1000000000000.25"
    assert rules.Condition(0, None, 1e-30).text(names) == "mass <= 1e-30"


# Column by column


@pytest.mark.parametrize("kind", ["smooth", "few values", "skewed and tied"])
@pytest.mark.parametrize(("n_reference", "n_data"), [(120, 40), (40, 40), (200, 9)])
def test_columns_keep_their_level(kind, n_reference, n_data):
    wrong = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        size = n_reference + n_data, 3
        every = {
            "smooth": rng.normal(size=size),
            "few values": rng.poisson(1.0, size=size).astype(float),
            "skewed and tied": np.round(rng.exponential(20, size=size)),
        }[kind]
        pool = pool_of(every[:n_reference], every[n_reference:])
        tested = columns.column_tests(pool, rng, plain_encoding((), 3), independent=True)
        wrong += any(one.p_value <= 0.05 for one in tested)
    assert binom.sf(wrong - 1, 150, 0.05) > 1e-3


def test_columns_that_differ_are_found_and_named():
    rng = np.random.default_rng(0)
    reference = np.column_stack([rng.normal(size=300), rng.integers(0, 3, 300), np.ones(300)])
    data = np.column_stack([rng.normal(1, 1, size=100), rng.integers(1, 4, 100), np.ones(100)])
    pool = pool_of(reference, data)
    first, second = columns.column_tests(pool, rng, plain_encoding((), 3), independent=True)
    assert (first.column, first.test) == (0, columns.SMOOTH)
    assert (second.column, second.test) == (1, columns.COUNTED)
    assert max(first.p_value, second.p_value) <= 0.05
    assert first.data_quartiles[1] > first.reference_quartiles[1]


def test_columns_of_groups_are_compared_with_what_groups_may_do():
    """Rows of a group are copies: taken one by one, columns would differ far too often."""
    wrong = {True: 0, False: 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        every = np.repeat(rng.normal(size=(40, 1)), 8, axis=0)
        groups = np.repeat(np.arange(40), 8)
        pool = pool_of(every[:240], every[240:], groups=(groups[:240], groups[240:]))
        for independent in wrong:
            (one,) = columns.column_tests(pool, rng, plain_encoding((), 1), independent=independent)
            wrong[independent] += one.p_value <= 0.05
    assert wrong[True] > 20
    assert binom.sf(wrong[False] - 1, 60, 0.05) > 1e-3


# Through the test


def test_without_anomalies_nothing_is_said_to_be_anomalous():
    result = outcome(seed=3, n_planted=0)
    assert result.p_value > 0.05
    assert (result.at_least, result.missing_at_least) == (0, 0)
    lines = result.summary().splitlines()
    assert lines[1].startswith("No significant difference (p = ")
    assert all(line.startswith("Note") for line in lines[2:])
    assert not any(result.regions()["significant"])
    assert len(result.rows(fdr=0.2)) == 0


def test_a_region_that_is_significant_alone_is_one_line():
    """A statistic that compares something else cannot hide what is plain."""
    blind = outcome(statistic=lambda rng, sample: rng.random())
    assert blind.p_value > 0.05
    assert blind.answers.regions[0].p_value <= SURE
    assert blind.answers.at_least.too_many >= 1
    assert blind.at_least == 0
    assert "though the test as a whole is not significant" in " ".join(blind.summary().split())
    weaker = blind.answers.regions[0]._replace(p_value=0.01)
    silent = dataclasses.replace(blind, answers=blind.answers._replace(regions=(weaker,)))
    assert not silent.significant_regions
    assert "Region" not in silent.summary()


def test_nothing_prints_zero_beside_an_anomaly(found):
    assert found.p_value <= 0.05
    assert 1 <= found.at_least <= N_PLANTED
    assert f"at least {found.at_least} of {N_DATA} data rows" in found.summary()


KNOWN = {
    "strata": {"strata": (np.arange(N_REFERENCE) % 4, np.arange(N_DATA) % 3)},
    "weights": {"reference_weights": np.linspace(1, 2, N_REFERENCE)},
    "expected": {"expected": 140.0},
    "simulator": {"null": sparker.Simulator(lambda rng, n: rng.normal(size=(n, 3)))},
    "groups": {"groups": (np.arange(N_REFERENCE) // 3, N_REFERENCE + np.arange(N_DATA) // 3)},
    "weights of both": {"reference_weights": lambda rows: np.exp(0.1 * rows[:, 0])},
    "few labellings": {"groups": (np.arange(N_REFERENCE) // 150, 9 + np.arange(N_DATA) // 150)},
}


@pytest.mark.parametrize("name", KNOWN)
def test_every_kind_of_test_has_answers(name, tmp_path):
    reference, data = planted()
    settings = {"n_toys": 39, "statistic": spread} | KNOWN[name]
    result = sparker.test(reference, data, **settings)
    found = result.answers
    if name not in ("few labellings", "strata"):
        assert np.mean(result.ranking[:N_PLANTED] < N_PLANTED) > 0.8
        assert found.regions
    assert len(found.columns) == 3
    one_by_one = name not in ("groups", "weights of both", "few labellings", "strata")
    assert (found.row_p_values is not None) == one_by_one
    assert all((region.p_value is not None) == one_by_one for region in found.regions)
    assert (found.at_least is None) == (name == "few labellings")
    if not one_by_one:
        with pytest.raises(ValueError, match="no rows can be flagged"):
            result.rows(fdr=0.2)
    path = tmp_path / "result"
    result.save(path)
    assert sparker.load(path) == result
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.summary()
    assert result.is_significant or "Rows" not in result.summary()
    if name in ("groups", "weights of both") and result.is_significant:
        assert " ".join(result.summary().split()).count(text.NOT_ALONE) == 2


def test_rows_that_cannot_be_relabelled_cost_the_answers_and_not_the_test():
    reference, data = planted()
    uneven = np.exp(np.linspace(0, 40, N_REFERENCE))
    result = sparker.test(
        reference, data, n_toys=3, statistic=spread, reference_weights=uneven,
        null=sparker.Simulator(lambda rng, n: rng.normal(size=(n, 3))),
    )  # fmt: skip
    assert result.answers is None
    assert any("which is not said" in note for note in result.notes)


def test_of_very_many_reference_rows_some_are_enough(monkeypatch):
    monkeypatch.setattr(explain, "MAX_REFERENCE", (300, 1))
    strata = np.arange(N_REFERENCE) % 2, np.arange(N_DATA) % 2
    observed = samples(*planted(), strata=strata, reference_weights=np.arange(1.0, 601))
    some, numbers = explain.enough(observed, np.random.default_rng(0))
    assert len(some.reference) == len(np.unique(numbers)) == 300
    np.testing.assert_array_equal(some.reference, observed.reference[numbers])
    np.testing.assert_array_equal(some.weights, observed.weights[numbers])
    np.testing.assert_array_equal(some.strata[0], strata[0][numbers])
    assert np.mean(outcome().ranking[:N_PLANTED] < N_PLANTED) > 0.8


def test_rows_that_took_no_part_come_last():
    groups = np.arange(N_REFERENCE) // 4, N_REFERENCE + np.arange(N_DATA) // 5
    result = outcome(null=Permutation(group_rows=4), groups=groups)
    unknown = np.isnan(result.answers.probability)
    assert unknown.sum() == N_DATA // 5
    assert unknown[result.ranking[-N_DATA // 5 :]].all()


def test_answers_can_be_left_out():
    result = outcome(explain=False, n_toys=3)
    assert result.answers is result.at_least is None
    with pytest.raises(ValueError, match="explain=True"):
        result.rows()
    assert "how_many" not in result.to_dict()


@pytest.mark.parametrize(
    ("frame", "kind"), [(pd.DataFrame, "pandas"), (pl.DataFrame, "polars"), (None, None)]
)
def test_tables_come_back_as_they_came(frame, kind, found, tmp_path):
    names = ["row", "size", "weight"]
    result = dataclasses.replace(found, encoding=plain_encoding(names, 3), frame=kind)
    table = result.rows()
    if frame is None:
        assert table.dtype.names == ("row_", "probability", "region", "p_value", *names)
        assert len(table) == N_DATA
    else:
        assert isinstance(table, frame)
        assert library_of(table) == kind
        assert list(table.columns) == ["row_", "probability", "region", "p_value", *names]
    np.testing.assert_array_equal(np.asarray(table["row_"]), result.ranking)
    np.testing.assert_array_equal(np.asarray(table["size"]), result.data[result.ranking, 1])
    assert np.all(np.diff(np.asarray(table["probability"])) <= 0)
    in_list = result.rows(fdr=0.2)
    assert set(np.asarray(in_list["row_"])) == set(np.flatnonzero(result.listed(0.2)))
    assert list(np.asarray(result.columns()["column"])) != names  # the most different first
    assert np.asarray(result.regions()["significant"])[0]
    path = tmp_path / "result"
    result.save(path)
    assert np.array_equal(np.asarray(sparker.load(path).rows()["row_"]), result.ranking)


@pytest.mark.parametrize("names", [["a", "a", "b"], ["", "x\ny", "z"]])
def test_columns_named_alike_or_not_at_all_are_told_apart(names, found):
    result = dataclasses.replace(found, encoding=plain_encoding(names, 3))
    assert len(set(result.column_labels)) == 3
    assert not any("\n" in label or not label.strip() for label in result.column_labels)
    assert len(set(result.tested_labels)) == 3
    if len(set(names)) == 3:
        assert len(result.rows().dtype.names) == 7
    twice = pd.DataFrame(found.data, columns=names)
    assert library_of(twice) in (None, "pandas")


def test_pyarrow_tables_come_with_their_names():
    pa = pytest.importorskip("pyarrow")
    reference, data = (
        pa.table({name: rows_[:, i] for i, name in enumerate("xyz")}) for rows_ in planted()
    )
    result = sparker.test(reference, data, n_toys=3, statistic=spread)
    assert result.names == ("x", "y", "z")
    assert isinstance(result.rows(), pa.Table)


def test_the_rows_named_first_are_in_the_list(found):
    in_list = np.flatnonzero(found.listed(text.FDR))
    named = text.rows(found).split("most anomalous: ")[1].split(", ")
    assert {int(row) for row in named} <= set(in_list)


def test_frames_of_a_library_that_is_gone_are_refused_with_its_name():
    assert library_of(np.zeros((2, 2))) is None
    with pytest.raises(ValueError, match="cudf"):
        as_frame({"row": [1]}, "cudf")


def test_json_says_what_the_summary_says(found):
    plain = found.to_dict()
    assert plain["how_many"]["at_least"] == found.at_least
    assert len(plain["rows"]["flagged"]) == found.listed(text.FDR).sum()
    assert plain["rows"]["most_anomalous"][0]["row"] == found.ranking[0]
    first = plain["regions"][0]
    said = f"Where {first['rule']}: {first['data_rows']} data rows"
    assert said in " ".join(found.summary().split())
    assert {one["column"] for one in plain["columns_alone"]} == set(found.column_labels)


def test_a_monitor_explains_alarms_only(monkeypatch):
    reference, data = planted()
    monitor = sparker.Monitor(
        reference, alpha=0.1, n_toys=39, config=sparker.FitConfig(n_kernels=2),
        widths=sparker.WidthConfig(steps=10, n_widths=2),
    )  # fmt: skip
    quiet = planted(seed=1, n_planted=0)[1]
    looks = list(monitor.watch([quiet, data]))
    assert [look.alarm for look in looks] == [False, True]
    assert [look.result.answers is None for look in looks] == [True, False]


def test_what_would_take_more_memory_than_there_is_is_not_begun(monkeypatch):
    """The system ends a process that takes too much, and the p-value would be lost with it."""
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(60, 2)), rng.normal(size=(20, 2))
    options = {"statistic": sparker.statistics.Mahalanobis(), "n_toys": 5, "progress": False}
    assert sparker.test(reference, data, **options).answers is not None
    monkeypatch.setattr(explain, "free_on_machine", lambda: 80 * 8192.0)
    found = sparker.test(reference, data, **options)
    assert found.answers is None
    assert any("of memory" in note for note in found.notes)
