"""Whole fits against the NumPy reference, and what must not change them."""

import functools

import jax
import numpy as np
import pytest
import reference

import sparker
from sparker.engine.step import init

SEED, N_KERNELS, N_ROWS, N_TOYS = 5, 3, 150, 4
SCHEDULE = sparker.engine.schedule(6.0, 0.4, steps=60, n_widths=4)
# Away from the defaults; these numbers change the fit and not the compiled program.
RATES = {"clip": 3.0, "l2": 0.1, "location_rate": 0.02, "amplitude_rate": 0.04}
CLIP = 0.08  # small enough to be felt in every fit


def config(loss="neyman_pearson", competition="softmax", dtype=np.float64, **rates):
    return sparker.FitConfig(
        n_kernels=N_KERNELS,
        loss=getattr(sparker.engine, loss),
        competition=getattr(sparker.engine, competition),
        dtype=dtype,
        **{**RATES, **rates},
    )


def cloud(rng, n, d, n_signal=0):
    """Normal points off the origin, some of them in a clump."""
    points = rng.normal(size=(n, d)) + 3
    points[:n_signal] = 4.5 + 0.2 * rng.normal(size=(n_signal, d))
    return points


def weighed(x, is_data, own, expected):
    """A toy as the documentation describes it, made by hand: reference adds up to expected."""
    own = np.where(is_data, 0, own)
    return x, own * expected / own.sum(), is_data.astype(float)


def pool_of_toys(d):
    """Toys that share their points, with event weights and expectations of their own."""
    rng = np.random.default_rng(d)
    x = cloud(rng, N_ROWS, d, n_signal=10)
    is_data = np.zeros((N_TOYS, N_ROWS), bool)
    for toy, n_data in enumerate([30, 40, 20, 30]):
        is_data[toy, rng.choice(N_ROWS, n_data, replace=False)] = True
    own = rng.uniform(0.2, 3, N_ROWS)
    expected = [30.0, 55.0, 20.0, 12.5]
    toys = [weighed(x, *one) for one in zip(is_data, [own] * N_TOYS, expected, strict=True)]
    return sparker.engine.pool(x, is_data, weights=own, expected=expected), toys


def padded_toys(d):
    """Toys with points of their own, all but the first shorter than the batch."""
    rng = np.random.default_rng(d)
    samples, toys = [], []
    for n_data, n_reference in [(40, 110), (30, 100), (25, 80), (40, 60)]:
        data, ref = cloud(rng, n_data, d, n_signal=5), cloud(rng, n_reference, d)
        own = rng.uniform(0.2, 3, n_reference)
        expected = n_data + 5.0
        samples.append(
            sparker.engine.two_sample(ref, data, reference_weights=own, expected=expected)
        )
        rows, is_data = np.concatenate([ref, data]), np.arange(n_reference + n_data) >= n_reference
        toys.append(weighed(rows, is_data, np.append(own, np.ones(n_data)), expected))
    return sparker.engine.stack(samples), toys


FORMS = {"pool": pool_of_toys, "padded": padded_toys}

start = jax.jit(init, static_argnames="n_kernels")


def start_rows(toy, w_data, n_rows=N_ROWS):
    """The rows on which this toy's kernels start: points that are their own row numbers tell.

    Padded to one length to compile once; that padding leaves the draw alone has its own test.
    """
    key = jax.random.fold_in(jax.random.key(SEED), toy)
    rows = np.arange(n_rows, dtype=np.float32)[:, None]
    w_data = np.pad(w_data, (0, n_rows - len(w_data)))
    state = start(key, sparker.engine.TwoSample(rows, np.zeros(n_rows), w_data), N_KERNELS)
    return np.asarray(state.mu[:, 0]).astype(int)


@pytest.mark.parametrize(
    ("d", "competition", "loss", "form"),
    [  # each loss with each competition, in all dimensions and forms: compiling takes seconds
        (1, "softmax", "neyman_pearson", "pool"),
        (2, "softmax", "binary_cross_entropy", "padded"),
        (6, "softmax", "mean_squared_error", "pool"),
        (6, "independent", "neyman_pearson", "padded"),
        (1, "independent", "binary_cross_entropy", "pool"),
        (2, "independent", "mean_squared_error", "padded"),
        (6, "softmax", "neyman_pearson", "padded"),
    ],
)
def test_fits_equal_the_reference(d, competition, loss, form):
    samples, toys = FORMS[form](d)
    for rates in (RATES, RATES | {"clip": CLIP, "l2": 0.0}):
        settings = config(loss, competition, **rates)
        fits = sparker.engine.fit_many(SEED, samples, SCHEDULE, settings, chunk=N_TOYS)
        assert fits.finite.all()
        assert (np.abs(fits.models.a) == rates["clip"]).any() == (rates["clip"] == CLIP)
        for toy, (x, w_reference, w_data) in enumerate(toys):
            models, t = reference.fit(
                x,
                w_reference,
                w_data,
                x[start_rows(toy, w_data)],
                SCHEDULE.sigma,
                SCHEDULE.read_off,
                getattr(reference, loss),
                getattr(reference, competition),
                **rates,
            )
            close = functools.partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-10)
            close(fits.models.mu[toy], [model.mu for model in models])
            close(fits.models.a[toy], [model.a for model in models])
            close(fits.models.sigma[toy], [model.sigma for model in models])
            close(fits.t[toy], t)


