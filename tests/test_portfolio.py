"""Other ways to look beside the kernels: each against a slow reference, and all together."""

import numpy as np
import pytest
from scipy.stats import binom

import sparker
from sparker.calibration.combine import harmonic, minimum
from sparker.calibration.pvalues import p_values, rank
from sparker.engine import Toys, TwoSample
from sparker.engine.preprocess import Transform
from sparker.statistics import Component, Edges, Neighbours, Portfolio, Shifts
from sparker.statistics.kernels import KernelStatistic
from sparker.statistics.nearest import nearest
from sparker.statistics.neighbours import CROWDS, LONELY
from sparker.statistics.surprise import counts_of, cuts_of, surprise

COMPANY = [Neighbours(), Edges(), Shifts()]


def batch(rng, n_rows=120, n_features=3, n_data=30, n_toys=4, ties=False):
    """Relabelled rows: toys differ by who is data."""
    points = rng.normal(size=(n_rows, n_features))
    if ties:
        points = np.round(points)
    data = np.zeros((n_toys, n_rows))
    for row in data:
        row[rng.choice(n_rows, n_data, replace=False)] = 1
    reference = (1 - data) * n_data / (n_rows - n_data)
    return TwoSample(points, reference, data)


def values(statistic, sample, chunk=None, transform=None):
    """What a statistic gives the toys of a batch."""
    points = np.asarray(sample.points)
    prepared = statistic.prepare(points.reshape(-1, points.shape[-1]), transform)
    n = len(sample.data_weight)
    toys = Toys(
        lambda numbers: TwoSample(
            sample.points if points.ndim == 2 else points[list(numbers)],
            sample.reference_weight[list(numbers)],
            sample.data_weight[list(numbers)],
        )
    )
    chunks = prepared.chunks(0, toys, range(n), chunk or n)
    return np.concatenate([chunk.statistics for chunk in chunks])


def slow_surprise(s, n, share):
    own, expected = (binom.logpmf(s, n, p) for p in (s / n, share))
    return max(2 * (own - expected), 0)


def slow_mean(surprises):
    return 2 * np.log(np.mean(np.exp(np.asarray(surprises) / 2)))


def test_surprise_is_the_deviance_of_a_binomial_share():
    for s, n, share in [(3, 10, 0.2), (0, 5, 0.3), (7, 7, 0.4), (2, 10, 0.2)]:
        found = float(surprise(np.float64(s), np.float64(n), np.float64(share)))
        sign = np.sign(s - n * share)
        assert found == pytest.approx(sign * slow_surprise(s, n, share), abs=2e-5)


def test_weights_count_as_rows_of_their_sample():
    data = np.array([[2.0, 2.0, 0, 0, 0]])
    reference = np.array([[0, 0, 0.5, 0.5, 0.5]])
    counts = counts_of(reference, data)
    np.testing.assert_allclose(counts.data[:, 0], [1, 1, 0, 0, 0])
    np.testing.assert_allclose(counts.both[:, 0], np.ones(5))
    np.testing.assert_allclose(counts.share, [0.5 / 2.5])


@pytest.mark.parametrize("n_features", [2, 12])
def test_nearest_rows_are_those_of_all_distances(n_features):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, n_features)) + 1000
    queries = np.array([3, 50, 7])
    rows, distances = nearest(x, queries, 5)
    apart = np.linalg.norm(x[queries][:, None] - x, axis=2)
    apart[np.arange(3), queries] = np.inf
    np.testing.assert_array_equal(rows, np.argsort(apart, axis=1)[:, :5])
    np.testing.assert_allclose(distances, np.sort(apart, axis=1)[:, :5], rtol=1e-4)


