"""References that are read in blocks: the same fits as in memory, and never much memory."""

import os
import subprocess
import sys
import tempfile

import jax
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import chisquare, hypergeom, kstest, nchypergeom_fisher

import sparker
from sparker import FitConfig, WidthConfig, tables
from sparker.cli.main import main
from sparker.detect import prepare
from sparker.engine import TwoSample, batch
from sparker.engine.preprocess import decorrelate
from sparker.engine.widths import schedule, stairs
from sparker.nulls import samples
from sparker.nulls.blocks import bits_of, relabelled_rows
from sparker.streaming import block_sums
from sparker.streaming.reference import Streamed, as_reference, needed
from sparker.streaming.spool import Spool

LITTLE = 2**21
"""Bytes: several blocks of a thousand rows."""

QUICK = {
    "config": FitConfig(n_kernels=3, n_candidates=16),
    "widths": WidthConfig(steps=20, n_widths=2),
    "chunk": 4,  # one program for all
    "explain": False,
}
EXACT = FitConfig(n_kernels=3, dtype=np.float64, n_candidates=64)


def two(d=2, n=9000, seed=0):
    rng = np.random.default_rng(seed)
    reference, data = rng.normal(size=(n, d)), rng.normal(size=(300, d))
    data[:20] = 2 + 0.1 * rng.normal(size=(20, d))
    return reference, data


def toys_of(reference, data, **options):
    observed = samples(sparker.stream(reference, memory=LITTLE), data, **options)
    source = relabelled_rows(observed, 3).source
    return source.toys(decorrelate(source.basis))


def in_memory(toys, numbers):
    """The toys as they would be held in memory."""
    labels, n_rows = toys.label(numbers), toys.pool.rows.shape[0]
    is_data, is_out = (
        np.zeros((len(numbers), n_rows), bool)
        if bits is None
        else np.unpackbits(bits, axis=1, count=n_rows).astype(bool)
        for bits in (labels.is_data, labels.is_out)
    )
    weights = toys.pool.weights
    own = np.ones(n_rows) if weights is None else weights.astype(float)
    reference = np.where(is_data | is_out, 0, own * labels.factor[:, None])
    points = toys.pool.rows.read(0, n_rows).astype(float)
    return TwoSample(points, reference, is_data.astype(float))


