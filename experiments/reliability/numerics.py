"""Numbers of every size: a sane p-value, an error, or a warning that names the column."""

from collections.abc import Callable

import numpy as np
from experiments.reliability.attack import attack
from experiments.reliability.box import QUICK, Box, samples
from experiments.reliability.ends import compatible, either, found, p_value, plain, refused, warned

Change = Callable[[np.ndarray], np.ndarray]


def outlier(value: float) -> Change:
    """One row far from all others."""
    return lambda rows: np.concatenate([rows[:-1], np.full((1, rows.shape[1]), value)])


def sentinels(rows: np.ndarray) -> np.ndarray:
    """Two rows of a hundred have -999 in a column."""
    rows = rows.copy()
    rows[::50, 0] = -999
    return rows


def copies(rows: np.ndarray) -> np.ndarray:
    """All but some rows are alike."""
    rows = rows.copy()
    rows[len(rows) // 8 :] = 0.5
    return rows


CHANGES: dict[str, tuple[Change, Change]] = {
    "values around 1e30": (lambda x: 1e30 * x, lambda x: 1e30 * x),
    "values around 1e-30": (lambda x: 1e-30 * x, lambda x: 1e-30 * x),
    "values around 1e-310": (lambda x: 1e-310 * x, lambda x: 1e-310 * x),
    "values around 1e140": (lambda x: 1e140 * x, lambda x: 1e140 * x),
    "an offset of 1e12 and a spread of 1e-3": (lambda x: 1e12 + 1e-3 * x,) * 2,
    "an offset of 1e6, single precision": (lambda x: (1e6 + x).astype(np.float32),) * 2,
    "whole numbers beyond 2^53": (lambda x: 2**60 + np.round(1000 * x).astype(np.int64),) * 2,
    "whole numbers of 8 bits": (lambda x: np.clip(np.round(20 * x), -128, 127).astype(np.int8),)
    * 2,
    "half precision": (lambda x: x.astype(np.float16),) * 2,
    "big-endian numbers": (lambda x: x.astype(">f8"),) * 2,
    "one reference row at (1000, 1000)": (outlier(1000), lambda x: x),
    "one reference row at 1e9": (outlier(1e9), lambda x: x),
    "one data row at 1e9": (lambda x: x, outlier(1e9)),
    "one row of both at 1e30": (outlier(1e30), outlier(1e30)),
    "2 % sentinels of -999 in both": (sentinels, sentinels),
    "a column without variation": (lambda x: np.column_stack([x, np.ones(len(x))]),) * 2,
    "columns of scales 1e-9 and 1e9": (lambda x: x * [1e-9, 1e9],) * 2,
    "the same column twice": (lambda x: np.column_stack([x, x[:, 0]]),) * 2,
}


def declare(name: str, reference: Change, data: Change) -> None:
    """With an anomaly and without."""

    def write(here: Box, *, planted: bool) -> None:
        first, second = samples(planted=planted)
        np.save(here / "a.npy", reference(first))
        np.save(here / "b.npy", data(second))

    @attack("numerics", f"{name}: a planted anomaly", "found, error, or a warning of the column")
    def with_anomaly(here: Box) -> None:
        write(here, planted=True)
        found(here.inside("test", "a.npy", "b.npy", *QUICK))

    @attack("numerics", f"{name}: no anomaly", "p > 0.01, or error")
    def without(here: Box) -> None:
        write(here, planted=False)
        done = here.inside("test", "a.npy", "b.npy", *QUICK)
        if name.startswith("one data row"):
            found(done)  # it is one
        else:
            compatible(done)


for _name, (_reference, _data) in CHANGES.items():
    declare(_name, _reference, _data)


@attack("numerics", "99 % copies of one row", "p > 0.01, or error")
def many_copies(here: Box) -> None:
    """In both, without an anomaly."""
    first, second = samples(planted=False)
    np.save(here / "a.npy", copies(first))
    np.save(here / "b.npy", copies(second))
    compatible(here.inside("test", "a.npy", "b.npy", *QUICK))


@attack("numerics", "all rows alike", "error, or p = 1 with a warning")
def all_alike(here: Box) -> None:
    """No column varies."""
    np.save(here / "a.npy", np.ones((1000, 2)))
    np.save(here / "b.npy", np.ones((200, 2)))
    compatible(here.inside("test", "a.npy", "b.npy", *QUICK))


@attack("numerics", "true and false", "found")
def truths(here: Box) -> None:
    """Half of the data are True, a fifth of the reference."""
    rng = np.random.default_rng(0)
    np.save(here / "a.npy", rng.random((1000, 2)) < 0.2)
    np.save(here / "b.npy", rng.random((200, 2)) < 0.5)
    found(here.inside("test", "a.npy", "b.npy", *QUICK))


@attack("numerics", "one data row, far out, and one that is not", "right, or error")
def one_row(here: Box) -> None:
    """The smallest sample there is."""
    reference, _ = samples()
    np.save(here / "a.npy", reference)
    np.save(here / "b.npy", [[9.0, 9.0]])
    found(here.inside("test", "a.npy", "b.npy", *QUICK))
    np.save(here / "b.npy", [[0.1, 0.1]])
    compatible(here.inside("test", "a.npy", "b.npy", *QUICK))


@attack("numerics", "one reference row", "error or answer")
def one_reference_row(here: Box) -> None:
    """Nothing to compare with."""
    here.samples()
    np.save(here / "a.npy", [[0.1, 0.2]])
    either(here.inside("test", "a.npy", "data.npy", *QUICK))


@attack("numerics", "no rows at all", "error")
def no_rows(here: Box) -> None:
    """In either."""
    here.samples()
    np.save(here / "x.npy", np.empty((0, 2)))
    (here / "x.csv").write_text("x,y\n")
    for pair in (("x.npy", "data.npy"), ("reference.npy", "x.npy"), ("x.csv", "x.csv")):
        refused(here.inside("test", *pair, *QUICK))


@attack("numerics", "50 rows of 5,000 columns", "found, within 120 s")
def wide(here: Box) -> None:
    """Every fifth column is shifted."""
    rng = np.random.default_rng(0)
    shift = np.where(np.arange(5000) % 5 == 0, 1.5, 0)
    np.save(here / "a.npy", rng.normal(size=(50, 5000)))
    np.save(here / "b.npy", rng.normal(size=(50, 5000)) + shift)
    found(here.inside("test", "a.npy", "b.npy", *QUICK))


@attack("numerics", "values of 1e300", "error with the true reason")
def beyond_squares(here: Box) -> None:
    """Their squares overflow."""
    reference, data = samples()
    np.save(here / "a.npy", reference)
    np.save(here / "b.npy", 1e300 * data)
    refused(here.inside("test", "a.npy", "b.npy", *QUICK), "square")


@attack("numerics", "infinite and missing values", "error or warning that names the column")
def infinite(here: Box) -> None:
    """One of each."""
    reference, data = samples(planted=False)
    for value in (np.inf, -np.inf):
        bad = data.copy()
        bad[3, 1] = value
        np.save(here / "a.npy", reference)
        np.save(here / "b.npy", bad)
        found(here.inside("test", "a.npy", "b.npy", *QUICK), "1")
    missing = data.copy()
    missing[:60, 1] = np.nan
    np.save(here / "b.npy", missing)
    found(here.inside("test", "a.npy", "b.npy", *QUICK))


@attack("numerics", "data that are reference rows", "warning")
def the_same_rows(here: Box) -> None:
    """Not a sample of its own."""
    reference, _ = samples()
    np.save(here / "a.npy", reference)
    np.save(here / "b.npy", reference[:200])
    warned(here.inside("test", "a.npy", "b.npy", *QUICK), "rows")


@attack("numerics", "p = 1", "a significance that is a number")
def p_of_one(here: Box) -> None:
    """No -inf, neither in words nor in JSON."""
    np.save(here / "a.npy", np.repeat([[0.0], [1.0]], 20, 0))
    np.save(here / "b.npy", np.repeat([[0.0], [1.0]], 10, 0))
    for command in (["--json"], []):
        done = either(
            here.inside("test", "a.npy", "b.npy", "--toys", "9", "--statistic", "ks", *command)
        )
        plain(done._replace(code=3 if "inf" in done.out.lower().replace("info", "") else done.code))


@attack("numerics", "a statistic that is not finite for some toys", "named, the others decide")
def not_finite(here: Box) -> None:
    """The library, with a function of one's own that loses a value in three."""
    code = """
import numpy as np, sparker
def shift(rng, sample):
    means = [np.average(sample.points, 0, w) for w in sample[1:3]]
    return np.nan if rng.random() < 0.3 else np.linalg.norm(means[1] - means[0])
rng = np.random.default_rng(0)
found = sparker.test(rng.normal(size=(100, 2)), rng.normal(size=(40, 2)), n_toys=49,
                     statistic=shift, progress=False)
print('{"p_value": %r}' % float(found.p_value))
"""
    p_value(here.outside(code=code))
