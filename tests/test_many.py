"""Many samples against one reference, and which of several generators is closest to the data."""

import html
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import stats
from scipy.stats import binom

import sparker
from sparker.by_name import folder_of
from sparker.calibration.false_discovery import fewest_listed, q_values
from sparker.calibration.sequential import Sequential
from sparker.cli.main import main
from sparker.findings.closest import compare
from sparker.findings.distance import Distances, held_out
from sparker.report.many import render
from sparker.statistics.kernels import KernelStatistic

RNG = np.random.default_rng(5)
REFERENCE = RNG.normal(size=(300, 2))
FINE = {f"run {i}": RNG.normal(size=(40, 2)) for i in range(4)}
SHIFTED = RNG.normal(size=(40, 2)) + 1.5
RUNS = {**FINE, "run <4>": SHIFTED}


def distance_of_means(rng, sample):
    points = np.asarray(sample.points)
    means = [
        np.asarray(weight) @ points / np.sum(weight)
        for weight in (sample.data_weight, sample.reference_weight)
    ]
    return float(np.linalg.norm(means[0] - means[1]))


PLAIN = {
    "statistic": distance_of_means,
    "preprocess": sparker.unchanged,
    "progress": False,
    "stop": None,
}
"""A statistic that fits nothing, so that nothing is compiled."""


def test_q_values_are_those_of_the_textbook():
    p = np.random.default_rng(0).random(40) ** 3
    order = np.argsort(p)
    for rate in (0.01, 0.05, 0.2):
        n = max([k for k in range(1, 41) if p[order[k - 1]] <= rate * k / 40], default=0)
        assert set(np.flatnonzero(q_values(p) <= rate)) == set(order[:n])
    assert np.isnan(q_values(np.array([np.nan]))).all()


@pytest.mark.parametrize("n_toys", [9, 19, 99])
def test_how_many_must_have_the_smallest_p_value(n_toys):
    for n_samples in (1, 7, 30):
        fewest = fewest_listed(n_samples, 0.1, 1 / (n_toys + 1))
        for k in range(1, n_samples + 1):
            p = np.where(np.arange(n_samples) < k, 1 / (n_toys + 1), 1.0)
            assert bool(np.any(q_values(p) <= 0.1)) == (fewest is not None and k >= fewest)


def test_a_line_is_what_a_test_of_the_sample_says():
    found = sparker.test_many(REFERENCE, RUNS, n_toys=59, **PLAIN)
    assert found.found == ["run <4>"]
    assert [one.name for one in found] == list(RUNS)
    for one in found:
        alone = sparker.test(REFERENCE, RUNS[one.name], n_toys=59, seed=one.seed, **PLAIN)
        assert (one.p_value, one.combined_score) == (alone.p_value, alone.combined_score)
    assert len({one.seed for one in found}) == len(RUNS)
    # Only what may be in the list is explained.
    assert found["run <4>"].at_least == alone.at_least
    assert found["run <4>"].sentences
    assert not any(one.sentences for one in found if one.p_value > 0.1)


def test_a_line_does_not_depend_on_the_other_samples():
    all_of_them = sparker.test_many(REFERENCE, RUNS, n_toys=19, explain=False, **PLAIN)
    few = {name: RUNS[name] for name in ("run 2", "run 0")}
    for one in sparker.test_many(REFERENCE, few, n_toys=19, explain=False, **PLAIN):
        assert one == all_of_them[one.name]


def test_what_is_wrong_with_one_sample_costs_no_other(tmp_path):
    runs = {**FINE, "narrow": np.ones((40, 1)), "gone": tmp_path / "gone.npy"}
    found = sparker.test_many(REFERENCE, runs, n_toys=99, explain=False, **PLAIN)
    assert [one.name for one in found.failed] == ["narrow", "gone"]
    assert np.isnan(found.q_values[-2:]).all()
    assert np.isfinite(found.q_values[:-2]).all()
    assert [one.name for one in found.ranked[-2:]] == ["narrow", "gone"]
    assert "no file" in found["gone"].error
    assert sum("could not be tested" in note for note in found.notes) == 2
    with pytest.raises(OSError, match="no file"):  # of none can anything be said
        sparker.test_many(REFERENCE, {"gone": tmp_path / "gone.npy"}, n_toys=19, **PLAIN)