CASES = {
    "few features": (2, {}),
    "many features": (8, {}),
    "Poisson": (2, {"expected": 300.0}),
    "weights": (2, {"reference_weights": np.random.default_rng(0).uniform(0.5, 1.5, 9000)}),
    "weights of both": (2, {"reference_weights": lambda rows: np.exp(rows[:, 0])}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_streamed_fit_is_that_in_memory(case):
    d, options = CASES[case]
    toys = toys_of(*two(d), **options)
    plan = stairs(4.0, 0.4, steps=12, n_widths=3)
    numbers = range(3)
    passes = block_sums.Passes(toys.pool, 4, 1.0, EXACT, EXACT.design)
    assert passes.size * 2 < toys.pool.rows.shape[0]
    ((done, fits),) = toys.fit_chunks(5, numbers, plan, EXACT, chunk=4)
    held = in_memory(toys, numbers)
    expected = batch.fit_many(5, held, plan, EXACT, chunk=4)
    assert list(done) == [0, 1, 2]
    assert fits.finite.all()
    measured, in_one = fits.measured, expected.measured
    np.testing.assert_allclose(measured.statistics, in_one.statistics, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(measured.score_counts, in_one.score_counts)
    np.testing.assert_allclose(fits.models.a, expected.models.a, rtol=1e-5, atol=1e-6)
    middle = expected.models.mu + toys.pool.origin
    np.testing.assert_allclose(fits.models.mu, middle, rtol=1e-5, atol=1e-5)
    total = held.reference_weight.sum(1)
    np.testing.assert_allclose(total, 300 if "expected" in options else held.data_weight.sum(1))


def test_a_streamed_fit_follows_an_annealed_width_too():
    toys = toys_of(*two())
    plan = schedule(4.0, 0.4, steps=12, n_widths=3)
    ((_, fits),) = toys.fit_chunks(5, [1, 2], plan, EXACT, chunk=4)
    expected = batch.fit_many(5, in_memory(toys, [1, 2]), plan, EXACT, toys=[1, 2], chunk=4)
    measured = fits.measured
    np.testing.assert_allclose(measured.statistics, expected.measured.statistics, rtol=1e-6)


def test_blocks_need_not_stay_on_the_device(monkeypatch):
    toys = toys_of(*two())
    plan = stairs(4.0, 0.4, steps=4, n_widths=2)
    ((_, kept),) = toys.fit_chunks(0, [0, 1], plan, QUICK["config"], chunk=4)
    monkeypatch.setattr(block_sums.Passes, "keeps", lambda self: False)
    ((_, read),) = toys.fit_chunks(0, [0, 1], plan, QUICK["config"], chunk=4)
    np.testing.assert_array_equal(kept.measured.statistics, read.measured.statistics)


def test_every_row_is_as_likely_to_be_data(monkeypatch):
    monkeypatch.setattr("sparker.nulls.blocks.LABELLED", 16)
    rng = np.random.default_rng(0)
    counts, out = np.zeros((2, 100))
    in_first = []
    for _ in range(2000):
        is_data, is_out = (np.unpackbits(bits, count=100) for bits in bits_of(rng, 100, 20, 12))
        assert (is_data.sum(), is_out.sum(), (is_data & is_out).sum()) == (12, 8, 0)
        counts += is_data
        out += is_out
        in_first.append(is_data[:16].sum())
    # Both are far above one in a million for the right choice of rows.
    assert chisquare(counts).pvalue > 1e-6
    assert chisquare(out).pvalue > 1e-6
    expected = 2000 * hypergeom(100, 16, 12).pmf(np.arange(7))
    found = np.bincount(np.minimum(in_first, 6), minlength=7)
    expected[-1] = 2000 - expected[:-1].sum()
    assert chisquare(found, expected).pvalue > 1e-6


@pytest.mark.parametrize("case", CASES)
def test_data_are_anywhere_in_the_pool_and_all_rows_are_there_once(case):
    d, options = CASES[case]
    reference, data = two(d)
    toys = toys_of(reference, data, **options)
    observed = samples(reference, data, **options)
    streamed = samples(sparker.stream(reference, memory=LITTLE), data, **options)
    near = decorrelate(relabelled_rows(streamed, 3).source.basis)
    pool = toys.pool.rows.read(0, toys.pool.rows.shape[0])
    data_rows, weights = toys.label.data_rows, toys.pool.weights

    def same(rows):
        return (near(rows) - toys.pool.origin).astype(pool.dtype)

    assert toys.label.n_data == len(data)
    np.testing.assert_array_equal(pool[data_rows], same(data))
    assert kstest(data_rows / len(pool), "uniform").pvalue > 1e-6
    rest = np.delete(pool, data_rows, axis=0)
    if case != "weights":
        np.testing.assert_array_equal(rest, same(reference))  # in their order
    else:  # those that were kept
        assert 2700 < len(rest) < 3300  # a third, since larger weights are possible
        both = np.concatenate([rest, same(reference)])
        assert len(np.unique(both, axis=0)) == len(reference)
    if weights is not None:
        largest = max(observed.weights.max(), observed.data_weights.max())
        given = observed.data_weights / largest
        np.testing.assert_allclose(weights[data_rows], given, rtol=1e-6)
        others = np.delete(weights, data_rows)
        np.testing.assert_allclose(others, observed.weights / largest, rtol=1e-6)
    labels = toys.label([0])
    is_data = np.unpackbits(labels.is_data[0], count=len(pool))
    np.testing.assert_array_equal(np.flatnonzero(is_data), data_rows)


def test_weights_of_both_decide_who_is_data_in_blocks():
    reference, data = (np.repeat([0.0, 1.0], n)[:, None] for n in ((40, 40), (10, 30)))
    toys = toys_of(reference, data, reference_weights=lambda rows: 1 + 2 * rows[:, 0])
    where = toys.pool.rows.read(0, 120)[:, 0]
    is_one = where > where.mean()
    found = [
        np.unpackbits(toys.label([i]).is_data[0], count=120)[is_one].sum() for i in range(1, 1500)
    ]
    # Of 40 among 50 and 70, so many of the latter as their odds say: Fisher's distribution.
    expected = nchypergeom_fisher(120, 70, 40, 3)
    z = (np.mean(found) - expected.mean()) / (expected.std() / len(found) ** 0.5)
    assert abs(z) < 5
    assert np.std(found) == pytest.approx(expected.std(), rel=0.1)
    for i in range(3):
        labels = toys.label([i])
        taken = np.unpackbits(labels.is_data[0], count=120).astype(bool)
        assert toys.pool.weights[~taken].sum() * labels.factor[0] == pytest.approx(40)


def test_a_streamed_test_finds_what_the_test_in_memory_finds(tmp_path):
    reference, data = two()
    np.save(tmp_path / "reference.npy", reference.astype(np.float32))
    mapped = np.load(tmp_path / "reference.npy", mmap_mode="r")
    streamed_result = sparker.test(
        sparker.stream(mapped, memory=LITTLE), data.astype(np.float32), n_toys=20, seed=1,
        **QUICK,
    )  # fmt: skip
    assert streamed_result.p_value == 1 / 21
    assert np.all(np.argsort(-streamed_result.data_log_ratio)[:8] < 20)
    whole = sparker.test(mapped, data.astype(np.float32), n_toys=20, seed=1, **QUICK)
    # The same sample with its rows in another order, so that other rows are looked at first: what
    # is read off around them differs by little, what kernels reach in a few steps by more.
    np.testing.assert_allclose(streamed_result.widths, whole.widths, rtol=0.03)
    assert streamed_result.families == sparker.engine.FAMILIES
    assert any("looked at by the kernels alone" in note for note in streamed_result.notes)
    for family in sparker.engine.FAMILIES[1:]:
        looked, expected = (
            result.observed.statistics[result.of_family(family)]
            for result in (streamed_result, whole)
        )
        np.testing.assert_allclose(looked, expected, rtol=0.3, atol=0.5)
    np.testing.assert_allclose(streamed_result.t, whole.t, rtol=0.4, atol=2)
    assert streamed_result.n_reference == whole.n_reference == 9000


def test_a_large_reference_keeps_some_rows_to_show(monkeypatch, tmp_path):
    monkeypatch.setattr("sparker.streaming.reference.MAX_SHOWN", 500)
    reference, data = two()
    weights = np.linspace(0.5, 1.5, len(reference))
    result = sparker.test(
        sparker.stream(reference, memory=LITTLE), data, n_toys=3, **QUICK,
        reference_weights=weights,
    )  # fmt: skip
    assert result.reference_plane.shape == (500, 2)
    # Widths are those of all rows, not of the few that are kept.
    config = sparker.TestConfig(n_toys=1, **QUICK, reference_weights=weights)
    widths = prepare(reference, data, config).plan.prepared.statistic.widths
    np.testing.assert_allclose(result.widths, widths, rtol=0.2)
    assert result.reference_weights.shape == (500,)
    assert result.n_reference == 9000
    assert result.reference_counts.sum() == pytest.approx(300)
    assert "a random 500 of its 9,000 rows" in result.summary()
    result.report(tmp_path / "report.html")
    assert "9,000" in (tmp_path / "report.html").read_text()


def test_stores_know_streamed_references_apart(tmp_path):
    reference, data = two()
    run = {"n_toys": 3, "store": tmp_path / "toys", **QUICK}
    first = sparker.test(sparker.stream(reference, memory=LITTLE), data, **run)
    again = sparker.test(sparker.stream(reference, memory=LITTLE), data, **run)
    np.testing.assert_array_equal(first.null.statistics, again.null.statistics)
    other = reference.copy()
    other[7000, 1] += 1e-3
    with pytest.raises(ValueError, match="reference"):
        sparker.test(sparker.stream(other, memory=LITTLE), data, **run)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"null": sparker.Simulator(two(seed=1)[0])},
            "this null, since only relabelled toys",
        ),
        (
            {"statistic": sparker.statistics.Frechet()},
            "this statistic, since it needs all rows in memory",
        ),
        (
            {"groups": (np.arange(9000), 9000 + np.arange(300))},
            "does not go with groups, since rows that pass by",
        ),
        (
            {"strata": (np.arange(9000) % 2, np.arange(300) % 2)},
            "does not go with strata, since rows that pass by",
        ),
        (
            {"expected": 300, "reference_weights": np.linspace(1, 2, 9000)},
            "does not go with reference_weights and expected",
        ),
    ],
)
def test_what_needs_all_rows_is_refused(options, message):
    reference, data = two()
    with pytest.raises(ValueError, match=message):
        sparker.test(sparker.stream(reference), data, n_toys=3, **options)


