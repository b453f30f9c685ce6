"""Nuisance parameters of the reference: what they explain is no anomaly, and what else is one."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from experiments.systematics.oracle import best_value
from scipy.optimize import approx_fprime, minimize
from scipy.stats import binom

import sparker
from sparker import Systematic
from sparker.cli.main import main
from sparker.nulls import Nuisances, Permutation, samples
from sparker.nulls.density_ratio import MAX_LOG, Weighted, density_ratio
from sparker.nulls.labels import DATA, OUT, REFERENCE
from sparker.nulls.nuisances import best_values
from sparker.nulls.systematics import Curves, Moved, Sampled, Scaled, Variation
from sparker.nulls.tilt import Tilt, _Problem

N_REFERENCE, N_DATA = 1500, 500


def scaled(rows, nu):
    return rows * (1 + 0.1 * nu)


def exponential(seed, nu=0.0, n_data=N_DATA):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(N_REFERENCE, 1)), scaled(rng.exponential(size=(n_data, 1)), nu)


def weights_at(x, scale):
    return np.exp(x - x / scale) / scale


def in_form(form, reference):
    """The scale of an exponential, declared in each of the ways."""
    x = reference[:, 0]
    up, down = weights_at(x, 1.1), weights_at(x, 0.9)
    return {
        "function": Systematic("scale", function=scaled),
        "samples": Systematic(
            "scale", up=scaled(reference, 1), down=scaled(reference, -1), paired=False
        ),
        "weights": Systematic("scale", up=up, down=down),
        "up alone": Systematic("scale", up=up),
    }[form]


def mean(rng, sample):
    """How far the means are apart."""
    x, own, data = sample.points[:, 0], sample.reference_weight, sample.data_weight
    return abs(x @ own / own.sum() - x @ data / data.sum())


def second_moment(rng, sample):
    x2 = sample.points[:, 0] ** 2
    own, data = sample.reference_weight, sample.data_weight
    return abs(x2 @ own / own.sum() - x2 @ data / data.sum())


def count(rng, sample):
    return abs(sample.data_weight.sum() - sample.reference_weight.sum())


def tilt_of(n=60, expected=None, seed=0):
    rng = np.random.default_rng(seed)
    return Tilt(
        rng.normal(size=(n, 2)),
        0.3 * rng.normal(size=(n, 2)),
        np.array([0.2, -0.4]),
        np.array([1.0, 0.5]),
        expected,
    )


def slow_loss(tilt, roles, measure, at):
    """Minus the log likelihood, row by row, as the module's docstring has it."""

    def q(nu):
        return nu**2 / 2 if abs(nu) <= 1 else abs(nu) - 0.5

    def log_ratio(i):
        return sum(
            (nu - base) * tilt.slope[i, k] + (q(nu) - q(base)) * tilt.bend[i, k]
            for k, (nu, base) in enumerate(zip(at[1:], tilt.base, strict=True))
        )

    total, rate, own = 0.0, 0.0, 0.0
    for i, role in enumerate(roles):
        odds = np.exp(at[0] + log_ratio(i)) * measure[i]
        if role == DATA:
            total -= np.log(odds / (1 + odds))
        elif role == REFERENCE:
            total -= np.log(1 / (1 + odds))
            rate += measure[i] * np.exp(log_ratio(i))
            own += measure[i]
    total += sum((at[1:] / tilt.prior) ** 2) / 2
    if tilt.expected is not None:
        expected = tilt.expected * rate / own
        total += expected - np.sum(roles == DATA) * np.log(expected)
    return total


@pytest.mark.unit
@pytest.mark.parametrize("expected", [None, 25.0])
def test_nuisances_are_fitted_by_the_likelihood_of_labels_and_count(expected):
    tilt = tilt_of(expected=expected)
    rng = np.random.default_rng(1)
    roles = rng.choice([REFERENCE, DATA, OUT], 60, p=[0.5, 0.4, 0.1])
    measure = rng.uniform(0.5, 2, 60)

    def loss(at):
        return slow_loss(tilt, roles, measure, at)

    used = roles != OUT
    fast = _Problem(tilt.of(np.flatnonzero(used)), roles[used] == DATA, measure[used])
    at = np.array([-0.3, 0.7, -1.4])  # one value within, one beyond where q is bent
    assert fast.loss(at) == pytest.approx(loss(at))
    slope, information = fast.slope(at)
    np.testing.assert_allclose(slope, -approx_fprime(at, loss, 1e-6), rtol=1e-3, atol=1e-3)
    assert np.all(np.linalg.eigvalsh(information) > 0)
    slow = minimize(loss, [0.0, 0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6})
    found = tilt.best(roles, measure)
    np.testing.assert_allclose(found.values, slow.x[1:], atol=2e-3)


