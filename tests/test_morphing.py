"""Rows of the reference that are moved to where other samples have them, column by column."""

import numpy as np
import pandas as pd
import pytest

import sparker
from sparker import Systematic
from sparker.nulls.density_ratio import Weighted
from sparker.nulls.morphing import redrawn, steps
from sparker.nulls.nuisances import seen_as
from sparker.nulls.systematics import Moved, Sampled, shifted

N = 2000
ONES = np.ones(N)


def energies(rng, nu, n=N):
    """From 500 on; the scale moves this edge."""
    return (1 + 0.03 * nu) * (500 + rng.exponential(100, size=(n, 1)))


def drawn(draw, seed, *arguments):
    """A reference, and other rows at +1 and at -1."""
    rng = np.random.default_rng(seed)
    return [draw(rng, nu, *arguments) for nu in (0, 1, -1)]


@pytest.mark.unit
def test_edges_and_factors_are_found_and_what_does_not_move_stays():
    rng = np.random.default_rng(0)
    own, up, down = (
        np.column_stack([energies(rng, nu), rng.normal(0.3 * nu, size=N), rng.normal(size=N)])
        for nu in (0, 1, -1)
    )
    found = steps(own, ONES, up, down, 0)
    edge = np.argmin(own[:, 0])
    for value in (1.0, -1.0, 0.5):
        moved = found.moved(own, value)
        # Closer to where the edge is than rows are to each other.
        assert moved[edge, 0] == pytest.approx(own[edge, 0] * (1 + 0.03 * value), abs=0.25)
        assert np.mean(moved[:, 1] - own[:, 1]) == pytest.approx(0.3 * value, abs=0.1)
        assert np.array_equal(moved[:, 2], own[:, 2])
    assert np.array_equal(found.moved(own, 0.0), own)
    alone = steps(own, ONES, up, None, 0)
    np.testing.assert_array_equal(alone.down, -alone.up)


@pytest.mark.unit
def test_what_is_no_straight_line_goes_to_its_quantile():
    def two_peaks(rng, nu):
        return rng.normal(4 * (rng.random((N, 1)) < 0.3 + 0.1 * nu), 1)

    own, up, down = drawn(two_peaks, 0)
    found = steps(own, ONES, up, down, 0)
    assert found.maps == ((),)
    for value, there in ((1.0, up), (-1.0, down)):
        np.testing.assert_allclose(np.sort(found.moved(own, value)[:, 0]), np.sort(there[:, 0]))
    # Weights of the reference are weights of its ranks.
    weights = np.where(own[:, 0] > 2, 2.0, 1.0)
    weighted = steps(own, weights, up, down, 0)
    share = weights @ (weighted.moved(own, 1.0)[:, 0] > 2) / weights.sum()
    assert share == pytest.approx(np.mean(up > 2), abs=0.002)


@pytest.mark.unit
def test_counts_stay_whole_numbers():
    own, up, down = drawn(lambda rng, nu: rng.poisson(8 + nu, size=(N, 1)).astype(float), 1)
    found = steps(own, ONES, up, down, 0)
    assert np.array_equal(found.moved(own, 0.0), own)
    for value in (0.3, 1.0, -0.7):
        moved = found.moved(own, value)
        assert np.array_equal(moved, np.round(moved))
        assert moved.mean() - own.mean() == pytest.approx(value, abs=0.15)


@pytest.mark.unit
@pytest.mark.parametrize("n", [401, 805, 1602, 3000])
def test_columns_that_did_not_change_rarely_move(n):
    moved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        own, up, down = rng.normal(size=(3, n, 1))
        moved += steps(own, np.ones(n), up, down, 0).any
    assert moved <= 11  # about 13 % of 401 rows, 2 % of 3,000


@pytest.mark.unit
def test_yes_and_no_and_columns_with_a_spike_stay():
    rng = np.random.default_rng(0)

    def rows(nu):
        kind = rng.choice(3, N, p=[0.3 + 0.1 * nu, 0.5, 0.2 - 0.1 * nu])
        spike = np.where(rng.random(N) < 0.3, 0.0, rng.exponential(size=N))
        return np.column_stack([np.eye(3)[kind], spike])

    own, up, down = rows(0), rows(1), rows(-1)
    assert not steps(own, ONES, up, down, 0).any
    up[:, 3] *= 1.5
    assert steps(own, ONES, up, down, 0).any


@pytest.mark.unit
def test_steps_drawn_anew_scatter_as_steps_of_new_samples_do():
    own, up, down = drawn(energies, 0)
    edge = np.argmin(own[:, 0])
    there = steps(own, ONES, up, down, 0)
    again = [redrawn(number, there, own, ONES, (up, down), 0) for number in range(1, 60)]
    assert all(one.maps == there.maps for one in again)
    fresh = []
    for seed in range(1, 60):
        _, *ends = drawn(energies, seed)
        fresh.append(steps(own, ONES, *ends, 0, there.maps))
    middle = np.argsort(own[:, 0])[N // 2]
    for row in (edge, middle):
        by_bootstrap, truly = (np.std([one.up[row, 0] for one in some]) for some in (again, fresh))
        assert 0.6 < by_bootstrap / truly < 1.6


@pytest.mark.unit
def test_what_a_parameter_can_undo_is_seen_as_its_steps():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N, 3)) * [1, 5, 0.1]
    motion = np.stack([rows * [0.1, 0, 0], np.ones(rows.shape) * [0, 0, 0.02]])
    undone = seen_as(Weighted(rows), motion)
    np.testing.assert_allclose(undone(0.7 * motion[0] - 1.5 * motion[1]), [0.7, -1.5], atol=1e-8)
    np.testing.assert_allclose(undone(rows * [0, 0.1, 0]), [0, 0], atol=0.2)