def test_rows_of_both_precisions_are_fitted_in_one():
    """Or what rounding does to a large offset would tell them apart."""
    rng = np.random.default_rng(0)
    reference = (1.7e6 + rng.normal(size=(20_000, 1))).astype(np.float32)
    data = (1.7e6 + rng.normal(size=(4_000, 1))).astype(np.float32).astype(np.float64)
    toys = toys_of(reference, data)
    pool = toys.pool.rows.read(0, 24_000)
    data_rows = toys.label.data_rows
    of_data, of_reference = pool[data_rows], np.delete(pool, data_rows)
    assert abs(of_data.mean() - of_reference.mean()) < 0.05
    assert np.isin(of_data, of_reference).mean() > 0.9
    steps = np.unique(np.round(np.diff(np.unique(pool)), 5))
    assert len(steps) <= 4  # one grid for all of them


@pytest.mark.parametrize("of_data", [False, True])
def test_rows_without_weight_are_nowhere_to_look(of_data):
    reference, data = two()
    reference[:40] = 50  # far from everything
    weights = np.ones(len(reference))
    weights[:40] = 0
    result = sparker.test(
        sparker.stream(reference, memory=LITTLE), data, n_toys=3, **QUICK,
        reference_weights=(weights, np.ones(300)) if of_data else weights,
    )  # fmt: skip
    assert result.n_failed == 0
    # All others weigh the same, so that no more than these are left out.
    notes = [note for note in result.notes if "take part" in note]
    assert [note.split(" reference")[0] for note in notes] == ["8,960 of 9,000"] * (not of_data)