@pytest.mark.unit
def test_a_learned_density_ratio_is_the_known_one():
    rng = np.random.default_rng(0)
    p, q = rng.normal(0.5, 1, (4000, 1)), rng.normal(0, 1, (4000, 1))
    at = rng.normal(size=(500, 1))
    found = density_ratio(Weighted(p), Weighted(q), 0)(at, np.arange(500))
    np.testing.assert_allclose(found, 0.5 * at[:, 0] - 0.125, atol=0.2)
    # The same ratio as weights of the same rows.
    weighted = density_ratio(Weighted(q, np.exp(0.5 * q[:, 0] - 0.125)), Weighted(q), 0)
    np.testing.assert_allclose(weighted(at, np.arange(500)), 0.5 * at[:, 0] - 0.125, atol=0.1)


@pytest.mark.unit
def test_edges_are_learned_and_what_does_not_differ_is_left_alone():
    rng = np.random.default_rng(0)
    p, q = rng.uniform(0.2, 1, (2000, 1)), rng.uniform(0, 1, (2000, 1))
    at = np.repeat([0.1, 0.6], 8)[:, None]
    found = density_ratio(Weighted(p), Weighted(q), 0)(at, np.arange(16))
    assert np.all(found[:8] < -2)
    assert np.all(np.abs(found) <= MAX_LOG)
    assert found[8:].mean() == pytest.approx(np.log(1 / 0.8), abs=0.25)
    first, second = (Weighted(rng.normal(size=(1000, 2))) for _ in range(2))
    assert np.all(density_ratio(first, second, 0)(first.rows, np.arange(1000)) == 0)


@pytest.mark.parametrize("nu", [-1.5, 1.0])
@pytest.mark.parametrize("form", ["function", "samples", "weights", "up alone"])
def test_the_pull_is_that_of_the_exact_likelihood(form, nu):
    reference, data = exponential(3, nu)
    result = sparker.test(
        reference, data, systematics=[in_form(form, reference)], statistic=second_moment,
        n_toys=5, explain=False,
    )  # fmt: skip
    (pull,) = result.nuisances
    tolerance = 0.6 if form == "up alone" else 0.25  # its mirror image is not the truth at -1.5
    assert pull.value == pytest.approx(best_value(reference, data), abs=tolerance)
    assert 0.3 < pull.error < 0.6


@dataclass(frozen=True, eq=False)
class Known(Variation):
    """A density exp(0.1 nu x) times as large: exponentials, whose ratio needs no learning."""

    def curves(self, place):
        slope = 0.1 * place.rows[:, 0]
        return Curves(slope, 0 * slope)


def test_the_level_holds_wherever_nuisances_are_and_not_where_they_are_ignored():
    """The statistic sees nothing but what the nuisance does, the worst that can be."""
    n_tests, n_toys, alpha, n, m = 100, 19, 0.1, 600, 200
    small = {"data alone": 0, "best": 0, "ignored": 0}
    for seed in range(n_tests):
        rng = np.random.default_rng([seed, 7])
        reference = rng.exponential(size=(n, 1))
        data = rng.exponential(1 / (1 - 0.1 * 2), size=(m, 1))  # two priors away
        given = samples(reference, data)
        found = Nuisances((Known("scale", 1.0),)).best(given, seed)
        # Toys at the best values, which the prior has drawn back, are not far enough out.
        for name, one in (("data alone", found.toys), ("best", found.samples), ("ignored", given)):
            pool = Permutation().pool(one, seed)
            weights = (pool.weights(number) for number in range(n_toys + 1))
            t = [abs(pool.points[:, 0] @ (new / m - own / m)) for own, new in weights]
            small[name] += np.mean(np.array(t) >= t[0]) <= alpha
    allowed = binom.ppf(0.999, n_tests, alpha)
    assert small["data alone"] <= allowed < small["best"] < small["ignored"]


