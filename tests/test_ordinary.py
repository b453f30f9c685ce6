"""A few values far from all others neither set the scale of a column nor hide an anomaly."""

import numpy as np
import pytest

import sparker
from sparker.engine.preprocess import decorrelate, standardise, unchanged, whiten
from sparker.ordinary import MAX_VALUES, ordinary

WAYS = (standardise, decorrelate, whiten)


def normal(n=1000, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.unit
@pytest.mark.parametrize("preprocess", WAYS)
@pytest.mark.parametrize("far", [-999.0, 1e9, 1e30, 1e200])
def test_far_values_do_not_change_how_other_rows_are_fitted(preprocess, far):
    rows = normal()
    spoilt = rows.copy()
    spoilt[:20, 0] = far
    spoilt[20] = far
    clean, fitted = preprocess(rows[21:])(rows), preprocess(spoilt)(spoilt)
    np.testing.assert_allclose(fitted[21:], clean[21:], atol=0.1)
    assert np.all(np.isfinite(fitted))
    assert np.linalg.norm(fitted[20]) > 30  # and still stands apart


@pytest.mark.unit
@pytest.mark.parametrize("preprocess", [*WAYS, unchanged])
def test_tables_without_far_values_are_fitted_as_ever(preprocess):
    rows = normal() ** 3  # a long tail
    limits = ordinary(rows)
    assert not limits.far(rows).any()
    assert limits.without(rows) is rows
    np.testing.assert_array_equal(limits.clipped(rows), rows)


@pytest.mark.unit
def test_later_rows_stay_in_reach():
    transform = decorrelate(normal())
    fitted = transform(np.array([[1e300, -1e300], [np.inf, 0]]))
    assert np.all(abs(fitted) < 100)


@pytest.mark.unit
def test_columns_of_few_values():
    rows = np.zeros((1000, 3))
    rows[:50, 0] = 1  # a flag: nine tenths are one value
    rows[:50, 1] = np.linspace(1, 5, 50)
    rows[50, 1] = 1e9
    far = ordinary(rows).far(rows)
    assert far.sum(axis=0).tolist() == [0, 1, 0]


@pytest.mark.unit
def test_large_tables_are_looked_at_in_part():
    rows = normal(MAX_VALUES // 100, d=200, seed=3).astype(np.float32)
    rows[5, 7] = 1e9
    assert np.argwhere(ordinary(rows).far(rows)).tolist() == [[5, 7]]


@pytest.mark.parametrize("spoil", ["row", "codes"])
def test_an_anomaly_is_found_beside_far_values(spoil):
    rng = np.random.default_rng(2)
    reference, data = rng.normal(size=(1000, 2)), rng.normal(size=(300, 2))
    data[:12] = [2, -1.5] + 0.1 * rng.normal(size=(12, 2))
    if spoil == "row":
        reference[0] = 1000
    else:
        reference[:20, 0] = data[-6:, 0] = -999
    with pytest.warns(sparker.DataWarning, match="far from all other values"):
        result = sparker.test(reference, data, n_toys=59, explain=False, progress=False)
    assert result.p_value <= 0.05


def test_a_monitor_alarms_for_shifted_rows_with_an_absurd_one():
    monitor = sparker.Monitor(normal(), alpha=0.1, n_toys=49, explain=False, progress=False)
    batch = normal(100, seed=1) + 10
    batch[0, 0] = 1e30
    with pytest.warns(sparker.DataWarning, match="far from all other values"):
        assert monitor.look(batch).alarm
