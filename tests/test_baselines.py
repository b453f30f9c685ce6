"""The baselines: each against a textbook, on pools and on points of its own, and its level."""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import linalg, special, stats
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

import sparker
from sparker.calibration.settings import plain
from sparker.cli.main import main
from sparker.engine import Toys
from sparker.engine.sample import TwoSample, pad, stack
from sparker.statistics import (
    MMD,
    NPLM,
    AndersonDarling,
    ClassifierTwoSample,
    Frechet,
    KolmogorovSmirnov,
    Mahalanobis,
    mmd,
    nplm,
)
from sparker.statistics.choose import named
from sparker.statistics.nystrom import choose_centres, whitening

N_ROWS, N_DATA, N_TOYS = 90, 30, 3
ALL = 200  # centres, more than there are rows: every row is one, whoever is drawn first

LINEAR = ClassifierTwoSample(classifier=LogisticRegression())
MANY_FEATURES = {
    "nplm": NPLM(n_centres=ALL, n_bandwidths=2),
    "mmd": MMD(n_bandwidths=3),
    "mmd, all centres": MMD(n_bandwidths=3, n_centres=ALL),
    "mahalanobis": Mahalanobis(),
    "frechet": Frechet(),
    "c2st": LINEAR,
}
ONE_FEATURE = {"ks": KolmogorovSmirnov(), "anderson-darling": AndersonDarling()}
METHODS = [
    *(pytest.param(method, 2, id=name) for name, method in MANY_FEATURES.items()),
    *(pytest.param(method, 1, id=name) for name, method in ONE_FEATURE.items()),
]
by_method = pytest.mark.parametrize(("method", "n_features"), METHODS)


