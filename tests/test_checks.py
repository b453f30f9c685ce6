"""Cautions are spoken where rows are copied, in both files or in order, and hardly ever else."""

import re

import numpy as np
import pytest

from sparker.tables.checks import cautions, values_out_of_line
from sparker.tables.copies import row_hashes, shared

pytestmark = pytest.mark.unit


def codes(reference, data, names=()) -> list[str]:
    return [caution.code for caution in cautions(reference, data, names)]


def text(reference, data, code, names=()) -> str:
    [found] = [one.text for one in cautions(reference, data, names) if one.code == code]
    return found


def normal(n, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def correlated_counts(rng, n):
    """Answers from 1 to 5, which depend on each other: equal rows, and many that nearly are."""
    mood = rng.normal(size=(n, 1))
    return np.clip(np.rint(3 + mood + 0.6 * rng.normal(size=(n, 7))), 1, 5)


def mostly_empty(rng, n):
    """Purchases: nothing at all by most, and rarely the same by two."""
    buys = rng.random((n, 1)) < 0.3
    return buys * np.where(rng.random((n, 6)) < 0.3, rng.poisson(2, (n, 6)), 0.0)


ORDINARY = {
    "normal": lambda rng, n: rng.normal(size=(n, 5)),
    "one column": lambda rng, n: rng.normal(size=(n, 1)),
    "float32": lambda rng, n: rng.normal(size=(n, 3)).astype(np.float32),
    "float16": lambda rng, n: rng.normal(size=(n, 2)).astype(np.float16),
    "heavy tails": lambda rng, n: rng.standard_cauchy(size=(n, 5)),
    "flags": lambda rng, n: (rng.random((n, 8)) < 0.3) * 1.0,
    "rare flags": lambda rng, n: (rng.random((n, 30)) < 0.01) * 1.0,
    "one integer": lambda rng, n: rng.poisson(3, (n, 1)) * 1.0,
    "integers": lambda rng, n: rng.poisson(3, (n, 4)) * 1.0,
    "answers": lambda rng, n: rng.integers(1, 6, (n, 6)) * 1.0,
    "answers that depend": correlated_counts,
    "a category": lambda rng, n: np.eye(30)[rng.integers(0, 30, n)],
    "a large category": lambda rng, n: np.eye(100)[rng.integers(0, 100, n)],
    "rounded": lambda rng, n: np.round(rng.normal(size=(n, 2)), 2),
    "rounded, and flags": lambda rng, n: np.c_[
        np.round(rng.normal(size=n), 3), rng.random(n) < 0.5
    ],
    "mostly empty": mostly_empty,
    "constant": lambda rng, n: np.ones((n, 4)),
    "some constant": lambda rng, n: np.c_[np.ones(n), rng.normal(size=(n, 2)), np.zeros(n)],
    "hits the edge": lambda rng, n: np.clip(rng.normal(size=(n, 4)), -0.5, 0.5),
    "sparse": lambda rng, n: rng.normal(size=(n, 20)) * (rng.random((n, 20)) < 0.05),
}


@pytest.mark.parametrize("draw", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_tables_are_not_suspected(draw):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(30):
        n_reference, n_data = 20 + rng.integers(0, 1500), 1 + rng.integers(0, 600)
        found += codes(draw(rng, n_reference), draw(rng, min(n_data, n_reference)))
    assert [code for code in found if code != "few rows"] == []


def test_an_anomaly_is_no_reason_to_suspect_a_table():
    rng = np.random.default_rng(0)
    for name, draw in ORDINARY.items():
        if name != "constant":
            reference, data = draw(rng, 1000), draw(rng, 300)
            rows = rng.random(len(data)) < 0.5
            data[rows] = data[0]  # one and the same row: that may be said
            assert set(codes(reference, data)) <= {"duplicates"}
            data[rows] = np.roll(data[rows], 1, axis=1) + 1
            assert set(codes(reference, data)) <= {"duplicates"}


def test_rows_in_both_are_counted():
    reference, data = normal(2000), normal(500, seed=1)
    data[100:137] = reference[500:537]
    found = text(reference, data, "shared rows")
    assert found.startswith("37 of the 500 data rows stand in the reference, too:")
    assert "take these rows out of one of the two" in found
    data[100:137] = normal(37, seed=2)
    assert codes(reference, data) == []


def test_one_row_in_both_of_many_is_nothing_to_speak_of():
    reference, data = normal(2000), normal(500, seed=1)
    data[0] = reference[0]
    assert codes(reference, data) == []
    data[:20] = reference[:20]
    assert codes(reference, data) == ["shared rows"]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_file_against_itself_or_a_part_of_itself(dtype):
    rows = normal(400, seed=3).astype(dtype)
    itself = text(rows, rows.astype(np.float64), "shared rows")
    assert itself.startswith("all 400 data rows stand in the reference, too: the file is tested")
    assert "against itself" in itself
    turned = np.random.default_rng(0).permutation(rows)
    assert text(rows, turned, "shared rows") == itself
    assert "against a file that contains it" in text(turned, rows[:50], "shared rows")
    assert codes(rows[:6], rows[:5]) == ["shared rows"]


def test_a_discrete_file_against_itself_is_known_by_its_order():
    rng = np.random.default_rng(0)
    rows = (rng.random((300, 3)) < 0.5) * 1.0
    assert "against itself" in text(rows, rows, "shared rows")
    assert codes(rows, rng.permutation(rows)) == []  # equal rows are no news here
    assert codes(np.ones((300, 3)), np.ones((300, 3))) == []


def test_rows_in_both_show_in_tables_whose_rows_repeat_naturally():
    rng = np.random.default_rng(0)
    both = mostly_empty(rng, 1500), mostly_empty(rng, 1000)
    assert codes(*both) == []
    rows = rng.poisson(40, (2500, 3)) * 1.0
    reference, data = rows[:1500], rows[1500:]
    assert codes(reference, data) == []
    found = text(np.r_[reference, data[:400]], data, "shared rows")
    [(n_rows, by_chance)] = re.findall(r"^(\d+) of .* \(about (\d+) of them by chance\)", found)
    n_rows, by_chance = int(n_rows), int(by_chance)
    assert 400 < n_rows < 520
    assert by_chance < 150


def test_zero_has_one_sign_and_precisions_meet():
    reference, data = normal(300), normal(100, seed=1)
    reference[:30, 1], data[:30] = -0.0, reference[:30]
    data[:30, 1] = 0.0
    assert "30 of the 100" in text(reference, data, "shared rows")
    assert "30 of the 100" in text(reference.astype(np.float32), data, "shared rows")
    assert "30 of the 100" in text(reference, data.astype(np.float32), "shared rows")


def test_hashes_tell_rows_apart_as_the_rows_do():
    rng = np.random.default_rng(0)
    rows = rng.integers(-3, 4, (20_000, 5)) / 4.0
    _, which = np.unique(rows, axis=0, return_inverse=True)
    _, by_hash = np.unique(row_hashes(rows), return_inverse=True)
    assert len(set(zip(which.ravel().tolist(), by_hash.tolist(), strict=True))) == which.max() + 1
    assert by_hash.max() == which.max()
    wide = rng.integers(0, 2, (50, 1000)) * 1.0
    assert len(np.unique(row_hashes(wide))) == 50
    turned = np.unique(row_hashes(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0]])))
    assert len(turned) == 3  # the sum of what stands in a row is not all of it


