"""Who may be data in a toy, how likely, and with what weight: all of it against brute force."""

import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chisquare

import sparker
from sparker.nulls import Permutation, Simulator, samples
from sparker.nulls.agreement import ALPHA, disagreement
from sparker.nulls.labels import (
    DATA,
    MAX_LISTED,
    OUT,
    REFERENCE,
    Labeller,
    exchanges_of,
)
from sparker.nulls.odds import LEAF, ConditionalBernoulli
from sparker.nulls.repeats import check_disjoint, check_fresh
from sparker.nulls.unweighted import keep_by_weight

pytestmark = pytest.mark.unit

RARE = 1e-6
"""Chance of each statistical assertion to fail for code that is right."""


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])[0]


CHEAP = {
    "statistic": mean_shift,
    "preprocess": sparker.unchanged,
    "progress": False,
    "explain": False,
}


def run(reference, data, **settings):
    return sparker.test(reference, data, **(CHEAP | settings))


# Subsets by the odds of their members.


def chances(odds, n):
    """Of every subset of n rows, by brute force."""
    subsets = list(itertools.combinations(range(len(odds)), n))
    products = np.array([np.prod(odds[list(subset)]) for subset in subsets])
    return dict(zip(subsets, products / products.sum(), strict=True))


def sums_of_products(odds, n):
    """Elementary symmetric polynomials, from order 0 to n."""
    sums = np.zeros(n + 1)
    sums[0] = 1
    for one in odds:
        sums[1:] += one * sums[:-1]
    return sums


def inclusion(odds, n):
    """The chance of each row to be chosen."""
    without = [sums_of_products(np.delete(odds, i), n - 1)[-1] for i in range(len(odds))]
    return odds * without / sums_of_products(odds, n)[-1]


def assert_counts(found, expected):
    """Counts of outcomes are those of their chances; rare outcomes are taken together."""
    total = sum(found.values())
    assert set(found) <= {outcome for outcome, p in expected.items() if p > 0}
    likely = [outcome for outcome, p in expected.items() if p * total >= 5]
    counts = [found.get(outcome, 0) for outcome in likely]
    means = [expected[outcome] * total for outcome in likely]
    rest = total - sum(means)
    if rest > 1e-6 * total:
        counts.append(total - sum(counts))
        means.append(rest)
    assert chisquare(counts, means).pvalue > RARE


SMALL_SETS = {
    "three": ([1.0, 2.0, 3.0], 2),
    "equal": ([1.0] * 6, 3),
    "zero odds": ([0.5, 0.0, 3.0, 1.0, 0.0, 2.0], 2),
    "one of them": ([0.1, 10.0, 1.0, 0.0], 1),
    "all but one": ([0.3, 1.0, 2.0, 5.0, 0.7], 4),
    "two leaves": (np.linspace(0.2, 3, LEAF + 3), 2),
    "three leaves": (np.linspace(2, 0.1, 2 * LEAF + 3), 2),
}


@pytest.mark.parametrize("case", SMALL_SETS)
@pytest.mark.parametrize("usual", [True, False])
def test_subsets_are_as_likely_as_the_product_of_their_odds(case, usual):
    odds, n = np.array(SMALL_SETS[case][0]), SMALL_SETS[case][1]
    other = n if usual else max(1, n - 1)  # of another size than it was made for
    sample = ConditionalBernoulli(odds, other)
    rng = np.random.default_rng(0)
    found = {}
    for _ in range(3000):
        subset = tuple(sample(rng, None if usual else n).tolist())
        found[subset] = found.get(subset, 0) + 1
    assert_counts(found, chances(odds, n))


ODDS = {
    "lognormal": np.exp(np.random.default_rng(0).normal(size=200)),
    "two kinds": np.repeat([0.05, 4.0], [150, 50]),
    "steep": np.logspace(-8, 8, 120),
    "with zeros": np.tile([0.0, 1.0, 2.0, 5.0], 50),
}


@pytest.mark.parametrize("kind", ODDS)
@pytest.mark.parametrize("n", [3, 40])
def test_rows_are_chosen_as_often_as_symmetric_polynomials_say(kind, n):
    odds = ODDS[kind]
    sample = ConditionalBernoulli(odds, n)
    rng, n_draws = np.random.default_rng(n), 1500
    counts = np.zeros(len(odds))
    for _ in range(n_draws):
        chosen = sample(rng)
        assert len(chosen) == n
        assert np.all(np.diff(chosen) > 0)
        counts[chosen] += 1
    p = inclusion(odds, n)
    assert p.sum() == pytest.approx(n)
    assert np.all(counts[p == 0] == 0)
    unsure = n_draws * p * (1 - p) > 5
    z = (counts - n_draws * p)[unsure] / np.sqrt(n_draws * p * (1 - p))[unsure]
    if len(z):
        assert np.abs(z).max() < 6
        assert np.mean(z**2) < 1 + 8 * np.sqrt(2 / len(z))
    certain = p > 1 - 1e-9
    assert np.all(counts[certain] == n_draws)


@pytest.mark.parametrize("n", [0, 1, 7, 30, 45])
def test_a_subset_of_another_size_has_this_size(n):
    sample = ConditionalBernoulli(np.random.default_rng(1).uniform(0.5, 2, 100), 20)
    rng = np.random.default_rng(0)
    assert {len(sample(rng, n)) for _ in range(50)} == {n}


@pytest.mark.parametrize(("n_usual", "n"), [(200, 300), (300, 200), (200, 399)])
def test_a_subset_may_be_of_a_very_different_size(n_usual, n):
    sample = ConditionalBernoulli(np.ones(400), n_usual)
    rng = np.random.default_rng(0)
    found = [sample(rng, n) for _ in range(200)]
    assert {len(chosen) for chosen in found} == {n}
    in_first = np.array([np.sum(chosen < 200) for chosen in found])
    spread = math.sqrt(n * (400 - n) / (4 * 399))
    assert abs(in_first.mean() - n / 2) < 5 * spread / math.sqrt(200)


def test_a_toy_never_needs_more_rows_than_there_are_with_weight():
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(40, 1)), rng.normal(size=(12, 1))
    weights = np.repeat([0.0, 1.0], [35, 5]), np.ones(12)
    with pytest.raises(ValueError, match="leaves no reference"):
        run(reference, data, n_toys=99, expected=12.0, reference_weights=weights)


def test_with_extreme_odds_only_the_likely_subsets_occur():
    odds = np.repeat([1e-8, 1.0, 1e8], [40, 30, 20])
    rng = np.random.default_rng(0)
    for n in (10, 20, 35, 50, 60):
        sample = ConditionalBernoulli(odds, n)
        for _ in range(20):
            chosen = sample(rng)
            assert len(chosen) == n
            assert np.sum(chosen >= 70) == min(n, 20)
            assert np.sum(chosen >= 40) == min(n, 50)


@pytest.mark.parametrize("n_rows", [1, 5, LEAF, LEAF + 1, 100])
def test_all_rows_are_chosen_where_no_other_choice_is_left(n_rows):
    rng = np.random.default_rng(0)
    odds = rng.uniform(0.1, 9, n_rows)
    np.testing.assert_array_equal(ConditionalBernoulli(odds, n_rows)(rng), np.arange(n_rows))
    with_zeros = np.concatenate([np.zeros(20), odds, np.zeros(3)])
    chosen = ConditionalBernoulli(with_zeros, n_rows)(rng)
    np.testing.assert_array_equal(chosen, 20 + np.arange(n_rows))