@pytest.mark.parametrize(
    ("samples", "settings", "said"),
    [
        (SHIFTED, {}, r"an array of them \(K, n, d\)"),
        ("runs.csv", {}, "got a single str"),
        (pd.DataFrame(SHIFTED), {}, "got a single DataFrame"),
        ([], {}, "from 1 to"),
        (3, {}, "got a single int"),
        ({1: SHIFTED, "1": SHIFTED}, {}, "the same name"),
        (RUNS, {"fdr": 1.0}, "fdr must lie between"),
        (RUNS, {"fdr": "0.1"}, "fdr must lie between"),
        (RUNS, {"fdr": 0.01}, "99 or more by n_toys"),
        (RUNS, {"stop": Sequential(), "n_toys": 8}, "ask for 9 or more"),
        (RUNS, {"groups": ([1], [2])}, "groups or strata row by row does not go with many"),
        (RUNS, {"n_toy": 10}, "did you mean 'n_toys'"),
    ],
)
def test_what_cannot_be_tested_is_refused(samples, settings, said):
    with pytest.raises((ValueError, TypeError), match=said):
        sparker.test_many(REFERENCE, samples, **{"n_toys": 19, **PLAIN, **settings})


def test_samples_may_come_in_any_form(tmp_path):
    for name, rows in RUNS.items():
        np.save(tmp_path / f"{name}.npy", rows)
    files = sorted(tmp_path.glob("*.npy"))
    by_file = sparker.test_many(REFERENCE, files, n_toys=19, explain=False, **PLAIN)
    assert [one.name for one in by_file] == [str(file) for file in files]
    stacked = sparker.test_many(
        REFERENCE, np.stack(list(RUNS.values())), n_toys=19, explain=False, **PLAIN
    )
    assert [one.name for one in stacked][:2] == ["sample 1", "sample 2"]
    assert isinstance(stacked.table(), np.ndarray)
    uneven = sparker.test_many(
        REFERENCE, [SHIFTED, SHIFTED[:30]], n_toys=19, explain=False, **PLAIN
    )
    assert [one.n_rows for one in uneven] == [40, 30]
    for library in (pd, pl):
        frames = {
            name: library.DataFrame({"x": rows[:, 0], "y": rows[:, 1]})
            for name, rows in RUNS.items()
        }
        reference = library.DataFrame({"x": REFERENCE[:, 0], "y": REFERENCE[:, 1]})
        found = sparker.test_many(reference, frames, n_toys=19, explain=False, **PLAIN)
        table = found.table()
        assert isinstance(table, library.DataFrame)
        assert next(iter(table["sample"])) == "run <4>"
        assert list(table["q_value"]) == sorted(table["q_value"])


def test_groups_strata_and_weights_are_those_of_a_single_test():
    def frame(rows, seed):
        return pd.DataFrame({"x": rows[:, 0], "y": rows[:, 1], "site": np.arange(len(rows)) % 2})

    reference = frame(REFERENCE, 0)
    frames = {name: frame(rows, i) for i, (name, rows) in enumerate(RUNS.items(), 1)}
    settings = {**PLAIN, "n_toys": 19, "explain": False, "strata": "site"}
    found = sparker.test_many(reference, frames, **settings)
    one = found["run <4>"]
    alone = sparker.test(reference, frames["run <4>"], seed=one.seed, **settings)
    assert alone.settings["strata"] is not None
    assert (one.p_value, one.combined_score) == (alone.p_value, alone.combined_score)
    weighted = {**PLAIN, "n_toys": 19, "explain": False, "reference_weights": lambda x: x[:, 0] + 9}
    found = sparker.test_many(REFERENCE, RUNS, **weighted)
    alone = sparker.test(REFERENCE, SHIFTED, seed=found["run <4>"].seed, **weighted)
    assert found["run <4>"].combined_score == alone.combined_score


def test_toys_stop_early_and_are_enough_for_one_sample_alone():
    settings = {name: PLAIN[name] for name in PLAIN if name != "stop"}
    found = sparker.test_many(REFERENCE, RUNS, fdr=0.01, explain=False, **settings)
    assert found.settings["n_toys"] == 5 / 0.01 - 1
    assert found["run <4>"].p_value == pytest.approx(0.01 / 5)
    assert found.found == ["run <4>"]
    assert all(one.n_toys < 300 for one in found if one.p_value > 0.2)
    few = sparker.test_many(REFERENCE, FINE, explain=False, **settings)
    assert few.settings["n_toys"] == 300
    whole = sparker.test_many(REFERENCE, FINE, explain=False, **PLAIN)
    assert all(one.n_toys == 300 for one in whole)


