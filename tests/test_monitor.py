"""Monitors: a reference, a level and planned looks in one file, and batch after batch tested."""

import numpy as np
import pandas as pd
import pytest

import sparker
from sparker.calibration.sequential import Sequential
from sparker.embed import Tfidf
from sparker.history import FileVersion
from sparker.monitor import BATCHES, KIND, ROUNDING, fewest_toys
from sparker.statistics import Mahalanobis
from sparker.system import archive
from sparker.tables import frames

PLAIN = {"statistic": Mahalanobis(), "progress": False}
"""A statistic that fits nothing, so that nothing is compiled."""
BATCH = 60


def normal(seed: int, n: int = BATCH) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2))


def shifted(seed: int, n: int = BATCH) -> np.ndarray:
    return normal(seed, n) + 1.5


def made(**settings) -> sparker.Monitor:
    return sparker.Monitor(normal(0, 400), **{"alpha": 0.1, "looks": 4, **PLAIN, **settings})


def test_a_look_is_a_test_with_early_stopping_of_the_whole_reference():
    monitor = made()
    look = monitor.look(shifted(1))
    assert (look.number, look.alarm) == (1, True)
    assert look.corrected_p_value == 4 * look.result.p_value <= 0.1
    alone = sparker.test(
        normal(0, 400), shifted(1), n_toys=300, stop=Sequential(), seed=look.result.seed, **PLAIN
    )
    assert alone.p_value == look.result.p_value
    np.testing.assert_array_equal(alone.null_statistics, look.result.null_statistics)
    assert look.result.answers is not None
    quiet = monitor.look(normal(2))
    assert not quiet.alarm
    assert quiet.result.answers is None
    assert quiet.result.n_toys < 150  # it stopped early
    assert quiet.result.seed != look.result.seed


def test_looks_beyond_the_planned_ones_are_refused_across_files(tmp_path):
    monitor = made(looks=2)
    monitor.test(normal(1))
    monitor.save(tmp_path / "monitor.sparker")
    again = sparker.Monitor.load(tmp_path / "monitor.sparker")
    assert again.history == monitor.history
    again.test(normal(2))
    with pytest.raises(ValueError, match="all 2 planned looks were made"):
        again.test(normal(3))
    assert len(again.history) == 2


def test_it_goes_on_from_its_file_as_if_it_had_never_stopped(tmp_path):
    table = pd.DataFrame(normal(0, 300), columns=["x", "y"])
    table["kind"] = np.where(np.arange(300) % 3, "a", None)
    table["when"] = pd.date_range("2026-01-01", periods=300, freq="h")
    table["w"] = 1 + np.arange(300) % 2
    settings = {
        "reference_weights": "w", "missing": "drop", "ignore": ["when"], "seed": 7,
        "expected": 30.0, "combine": sparker.minimum, "preprocess": sparker.standardise,
        "stop": Sequential(exceedances=5),
    }  # fmt: skip
    one = sparker.Monitor(table, **PLAIN, **settings)
    batch = table[:40].drop(columns="w")
    one.look(batch, key="first")
    one.save(tmp_path / "monitor.sparker")
    other = sparker.load(tmp_path / "monitor.sparker")
    assert isinstance(other, sparker.Monitor)
    assert repr(other) == repr(one)
    looks = [monitor.look(batch[:30]) for monitor in (one, other)]
    assert looks[0].result.p_value == looks[1].result.p_value
    one_null, other_null = (look.result.null_statistics for look in looks)
    np.testing.assert_array_equal(one_null, other_null)
    assert [monitor.look(batch, key="first") for monitor in (one, other)] == [None, None]
    assert one.history == other.history