@pytest.mark.parametrize("n_features", [1, 9])
def test_a_row_is_not_its_own_neighbour_but_its_copies_are(n_features):
    x = np.repeat(np.arange(4.0), 3)[:, None] * np.ones(n_features)
    rows, distances = nearest(x, np.arange(12), 2)
    assert np.all(rows != np.arange(12)[:, None])
    assert np.all(rows // 3 == (np.arange(12) // 3)[:, None])
    np.testing.assert_allclose(distances, 0, atol=1e-6)


@pytest.mark.parametrize("ties", [False, True])
def test_neighbours_against_a_slow_reference(ties):
    sample = batch(np.random.default_rng(2), ties=ties)
    found = values(Neighbours(), sample)
    x, share = np.asarray(sample.points), 0.25
    rows, distances = nearest(x, np.arange(len(x)), CROWDS[-1])
    for toy, is_data in zip(found, sample.data_weight > 0, strict=True):
        for value, k in zip(toy, CROWDS, strict=False):
            s = is_data + is_data[rows[:, :k]].sum(1)
            expected = slow_mean([slow_surprise(one, k + 1, share) for one in s])
            assert value == pytest.approx(expected, rel=1e-4, abs=1e-4)
        for value, k in zip(toy[len(CROWDS) :], LONELY, strict=True):
            far = (distances[:, k - 1] / distances[:, LONELY[-1] - 1].max()).astype(np.float32)
            each = []
            for cut in cuts_of(len(x), len(x)):
                member = far >= np.sort(far)[-cut]
                s, n = is_data[member].sum(), member.sum()
                each.append(slow_surprise(s, n, share) if s > n * share else 0)
            assert value == pytest.approx(slow_mean(each), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("ties", [False, True])
def test_edges_against_a_slow_reference(ties):
    sample = batch(np.random.default_rng(3), ties=ties)
    found = values(Edges(), sample)[:, 0]
    x = np.asarray(sample.points)
    for value, is_data in zip(found, sample.data_weight > 0, strict=True):
        each = []
        for column in (*x.T, *-x.T):
            for cut in cuts_of(len(x), len(x)):
                member = column >= np.sort(column)[-cut]
                s, n = is_data[member].sum(), member.sum()
                each.append(slow_surprise(s, n, 0.25) if s > n * 0.25 else 0)
        assert value == pytest.approx(slow_mean(each), rel=1e-4, abs=1e-4)


def test_shifts_against_a_slow_reference():
    sample = batch(np.random.default_rng(4))
    found = values(Shifts(), sample)
    x = np.asarray(sample.points)
    z = (x - x.mean(0)) / x.std(0)
    for toy, is_data in zip(found, sample.data_weight > 0, strict=True):
        n, m = is_data.sum(), (~is_data).sum()

        def squared(y, is_data=is_data, n=n, m=m):
            shift = y[is_data].mean(0) - y[~is_data].mean(0)
            return shift**2 / (y.var(0) * (1 / n + 1 / m))

        expected = [slow_mean(squared(z)), slow_mean(squared(z**2)), squared(z).sum()]
        np.testing.assert_allclose(toy, expected, rtol=1e-4)


def test_edges_and_shifts_look_at_the_columns_of_the_user():
    rng = np.random.default_rng(5)
    sample = batch(rng, ties=True)
    turned, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    fitted = sample._replace(points=np.asarray(sample.points) @ turned)
    limit = np.full(3, np.inf)
    transform = Transform(np.arange(3), np.zeros(3), turned, turned.T, -limit, limit)
    for statistic in (Edges(), Shifts()):
        there = values(statistic, fitted, transform=transform)
        np.testing.assert_allclose(there[:, 0], values(statistic, sample)[:, 0], rtol=1e-4)


@pytest.mark.parametrize("statistic", COMPANY, ids=lambda one: one.name)
def test_toys_do_not_depend_on_their_company(statistic):
    sample = batch(np.random.default_rng(6), n_toys=5)
    whole = values(statistic, sample)
    np.testing.assert_allclose(values(statistic, sample, chunk=2), whole, rtol=1e-6)
    own = sample._replace(points=np.broadcast_to(sample.points, (5, *sample.points.shape)))
    np.testing.assert_allclose(values(statistic, own), whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("statistic", COMPANY, ids=lambda one: one.name)
def test_rows_that_only_fill_up_change_nothing(statistic):
    sample = batch(np.random.default_rng(7))
    x = np.broadcast_to(sample.points, (4, *sample.points.shape))
    filled = TwoSample(
        np.concatenate([x, np.full((4, 1, 3), 99.0)], axis=1),
        *(np.pad(weight, [(0, 0), (0, 1)]) for weight in sample[1:]),
    )
    expected = values(statistic, sample._replace(points=x))
    np.testing.assert_allclose(values(statistic, filled), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("statistic", COMPANY, ids=lambda one: one.name)
def test_the_order_of_rows_does_not_matter(statistic):
    rng = np.random.default_rng(8)
    sample = batch(rng)
    turn = rng.permutation(len(sample.points))
    turned = TwoSample(sample.points[turn], *(weight[:, turn] for weight in sample[1:]))
    np.testing.assert_allclose(values(statistic, turned), values(statistic, sample), rtol=1e-5)


PLANTED = {
    "neighbours": lambda rng, x: 0.02 * x[:1] + [1.0] * 8 + 0.15 * rng.normal(size=x.shape),
    "edges": lambda rng, x: np.column_stack([3.5 + 0.3 * x[:, 0], x[:, 1:]]),
}


@pytest.mark.parametrize("statistic", [Neighbours(), Edges()], ids=lambda one: one.name)
def test_each_finds_what_it_is_for(statistic):
    rng = np.random.default_rng(9)
    reference, data = rng.normal(size=(800, 8)), rng.normal(size=(200, 8))
    data[:10] = PLANTED[statistic.name](rng, data[:10])
    result = sparker.test(reference, data, statistic=statistic, n_toys=99, explain=False)
    assert result.p_value <= 0.02


def test_shifts_find_what_moved_as_a_whole():
    rng = np.random.default_rng(10)
    reference, data = rng.normal(size=(800, 5)), rng.normal(size=(200, 5))
    for changed in (data + 0.2, 1.15 * data):
        result = sparker.test(reference, changed, statistic=Shifts(), n_toys=99, explain=False)
        assert result.p_value <= 0.02


def test_the_default_looks_in_all_ways():
    rng = np.random.default_rng(11)
    result = sparker.test(
        rng.normal(size=(200, 2)), rng.normal(size=(50, 2)), n_toys=9, explain=False
    )
    assert result.families == (
        *sparker.engine.FAMILIES, "k-NN counts", "k-NN distance", "marginal tails",
        "mean and variance shift",
    )  # fmt: skip
    assert len(result.p_by_family) == 8
    assert result.p_by_component_test.shape == (len(result.component_tests),)
    assert result.null_statistics.shape == (9, len(result.component_tests))
    assert isinstance(result.decided, Component)
    smallest = result.p_by_family.min()
    assert result.p_by_family[result.families.index(result.decided.family)] == smallest


def test_a_shift_is_seen_and_said_so():
    rng = np.random.default_rng(12)
    result = sparker.test(
        rng.normal(size=(1500, 6)), rng.normal(size=(400, 6)) + 0.2, n_toys=50, explain=False
    )
    assert result.p_value <= 0.02
    at = result.families.index("mean and variance shift")
    assert result.p_by_family[at] <= 0.02
    assert "mean and variance shift" in {one["family"] for one in result.to_dict()["families"]}


def test_annealed_kernels_stay_alone():
    settings = sparker.presets.annealed()
    config = sparker.TestConfig(**settings)
    assert isinstance(config.chosen_statistic(), KernelStatistic)
    assert isinstance(sparker.TestConfig().chosen_statistic(), Portfolio)


def test_one_family_has_no_more_say_than_another():
    """Ten copies of a reading and one of another: in stages they count alike."""
    rng = np.random.default_rng(13)
    t = rng.normal(size=(200, 2))
    wide = np.column_stack([t[:, :1] + 1e-3 * rng.normal(size=(200, 10)), t[:, 1:]])
    families = ["a"] * 10 + ["b"]
    for row in range(5):
        once = rank(np.roll(t, -row, axis=0), harmonic, ["a", "b"]).p_value
        many = rank(np.roll(wide, -row, axis=0), harmonic, families).p_value
        assert many == pytest.approx(once, abs=0.02)


@pytest.mark.parametrize("combine", [harmonic, minimum])
def test_stages_are_exact(combine):
    """Every row of a table has its own rank: the share at or below alpha is alpha, or less."""
    rng = np.random.default_rng(14)
    t = np.round(rng.normal(size=(40, 9)), 1)  # ties among them
    t[:, 6:] = np.exp(2 * t[:, 6:])
    families = ["a"] * 4 + ["b"] * 2 + ["c", "c", "d"]
    p = np.array(
        [rank(np.roll(t, -row, axis=0), combine, families).p_value for row in range(len(t))]
    )
    for alpha in (0.05, 0.1, 0.25, 0.5):
        assert np.mean(p <= alpha) <= alpha + 1e-9
    assert len(np.unique(p)) > 20
    by_family = rank(t, combine, families).p_by_family
    assert by_family.shape == (4,)
    assert by_family[3] == p_values(t[:, 8])[0]


def moved():
    rng = np.random.default_rng(1)
    return rng.normal(size=(300, 2)), rng.normal(size=(100, 2)) + 0.8


QUICK = {"n_toys": 19, "explain": False, "progress": False}


@pytest.mark.parametrize("statistic", COMPANY, ids=lambda one: one.name)
@pytest.mark.parametrize("preprocess", [sparker.decorrelate, sparker.unchanged])
def test_neither_unit_nor_offset_matters(statistic, preprocess):
    reference, data = moved()
    settings = {**QUICK, "statistic": statistic, "preprocess": preprocess}
    expected = sparker.test(reference, data, **settings)
    for unit, offset in ((1e39, 0), (1e-27, 0), (1.0, 1e6)):
        found = sparker.test(unit * reference + offset, unit * data + offset, **settings)
        np.testing.assert_allclose(found.statistics, expected.statistics, rtol=1e-2, atol=1e-2)
        assert found.p_value == expected.p_value == 0.05


@pytest.mark.parametrize("n_features", [2, 9])
def test_many_features_of_any_unit_have_neighbours(n_features):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, n_features))
    rows, distances = nearest(x, np.arange(60), 3)
    for unit in (1e25, 1e-25):
        again, further = nearest(unit * x, np.arange(60), 3)
        np.testing.assert_array_equal(again, rows)
        np.testing.assert_allclose(further, unit * distances, rtol=1e-4)


def test_a_row_far_out_does_not_hide_the_edges_of_its_column():
    rng = np.random.default_rng(3)
    reference, data = rng.normal(size=(300, 1)), rng.normal(size=(100, 1))
    data[:25] = 2.5 + 0.1 * data[:25]
    reference[0] = 1e6
    found = sparker.test(reference, data, statistic=Edges(), **QUICK)
    assert found.p_value == 0.05


def test_toys_without_data_are_no_surprise():
    """Where few rows are expected, some toys have none at all; they must not look strange."""
    reference, data = moved()
    found = sparker.test(reference, data[:8], expected=1.0, statistic=Neighbours(), **QUICK)
    empty = found.null_statistics[:, : len(CROWDS)]
    assert np.all(empty < 50)
    assert np.isfinite(found.null_statistics).all()


def test_labellings_that_are_alike_tie_whatever_the_chunk():
    rng = np.random.default_rng(4)
    for seed in range(5):
        reference = rng.integers(0, 2, size=(80, 1)).astype(float)
        data = rng.integers(0, 2, size=(40, 1)).astype(float)
        p = {
            sparker.test(
                reference, data, statistic=Shifts(), chunk=chunk, seed=seed, **QUICK
            ).p_value
            for chunk in (1, 32)
        }
        assert len(p) == 1