@pytest.mark.parametrize("unit", [1e-100, 3.0, 1e100])
def test_odds_have_no_unit(unit):
    odds = np.exp(np.random.default_rng(0).normal(size=150))
    one, other = ConditionalBernoulli(odds, 30), ConditionalBernoulli(odds * unit, 30)
    for seed in range(50):
        chosen = (sample(np.random.default_rng(seed)) for sample in (one, other))
        np.testing.assert_array_equal(*chosen)


# Labels, and what may change places.


def test_classes_of_one_shape_change_places_together_and_others_not_at_all():
    # Two of five, two of five, one of three, none of two, two of two.
    classes = np.repeat([3, 1, 5, 0, 4], [5, 5, 3, 2, 2])
    is_data = np.array([1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1], bool)
    order = np.random.default_rng(0).permutation(len(classes))
    exchanges = exchanges_of(classes[order], is_data[order])
    shapes = {exchange.members.shape: exchange.k for exchange in exchanges}
    assert shapes == {(2, 5): 2, (1, 3): 1}
    for exchange in exchanges:
        for members in exchange.members:
            assert len(set(classes[order][members])) == 1
            assert is_data[order][members].sum() == exchange.k
    by_odds = exchanges_of(classes[order], is_data[order], np.ones(len(classes)))
    assert sorted((e.members.shape, e.k) for e in by_odds) == [((1, 3), 1)] + 2 * [((1, 5), 2)]
    assert all(exchange.by_odds.n == exchange.k for exchange in by_odds)


def labeller_of(classes, is_data):
    classes, is_data = np.asarray(classes), np.asarray(is_data, bool)
    roles = np.where(is_data, DATA, REFERENCE).astype(np.int8)
    return Labeller(np.arange(len(classes)), roles, exchanges_of(classes, is_data))


TWO_CLASSES = [0, 1, 0, 1, 0, 1, 0], [1, 0, 0, 1, 1, 0, 0]  # two of four, one of three


def test_every_labelling_is_listed_once():
    labeller = labeller_of(*TWO_CLASSES)
    assert labeller.n_labellings == 6 * 3
    listed = [tuple(labeller.listed(index) == DATA) for index in range(18)]
    assert len(set(listed)) == 18
    in_first = np.array(TWO_CLASSES[0]) == 0
    assert all(np.sum(np.array(one)[in_first]) == 2 and np.sum(one) == 3 for one in listed)
    assert listed[labeller.index] == tuple(np.array(TWO_CLASSES[1], bool))


def test_drawn_labellings_are_all_as_likely():
    labeller = labeller_of(*TWO_CLASSES)
    expected = {tuple(labeller.listed(index) == DATA): 1 / 18 for index in range(18)}
    rng, found = np.random.default_rng(0), {}
    for _ in range(5000):
        drawn = tuple(labeller.draw(rng) == DATA)
        found[drawn] = found.get(drawn, 0) + 1
    assert_counts(found, expected)


def test_too_many_labellings_are_not_listed():
    def n_labellings(m, k, n_classes=1):
        is_data = np.tile(np.arange(m) < k, n_classes)
        return labeller_of(np.repeat(np.arange(n_classes), m), is_data).n_labellings

    assert n_labellings(MAX_LISTED, 1) == MAX_LISTED
    assert n_labellings(MAX_LISTED + 1, 1) is None
    assert n_labellings(2, 1, 13) == 2**13
    assert n_labellings(2, 1, 14) is None
    assert n_labellings(2, 1, 1000) is None


# Pools. Rows are their own numbers, so that it can be told which are which.


def numbers(n_reference, n_data):
    rows = np.arange(float(n_reference + n_data))[:, None]
    return rows[:n_reference], rows[n_reference:]


def pool_of(n_reference=30, n_data=10, *, null=None, seed=0, **options):
    """The pool that a scheme makes, and the row that stands in each place of it."""
    observed = samples(*numbers(n_reference, n_data), **options)
    experiments = (null or Permutation()).experiments(observed, seed)
    pool = experiments.source.toys.__self__
    return pool, pool.points[:, 0].astype(int)


def data_of(pool, rows, number):
    return frozenset(rows[pool.roles(number) == DATA].tolist())


RNG = np.random.default_rng(0)
STRATA = np.arange(30) % 3, np.repeat([0, 1, 2], [5, 1, 4])
UNEVEN = RNG.uniform(0.5, 2, 30)
OF_BOTH = UNEVEN, RNG.uniform(0.5, 2, 10)
GROUPS = (
    np.repeat(np.arange(11), [3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2]),
    100 + np.repeat([0, 1, 2], [3, 5, 2]),
)
OTHERS = 40.0 + np.arange(50)[:, None]

POOLS = {
    "plain": {},
    "strata": {"strata": STRATA},
    "groups": {"groups": GROUPS},
    "groups in strata": {"groups": GROUPS, "strata": (GROUPS[0] % 2, GROUPS[1] % 2)},
    "weights": {"reference_weights": np.tile([1.0, 0.5, 2.0], 10)},
    "weights of both": {"reference_weights": OF_BOTH},
    "weights in strata": {"reference_weights": OF_BOTH, "strata": STRATA},
    "expected": {"expected": 12.5},
    "expected and weights": {"expected": 12.5, "reference_weights": OF_BOTH},
    "simulator": {"null": Simulator(OTHERS)},
    "weights and simulator": {"null": Simulator(OTHERS), "reference_weights": UNEVEN},
    "expected and simulator": {"null": Simulator(OTHERS), "expected": 12.5},
}


@pytest.mark.parametrize("case", POOLS)
def test_observed_and_toys_have_the_same_weight_in_all(case):
    options = POOLS[case]
    pool, rows = pool_of(**options)
    for number in range(min(20, 1 + (pool.experiments().n_toys or 20))):
        reference, data = pool.weights(number)
        total = options.get("expected") or data.sum()
        assert reference.sum() == pytest.approx(total, rel=1e-12)
        assert not np.any((reference > 0) & (data > 0))
        assert set(data) <= {0.0, 1.0}
        if "expected" not in options:
            assert data.sum() == 10
        if "strata" in options:
            strata = np.concatenate(options["strata"])[rows]
            by_stratum = (np.bincount(strata, weight) for weight in (reference, data))
            np.testing.assert_allclose(*by_stratum, rtol=1e-12)
    assert data_of(pool, rows, 0) == set(range(30, 40))


@pytest.mark.parametrize("case", POOLS)
def test_reference_rows_weigh_as_they_are_given(case):
    options = POOLS[case]
    pool, rows = pool_of(**options)
    own = np.ones(90)
    given = options.get("reference_weights")
    if isinstance(given, tuple):
        own[:40] = np.concatenate(given)
    elif given is not None and "null" in options:
        own[:30] = given
    for number in (0, 1, 2):
        weight, _ = pool.weights(number)
        ratio = weight[weight > 0] / own[rows[weight > 0]]
        strata = np.zeros(len(ratio), int)
        if "strata" in options:
            strata = np.concatenate(options["strata"])[rows[weight > 0]]
        for stratum in np.unique(strata):
            there = ratio[strata == stratum]
            np.testing.assert_allclose(there, there[0], rtol=1e-12)