def test_all_settings_of_kernels_are_in_the_file(tmp_path):
    config = sparker.FitConfig(n_kernels=3, clip=4.0)
    widths = sparker.WidthConfig(steps=30, n_widths=3)
    null = sparker.Permutation(group_rows=2)
    table = pd.DataFrame(normal(0, 100)).assign(g=np.arange(100) // 4)
    monitor = sparker.Monitor(table, config=config, widths=widths, null=null, groups="g", chunk=8)
    monitor.save(tmp_path / "monitor.sparker")
    found = sparker.Monitor.load(tmp_path / "monitor.sparker").config
    assert (found.config, found.widths, found.null, found.chunk) == (config, widths, null, 8)


def test_of_a_larger_reference_a_random_part_is_used_and_said():
    monitor = sparker.Monitor(normal(0, 4000), **PLAIN)
    first, second = (monitor.look(normal(seed, 50)).result for seed in (1, 2))
    assert first.n_reference == second.n_reference == BATCHES * 50
    assert "1,500 of 4,000 rows" in first.notes[0]
    assert not np.array_equal(first.reference[:50], second.reference[:50])
    counted = sparker.Monitor(normal(0, 4000), expected=40.0, **PLAIN).look(normal(1, 50)).result
    assert counted.n_reference == BATCHES * 40
    table = pd.DataFrame(normal(0, 4000), columns=["x", "y"]).assign(site=np.arange(4000) % 4)
    batch = pd.DataFrame(normal(1, 50), columns=["x", "y"]).assign(site=np.arange(50) % 4)
    whole = sparker.Monitor(table, strata="site", **PLAIN).look(batch).result
    assert whole.n_reference == 4000


@pytest.mark.parametrize(
    ("alpha", "looks", "least"), [(0.01, None, 99), (0.05, 20, 399), (0.1, None, 9)]
)
def test_toys_are_enough_for_an_alarm_and_fewer_are_refused(alpha, looks, least):
    assert fewest_toys(alpha, looks) == least
    settings = {"alpha": alpha, "looks": looks, **PLAIN}
    assert sparker.Monitor(normal(0, 100), **settings).config.n_toys == max(300, least)
    sparker.Monitor(normal(0, 100), n_toys=least, **settings)
    with pytest.raises(ValueError, match=f"n_toys must be at least {least}"):
        sparker.Monitor(normal(0, 100), n_toys=least - 1, **settings)


def test_the_fewest_toys_do_raise_an_alarm():
    monitor = made(alpha=0.05, looks=2, n_toys=fewest_toys(0.05, 2))
    assert monitor.look(shifted(1) + 5).corrected_p_value == pytest.approx(0.05)
    assert monitor.history[0].alarm


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.001, 0.02])
def test_no_rounding_takes_the_alarm_of_the_fewest_toys_away(alpha):
    for looks in range(1, 2000):
        p_value = 1 / (fewest_toys(alpha, looks) + 1)
        assert looks * p_value <= alpha * (1 + ROUNDING)
        assert looks * 2 / (fewest_toys(alpha, looks) + 1) > alpha or looks / alpha < 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "alpha must be between 0 and 1"),
        ({"looks": 0}, "looks must be a whole number"),
        ({"groups": (np.zeros(400), np.zeros(60))}, "groups or strata row by row"),
        ({"null": sparker.Simulator(lambda rng, n: rng.normal(size=(n, 2)))}, "Simulator"),
        ({"store": "somewhere"}, "store does not go with|a monitor does not go with|store"),
        ({"reference_weights": lambda rows: rows[:, 0] ** 2}, "one number a reference row"),
        ({"reference_weights": "w"}, "no column 'w'"),
        ({"n_toy": 5}, "did you mean 'n_toys'"),
    ],
)
def test_what_makes_no_monitor_is_refused(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        made(**settings)


def test_functions_of_ones_own_cannot_be_saved(tmp_path):
    for settings, message in (
        ({"statistic": lambda rng, sample: 1.0}, "only sparker's own statistics"),
        ({"preprocess": lambda points: sparker.unchanged(points)}, "only sparker's own options"),
    ):
        with pytest.raises(ValueError, match=message):
            made(**settings).save(tmp_path / "monitor.sparker")
        assert not (tmp_path / "monitor.sparker").exists()


def version(digest: str = "a" * 64, inode: int = 1, modified: int = 1) -> FileVersion:
    return FileVersion(digest, inode, modified)


def test_a_file_that_was_tested_is_skipped_and_small_batches_may_repeat():
    monitor = made(looks=None)
    assert monitor.look(normal(1), file=version()) is not None
    assert monitor.look(normal(1), file=version("b" * 64)) is None  # touched nothing but its mode
    assert monitor.look(normal(1), file=version(inode=2)) is None  # a copy
    few = normal(2)
    few[19:] = few[0]
    for inode in (3, 4):
        assert monitor.look(few, file=version("c" * 64, inode)) is not None  # 19 different rows
    assert monitor.look(normal(1), file=version("d" * 64, modified=2)) is not None
    assert monitor.look(normal(1)) is not None
    assert monitor.look(normal(3), key="k") is not None
    assert monitor.look(normal(4), key="k") is None
    assert [look.number for look in monitor.history] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.5}, "Expected `float` < 1.0"),
        ({"looks": -3}, "Expected `int` >= 1"),
        ({"history": ()}, None),
        ({"embed": "module:function"}, "there is no embedder|cannot be imported|embed"),
    ],
)
def test_edited_files_are_refused_though_their_digest_is_right(tmp_path, change, message):
    monitor = made()
    monitor.test(normal(1))
    saved = monitor.saved()
    for name, value in change.items():
        setattr(saved, name, value)
    archive.write(tmp_path / "m.sparker", KIND, saved)
    if message is None:  # another history is another monitor, which a digest cannot tell
        assert sparker.Monitor.load(tmp_path / "m.sparker").history == []
        return
    with pytest.raises(ValueError, match=message):
        sparker.Monitor.load(tmp_path / "m.sparker")