def test_shares_of_kinds_are_weights_and_edges_are_motion():
    rng = np.random.default_rng(2)

    def kinds(nu):  # a second kind of rows, with a relation of its own, becomes more frequent
        x = rng.normal(size=(3000, 1))
        y = np.where(rng.random((3000, 1)) < 0.5 + 0.15 * nu, x, -x)
        return Weighted(np.concatenate([x, y + 0.1 * rng.normal(size=(3000, 1))], axis=1))

    own, up, down = kinds(0), kinds(1), kinds(-1)
    found = shifted("share", 1.0, own, up, down, 0, 3000)
    assert isinstance(found.variation, Sampled)
    assert found.fits
    own, up, down = map(Weighted, drawn(energies, 0))
    found = shifted("scale", 1.0, own, up, down, 0, 3000)
    assert isinstance(found.variation, Moved)
    assert found.fits


def mean(rng, sample):
    x, own, data = sample.points[:, 0], sample.reference_weight, sample.data_weight
    return abs(x @ own / own.sum() - x @ data / data.sum())


def lowest(rng, sample):
    """How far the edges are apart."""
    x = sample.points[:, 0]
    return abs(x[sample.reference_weight > 0].min() - x[sample.data_weight > 0].min())


def test_other_rows_at_plus_and_minus_one_explain_an_edge_that_moved():
    own, up, down = drawn(energies, 5)
    data = energies(np.random.default_rng(6), 1.5, 800)
    options = {"n_toys": 39, "explain": False}
    declared = [Systematic("scale", up=up, down=down)]
    for statistic in (mean, lowest):
        assert sparker.test(own, data, statistic=statistic, **options).p_value <= 0.05
        found = sparker.test(own, data, systematics=declared, statistic=statistic, **options)
        assert found.p_value > 0.05
        (pull,) = found.nuisances
        assert pull.value == pytest.approx(1.5, abs=0.3)
        assert any("moved, column by column" in note for note in found.notes)
    # The level of edges that are a little off: toys are, too.
    small = 0
    for seed in range(12):
        own, up, down = drawn(energies, [8, seed])
        declared = [Systematic("scale", up=up, down=down)]
        data = energies(np.random.default_rng([7, seed]), -1.5, 800)
        found = sparker.test(
            own, data, systematics=declared, statistic=lowest, n_toys=19, explain=False, seed=seed
        )
        small += found.p_value <= 0.1
    assert small <= 5  # of 12 at 10 %: more has a chance of 0.05 %


def test_samples_that_the_reference_cannot_become_are_refused():
    """Columns that are tied to each other, by a factor that changes with the parameter."""
    rng = np.random.default_rng(3)

    def tied(nu, n=1500):
        x = rng.exponential(size=n)
        kind = rng.random(n) < 0.5
        y = x * np.where(kind, 1 + 0.1 * nu, 2 - 0.1 * nu) * (1 + 0.001 * rng.normal(size=n))
        return np.column_stack([x, y])

    with pytest.raises(ValueError, match="neither moving nor weighting the rows") as error:
        sparker.test(
            tied(0), tied(0, 600), statistic=mean, n_toys=9,
            systematics=[Systematic("factor", up=tied(1), down=tied(-1))],
        )  # fmt: skip
    assert "of systematic factor" in str(error.value)
    assert "paired=True" in str(error.value)


def test_several_systematics_of_all_kinds_go_together():
    """In a data frame with categories: by a function, by weights, and by other rows."""
    rng = np.random.default_rng(4)

    def frame(nu, n):
        kind = rng.choice(["a", "b", "c"], n)
        return pd.DataFrame({"energy": energies(rng, nu, n)[:, 0], "time": rng.exponential(size=n),
                             "kind": kind})  # fmt: skip

    reference, data = frame(0, 1500), frame(1, 500).assign(time=lambda rows: 1.1 * rows.time)
    x = reference.kind.eq("a").to_numpy()
    found = sparker.test(
        reference, data, statistic=mean, n_toys=19, explain=False,
        systematics=[
            Systematic("clock", function=lambda r, nu: r.assign(time=r.time * (1 + 0.1 * nu))),
            Systematic("scale", up=frame(1, 1500), down=frame(-1, 1500)),
            Systematic("share", up=np.where(x, 1.1, 0.95), down=np.where(x, 0.9, 1.05)),
        ],
    )  # fmt: skip
    assert found.p_value > 0.05
    pulls = {one.name: one for one in found.nuisances}
    assert pulls["scale"].value == pytest.approx(1, abs=0.3)
    assert abs(pulls["clock"].value - 1) < 3 * pulls["clock"].error + 0.5
    assert abs(pulls["share"].value) < 3


def test_other_samples_need_rows():
    own, up, down = drawn(energies, 5)
    with pytest.raises(ValueError, match="50 rows or more to learn from, those of systematic few"):
        sparker.test(own, own[:50], statistic=mean, n_toys=9,
                     systematics=[Systematic("few", up=up[:20], down=down)])  # fmt: skip
