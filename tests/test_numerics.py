"""Numbers at the ends of what a computer holds give the same answer, an error or a warning."""

import numpy as np
import pytest

import sparker
from sparker.engine.preprocess import (
    decorrelate,
    principal_directions,
    standardise,
    unchanged,
    whiten,
)
from sparker.tables.checks import values_out_of_line

SETTINGS = {
    "config": sparker.FitConfig(n_kernels=2),
    "widths": sparker.WidthConfig(steps=20, n_widths=3),
    "chunk": 8,  # one program for all
    "n_toys": 19,
    "explain": False,
    "progress": False,
}
WAYS = (standardise, decorrelate, whiten)


def samples(n_reference=200, n_data=60, seed=0):
    """On a grid, so that neither an offset nor a unit that is a power of two rounds them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_reference + n_data, 2))
    rows[-5:] = 1.5 + 0.1 * rows[-5:]
    rows = np.round(rows * 2**20) / 2**20
    return rows[:n_reference], rows[n_reference:]


def readings(reference, data, **settings):
    result = sparker.test(reference, data, **(SETTINGS | settings))
    assert result.warnings == ()
    assert not [note for note in result.notes if "finite" in note]
    return result.p_value, np.asarray(result.statistics)


UNITS = {
    "huge and tiny": (2.0 ** np.array([400, -900]), 0.0),
    "tiny": (2.0**-970, 0.0),
    "huge": (2.0**490, 0.0),
    "on offsets": (1.0, 2.0 ** np.array([25, -5])),
    "tiny, on offsets": (2.0**-100, 2.0 ** np.array([-75, -105])),
}


@pytest.mark.parametrize("preprocess", WAYS)
def test_no_unit_and_no_offset_changes_an_answer(preprocess):
    reference, data = samples()
    p_value, found = readings(reference, data, preprocess=preprocess)
    for name, (unit, offset) in UNITS.items():
        other, seen = readings(
            unit * reference + offset, unit * data + offset, preprocess=preprocess
        )
        assert other == p_value, name
        np.testing.assert_allclose(seen, found, rtol=1e-6, err_msg=name)


SPREADS = {"float64": (np.float64, 2.0**-970), "float32": (np.float32, 2.0**-80)}


@pytest.mark.unit
@pytest.mark.parametrize("preprocess", WAYS)
@pytest.mark.parametrize(("dtype", "unit"), SPREADS.values(), ids=SPREADS.keys())
def test_tiny_columns_are_fitted_as_large_ones_are(preprocess, dtype, unit):
    rows = samples()[0].astype(dtype)
    one, other = preprocess(rows), preprocess(dtype(unit) * rows)
    np.testing.assert_allclose(other(dtype(unit) * rows), one(rows), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other.units / unit, one.units, rtol=1e-6)


@pytest.mark.unit
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("preprocess", [*WAYS, unchanged])
def test_what_has_lost_its_digits_near_zero_does_not_vary(preprocess, dtype):
    rows = samples()[0].astype(dtype)
    rows[:, 1] *= np.finfo(dtype).tiny
    assert preprocess(rows).dropped.tolist() == [1]
    with pytest.raises(ValueError, match="none of the 1 columns varies by more than rounding"):
        preprocess(rows[:, 1:])


@pytest.mark.unit
def few_digits(rows, names):
    return [one for one in values_out_of_line(rows, names=names) if one.code == "few digits"]


def test_columns_with_few_digits_are_named():
    rows = samples()[0]
    names = ("first", "second")
    for column in (2.0**60 + 1000 * rows[:, 0], 1e12 + 1e-3 * rows[:, 0], 1e-310 * rows[:, 0]):
        [found] = few_digits(np.stack([column, rows[:, 1]], axis=1), names=names)
        assert found.code == "few digits"
        assert found.text.startswith("few digits are left of column first: neighbouring numbers")
    [found] = few_digits((1e7 + rows).astype(np.float32), names=names)
    assert "left of columns first, second: neighbouring numbers of this precision lie 1 apart" in (
        found.text
    )
    for fine in (1e12 + rows, np.sign(rows), 1e-100 * rows, np.ones((9, 2)), (rows > 2) + 0.0):
        assert few_digits(fine, names=names) == []
    rows[0] = 1e30  # one value that is far tells nothing of the others
    assert few_digits(rows, names=names) == []


def test_whole_numbers_beyond_double_precision_are_not_rounded_in_silence():
    reference, data = (2**60 + np.round(1000 * rows).astype(np.int64) for rows in samples())
    with pytest.warns(sparker.DataWarning, match="few digits are left of columns 0, 1"):
        sparker.test(reference, data, **SETTINGS)
    with pytest.warns(sparker.DataWarning, match="few digits are left of columns 0, 1"):
        sparker.Monitor(reference, **(SETTINGS | {"n_toys": 129}))


def test_numbers_too_large_to_be_squared_get_the_true_reason():
    reference, data = samples()
    with pytest.raises(ValueError, match=r"60 values beyond 1e\+150, whose square"):
        sparker.test(reference, 1e300 * data, **SETTINGS)


@pytest.mark.unit
def test_principal_directions_of_few_rows_are_those_of_their_columns():
    points = np.random.default_rng(0).normal(size=(12, 30)) * np.linspace(1, 5, 30)
    weights = np.linspace(0.5, 1, 12)
    for of_rows in (None, weights):
        found = principal_directions(points, 3, of_rows)
        centred = points - np.average(points, axis=0, weights=of_rows)
        if of_rows is not None:
            centred = centred * np.sqrt(of_rows)[:, None]
        expected = np.linalg.svd(centred)[2][:3].T
        np.testing.assert_allclose(abs(np.sum(found * expected, axis=0)), 1, rtol=1e-9)
    few = principal_directions(points[:2], 3)  # two rows have one direction
    np.testing.assert_allclose(np.linalg.norm(few, axis=0), [1, 0, 0], atol=1e-6)


ODD = {
    "one outlier": lambda rng, n: np.append(rng.normal(size=(n - 1, 2)), [[1e9, 0]], axis=0),
    "copies": lambda rng, n: np.where(np.arange(n)[:, None] > 3, 0.0, rng.normal(size=(n, 2))),
    "truths": lambda rng, n: rng.random((n, 2)) < 0.2,
    "half precision": lambda rng, n: rng.normal(size=(n, 2)).astype(np.float16),
    "heavy tails": lambda rng, n: rng.standard_cauchy((n, 2)) ** 3,
}


@pytest.mark.filterwarnings("ignore::sparker.DataWarning")
@pytest.mark.parametrize("draw", ODD.values(), ids=ODD.keys())
def test_odd_numbers_without_an_anomaly_are_not_rejected_again_and_again(draw):
    p = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = draw(rng, 260)
        rows = rows[rng.permutation(260)]
        p.append(sparker.test(rows[:200], rows[200:], seed=seed, **SETTINGS).p_value)
    assert sum(value <= 0.05 for value in p) < 4  # of 8: once in 2,700 files
    assert max(p) > 0.2
