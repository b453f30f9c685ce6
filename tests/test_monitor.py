"""Monitors: calibrated once, saved, loaded elsewhere, asked many times."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import sparker
from sparker.calibration.plan import prepare
from sparker.calibration.pvalues import rank
from sparker.calibration.toys import run
from sparker.nulls import Resample
from sparker.presets import unexplored
from sparker.system import archive

SMALL = {
    "config": sparker.FitConfig(n_kernels=3),
    "widths": sparker.WidthConfig(steps=300, n_widths=3),
    "chunk": 16,  # one program for all
    "progress": False,
}
BATCH = 60


def normal(seed: int, n: int = BATCH) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2))


def with_cluster(seed: int, n: int = BATCH) -> np.ndarray:
    rows = normal(seed, n)
    rows[:15] = [1.5, 1.5] + 0.05 * rows[:15]
    return rows


@pytest.fixture(scope="module")
def monitor() -> sparker.Monitor:
    return sparker.Monitor.calibrate(normal(0, 400), BATCH, n_toys=60, **SMALL)


def test_a_batch_is_ranked_as_a_test_with_the_toys_of_the_monitor_would_rank_it(monitor):
    batch = with_cluster(1)
    kernels = unexplored(SMALL["config"], SMALL["widths"])
    scheme = Resample(normal(0, 400), BATCH, None, 0)
    first, others = (
        prepare(source, sparker.decorrelate, kernels)
        for source in (scheme.observed(batch), scheme.toys())
    )
    whole = run(others, range(1, 61), seed=0, chunk=SMALL["chunk"])
    whole.rows |= run(first, [0], seed=0).rows
    measured = whole.first(61)
    alone = monitor.test(batch, explain=False)
    np.testing.assert_array_equal(alone.t, measured[0])
    np.testing.assert_array_equal(alone.null_t, measured[1:])
    assert alone.p_value == rank(measured, sparker.harmonic).p_value


def test_a_batch_faces_as_many_reference_rows_as_a_toy_does():
    reference, batch = normal(0, 400), normal(1)
    scheme = Resample(reference, BATCH, None, 0)
    for source, numbers in ((scheme.observed(batch), [0]), (scheme.toys(), [1, 2, 3])):
        sample = source.toys(lambda rows: rows).draw(numbers)
        assert np.all((sample.reference_weight > 0).sum(1) == 400 - BATCH)
        assert np.all((sample.data_weight > 0).sum(1) == BATCH)
        np.testing.assert_allclose(sample.reference_weight.sum(1), BATCH)
    observed = scheme.observed(batch).toys(lambda rows: rows).draw([0]).alone(0)
    np.testing.assert_array_equal(observed.points[observed.data_weight > 0], batch)
    rest = observed.points[observed.reference_weight > 0]
    assert set(map(tuple, rest)) < set(map(tuple, reference))


def test_notes_of_the_calibration_are_said_with_every_result(tmp_path):
    large = sparker.Monitor.calibrate(normal(0, 400), 40, n_toys=2, **SMALL)
    assert large.notes_for(40) == ()
    assert large.test(normal(9, 40), explain=False).notes == ()
    weights = np.tile([1.0, 2.0], 200)
    weighted = sparker.Monitor.calibrate(
        normal(0, 400), 100, n_toys=2, reference_weights=weights, **SMALL
    )
    kept, few = weighted.notes_for(100)
    n_kept = len(weighted.reference)
    assert 250 < n_kept < 350  # three in four
    assert kept.startswith(f"{n_kept} of 400 reference rows take part")
    assert few.startswith(f"the reference has {n_kept} rows, fewer than 10 batches of 100")
    weighted.save(tmp_path / "monitor.npz")
    again = sparker.Monitor.load(tmp_path / "monitor.npz")
    for one in (weighted, again):
        result = one.test(normal(1, 100), explain=False)
        assert result.notes[:2] == (kept, few)
        assert result.reference_weights is None
        assert f"note: {few}" in result.summary()
    in_all = {tuple(row) for row in normal(0, 400)}
    assert {tuple(row) for row in weighted.reference} < in_all
    assert again.test(normal(1, 20), explain=False).notes[:2] == (kept,)  # enough for 20


def test_an_anomalous_batch_stands_out_and_others_do_not(monitor):
    strange = monitor.test(with_cluster(2))
    assert strange.p_value <= 3 / 61
    assert set(np.argsort(-strange.data_log_ratio)[:10]) <= set(range(15))
    p = [monitor.test(normal(100 + i), explain=False).p_value for i in range(20)]
    assert np.mean(np.array(p) <= 0.05) <= 0.25


def test_it_comes_back_from_a_file_as_it_was(monitor, tmp_path):
    path = tmp_path / "monitor.npz"
    monitor.save(path)
    again = sparker.Monitor.load(path)
    batch = with_cluster(3)
    one, other = monitor.test(batch), again.test(batch)
    np.testing.assert_array_equal(one.t, other.t)
    assert one.p_value == other.p_value
    assert one.settings == other.settings
    assert again.statistic == monitor.statistic


def test_other_files_are_refused(monitor, tmp_path):
    result = monitor.test(normal(4))
    result.save(tmp_path / "result.npz")
    with pytest.raises(ValueError, match=r"is not a monitor"):
        sparker.Monitor.load(tmp_path / "result.npz")
    monitor.save(tmp_path / "monitor.npz")
    header, contents = archive.read(tmp_path / "monitor.npz", "monitor")
    archive.write(tmp_path / "evil.npz", header | {"combine": "os.system"}, contents)
    with pytest.raises(ValueError, match=r"there is no combine .os.system.; it is one of"):
        sparker.Monitor.load(tmp_path / "evil.npz")


TABLE = "statistics_of_60"
"""The name of an array in the file of a monitor."""


@pytest.mark.parametrize(
    ("of_header", "of_contents", "message"),
    [
        (lambda h: {"settings": {}}, {}, r"toys of \[\] of 400 reference rows"),
        (lambda h: {"settings": h["settings"] | {"70": {}}}, {}, "statistics_of_70"),
        (lambda h: {"settings": {"-60": {}}}, {}, "statistics_of_-60"),
        (lambda h: {"settings": {"1e9": {}}}, {}, "1e9"),
        (lambda h: {"settings": {"400": {}}}, {"statistics_of_400": 0},
         r"toys of \[400\] of 400 reference rows"),
        (lambda h: {"settings": [60]}, {}, "items"),
        (lambda h: {"settings": {"60": 1}}, {}, "not iterable"),
        (lambda h: {"chunk": 1e400}, {}, "chunk is inf, no whole number"),
        (lambda h: {"chunk": 10**9}, {}, "chunk is 1000000000, no whole number from 1 to 4096"),
        (lambda h: {"chunk": 0}, {}, "chunk is 0"),
        (lambda h: {"seed": -1}, {}, "seed is -1"),
        (lambda h: {"seed": 1}, {}, "toys for batches of 60 were made with other seed"),
        (lambda h: {"widths": h["widths"] | {"steps": 10**9}}, {}, "3 and steps 1000000000"),
        (lambda h: {"widths": h["widths"] | {"steps": 301}}, {}, "made with other steps"),
        (lambda h: {"widths": h["widths"] | {"n_widths": 2}}, {}, "made with other n_widths"),
        (lambda h: {"widths": h["widths"] | {"span": {"option": "softmax"}}}, {}, "no span .softm"),
        (lambda h: {"widths": h["widths"] | {"span": None}}, {}, "not subscriptable"),
        (lambda h: {"config": h["config"] | {"n_candidates": 2**40}}, {}, "n_candidates is 10995"),
        (lambda h: {"config": h["config"] | {"n_kernels": 99}}, {}, "toys of 60 rows for 99 kern"),
        (lambda h: {"config": h["config"] | {"clip": 4.0}}, {}, "made with other kernels"),
        (lambda h: {"config": h["config"] | {"loss": 5}}, {}, "not subscriptable"),
        (lambda h: {"preprocess": "whiten"}, {}, "made with other preprocess"),
        (lambda h: {"preprocess": "harmonic"}, {}, "there is no preprocess .harmonic."),
        (lambda h: {"missing": "ignore"}, {}, "missing is .ignore."),
        (lambda h: {"notes": "abc"}, {}, "notes are no list"),
        (lambda h: {}, {"reference": normal(1, 400)}, "made with other reference"),
        (lambda h: {}, {"reference": normal(0, 399)}, "other reference and reference_rows"),
        (lambda h: {}, {"reference": np.full((400, 2), np.nan)}, "reference"),
        (lambda h: {}, {"weights": np.ones(500)}, "weights are of another reference"),
        (lambda h: {"expected": "some"}, {}, "some"),
        (lambda h: {}, {TABLE: np.zeros((60, 3, 1))}, "same shape"),
        (lambda h: {}, {TABLE: np.zeros((59, 3))}, "made with other n_toys"),
        (lambda h: {}, {TABLE: np.full((60, 3), "x")}, "hold numbers"),
        (lambda h: {}, {"weights": np.array([-1.0, 1.0])}, "none negative"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused(monitor, tmp_path, of_header, of_contents, message):
    monitor.save(tmp_path / "monitor.npz")
    header, contents = archive.read(tmp_path / "monitor.npz", "monitor")
    archive.write(
        tmp_path / "damaged.npz",
        header | of_header(header),
        contents | {name: np.asarray(array) for name, array in of_contents.items()},
    )
    with pytest.raises(ValueError, match=f"is not a monitor of this version.*{message}"):
        sparker.Monitor.load(tmp_path / "damaged.npz")


def test_a_monitor_that_was_edited_is_refused(monitor, tmp_path):
    path = tmp_path / "monitor.npz"
    monitor.save(path)
    with np.load(path) as file:
        parts = {name: file[name] for name in file}
    other = normal(0, 400)
    other[7, 1] = np.nextafter(other[7, 1], 1)
    for changed in ({"reference": other}, {TABLE: parts[TABLE] + 1}):
        np.savez(path, **(parts | changed))
        with pytest.raises(ValueError, match="contents are not those it was written with"):
            sparker.Monitor.load(path)
    np.savez(path, **parts)
    assert sparker.Monitor.load(path).sizes == (BATCH,)


def test_a_monitor_that_could_not_be_loaded_is_not_saved(monitor, tmp_path):
    with pytest.raises(ValueError, match="chunk is 1000000, no whole number from 1 to 4096"):
        dataclasses.replace(monitor, chunk=10**6).save(tmp_path / "monitor.npz")
    assert not list(tmp_path.iterdir())


def test_functions_of_ones_own_cannot_be_saved(tmp_path):
    own = sparker.Monitor.calibrate(
        normal(0, 400), BATCH, n_toys=2, combine=lambda p: -p.min(1), **SMALL
    )
    with pytest.raises(ValueError, match=r"combine is .* only sparker's own options can be saved"):
        own.save(tmp_path / "monitor.npz")
    assert not list(tmp_path.iterdir())


def test_a_store_keeps_the_toys_of_each_size(tmp_path):
    def calibrate(batch_size, n_toys, **settings):
        return sparker.Monitor.calibrate(
            normal(0, 400), batch_size, n_toys=n_toys, store=tmp_path / "s", **settings, **SMALL
        )

    first = calibrate(BATCH, 8)
    files = sorted((tmp_path / "s").rglob("toys-*.npz"))
    written = [file.stat().st_mtime_ns for file in files]
    assert written
    more = calibrate([50, BATCH], 20)
    one, other = (made.calibrations[BATCH].null for made in (first, more))
    np.testing.assert_array_equal(other[:8], one)
    assert [file.stat().st_mtime_ns for file in files] == written
    with pytest.raises(ValueError, match="seed"):
        calibrate(BATCH, 8, seed=1)


@pytest.fixture(scope="module")
def of_two_sizes() -> sparker.Monitor:
    return sparker.Monitor.calibrate(normal(0, 400), [50, BATCH, 50], n_toys=60, **SMALL)


def test_sizes_of_one_monitor_are_those_of_two(monitor, of_two_sizes):
    assert of_two_sizes.sizes == (50, BATCH)
    assert repr(of_two_sizes) == (
        "<Monitor for batches of 50 and 60 rows with 2 features: 60 toys each from 400 reference "
        "rows>"
    )
    one, other = (m.test(with_cluster(1), explain=False) for m in (monitor, of_two_sizes))
    assert one.p_value == other.p_value
    np.testing.assert_array_equal(one.null_t, other.null_t)
    assert one.settings == other.settings


def test_a_batch_of_another_size_is_tested_as_if_it_had_been_calibrated(
    monitor, of_two_sizes, tmp_path
):
    monitor.save(tmp_path / "monitor.npz")
    for late in (dataclasses.replace(monitor), sparker.Monitor.load(tmp_path / "monitor.npz")):
        batch = with_cluster(3, 50)
        assert late.sizes == (BATCH,)
        one, other = (m.test(batch, explain=False) for m in (late, of_two_sizes))
        assert late.sizes == (50, BATCH)
        assert one.p_value == other.p_value <= 0.1
        np.testing.assert_array_equal(one.null_t, other.null_t)
        assert one.settings == other.settings
        assert one.settings["batch_size"] == 50
    assert monitor.sizes == (BATCH,)  # a copy adds nothing to it


def test_toys_of_a_new_size_are_made_once_and_saved_with_the_others(monitor, tmp_path):
    told = []
    late = dataclasses.replace(monitor, progress=lambda done, total: told.append(done))
    late.test(normal(1), explain=False)
    assert told == []  # there were some for this size
    first = late.test(normal(1, 70), explain=False)
    assert told[-1] == 60
    told.clear()
    late.save(tmp_path / "monitor.npz")
    again = sparker.Monitor.load(tmp_path / "monitor.npz")
    assert again.sizes == (BATCH, 70)
    for one in (late, dataclasses.replace(again, progress=late.progress)):
        same = one.test(normal(1, 70), explain=False)
        assert same.p_value == first.p_value
        assert same.notes == first.notes
        assert same.settings == first.settings
    assert told == []
    assert "fewer than 10 batches of 70" in first.notes[0]


def test_batches_of_which_no_toys_can_be_made_are_refused(monitor):
    with pytest.raises(ValueError, match="data has 2 rows, fewer than the 3 kernels"):
        monitor.test(normal(0, 2))
    with pytest.raises(ValueError, match=r"batches of 400 rows take .* which has 400"):
        monitor.test(normal(0, 400))
    steep = np.append([4.0, 3.9, 3.8], np.ones(397))
    weighted = sparker.Monitor.calibrate(
        normal(0, 400), 10, n_toys=2, reference_weights=steep, **SMALL
    )
    assert len(weighted.reference) > 30
    with pytest.raises(ValueError, match=r"too uneven: row 0 weighs .* for 30 data rows"):
        weighted.test(normal(1, 30))
    assert (monitor.sizes, weighted.sizes) == ((BATCH,), (10,))


def test_counts_are_part_of_the_test_where_they_fluctuate():
    counting = sparker.Monitor.calibrate(normal(0, 400), BATCH, n_toys=60, poisson=True, **SMALL)
    assert counting.test(normal(5, BATCH + 3), explain=False).p_value > 0.05
    assert counting.test(normal(6, 2 * BATCH), explain=False).p_value <= 2 / 61
    assert counting.sizes == (BATCH,)
    assert "for batches of about 60 rows" in repr(counting)
    with pytest.raises(ValueError, match="expects batches of 60 rows, whose number it tests"):
        counting.add(70)


def test_looks_are_corrected_for_their_number(monitor):
    batches = [normal(7), with_cluster(8)]
    plain = list(monitor.watch(batches, alpha=0.05))
    assert [look.alarm for look in plain] == [False, True]
    assert [look.number for look in plain] == [1, 2]
    p = plain[1].result.p_value
    assert plain[1].corrected_p_value == p
    three = list(monitor.watch(batches, alpha=0.05, looks=3))
    assert three[0].corrected_p_value == min(1, 3 * plain[0].result.p_value)
    assert three[1].corrected_p_value == 3 * p
    assert three[1].alarm == (3 * p <= 0.05)
    with pytest.raises(ValueError, match=r"1 looks were planned, and there are more batches"):
        list(monitor.watch(batches, alpha=0.05, looks=1))
    with pytest.raises(ValueError, match=r"calibrate with at least 2000 toys"):
        next(monitor.watch(batches, alpha=0.05, looks=100))
    with pytest.raises(ValueError, match=r"1 <= looks <= 100,000,000, got 0.05 and 1"):
        next(monitor.watch(batches, alpha=0.05, looks=10**400))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 2}, "fewer than the 3 kernels"),
        ({"batch_size": 1.5}, "batch_size must be a whole number"),
        ({"n_toys": 0}, "n_toys must be a whole number"),
        ({"batch_size": []}, "batch_size must be a whole number"),
        ({"batch_size": [50, 0]}, "batch_size must be a whole number"),
        ({"batch_size": "many"}, "batch_size must be a whole number"),
        ({"batch_size": np.inf}, "batch_size must be a whole number"),
        ({"batch_size": [50, 60], "poisson": True}, "with poisson, batch_size is the one"),
        ({"batch_size": [50, 400]}, "batches of 400 rows take as many out of the reference"),
        ({"reference_weights": -np.ones(400)}, "none negative"),
        (
            {"reference_weights": np.append(1e4, np.ones(399))},
            "too uneven: row 0 weighs .* for 60 data rows",
        ),
    ],
)
def test_what_cannot_be_calibrated_is_said(change, message):
    arguments = {"batch_size": BATCH, "n_toys": 5} | change
    with pytest.raises(ValueError, match=message):
        sparker.Monitor.calibrate(normal(0, 400), **arguments, **SMALL)


def test_batches_of_another_shape_are_refused(monitor):
    with pytest.raises(ValueError, match="the batch has 3 columns, the test was made with 2"):
        monitor.test(np.zeros((BATCH, 3)))


def test_columns_of_a_batch_are_found_by_their_names():
    reference = pd.DataFrame(normal(0, 400), columns=["x", "y"])
    named = sparker.Monitor.calibrate(reference, BATCH, n_toys=3, **SMALL)
    batch = pd.DataFrame(normal(1), columns=["x", "y"]).assign(more=1.0)
    one, other = (named.test(batch[names], explain=False) for names in (["x", "y"], ["y", "x"]))
    np.testing.assert_array_equal(one.t, other.t)
    with pytest.raises(ValueError, match="- y: the batch has no such column"):
        named.test(batch[["x", "more"]])


def test_rows_are_numbered_as_in_the_batch_and_counted_as_they_are_tested():
    reference = pd.DataFrame(normal(0, 400), columns=["x", "y"])
    dropping = sparker.Monitor.calibrate(reference, BATCH, n_toys=3, missing="drop", **SMALL)
    batch = pd.DataFrame(normal(1, BATCH + 2), columns=["x", "y"])
    batch.loc[[0, 3], "x"] = np.nan
    result = dropping.test(batch, explain=False)
    assert dropping.sizes == (BATCH,)  # toys are for the rows that are left
    assert result.data_rows[:3].tolist() == [1, 2, 4]


def test_a_column_that_does_not_vary_is_called_by_its_name():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["energy", "angle"]).assign(flag=1.0)
    made = sparker.Monitor.calibrate(
        table, 30, n_toys=3, widths=sparker.WidthConfig(steps=10, n_widths=2), progress=False
    )
    assert (
        "column flag does not vary and was left out" in made.test(table[:30], explain=False).notes
    )
    assert repr(made) == (
        "<Monitor for batches of 30 rows with 3 features: 3 toys from 300 reference rows>"
    )


@pytest.mark.slow
def test_false_alarms_in_batches_of_a_new_size_are_as_frequent_as_alpha_says():
    """A batch for each of 200 monitors: those of one monitor share its reference, and scatter."""
    p = []
    for seed in range(200):
        rng = np.random.default_rng([7, seed])
        monitor = sparker.Monitor.calibrate(
            rng.normal(size=(500, 2)), 40, n_toys=19, seed=seed, chunk=19, progress=False,
            config=sparker.FitConfig(n_kernels=2),
            widths=sparker.WidthConfig(steps=50, n_widths=2),
        )  # fmt: skip
        (look,) = monitor.watch([rng.normal(size=(50, 2))], alpha=0.1)
        p.append(look.result.p_value)
        assert monitor.sizes == (40, 50)
    low, high = stats.binom.interval(0.99, len(p), 0.1)
    assert low <= np.sum(np.array(p) <= 0.1) <= high


def test_a_batch_of_reference_rows_is_no_quiet_batch(monitor):
    with pytest.warns(sparker.DataWarning, match="all 60 data rows stand in the reference, too"):
        result = monitor.test(normal(0, 400)[100:160], explain=False)
    assert [one.code for one in result.warnings] == ["shared rows"]


def test_an_absurd_value_in_a_batch_is_said_with_its_column():
    reference = pd.DataFrame(normal(0, 400), columns=["mass", "charge"])
    monitor = sparker.Monitor.calibrate(reference, BATCH, n_toys=19, **SMALL)
    batch = pd.DataFrame(normal(1), columns=["mass", "charge"])
    batch.loc[7, "charge"] = 1e30
    with pytest.warns(sparker.DataWarning, match=r"1 of the 60 in column charge \(1e\+30\)"):
        result = monitor.test(batch, explain=False)
    assert [one.code for one in result.warnings] == ["far values"]
    assert "in column charge" in result.summary()
    batch.loc[7, "charge"] = 3.0
    assert monitor.test(batch, explain=False).warnings == ()