@pytest.mark.parametrize("case", ["plain", "strata", "weights of both", "simulator"])
def test_a_toy_with_the_observed_labels_weighs_the_same_to_the_bit(case, monkeypatch):
    few = {
        "plain": {},
        "strata": {"strata": ([0, 0, 1, 1], [0, 1])},
        "weights of both": {"reference_weights": (np.array([0.1, 0.7, 0.3, 2]), np.array([1, 3]))},
        "simulator": {"null": Simulator(40.0 + np.arange(4)[:, None])},
    }
    monkeypatch.setattr("sparker.nulls.labels.MAX_LISTED", 0)
    pool, _ = pool_of(4, 2, **few[case])
    observed = pool.weights(0)
    again = [i for i in range(1, 100) if np.array_equal(pool.roles(i), pool.roles(0))]
    assert 0 < len(again) < 99
    for number in again:
        for one, other in zip(pool.weights(number), observed, strict=True):
            np.testing.assert_array_equal(one, other)


def test_labels_stay_in_their_stratum():
    pool, rows = pool_of(strata=STRATA)
    strata = np.concatenate(STRATA)
    ever = set()
    for number in range(200):
        data = data_of(pool, rows, number)
        np.testing.assert_array_equal(np.bincount(strata[list(data)]), [5, 1, 4])
        ever |= data
    assert ever == set(range(40))


@pytest.mark.parametrize("case", ["plain", "groups", "weights of both", "simulator"])
def test_where_rows_stand_in_the_pool_does_not_tell_who_is_data(case):
    counts = 0
    for seed in range(200):
        pool, _ = pool_of(seed=seed, **POOLS[case])
        counts = counts + (pool.roles(0) == DATA)
    may_be = counts[30:] if case == "simulator" else counts  # the reference is first, in all toys
    assert chisquare(may_be).pvalue > RARE


def test_strata_that_have_no_data_are_left_out_and_noted():
    strata = np.arange(30) % 4, np.repeat([0, 1, 2], [5, 1, 4])
    pool, rows = pool_of(strata=strata)
    assert pool.notes == ("1 strata have no data rows; their reference rows are left out",)
    idle = np.concatenate(strata)[rows] == 3
    for number in range(5):
        assert all(np.all(weight[idle] == 0) for weight in pool.weights(number))


def test_strata_of_any_names_are_the_same_strata():
    rng = np.random.default_rng(1)
    reference, data = rng.normal(size=(30, 1)), rng.normal(size=(10, 1))
    as_text = tuple(np.array(["night", "day", "dusk"])[part] for part in STRATA)
    one, other = (run(reference, data, n_toys=50, strata=s) for s in (STRATA, as_text))
    assert 0 < one.p_value <= 1
    np.testing.assert_allclose(one.t, other.t)
    assert one.notes == other.notes == ()


def test_only_differences_within_strata_count():
    rng = np.random.default_rng(0)
    strata = np.repeat([0, 1], [100, 300]), np.repeat([0, 1], [80, 20])
    reference, data = (rng.normal(size=(len(part), 1)) + 3 * part[:, None] for part in strata)
    apart = run(reference, data, n_toys=199)
    assert apart.p_value == 1 / 200  # the data are mostly of the lower stratum
    assert run(reference, data, n_toys=199, strata=strata).p_value > 0.05
    shifted = run(reference, data + 0.7, n_toys=199, strata=strata)
    assert shifted.p_value == 1 / 200


# Groups.


def group_sizes(sizes, first):
    return np.repeat(first + np.arange(len(sizes)), sizes)


def grouped(of_reference, of_data):
    return group_sizes(of_reference, 0), group_sizes(of_data, 1000)


def test_groups_move_whole_and_keep_the_numbers_of_rows():
    groups = grouped([3, 3, 2, 2, 2, 5, 1], [3, 2, 2])
    pool, rows = pool_of(18, 7, groups=groups)
    of_row = np.concatenate(groups)[rows]
    sizes = {group: int(np.sum(of_row == group)) for group in np.unique(of_row)}
    ever = set()
    for number in range(1, 1 + 3 * 10 - 1):  # all others: one of three, and two of five
        is_data = pool.roles(number) == DATA
        chosen = set(of_row[is_data])
        assert not chosen & set(of_row[~is_data])
        assert sorted(sizes[group] for group in chosen) == [2, 2, 3]
        ever.add(frozenset(chosen))
    assert len(ever) == 29
    assert set.union(*map(set, ever)) == {0, 1, 2, 3, 4, 1000, 1001, 1002}
    assert frozenset([1000, 1001, 1002]) not in ever


def test_groups_in_strata_change_places_with_their_like_only():
    groups = grouped([2, 2, 3, 2, 2, 3], [2, 3, 2])
    strata = np.repeat([0, 1], 7), np.repeat([0, 1], [5, 2])
    pool, rows = pool_of(14, 7, groups=groups, strata=strata)
    of_row, stratum = np.concatenate(groups)[rows], np.concatenate(strata)[rows]
    kinds = {}
    for group in np.unique(of_row):
        (own,) = set(stratum[of_row == group])
        kinds[group] = int(np.sum(of_row == group)), int(own)
    for number in range(1, 3 * 2 * 3):
        chosen = set(of_row[pool.roles(number) == DATA])
        assert sorted(kinds[group] for group in chosen) == [(2, 0), (2, 1), (3, 0)]


def test_data_groups_of_a_size_of_their_own_stay_data_and_are_noted():
    pool, rows = pool_of(6, 6, groups=grouped([2, 2, 2], [2, 4]))
    (note,) = pool.notes
    assert note.startswith(
        "1 of 2 data groups have a number of rows that no group of the reference"
    )
    for number in range(4):
        assert data_of(pool, rows, number) > {8, 9, 10, 11}


def test_groups_are_cut_to_random_rows():
    groups = grouped([4, 7, 2], [5, 4])
    drawn = []
    for seed in range(100):
        pool, rows = pool_of(13, 9, null=Permutation(group_rows=3), groups=groups, seed=seed)
        assert pool.notes[0] == "14 of 22 rows take part: at most 3 of each group"
        counts = np.unique(np.concatenate(groups)[rows], return_counts=True)[1]
        assert counts.tolist() == [3, 3, 2, 3, 3]
        assert len(set(rows)) == 14
        drawn.append(rows)
        for number in range(1, 6):
            assert len(data_of(pool, rows, number)) == 6
    seven = np.concatenate(drawn)
    seven = seven[(seven >= 4) & (seven < 11)] - 4
    assert chisquare(np.bincount(seven, minlength=7)).pvalue > RARE


@pytest.mark.parametrize(
    "sizes",
    [([4] * 5, [5] * 2), ([1, 2, 3, 4], [5, 6, 7]), ([50], [3, 3, 100]), ([9, 8], [2, 3, 4, 5])],
)
def test_where_no_group_has_a_partner_the_suggested_cut_helps(sizes):
    groups = grouped(*sizes)
    n_rows = [len(part) for part in groups]
    with pytest.raises(ValueError, match="none can change places") as caught:
        pool_of(*n_rows, groups=groups)
    (suggested,) = re.findall(r"Permutation\(group_rows=(\d+)\)", str(caught.value))
    assert f"--group-rows {suggested} on the command line" in str(caught.value)
    pool, rows = pool_of(*n_rows, groups=groups, null=Permutation(group_rows=int(suggested)))
    assert data_of(pool, rows, 1) != data_of(pool, rows, 0)