def test_any_null_goes():
    null = sparker.Simulator(lambda rng, n: rng.normal(size=(n, 2)))
    found = sparker.test_many(REFERENCE, RUNS, null=null, n_toys=59, explain=False, **PLAIN)
    assert found.found == ["run <4>"]


def test_level_and_false_discoveries():
    """A reference as small as a sample, whose peculiarities show in all samples alike."""
    n_tables, n_samples = 40, 6
    p = np.empty((n_tables, n_samples))
    for number in range(n_tables):
        rng = np.random.default_rng([number, 0])
        reference = rng.normal(size=(20, 1))
        samples = rng.normal(size=(n_samples, 20, 1))
        found = sparker.test_many(
            reference, samples, fdr=0.4, n_toys=19, seed=number, explain=False, **PLAIN
        )
        p[number] = found.p_values
    # One sample of a table: these are independent.
    for level in (0.1, 0.3):
        assert binom.sf(np.sum(p[:, 0] <= level) - 1, n_tables, level) > 1e-3
    # Without anomalies all that is listed is false.
    any_listed = np.array([np.any(q_values(row) <= 0.4) for row in p])
    assert binom.sf(any_listed.sum() - 1, n_tables, 0.4) > 1e-3


def test_an_ended_call_goes_on_with_the_same_bits(tmp_path):
    """With kernels, whose fits are what may come out otherwise."""
    runs = {name: RUNS[name] for name in ("run 0", "run <4>")}
    small = {
        "statistic": KernelStatistic(
            config=sparker.FitConfig(n_kernels=2), widths=sparker.WidthConfig(steps=10, n_widths=2)
        ),
        "explain": False,
        "n_toys": 50,
        "fdr": 0.4,
        "chunk": 16,
    }
    whole = sparker.test_many(REFERENCE, runs, progress=False, **small)
    seen = []

    def interrupt(done, total):
        seen.append(total)
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        sparker.test_many(REFERENCE, runs, progress=interrupt, store=tmp_path, **small)
    assert "samples were finished" in "".join(caught.value.__notes__)
    kept = list(tmp_path.rglob("toys-*"))
    assert kept
    assert (tmp_path / folder_of("run 0")).is_dir()
    found = sparker.test_many(REFERENCE, runs, progress=False, store=tmp_path, **small)
    assert found.samples == whole.samples
    assert all(path.exists() for path in kept)
    assert "kernels" in str(found.settings["statistic"])


def test_the_whole_result_is_handed_over(tmp_path):
    kept = {}
    found = sparker.test_many(REFERENCE, RUNS, n_toys=59, on_result=kept.__setitem__, **PLAIN)
    assert kept.keys() == RUNS.keys()
    result = kept["run <4>"]
    assert result.p_value == found["run <4>"].p_value
    result.save(tmp_path / "result.sparker")
    assert sparker.load(tmp_path / "result.sparker") == result
    assert result.at_least > 0


# What is made of it.


@pytest.fixture(scope="module")
def found():
    return sparker.test_many(REFERENCE, {**RUNS, "narrow": np.ones((40, 1))}, n_toys=59, **PLAIN)


def test_the_page_has_a_card_for_each_sample(found, tmp_path):
    page = render(found, command="sparker test")
    assert page.count("<details") == len(found)
    for rank in range(1, len(found) + 1):
        assert f'id="sample-{rank}"' in page
        assert page.count(f'href="#sample-{rank}"') >= 1
    assert "run &lt;4&gt;" in page
    assert "run <4>" not in page
    assert "<script" not in page
    assert html.escape(found.verdict()) in page
    for one, card in zip(found.ranked, page.split("<details")[1:], strict=True):
        listed = one.name in found.found
        assert ("How many: " in card) == ("Where: " in card) == listed
        assert one.error is not None or html.escape(one.decision) in card
        assert one.error is not None or " by itself (p = " in one.decision
    found.report(tmp_path / "many.html")
    assert (tmp_path / "many.html").stat().st_size < 40_000
    with pytest.raises(ValueError, match="could not be written"):
        found.report(tmp_path / "no" / "many.html")


def test_hundreds_of_samples_make_a_small_page(found):
    from dataclasses import replace

    many = [one._replace(name=f"{one.name} {i}") for i in range(60) for one in found]
    page = render(replace(found, samples=tuple(many)))
    assert len(page) < 1e6
    assert page.count("<details") == len(many) == 360