@dataclass(frozen=True, eq=False)
class Alike(Variation):
    """A density exp(step nu x) times as large, and a little more with the other column."""

    step: float
    beside: float

    def curves(self, place):
        slope = place.rows @ [self.step, self.beside]
        return Curves(slope, 0 * slope)


@pytest.mark.unit
@pytest.mark.parametrize("seed", range(4))
def test_parameters_that_do_the_same_do_not_run_away_from_each_other(seed):
    rng = np.random.default_rng(seed)
    reference, data = rng.exponential(size=(2000, 2)), rng.exponential(size=(1000, 2))
    two = Nuisances((Alike("a", 1.0, 0.2, 0.0), Alike("b", 1.0, 0.6, 0.01)))
    found = two.best(samples(reference, data), 0)
    together = np.array([0.2, 0.6])  # what the data know of both
    assert together @ found.toy_values == pytest.approx(together @ found.values, abs=0.05)
    assert np.all(np.abs(found.toy_values) <= 2)


@pytest.mark.unit
def test_every_experiment_has_its_own_values_and_as_much_reference_as_data():
    reference, data = exponential(0, 1.0)
    nominal = Weighted(reference)
    x = reference[:, 0]
    ends = [Weighted(reference, weights_at(x, scale)) for scale in (1.1, 0.9)]
    scale = Sampled("scale", 1.0, nominal, *ends, (0.0, 0.0), 0)
    nuisances = Nuisances((scale, Scaled("normalisation", 1.0, 0.1)))
    for expected in (None, 450.0):
        given = samples(reference, data, expected=expected)
        found = nuisances.best(given, 0)
        pool = Permutation().pool(found.samples, 0)
        weights = [pool.weights(number) for number in range(4)]
        totals = [(own.sum(), new.sum()) for own, new in weights]
        if expected is None:
            assert all(own == pytest.approx(new) for own, new in totals)
            assert found.samples.expected is None
        else:  # between what was expected and what is there, as far as the prior lets it
            assert expected < found.samples.expected < len(data)
            assert totals[0][0] == pytest.approx(found.samples.expected, rel=0.01)
        # Seen from the best values, the data want no others; without priors, some further out.
        again, _ = best_values(found.samples)
        np.testing.assert_allclose(again, found.values, atol=0.01)
        assert np.all(np.abs(found.toy_values) <= 2)
        assert np.all(np.abs(found.toy_values) >= np.abs(found.values) - 1e-6)


def test_every_toy_moves_its_reference_to_its_own_best_value():
    """What a fit that is a little off leaves at an edge is thus the same in toys and data."""
    rng = np.random.default_rng(4)
    reference, data = (1 + rng.exponential(size=(n, 1)) for n in (600, 300))
    data *= 1.05
    scale = Nuisances(
        (Moved("scale", 1.0),), lambda values: reference * (1 + 0.1 * values["scale"])
    )
    found = scale.best(samples(reference, data), 0)
    pool = Permutation().pool(found.samples, 0)
    values = []
    for number in range(1, 40):
        toy = pool.moved(number, lambda rows: rows)
        is_reference = toy.reference_weight > 0
        assert np.array_equal(toy.points[~is_reference], pool.points[~is_reference])
        factor = toy.points[is_reference] / pool.points[is_reference]
        # All by one scale; data rows far out, as much as the reference row that is nearest.
        low, middle, high = np.quantile(factor, (0.1, 0.5, 0.9))
        assert high - low < 0.02 * abs(middle - 1) + 1e-6
        values.append((middle - 1) / 0.1)
    (error,) = found.error
    assert 0.5 * error < np.std(values) < 2 * error
    edges = [data[data > 0].min() for data in (reference, data)]
    assert found.values[0] == pytest.approx((edges[1] / edges[0] - 1) / 0.1, abs=3 * error)


