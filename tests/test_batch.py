"""Batches: a toy is the same wherever it runs, and nothing compiles twice."""

import functools
import pickle
import threading
import time

import jax
import numpy as np
import pytest

import sparker
from sparker.engine import chunk, programs

CHUNK = 4
N_TOYS = 10
STEPS = 40
FORMS = {"direct": 2, "product": 12}
DOUBLE = sparker.FitConfig(dtype=np.float64)


def make_pool(
    d: int, seed: int = 0, n: int = 200, n_toys: int = N_TOYS
) -> sparker.engine.TwoSample:
    rng = np.random.default_rng(seed)
    is_data = np.zeros((n_toys, n), bool)
    for labels in is_data:
        labels[rng.choice(n, 30, replace=False)] = True
    return sparker.engine.pool(rng.normal(size=(n, d)), is_data)


def per_toy(pooled: sparker.engine.TwoSample) -> sparker.engine.TwoSample:
    """The same toys, each with a copy of the points."""
    return pooled._replace(points=np.stack([pooled.points] * len(pooled.data_weight)))


def widths_of(samples: sparker.engine.TwoSample) -> sparker.engine.Schedule:
    return sparker.engine.schedule(
        *sparker.engine.width_range(samples.points), steps=STEPS, n_widths=5
    )


def assert_same_bits(one: sparker.engine.Fit, other: sparker.engine.Fit) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


def only(result: sparker.engine.Fit, toys: list[int]) -> sparker.engine.Fit:
    return jax.tree.map(lambda array: array[toys], result)


