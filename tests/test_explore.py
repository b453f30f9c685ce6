"""Exploration: what a scan sees is what slow sums see, and kernels go where something is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sparker
from sparker import explore
from sparker.distances import features_of
from sparker.ensemble import Ensemble
from sparker.sample import pad, pool, stack, two_sample

DESIGN = sparker.FitConfig(n_kernels=3, n_candidates=40).design


def crowded(d, *, n_reference=400, n_data=120, seed=0):
    """Weighted reference rows, data, and a few rows of padding."""
    rng = np.random.default_rng(seed)
    reference, data = rng.normal(size=(n_reference, d)), rng.normal(size=(n_data, d))
    weights = rng.uniform(0.5, 2, n_reference)
    sample = two_sample(reference, data, reference_weights=weights)
    return pad(sample, n_reference + n_data + 7)


def slow_scan(centres, sample, sigma, f):
    """The same sums with loops over nothing but NumPy, in double precision."""
    x, w_reference, w_data = (np.asarray(array, np.float64) for array in sample)
    squared = ((x[None] - centres[:, None]) ** 2).sum(-1)
    k, wide = np.exp(-squared / (2 * sigma**2)), np.exp(-squared / (2 * (2 * sigma) ** 2))
    seen, expected, tilted = k @ w_data, k @ w_reference, k @ (w_reference * np.exp(f))
    there = (w_data > 0) | (w_reference > 0)
    weight = (w_reference**2).sum() / w_reference.sum()
    a = np.clip(np.log(seen / expected), -20, 20)
    lonely = 2 * (a * seen - np.expm1(a) * expected)
    bump = (seen - expected) ** 2 / (weight * (k[:, there] ** 2).sum(1))
    shape = np.empty(len(centres))
    for i in range(len(centres)):
        both = np.stack([k[i], wide[i]])
        excess = both @ (w_data - w_reference)
        information = weight * both[:, there] @ both[:, there].T
        shape[i] = excess @ np.linalg.solve(information, excess)
    return seen, tilted, np.array([lonely.max(), bump.max(), shape.max()])


@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_a_scan_is_what_slow_sums_give(d, sigma):
    sigma = sigma * d**0.5
    sample = crowded(d)
    centres = sample.points[np.flatnonzero(sample.data_weight)[:50]]
    f = np.random.default_rng(1).normal(size=len(sample.points))
    with jax.enable_x64(True):
        found = explore.scan(
            jnp.asarray(centres),
            jnp.ones(50, bool),
            sample,
            features_of(sample.points),
            jnp.asarray(sigma),
            jnp.exp(jnp.asarray(f)),
            DESIGN,
        )
    seen, tilted, evidence = slow_scan(centres, sample, sigma, f)
    np.testing.assert_allclose(found.data, seen, rtol=1e-10)
    np.testing.assert_allclose(found.tilted, tilted, rtol=1e-10)
    np.testing.assert_allclose(found.evidence, evidence, rtol=1e-8)


def test_what_is_no_candidate_is_no_evidence():
    sample = crowded(2)
    centres = jnp.asarray(sample.points[np.flatnonzero(sample.data_weight)[:50]], jnp.float32)

    def evidence(is_one):
        return explore.scan(
            centres, jnp.asarray(is_one), sample, features_of(np.float32(sample.points)),
            jnp.float32(0.5), jnp.ones(len(sample.points)), DESIGN,
        ).evidence  # fmt: skip

    some = np.arange(50) < 20
    alone = explore.scan(
        centres[:20], jnp.ones(20, bool), sample, features_of(np.float32(sample.points)),
        jnp.float32(0.5), jnp.ones(len(sample.points)), DESIGN,
    ).evidence  # fmt: skip
    np.testing.assert_allclose(evidence(some), alone, rtol=1e-5)
    assert np.all(evidence(np.zeros(50, bool)) == 0)


def chosen(sample, sigma, n_candidates, key=0):
    features = features_of(np.float32(sample.points))
    design = DESIGN._replace(n_candidates=n_candidates)
    field = explore.survey(jax.random.key(key), sample, features)
    return jax.tree.map(
        np.asarray, explore.choose(jax.random.key(key), field, features, jnp.float32(sigma), design)
    )


def test_candidates_are_distinct_data_points():
    sample = crowded(2)
    centres, is_one = chosen(sample, 0.5, 40)
    assert is_one.all()
    data = np.float32(sample.points[np.asarray(sample.data_weight) > 0])
    rows = {tuple(row) for row in centres.tolist()}
    assert len(rows) == 40
    assert rows <= {tuple(row) for row in data.tolist()}


def test_all_data_points_are_candidates_where_there_is_room():
    sample = crowded(2, n_data=30)
    centres, is_one = chosen(sample, 0.5, 40)
    data = np.float32(sample.points[np.asarray(sample.data_weight) > 0])
    assert is_one.sum() == 30
    assert {tuple(row) for row in centres[is_one].tolist()} == {tuple(r) for r in data.tolist()}


def test_lonely_points_are_candidates_rather_than_crowded_ones():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(3000, 2))
    data = np.concatenate([rng.normal(size=(600, 2)), [[9.0, 9.0], [-9.0, 9.0], [9.0, -9.0]]])
    sample = two_sample(reference, data)
    for key in range(5):
        centres, _ = chosen(sample, 0.5, 60, key)
        assert np.sum(np.abs(centres).min(1) > 8) == 3
    # While at a width that sees everything, all are as good as any other.
    far = [np.sum(np.abs(chosen(sample, 1e3, 60, key)[0]).min(1) > 8) for key in range(20)]
    assert np.mean(far) < 1.5


def placed(mu, a, sigma, sample):
    features = features_of(np.float32(sample.points))
    model = Ensemble(jnp.float32(mu), jnp.float32(a), jnp.float32(sigma))
    centres, is_one = chosen(sample, sigma, 200)
    k = sparker.log_ratio(Ensemble(*(np.asarray(array) for array in model)), sample.points)
    seen = explore.scan(
        jnp.asarray(centres), jnp.asarray(is_one), sample, features, jnp.float32(sigma),
        jnp.exp(jnp.float32(k)), DESIGN,
    )  # fmt: skip
    new = explore.place(
        model, seen, jnp.asarray(centres), jnp.asarray(is_one), sample, features, 5.0, DESIGN
    )
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


def isolated(seed=0):
    """Six events where the reference has none, far from everything."""
    rng = np.random.default_rng(seed)
    reference, data = rng.normal(size=(4000, 2)), rng.normal(size=(400, 2))
    data[:6] = [8.0, 0.0] + 0.2 * rng.normal(size=(6, 2))
    return two_sample(reference, data)


STAIRS = sparker.stairs(8.0, 0.2, steps=100, n_widths=5)


def test_a_fit_finds_events_that_no_kernel_starts_near():
    config = sparker.FitConfig(n_kernels=2)
    for seed in range(3):
        result = sparker.fit(seed, isolated(), STAIRS, config)
        at_width_one = result.at(2)
        strongest = np.argmax(at_width_one.a)
        np.testing.assert_allclose(at_width_one.mu[strongest], [8.0, 0.0], atol=0.3)


def test_readings_hold_t_the_strongest_kernel_and_the_scan():
    result = sparker.fit(0, isolated(), STAIRS)
    assert result.evidence.shape == (5, len(sparker.READINGS))
    np.testing.assert_array_equal(result.t, result.evidence[:, 0])
    sample = isolated()
    for width in range(5):
        parts = sparker.components(result.at(width), sample.points)
        each = [
            2 * (parts[sample.data_weight > 0, i].sum()
                 - (sample.reference_weight * np.expm1(parts[:, i])).sum())
            for i in range(parts.shape[1])
        ]  # fmt: skip
        assert result.evidence[width, 1] == pytest.approx(max(each), rel=1e-3, abs=1e-2)
    # Six events alone, each worth up to twice the largest amplitude of 20.
    assert 80 < result.evidence[2, 2] <= 6 * 2 * 20
    plain = sparker.fit(0, isolated(), sparker.schedule(8.0, 0.2, steps=50, n_widths=5))
    assert plain.evidence.shape == (5, 1)


def test_padding_is_never_seen():
    sample = isolated()
    longer = pad(sample, len(sample.points) + 500)
    config = sparker.FitConfig(n_candidates=400)  # all data points: nothing is left to chance
    one, other = (sparker.fit(0, s, STAIRS, config) for s in (sample, longer))
    np.testing.assert_allclose(one.evidence[:, 2:], other.evidence[:, 2:], rtol=1e-3, atol=1e-3)


def test_a_toy_explores_alike_in_any_company():
    samples = stack([isolated(seed) for seed in range(5)])
    together = sparker.fit_many(0, samples, STAIRS, chunk=4)
    for order in ([3, 1, 4, 0, 2], [4, 3, 2, 1, 0]):
        again = sparker.fit_many(0, samples.toys(order), STAIRS, toys=order, chunk=4)
        np.testing.assert_array_equal(again.evidence, together.evidence[order])
    alone = sparker.fit_many(0, samples.toys([2]), STAIRS, toys=[2], chunk=4)
    np.testing.assert_array_equal(alone.evidence[0], together.evidence[2])


def test_a_pool_and_points_of_their_own_explore_alike():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1100, 2))
    labels = np.stack([rng.permutation(1100) < 100 for _ in range(3)])
    shared = pool(points, labels)
    own = sparker.TwoSample(np.broadcast_to(points, (3, 1100, 2)).copy(), *shared[1:])
    one, other = (sparker.fit_many(0, s, STAIRS) for s in (shared, own))
    np.testing.assert_allclose(one.evidence, other.evidence, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_data", [3, 2])
def test_very_few_data_points_are_no_trouble(dtype, n_data):
    rng = np.random.default_rng(0)
    sample = two_sample(rng.normal(size=(50, 3)), rng.normal(size=(n_data, 3)))
    result = sparker.fit(0, sample, STAIRS, sparker.FitConfig(n_kernels=5, dtype=dtype))
    assert result.finite


def test_explorations_must_be_steps_of_the_schedule():
    plan = sparker.stairs(4.0, 1.0, steps=10, n_widths=2)
    for wrong in ([3, 5], [0, 0], [0, 10], [5, 0]):
        with pytest.raises(ValueError, match="explore must be rising"):
            sparker.fit(0, isolated(), plan._replace(explore=np.array(wrong)))
    with pytest.raises(ValueError, match="n_candidates"):
        sparker.FitConfig(n_candidates=0)