def test_a_declared_shift_is_compatible_and_an_undeclared_one_is_found():
    reference, data = exponential(1, 2.0)
    declared = [Systematic("scale", function=scaled)]
    options = {"statistic": mean, "n_toys": 39, "explain": False}
    assert sparker.test(reference, data, **options).p_value <= 0.05
    found = sparker.test(reference, data, systematics=declared, **options)
    assert found.p_value > 0.05
    # The second moment of a gap at zero is no scale.
    other = data / 1.2 * 0.6 + 0.5
    options["statistic"] = second_moment
    assert sparker.test(reference, other, systematics=declared, **options).p_value <= 0.05


def test_a_count_within_its_uncertainty_is_compatible():
    reference, data = exponential(1, n_data=600)
    options = {"statistic": count, "n_toys": 39, "explain": False, "expected": 500}
    assert sparker.test(reference, data, **options).p_value <= 0.05
    found = sparker.test(reference, data, normalisation=0.15, **options)
    assert found.p_value > 0.05
    (pull,) = found.nuisances
    # The exact fit: of 600 ~ Poisson(500 exp(0.15 nu)) and nu ~ N(0, 1).
    nu = np.linspace(0, 3, 30_001)
    exact = nu[np.argmin(500 * np.exp(0.15 * nu) - 600 * 0.15 * nu + nu**2 / 2)]
    assert pull.value == pytest.approx(exact, abs=0.01)
    assert found.expected == pytest.approx(500 * np.exp(0.15 * exact), rel=0.01)


def test_fixed_values_are_those_of_the_systematic_and_are_not_fitted():
    """Of a function: as if the user had moved the reference."""
    reference, data = exponential(1, 2.0)
    options = {"statistic": second_moment, "n_toys": 39, "explain": False}
    declared = {"systematics": [Systematic("scale", function=scaled, prior=0.5)]}
    for nu in (1.5, -2.0):
        fixed = sparker.test(reference, data, at={"scale": nu}, **declared, **options)
        by_hand = sparker.test(scaled(reference, nu), data, **options)
        assert fixed.p_value == by_hand.p_value
        np.testing.assert_array_equal(fixed.null_statistics, by_hand.null_statistics)
        assert fixed.nuisances == ()
        assert fixed.settings["at"] == {"scale": nu}
        assert any(f"not fitted: scale = {nu:g}" in note for note in fixed.notes)
    assert fixed.p_value <= 0.05
    # Up and down are at +1 and -1, whatever the prior is.
    rows = Systematic("scale", up=scaled(reference, 1), down=scaled(reference, -1), prior=0.5,
                      paired=True)  # fmt: skip
    paired = sparker.test(reference, data, systematics=[rows], at={"scale": -2}, **options)
    assert paired.p_value == fixed.p_value


@pytest.mark.parametrize("form", ["weights", "samples"])
def test_fixed_weights_explain_what_they_were_made_for_and_nothing_else(form):
    reference, data = exponential(1, 1.0)
    declared = [in_form(form, reference)]
    options = {"systematics": declared, "statistic": mean, "n_toys": 39, "explain": False}
    p = {nu: sparker.test(reference, data, at={"scale": nu}, **options).p_value for nu in (1, -1)}
    assert p[-1] <= 0.05 < p[1]


def test_parameters_beside_fixed_ones_are_fitted_in_data_and_toys():
    reference, data = exponential(1, 1.0, n_data=600)
    options = {"statistic": count, "n_toys": 19, "explain": False, "expected": 500,
               "systematics": [in_form("weights", reference)], "normalisation": 0.15}  # fmt: skip
    both = sparker.test(reference, data, **options)
    one = sparker.test(reference, data, at={"scale": 1}, **options)
    assert [pull.name for pull in both.nuisances] == ["scale", "normalisation"]
    assert [pull.name for pull in one.nuisances] == ["normalisation"]
    assert one.nuisances[0].value == pytest.approx(both.nuisances[1].value, abs=0.3)
    none = sparker.test(reference, data, at={"scale": 0, "normalisation": 1}, **options)
    assert none.expected == pytest.approx(500 * np.exp(0.15))
    # What is fixed is no parameter of the toys either.
    tilted = Nuisances((Known("a", 1.0), Known("b", 1.0)), fixed={"b": 1.0})
    found = tilted.best(samples(reference, data), 0)
    assert found.toys.tilt.slope.shape == (len(reference) + len(data), 1)
    assert found.values[1] == found.toy_values[1] == 1
    assert found.error[1] == 0 < found.error[0]


