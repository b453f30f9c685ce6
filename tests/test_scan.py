"""Exploration: what a scan sees is what slow sums see, and kernels go where something is."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sparker
from sparker.detect import prepare
from sparker.engine import candidates, scan
from sparker.engine.candidates import SHARED
from sparker.engine.distances import features_of
from sparker.engine.ensemble import Ensemble
from sparker.engine.sample import pad, pool, stack, two_sample

DESIGN = sparker.FitConfig(n_kernels=3, n_candidates=40).design


def crowded(d, *, n_reference=400, n_data=120, seed=0):
    """Weighted reference rows, data, and a few rows of padding."""
    rng = np.random.default_rng(seed)
    reference, data = rng.normal(size=(n_reference, d)), rng.normal(size=(n_data, d))
    weights = rng.uniform(0.5, 2, n_reference)
    sample = two_sample(reference, data, reference_weights=weights)
    return pad(sample, n_reference + n_data + 8)


def slow_scan(centres, weights, sample, sigma, f):
    """The same sums with loops over nothing but NumPy, in double precision."""
    x, w_reference, w_data = (np.asarray(array, np.float64) for array in sample)
    squared = ((x[None] - centres[:, None]) ** 2).sum(-1)
    k, wide = np.exp(-squared / (2 * sigma**2)), np.exp(-squared / (2 * 2 * sigma**2))
    seen, expected, tilted = k @ w_data, k @ w_reference, k @ (w_reference * np.exp(f))
    there = (w_data > 0) | (w_reference > 0)
    weight = (w_reference**2).sum() / w_reference.sum()
    a = np.clip(np.log(seen / expected), -20, 20)
    isolated = 2 * (a * seen - np.expm1(a) * expected)
    bump = (seen - expected) ** 2 / (weight * (k[:, there] ** 2).sum(1))
    shape = np.empty(len(centres))
    for i in range(len(centres)):
        both = np.stack([k[i], wide[i]])
        excess = both @ (w_data - w_reference)
        information = weight * both[:, there] @ both[:, there].T
        shape[i] = excess @ np.linalg.solve(information, excess)
    ratios = np.stack([isolated, bump, shape])
    chance = 2 * np.log(np.sum(weights / k[:, there].sum(1)))
    return seen, tilted, chance, 2 * np.log(np.average(np.exp(ratios / 2), 1, weights))


def idle(sigma):
    """Kernels that say nothing."""
    return Ensemble(np.zeros((5, 2), np.float32), np.zeros(5, np.float32), np.float32(sigma))


def single(sample):
    return jax.tree.map(np.float32, sample)


@functools.partial(jax.jit, static_argnames="block")
def scanned(model, centres, log_weight, sample, block):
    """A scan, in the precision of what it is given."""
    features = features_of(sample.points)
    return scan.scan(model, centres, log_weight, sample, features, DESIGN, block)


# Whole programs: operation by operation, each would be compiled by itself.
place = jax.jit(scan.place)
own_candidates, shared_candidates = (
    jax.jit(choose, static_argnames=("design", "block"))
    for choose in (candidates.own_candidates, candidates.shared_candidates)
)


@pytest.mark.parametrize("block", [7, 50])
@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_a_scan_is_what_slow_sums_give(d, sigma, block):
    sigma = sigma * d**0.5
    sample = crowded(d)
    centres = sample.points[np.flatnonzero(sample.data_weight)[:50]]
    rng = np.random.default_rng(1)
    weights = rng.uniform(1, 30, 50)
    model = Ensemble(sample.points[:5], rng.normal(size=5), np.float64(sigma))
    f = sparker.engine.log_ratio(model, sample.points)
    with jax.enable_x64(True):
        found = scanned(model, centres, jnp.log(jnp.asarray(weights)), sample, block)
    seen, tilted, chance, statistics = slow_scan(centres, weights, sample, sigma, f)
    np.testing.assert_allclose(found.data, seen, rtol=1e-10)
    np.testing.assert_allclose(found.tilted, tilted, rtol=1e-10)
    np.testing.assert_allclose(found.chance, max(chance, 0), rtol=1e-8)
    np.testing.assert_allclose(found.statistics, statistics, rtol=1e-8)
    t = [2 * (sample.data_weight @ f - sample.reference_weight @ np.expm1(f)) for f in (
        sparker.engine.log_ratio(Ensemble(np.delete(model.mu, i, 0), np.delete(model.a, i), sigma),
                          sample.points)
        for i in ([], *range(5))
    )]  # fmt: skip
    np.testing.assert_allclose(found.t, t, rtol=1e-8)


def test_what_is_no_candidate_is_no_evidence():
    sample = crowded(2)
    centres = jnp.asarray(sample.points[np.flatnonzero(sample.data_weight)[:50]], jnp.float32)
    centres = centres.at[30:40].set(1e3)  # far from every point: a row that this toy does not have

    def statistics_of(centres, is_one):
        weight = jnp.log(jnp.asarray(is_one, jnp.float32))
        return scanned(idle(0.5), centres, weight, single(sample), 16).statistics

    alone = statistics_of(centres[:20], np.ones(20, bool))
    np.testing.assert_allclose(statistics_of(centres, np.arange(50) < 20), alone, rtol=1e-5)
    assert np.all(statistics_of(centres, np.zeros(50, bool)) == 0)


def chosen(sample, sigma, n_candidates, key=0):
    """The candidates of a toy with points of its own."""
    design = DESIGN._replace(n_candidates=n_candidates)
    looked_at = own_candidates(
        jax.random.key(key), jax.tree.map(np.float32, sample), jnp.float32([sigma]),
        design=design, block=100,
    )  # fmt: skip
    return np.asarray(looked_at.rows[0]), np.exp(looked_at.log_weight[0])


def test_random_bits_do_not_depend_on_how_jax_is_set():
    key = jax.random.fold_in(jax.random.key(3), 7)
    expected = jax.random.bits(key, (1001,), jnp.uint32)
    np.testing.assert_array_equal(candidates.bits(key, 1001), expected)
    with jax.default_prng_impl("rbg"):
        assert candidates.bits(candidates.random_key(3), 3).shape == (3,)


def test_candidates_are_distinct_data_points():
    sample = crowded(2)
    rows, weights = chosen(sample, 0.5, 40)
    assert np.all(weights >= 1)
    assert len(set(rows.tolist())) == 40
    assert np.all(np.asarray(sample.data_weight)[rows] > 0)


def test_all_data_points_are_candidates_where_there_is_room():
    sample = crowded(2, n_data=30)
    rows, weights = chosen(sample, 0.5, 40)
    assert np.all(weights == 1)
    data = np.flatnonzero(sample.data_weight)
    assert np.sum(rows == candidates.NONE) == 10
    assert set(rows[rows != candidates.NONE].tolist()) == set(data.tolist())


CORNERS = np.array([[9.0, 9.0], [-9.0, 9.0], [9.0, -9.0]])


def test_isolated_points_are_candidates_rather_than_crowded_ones():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(3000, 2))
    sample = two_sample(reference, np.concatenate([rng.normal(size=(600, 2)), CORNERS]))
    isolated = len(sample.points) - 3

    def found(width, key):
        return np.sum(chosen(sample, width, 60, key)[0] >= isolated)

    assert [found(0.5, key) for key in range(5)] == [3] * 5
    # While at a width that sees everything, all are as good as any other.
    assert np.mean([found(1e3, key) for key in range(20)]) < 1.5


def test_candidates_stand_for_all_data_points():
    """One over the chance to be drawn: sums over all points are met on average."""
    rng = np.random.default_rng(0)
    data = np.concatenate([rng.normal(size=(600, 2)), CORNERS])
    sample = two_sample(rng.normal(size=(3000, 2)), data)
    quantity = np.exp(-np.abs(sample.points[:, 0]))  # anything that varies from place to place
    sums = []
    for key in range(60):
        rows, weights = chosen(sample, 0.5, 100, key)
        sums.append([weights.sum(), weights @ quantity[rows]])
    expected = len(data), quantity[3000:].sum()
    error = np.std(sums, axis=0) / 60**0.5
    assert np.all(np.abs(np.mean(sums, axis=0) - expected) < 4 * error)
    assert np.all(error < 0.02 * np.array(expected))


def test_candidates_of_a_pool_do_not_depend_on_the_labels():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(3000, 2)), CORNERS]).astype(np.float32)
    design = DESIGN._replace(n_candidates=10)
    widths = jnp.float32([0.5, 1e3])
    key = jax.random.key(0)
    rows = np.asarray(shared_candidates(key, points, widths, design, 100)[0])
    assert rows.shape == (2, 10 * candidates.SHARED)
    assert all(len(set(of_width.tolist())) == rows.shape[1] for of_width in rows)
    assert np.sum(rows[0] >= 3000) == 3
    # Points are all it is given: any labelling of them is looked at in the same places.
    few, _ = shared_candidates(jax.random.key(0), points[:30], widths, design, 100)
    assert all(set(of_width) == set(range(30)) for of_width in np.asarray(few).tolist())


def placed(mu, a, sigma, sample, chance=None):
    model = Ensemble(jnp.float32(mu), jnp.float32(a), jnp.float32(sigma))
    rows, weights = chosen(sample, sigma, 200)
    centres, is_one = jnp.float32(sample.points)[rows], jnp.asarray(rows != candidates.NONE)
    weight = jnp.where(is_one, jnp.log(weights), -jnp.inf)
    seen = scanned(model, centres, weight, single(sample), 64)
    if chance is not None:
        seen = seen._replace(chance=jnp.float32(chance))
    new = place(model, seen, centres, is_one, 5.0)
    return tuple(np.asarray(array) for array in new)


def two_clusters():
    """Eight events at one empty corner and five at another."""
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(3000, 2)), rng.normal(size=(300, 2))
    data[:8], data[8:13] = [[7.0, 7.0]] + 0.1 * rng.normal(size=(8, 2)), [[-7.0, 7.0]]
    return two_sample(reference, data)


def test_idle_kernels_move_to_what_they_explain_best_and_keep_apart():
    sample = two_clusters()
    mu, a = placed(np.zeros((3, 2)), np.zeros(3), 0.5, sample)
    first, second = (np.linalg.norm(mu - corner, axis=1) for corner in ([7, 7], [-7, 7]))
    assert np.sum(first < 0.5) == 1
    assert np.sum(second < 0.5) == 1
    assert a[np.argmin(first)] == pytest.approx(5.0)  # no reference there: up to the clip
    distances = np.linalg.norm(mu[:, None] - mu[None], axis=-1)[np.triu_indices(3, 1)]
    assert np.all(distances > 2 * 0.5)


def test_a_kernel_that_explains_something_stays():
    sample = two_clusters()
    mu, a = placed([[7.0, 7.0], [0.0, 0.0], [0.0, 1.0]], [4.0, 0.0, 0.0], 0.5, sample)
    assert mu[0].tolist() == [7.0, 7.0]
    assert a[0] == 4.0
    assert np.min(np.linalg.norm(mu[1:] - [-7, 7], axis=1)) < 0.5


def test_a_place_that_a_kernel_explains_is_left_to_it():
    """At the clip the place still shows an excess; a second kernel there would only share it."""
    sample = two_clusters()
    mu, _ = placed([[7.0, 7.0], [0.0, 0.0], [0.0, 1.0]], [5.0, 0.0, 0.0], 0.5, sample)
    assert np.sum(np.linalg.norm(mu - [7, 7], axis=1) < 1) == 1
    assert np.sum(np.linalg.norm(mu - [-7, 7], axis=1) < 1) == 1


def test_kernels_only_move_to_what_chance_does_not_give():
    for beyond, moved in ((-1, 1), (1, 0)):
        # Of three kernels, one has nothing to do and one place to go to.
        sample = two_clusters()
        gained = 2 * (5 * 5 - np.expm1(5.0) * 0)  # five events, no reference, up to the clip
        mu, _ = placed(
            [[7.0, 7.0], [0.0, 0.0], [0.0, 1.0]], [5.0, 0.0, 0.0], 0.5, sample,
            chance=gained + beyond,
        )  # fmt: skip
        assert np.sum(np.linalg.norm(mu - [-7, 7], axis=1) < 1) == moved


def isolated(seed=0):
    """Six events where the reference has none, far from everything."""
    rng = np.random.default_rng(seed)
    reference, data = rng.normal(size=(4000, 2)), rng.normal(size=(400, 2))
    data[:6] = [8.0, 0.0] + 0.2 * rng.normal(size=(6, 2))
    return two_sample(reference, data)


STAIRS = sparker.engine.stairs(8.0, 0.2, steps=100, n_widths=5)
TWO = sparker.FitConfig(n_kernels=2)


def test_a_fit_finds_events_that_no_kernel_starts_near():
    for seed in range(3):
        result = sparker.engine.fit(seed, isolated(), STAIRS, TWO)
        at_width_one = result.at(2)
        strongest = np.argmax(at_width_one.a)
        np.testing.assert_allclose(at_width_one.mu[strongest], [8.0, 0.0], atol=0.3)


def test_statistics_hold_t_and_the_scan():
    result = sparker.engine.fit(0, isolated(), STAIRS, TWO)
    assert result.statistics.shape == (5, len(sparker.engine.FAMILIES))
    np.testing.assert_array_equal(result.t, result.statistics[:, 0])
    # Six events alone, each worth up to twice the largest amplitude of 20, found by six of some
    # two thousand candidates: the average costs at most the log of these.
    least = 6 * 2 * 20 - 2 * np.log(SHARED * 512)
    assert 0.8 * least < result.statistics[3, 1] <= 6 * 2 * 20
    plain = sparker.engine.fit(
        0, isolated(), sparker.engine.schedule(8.0, 0.2, steps=50, n_widths=5), TWO
    )
    assert plain.statistics.shape == (5, 1)


EVERYWHERE = sparker.FitConfig(n_kernels=2, n_candidates=400)
"""Looks at all data points: nothing is left to chance."""


def test_padding_is_never_seen():
    sample = isolated()
    longer = pad(sample, len(sample.points) + 500)
    one, other = (
        sparker.engine.fit_many(0, stack([s]), STAIRS, EVERYWHERE, chunk=4)
        for s in (sample, longer)
    )
    np.testing.assert_allclose(
        one.statistics[..., 1:], other.statistics[..., 1:], rtol=1e-3, atol=1e-3
    )


def test_a_toy_explores_alike_in_any_company():
    samples = stack([isolated(seed) for seed in range(5)])

    def fits(order):
        return sparker.engine.fit_many(
            0, samples.toys(order), STAIRS, EVERYWHERE, toys=order, chunk=4
        )

    together = fits(range(5))
    for order in ([3, 1, 4, 0, 2], [4, 3, 2, 1, 0]):
        again = fits(order)
        np.testing.assert_array_equal(again.statistics, together.statistics[order])
    alone = fits([2])
    np.testing.assert_array_equal(alone.statistics[0], together.statistics[2])


def test_a_pool_is_scanned_as_if_each_toy_were_alone():
    rng = np.random.default_rng(0)
    points, centres = np.float32(rng.normal(size=(1100, 2))), np.float32(rng.normal(size=(60, 2)))
    labels = np.stack([rng.permutation(1100) < 100 for _ in range(3)])
    toys = jax.tree.map(jnp.float32, pool(points, labels))
    amplitudes = jnp.float32(rng.uniform(-1, 1, (3, 5)))

    @jax.jit
    def scanned_toy(sample, a):
        some = jnp.where(jnp.arange(60) < 50, 0.0, -jnp.inf)
        model = Ensemble(jnp.asarray(centres[:5]), a, jnp.float32(0.4))
        return scanned(model, centres, some, sample, 16)

    together = jax.vmap(scanned_toy, (sparker.engine.TwoSample(None, 0, 0), 0))(toys, amplitudes)
    for i in range(3):
        alone = scanned_toy(
            sparker.engine.TwoSample(toys.points, toys[1][i], toys[2][i]), amplitudes[i]
        )
        for both, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(both[i], one, rtol=1e-4)


@pytest.mark.parametrize(("dtype", "n_data"), [(np.float32, 2), (np.float64, 3)])
def test_very_few_data_points_are_no_trouble(dtype, n_data):
    rng = np.random.default_rng(0)
    sample = two_sample(rng.normal(size=(50, 3)), rng.normal(size=(n_data, 3)))
    result = sparker.engine.fit(0, sample, STAIRS, sparker.FitConfig(n_kernels=5, dtype=dtype))
    assert result.finite


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"strata": (np.arange(200) % 2, np.arange(40) % 2)},
        {"null": sparker.Simulator(lambda rng, n: rng.normal(size=(n, 2)))},
        {"null": sparker.Simulator(np.random.default_rng(1).normal(size=(200, 2)))},
    ],
    ids=["permutation", "strata", "simulator", "pool"],
)
def test_toys_of_every_exact_scheme_explore(settings):
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(200, 2)), rng.normal(size=(40, 2))
    for widths in (None, sparker.WidthConfig(steps=20, n_widths=2)):
        config = sparker.TestConfig(n_toys=2, widths=widths, **settings)
        prepared = prepare(reference, data, config).plan.prepared
        families = dict.fromkeys(reading.family for reading in prepared.statistic.component_tests)
        assert tuple(families)[:4] == sparker.engine.FAMILIES


def test_explorations_must_be_steps_of_the_schedule():
    plan = sparker.engine.stairs(4.0, 1.0, steps=10, n_widths=2)
    for wrong in ([3, 5], [0, 0], [0, 10], [5, 0]):
        with pytest.raises(ValueError, match="explore must be rising"):
            sparker.engine.fit(0, isolated(), plan._replace(explore=np.array(wrong)))
    with pytest.raises(ValueError, match="n_candidates"):
        sparker.FitConfig(n_candidates=0)