def test_only_listed_samples_have_answers():
    settings = {"statistic": sparker.statistics.Shifts(), "n_toys": 59}
    smallest = min(sparker.test_many(REFERENCE, FINE, **settings).p_values)
    found = sparker.test_many(REFERENCE, FINE, fdr=1.01 * smallest, **settings)
    assert min(found.p_values) <= found.fdr  # by itself significant, and not among so many
    assert not found.found
    assert all(one.at_least is None and not one.regions + one.sentences for one in found)
    found = sparker.test_many(REFERENCE, RUNS, **settings)
    assert {one.name for one in found if one.at_least is not None} == {*found.found} == {"run <4>"}


def test_in_words_and_in_json(found):
    assert found.verdict().startswith("1 of 5 samples differs from the reference")
    told = found.to_dict()
    json.dumps(told, allow_nan=False)
    assert told["found"] == ["run <4>"]
    first, *_, last = told["samples"]
    assert (first["sample"], first["rank"], first["listed"]) == ("run <4>", 1, True)
    assert (last["sample"], last["p_value"]) == ("narrow", None)
    assert "run <4>: p " in found.summary()
    assert "could not be tested" in found.summary()
    fine = sparker.test_many(REFERENCE, FINE, n_toys=19, explain=False, fdr=0.1, **PLAIN)
    assert fine.verdict().startswith("none of 4 samples")
    assert any("samples is listed unless at least 2 reach it" in note for note in fine.notes)


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("reference.npy", REFERENCE)
    (tmp_path / "runs").mkdir()
    for i, rows in enumerate(RUNS.values()):
        np.save(f"runs/{i}.npy", rows)

    def run(*words):
        common = ["--toys", "59", "--statistic", "frechet", "--store", "store"]
        return CliRunner().invoke(main, ["test", "reference.npy", *words, *common])

    done = run("runs", "--fdr", "0.1", "--report", "many.html", "--reports", "reports")
    assert done.exit_code == 1, done.output
    assert "2 of 5 samples differ from the reference" in done.stdout
    assert "runs/4.npy" in (tmp_path / "many.html").read_text()
    assert (tmp_path / "reports" / "4.html").exists()
    done = run("runs", "--json")
    assert done.exit_code == 0  # nobody asked for a decision
    told = json.loads(done.stdout)
    assert told["found"] == ["runs/4.npy", "runs/0.npy"]  # the second by chance
    done = run("runs/1.npy", "runs/2.npy", "--fdr", "0.1")
    assert done.exit_code == 0
    np.save("bad.npy", np.ones((40, 1)))
    done = run("runs/4.npy", "bad.npy", "--fdr", "0.1")
    assert done.exit_code == 2
    assert "1 of 2 samples could not be tested" in done.stderr
    assert "1 of 1 samples differs" in done.stdout
    (tmp_path / "empty").mkdir()
    for words, said in (
        (["empty"], "there are no files in empty"),
        (["runs/0.npy", "runs/0.npy"], "named twice"),
        (["runs", "--reports", "runs"], "would be among the samples"),
        (["runs", "--report", "runs/many.html"], "would be among the samples"),
        (["runs", "--fdr", "0.001"], "no sample could be listed"),
    ):
        done = run(*words)
        assert done.exit_code == 2
        assert said in done.stderr


# Which of several generators is closest to the data.


class Known(sparker.statistics.Statistic):
    """Log density ratios that are known: the truth, half of it, and nonsense."""

    widths = np.arange(3.0)

    def __init__(self, delta):
        self.delta = delta

    def prepare(self, points, transform=None):
        return self

    def log_ratios(self, prepared, seed, samples, chunk):
        x = np.asarray(samples.points)[:, 0]
        truth = self.delta**2 / 2 - self.delta * x
        f = np.stack([truth, truth / 2, -truth], axis=1)
        return np.broadcast_to(f, (len(samples.data_weight), *f.shape))


def shifted(rng, n, delta):
    """Data, and generated rows whose true distance from them is delta^2."""
    return rng.normal(size=(n, 1)), rng.normal(delta, size=(n, 1))


