"""Samples: weights that add up, and clear words for bad input."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sparker

pytestmark = pytest.mark.unit

REFERENCE = np.arange(8.0).reshape(4, 2)
DATA = np.array([[0.5, 0.5], [1.5, 2.5]])


def test_the_reference_adds_up_to_the_data_unless_told_what_to_expect():
    shape_only = sparker.engine.two_sample(REFERENCE, DATA)
    assert shape_only.reference_weight.sum() == pytest.approx(2)
    extended = sparker.engine.two_sample(REFERENCE, DATA, expected=3.5)
    assert extended.reference_weight.sum() == pytest.approx(3.5)
    np.testing.assert_array_equal(shape_only.data_weight, [0, 0, 0, 0, 1, 1])


def test_event_weights_keep_their_ratios():
    sample = sparker.engine.two_sample(REFERENCE, DATA, reference_weights=[1, 0, 3, 4])
    np.testing.assert_allclose(sample.reference_weight, [0.25, 0, 0.75, 1, 0, 0])


def test_a_pool_weighs_each_toy_by_itself():
    is_data = np.array([[1, 1, 0, 0], [0, 0, 0, 1]], bool)
    samples = sparker.engine.pool(REFERENCE, is_data, weights=[1, 2, 3, 4])
    np.testing.assert_allclose(samples.reference_weight.sum(1), [2, 1])
    np.testing.assert_allclose(samples.reference_weight[1], [1 / 6, 2 / 6, 3 / 6, 0])
    each = sparker.engine.pool(REFERENCE, is_data, expected=[5, 6])
    np.testing.assert_allclose(each.reference_weight.sum(1), [5, 6])


def test_stacking_pads_with_weightless_rows():
    long = sparker.engine.two_sample(REFERENCE, DATA)
    short = sparker.engine.two_sample(REFERENCE[:2], DATA[:1])
    batch = sparker.engine.stack([short, long])
    assert batch.points.shape == (2, 6, 2)
    assert batch.reference_weight[0, 3:].sum() == batch.data_weight[0, 3:].sum() == 0
    assert batch.toys([1]).points.shape == (1, 6, 2)


@pytest.mark.parametrize(
    "given",
    [
        DATA.tolist(),
        jnp.asarray(DATA),
        jnp.asarray(DATA, jnp.bfloat16),
        pd.DataFrame(DATA, columns=["a", "b"]),
        pl.DataFrame(DATA, schema=["a", "b"]),
        DATA.astype(np.float16),
        np.asfortranarray(DATA),
        np.ma.masked_array(DATA),
        pd.DataFrame(DATA).astype("Float64"),
        pd.DataFrame(DATA).astype(object),
    ],
    ids=[
        "list",
        "jax",
        "bf16",
        "pandas",
        "polars",
        "half",
        "fortran",
        "masked",
        "Float64",
        "object",
    ],
)
def test_anything_that_is_an_array_goes(given):
    sample = sparker.engine.two_sample(REFERENCE, given)
    np.testing.assert_array_equal(sample.points[4:], DATA)


def test_single_precision_stays_single():
    single = sparker.engine.two_sample(REFERENCE.astype(np.float32), DATA.astype(np.float32))
    assert {array.dtype for array in single} == {np.dtype(np.float32)}
    assert sparker.engine.two_sample(REFERENCE.astype(int), DATA).points.dtype == np.float64


WITH_NAN = np.array([[0.0, 1.0], [2.0, np.nan], [np.inf, 3.0]])


@pytest.mark.parametrize(
    ("reference", "data", "settings", "message"),
    [
        (REFERENCE, DATA[:, :1], {}, "data has 1 features, reference has 2"),
        (REFERENCE, DATA[:0], {}, r"data is empty, shape \(0, 2\)"),
        (
            REFERENCE[0],
            DATA,
            {},
            r"reference must be 2-D .* got shape \(2,\); .* np.asarray\(x\)\[:, None\]",
        ),
        (
            REFERENCE,
            WITH_NAN,
            {},
            "data has 2 NaN or infinite values, the first in row 1, column 1",
        ),
        (np.array([["a", "b"]]), DATA, {}, "reference must be numeric, got dtype <U1"),
        (np.array([[1, "b"]], object), DATA, {}, "reference must be numeric, got dtype object"),
        (REFERENCE * 1j, DATA, {}, "reference must be numeric, got dtype complex128"),
        (
            pd.DataFrame(REFERENCE, columns=["a", "b"]),
            pd.DataFrame(DATA, columns=["b", "a"]),
            {},
            r"data has the columns \['b', 'a'\], reference has \['a', 'b'\]",
        ),
        (REFERENCE, np.ma.masked_equal(DATA, 0.5), {}, "data has masked values"),
        (REFERENCE, np.array([["1", "2"]], object), {}, "data must be numeric, got dtype object"),
        (REFERENCE, DATA, {"expected": 0}, "expected must be a positive number .* got 0"),
        (REFERENCE, DATA, {"expected": np.nan}, "expected must be a positive number .* got nan"),
        (REFERENCE, DATA, {"reference_weights": [1, 2]}, r"must have shape \(4,\), one a row"),
        (REFERENCE, DATA, {"reference_weights": [1, -1, 1, 1]}, "none negative and not all zero"),
        (REFERENCE, DATA, {"reference_weights": [0, 0, 0, 0]}, "none negative and not all zero"),
    ],
)
def test_bad_input_is_named(reference, data, settings, message):
    with pytest.raises(ValueError, match=message):
        sparker.engine.two_sample(reference, data, **settings)


@pytest.mark.parametrize(
    ("is_data", "settings", "message"),
    [
        ([[1, 0, 0, 0], [0, 0, 0, 0]], {}, "no data rows in toy 1"),
        ([[1, 0, 0, 0], [1, 1, 1, 1]], {}, "reference weights sum to zero in toy 1"),
        ([1, 1, 1, 1], {}, "reference weights sum to zero; a test"),
        ([1, -1, -1, -1], {}, "is_data must be True or 1 for data"),
        ([1, 0, 0], {}, r"is_data must have shape \(4,\) or \(toys, 4\), got \(3,\)"),
        ([[1, 0, 0, 0]], {"expected": [1, 2]}, "or one for each toy"),
    ],
)
def test_bad_pools_are_named(is_data, settings, message):
    with pytest.raises(ValueError, match=message):
        sparker.engine.pool(REFERENCE, np.array(is_data), **settings)


def test_bad_stacks_are_named():
    sample = sparker.engine.two_sample(REFERENCE, DATA)
    with pytest.raises(ValueError, match="stack needs at least one"):
        sparker.engine.stack([])
    with pytest.raises(ValueError, match=r"samples have \[1, 2\] features"):
        sparker.engine.stack([sample, sparker.engine.two_sample([[0.0]], [[1.0]])])
    with pytest.raises(ValueError, match="n_rows must be at least 6, got 5"):
        sparker.engine.pad(sample, 5)


def test_a_model_refuses_other_columns():
    model = sparker.engine.Ensemble(np.zeros((3, 2)), np.ones(3), np.float64(1))
    with pytest.raises(ValueError, match="points have 3 features, the model has 2"):
        sparker.engine.log_ratio(model, np.zeros((4, 3)))