def test_at_the_true_value_the_level_is_exact():
    n_tests, n_toys, alpha, n, m = 200, 19, 0.1, 600, 200
    small = {2.0: 0, -2.0: 0}
    for seed in range(n_tests):
        rng = np.random.default_rng([seed, 8])
        reference = rng.exponential(size=(n, 1))
        data = rng.exponential(1 / (1 - 0.1 * 2), size=(m, 1))
        for nu in small:
            fixed = Nuisances((Known("scale", 1.0),), fixed={"scale": nu})
            pool = Permutation().pool(fixed.best(samples(reference, data), seed).toys, seed)
            weights = (pool.weights(number) for number in range(n_toys + 1))
            t = [abs(pool.points[:, 0] @ (new / m - own / m)) for own, new in weights]
            small[nu] += np.mean(np.array(t) >= t[0]) <= alpha
    low, high = binom.ppf([0.001, 0.999], n_tests, alpha)
    assert low <= small[2.0] <= high < small[-2.0]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("at", "said"),
    [
        (
            {"scal": 1.0},
            r"names 'scal' \(did you mean 'scale'\?\), but the systematics are",
        ),
        ({"normalisation": 1.0}, "names 'normalisation', but the systematics are 'scale'"),
        ({"scale": np.nan}, "value of 'scale' in at must be a finite number, got nan"),
        ({"scale": np.inf}, "finite number, got inf"),
        ({"scale": "1"}, "finite number, got '1'"),
        ({"scale": True}, "finite number, got True"),
        ([1.0], "at must be values by the names of systematics"),
    ],
)
def test_wrong_fixed_values_are_refused(at, said):
    with pytest.raises(ValueError, match=said):
        sparker.TestConfig(systematics=[Systematic("scale", function=scaled)], at=at)


def energies(rng, nu, n=N_REFERENCE):
    """From 500 on; the scale moves this edge."""
    return (1 + 0.03 * nu) * (500 + rng.exponential(100, size=(n, 1)))


def ends_of(draw, seed, *arguments):
    """A reference, and other rows at +1 and at -1."""
    rng = np.random.default_rng(seed)
    return [draw(rng, nu, *arguments) for nu in (0, 1, -1)]


def test_other_rows_are_refused_where_an_edge_moves_and_moved_rows_are_warned_of():
    own, up, down = ends_of(energies, 5)
    data = energies(np.random.default_rng(6), 1.0, 500)
    options = {"statistic": mean, "n_toys": 19, "explain": False}
    own, up, down, data = (pd.DataFrame({"energy": rows[:, 0]}) for rows in (own, up, down, data))
    with pytest.raises(ValueError, match=r"systematic scale: \d+ of the 1500 rows of") as error:
        sparker.test(own, data, systematics=[Systematic("scale", up=up, down=down)], **options)
    assert "in column energy" in str(error.value)
    assert "paired=True" in str(error.value)
    moved = Systematic("scale", function=lambda rows, nu: rows * (1 + 0.03 * nu))
    with pytest.warns(sparker.DataWarning, match="an edge moves with the rows. If rows are sel"):
        found = sparker.test(own, data, systematics=[moved], **options)
    assert found.p_value > 0.05
    x = own["energy"].to_numpy()
    cut = Systematic("scale", up=np.where(x > 520, 1.2, 0.0), down=np.ones(len(x)))
    with pytest.warns(sparker.DataWarning, match=r"scale: .* of up in column energy; weights"):
        sparker.test(own, data, systematics=[cut], **options)