def test_the_suggested_cut_helps_within_strata_too():
    groups = grouped([9, 1], [1, 9])
    options = {"groups": groups, "strata": (groups[0], groups[1] - 1000)}
    with pytest.raises(ValueError, match="none can change places") as caught:
        pool_of(10, 10, **options)
    (suggested,) = re.findall(r"Permutation\(group_rows=(\d+)\)", str(caught.value))
    pool_of(10, 10, **options, null=Permutation(group_rows=int(suggested)))


# Few labellings.

FEW_ROWS = np.random.default_rng(5).normal(size=(6, 1))


def split(rows, chosen):
    is_data = np.isin(np.arange(len(rows)), list(chosen))
    return rows[~is_data], rows[is_data]


@pytest.mark.parametrize(
    ("options", "n_ways"),
    [
        ({}, 15),
        ({"strata": ([0, 0, 1, 1], [0, 1])}, 9),
        ({"groups": ([0, 0, 1, 2], [3, 3])}, 2),
        ({"groups": ([0, 1, 2, 3], [4, 5])}, 15),
        ({"null": Simulator(FEW_ROWS + 9)}, 28),
    ],
    ids=["rows", "strata", "groups", "groups of one", "pool"],
)
def test_where_labellings_are_few_all_are_tried_and_the_seed_does_not_matter(options, n_ways):
    reference, data = FEW_ROWS[:4], FEW_ROWS[4:]
    results = [
        run(reference, data, n_toys=n, seed=seed, **options)
        for seed, n in ((0, 300), (1, 300), (2, n_ways - 1))
    ]
    for result in results:
        assert result.n_toys == result.settings["n_toys"] == n_ways - 1
        assert result.p_value * n_ways == pytest.approx(round(result.p_value * n_ways))
        assert result.p_value == results[0].p_value
        np.testing.assert_allclose(np.sort(result.null_t, 0), np.sort(results[0].null_t, 0))
        assert result.notes == (
            f"labels can be given in {n_ways} ways only; all were tried, and no p-value below "
            f"{1 / n_ways:.2g} is possible",
        )
    stop = sparker.Sequential(exceedances=1, first=10)  # without effect: all are tried
    stopped = run(reference, data, n_toys=300, stop=stop, **options)
    assert (stopped.n_toys, stopped.p_value) == (n_ways - 1, results[0].p_value)
    if n_ways > 2:
        fewer = run(reference, data, n_toys=n_ways - 2, **options)
        assert fewer.n_toys == n_ways - 2
        assert fewer.notes == ()


def test_listed_toys_are_the_same_however_many_are_asked_for():
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(9, 1)), rng.normal(size=(3, 1))  # 220 ways
    ten, more, all_of_them = (run(reference, data, n_toys=n) for n in (10, 50, 1000))
    np.testing.assert_array_equal(ten.null_t, more.null_t[:10])
    np.testing.assert_array_equal(more.null_t, all_of_them.null_t[:50])
    assert len(all_of_them.null_t) == 219


@pytest.mark.parametrize("case", ["rows", "strata", "groups", "pool"])
def test_the_observed_labelling_is_no_toy_and_all_others_are(case):
    options = {
        "rows": {},
        "strata": {"strata": (np.arange(6) % 2, np.array([0, 1, 1]))},
        "groups": {"groups": (np.array([0, 0, 1, 1, 2, 2]), np.array([3, 3, 4]))},
        "pool": {"null": Simulator(40.0 + np.arange(4)[:, None])},
    }[case]
    pool, rows = pool_of(6, 3, **options)
    n_toys = pool.experiments().n_toys
    assert n_toys == {"rows": 83, "strata": 4 * 10 - 1, "groups": 3, "pool": 34}[case]
    toys = [data_of(pool, rows, number) for number in range(1, n_toys + 1)]
    assert len(set(toys)) == n_toys
    assert data_of(pool, rows, 0) not in toys


def test_listed_toys_come_in_an_order_of_chance():
    pool, rows = pool_of(9, 3)  # the first few of them must not be those that have a row in common
    toys = [data_of(pool, rows, number) for number in range(1, 220)]
    shared = np.mean([len(one & other) for one, other in itertools.pairwise(toys)])
    assert shared == pytest.approx(3 * 3 / 12, abs=0.25)


def test_some_toys_of_a_list_are_no_more_than_there_are(tmp_path):
    settings = {"n_toys": 300, "store": tmp_path, **CHEAP}
    assert sparker.run_toys(FEW_ROWS[:4], FEW_ROWS[4:], only=range(301), **settings) == 15
    told = []
    settings["progress"] = lambda done, total: told.append((done, total))
    result = sparker.test(FEW_ROWS[:4], FEW_ROWS[4:], **settings)
    assert told == [(15, 15)]
    assert result.n_toys == 14


def ways(case):
    """Every labelling of seven rows that may take the place of every other."""
    if case == "strata":  # one of three and two of four
        pairs = itertools.combinations(range(3, 7), 2)
        return [(one, *two) for one, two in itertools.product(range(3), pairs)]
    if case == "groups":  # one of two pairs, one of three single rows
        return [(*pair, one) for pair, one in itertools.product([(0, 1), (2, 3)], range(4, 7))]
    return list(itertools.combinations(range(7), 3))


@pytest.mark.parametrize("case", ["rows", "strata", "groups", "pool"])
def test_p_values_of_all_labellings_together_are_uniform(case):
    rows = np.random.default_rng(5).normal(size=(7, 1))
    labels = np.array({"strata": [0, 0, 0, 1, 1, 1, 1]}.get(case, [0, 0, 1, 1, 2, 3, 4]))
    p_values = []
    for chosen in ways(case):
        reference, data = split(rows, chosen)
        options = {}
        if case == "pool":  # what is no data is pool, and the reference is always the same
            options = {"null": Simulator(reference)}
            reference = np.array([[-0.3], [0.2], [1.7]])
        elif case != "rows":
            options = {case: split(labels, chosen)}
        p_values.append(run(reference, data, n_toys=300, **options).p_value)
    n_ways = len(p_values)
    assert n_ways == {"rows": 35, "strata": 18, "groups": 6, "pool": 35}[case]
    np.testing.assert_allclose(np.sort(p_values), np.arange(1, n_ways + 1) / n_ways)


# Weights.


