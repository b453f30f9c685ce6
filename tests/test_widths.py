"""Widths: the paper's range, the two annealings, and where the test is read off."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import sparker

pytestmark = pytest.mark.unit


def test_the_range_is_the_papers():
    points = np.random.default_rng(0).normal(size=(300, 3))
    low, high = np.quantile(pdist(points), [0.01, 0.99])
    assert sparker.engine.distance_range(points) == pytest.approx((low, high))
    assert sparker.engine.width_range(points) == pytest.approx((2 * high, low / 2))


def test_a_subset_is_enough_and_reproducible():
    points = np.random.default_rng(0).normal(size=(5000, 2))
    whole = sparker.engine.width_range(points, max_points=5000)
    assert sparker.engine.width_range(points) == pytest.approx(whole, rel=0.1)
    assert sparker.engine.width_range(points) == sparker.engine.width_range(points)
    assert sparker.engine.width_range(points, seed=1) != sparker.engine.width_range(points)


def test_the_range_does_not_care_for_an_offset_or_repeated_points():
    points = np.random.default_rng(0).normal(size=(200, 2))
    expected = sparker.engine.width_range(points)
    assert sparker.engine.width_range(points + 1e7) == pytest.approx(expected, rel=1e-6)
    repeated = sparker.engine.width_range(np.repeat(points, 5, axis=0))
    assert repeated == pytest.approx(expected, rel=0.05)


def test_points_that_are_all_the_same_have_no_widths():
    with pytest.raises(ValueError, match="points that differ"):
        sparker.engine.width_range(np.ones((10, 2)))


def test_annealing_falls_to_the_last_width():
    line = sparker.engine.linear(9.0, 1.0, 8)
    np.testing.assert_allclose(line, [8, 7, 6, 5, 4, 3, 2, 1])
    curve = sparker.engine.geometric(16.0, 1.0, 4)
    np.testing.assert_allclose(curve, [8, 4, 2, 1])


@pytest.mark.parametrize("annealing", [sparker.engine.linear, sparker.engine.geometric])
@pytest.mark.parametrize("steps", [10, 12, 100, 1000])
@pytest.mark.parametrize("ratio", [1.0, 2.0, 50.0, 1e4])
def test_read_offs_are_distinct_and_end_at_the_last_width(annealing, steps, ratio):
    plan = sparker.engine.schedule(ratio, 1.0, steps=steps, n_widths=10, annealing=annealing)
    assert len(plan.read_off) == 10
    assert np.all(np.diff(plan.read_off) > 0)
    assert plan.read_off[0] >= 0
    assert plan.read_off[-1] == steps - 1
    assert plan.widths[-1] == pytest.approx(1.0)


def test_read_off_widths_are_log_spaced_where_the_steps_allow():
    plan = sparker.engine.schedule(10.0, 0.1, steps=20_000, n_widths=6)
    np.testing.assert_allclose(np.diff(np.log(plan.widths)), np.log(0.01) / 6, rtol=0.01)
    coarse = sparker.engine.schedule(10.0, 0.001, steps=100, n_widths=6)
    np.testing.assert_array_equal(coarse.read_off[-3:], [97, 98, 99])


def test_a_wide_range_ends_exactly_at_the_last_width():
    assert sparker.engine.schedule(1e17, 1.0).widths[-1] == 1.0


def test_a_trajectory_ends_where_the_fit_does():
    plan = sparker.engine.schedule(10.0, 0.1, steps=100)
    np.testing.assert_array_equal(plan.every(1).read_off, np.arange(100))
    np.testing.assert_array_equal(plan.every(30).read_off, [9, 39, 69, 99])
    with pytest.raises(ValueError, match="n_steps must be at least 1, got 0"):
        plan.every(0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first": 1.0, "last": 2.0}, "widths must fall from first to last > 0, got 1.0 to 2.0"),
        ({"first": 1.0, "last": 0.0}, "widths must fall"),
        ({"first": 2.0, "last": 1.0, "steps": 10.5}, "must be whole numbers"),
        (
            {"first": 2.0, "last": 1.0, "steps": 5},
            "1 <= n_widths <= steps <= 1,000,000, got n_widths 10 and steps 5",
        ),
    ],
)
def test_impossible_schedules_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        sparker.engine.schedule(**arguments)


def test_stairs_hold_each_width_for_an_equal_share_of_the_steps():
    plan = sparker.engine.stairs(8.0, 0.5, steps=50, n_widths=5)
    np.testing.assert_allclose(plan.widths, np.geomspace(8, 0.5, 5))
    np.testing.assert_array_equal(plan.explore, [0, 10, 20, 30, 40])
    np.testing.assert_array_equal(plan.read_off, [9, 19, 29, 39, 49])
    uneven = sparker.engine.stairs(8.0, 0.5, steps=7, n_widths=3)
    assert len(uneven.sigma) == 7
    assert set(np.bincount(np.searchsorted(uneven.read_off, np.arange(7)))) == {2, 3}


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("n", [500, 5000])
def test_the_narrowest_resolvable_width_leaves_the_median_point_enough_others(d, n):
    points = np.random.default_rng(0).normal(size=(n, d))
    first, last = sparker.engine.resolvable_range(points)
    assert first == pytest.approx(sparker.engine.distance_range(points)[1])
    squared = ((points[:400, None] - points[None]) ** 2).sum(-1)
    others = np.exp(-squared / (2 * last**2)).sum(1) - 1
    assert np.median(others) == pytest.approx(min(100, n / 10), rel=0.25)


def test_the_resolvable_range_does_not_care_for_scale_offset_or_labels():
    points = np.random.default_rng(0).normal(size=(1000, 2))
    expected = sparker.engine.resolvable_range(points)
    scaled = sparker.engine.resolvable_range(1e-3 * points + 7)
    np.testing.assert_allclose(scaled, 1e-3 * np.array(expected), rtol=1e-6)


def test_repeated_points_have_a_range():
    first, last = sparker.engine.resolvable_range(np.repeat(np.eye(3), 200, axis=0))
    assert 0 < last < first


def test_a_width_config_may_read_off_evenly():
    points = np.random.default_rng(0).normal(size=(300, 2))
    config = sparker.WidthConfig(
        steps=100, n_widths=4, annealing=sparker.engine.linear, evenly=True
    )
    np.testing.assert_array_equal(config.schedule(points).read_off, [24, 49, 74, 99])
    assert len(config.schedule(points).explore) == 0
    assert len(sparker.WidthConfig().schedule(points).explore) == 10


def test_the_papers_settings_are_the_papers():
    settings = sparker.presets.paper("gravitational waves")
    plan = settings["widths"].schedule(np.random.default_rng(0).normal(size=(300, 2)))
    assert (len(plan.sigma), len(plan.explore)) == (100_000, 0)
    assert (settings["config"].l2, settings["config"].clip) == (1.0, 100.0)
    assert settings["combine"] is sparker.minimum_and_product
    points = np.random.default_rng(0).normal(size=(300, 2))
    result = sparker.test(
        points[:250], points[250:], n_toys=5, **sparker.presets.paper("jets", steps=50)
    )
    assert result.families == ("kernels",)
    with pytest.raises(ValueError, match=r"one of .*Dante"):
        sparker.presets.paper("dogs")