def test_labels_at_random_are_hardly_ever_suspected():
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(300):
        n, n_data = rng.integers(50, 2000), rng.integers(1, 25)
        rows = rng.integers(0, 10 ** rng.uniform(0, 5), n).astype(np.uint64)
        found += shared(rows[n_data:], rows[:n_data]) is not None
    assert found <= 1


def test_rows_dealt_out_evenly_are_not_suspected():
    def dealt(n_split, n_kept):
        split, kept = np.split(np.arange(n_split + 2 * n_kept, dtype=np.uint64), [n_split])
        return shared(*(np.r_[split, half, half] for half in np.split(kept, 2)))

    assert dealt(2300, 850) is None  # 2000 by labels at random, sigma 32
    assert dealt(3000, 500) is not None


@pytest.mark.parametrize("kind", ["reference", "data"])
def test_copied_rows_are_found(kind):
    rows = normal(600, 4)
    rows[500:560] = rows[:60]
    pair = (rows, normal(100, 4, seed=1))
    pair = pair if kind == "reference" else (normal(700, 4, seed=1), rows)
    found = text(*pair, "duplicates")
    assert found.startswith(f"60 of the 600 {kind} rows repeat an earlier {kind} row exactly")
    assert "groups" in found
    rows[500:560] = rows[:60] + 1e-9
    assert codes(*pair) == []