@pytest.mark.parametrize("case", ["rows", "strata", "zero"])
def test_weighted_tests_are_exact_by_brute_force(case):
    rng = np.random.default_rng(3)
    rows, weights = rng.normal(size=(6, 1)), np.array([0.3, 2.0, 1.0, 4.0, 0.7, 1.5])
    strata = np.array([0, 0, 0, 1, 1, 1])
    if case == "zero":
        weights[2] = 0
    pairs = {
        pair: p
        for pair, p in chances(weights, 2).items()
        if p > 0 and (case != "strata" or strata[list(pair)].sum() == 1)
    }
    total = sum(pairs.values())
    n_toys = 400
    p_values, t = {}, {}
    for pair in pairs:
        options = {"strata": split(strata, pair)} if case == "strata" else {}
        result = run(
            *split(rows, pair), n_toys=n_toys, reference_weights=split(weights, pair),
            **options,
        )  # fmt: skip
        assert result.n_toys == n_toys  # not all are as likely: nothing is listed
        p_values[pair], t[pair] = result.p_value, result.t[0]
    level = 0
    for pair in sorted(pairs, key=t.get, reverse=True):
        level += pairs[pair] / total  # the chance of a statistic as large as this
        spread = math.sqrt(level * (1 - level) / n_toys)
        assert abs(p_values[pair] - level) < 5 * spread + 2 / n_toys
    for alpha in np.linspace(0.05, 0.95, 19):
        rejected = sum(p for pair, p in pairs.items() if p_values[pair] <= alpha) / total
        assert rejected <= alpha + 5 * math.sqrt(alpha * (1 - alpha) / n_toys)


def test_toys_label_rows_by_the_odds_of_their_weights():
    pool, rows = pool_of(3, 2, reference_weights=(np.array([1.0, 2.0, 0.0]), np.array([3.0, 0.5])))
    found = {}
    for number in range(1, 3000):
        pair = tuple(sorted(data_of(pool, rows, number)))
        found[pair] = found.get(pair, 0) + 1
    assert_counts(found, chances(np.array([1.0, 2.0, 0.0, 3.0, 0.5]), 2))


def test_a_function_of_rows_is_the_pair_of_what_it_gives():
    rng = np.random.default_rng(0)
    reference, data = (
        pd.DataFrame(rng.normal(size=(n, 2)), columns=["mass", "angle"]) for n in (60, 20)
    )
    seen = []

    def weigh(table):
        seen.append(table)
        return np.exp(0.5 * table["mass"])

    by_function = run(reference, data, n_toys=50, reference_weights=weigh)
    assert seen[0] is reference
    assert seen[1] is data
    pd.testing.assert_frame_equal(seen[2], data[:1])  # again, alone: each row by itself
    given = weigh(reference), weigh(data)
    by_pair = run(reference, data, n_toys=50, reference_weights=given)
    np.testing.assert_array_equal(by_function.null_t, by_pair.null_t)
    assert by_function.p_value == by_pair.p_value
    assert by_function.notes == ()
    coarse = np.where(given[0] > 1, 2.0, 1.0)
    of_reference = run(reference, data, n_toys=50, reference_weights=coarse)
    assert not np.array_equal(of_reference.null_t, by_pair.null_t)


@pytest.mark.parametrize("weights", [np.full(30, 2.0), (np.full(30, 2.0), np.full(10, 2.0))])
def test_equal_weights_are_none(weights):
    one, other = (pool_of(reference_weights=given)[0] for given in (weights, None))
    assert one.measure is None
    assert one.notes == ()
    np.testing.assert_array_equal(one.points, other.points)
    for number in range(5):
        np.testing.assert_array_equal(one.weights(number), other.weights(number))


def test_weights_make_the_reference_what_the_data_are():
    rng = np.random.default_rng(0)

    def density(rows):  # of the data, over that of the reference
        return np.exp(rows[:, 0] - 0.5)

    few, many = rng.normal(size=(2000, 1)), rng.normal(size=(20_000, 1))
    data = 1 + rng.normal(size=(100, 1))
    assert run(few, data, n_toys=199).p_value == 1 / 200
    for reference, weights in ((few, density), (many, density(many))):
        assert run(reference, data, n_toys=199, reference_weights=weights).p_value > 0.01
        shifted = run(reference, data + 1, n_toys=199, reference_weights=weights)
        assert shifted.p_value == 1 / 200


def test_rows_that_are_kept_have_the_weighted_density():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, 8000)
    weights = np.array([0.0, 0.5, 1.0, 3.0])[values] * rng.uniform(0.5, 1, len(values))
    is_kept = keep_by_weight(np.random.default_rng(1), weights, 100)
    found = np.bincount(values[is_kept], minlength=4)
    expected = np.bincount(values, weights)
    assert found[0] == expected[0] == 0
    assert chisquare(found[1:], expected[1:] * found.sum() / expected.sum()).pvalue > RARE
    # No two rows share the largest weight: larger ones, up to twice as large, are allowed for.
    assert is_kept.sum() == pytest.approx(weights.sum() / weights.max() / 2, rel=0.1)
    shared = np.array([0.0, 0.5, 1.0, 3.0])[values]
    is_kept = keep_by_weight(np.random.default_rng(1), shared, 100)
    assert is_kept.sum() == pytest.approx(shared.sum() / 3, rel=0.1)
    assert np.all(is_kept[values == 3])


@pytest.mark.parametrize(("n_reference", "n_data"), [(30, 40), (300, 100), (1000, 100)])
def test_weights_without_a_bound_are_refused_where_it_matters(n_reference, n_data):
    # The data reach further than any reference row, and any weight, that was seen.
    for seed in range(20):
        rows = 0.5 * np.random.default_rng(seed).exponential(size=n_reference)
        with pytest.raises(ValueError, match="too uneven"):
            keep_by_weight(np.random.default_rng(1), np.exp(rows), n_data)


def test_toys_do_not_draw_from_the_numbers_that_made_the_rows():
    # Rows from default_rng(seed) and the same seed for the test, as anybody would write it.
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        reference = rng.random((300, 1))
        weights = np.where(reference[:, 0] < 0.5, 3.0, 1.0)
        data = (rng.random((30, 1)) + (rng.random((30, 1)) > 0.75)) / 2
        result = run(reference, data, n_toys=19, seed=seed, reference_weights=weights)
        found += result.p_value <= 0.1
    assert found <= binom.isf(1e-4, 100, 0.1)


def test_rows_of_another_precision_do_not_tell_samples_apart():
    rng = np.random.default_rng(0)
    rows = rng.choice([0.1, 0.2, 0.4], size=(160, 1))
    reference, data = rows[:120], rows[120:]
    single = reference.astype(np.float32)
    known = samples(single, data)
    assert known.reference.dtype == known.data.dtype == np.float32
    assert set(known.data[:, 0]) <= set(known.reference[:, 0])
    with pytest.raises(ValueError, match="too large for the single precision"):
        samples(single, 1e300 * data)
    others = rng.normal(size=(100, 1))
    with pytest.raises(ValueError, match="in the reference as well"):
        run(others, data, null=Simulator(others.astype(np.float32)))


def test_weights_of_the_reference_alone_cost_rows():
    weights = np.tile([1.0, 0.5, 0.0], 10)
    pool, rows = pool_of(reference_weights=weights)
    n_kept = len(rows) - 10
    assert 10 <= n_kept < 20
    assert set(np.flatnonzero(weights == 1)) <= set(rows)
    assert not set(np.flatnonzero(weights == 0)) & set(rows)
    assert pool.notes[0].startswith(f"{n_kept} of 30 reference rows take part, kept with a")
    assert pool.measure is None
    assert pool_of(reference_weights=weights, seed=1)[0].points.shape != pool.points.shape


