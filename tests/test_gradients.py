"""The hand-written gradients against automatic differentiation of the textbook definition."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference

import sparker
from sparker.engine import gradient_gpu
from sparker.engine.config import Design
from sparker.engine.distances import MAX_DIRECT_FEATURES, features_of
from sparker.engine.gradient import gradient, in_blocks
from sparker.engine.losses import statistic

pytestmark = pytest.mark.usefixtures("float64")

LOSSES = ["neyman_pearson", "binary_cross_entropy", "mean_squared_error"]
COMPETITIONS = ["softmax", "independent"]
DIRECT, PRODUCT = MAX_DIRECT_FEATURES - 2, MAX_DIRECT_FEATURES + 1  # features of either form
N_KERNELS, N_DATA, N_REFERENCE, N_PADDING = 4, 12, 25, 3

gradient_jit = jax.jit(gradient, static_argnames="design")


def draw(seed, d, largest_amplitude=3.0):
    """Kernels and weighted points that overlap, so that no term of a gradient is negligible."""
    rng = np.random.default_rng(seed)
    n = N_DATA + N_REFERENCE + N_PADDING
    points = rng.normal(size=(n, d)) + 5  # off the origin: a kernel's coordinates are not r_i
    row = np.arange(n)
    data_weight = np.where(row < N_DATA, 1.0, 0)
    is_reference = (row >= N_DATA) & (row < N_DATA + N_REFERENCE)
    reference_weight = np.where(is_reference, rng.uniform(0.1, 2, n), 0)
    # The strongest kernel is close to a reference point, where exp(f) matters.
    near = np.append(N_DATA, rng.choice(N_DATA, N_KERNELS - 1, replace=False))
    mu = points[near] + 0.3 * rng.normal(size=(N_KERNELS, d))
    a = largest_amplitude * np.append(1, rng.uniform(-1, 1, N_KERNELS - 1))
    sigma = np.asarray(rng.uniform(0.3, 0.8) * np.sqrt(d))
    return sparker.engine.Ensemble(mu, a, sigma), sparker.engine.TwoSample(
        points, reference_weight, data_weight
    )


def packaged(model, sample, loss, competition):
    design = Design(
        len(model.a),
        getattr(sparker.engine, loss),
        getattr(sparker.engine, competition),
        jax.lax.Precision.HIGHEST,
    )
    return gradient_jit(model, sample, features_of(sample.points), design=design)


@functools.partial(jax.jit, static_argnames=("loss", "competition"))
def by_autodiff(model, sample, *, loss, competition):
    def total(mu, a):
        at = reference.Model(mu, a, model.sigma)
        f = reference.log_ratio(at, sample.points, getattr(reference, competition), jnp)
        weights = (sample.reference_weight, sample.data_weight)
        return reference.loss_of(getattr(reference, loss), f, *weights, jnp)

    return jax.grad(total, argnums=(0, 1))(model.mu, model.a)


def assert_same(actual, desired):
    """To ten digits of the largest entry: smaller ones are sums of terms that cancel.

    The absolute 1e-12 is for classifiers so sure of themselves that 1 - c is all rounding.
    """
    for one, other in zip(actual, desired, strict=True):
        tolerance = 1e-10 * np.abs(other).max() + 1e-12
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=tolerance)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("competition", COMPETITIONS)
@pytest.mark.parametrize("d", [DIRECT, PRODUCT])
def test_gradient_is_that_of_the_textbook_definition(d, competition, loss):
    for seed in range(5):
        model, sample = draw(seed, d)
        expected = by_autodiff(model, sample, loss=loss, competition=competition)
        assert_same(packaged(model, sample, loss, competition), expected)
        # The reference's own gradient, which whole fits are compared with, from the paper.
        loss_terms, shares = getattr(reference, loss), getattr(reference, competition)
        assert_same(reference.gradient(model, *sample, loss_terms, shares), expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("competition", COMPETITIONS)
@pytest.mark.parametrize("d", [DIRECT, PRODUCT])
def test_gradient_where_exp_goes_on_as_its_tangent(d, competition, loss):
    for seed in range(5):
        model, sample = draw(seed, d, largest_amplitude=80.0)
        f = reference.log_ratio(model, sample.points, getattr(reference, competition))
        past = (f > reference.MAX_LOG_RATIO) & (sample.reference_weight > 0)
        assert past.any()
        assert (f[sample.reference_weight > 0] < reference.MAX_LOG_RATIO).any()
        expected = by_autodiff(model, sample, loss=loss, competition=competition)
        assert_same(packaged(model, sample, loss, competition), expected)


@pytest.mark.parametrize("d", [1, MAX_DIRECT_FEATURES])
def test_gradient_in_the_other_direct_dimensions(d):
    model, sample = draw(0, d)
    expected = by_autodiff(model, sample, loss="neyman_pearson", competition="softmax")
    assert_same(packaged(model, sample, "neyman_pearson", "softmax"), expected)


def test_single_kernel_has_no_one_to_compete_with():
    model, sample = draw(0, DIRECT)
    alone = sparker.engine.Ensemble(model.mu[:1], model.a[:1], model.sigma)
    assert_same(
        packaged(alone, sample, "neyman_pearson", "softmax"),
        packaged(alone, sample, "neyman_pearson", "independent"),
    )


@pytest.mark.parametrize("d", [DIRECT, PRODUCT])
def test_points_that_no_kernel_sees_pull_nothing(d):
    """Autodiff of the SoftMax makes NaN here, which is why the gradient is written out."""
    model, sample = draw(0, d)
    is_far = np.arange(len(sample.points)) % 2 == 0
    far = sample._replace(points=np.where(is_far[:, None], 1e3, sample.points))
    without = sparker.engine.TwoSample(
        sample.points, *(np.where(is_far, 0, weight) for weight in sample[1:])
    )
    assert_same(
        packaged(model, far, "neyman_pearson", "softmax"),
        packaged(model, without, "neyman_pearson", "softmax"),
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_are_the_derivatives_and_the_papers_table(loss):
    terms, table = getattr(sparker.engine, loss), getattr(reference, loss)
    f = np.linspace(-30, 30, 601) + 1e-3  # past MAX_LOG_RATIO, which no value hits exactly
    close = functools.partial(np.testing.assert_allclose, rtol=1e-9)
    for term in ("reference", "data"):
        slope = getattr(terms, f"{term}_slope")(jnp.asarray(f))
        close(slope, getattr(table, f"{term}_slope")(f), atol=1e-14)
        close(getattr(terms, term)(jnp.asarray(f)), getattr(table, term)(f), atol=1e-14)
        close(slope, jax.vmap(jax.grad(getattr(terms, term)))(f), atol=1e-14)


def test_neyman_pearson_goes_on_straight_and_without_a_step():
    edge = reference.MAX_LOG_RATIO
    below, at, above = sparker.engine.neyman_pearson.reference(
        jnp.asarray([edge - 1e-9, edge, edge + 1e-9])
    )
    np.testing.assert_allclose([above - at, at - below], 1e-9 * np.exp(edge), rtol=1e-4)
    far = sparker.engine.neyman_pearson.reference(jnp.asarray([1e4, 2e4, 3e4]))
    np.testing.assert_allclose(np.diff(far), 1e4 * np.exp(edge))


@pytest.mark.parametrize("loss", LOSSES)
def test_loss_and_its_slope_weigh_the_points(loss):
    model, sample = draw(0, DIRECT)
    f = reference.log_ratio(model, sample.points, reference.softmax)
    terms = getattr(sparker.engine, loss)
    expected = reference.loss_of(getattr(reference, loss), f, *sample[1:])
    np.testing.assert_allclose(terms(jnp.asarray(f), sample), expected, rtol=1e-12)
    slope = terms.slope(jnp.asarray(f), sample)
    np.testing.assert_allclose(slope, jax.grad(terms)(jnp.asarray(f), sample), atol=1e-12)
    assert np.all(slope[-N_PADDING:] == 0)


def test_statistic_is_minus_twice_the_neyman_pearson_loss():
    model, sample = draw(0, DIRECT)
    f = reference.log_ratio(model, sample.points, reference.softmax)
    expected = reference.statistic(model, *sample, reference.softmax)
    np.testing.assert_allclose(statistic(jnp.asarray(f), sample), expected, rtol=1e-12)


@pytest.mark.parametrize("competition", COMPETITIONS)
@pytest.mark.parametrize("d", [DIRECT, PRODUCT])
def test_evaluations_of_a_model(d, competition):
    model, (points, *_) = draw(0, d)
    how, textbook = getattr(sparker.engine, competition), getattr(reference, competition)
    parts = sparker.engine.components(model, points, how)
    f = sparker.engine.log_ratio(model, points, how)
    np.testing.assert_allclose(parts, reference.components(model, points, textbook), rtol=1e-11)
    np.testing.assert_allclose(f, parts.sum(-1), rtol=1e-14)
    np.testing.assert_allclose(f, reference.log_ratio(model, points, textbook), rtol=1e-10)
    score = sparker.engine.anomaly_score(model, points, how)
    np.testing.assert_allclose(score, reference.anomaly_score(model, points, textbook), rtol=1e-10)
    np.testing.assert_array_equal(score > 0.5, f > 0)


def test_shares_are_the_softmax_of_negative_squared_distances():
    model, (points, *_) = draw(0, DIRECT)
    log_k = jnp.asarray(reference.log_kernels(model, points))  # (N, M)
    shares = jnp.stack(sparker.engine.softmax.activation(list(jnp.exp(log_k).T)), -1)
    np.testing.assert_allclose(shares, jax.nn.softmax(log_k), rtol=1e-12)
    assert np.all(np.stack(sparker.engine.independent.activation(list(log_k.T))) == 1)


@pytest.mark.parametrize("competition", COMPETITIONS)
def test_the_order_of_the_kernels_does_not_matter(competition):
    model, sample = draw(0, PRODUCT)
    order = np.array([2, 0, 3, 1])
    shuffled = sparker.engine.Ensemble(model.mu[order], model.a[order], model.sigma)
    d_mu, d_a = packaged(model, sample, "neyman_pearson", competition)
    assert_same(
        packaged(shuffled, sample, "neyman_pearson", competition), (d_mu[order], d_a[order])
    )
    how = getattr(sparker.engine, competition)
    np.testing.assert_allclose(
        sparker.engine.components(shuffled, sample.points, how),
        sparker.engine.components(model, sample.points, how)[:, order],
        rtol=1e-11,
    )


# The kernel for GPUs, interpreted on a CPU: the same sums, taken in another order.


@pytest.mark.parametrize("n_programs", [1, 3])
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("d", [1, 4, 20])
@pytest.mark.parametrize("competition", [sparker.engine.softmax, sparker.engine.independent])
def test_the_fused_pass_is_the_gradient(d, competition, rounded, n_programs, monkeypatch):
    monkeypatch.setattr(gradient_gpu, "MAX_ROWS", 2 * gradient_gpu.LANES)
    rng = np.random.default_rng(d)
    n_toys, n = 3, (2 * n_programs - 1) * gradient_gpu.LANES + 44  # no whole number of blocks
    assert gradient_gpu.rows_of(n).programs == n_programs
    points = jnp.asarray(rng.normal(size=(n, d)), jnp.float32)
    is_data = rng.random((n_toys, n)) < 0.3
    design = Design(
        3, sparker.engine.neyman_pearson, competition, jax.lax.Precision.HIGHEST, rounded=rounded
    )
    mu = jnp.asarray(rng.normal(size=(n_toys, 3, d)), jnp.float32)
    a = jnp.asarray(rng.normal(size=(n_toys, 3)), jnp.float32)

    def both(mu, a, reference, data):
        sample = sparker.engine.TwoSample(points, reference, data)
        features = features_of(points)
        model = sparker.engine.Ensemble(mu, a, jnp.float32(1 + d**0.5))
        plain = gradient(model, sample, features, design)
        return plain, gradient_gpu.gradient_of(sample, features, design)(model)

    weights = [jnp.asarray(w, jnp.float32) for w in (0.5 * ~is_data, is_data)]
    plain, quick = jax.jit(jax.vmap(both))(mu, a, *weights)
    # Points rounded to eight bits, where that is asked for and there are products to be rounded.
    tolerance = 0.01 if rounded and d > MAX_DIRECT_FEATURES else 2e-6
    for expected, found in zip(plain, quick, strict=True):
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def test_rows_are_shared_out_with_little_padding():
    for n in (1, 255, 256, 257, 1100, 4096, 4097, 24_000, 110_000):
        rows = gradient_gpu.rows_of(n)
        assert n <= rows.total < n + rows.programs * gradient_gpu.LANES
        assert rows.each <= gradient_gpu.MAX_ROWS


@pytest.mark.parametrize("d", [1, 2, MAX_DIRECT_FEATURES])
@pytest.mark.parametrize("n_rows", [513, 1500])
def test_blocks_of_rows_add_up_to_the_gradient_of_all(d, n_rows):
    rng = np.random.default_rng(d)
    weights = rng.uniform(0, 1, (2, n_rows))
    sample = sparker.engine.TwoSample(rng.normal(size=(n_rows, d)), *weights)
    model = sparker.engine.Ensemble(rng.normal(size=(5, d)), rng.normal(size=5), np.float64(0.7))
    design = sparker.FitConfig().design
    features = features_of(sample.points)
    whole = gradient_jit(model, sample, features, design=design)
    by_block = jax.jit(lambda model: in_blocks(sample, features, design)(model))(model)
    for one, other in zip(by_block, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
