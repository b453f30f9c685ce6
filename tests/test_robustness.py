"""Fits of hard samples in single precision: no overflow, no NaN, and no silence about one."""

import numpy as np
import pytest

import sparker

# One shape for all, so that a dimension and a loss compile once. Clips and rates are only numbers.
N_ROWS, N_KERNELS, STEPS, CHUNK = 200, 5, 300, 2
CLIPS = [5.0, 100.0, 500.0, 10_000.0]  # the default, and those of the paper


def normal(d, n=160, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def smallest_distance(points):
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    return distances[distances > 0].min()


def isolated_data(d):
    """A dense reference, and data that have no neighbour at all in the end."""
    data = normal(d, 12, seed=1)
    data[:6] += 6 * np.arange(1, 7)[:, None]
    return normal(d), data


def duplicates(d):
    return np.round(normal(d) / 2), np.round(normal(d, 30, seed=1) / 2)


def identical_points(d):
    return np.full((160, d), 0.3), np.full((30, d), 0.3)


def constant_columns(d):
    reference, data = normal(d), normal(d, 30, seed=1)
    reference[:, 1:], data[:, 1:] = 1e3 / 3, 1e3 / 3
    return reference, data


def single_data_row(d):
    return normal(d), normal(d, 1, seed=1)


def data_far_outside(d):
    return normal(d), normal(d, 30, seed=1) + 1e4


def data_on_reference(d):
    return normal(d), normal(d)[:30]


def tiny_features(d):
    return 1e-6 * normal(d), 1e-6 * normal(d, 30, seed=1)


def huge_features(d):
    return 1e6 * normal(d), 1e6 * normal(d, 30, seed=1)


def heavy_tails(d):
    rng = np.random.default_rng(0)
    return rng.standard_cauchy((160, d)), rng.standard_cauchy((30, d))


HARD = [
    isolated_data,
    duplicates,
    identical_points,
    constant_columns,
    single_data_row,
    data_far_outside,
    data_on_reference,
    tiny_features,
    huge_features,
    heavy_tails,
]


def schedules(points):
    """The paper's widths, and an annealing down to a thousandth of the smallest distance."""
    is_one_point = np.all(points == points[0])
    first, last = (1.0, 0.1) if is_one_point else sparker.engine.width_range(points)
    smallest = 1.0 if is_one_point else smallest_distance(points)
    yield sparker.engine.schedule(first, last, steps=STEPS, n_widths=5)
    yield sparker.engine.schedule(
        first, 1e-3 * smallest, steps=STEPS, n_widths=5, annealing=sparker.engine.geometric
    )


def config(loss="neyman_pearson", competition="softmax", clip=5.0, amplitude_rate=None):
    return sparker.FitConfig(
        n_kernels=N_KERNELS,
        loss=getattr(sparker.engine, loss),
        competition=getattr(sparker.engine, competition),
        clip=clip,
        # With the default rate 300 steps would never get there.
        amplitude_rate=amplitude_rate or max(0.05, clip / 50),
    )


def fits_of(samples, widths, settings):
    batch = sparker.engine.stack([sparker.engine.pad(sample, N_ROWS) for sample in samples])
    return sparker.engine.fit_many(0, batch, widths, settings, chunk=CHUNK)


def assert_finite(fits, where=""):
    for array in (*fits.models, fits.t):
        assert np.all(np.isfinite(array)), where
    assert np.all(fits.finite), where


@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize(
    ("d", "competition", "loss"),
    [
        (1, "softmax", "neyman_pearson"),
        (12, "softmax", "neyman_pearson"),
        (1, "independent", "neyman_pearson"),
        (1, "softmax", "binary_cross_entropy"),
        (12, "softmax", "mean_squared_error"),
    ],
)
def test_hard_samples_give_finite_fits(d, competition, loss, hard):
    sample = sparker.engine.two_sample(*hard(d))
    for widths in schedules(sample.points):
        for clip in CLIPS:
            fits = fits_of([sample], widths, config(loss, competition, clip))
            assert_finite(fits, f"clip {clip}, last width {widths.sigma[-1]}")
            assert np.all(np.abs(fits.models.a) <= clip)


@pytest.mark.parametrize("clip", [500.0, 10_000.0])
def test_plain_exponentials_would_have_overflowed(clip):
    """Data in excess everywhere, and a first step far past what they ask for."""
    sample = sparker.engine.two_sample(*isolated_data(1), expected=1)
    widths = next(schedules(sample.points))
    early = widths._replace(read_off=np.array([0, 1, 2, 3, STEPS - 1]))
    fits = fits_of([sample], early, config(clip=clip, amplitude_rate=clip / 2))
    assert_finite(fits)
    first = fits.toy(0).at(0)
    f = sparker.engine.log_ratio(first, sample.points[sample.reference_weight > 0])
    assert f.max() > np.log(np.finfo(np.float32).max)


@pytest.mark.parametrize("clip", CLIPS)
def test_kernels_on_isolated_points_reach_the_clip(clip):
    """Each sits on a point that nothing else sees, and adds twice its amplitude to t."""
    data = 10.0 * np.arange(1, 13)[:, None]
    widths = sparker.engine.schedule(0.5, 0.05, steps=STEPS, n_widths=5)
    fits = fits_of([sparker.engine.two_sample(normal(1), data)], widths, config(clip=clip))
    np.testing.assert_array_equal(fits.models.a[0, -1], np.float32(clip))
    np.testing.assert_allclose(fits.t[0, -1], 2 * clip * N_KERNELS, rtol=1e-5)


def test_a_toy_that_is_not_finite_is_flagged_and_harms_no_other():
    samples = [
        sparker.engine.two_sample(normal(1, seed=seed), normal(1, 30, seed=100 + seed))
        for seed in range(3)
    ]
    batch = sparker.engine.stack([sparker.engine.pad(sample, N_ROWS) for sample in samples])
    widths, _ = schedules(batch.points[0])
    clean = sparker.engine.fit_many(0, batch, widths, config(), chunk=CHUNK)
    assert clean.finite.tolist() == [True, True, True]
    for row in (0, 165):  # a reference row, a data row
        points = batch.points.copy()
        points[1, row] = np.nan
        fits = sparker.engine.fit_many(
            0, batch._replace(points=points), widths, config(), chunk=CHUNK
        )
        assert fits.finite.tolist() == [True, False, True]
        assert not np.all(np.isfinite(fits.t[1]))
        for one, other in zip((*fits.models, fits.t), (*clean.models, clean.t), strict=True):
            np.testing.assert_array_equal(one[[0, 2]], other[[0, 2]])