def test_copied_rows_are_found_among_whole_numbers_and_flags():
    rng = np.random.default_rng(0)
    rows = np.c_[rng.poisson(300, (800, 6)), rng.random((800, 3)) < 0.5] * 1.0
    data = np.c_[rng.poisson(300, (200, 6)), rng.random((200, 3)) < 0.5] * 1.0
    assert codes(rows, data) == []
    assert codes(np.r_[rows, rows[:100]], data) == ["duplicates"]
    assert codes(np.repeat(rows, 3, axis=0)[rng.permutation(2400)], data) == ["duplicates"]


def test_few_copies_are_not_worth_a_word():
    rows = normal(1000)
    rows[500:505] = rows[:5]
    assert codes(rows, normal(100, seed=1)) == []


def test_one_row_again_and_again_in_a_table_of_distinct_rows():
    rng = np.random.default_rng(0)
    rows = normal(1000, 5)
    rows[rng.random(1000) < 0.3] = 0
    n = np.sum(~rows.any(axis=1))
    found = text(rows, normal(100, 5, seed=1), "duplicates")
    assert found.startswith(f"{n} of the 1000 reference rows are one and the same row")
    rows = np.r_[rows[rows.any(axis=1)][:400], np.repeat(normal(300, 5, seed=2), 2, axis=0)]
    rows[rng.random(1000) < 0.3] = 0  # if others repeat as well, it is not all that repeats
    assert "repeat an earlier" in text(rng.permutation(rows), normal(100, 5, seed=1), "duplicates")
    # Where many rows differ from others in one column only, one row may well be common.
    depend = 0.6 * rng.normal(size=(3000, 1)) + 0.8 * rng.normal(size=(3000, 6))
    depend = np.clip(np.rint(200 * depend), 50, None)
    assert np.unique(depend, axis=0, return_counts=True)[1].max() > 400
    assert codes(depend, depend[:100] + 0.5) == []
    rainy = np.where(rng.random((1000, 2)) < [0.4, 0.1], rng.exponential(size=(1000, 2)), 0)
    assert codes(rainy, rainy[:0:-1][:100] + 1e-3) == []  # dry days need no explanation


def walk(n, d, seed=0, memory=0.5):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    for i in range(1, n):
        rows[i] += memory * rows[i - 1]
    return rows


def test_neighbours_that_belong_together_are_found():
    found = text(walk(1000, 2), normal(300, 2), "order", ("pt", "eta"))
    assert found.startswith("neighbouring reference rows are alike (rank correlation of a row and")
    assert "column pt 0." in found or "column eta 0." in found
    assert "1 more of 2 columns" in found
    assert "groups" in found
    assert "data rows" not in found
    both = text(walk(1000, 2), walk(300, 2, seed=1), "order")
    assert "neighbouring reference rows" in both
    assert "neighbouring data rows" in both
    assert "column 0" in both or "column 1" in both
    triples = np.repeat(normal(200), 3, axis=0) + 0.3 * normal(600, seed=1)
    assert codes(triples, normal(100, seed=2)) == ["order"]


def test_trends_are_found():
    rows = normal(1000)
    rows[:, 1] -= 0.8 * np.linspace(0, 1, 1000)  # neighbours are hardly more alike by this
    found = text(rows, normal(100, seed=1), "order", ("a", "b", "c"))
    assert found.startswith("column b falls along the reference rows (rank correlation 0.2")
    assert "rises" in text(rows[::-1], normal(100, seed=1), "order")