def test_strata_that_lose_their_reference_to_weights_are_refused():
    weights = np.repeat([1.0, 1e-9], [28, 2])
    strata = np.repeat([0, 1], [28, 2]), np.repeat([0, 1], [5, 5])
    with pytest.raises(ValueError, match=r"stratum|strata"):
        pool_of(reference_weights=weights, strata=strata)


# Simulators.


def test_toys_of_a_pool_draw_from_it_and_from_the_data():
    pool, rows = pool_of(null=Simulator(OTHERS))
    assert len(rows) == 90
    for number in range(300):
        roles = pool.roles(number)
        assert set(rows[roles == REFERENCE]) == set(range(30))
        assert np.sum(roles == DATA) == 10
        assert np.sum(roles == OUT) == 50
    often = np.zeros(90)
    for number in range(1, 1500):
        often[list(data_of(pool, rows, number))] += 1
    assert chisquare(often[30:]).pvalue > RARE


def of_monte_carlo(rng, n):
    """Rows that fall half as steeply as the data, and what makes up for it."""
    rows = rng.exponential(2, size=(n, 1))
    return rows, np.exp(-rows[:, 0] / 2)


def test_a_weighted_pool_is_no_pool_of_its_rows():
    # Taken as unweighted, the pool is flatter than data and reference, and p is 1.
    rng = np.random.default_rng(3)
    (reference, weights), (pool, pool_weights) = (of_monte_carlo(rng, n) for n in (1000, 1000))
    data = rng.exponential(1, size=(100, 1))
    null = Simulator(pool, pool_weights=pool_weights, weights=weights)
    found = run(reference, data, null=null, n_toys=99)
    assert 0.05 < found.p_value < 0.95
    assert any(
        "of 1,000 rows of the simulator's pool take part, kept" in one for one in found.notes
    )
    same = run(
        reference, data, n_toys=99, reference_weights=weights,
        null=Simulator(pool, pool_weights=lambda rows: np.exp(-rows[:, 0] / 2)),
    )  # fmt: skip
    assert same.p_value == found.p_value
    assert run(reference, data + 1, null=null, n_toys=99).p_value == 0.01
    with pytest.warns(
        sparker.DataWarning, match=r"pool and the reference have different densities"
    ):
        wrong = run(
            reference, data, n_toys=99, null=Simulator(pool, pool_weights=1, weights=weights)
        )
    assert wrong.p_value == 1
    assert [one.code for one in wrong.warnings] == ["pool"]


@pytest.mark.parametrize("expected", [None, 9.0])
def test_a_weighted_pool_is_thinned_once_and_has_the_weighted_density(expected):
    pool_weights = np.tile([1.0, 0.5, 0.0, 0.25], 500)
    others = 40.0 + np.arange(2000)[:, None]
    null = Simulator(others, pool_weights=pool_weights)
    pool, rows = pool_of(null=null, expected=expected)
    kept = rows[(rows >= 40)] - 40
    assert len(set(rows)) == len(rows)  # none twice
    n_kept = len(kept) + (10 if expected is not None else 0)  # as many leave as there are data
    assert pool.notes[0].startswith(f"{n_kept} of 2,000 rows of the simulator's pool take part")
    counts = np.bincount(kept % 4, minlength=4)
    assert counts[2] == 0
    assert (
        chisquare(counts[[0, 1, 3]], n_kept and len(kept) * np.array([4, 2, 1]) / 7).pvalue > RARE
    )
    assert set(kept) != set(pool_of(null=null, expected=expected, seed=1)[1])
    for number in range(20):
        reference, data = pool.weights(number)
        assert set(rows[reference > 0]) == set(range(30))
        assert np.ptp(reference[reference > 0]) == 0
        assert set(data) == {0.0, 1.0}
    plain, _ = pool_of(null=Simulator(others), expected=expected)
    for one in (1, np.full(2000, 3.0)):  # no weights at all
        same, _ = pool_of(null=Simulator(others, pool_weights=one), expected=expected)
        np.testing.assert_array_equal(same.points, plain.points)
        assert same.notes == ()


@pytest.mark.parametrize(
    ("settings", "null", "message"),
    [
        ({"reference_weights": UNEVEN}, {}, r"the reference has weights, but .*pool_weights=1 if"),
        ({}, {"weights": UNEVEN}, r"the reference has weights, but the pool .* has none; give"),
        ({}, {"pool_weights": np.ones(50)}, r"but the reference has none; give .*or weights=1 if"),
        (
            {"reference_weights": UNEVEN},
            {"pool_weights": 1, "weights": UNEVEN},
            r"reference_weights and Simulator\(weights=...\) are the same; give one",
        ),
        (
            {},
            {"source": lambda rng, n: rng.normal(size=(n, 1)), "pool_weights": UNEVEN},
            "pool_weights belong to rows, but the source .* is a function; leave them out",
        ),
        (
            {},
            {"pool_weights": UNEVEN, "weights": 1},
            r"pool_weights must have shape \(50,\), one a row, got \(30,\)",
        ),
        (
            {},
            {"pool_weights": -np.ones(50), "weights": 1},
            "pool_weights must be .* but 50 of 50 are negative",
        ),
        (
            {},
            {"pool_weights": np.repeat([1.0, 0.01], [7, 43]), "weights": 1},
            r"pool_weights are too uneven: row 0 weighs .* of 50 rows only \d are left .* "
            "for 10 data rows. Take a larger pool",
        ),
        (
            {"expected": 10.0},
            {"pool_weights": np.repeat([1.0, 0.0], [20, 30]), "weights": 1},
            "pool has 20 rows left, kept by their weights, a toy needs up to 43; add rows",
        ),
    ],
)
def test_weights_of_one_side_or_of_too_few_rows_are_refused(settings, null, message):
    with pytest.raises(ValueError, match=message):
        run(*numbers(30, 10), null=Simulator(**{"source": OTHERS} | null), n_toys=9, **settings)


def test_one_stands_for_rows_that_need_no_weights():
    rng = np.random.default_rng(0)
    reference, data, pool = (rng.normal(size=(n, 1)) for n in (100, 20, 80))
    plain = run(reference, data, null=Simulator(pool), n_toys=19).p_value
    for null in (Simulator(pool, 1), Simulator(pool, 1, 1), Simulator(pool, weights=1)):
        assert run(reference, data, null=null, n_toys=19).p_value == plain
    weights = np.exp(reference[:, 0])  # the reference alone has some: this changes the outcome
    assert run(reference, data, null=Simulator(pool, 1, weights), n_toys=19).p_value != plain


MADE_BY = {
    "a function of the row": of_monte_carlo,
    "random": lambda rng, n: (rng.exponential(size=(n, 1)), rng.lognormal(size=n)),
    "none": lambda rng, n: (rng.exponential(size=(n, 1)), None),
}


@pytest.mark.parametrize("made_by", MADE_BY)
def test_pool_and_reference_of_one_weighted_density_are_not_told_apart(made_by, monkeypatch):
    n_tests = 400
    monkeypatch.setattr("sparker.nulls.agreement.ALPHA", 0.1)
    found = 0
    for seed in range(n_tests):
        rng = np.random.default_rng([8, seed])
        (reference, weights), (pool, pool_weights) = (MADE_BY[made_by](rng, n) for n in (300, 900))
        more = [rng.normal(size=(len(rows), 3)) for rows in (reference, pool)]
        both = (np.hstack(part) for part in zip((reference, pool), more, strict=True))
        reference, pool = both
        found += disagreement(reference, weights, pool, pool_weights, seed) is not None
    assert found <= binom.isf(RARE, n_tests, 0.1)