def test_other_rows_within_the_same_edges_are_learned_from():
    """With a cut after the shift, rows come in and go out and the edges stay."""

    def within(rng, nu, n=1500):
        rows = (1 + 0.1 * nu) * rng.normal(1.0, 0.3, size=(4 * n, 1))
        return rows[(rows[:, 0] > 0.7) & (rows[:, 0] < 1.5)][:n]

    own, up, down = ends_of(within, 3)
    data = within(np.random.default_rng(4), 1.0, 700)
    options = {"statistic": mean, "n_toys": 39, "explain": False}
    assert sparker.test(own, data, **options).p_value <= 0.05
    declared = [Systematic("scale", up=up, down=down)]
    found = sparker.test(own, data, systematics=declared, **options)
    assert found.p_value > 0.05
    assert found.nuisances[0].value == pytest.approx(1, abs=3 * found.nuisances[0].error)


def test_samples_that_weights_cannot_make_are_refused():
    """Columns that are tied to each other, by a factor that changes with the parameter."""
    rng = np.random.default_rng(3)

    def tied(nu, n=1500):
        x = rng.exponential(size=n)
        kind = rng.random(n) < 0.5
        y = x * np.where(kind, 1 + 0.1 * nu, 2 - 0.1 * nu) * (1 + 0.001 * rng.normal(size=n))
        return np.column_stack([x, y])

    with pytest.raises(ValueError, match="systematic factor: weighting the rows of the reference"):
        sparker.test(
            tied(0), tied(0, 600), statistic=mean, n_toys=9,
            systematics=[Systematic("factor", up=tied(1), down=tied(-1))],
        )  # fmt: skip


def test_other_samples_need_rows():
    own, up, down = ends_of(energies, 5)
    with pytest.raises(ValueError, match=r"systematic few: samples .* 50 rows"):
        sparker.test(own, own[:50], statistic=mean, n_toys=9,
                     systematics=[Systematic("few", up=up[:20], down=down)])  # fmt: skip


def test_several_systematics_of_all_kinds_go_together():
    """In a data frame with categories: by a function, by weights, and by other rows."""
    rng = np.random.default_rng(4)

    def frame(nu, n):
        kind = rng.choice(["a", "b", "c"], n)
        return pd.DataFrame({"energy": rng.normal(0.3 * nu, 1, n), "time": rng.exponential(size=n),
                             "kind": kind})  # fmt: skip

    reference, data = frame(0, 1500), frame(1, 500).assign(time=lambda rows: 1.1 * rows.time)
    x = reference.kind.eq("a").to_numpy()
    found = sparker.test(
        reference, data, statistic=mean, n_toys=19, explain=False,
        systematics=[
            Systematic("clock", function=lambda r, nu: r.assign(time=r.time * (1 + 0.1 * nu))),
            Systematic("offset", up=frame(1, 1500), down=frame(-1, 1500)),
            Systematic("share", up=np.where(x, 1.1, 0.95), down=np.where(x, 0.9, 1.05)),
        ],
    )  # fmt: skip
    assert found.p_value > 0.05
    pulls = {one.name: one for one in found.nuisances}
    assert pulls["offset"].value == pytest.approx(1, abs=0.6)
    assert abs(pulls["clock"].value - 1) < 3 * pulls["clock"].error + 0.5
    assert abs(pulls["share"].value) < 3


def test_weights_of_the_reference_alone_are_learned_for_the_data():
    """A reference with too steep a spectrum, its weights as a column, and variations of them."""
    rng = np.random.default_rng(6)
    x = rng.exponential(0.7, size=2000)
    nominal = np.exp(x / 0.7 - x) * 0.7
    frame = pd.DataFrame(
        {"x": x, "w": nominal, "up": nominal * weights_at(x, 1.1),
         "down": nominal * weights_at(x, 0.9)}
    )  # fmt: skip
    data = pd.DataFrame({"x": 1.1 * rng.exponential(size=600)})
    result = sparker.test(
        frame, data, reference_weights="w", systematics=[Systematic("scale", up="up", down="down")],
        statistic=mean, n_toys=19, explain=False,
    )  # fmt: skip
    (pull,) = result.nuisances
    assert result.names == ("x",)
    assert 0 < pull.value < 2
    assert result.p_value > 0.05