@pytest.mark.parametrize(("d", "form"), [(1, "pool"), (6, "padded")])
def test_single_precision_agrees_with_double(d, form):
    samples, toys = FORMS[form](d)
    single = sparker.engine.fit_many(
        SEED, samples, SCHEDULE, config(dtype=np.float32), chunk=N_TOYS
    )
    double = sparker.engine.fit_many(SEED, samples, SCHEDULE, config(), chunk=N_TOYS)
    assert single.models.a.dtype == np.float32
    np.testing.assert_allclose(single.t, double.t, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(single.models.a, double.models.a, atol=1e-3)
    # The statistic is that of the model given back, on the points as they were given.
    for toy, weighted in enumerate(toys):
        for width in range(len(SCHEDULE.read_off)):
            model = single.toy(toy).at(width)
            t = reference.statistic(model, *weighted, reference.softmax)
            np.testing.assert_allclose(single.t[toy, width], t, rtol=1e-4, atol=1e-4)


def test_kernels_start_on_distinct_data_points():
    w_data = (np.arange(N_ROWS) % 10 == 0).astype(float)
    starts = [start_rows(toy, w_data) for toy in range(20)]
    assert all(len(set(rows)) == N_KERNELS for rows in starts)
    assert np.all(w_data[starts] == 1)
    assert len({tuple(rows) for rows in starts}) > 10
    padded = [start_rows(toy, w_data, n_rows=N_ROWS + 7) for toy in range(20)]
    np.testing.assert_array_equal(starts, padded)


def test_kernels_share_the_data_points_there_are():
    alone, pair = (np.isin(np.arange(N_ROWS), rows).astype(float) for rows in ([4], [4, 9]))
    np.testing.assert_array_equal(start_rows(0, alone), 4)
    assert set(start_rows(0, pair)) == {4, 9}


def alone(sample, widths=SCHEDULE, **settings):
    """One toy, in the program that the batches of padded toys have compiled."""
    batch = sparker.engine.stack([sparker.engine.pad(sample, N_ROWS)])
    fits = sparker.engine.fit_many(SEED, batch, widths, config(**settings), chunk=N_TOYS)
    return fits.toy(0)


def data_and_reference(d=6):
    rng = np.random.default_rng(1)
    return cloud(rng, 30, d, n_signal=5), cloud(rng, 100, d)


def assert_same_fit(one, other, rtol):
    np.testing.assert_allclose(one.models.mu, other.models.mu, rtol=rtol)
    np.testing.assert_allclose(one.models.a, other.models.a, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(one.t, other.t, rtol=rtol, atol=rtol)


def test_weight_of_two_is_a_row_given_twice():
    data, ref = data_and_reference()
    # Data first, so that the repeated row moves none of the rows that kernels start from.
    is_data = np.arange(len(data) + len(ref)) < len(data)
    weights = np.where(np.arange(len(is_data)) == len(data), 2.0, 1.0)
    points = np.concatenate([data, ref])
    weighted = sparker.engine.pool(points, is_data, weights=weights)
    repeated = sparker.engine.pool(np.concatenate([points, ref[:1]]), np.append(is_data, False))
    plain = sparker.engine.pool(points, is_data)
    assert_same_fit(alone(weighted), alone(repeated), rtol=1e-8)
    assert np.all(np.abs(alone(weighted).t - alone(plain).t) > 1e-4)


def test_expected_counts_the_reference():
    data, ref = data_and_reference()
    default, same, more = (
        sparker.engine.two_sample(ref, data, expected=expected) for expected in (None, 30, 40)
    )
    np.testing.assert_array_equal(alone(default).t, alone(same).t)
    # Ten events short of the expectation over the whole space: the amplitudes turn negative.
    assert alone(more).models.a[0].max() < 0 < alone(default).models.a[-1].max()


def test_only_ratios_of_the_weights_matter():
    data, ref = data_and_reference()
    own = np.random.default_rng(2).uniform(0.1, 1, len(ref))
    small, large = (
        sparker.engine.two_sample(ref, data, reference_weights=factor * own)
        for factor in (1e-3, 1e3)
    )
    assert_same_fit(alone(small), alone(large), rtol=1e-8)


@pytest.mark.parametrize("factor", [1e-4, 1e5])
def test_scale_of_features_and_widths_drops_out(factor):
    data, ref = data_and_reference()
    widths = sparker.engine.Schedule(SCHEDULE.sigma * factor, SCHEDULE.read_off)
    base = alone(sparker.engine.two_sample(ref, data))
    scaled = alone(sparker.engine.two_sample(ref * factor, data * factor), widths)
    back = sparker.engine.Ensemble(scaled.models.mu / factor, scaled.models.a, scaled.models.sigma)
    assert_same_fit(scaled._replace(models=back), base, rtol=1e-8)


@pytest.mark.parametrize(("d", "form"), [(1, "pool"), (6, "padded")])
def test_offset_of_the_features_drops_out_before_single_precision(d, form):
    samples, _ = FORMS[form](d)
    # In single precision numbers around 1e6 are 0.06 apart, a sixth of the last width.
    offset = 1e6
    moved = samples._replace(points=samples.points + offset)
    base, far = (
        sparker.engine.fit_many(SEED, batch, SCHEDULE, config(dtype=np.float32), chunk=N_TOYS)
        for batch in (samples, moved)
    )
    back = sparker.engine.Ensemble(far.models.mu - offset, far.models.a, far.models.sigma)
    assert_same_fit(far._replace(models=back), base, rtol=1e-3)


def test_evaluation_of_a_model_far_from_the_origin():
    data, _ = data_and_reference()
    a, sigma = np.array([2.0, -1.0]), np.asarray(1.5)
    base, far = (
        sparker.engine.log_ratio(
            sparker.engine.Ensemble(data[:2] + offset, a, sigma), data + offset
        )
        for offset in (0, 1e6)
    )
    np.testing.assert_allclose(far, base, rtol=1e-5, atol=1e-6)