def slow_distance(f, fold_of, rows, own):
    """Row by row, in the order of the definition; the first 60 rows are data."""

    def term(row, f):
        return 2 * f if row < 60 else -2 * (np.exp(f) - 1)

    def mean(rows, of):
        sums = np.zeros((2, 2))
        for row in rows:
            weight = 1.0 if row < 60 else own[row - 60]
            sums[int(row >= 60)] += weight * of(row), weight
        return (sums[:, 0] / sums[:, 1]).sum()

    chosen = {}
    for fold in range(4):
        others = [row for row in rows if fold_of[row] != fold]
        values = {
            (width, strength): mean(
                others,
                lambda row, w=width, s=strength: term(row, s * f[fold_of[row], row, w]),
            )
            for width in range(3)
            for strength in (0.25, 0.5, 0.75, 1.0)
        }
        width, strength = max(values, key=values.get)
        for row in rows:
            if fold_of[row] == fold:
                chosen[row] = term(row, strength * f[fold, row, width])
    return mean(rows, chosen.get)


def test_a_distance_is_t_on_rows_that_were_not_fitted():
    rng = np.random.default_rng(2)
    data, generated = shifted(rng, 60, 0.5)
    generated, weights = generated[:45], rng.random(45) + 0.5
    points = np.concatenate([data, generated])
    seen = []

    class Noisy(Known):
        """Each fit has its own noise, and what it is given is remembered."""

        def log_ratios(self, prepared, seed, samples, chunk):
            seen.append(samples)
            noise = np.random.default_rng(0).normal(size=(len(samples.data_weight), 105, 3))
            return super().log_ratios(prepared, seed, samples, chunk) + noise

    statistic = Noisy(0.5)
    found = held_out(
        statistic, statistic, points, 60, weights, n_folds=4, n_splits=3, seed=7, chunk=None
    )
    (samples,) = seen
    f = statistic.log_ratios(None, 0, samples, None)
    weight = samples.data_weight + samples.reference_weight  # of 7 parts, each with 4 fits
    fold_of = np.argmin(weight[:4], axis=0)
    assert sorted(np.bincount(fold_of[:60])) == [15] * 4
    np.testing.assert_allclose(samples.reference_weight.sum(1), samples.data_weight.sum(1))
    everything = set(range(105))
    for part, distance in enumerate([found.whole, *found.halves.ravel()]):
        own = slice(4 * part, 4 * part + 4)
        rows = set(np.flatnonzero(weight[own].sum(0) > 0).tolist())
        if part % 2:
            first = rows
            assert np.bincount(fold_of[sorted(rows & set(range(60)))]).tolist() in ([7, 8, 7, 8],
                [8, 7, 8, 7])  # fmt: skip
        elif part:  # the two halves share no row and leave none out
            assert not rows & first
            assert rows | first == everything
        assert distance == pytest.approx(slow_distance(f[own], fold_of, rows, weights))


def test_data_rows_are_split_in_the_same_way_beside_any_generated_ones():
    seen = []

    class Remembers(Known):
        def log_ratios(self, prepared, seed, samples, chunk):
            seen.append(samples.data_weight[:, :100] > 0)
            return super().log_ratios(prepared, seed, samples, chunk)

    data, generated = shifted(np.random.default_rng(0), 100, 0.5)
    remembers = Remembers(0.5)
    for n in (100, 99, 60):
        points = np.concatenate([data, generated[:n]])
        held_out(remembers, remembers, points, 100, None, n_folds=5, n_splits=3, seed=0, chunk=None)
    assert all(np.array_equal(seen[0], one) for one in seen[1:])


def test_log_ratios_of_many_rows_are_made_in_several_turns(monkeypatch):
    data, generated = shifted(np.random.default_rng(0), 100, 0.5)
    points, known = np.concatenate([data, generated]), Known(0.5)
    options = {"n_folds": 5, "n_splits": 4, "seed": 0, "chunk": None}
    at_once = held_out(known, known, points, 100, None, **options)
    monkeypatch.setattr("sparker.findings.distance.MAX_BYTES", 60_000)
    turns = held_out(known, known, points, 100, None, **options)
    assert at_once.whole == turns.whole
    np.testing.assert_array_equal(at_once.halves, turns.halves)


def test_intervals_cover_the_true_divergence_where_the_ratio_is_known():
    n_covered, n_low, n_tests, delta = 0, 0, 150, 0.5
    known, spreads, all_found = Known(delta), [], []
    for number in range(n_tests):
        data, generated = shifted(np.random.default_rng(number), 200, delta)
        found = held_out(
            known, known, np.concatenate([data, generated]), 200, None,
            n_folds=5, n_splits=10, seed=number, chunk=None,
        )  # fmt: skip
        (line,) = compare([found])
        low, high = line["interval"]
        n_covered += low <= delta**2 <= high
        n_low += low <= delta**2
        spreads.append((high - low) / 2 / stats.t.isf(0.025, 10))
        all_found.append(found.whole)
    # Where only a part of f is believed, the distance is too small: so the lower end holds.
    assert n_covered / n_tests > 0.9
    assert n_low / n_tests > 0.94
    # What halves say of the scatter is how much distances scatter.
    assert 0.8 < np.sqrt(np.mean(np.square(spreads))) / np.std(all_found) < 1.4