def test_a_result_says_keeps_and_shows_how_far_nuisances_were_pulled(tmp_path):
    reference, data = exponential(2, 1.0)
    data[:15] = 6 + 0.02 * data[:15]
    result = sparker.test(
        reference, data, systematics=[in_form("weights", reference)], n_toys=19,
        statistic=sparker.statistics.Neighbours(),
    )  # fmt: skip
    (pull,) = result.nuisances
    assert any("as if the nuisance values were known" in note for note in result.notes)
    said = f"Nuisance   scale: pull {pull.value:+.2f} +- {pull.error:.2f} (prior: 0 +- 1)"
    assert said in result.summary()
    assert result.to_dict()["nuisances"] == [pull._asdict()]
    result.save(tmp_path / "result.sparker")
    assert sparker.load(tmp_path / "result.sparker") == result
    result.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert f'<th scope="row">scale</th><td class="number">{pull.value:+.2f}</td>' in page
    broken = replace(result, nuisances=(pull._replace(error=-1.0),))
    broken.save(tmp_path / "broken.sparker")
    with pytest.raises(ValueError, match=r"Expected `float` >= 0.0 - at `\$.nuisances"):
        sparker.load(tmp_path / "broken.sparker")


def test_paired_rows_are_moved_as_by_a_function():
    reference, data = exponential(1, -1.5)
    up, down = scaled(reference, 1), scaled(reference, -1)
    options = {"statistic": mean, "n_toys": 9, "explain": False}
    results = [
        sparker.test(reference, data, systematics=[one], **options)
        for one in (
            Systematic("scale", function=scaled),
            Systematic("scale", up=up, down=down, paired=True),
            Systematic("scale", up=up, down=down),
            Systematic("scale", up=up, paired=True),
        )
    ]
    said = [any("agree with the reference row by row" in note for note in one.notes)
            for one in results]  # fmt: skip
    assert said == [False, False, True, False]
    assert len({one.p_value for one in results}) == 1
    for one in results:
        assert one.nuisances[0].value == pytest.approx(results[0].nuisances[0].value, abs=1e-4)
        np.testing.assert_allclose(one.reference, results[0].reference, rtol=1e-4)
    wrong = Systematic("scale", up=up[1:], down=down[2:], paired=True)
    with pytest.raises(ValueError, match=r"up has 1499 rows and the reference 1500.*down has 1498"):
        sparker.test(reference, data, systematics=[wrong], **options)
    holes = up.copy()
    holes[3] = np.nan
    with pytest.raises(ValueError, match="lacks values in other rows than the reference"):
        sparker.test(
            np.roll(holes, 1), data, missing="drop", **options,
            systematics=[Systematic("scale", up=holes, paired=True)],
        )  # fmt: skip


def write(path, **columns):
    pd.DataFrame(columns).to_csv(path, index=False)
    return str(path)


def test_systematics_on_the_command_line(tmp_path):
    reference, data = exponential(1, 1.5)
    x = reference[:, 0]
    first = write(tmp_path / "r.csv", x=x, up=weights_at(x, 1.1), down=weights_at(x, 0.9))
    second = write(tmp_path / "d.csv", x=data[:, 0])
    up = write(tmp_path / "up.csv", x=1.1 * x)
    down = write(tmp_path / "down.csv", x=0.9 * x)
    quick = ["test", first, second, "--toys", "9", "--statistic", "shifts", "--json"]
    by_weights, by_files, by_moved = (
        CliRunner().invoke(main, [*quick, "--systematic", f"scale={form};prior=2", *others])
        for form, others in (
            ("weights:up,down", ["--expected", "500", "--normalisation", "0.1"]),
            (f"files:{up},{down}", ["--ignore", "up,down"]),
            (f"moved:{up},{down}", ["--ignore", "up,down"]),
        )
    )
    one, both = (json.loads(done.stdout)["nuisances"] for done in (by_files, by_weights))
    assert [each["name"] for each in both] == ["scale", "normalisation"]
    assert one[0]["value"] == pytest.approx(both[0]["value"], abs=0.2)
    assert one[0]["prior"] == 2
    moved = json.loads(by_moved.stdout)["nuisances"]
    assert moved[0]["value"] == pytest.approx(both[0]["value"], abs=0.2)
    fixed = CliRunner().invoke(
        main, [*quick, "--systematic", "scale=weights:up,down", "--at", "scale=-1.5"]
    )
    assert json.loads(fixed.stdout)["settings"]["at"] == {"scale": -1.5}
    assert json.loads(fixed.stdout)["nuisances"] == []
    for wrong, message in (
        (["--systematic", "scale=up,down"], "is not NAME=weights"),
        (["--systematic", "scale=weights:upp"], "did you mean 'up'"),
        (["--normalisation", "0.1"], "--normalisation needs --expected"),
        (["--at", "scale=1"], "--at needs --systematic"),
        (["--at", "scale=x", "--systematic", "scale=weights:up"], "'scale=x' is not NAME=VALUE"),
        (["--at", "scle=1", "--systematic", "scale=weights:up,down"], "did you mean 'scale'"),
        (["--at", "s=1", "--at", "s=2", "--systematic", "s=weights:up,down"], "--at gives s twice"),
        (["--systematic", "s=weights:up", "--groups", "x"], "does not go with"),
        (["--ignore", "up,down", "--systematic", "s=files:nowhere.csv"], "nowhere.csv"),
    ):
        failed = CliRunner().invoke(main, [*quick, *wrong])
        assert failed.exit_code == 2
        assert message in failed.stderr