@pytest.mark.parametrize("d", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("form", [lambda s: s, per_toy], ids=["pool", "per toy"])
@pytest.mark.parametrize("toys", [[7], [9, 0, 7, 3, 2], list(range(9, -1, -1))], ids=len)
def test_a_toy_is_the_same_to_the_bit_whatever_its_place_and_company(d, form, toys):
    pooled = make_pool(d)
    samples, widths = form(pooled), widths_of(pooled)
    whole = sparker.engine.fit_many(3, samples, widths, chunk=CHUNK)
    part = sparker.engine.fit_many(3, samples.toys(toys), widths, toys=toys, chunk=CHUNK)
    assert_same_bits(part, only(whole, toys))


@pytest.mark.parametrize("d", FORMS.values(), ids=FORMS)
def test_rows_that_only_other_toys_use_change_no_bit(d):
    samples = make_pool(d)
    weights = [w.copy() for w in samples[1:]]
    for toy in range(N_TOYS):
        for w in weights:
            w[toy, 20 * toy : 20 * toy + 20] = 0
    samples = sparker.engine.TwoSample(samples.points + 50, *weights)
    widths = widths_of(samples)
    whole = sparker.engine.fit_many(3, samples, widths, chunk=CHUNK)
    alone = sparker.engine.fit_many(3, samples.toys([7]), widths, toys=[7], chunk=CHUNK)
    assert_same_bits(alone, only(whole, [7]))


@pytest.mark.parametrize("d", FORMS.values(), ids=FORMS)
def test_chunk_sizes_and_forms_agree_up_to_rounding(d):
    samples = make_pool(d)
    widths = widths_of(samples)
    whole = sparker.engine.fit_many(3, samples, widths, DOUBLE, chunk=CHUNK)
    other = sparker.engine.fit_many(3, samples, widths, DOUBLE, chunk=7)
    copied = sparker.engine.fit_many(3, per_toy(samples), widths, DOUBLE, chunk=CHUNK)
    for result in (other, copied):
        np.testing.assert_allclose(result.t, whole.t, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(result.models.mu, whole.models.mu, rtol=1e-8, atol=1e-8)


def test_a_single_fit_is_toy_zero():
    samples = make_pool(2)
    widths = widths_of(samples)
    first = sparker.engine.TwoSample(
        samples.points, samples.reference_weight[0], samples.data_weight[0]
    )
    alone = sparker.engine.fit(3, first, widths)
    among = sparker.engine.fit_many(3, samples, widths, chunk=2)
    np.testing.assert_array_equal(alone.t, among.t[0])
    np.testing.assert_array_equal(alone.at(-1).mu, among.models.mu[0, -1])
    assert alone.at(-1).mu.shape == (5, 2)
    assert alone.finite.shape == ()


def test_toys_start_differently_and_the_seed_decides():
    samples = make_pool(2, n_toys=1)
    twins = sparker.engine.TwoSample(samples.points, *(np.repeat(w, 2, 0) for w in samples[1:]))
    widths = widths_of(samples)
    one = sparker.engine.fit_many(0, twins, widths, chunk=2)
    again = sparker.engine.fit_many(0, twins, widths, chunk=2)
    other = sparker.engine.fit_many(1, twins, widths, chunk=2)
    assert_same_bits(one, again)
    assert not np.array_equal(one.models.mu[0], one.models.mu[1])
    assert not np.array_equal(one.models.mu[0], other.models.mu[0])


def test_nothing_compiles_again_for_other_seeds_values_rates_or_a_short_last_chunk():
    samples = make_pool(2)
    widths = widths_of(samples)
    sparker.engine.fit_many(0, samples, widths, chunk=CHUNK)
    before = programs.run_part._cache_size()
    sparker.engine.fit_many(1, samples, widths, chunk=CHUNK)
    sparker.engine.fit_many(0, make_pool(2, seed=5), widths_of(make_pool(2, seed=5)), chunk=CHUNK)
    sparker.engine.fit_many(0, samples.toys([0, 1, 2]), widths, chunk=CHUNK)
    rates = sparker.FitConfig(clip=7.0, l2=0.1, location_rate=0.02, amplitude_rate=0.1)
    sparker.engine.fit_many(0, samples, widths, rates, chunk=CHUNK)
    assert programs.run_part._cache_size() == before
    sparker.engine.fit_many(0, samples, widths, sparker.FitConfig(n_kernels=2), chunk=CHUNK)
    assert (
        programs.run_part._cache_size() == before + 3
    )  # so the count above can fail: start, stages, finish


@pytest.fixture
def one_core(monkeypatch):
    """A chunk at a time."""
    monkeypatch.setattr("sparker.engine.memory.n_cores", lambda: 1)


@pytest.mark.usefixtures("one_core")
def test_chunks_are_given_out_as_they_are_done_and_drawn_only_then():
    samples = make_pool(2)
    widths = widths_of(samples)
    asked = []

    def draw(toys):
        asked.append(list(toys))
        return samples.toys(toys)

    chunks = sparker.engine.fit_chunks(3, draw, range(N_TOYS), widths, chunk=CHUNK)
    numbers, first = next(chunks)
    assert list(numbers) == [0, 1, 2, 3]
    assert asked == [[0], [0, 1, 2, 3]]  # one to see what they are like
    rest = list(chunks)
    assert [len(n) for n, _ in rest] == [4, 2]
    whole = sparker.engine.fit_many(3, samples, widths, chunk=CHUNK)
    assert_same_bits(first, only(whole, [0, 1, 2, 3]))
    assert_same_bits(rest[-1][1], only(whole, [8, 9]))


@pytest.mark.parametrize("form", [lambda s: s, per_toy], ids=["pool", "per toy"])
def test_cores_work_side_by_side_and_change_no_bit(form, monkeypatch):
    pooled = make_pool(2)
    samples, widths = form(pooled), widths_of(pooled)
    asked = []

    def fits(n_cores):
        monkeypatch.setattr("sparker.engine.memory.n_cores", lambda: n_cores)
        asked.clear()

        def draw(numbers):
            asked.append(len(numbers))
            return samples.toys(numbers)

        chunks = sparker.engine.fit_chunks(3, draw, range(N_TOYS), widths, chunk=CHUNK)
        sizes, parts = zip(*((len(numbers), part) for numbers, part in chunks), strict=True)
        return sizes, jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)

    sizes, alone = fits(1)
    assert sizes == (4, 4, 2)
    assert asked == [1, 4, 4, 2]
    sizes, together = fits(2)
    assert asked == [1, 8, 2]
    assert sizes == (4, 4, 2)
    assert_same_bits(together, alone)


def test_reading_off_every_step_leaves_the_fit_alone():
    samples = make_pool(2)
    widths = widths_of(samples)
    usual = sparker.engine.fit_many(3, samples, widths, chunk=CHUNK)
    path = sparker.engine.fit_many(3, samples, widths.every(1), chunk=CHUNK)
    assert path.t.shape == (N_TOYS, STEPS)
    np.testing.assert_allclose(
        path.models.mu[:, widths.read_off], usual.models.mu, rtol=1e-4, atol=1e-4
    )


@pytest.mark.usefixtures("one_core")
def test_points_of_their_own_may_share_a_buffer():
    samples = per_toy(make_pool(2))
    samples = samples._replace(points=samples.points + np.arange(N_TOYS)[:, None, None])
    widths = sparker.engine.schedule(10.0, 0.1, steps=STEPS, n_widths=5)
    buffer = np.empty_like(samples.points[:CHUNK])

    def draw(toys):
        chosen = samples.toys(toys)
        buffer[: len(toys)] = chosen.points
        return chosen._replace(points=buffer[: len(toys)] if len(toys) < CHUNK else buffer)

    chunks = list(sparker.engine.fit_chunks(3, draw, range(N_TOYS), widths, chunk=CHUNK))
    whole = sparker.engine.fit_many(3, samples, widths, chunk=CHUNK)
    np.testing.assert_array_equal(np.concatenate([done.t for _, done in chunks]), whole.t)


@pytest.mark.parametrize("d", FORMS.values(), ids=FORMS)
def test_padding_changes_nothing_even_far_from_zero(d):
    rng = np.random.default_rng(0)
    sample = sparker.engine.two_sample(
        1e6 + rng.normal(size=(170, d)), 1e6 + rng.normal(size=(30, d))
    )
    widths = widths_of(sample)

    def fit(sample):
        only = sparker.engine.TwoSample(sample.points, *(weight[None] for weight in sample[1:]))
        return sparker.engine.fit_many(3, only, widths, DOUBLE, chunk=CHUNK)

    plain, padded = fit(sample), fit(sparker.engine.pad(sample, 300))
    np.testing.assert_allclose(padded.t, plain.t, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("d", [4, 12])
def test_the_statistic_is_exact_for_a_kernel_far_out_in_heavy_tails(d):
    rng = np.random.default_rng(2)
    points = rng.standard_cauchy(size=(600, d)) * 10
    sample = sparker.engine.pool(points, np.arange(600) < 100)
    result = sparker.engine.fit(
        0, sample, sparker.engine.schedule(*sparker.engine.width_range(points), steps=300)
    )
    for width, t in enumerate(result.t):
        f = sparker.engine.log_ratio(result.at(width), points)
        assert f.dtype == np.float64
        exact = 2 * (sample.data_weight @ f - sample.reference_weight @ np.expm1(f))
        assert t == pytest.approx(exact, rel=1e-4, abs=1e-4)


def test_settings_travel_to_other_processes():
    settings = sparker.FitConfig(
        loss=sparker.engine.binary_cross_entropy,
        competition=sparker.engine.independent,
        dtype=np.float64,
    )
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(pickle.loads(pickle.dumps(settings)).design) == hash(settings.design)


def test_training_keeps_to_its_precision_and_the_statistic_is_double():
    samples = make_pool(2)
    single = samples._replace(points=samples.points.astype(np.float32))
    result = sparker.engine.fit_many(0, single, widths_of(samples), chunk=CHUNK)
    assert result.models.mu.dtype == result.models.a.dtype == np.float32
    assert result.t.dtype == np.float64
    double = sparker.engine.fit_many(0, single, widths_of(samples), DOUBLE, chunk=CHUNK)
    assert {array.dtype for array in double.models} == {np.dtype(np.float64)}


def test_a_batch_of_fits_is_taken_apart_toy_by_toy():
    samples = make_pool(2)
    many = sparker.engine.fit_many(0, samples, widths_of(samples), chunk=CHUNK)
    np.testing.assert_array_equal(many.toy(3).at(1).mu, many.models.mu[3, 1])
    with pytest.raises(ValueError, match=r"this holds 10 fits; choose one first, with \.toy"):
        many.at(0)
    with pytest.raises(ValueError, match="this is a single fit already"):
        many.toy(3).toy(0)


def growing(samples: sparker.engine.TwoSample, toys: list[int]) -> sparker.engine.TwoSample:
    rows = slice(200 + toys[0])
    return sparker.engine.TwoSample(
        samples.points[rows], *(w[list(toys), rows] for w in samples[1:])
    )


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda s, toys: s.toys(toys[:1]), "asked for a batch of 4 toys and gave 1"),
        (lambda s, toys: s.toys(range(9)), "asked for a batch of 4 toys and gave 9"),
        (
            lambda s, toys: s.toys([0])._replace(data_weight=s.data_weight[0]),
            "gave a single sample",
        ),
        (growing, r"gave toys of shape \(204, 2\) after \(200, 2\); pad all"),
    ],
    ids=["too few", "too many", "single", "growing"],
)
@pytest.mark.usefixtures("one_core")
def test_what_is_drawn_is_checked(draw, message):
    samples = make_pool(2, n=210)
    chunks = sparker.engine.fit_chunks(
        0, functools.partial(draw, samples), range(8), widths_of(samples), chunk=CHUNK
    )
    with pytest.raises(ValueError, match=message):
        list(chunks)