def test_pool_and_reference_of_two_densities_are_told_apart():
    rng = np.random.default_rng(0)
    more = rng.normal(size=(2000, 1))
    (reference, weights), (pool, pool_weights) = (of_monte_carlo(rng, 1000) for _ in range(2))
    both = np.hstack([more[:1000], reference]), np.hstack([more[1000:], pool])
    assert disagreement(both[0], weights, both[1], pool_weights, 0) is None
    for one, other in ((weights, None), (None, pool_weights)):
        found = disagreement(both[0], one, both[1], other, 0)
        assert found.column == 1
        assert found.p_value < ALPHA
        assert {found.n_pool, found.n_reference} > {1000}


def test_a_pool_that_differs_is_refused_if_strict():
    rng = np.random.default_rng(0)
    reference, data, pool = (
        rng.normal(size=(300, 1)),
        rng.normal(size=(50, 1)),
        rng.random((300, 1)),
    )
    with pytest.raises(
        ValueError, match=r"with strict, .*\n- the simulator's pool and the reference"
    ):
        run(reference, data, null=Simulator(pool), strict=True, n_toys=9)


def test_a_sample_too_much_like_the_reference_has_a_note():
    rng = np.random.default_rng(0)
    reference, pool = rng.normal(size=(400, 1)), rng.normal(size=(300, 1)) + 3
    data = reference[:50] + 1e-3
    settings = {"null": Simulator(pool)}
    with pytest.warns(sparker.DataWarning, match="different densities"):
        found, fewer = (run(reference, data, **settings | {"n_toys": n}) for n in (999, 500))
    assert found.p_value == fewer.p_value == 1
    said = "p is 1: all 999 toys have a larger test statistic than the data, which has a chance of"
    assert any(one.startswith(said) for one in found.notes)
    assert not any("p is 1" in one for one in fewer.notes)  # one in 501
    coins = run(reference, pool, n_toys=999, statistic=lambda rng, sample: 0.0)
    assert coins.p_value == 1
    assert not any("p is 1" in one for one in coins.notes)  # ties


def test_a_sparse_pool_is_fitted_as_the_rows_in_use():
    reference, data = numbers(30, 10)
    observed = samples(reference, data)
    source = Simulator(OTHERS).experiments(observed, 0).source
    pool = source.toys.__self__
    batch = source.toys(lambda rows: rows).draw([0, 1, 2])
    assert batch.points.shape == (3, 40, 1)
    for number in range(3):
        alone = batch.alone(number)
        roles, rows = pool.roles(number), pool.points
        is_data = alone.data_weight > 0
        np.testing.assert_array_equal(alone.points[is_data], rows[roles == DATA])
        np.testing.assert_array_equal(alone.points[~is_data], rows[roles == REFERENCE])


def test_with_an_expected_number_the_rows_to_draw_from_do_not_tell_how_many_data_there_are():
    for n_data in (5, 10, 20):
        pool, rows = pool_of(30, n_data, null=Simulator(60.0 + np.arange(80)[:, None]), expected=9)
        assert len(rows) == 30 + 80
        assert len(data_of(pool, rows, 0)) == n_data
        counts = [len(data_of(pool, rows, number)) for number in range(1, 400)]
        assert abs(np.mean(counts) - 9) < 5 * 3 / math.sqrt(400)
        assert np.var(counts) == pytest.approx(9, rel=0.4)


def test_toys_that_fluctuate_leave_the_reference_as_it_is():
    pool, _ = pool_of(expected=9)
    for number in range(100):
        roles = pool.roles(number)
        n_data = np.sum(roles == DATA)
        assert np.sum(roles == REFERENCE) == 40 - max(n_data, 10)
        assert np.sum(roles == OUT) == max(0, 10 - n_data)


@pytest.mark.parametrize(
    "scheme", ["pool", "weighted pool", "function", "strata", "weights", "thinned"]
)
def test_a_quick_look_at_the_level(scheme):
    n_tests, alpha = 300, 0.1
    found = 0
    for seed in range(n_tests):
        rng = np.random.default_rng([7, seed])
        reference, data = rng.normal(size=(50, 1)), rng.normal(size=(20, 1))
        options = {}
        if scheme == "pool":
            options["null"] = Simulator(rng.normal(size=(50, 1)))
        elif scheme == "function":
            options["null"] = Simulator(lambda rng, n: rng.normal(size=(n, 1)))
        elif scheme == "strata":
            options["strata"] = rng.integers(2, size=50), rng.integers(2, size=20)
            reference, data = (
                rows + 4 * part[:, None]
                for rows, part in zip((reference, data), options["strata"], strict=True)
            )
        else:
            data += 0.5

            def ratio(rows):
                return np.exp(0.5 * rows[:, 0])

            options["reference_weights"] = ratio
            if scheme in ("thinned", "weighted pool"):
                options["reference_weights"] = np.where(reference[:, 0] > 0, 3.0, 1.0)
                data = np.abs(data - 0.5) * np.where(rng.random((20, 1)) < 0.75, 1, -1)
            if scheme == "weighted pool":
                pool = rng.normal(size=(100, 1))
                options["null"] = Simulator(pool, np.where(pool[:, 0] > 0, 3.0, 1.0))
        result = run(reference, data, n_toys=19, seed=seed, **options)
        found += result.p_value <= alpha
    low, high = binom.ppf([5e-5, 1 - 5e-5], n_tests, alpha)
    assert low <= found <= high


# Rows that repeat.


@pytest.mark.parametrize(("n_rows", "n_other"), [(300, 200), (200, 200), (1000, 50), (60, 2000)])
def test_pools_with_rows_of_a_sample_are_refused(n_rows, n_other):
    rng = np.random.default_rng(0)
    for n_shared in (12, 40):
        rows, other = rng.normal(size=(n_rows, 2)), rng.normal(size=(n_other, 2))
        check_disjoint("pool", rows, "data", other)
        rows[:n_shared] = other[-n_shared:]
        with pytest.raises(ValueError, match=f"{n_shared} of the {n_rows} rows of pool are in the"):
            check_disjoint("pool", rows, "data", other)


def test_a_pool_drawn_with_replacement_from_the_reference_is_refused():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(200, 2))
    with pytest.raises(ValueError, match="in the reference as well"):
        check_disjoint("pool", reference[rng.integers(200, size=300)], "reference", reference)


DISCRETE = {
    "integers": lambda rng, n: rng.integers(0, 1000, (n, 1)).astype(float),
    "counts": lambda rng, n: rng.poisson(3, (n, 2)).astype(float),
    "binary": lambda rng, n: rng.integers(0, 2, (n, 3)).astype(float),
    "one bit": lambda rng, n: (rng.random((n, 1)) < 0.01).astype(float),
    "mostly zero": lambda rng, n: rng.normal(size=(n, 1)) * (rng.random((n, 1)) < 0.3),
    "rounded": lambda rng, n: np.round(rng.normal(size=(n, 2)), 1),
    "dates": lambda rng, n: np.floor(365 * rng.random((n, 1))),
}