def test_generators_that_are_the_same_rows_are_equally_close():
    halves = np.random.default_rng(0).normal(size=(10, 2))
    first, second = compare([Distances(0.5, halves), Distances(0.5, halves.copy())])
    assert (first["p_value"], second["p_value"], second["behind"]) == (1, 1, 0)


def test_the_closest_generator_is_found():
    rng = np.random.default_rng(4)
    data = rng.normal(size=(300, 2))
    generated = {
        "far": rng.normal(0.8, size=(300, 2)),
        "good": rng.normal(size=(300, 2)),
        "narrow": np.ones((300, 1)),
    }
    settings = {"widths": sparker.WidthConfig(steps=40, n_widths=3), "progress": False}
    found = sparker.closest(data, generated, **settings)
    assert [one.name for one in found.candidates] == ["good", "far", "narrow"]
    good, far, narrow = found.candidates
    assert found.is_sure
    assert good.interval[0] < 0.02
    assert far.interval[0] > 0.1
    assert far.behind == far.distance - good.distance
    assert far.behind_interval[0] > 0
    assert "features" in narrow.error
    told = found.to_dict()
    json.dumps(told, allow_nan=False)
    assert (told["closest"], told["sure"]) == ("good", True)
    assert found.verdict().startswith("good is closest to the data, at ")
    assert found.table()["sample"].tolist() == ["good", "far", "narrow"]
    again = sparker.closest(data, generated, **settings)
    assert again.candidates[:2] == found.candidates[:2]
    # Weights that lead back to the data make a far generator a good one.
    weights = np.exp(np.sum(0.64 / 2 - 0.8 * generated["far"], axis=1))
    frame = pd.DataFrame(generated["far"], columns=["x", "y"]).assign(w=weights)
    frames = {"weighted": frame, "plain": frame}
    for one, weight in (("weighted", "w"), ("plain", None)):
        near = sparker.closest(
            pd.DataFrame(data, columns=["x", "y"]), {one: frames[one]}, reference_weights=weight,
            ignore=[] if weight else ["w"], **settings,
        )  # fmt: skip
        assert (near.best.distance < far.interval[0]) == (one == "weighted")
        assert near.is_sure is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_folds": 1}, "n_folds must be"),
        ({"n_splits": 2}, "n_splits must be"),
        ({"n_folds": 90}, "90 folds of at least 5 rows need 900 of each"),
        ({"groups": "g"}, "groups does not go with a distance"),
        ({"statistic": sparker.statistics.Frechet()}, "another statistic does not go"),
    ],
)
def test_distances_that_cannot_be_had_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        sparker.closest(REFERENCE, RUNS, **settings)


def test_the_command_closest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    (tmp_path / "made").mkdir()
    np.save("data.npy", rng.normal(size=(300, 2)))
    np.save("made/far.npy", rng.normal(0.8, size=(300, 2)))
    np.save("made/good.npy", rng.normal(size=(300, 2)))
    words = ["--steps", "40", "--splits", "5"]
    done = CliRunner().invoke(main, ["closest", "data.npy", "made", *words])
    assert done.exit_code == 0, done.output
    assert "made/good.npy is closest to the data" in done.stdout
    np.save("made/<bad>.npy", np.ones((300, 1)))
    words += ["--report", "page.html"]
    done = CliRunner().invoke(main, ["closest", "data.npy", "made", "--json", *words])
    assert done.exit_code == 2
    assert "1 of 3 files could not be compared" in done.stderr
    assert json.loads(done.stdout)["closest"] == "made/good.npy"
    page = (tmp_path / "page.html").read_text()
    lines = re.findall(r'<td class="name">(.*?)</td>', page)
    assert lines == ["made/good.npy", "made/far.npy", "made/&lt;bad&gt;.npy"]
    assert page.count("<circle") == 2  # of those that could be compared
    assert "<bad>" not in page
    assert "<script" not in page
    done = CliRunner().invoke(main, ["closest", "data.npy", "made", "--report", "data.npy"])
    assert done.exit_code == 2
    assert np.load("data.npy").shape == (300, 2)
