"""The paper's theory as properties of the gradients that the package trains with.

``df/da_i`` and ``df/dmu_i`` at a point are read from ``sparker.engine.gradient``: the loss of a
single data row is ``-f``. Where the appendix prints a bound that does not hold, the comment gives
both what is printed and what is tested.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import sparker
from sparker.engine.config import Design
from sparker.engine.distances import features_of
from sparker.engine.gradient import gradient

pytestmark = pytest.mark.usefixtures("float64")

M = 3
properties = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    # The fixture switches to double precision, for all examples of a test alike.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
dimensions = pytest.mark.parametrize("d", [2, 6])  # one for each form of the distances
amplitudes = arrays(np.float64, M, elements=st.floats(-5, 5, width=32))
widths = st.floats(0.8, 5)
levels = st.floats(1e-6, 0.6)  # alpha; below exp(-1/2), where r k(r) falls with r


def vectors(*shape, bound=3):
    return arrays(np.float64, shape, elements=st.floats(-bound, bound, width=32))


@functools.partial(jax.jit, static_argnames="n_kernels")
def descent_direction(mu, a, sigma, x, w_reference, w_data, n_kernels=M):
    """Minus the gradient of the Neyman-Pearson loss of a sample of one row."""
    points = x[None]
    sample = sparker.engine.TwoSample(points, w_reference[None], w_data[None])
    design = Design(
        n_kernels, sparker.engine.neyman_pearson, sparker.engine.softmax, jax.lax.Precision.HIGHEST
    )
    d_mu, d_a = gradient(sparker.engine.Ensemble(mu, a, sigma), sample, features_of(points), design)
    return -d_mu, -d_a


def move(model, x, *, is_data):
    weights = np.asarray(1.0 - is_data), np.asarray(float(is_data))
    d_mu, d_a = descent_direction(*model, x, *weights, n_kernels=len(model.a))
    return np.asarray(d_mu), np.asarray(d_a)


def derivatives(model, x):
    """``df/dmu`` (M, d) and ``df/da`` (M,): where data pull, f rises."""
    return move(model, x, is_data=True)


def model_of(mu, a, sigma):
    return reference.Model(mu, a, np.asarray(sigma))


def values(model, x):
    """k, p and f at a point, by the reference."""
    log_k = reference.log_kernels(model, x)
    return np.exp(log_k), reference.softmax(log_k), reference.log_ratio(model, x, reference.softmax)


# Lemma (radial influence): df/dmu_i = A_i(x) r_i with A_i = [2 a_i k_i - f] p_i / sigma^2


@jax.jit
def autodiff(mu, a, sigma, x):
    def f(mu, a):
        return reference.log_ratio(reference.Model(mu, a, sigma), x, reference.softmax, jnp)

    return jax.grad(f, argnums=(0, 1))(mu, a)


@dimensions
def test_locations_feel_a_radial_force(d):
    @properties
    @given(vectors(M, d), amplitudes, widths, vectors(d))
    def check(mu, a, sigma, x):
        model = model_of(mu, a, sigma)
        k, p, f = values(model, x)
        force = ((2 * a * k - f) * p / sigma**2)[:, None] * (x - mu)  # A_i r_i
        by_autodiff, in_a = autodiff(*model, x)
        np.testing.assert_allclose(force, by_autodiff, rtol=1e-8, atol=1e-13)
        d_mu, d_a = derivatives(model, x)
        np.testing.assert_allclose(d_mu, force, rtol=1e-8, atol=1e-13)
        np.testing.assert_allclose(d_a, in_a, rtol=1e-8, atol=1e-13)

    check()


# Lemma (push-pull): a point attracts kernel i where m_i (2 y - 1) > 0, m_i = 2 a_i k_i - f


@dimensions
@pytest.mark.parametrize("is_data", [True, False])
def test_sign_of_the_charge_decides_between_push_and_pull(d, is_data):
    seen = set()

    @properties
    @given(vectors(M, d), amplitudes, widths, vectors(d))
    def check(mu, a, sigma, x):
        model = model_of(mu, a, sigma)
        k, p, f = values(model, x)
        charge = 2 * a * k - f
        step, _ = move(model, x, is_data=is_data)
        towards = np.sum(step * (x - mu), -1)  # (M,)
        # Not where the terms of the charge cancel to rounding, or the force is none at all.
        clear = np.abs(charge) > 1e-9 * (np.abs(a * k) + np.sum(np.abs(a) * p * k))
        clear &= np.abs(charge) * p * np.sum((x - mu) ** 2, -1) > 1e-12
        attracts = charge * (2 * is_data - 1) > 0
        np.testing.assert_array_equal((towards > 0)[clear], attracts[clear])
        seen.update(attracts[clear])

    check()
    assert seen == {True, False}


# Lemma (sphere of influence): what points outside r_alpha = sigma sqrt(-2 ln alpha) can do


def radius(alpha, sigma):
    return sigma * np.sqrt(-2 * np.log(alpha))


@st.composite
def outside_points(draw, d):
    """A model, and a point outside the sphere of kernel 0; of the others it may be inside."""
    sigma, alpha = draw(widths), draw(levels)
    direction = draw(vectors(d))
    length = np.linalg.norm(direction)
    assume(length > 1e-3)
    distance = radius(alpha, sigma) * (1 + draw(st.floats(1e-9, 1)))
    x = draw(vectors(d))
    near = x + sigma * draw(vectors(M - 1, d, bound=2))
    mu = np.concatenate([[x - distance * direction / length], near])
    return model_of(mu, draw(amplitudes), sigma), x, alpha


def charge_of_first(model, x):
    """``[2 a_0 k_0 - f] p_0``, read from the length of the gradient along ``r_0``."""
    d_mu, _ = derivatives(model, x)
    r = x - model.mu[0]
    return model.sigma**2 * (d_mu[0] @ r) / (r @ r)


@dimensions
def test_points_outside_the_sphere_hardly_move_an_amplitude(d):
    @properties
    @given(outside_points(d))
    def check(drawn):
        model, x, alpha = drawn
        _, d_a = derivatives(model, x)
        assert 0 <= d_a[0] <= alpha

    check()


@dimensions
def test_points_outside_the_sphere_hardly_move_a_location(d):
    """Both cases of the proof.

    Case 1, x outside all spheres. Printed for a_i < 0: ``2 a_i k_i - f >= -alpha (-2 |a_i| +
    sum_J+ |a_j|)``. The sign of ``2 |a_i|`` is wrong, see the counterexample below.

    Case 2, x inside the sphere of some j. The same sign is wrong for a_i < 0. The other kernels are
    all taken to be outside theirs, so with two of them inside the bounds miss one; and the last
    line, ``|2 a_i k_i - f| p_i <= alpha |a_j| p_j``, drops terms of second order in alpha. Here all
    kernels that have x inside add ``|a_j| p_j k_j`` to the side of their sign.

    Without cases: ``p_i k_j = p_j k_i`` turns the product into ``k_i (2 a_i p_i - sum_j a_j
    p_j^2)``, so that ``|2 a_i k_i - f| p_i <= alpha (2 |a_i| p_i + sum_(j != i) |a_j| p_j^2)``
    and that is at most ``alpha (2 |a_i| + max |a|)``: linear in alpha, which is what matters.
    """
    inside_counts = set()

    @properties
    @given(outside_points(d))
    def check(drawn):
        model, x, alpha = drawn
        k, p, f = values(model, x)
        size, rounding = np.abs(model.a), 1e-12 * (1 + np.abs(model.a).sum())
        inside = k >= alpha
        assert not inside[0]
        inside_counts.add(int(inside.sum()))

        # A kernel adds to f at most alpha |a_j| from outside, and |a_j| p_j k_j from inside.
        share = np.where(inside, size * p * k, alpha * size)
        up, down = share[model.a > 0].sum(), share[model.a < 0].sum()  # J+ and J-
        lower = -up - 2 * alpha * size[0] * (model.a[0] < 0)
        upper = down + 2 * alpha * size[0] * (model.a[0] > 0)
        assert lower - rounding <= 2 * model.a[0] * k[0] - f <= upper + rounding
        charge = charge_of_first(model, x)
        p_at_most = alpha / k[inside].max() if inside.any() else 1
        assert lower * p_at_most - rounding <= charge <= upper * p_at_most + rounding

        without_cases = alpha * (2 * size[0] * p[0] + np.sum(size[1:] * p[1:] ** 2))
        assert abs(charge) <= without_cases + rounding
        assert without_cases <= alpha * (2 * size[0] + size.max())

    check()
    assert inside_counts == set(range(M))


def test_printed_bound_for_negative_amplitudes_does_not_hold():
    alpha, model = 0.1, model_of(np.zeros((1, 2)), np.array([-1.0]), 1.0)
    x = np.array([1.001 * radius(alpha, 1.0), 0])
    charge = charge_of_first(model, x)  # p = 1: -2 k + k = -k
    printed = -alpha * (-2 * 1.0 + 0)
    assert charge < 0 < printed
    assert charge >= -alpha * (2 * 1.0 + 0)


def test_printed_bound_for_one_inside_kernel_does_not_hold_for_two():
    """Kernels 1 and 2 both see x well; the printed bound, with j = 1, does not know of kernel 2."""
    alpha = 0.01
    x = np.zeros(1)
    mu = np.array([[1.01 * radius(alpha, 1.0)], [1.0], [0.0]])
    model = model_of(mu, np.array([0.0, 1.0, 5.0]), 1.0)
    k, p, _ = values(model, x)
    assert list(k >= alpha) == [False, True, True]
    charge = charge_of_first(model, x)
    assert abs(charge) > alpha * p[1] * 1.0
    assert abs(charge) <= alpha * np.sum(np.abs(model.a) * p**2)


@dimensions
def test_gradient_of_a_location_vanishes_outside_the_sphere(d):
    """The lemma is about ``|df/dmu_i| = |A_i| |r_i|``; the proof bounds A_i and stops there.

    r k(r) falls beyond r = sigma. With the bound above that gives, for alpha <= exp(-1/2),
    ``|df/dmu_i| <= alpha sqrt(-2 ln alpha) (2 |a_i| + max |a|) / sigma``.
    """

    @properties
    @given(outside_points(d))
    def check(drawn):
        model, x, alpha = drawn
        d_mu, _ = derivatives(model, x)
        size = np.abs(model.a)
        epsilon = alpha * np.sqrt(-2 * np.log(alpha)) * (2 * size[0] + size.max()) / model.sigma
        assert np.linalg.norm(d_mu[0]) <= epsilon * (1 + 1e-9) + 1e-14

    check()


# Lemma (scale annealing leads to localization)


@properties
@given(st.floats(0.2, 5), st.floats(0.05, 0.99), levels, vectors(20, 2, bound=10))
def test_sphere_is_where_the_kernel_exceeds_alpha_and_shrinks_with_the_width(
    sigma, ratio, alpha, x
):
    narrower = ratio * sigma
    assert radius(alpha, narrower) < radius(alpha, sigma)
    distance = np.linalg.norm(x, axis=1)

    def sees(width):
        # One kernel of amplitude one: f = k.
        one = sparker.engine.Ensemble(np.zeros((1, 2)), np.ones(1), np.asarray(width))
        k = sparker.engine.log_ratio(one, np.append(x, [[radius(alpha, width), 0]], 0))
        np.testing.assert_allclose(k[-1], alpha, rtol=1e-9)
        on_edge = np.isclose(distance, radius(alpha, width), rtol=1e-9)
        np.testing.assert_array_equal(
            (k[:-1] >= alpha) | on_edge, (distance <= radius(alpha, width)) | on_edge
        )
        return k[:-1] >= alpha

    assert not np.any(sees(narrower) & ~sees(sigma))


# Theorem (local convergence): one data point in sight, one kernel of amplitude one


def distances_on_descent(x, start, sigma, eta, steps):
    """``delta_t`` under plain gradient descent of the location, from t = 0 on."""
    mu, deltas = start, []
    for _ in range(steps + 1):
        deltas.append(np.linalg.norm(mu - x))
        d_mu, _ = move(model_of(mu[None], np.ones(1), sigma), x, is_data=True)
        mu = mu + eta * d_mu[0]
    return np.array(deltas)


@settings(properties, max_examples=15)
@given(
    vectors(2),
    st.floats(0, 6.3),
    st.floats(0.1, 10),
    st.floats(0.05, 0.7),
    st.floats(0.01, 0.2),
    st.floats(1e-4, 0.1),
)
def test_kernel_converges_to_the_only_point_it_sees(x, angle, sigma, rate, near, epsilon):
    """Printed: ``delta_t = delta_0 (1 - eta/sigma^2)^t``, so ``delta_t <= epsilon`` from then on.

    That drops ``exp(-delta^2 / 2 sigma^2) < 1``, hence holds to first order and from above: the
    kernel is a little later. What is exact: the rate is at least ``eta/sigma^2`` times this
    exponential at the start, and the number of steps with that rate suffices.
    """
    eta, delta_0 = rate * sigma**2, near * sigma
    start = x + delta_0 * np.array([np.cos(angle), np.sin(angle)])
    slowest = rate * np.exp(-(near**2) / 2)
    enough = int(np.ceil(np.log(1 / epsilon) / -np.log(1 - slowest)))
    delta = distances_on_descent(x, start, sigma, eta, enough)
    t = np.arange(enough + 1)
    printed, slower = delta_0 * (1 - rate) ** t, delta_0 * (1 - slowest) ** t
    rounding = 1e-12
    assert np.all(printed * (1 - rounding) <= delta + rounding)
    assert np.all(delta <= slower * (1 + rounding) + rounding)
    assert delta[-1] <= epsilon * delta_0 * (1 + rounding) + rounding
    # First order: what is neglected is of second order in delta_0 / sigma, summed over all steps.
    neglected = np.exp(near**2 * np.exp(near**2 / 2) / (2 * (1 - rate) * (2 - rate)))
    assert np.all(delta <= printed * neglected + rounding)
    # The theorem's own number of steps, on which the printed law reaches epsilon.
    theorem = int(np.ceil(np.log(1 / epsilon) / -np.log(1 - rate)))
    assert theorem <= enough
    assert delta[theorem] <= epsilon * delta_0 * neglected + rounding


def test_steps_to_convergence_grow_with_the_logarithm_of_epsilon():
    x, start, sigma, rate = np.array([1.0, 2]), np.array([1.1, 2]), 2.0, 0.3
    delta = distances_on_descent(x, start, sigma, rate * sigma**2, 60)
    steps = [np.argmax(delta <= 0.1 * epsilon) for epsilon in (1e-2, 1e-4, 1e-6)]
    np.testing.assert_allclose(np.diff(steps), np.log(1e2) / -np.log(1 - rate), atol=1)


def test_other_kernels_far_away_do_not_delay_convergence():
    """The theorem's ``p_i = 1`` nearly: the others are out of sight, whatever their amplitude."""
    x, sigma, eta = np.array([0.5, -0.5]), 1.0, 0.2
    mu = np.array([[0.6, -0.5], [9.0, 0.0], [0.0, -9.0]])
    alone = distances_on_descent(x, mu[0], sigma, eta, 20)
    a = np.array([1.0, 5.0, -5.0])
    for delta in alone:
        np.testing.assert_allclose(np.linalg.norm(mu[0] - x), delta, atol=1e-12)
        d_mu, _ = move(model_of(mu, a, sigma), x, is_data=True)
        mu = mu + eta * d_mu
    np.testing.assert_allclose(mu[1:], [[9, 0], [0, -9]], atol=1e-9)