@pytest.mark.unit
def test_what_is_wrong_with_systematics_is_said_at_once():
    reference, data = exponential(0)
    with pytest.raises(ValueError, match="prior of systematic a must be positive") as error:
        sparker.test(
            reference, data, normalisation=-1,
            systematics=[Systematic("a", function=scaled, prior=0), Systematic("a"),
                         Systematic("", up="x"), Systematic("b", up="x", down=reference)],
        )  # fmt: skip
    for said in (
        "must have either up", "different names", "must have a name", "both be rows or both",
        "normalisation must be positive",
    ):  # fmt: skip
        assert said.replace("be positive", "be a positive") in str(error.value)
    for systematic, said in (
        (Systematic("a", function=lambda rows, nu: rows + 1), "must give the reference rows"),
        (Systematic("a", function=lambda rows, nu: rows), "moves no column"),
        (Systematic("a", function=lambda rows, nu: rows[: len(rows) - (nu != 0)]), "neither add"),
        (Systematic("a", up=np.ones(3)), "one a row"),
        (Systematic("a", up="w"), "no column 'w'"),
        (Systematic("a", up=-np.ones(N_REFERENCE)), "negative"),
        (Systematic("a", up=np.ones((10, 2))), "features"),
    ):
        with pytest.raises(ValueError, match=said):
            sparker.test(reference, data, systematics=[systematic])
    rng = np.random.default_rng(0)
    random = Systematic("a", function=lambda rows, nu: rows + nu * rng.normal(size=rows.shape))
    with pytest.raises(ValueError, match="draw no random numbers"):
        sparker.test(reference, data, systematics=[random])
    with pytest.raises(ValueError, match="must be a list of Systematic"):
        sparker.test(reference, data, systematics=Systematic("a", function=scaled))


@pytest.mark.unit
def test_functions_move_the_users_own_rows():
    """Of a data frame with a column that is not compared, and through all of several functions."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"pt": rng.exponential(size=300), "n": rng.integers(0, 9, 300)})
    data = pd.DataFrame({"pt": rng.exponential(size=200), "n": rng.integers(0, 9, 200)})

    def energy(rows, nu):
        return rows.assign(pt=rows.pt * (1 + 0.1 * nu))

    def pedestal(rows, nu):
        return rows.assign(pt=rows.pt + 0.05 * nu)

    result = sparker.test(
        frame, data, columns=["pt"], statistic=mean, n_toys=5, explain=False,
        systematics=[Systematic("energy", function=energy),
                     Systematic("pedestal", function=pedestal)],
    )  # fmt: skip
    energy_pull, pedestal_pull = (one.value for one in result.nuisances)
    moved = pedestal(energy(frame, energy_pull), pedestal_pull)
    np.testing.assert_allclose(result.reference[:, 0], moved.pt, rtol=1e-6)
    assert not np.any(result.reference[:, 0] == frame.pt)
    assert Moved("energy", 1.0).moves