def test_rows_that_are_only_sorted_by_a_column_are_fine():
    rows = normal(1000)
    rows[:, 1] += rows[:, 0]
    data = normal(200, seed=1)
    assert codes(rows[np.argsort(rows[:, 0])], data) == []
    assert codes(rows[np.argsort(-rows[:, 0])], data) == []
    by_class = np.c_[np.sort(np.arange(1000) % 3), normal(1000, 2)]
    by_class[:, 1] += by_class[:, 0]
    assert codes(by_class, np.c_[np.ones(200), data[:, :2]]) == []
    # A flag that is set in the last rows does not make a sorted table.
    flagged = np.c_[walk(1000, 2), np.arange(1000) > 995]
    assert "order" in codes(flagged, np.c_[normal(200, 2), np.zeros(200)])


def test_weak_order_of_many_rows_does_not_count():
    rows = walk(100_000, 1, memory=0.05)
    assert codes(rows, normal(1000, 1)) == []
    rows = normal(100_000, 1) + 0.15 * np.linspace(0, 1, 100_000)[:, None]
    assert codes(rows, normal(1000, 1, seed=1)) == []
    assert codes(walk(100_000, 1, memory=0.2), normal(1000, 1)) == ["order"]


def test_order_is_found_in_long_and_wide_tables():
    long = normal(200_000, 2)
    assert codes(long, normal(100, 2, seed=1)) == []
    assert codes(long + np.linspace(0, 1, 200_000)[:, None], normal(100, 2, seed=1)) == ["order"]
    wide = normal(400, 600)
    assert codes(wide, normal(300, 600, seed=1)) == []
    drifts = wide + walk(400, 1, memory=0.95)
    assert "of 250 columns" in text(drifts, normal(300, 600, seed=1), "order")


def test_sizes():
    small, large = normal(100), normal(300, seed=1)
    assert "the data have 300 rows, and the reference only 100" in text(
        small, large, "few reference rows"
    )
    assert codes(large, small) == []
    assert codes(normal(100), normal(105, seed=1)) == []
    found = text(normal(30, 200), normal(10, 200, seed=1), "few rows")
    assert found.startswith("the tables have 200 columns and together only 40 rows")
    assert codes(normal(100, 150), normal(60, 150, seed=1)) == []


@pytest.mark.parametrize("d", [1, 5])
def test_single_rows(d):
    assert codes(normal(1, d), normal(1, d, seed=1)) == ["few rows"] * (d > 4)
    assert codes(normal(50, d), normal(1, d, seed=1)) == []
    assert codes(np.zeros((3, d)), np.zeros((1, d))) == []
    assert codes(normal(1, d), normal(30, d, seed=1)) == ["few reference rows"]


@pytest.mark.parametrize("draw", ORDINARY.values(), ids=ORDINARY.keys())
def test_values_of_ordinary_tables_are_not_far(draw):
    rng = np.random.default_rng(8)
    reference, data = np.asarray(draw(rng, 2000), float), np.asarray(draw(rng, 500), float)
    assert values_out_of_line(reference, data, names=()) == []


def test_codes_for_missing_values_are_named():
    reference, data = normal(1000), normal(300, seed=1)
    reference[:20, 0] = data[:6, 0] = -999
    data[7, 2] = 1e30
    [found] = values_out_of_line(reference, data, names=("energy", "angle", "time"))
    assert found.code == "far values"
    assert "26 of the 1300 in column energy (-999), 1 of the 1300 in column time (1e+30)" in (
        found.text
    )


def test_of_many_columns_with_far_values_three_are_named():
    rows = normal(500, d=8)
    rows[np.arange(8), np.arange(8)] = 1e6
    [found] = values_out_of_line(rows, names=())
    assert "some in 5 more" in found.text


def test_rows_that_belong_together_may_be_equal_but_not_in_both_samples():
    reference, data = normal(200), normal(60, seed=1)
    twice = np.tile(data[:30], (2, 1))
    assert codes(reference, twice) == ["duplicates"]
    assert cautions(reference, twice, (), within=False) == []
    data[:20] = reference[:20]
    [found] = cautions(reference, data, (), within=False)
    assert found.code == "shared rows"
    assert found.text.startswith("20 of the 60 data rows stand in the reference, too")


def test_a_long_tail_is_no_gap():
    tail = np.exp(3 * normal(2000, 1))  # a few are beyond, and others between
    assert values_out_of_line(tail, np.array([[1e5]]), names=()) == []
    assert values_out_of_line(tail[tail < 100][:, None], np.array([[1e5]]), names=()) != []