def test_histories_are_numbered_and_hold_p_values(tmp_path):
    monitor = made()
    monitor.test(normal(1))
    for name, value in (("number", 7), ("number", -1), ("p_value", 0.0), ("rows", -5)):
        saved = monitor.saved()
        content = archive.packed(KIND, saved)
        old = f'"{name}":{getattr(monitor.history[0], name)}'
        edited = saved.__class__(**{f: getattr(saved, f) for f in saved.__struct_fields__})
        record = {f: getattr(monitor.history[0], f) for f in monitor.history[0].__struct_fields__}
        edited.history = (type(monitor.history[0])(**{**record, name: value}),)
        assert old.encode() in content.replace(b"\\", b"")
        archive.write(tmp_path / "m.sparker", KIND, edited)
        with pytest.raises(ValueError, match="holds no monitor"):
            sparker.Monitor.load(tmp_path / "m.sparker")


def test_the_embedding_of_the_reference_is_kept_where_nothing_is_learned(tmp_path):
    texts = [f"line {i} of {'a' if i % 2 else 'the'} book" for i in range(80)]
    asked = []

    def vectors(things):
        asked.extend(things)
        return np.array([[len(thing), thing.count("e")] for thing in things], float)

    table = pd.DataFrame({"text": texts})
    monitor = sparker.Monitor(table, text="text", embed=vectors, **PLAIN)
    assert monitor.look(table[:30] + " again").result.p_value < 0.05
    del asked[:]
    monitor.look(table[30:60])
    assert set(asked) - {"A text that tells one embedder from another.", "Another one."} == set(
        texts[30:60]
    )
    monitor.save(tmp_path / "m.sparker")
    assert b"line 77" not in (tmp_path / "m.sparker").read_bytes()  # vectors only
    with pytest.raises(ValueError, match="load it with"):
        sparker.Monitor.load(tmp_path / "m.sparker").look(table[30:60])
    loaded = sparker.Monitor.load(tmp_path / "m.sparker", embed=vectors)
    looks = [one.look(table[30:60]).result for one in (monitor, loaded)]
    assert looks[0].p_value == looks[1].p_value
    with pytest.raises(ValueError, match="in another way"):
        sparker.Monitor.load(tmp_path / "m.sparker", embed=lambda x: np.ones((len(x), 2)))


def test_an_embedder_that_learns_learns_anew_from_each_batch(tmp_path):
    texts = [f"line {i} of {'a' if i % 2 else 'the'} long book" for i in range(80)]
    table = pd.DataFrame({"text": texts})
    monitor = sparker.Monitor(table, text="text", embed="tfidf", **PLAIN)
    monitor.save(tmp_path / "m.sparker")
    loaded = sparker.Monitor.load(tmp_path / "m.sparker")
    looks = [one.look(table[:30] + " strange ending").result for one in (monitor, loaded)]
    assert looks[0].p_value == looks[1].p_value
    assert isinstance(looks[0].encoding.embedded.embedder, Tfidf)
    assert "strange" in str(looks[0].encoding.embedded.embedder.arrays) or looks[0].p_value < 0.1


def test_columns_are_found_by_name_and_a_batch_of_others_is_refused():
    table = pd.DataFrame(normal(0, 200), columns=["x", "y"])
    monitor = sparker.Monitor(table, **PLAIN)
    swapped = monitor.look(table[["y", "x"]][:50]).result
    assert swapped.names == ("x", "y")
    with pytest.raises(ValueError, match="no such column"):
        monitor.look(table[["x"]][:50])
    assert len(monitor.history) == 1  # what could not be tested is no look
    assert [look.number for look in monitor.watch([table[:40], table[40:80]])] == [2, 3]


@pytest.mark.parametrize("kind", [made, lambda: sparker.AnytimeMonitor.start(normal(0, 400))])
def test_a_batch_in_a_file_is_read_once(kind, tmp_path, monkeypatch):
    np.save(tmp_path / "batch.npy", normal(1))
    asked, read = [], frames.read
    monkeypatch.setattr(frames, "read", lambda path: asked.append(path) or read(path))
    monitor = kind()
    monitor.look(tmp_path / "batch.npy")
    assert len(asked) == len(monitor.history) == 1


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_alpha_says():
    """With 5 looks at 10 %: of 60 monitors, more than 13 with an alarm are one in a hundred."""
    alarms = 0
    for number in range(60):
        rng = np.random.default_rng(number)
        monitor = sparker.Monitor(
            rng.normal(size=(200, 2)), alpha=0.1, looks=5, seed=number, **PLAIN
        )
        looks = monitor.watch(rng.normal(size=(5, 40, 2)))
        alarms += any(look.alarm for look in looks)
    assert alarms <= 13