def pool(n_features: int = 2, *, weighted: bool = True) -> TwoSample:
    """Toys on shared points, with a weighted reference, that differ a little."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(N_ROWS, n_features)) + 5
    own = rng.uniform(0.5, 1.5, N_ROWS) if weighted else np.ones(N_ROWS)
    is_data = np.argsort(rng.random((N_TOYS, N_ROWS)) + 0.1 * points[:, 0]) < N_DATA
    reference = np.where(is_data, 0, own)
    reference *= N_DATA / reference.sum(1, keepdims=True)
    return TwoSample(points, reference, is_data.astype(float))


def own_points(batch: TwoSample, n_rows: int) -> TwoSample:
    return stack([pad(batch.alone(i), n_rows) for i in range(len(batch.data_weight))])


def prepare(method, points: np.ndarray):
    """With settings from all rows there are."""
    return method.prepare(points)


def scales(prepared) -> np.ndarray:
    """The bandwidths that it reads off."""
    return np.array([reading.scale for reading in prepared.component_tests])


def evaluate(method, batch: TwoSample, points=None, chunk: int = 2, seed: int = 0) -> np.ndarray:
    """The statistic (B, m), with settings from these points."""
    basis = np.asarray(batch.points) if points is None else points
    prepared = prepare(method, basis.reshape(-1, basis.shape[-1]))
    numbers = range(len(batch.data_weight))
    chunks = prepared.chunks(seed, Toys(batch.toys), numbers, chunk)
    return np.concatenate([chunk.statistics for chunk in chunks])


def samples(batch: TwoSample, toy: int) -> tuple[np.ndarray, ...]:
    """Rows and weights that add up to 1, of the reference and of the data."""
    one = batch.alone(toy)
    found = []
    for weight in (one.reference_weight, one.data_weight):
        found += [one.points[weight > 0], weight[weight > 0] / weight.sum()]
    return tuple(found)


def gaussian(x: np.ndarray, y: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-np.sum((x[:, None] - y[None]) ** 2, -1) / (2 * width**2))


# What each of them computes


def test_nplm_is_logistic_regression_on_the_same_nystrom_features():
    batch, ridge, n_centres = pool(), 1e-4, 25
    method = NPLM(n_centres=n_centres, n_bandwidths=2, ridge=ridge)
    widths = scales(prepare(method, batch.points))
    with jax.enable_x64(True):
        used = jnp.ones(N_ROWS, bool)
        rows = np.asarray(choose_centres(jax.random.key(0), used, n_centres))
    found = evaluate(method, batch)
    for column, width in enumerate(widths):
        centres = batch.points[rows]
        # Another basis of the same functions: by eigenvectors, not by a Cholesky factor.
        values, vectors = linalg.eigh(gaussian(centres, centres, width))
        keep = values > 1e-9
        features = gaussian(batch.points, centres, width) @ vectors[:, keep]
        features /= np.sqrt(values[keep])
        for toy in range(N_TOYS):
            reference, data = batch.reference_weight[toy], batch.data_weight[toy]
            weight = reference + data
            model = LogisticRegression(
                C=1 / (ridge * weight.sum()), fit_intercept=False, tol=1e-10, max_iter=10_000,
                solver="newton-cholesky",
            ).fit(features, data > 0, sample_weight=weight)  # fmt: skip
            f = features @ model.coef_[0]
            t = -2 * (np.sum(reference * np.expm1(f)) - np.sum(data * f))
            np.testing.assert_allclose(found[toy, column], t, rtol=1e-3, atol=1e-3)
    # The last one's f itself, beside t.
    design = nplm._Regression(n_centres, ridge, 1e-6)
    with jax.enable_x64(True):
        white = whitening(jnp.asarray(centres), used[rows], jnp.asarray(width))
        phi = nplm._features(jnp.asarray(batch.points), jnp.asarray(centres), used[rows], white,
                             jnp.asarray(width))  # fmt: skip
        root = design._root(phi, used)
        _, fitted = design.fit(phi, root, *(jnp.asarray(w[-1:]) for w in batch[1:]))
    np.testing.assert_allclose(np.asarray(fitted)[0], f, atol=1e-3)


def test_nplm_sees_the_total_count():
    batch = pool()
    more = batch._replace(reference_weight=batch.reference_weight / 2)
    method = MANY_FEATURES["nplm"]
    widest = (evaluate(method, one)[:, -1] for one in (batch, more))
    assert np.all(np.diff(list(widest), axis=0) > 5)


def test_nplm_has_converged_where_no_step_lowers_the_loss():
    never, usual = (NPLM(n_centres=20, n_bandwidths=2, tolerance=tol) for tol in (1e-30, 1e-6))
    np.testing.assert_allclose(evaluate(never, pool()), evaluate(usual, pool()), rtol=1e-5)


@pytest.mark.parametrize("ridge", [1e-4, 1e-9])
@pytest.mark.parametrize("weight", [1, 1e7])
@pytest.mark.parametrize("bits", [23, 10])
def test_nplm_converges_whatever_products_can_resolve(monkeypatch, ridge, weight, bits):
    """Heavy rows and products in TF32, where the gradient never gets below the tolerance."""
    matmul, batch = jnp.matmul, pool(8)
    reference, data = (weight * w for w in batch[1:])
    design = nplm._Regression(40, ridge, 1e-6)

    def coarse(a, b, **options):
        if a.dtype == jnp.float32:
            a, b = (jax.lax.reduce_precision(x, 8, bits) for x in (a, b))
        return matmul(a, b, **options)

    with jax.enable_x64(True):
        x, used = jnp.asarray(batch.points), jnp.ones(N_ROWS, bool)
        centres, width = x[:40], jnp.asarray(2.0)
        white = whitening(centres, used[:40], width)
        phi = nplm._features(x, centres, used[:40], white, width)
        root = design._root(phi, used)
        monkeypatch.setattr(jnp, "matmul", coarse)
        beta, f = design.fit(phi, root, jnp.asarray(reference), jnp.asarray(data))
        monkeypatch.undo()
    assert np.all(np.isfinite(f))
    phi = np.asarray(phi, np.float64)
    for toy in range(N_TOYS):
        wanted, best = newton(phi, reference[toy], data[toy], ridge)
        # The loss of the coefficients in double precision, for one unit of weight.
        excess = logistic_loss(np.asarray(beta)[toy], phi, reference[toy], data[toy], ridge) - best
        assert excess / weight < (1e-7 if bits == 23 else 1e-2)
        if bits == 23 and ridge == 1e-4:
            np.testing.assert_allclose(f[toy], wanted @ phi, atol=1e-3)


def logistic_loss(beta, phi, reference, data, ridge) -> float:
    f = beta @ phi
    terms = reference * np.logaddexp(0, f) + data * np.logaddexp(0, -f)
    return np.sum(terms) + ridge / 2 * np.sum(reference + data) * np.sum(beta**2)


def newton(phi, reference, data, ridge) -> tuple[np.ndarray, float]:
    """The coefficients of a logistic regression and their loss, by the textbook."""
    weight = reference + data
    beta, penalty = np.zeros(len(phi)), ridge * weight.sum() * np.eye(len(phi))
    now = logistic_loss(beta, phi, reference, data, ridge)
    for _ in range(60):
        odds = special.expit(beta @ phi)
        gradient = phi @ (weight * odds - data) + penalty @ beta
        hessian = (phi * (weight * odds * (1 - odds))) @ phi.T + penalty
        step = linalg.solve(hessian, -gradient, assume_a="pos")
        trials = [beta + size * step for size in 0.5 ** np.arange(12)]
        losses = [logistic_loss(trial, phi, reference, data, ridge) for trial in trials]
        if min(losses) >= now:
            break
        beta, now = trials[int(np.argmin(losses))], min(losses)
    return beta, now


def test_nplm_of_weights_that_are_not_finite_is_nan_and_leaves_the_others_alone():
    batch, method = pool(), NPLM(n_centres=20, n_bandwidths=2)
    broken = batch._replace(data_weight=batch.data_weight.copy())
    broken.data_weight[0, 0] = np.nan
    found = evaluate(method, broken, chunk=N_TOYS)
    assert np.all(np.isnan(found[0]))
    np.testing.assert_array_equal(found[1:], evaluate(method, batch, chunk=N_TOYS)[1:])


def test_nplm_of_samples_that_come_apart_is_finite():
    """Repeated rows, a row far away, more columns than rows, and hardly a ridge."""
    rng = np.random.default_rng(0)
    points = np.repeat(rng.normal(size=(30, 200)), 2, 0)
    points[0] = 1e6
    data = (np.arange(60) < 20).astype(float)
    batch = TwoSample(points, (1 - data)[None], data[None])
    method = NPLM(n_bandwidths=3, ridge=1e-12)
    assert np.all(evaluate(method, batch, chunk=1) > 0)


def direct_mmd(batch: TwoSample, toy: int, width: float) -> float:
    """The normalised squared MMD, pair by pair."""
    x, r, y, d = samples(batch, toy)

    def unbiased(z, w):
        total = norm = 0.0
        for i in range(len(z)):
            for j in range(len(z)):
                if i != j:
                    total += w[i] * w[j] * np.exp(-np.sum((z[i] - z[j]) ** 2) / (2 * width**2))
                    norm += w[i] * w[j]
        return total / norm

    u = unbiased(x, r) + unbiased(y, d) - 2 * r @ gaussian(x, y, width) @ d
    z = np.concatenate([x, y])
    square = np.sum(gaussian(z, z, width) ** 2) - len(z)
    n = min(1 / np.sum(r**2), 1 / np.sum(d**2))
    lam, normaliser = np.sqrt(n * (n - 1)), square / (n * (n - 1))
    return lam * u / np.sqrt(normaliser)


def test_mmd_is_that_of_a_double_loop_and_fused_as_in_the_paper():
    batch = pool()
    each = MMD(n_bandwidths=3, fused=False)
    widths = scales(prepare(each, batch.points))
    direct = np.array([[direct_mmd(batch, toy, w) for w in widths] for toy in range(N_TOYS)])
    np.testing.assert_allclose(evaluate(each, batch), direct, rtol=1e-4, atol=1e-5)
    fused = logsumexp(direct, axis=1) - np.log(len(widths))
    np.testing.assert_allclose(evaluate(MMD(n_bandwidths=3), batch)[:, 0], fused, rtol=1e-4)
    sharp = logsumexp(5 * direct, axis=1) - np.log(len(widths))
    method = MMD(n_bandwidths=3, sharpness=5.0)
    np.testing.assert_allclose(evaluate(method, batch)[:, 0], sharp, rtol=1e-4)


@pytest.mark.parametrize("n_centres", [None, ALL])
def test_mmd_in_many_blocks_is_the_same(monkeypatch, n_centres):
    monkeypatch.setattr(mmd, "scan_block", lambda n_rows: 16)
    batch, method = pool(), MMD(n_bandwidths=2, n_centres=n_centres, fused=False)
    widths = scales(prepare(method, batch.points))
    direct = np.array([[direct_mmd(batch, toy, w) for w in widths] for toy in range(N_TOYS)])
    np.testing.assert_allclose(evaluate(method, batch), direct, rtol=1e-3, atol=1e-5)


def test_mmd_turns_to_centres_where_there_are_many_rows(monkeypatch):
    batch = pool()
    monkeypatch.setattr(mmd, "EXACT_ROWS", N_ROWS - 1)
    monkeypatch.setattr(mmd, "CENTRES", 20)
    chosen = evaluate(MMD(n_bandwidths=3), batch)
    np.testing.assert_array_equal(chosen, evaluate(MMD(n_bandwidths=3, n_centres=20), batch))


def test_frechet_and_mahalanobis_are_those_of_the_moments():
    batch = pool(3)
    frechet, mahalanobis = (evaluate(method, batch)[:, 0] for method in (Frechet(), Mahalanobis()))
    for toy in range(N_TOYS):
        x, r, y, d = samples(batch, toy)
        c_r, c_d = (np.cov(z.T, aweights=w, ddof=0) for z, w in ((x, r), (y, d)))
        shift = d @ y - r @ x
        trace = np.trace(c_r + c_d - 2 * np.real(linalg.sqrtm(c_r @ c_d)))
        np.testing.assert_allclose(frechet[toy], shift @ shift + trace, rtol=1e-8)
        centred = y - r @ x
        distance = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(c_r), centred)
        np.testing.assert_allclose(mahalanobis[toy], distance.mean(), rtol=1e-8)


@pytest.mark.parametrize("method", [Frechet(), Mahalanobis()])
def test_columns_beyond_the_number_of_rows_cost_no_pairs_of_columns(method):
    batch = pool(3)
    more = np.linalg.qr(np.random.default_rng(1).normal(size=(2 * N_ROWS, 3)))[0]
    turned = batch._replace(points=batch.points @ more.T)  # the same rows in many columns
    np.testing.assert_allclose(evaluate(method, turned), evaluate(method, batch), rtol=1e-6)
    wide = batch._replace(points=np.ones((N_ROWS, 10**6), np.float32))
    assert prepare(method, batch.points).room(wide).fixed < 10 * 8 * N_ROWS * 10**6


def test_a_direction_in_which_the_reference_does_not_vary_is_left_out():
    batch = pool(2)
    flat = batch._replace(points=np.column_stack([batch.points, batch.points.sum(1)]))
    np.testing.assert_allclose(
        evaluate(Mahalanobis(), flat), evaluate(Mahalanobis(), batch), rtol=1e-6
    )


@pytest.mark.parametrize("ties", [False, True])
def test_ks_and_anderson_darling_are_scipys(ties):
    batch = pool(1, weighted=False)
    if ties:
        batch = batch._replace(points=batch.points.round(1))
    ks, ad = (evaluate(method, batch)[:, 0] for method in ONE_FEATURE.values())
    expected = []
    for toy in range(N_TOYS):
        x, _, y, _ = samples(batch, toy)
        np.testing.assert_allclose(ks[toy], stats.ks_2samp(y[:, 0], x[:, 0]).statistic)
        expected.append(_normalised_ad(y[:, 0], x[:, 0]))
    # SciPy subtracts the mean and divides by the spread that A^2 has for samples of these sizes.
    slope, offset = np.polyfit(ad, expected, 1)
    np.testing.assert_allclose(slope * ad + offset, expected, atol=1e-9)
    np.testing.assert_allclose(offset / slope, -1, rtol=1e-6)


def _normalised_ad(data: np.ndarray, reference: np.ndarray) -> float:
    with warnings.catch_warnings():  # about its own p-value, which is not used
        warnings.simplefilter("ignore")
        return stats.anderson_ksamp([data, reference], midrank=False).statistic


def test_one_feature_is_asked_for():
    for method in ONE_FEATURE.values():
        with pytest.raises(ValueError, match="compares one feature, these samples have 2"):
            prepare(method, np.zeros((5, 2)))


def test_a_classifier_sees_what_it_can_learn_and_nothing_else():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(400, 2))
    is_data = np.arange(400) < 200
    weights = np.where(is_data, 0, 1.0)[None], is_data[None] * 1.0
    same = evaluate(LINEAR, TwoSample(points, *weights))
    shifted = evaluate(LINEAR, TwoSample(points + is_data[:, None], *weights))
    assert abs(same[0, 0] - 0.5) < 0.1
    assert shifted[0, 0] > 0.7
    ring = np.where(is_data[:, None], 2.5 * points, points)  # trees see what a line does not
    trees = evaluate(ClassifierTwoSample(), TwoSample(ring, *weights))
    assert trees[0, 0] > 0.7 > evaluate(LINEAR, TwoSample(ring, *weights))[0, 0]
    few = TwoSample(points, weights[0], (np.arange(400) < 2)[None] * 1.0)
    with pytest.raises(ValueError, match="fewer than the 3 folds"):
        evaluate(ClassifierTwoSample(n_folds=3), few)


# What all of them share


@by_method
def test_pool_own_points_and_padding_agree(method, n_features):
    batch = pool(n_features)
    # Rows of no weight, on a pool and as padding.
    some = batch._replace(
        reference_weight=np.where(np.arange(N_ROWS) < 6, 0, batch.reference_weight),
        data_weight=np.where(np.arange(N_ROWS) < 6, 0, batch.data_weight),
    )
    shared = evaluate(method, some)
    own = evaluate(method, own_points(some, N_ROWS), batch.points)
    assert shared.shape == own.shape
    np.testing.assert_allclose(own, shared, rtol=2e-3, atol=1e-4)


@by_method
def test_weights_are_repetitions(method, n_features):
    if isinstance(method, MMD | AndersonDarling | ClassifierTwoSample):
        pytest.skip("depends on the number of rows, too: pairs of repeated rows, sizes, folds")
    batch = pool(n_features, weighted=False)
    double = np.arange(N_ROWS) < 40
    reference = batch.reference_weight * (1 + double)
    repeated = TwoSample(
        np.concatenate([batch.points, batch.points[double]]),
        np.concatenate([batch.reference_weight, batch.reference_weight[:, double]], 1),
        np.concatenate([batch.data_weight, np.zeros((N_TOYS, double.sum()))], 1),
    )
    np.testing.assert_allclose(
        evaluate(method, repeated, batch.points),
        evaluate(method, batch._replace(reference_weight=reference)),
        rtol=1e-3,
    )


@by_method
def test_a_toy_does_not_depend_on_its_company(method, n_features):
    batch = pool(n_features)
    whole = evaluate(method, batch)
    prepared = prepare(method, batch.points)
    (last,) = prepared.chunks(0, Toys(batch.toys), [2], 2)
    np.testing.assert_allclose(last.statistics[0], whole[2], rtol=1e-6)
    assert last.statistics.shape == (1, max(len(prepared.component_tests), 1))


@by_method
def test_settings_are_plain_and_memory_is_asked_for(method, n_features, monkeypatch):
    batch = pool(n_features)
    prepared = prepare(method, batch.points)
    json.dumps(plain(prepared.settings), allow_nan=False)
    for one in (batch, own_points(batch, N_ROWS)):
        toys = Toys(one.toys)
        assert 2 <= prepared.chunk_size(toys, 0, 10) <= 16
        assert 16 <= prepared.chunk_size(toys, 0, 10_000) <= 256
    monkeypatch.setattr("sparker.statistics.batched.free_memory", lambda: 1e3)
    with pytest.raises(MemoryError, match=r"this statistic need about .* GiB are free; take a"):
        prepared.chunk_size(Toys(batch.toys), 0, 10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NPLM(n_centres=0), "n_centres must be a whole number from 1 on"),
        (lambda: NPLM(ridge=0.0), "ridge must be positive"),
        (lambda: MMD(n_bandwidths=2.5), "n_bandwidths must be a whole number"),
        (lambda: MMD(sharpness=True), "sharpness must be positive and finite, got True"),
        (lambda: MMD(sharpness=-1.0), "sharpness must be positive"),
        (lambda: ClassifierTwoSample(n_folds=1), "n_folds must be a whole number from 2 on"),
        (lambda: ClassifierTwoSample(classifier="trees"), "must be a scikit-learn one"),
        (lambda: prepare(MMD(), np.ones((5, 2))), "all points are the same"),
        (lambda: sparker.test([[0.0]], [[1.0]], statistic=MMD), r"make one of it: MMD\(\)"),
    ],
)
def test_what_makes_no_sense_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# As tests


def p_values(method, n_features: int, n_tests: int) -> np.ndarray:
    """Of anomaly-free samples, by permutation."""
    found = []
    for number in range(n_tests):
        rng = np.random.default_rng([7, number])
        reference, data = (
            rng.exponential(size=(60, n_features)),
            rng.exponential(size=(30, n_features)),
        )
        result = sparker.test(
            reference, data, statistic=method, n_toys=19, seed=number, progress=False, explain=False
        )
        assert result.n_failed == 0
        found.append(result.p_value)
    return np.array(found)


def assert_level(p: np.ndarray) -> None:
    for alpha in (0.05, 0.10, 0.5):
        rejected = int(np.sum(p <= alpha + 1e-12))
        assert stats.binomtest(rejected, len(p), alpha).pvalue > 1e-3, (alpha, rejected / len(p))


QUICK = {**MANY_FEATURES, "nplm": NPLM(n_centres=20, n_bandwidths=2),
         "mmd, all centres": MMD(n_bandwidths=3, n_centres=20)}  # fmt: skip


@pytest.mark.parametrize("name", ["mmd", "mahalanobis", "frechet", *ONE_FEATURE])
def test_anomaly_free_samples_are_called_anomalous_as_often_as_alpha_says(name):
    n_features = 1 if name in ONE_FEATURE else 2
    assert_level(p_values({**QUICK, **ONE_FEATURE}[name], n_features, 200))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*QUICK, *ONE_FEATURE])
def test_levels_are_right(name):
    n_features = 1 if name in ONE_FEATURE else 2
    assert_level(p_values({**QUICK, **ONE_FEATURE}[name], n_features, 1000))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("baselines")
    rng = np.random.default_rng(0)
    np.save(folder / "reference.npy", rng.normal(size=(120, 1)))
    np.save(folder / "data.npy", rng.normal(2, 1, size=(40, 1)))
    return folder


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


# Boosting is not quick.
CLASSIFIER = pytest.param("c2st", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [*sorted(named().keys() - {"c2st"}), CLASSIFIER])
def test_every_baseline_runs_on_the_command_line_and_finds_what_is_plain(files, tmp_path, name):
    report, saved = tmp_path / "report.html", tmp_path / "result.sparker"
    done = invoke("test", files / "reference.npy", files / "data.npy", "--statistic", name,
                  "--toys", 19, "--json", "--report", report, "--save", saved)  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["p_value"] == 0.05
    assert "kernels" not in found
    assert len(found["rows"]["most_anomalous"]) == 10
    assert "</html>" in report.read_text()
    result = sparker.TestResult.load(saved)
    assert result.models is None
    assert "width" not in result.summary()
    result.plot()


def test_power_of_another_statistic_on_the_command_line(files):
    done = invoke("power", files / "reference.npy", files / "data.npy", "--statistic", "ks",
                  "--n-reference", 60, "--n-data", 30, "--fractions", "0,0.9", "--tests", 10,
                  "--toys", 19)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "power 0.9" in done.stdout or "power 1.0" in done.stdout


@pytest.mark.parametrize(
    "options",
    [["--kernels", 3], ["--clip", 2], ["--steps", 20], ["--annealed"]],
)
def test_options_of_kernels_do_not_go_with_another_statistic(files, options):
    done = invoke("test", files / "reference.npy", files / "data.npy", "--statistic", "mmd",
                  *options)  # fmt: skip
    assert done.exit_code == 2
    said = (
        f"--statistic does not go with {options[0]}, since only SparKer's own statistic has kernels"
    )
    assert said in done.stderr