@pytest.mark.parametrize("kind", DISCRETE)
@pytest.mark.parametrize(("n_rows", "n_other"), [(300, 200), (500, 30), (30, 500)])
def test_rows_that_coincide_by_chance_are_not_refused(kind, n_rows, n_other):
    draw = DISCRETE[kind]
    for seed in range(100):
        rng = np.random.default_rng(seed)
        check_disjoint("pool", draw(rng, n_rows), "reference", draw(rng, n_other))


@pytest.mark.parametrize("kind", [*DISCRETE, "continuous"])
def test_functions_that_draw_rows_of_their_own_are_accepted(kind):
    draw = DISCRETE.get(kind, lambda rng, n: rng.normal(size=(n, 2)))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        check_fresh(draw, seed, draw(rng, 200), draw(rng, 40))


@pytest.mark.parametrize("source", ["reference", "data", "list", "noisy list"])
@pytest.mark.parametrize("replace", [True, False])
def test_functions_that_draw_from_rows_are_refused(source, replace):
    rng = np.random.default_rng(0)
    rows = {"reference": rng.normal(size=(400, 2)), "data": rng.normal(size=(50, 2))}
    some = rows.get(source, rng.normal(size=(600, 2)))

    def draw(rng, n):
        drawn = some[rng.choice(len(some), n, replace=replace)]
        if source == "noisy list":  # half of them are new
            drawn[::2] = rng.normal(size=drawn[::2].shape)
        return drawn

    with pytest.raises(
        ValueError, match=r"as well; null data must|came twice: it draws from a list"
    ):
        check_fresh(draw, 0, rows["reference"], rows["data"])


# What is refused. (Weights and groups that make no sense at all: test_bad_input.)

SIMULATED = Simulator(lambda rng, n: rng.normal(size=(n, 1)))
PLAIN = np.arange(30) // 3, 100 + np.arange(10) // 2
IN_TWO = np.arange(30) % 2, np.arange(10) % 2


NOT_IN_A_SIMULATOR = (
    r"{} does not go with null=Simulator\(...\), since a simulator draws rows as they"
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"strata": STRATA[0]},
            "strata must be a pair: the strata of the reference rows and those",
        ),
        ({"strata": (*STRATA, STRATA[0])}, "strata must be a pair"),
        ({"strata": {"a": 1, "b": 2}}, "strata must be a pair"),
        (
            {"strata": (STRATA[0][1:], STRATA[1])},
            r"the strata of reference must have shape \(30,\), one a row, got \(29,\)",
        ),
        (
            {"strata": (STRATA[0], STRATA[1][:, None])},
            r"the strata of data must have shape \(10,\), one a row, got \(10, 1\)",
        ),
        (
            {"strata": (STRATA[0], STRATA[1].astype(str))},
            "strata must be of one kind, got int64 for reference and <U.* for data",
        ),
        (
            {"strata": (STRATA[0], STRATA[1] + 2)},
            "2 strata have data rows but no reference rows, 3 for one; there is nothing to compare "
            "these rows with. Leave them out, or use coarser strata",
        ),
        (
            {"strata": STRATA, "expected": 10.0},
            "strata does not go with expected, since within strata .*; leave one of them out",
        ),
        (
            {"strata": IN_TWO, "groups": PLAIN},
            "groups lie within strata, but 15 of them have rows in several; make strata of whole",
        ),
        ({"strata": STRATA, "null": SIMULATED}, NOT_IN_A_SIMULATOR.format("strata")),
        ({"strata": STRATA, "null": Simulator(OTHERS)}, NOT_IN_A_SIMULATOR.format("strata")),
        ({"groups": GROUPS, "null": Simulator(OTHERS)}, NOT_IN_A_SIMULATOR.format("groups")),
        (
            {"groups": PLAIN, "expected": 10.0},
            "groups does not go with expected, since rows that belong together do not count",
        ),
        (
            {"groups": PLAIN, "reference_weights": OF_BOTH},
            "groups does not go with reference_weights, .* carry no weights of their own",
        ),
        (
            {"groups": (PLAIN[0], PLAIN[1] - 100)},
            "group 0 has rows in both reference and data, as have 4 others; .* different names",
        ),
        (
            {"reference_weights": (UNEVEN, UNEVEN, UNEVEN)},
            "reference_weights must be one a reference row, a function of rows, or a pair.* got 3",
        ),
        (
            {"reference_weights": (UNEVEN, UNEVEN)},
            r"reference_weights of the data rows must have shape \(10,\), one a row, got \(30,\)",
        ),
        (
            {"reference_weights": (OF_BOTH[1], OF_BOTH[1])},
            r"reference_weights must have shape \(30,\), one a row, got \(10,\)",
        ),
        (
            {"reference_weights": lambda rows: rows[:3, 0] + 1},
            r"what the function reference_weights gives must have shape .30,., one a row, got .3,.",
        ),
        (
            {"reference_weights": lambda rows: rows[:, 0] * (rows[:, 0] < 36)},
            "reference_weights is 0 at 4 data rows, the first of them row 6: with such weights no "
            "reference row could ever be there. Leave these rows out",
        ),
        (
            {"reference_weights": np.where(np.arange(30) < 4, -1.0, 2.0)},
            r"none negative and not all zero, but 4 of 30 are negative: where they outweigh .*"
            r"no toy can be drawn from them. Merge each with near rows of positive weight",
        ),
        (
            {"reference_weights": (UNEVEN, -OF_BOTH[1])},
            "reference_weights of the data rows must be .* but 10 of 10 are negative",
        ),
        (
            {"reference_weights": (0 * UNEVEN, OF_BOTH[1])},
            "reference_weights must be finite, none negative and not all zero",
        ),
        (
            {"reference_weights": (UNEVEN, np.append(OF_BOTH[1][1:], np.inf))},
            "reference_weights of the data rows must be finite",
        ),
        (
            {"reference_weights": np.append(1e6, np.ones(29))},
            "reference_weights are too uneven: row 0 weighs 30 times the mean, and of 30 rows only "
            "0 are left when .* for 10 data rows. .* give this function",
        ),
        (
            {"expected": 3.0, "null": Simulator(OTHERS[:20])},
            "the simulator's pool has 20 rows, a toy needs up to 24; add rows",
        ),
        (
            {"null": Permutation(group_rows=3)},
            r"group_rows=...\) needs groups: it says .*; give both or none",
        ),
    ],
)
def test_what_cannot_be_relabelled_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run(*numbers(30, 10), n_toys=5, **options)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, np.datetime64("NaT")])
def test_a_stratum_that_is_missing_is_named(missing):
    given = np.array(["a", "b", missing, "a"], object)
    with pytest.raises(ValueError, match="strata are missing for 2 rows; leave these rows out"):
        samples(np.arange(4.0)[:, None], np.arange(4.0)[:, None], strata=(given, given))


def test_strata_of_mixed_kinds_are_refused():
    mixed = np.array(["a", 1, "b", 2], object)
    with pytest.raises(ValueError, match="strata must be all numbers or all strings"):
        samples(np.arange(4.0)[:, None], np.arange(4.0)[:, None], strata=(mixed, mixed))