def test_masked_values_are_refused():
    reference, data = two()
    masked = np.ma.masked_where(np.arange(18_000).reshape(9000, 2) == 7, reference)
    with pytest.raises(ValueError, match="masked values"):
        sparker.test(sparker.stream(masked), data, n_toys=3)


def test_bad_references_are_refused_with_their_row():
    reference, data = two()
    reference[8123, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite"):
        sparker.test(sparker.stream(reference), data, n_toys=3)
    with pytest.raises(ValueError, match="data has 2 features, reference has 3"):
        sparker.test(sparker.stream(np.zeros((50, 3))), data, n_toys=3)
    with pytest.raises(ValueError, match="takes a streamed reference"):
        sparker.Monitor.calibrate(sparker.stream(reference), batch_size=10)
    with pytest.raises(ValueError, match="can be sliced, such as"):
        sparker.stream([[1.0, 2.0]])
    with pytest.raises(ValueError, match="rows and features"):
        sparker.stream(np.zeros(7))
    with pytest.raises(ValueError, match="bytes"):
        sparker.stream(np.zeros((7, 1)), memory=3)


def test_more_rows_than_can_be_relabelled_are_refused(monkeypatch):
    monkeypatch.setattr("sparker.streaming.reference.MAX_STREAMED", 9300)
    with pytest.raises(ValueError, match="9,300 rows, and fewer than 9,300 can be relabelled"):
        toys_of(*two())


def test_only_mapped_arrays_that_do_not_fit_are_streamed_unasked(tmp_path, monkeypatch):
    np.save(tmp_path / "reference.npy", np.zeros((1000, 2)))
    mapped = np.load(tmp_path / "reference.npy", mmap_mode="r")
    assert as_reference(mapped, may_stream=True).given is mapped
    monkeypatch.setattr("sparker.streaming.reference.free_memory", lambda: needed(1000, 2))
    assert isinstance(as_reference(mapped, may_stream=True), Streamed)
    data = np.random.default_rng(0).normal(size=(50, 2))
    np.save(tmp_path / "other.npy", np.random.default_rng(1).normal(size=(1000, 2)))
    other = np.load(tmp_path / "other.npy", mmap_mode="r")
    frechet = sparker.statistics.Frechet()  # needs an array, and gets it
    assert sparker.test(other, data, statistic=frechet, n_toys=3).n_toys == 3
    held = np.zeros((1000, 2))
    assert as_reference(held, may_stream=True).given is held


def test_a_full_disk_is_no_damaged_file(monkeypatch, tmp_path):
    np.save(tmp_path / "reference.npy", np.zeros((1000, 2)))
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    with pytest.raises(tables.FileError, match="cannot be streamed: 1000 rows and 2 columns take"):
        tables.read(tmp_path / "reference.npy", on_disk=True)


def test_a_full_disk_is_said_before_anything_is_written(monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match=f"are free in {tempfile.gettempdir()}; set TMPDIR"):
        Spool(1000, 2)


def test_the_command_streams_any_file_that_knows_its_rows(tmp_path):
    reference, data = two(n=2000)
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    names = ["pt", "eta"]
    pandas.DataFrame(reference, columns=names).to_parquet(tmp_path / "reference.parquet")
    pandas.DataFrame(data, columns=names).to_csv(tmp_path / "data.csv", index=False)
    np.save(tmp_path / "reference.npy", reference)
    np.save(tmp_path / "data.npy", data)

    def run(*arguments):
        quick = ("--toys", 19, "--steps", 20, "--kernels", 2, "--stream", "--alpha", 0.06)
        return CliRunner().invoke(main, ["test", *map(str, (*arguments, *quick))])

    found = run(
        tmp_path / "reference.parquet", tmp_path / "data.csv", "--report", tmp_path / "r.html"
    )
    assert found.exit_code == 1, found.output
    assert "p-value 0.05 " in found.output
    assert "pt" in (tmp_path / "r.html").read_text()
    assert run(tmp_path / "reference.npy", tmp_path / "data.npy").exit_code == 1
    refused = run(tmp_path / "data.csv", tmp_path / "data.csv")
    assert refused.exit_code == 2
    assert "convert it to .npy" in refused.output
    np.savez(tmp_path / "reference.npz", x=reference)
    assert run(tmp_path / "reference.npz", tmp_path / "data.npy").exit_code == 1
    for options, message in (
        (("--groups", "pt"), "does not go with --groups"),
        (("--null", "simulator", "--pool", tmp_path / "data.npy"), "does not go with --null"),
        (("--strata", "pt"), "does not go with --strata"),
        (("--memory", "0.00001"), "at least 2**20"),
    ):
        refused = run(tmp_path / "reference.npy", tmp_path / "data.npy", *options)
        assert refused.exit_code == 2
        assert message in refused.output


LARGE = """
import resource, sys
import numpy as np
import sparker

rows, features, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
with open(path, "wb") as file:
    for start in range(0, rows, 100_000):
        file.write(rng.normal(size=(100_000, features)).astype(np.float32).tobytes())
data = rng.normal(size=(2000, features)).astype(np.float32)
quick = sparker.presets.annealed()
quick["widths"] = sparker.WidthConfig(annealing=quick["widths"].annealing, steps=4, n_widths=2)
quick["explain"] = False  # it would take memory of its own


def most_memory(reference):
    sparker.test(reference, data, n_toys=1, **quick)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


before = most_memory(sparker.stream(rng.normal(size=(5000, features)), memory=2**27))
mapped = np.memmap(path, np.float32, "r", shape=(rows, features))
print(most_memory(sparker.stream(mapped, memory=2**27)) - before)
"""


@pytest.mark.parametrize(
    ("rows", "features"), [(4_000_000, 4), pytest.param(1_000_000, 64, marks=pytest.mark.slow)]
)
def test_memory_stays_far_below_what_the_reference_takes(rows, features, tmp_path):
    pytest.importorskip("resource")
    arguments = [sys.executable, "-c", LARGE, str(rows), str(features), str(tmp_path / "rows")]
    run = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    # The rows that are kept to be shown, and what is made of them, come on top of what is allowed.
    assert int(run.stdout) < 2**29 < needed(rows, features) / 4


def found_on(n_devices):
    """What is found where there are so many devices."""
    assert len(jax.local_devices()) == n_devices
    reference, data = two()
    result = sparker.test(sparker.stream(reference, memory=LITTLE), data, n_toys=2, **QUICK)
    return np.concatenate([result.observed.statistics.ravel(), result.null.statistics.ravel()])


def test_several_devices_share_the_rows():
    """Each takes a part of every block: the numbers are those of one device."""

    three = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=3"
    run = subprocess.run(
        [sys.executable, "-c", "from tests.test_stream import found_on; print(*found_on(3))"],
        env=os.environ | {"XLA_FLAGS": three, "JAX_PLATFORMS": "cpu"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    np.testing.assert_allclose(
        np.array(run.stdout.split(), float), found_on(1), rtol=1e-3, atol=1e-2
    )