@pytest.mark.parametrize("toys", [[0, -1], [0.5], [2**32]])
def test_toys_are_counted_in_whole_numbers(toys):
    samples = make_pool(2)
    with pytest.raises(ValueError, match="toys must be whole numbers between 0 and"):
        sparker.engine.fit_chunks(0, samples.toys, toys, widths_of(samples))


@pytest.mark.parametrize(
    ("sigma", "read_off", "message"),
    [
        ([1.0, 2.0], [1], "never grow"),
        ([1.0, 0.0], [1], "positive widths"),
        ([2.0, 1.0], [0], "end with the last, 1, got"),
        ([2.0, 1.0], [1, 1], "rising step indices"),
        ([2.0, 1.0], [-1, 1], "rising step indices"),
    ],
)
def test_impossible_schedules_made_by_hand_are_refused(sigma, read_off, message):
    samples = make_pool(2)
    plan = sparker.engine.Schedule(np.array(sigma), np.array(read_off))
    with pytest.raises(ValueError, match=message):
        sparker.engine.fit_many(0, samples, plan)


def test_wrong_batches_are_refused():
    samples = make_pool(2)
    widths = widths_of(samples)
    single = sparker.engine.two_sample([[0.0], [1.0]], [[0.5]])
    with pytest.raises(ValueError, match="use fit_many"):
        sparker.engine.fit(0, samples, widths)
    with pytest.raises(ValueError, match="or use fit"):
        sparker.engine.fit_many(0, single, widths)
    with pytest.raises(ValueError, match="each once, got 2"):
        sparker.engine.fit_many(0, samples, widths, toys=[0, 1])
    with pytest.raises(ValueError, match="chunk must be at least 1, got 0"):
        sparker.engine.fit_many(0, samples, widths, chunk=0)
    with pytest.raises(ValueError, match="seed must be between"):
        sparker.engine.fit_chunks(-1, samples.toys, [0], widths)  # at once, not when it is iterated
    with pytest.raises(ValueError, match="at least one toy"):
        sparker.engine.fit_many(0, samples.toys(np.arange(0)), widths)
    with pytest.raises(ValueError, match="only a batch has toys"):
        single.toys([0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_kernels": 0}, "n_kernels must be a whole number from 1 on, got 0"),
        ({"clip": 0.0}, "clip must be positive and finite, got 0.0"),
        ({"l2": -1.0}, "l2 must be at least 0 and finite, got -1.0"),
        ({"location_rate": np.inf}, "location_rate must be positive and finite, got inf"),
        ({"dtype": np.float16}, "dtype must be float32 or float64, got float16"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        sparker.FitConfig(**settings)


def test_an_error_in_one_chunk_stops_those_beside_it():
    stop, told = threading.Event(), []

    def trained(part, on_part):
        if part.start == 0:
            raise FloatingPointError("of the first")
        assert stop.wait(20)  # as a chunk that looks before each part
        raise InterruptedError

    with pytest.raises(FloatingPointError, match="of the first"):
        chunk.side_by_side(trained, [slice(0, 4), slice(4, 8)], stop, told.append)


def test_parts_are_told_by_the_thread_that_waits():
    threads = set()

    def trained(part, on_part):
        on_part(1.0)
        time.sleep(3 * chunk.TICK)
        return part.start

    def on_part(part):
        threads.add(threading.get_ident())

    slices = [slice(0, 4), slice(4, 8)]
    assert chunk.side_by_side(trained, slices, threading.Event(), on_part) == [0, 4]
    assert threads == {threading.get_ident()}
