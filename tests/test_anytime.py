"""Anytime monitors: the bets, what they promise, and the file that keeps them."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import sparker
from sparker.anytime import KIND, SavedAnytime
from sparker.betting.process import LENGTHS, SUM_OF_WEIGHTS, Process
from sparker.betting.scan import ground, look_for_kernels, look_for_tail
from sparker.betting.wealth import (
    MAX_BET,
    N_LEVELS,
    Terms,
    log_evidence,
    opened,
    reference_bets,
    stream_bets,
)
from sparker.betting.witnesses import edge, far, kernels, log_ratio, shift
from sparker.cli.main import main
from sparker.engine import Ensemble, components
from sparker.system import archive

VALUES = np.geomspace(0.01, 1, N_LEVELS)
BETS = np.array([0, 0.1, 0.3, 0.8])


def rows(seed: int, n: int = 200, share: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n, 2))
    k = int(share * n)
    found[:k] = [1.2, 1.2] + 0.05 * found[:k]
    return rng.permutation(found)


@pytest.fixture(scope="module")
def reference() -> np.ndarray:
    return rows(0, 2000)


def slow_evidence(terms: Terms, held_back: np.ndarray, stream: np.ndarray) -> float:
    """The definition, row by row, on a fine grid of m."""
    reference, data = (np.repeat(terms.values, counts) for counts in (held_back, stream))
    found = []
    for m in np.concatenate([np.geomspace(1e-4, 0.999, 400), np.linspace(1e-4, 0.9999, 400)]):
        k = np.mean(
            [np.prod(1 + b * ((1 - reference) / (1 - m) - 1)) for b in terms.reference_bets]
        )
        w = np.mean([np.prod(1 + b * (data / m - 1)) for b in terms.stream_bets])
        found.append(k * w)
    return min(found)


@pytest.mark.unit
@pytest.mark.parametrize("seed", range(6))
def test_evidence_is_the_smallest_product_or_a_little_less(seed):
    rng = np.random.default_rng(seed)
    held_back = rng.multinomial(60, rng.dirichlet(np.ones(N_LEVELS)))
    stream = rng.multinomial(25, rng.dirichlet(np.geomspace(1, 1 + 5 * seed, N_LEVELS)))
    terms = Terms(VALUES, BETS, BETS[::-1])
    exact = np.log(slow_evidence(terms, held_back, stream))
    reported = float(log_evidence(opened(terms, held_back), stream))
    assert exact - 0.5 < reported <= exact + 1e-9


@pytest.mark.unit
def test_the_mean_of_the_evidence_is_at_most_one_whatever_the_distribution():
    """All outcomes of tiny samples with three payoffs, each with its probability."""
    values = np.append(np.zeros(N_LEVELS - 2), [0.3, 1.0])
    terms = Terms(values, BETS, BETS)
    for p in ([0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.98, 0.01, 0.01]):
        mean = 0.0
        for held_back, p_held in outcomes(4, p):
            book = opened(terms, held_back)
            for stream, p_stream in outcomes(3, p):
                mean += p_held * p_stream * np.exp(log_evidence(book, stream))
        assert 0.05 < mean <= 1 + 1e-9


def outcomes(n: int, p: list[float]):
    """Counts of the last three levels, and how probable they are."""
    from scipy.stats import multinomial

    for i in range(n + 1):
        for j in range(n + 1 - i):
            counts = np.zeros(N_LEVELS, int)
            counts[-3:] = n - i - j, i, j
            yield counts, multinomial.pmf(counts[-3:], n, p)


@pytest.mark.unit
def test_some_money_is_always_kept():
    nothing, everything = np.zeros((2, N_LEVELS), int)
    nothing[0], everything[-1] = 1000, 1000
    book = opened(Terms(VALUES, BETS, BETS), everything)
    assert float(log_evidence(book, nothing)) >= np.log(1 / 16) - 1e-9


@pytest.mark.unit
def test_bets_are_those_of_other_rows_and_never_too_large():
    reference, seen = np.full(N_LEVELS, 10), np.arange(N_LEVELS) ** 2
    bets, gain = stream_bets(VALUES, reference, seen)
    assert gain > 0
    assert bets[0] == 0
    assert 0 < bets[-1] <= MAX_BET
    tiny = np.zeros(N_LEVELS, int)
    tiny[0] = 50
    assert reference_bets(VALUES, tiny, 10).max() <= MAX_BET


@pytest.mark.unit
def test_the_weights_of_all_bets_sum_to_less_than_one():
    k = np.arange(2, 10**6)
    rest = 1 / np.log(10**6 - 1)  # the integral beyond
    assert (np.sum(1 / (k * np.log(k) ** 2)) + rest) / SUM_OF_WEIGHTS < 1


@pytest.mark.unit
def test_kernels_score_rows_as_the_engine_does():
    rng = np.random.default_rng(0)
    points, centres, a = rng.normal(size=(50, 3)), rng.normal(size=(3, 3)), np.array([2.0, -1, 0.5])
    expected = components(Ensemble(centres, a, np.array(0.7)), points).sum(1)
    np.testing.assert_allclose(log_ratio(points, centres, a, 0.7), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.unit
def test_payoffs_grow_with_the_score(reference):
    for witness in (
        far(reference),
        edge(np.array([0.0, -1.0]), reference),
        shift(np.array([1.0, 0.0]), reference),
        kernels(reference[:2], np.array([3.0, -1.0]), 0.5),
    ):
        order = np.argsort(witness.score(reference))
        paid = witness.payoffs(reference)
        assert np.all(np.diff(paid[order]) >= 0)
        assert paid.max() > paid.min()
        assert witness.counts(reference).sum() == len(reference)
        np.testing.assert_allclose(witness.counts(reference) @ witness.values, paid.sum())


@pytest.mark.unit
def test_a_scan_finds_a_crowd_and_a_tail(reference):
    beside = ground(reference)
    crowd = look_for_kernels(rows(1, 256, share=0.08), beside)
    strongest = crowd.centres[np.argmax(crowd.amplitudes)]
    assert np.linalg.norm(strongest - [1.2, 1.2]) < 0.2
    moved = rows(1, 256)
    moved[:12, 1] = -3.5
    tail = look_for_tail(moved, beside)
    np.testing.assert_array_equal(tail.centres[0], [0, -1])


def test_what_is_won_does_not_depend_on_how_rows_come(reference):
    stream = np.concatenate([rows(1, 600), rows(2, 600, share=0.05)])
    found = []
    for sizes in ([1200], [5] * 240, [300, 1, 299, 512, 88]):
        monitor = sparker.AnytimeMonitor.start(reference)
        looks = list(monitor.watch(np.split(stream, np.cumsum(sizes)[:-1])))
        assert looks[-1].n_rows == 1200
        found.append(looks[-1].wealth)
    assert found[0] == found[1] == found[2] > 20


def test_a_change_is_noticed_and_its_rows_are_paid_most(reference):
    monitor = sparker.AnytimeMonitor.start(reference)
    for seed in range(1, 6):
        quiet = monitor.look(rows(seed))
        assert not quiet.alarm
    for seed in range(6, 12):
        batch = rows(seed, share=0.1)
        look = monitor.look(batch)
    assert look.alarm
    assert look.p_value == monitor.p_value < 1e-3
    assert look.strongest == "kernels"
    best = batch[np.argsort(-look.payoffs)[:10]]
    assert np.mean(np.linalg.norm(best - [1.2, 1.2], axis=1) < 0.5) > 0.8
    assert monitor.look(rows(50)).alarm  # it stays


def test_changes_are_looked_for_again_after_each_alarm(reference):
    monitor = sparker.AnytimeMonitor.start(reference, change=True)
    shares = [0.0] * 20 + [0.1] * 10 + [0.0] * 20 + [0.1] * 10
    alarms = [
        look.number
        for look in monitor.watch((rows(9 + i, share=s) for i, s in enumerate(shares)))
        if look.alarm
    ]
    assert min(alarms) > 20
    assert any(20 < number <= 30 for number in alarms)
    assert not any(35 < number <= 50 for number in alarms)
    assert any(number > 50 for number in alarms)


def test_false_alarms_are_rare_in_streams_with_ties():
    """In 60 streams of 50 looks, at 20 %: 12 are allowed, more than 20 are one in a hundred."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table = rng.poisson(2.0, size=(240, 2)).astype(float)
        process = Process.begun(table[:120], table[120:], change=False)
        stream = rng.poisson(2.0, size=(1000, 2)).astype(float)
        best = max(process.look(batch).log_wealth for batch in np.split(stream, 50))
        alarms += best >= np.log(5)
    assert alarms <= 20


def test_rows_that_are_held_back_decide_nothing_but_what_was_won(reference):
    """Other rows in their place: the same bets are made, at the same weights."""
    learned, held_back = np.split(reference, 2)
    others = rows(77, len(held_back))
    made = []
    for rest in (held_back, others):
        process = Process.begun(learned, rest, change=False)
        for seed in range(1, 9):
            process.look(rows(seed, 300, share=0.05))
        made.append(process)
    one, other = made
    assert one.n_bets == other.n_bets > 5
    np.testing.assert_array_equal(one.usual, other.usual)
    both = {bet.number for bet in one.bets} & {bet.number for bet in other.bets}
    weights = [{bet.number: bet.log_weight for bet in process.bets} for process in made]
    assert both
    assert all(weights[0][number] == weights[1][number] for number in both)
    assert one.bets[0].held_back.tolist() != other.bets[0].held_back.tolist()


def test_a_monitor_goes_on_to_the_same_bits_from_its_file(reference, tmp_path):
    begun = sparker.AnytimeMonitor.start(reference, change=True)
    for seed in range(6):
        begun.look(rows(seed, 170))
    begun.save(tmp_path / "monitor.sparker")
    loaded = sparker.load(tmp_path / "monitor.sparker")
    assert isinstance(loaded, sparker.AnytimeMonitor)
    assert repr(loaded) == repr(begun)
    assert loaded.history == begun.history
    for seed in range(30, 38):
        batch = rows(seed, 170, share=0.04)
        looks = [monitor.look(batch) for monitor in (begun, loaded)]
        assert looks[0][:6] == looks[1][:6]
    np.testing.assert_array_equal(begun.process.recent, loaded.process.recent)
    assert len(begun.process.recent) <= LENGTHS[-1]


def test_an_edited_file_is_refused_though_its_digest_is_right(reference, tmp_path):
    monitor = sparker.AnytimeMonitor.start(reference)
    monitor.look(rows(1, 600))
    monitor.save(tmp_path / "monitor.sparker")
    path = tmp_path / "wrong.sparker"
    for part, name, wrong in (
        ("terms", "values", lambda a: a + 1),
        ("witness", "kind", lambda a: a + 9),
        ("bet", "stream", lambda a: a - 10**6),
        ("bet", "held_back", lambda a: a + 1),
        ("process", "recent", lambda a: a[:-1]),
        ("process", "n_rows", lambda n: -1),
        ("process", "usual", lambda a: a * np.nan),
        ("saved", "reference", lambda a: a * np.inf),
        ("saved", "n_learned_from", lambda n: 10**6),
        ("saved", "alpha", lambda a: 1.5),
    ):
        saved = archive.read(tmp_path / "monitor.sparker", {KIND: SavedAnytime})
        bet = saved.process.bets[0]
        if part in ("terms", "witness"):
            inner = getattr(bet, part)
            setattr(bet, part, inner._replace(**{name: wrong(getattr(inner, name))}))
        else:
            owner = {"bet": bet, "process": saved.process, "saved": saved}[part]
            setattr(owner, name, wrong(getattr(owner, name)))
        archive.write(path, KIND, saved)
        with pytest.raises(ValueError, match="holds no anytime monitor"):
            sparker.AnytimeMonitor.load(path)


def test_a_key_that_was_seen_is_skipped_and_rows_without_one_always_count(reference):
    monitor = sparker.AnytimeMonitor.start(reference)
    batch = rows(1)
    assert monitor.look(batch, key="monday").number == 1
    assert monitor.look(batch, key="monday") is None
    assert monitor.look(batch).number == 2
    assert monitor.look(batch, key="tuesday").number == 3
    assert monitor.process.n_rows == 3 * len(batch)


def test_columns_of_any_kind_go_in_and_bad_input_is_refused(reference):
    rng = np.random.default_rng(0)

    def table(n: int, often: float) -> pd.DataFrame:
        x = rng.normal(size=n)
        return pd.DataFrame(
            {
                "x": np.where(rng.random(n) < 0.1, np.nan, x),
                "kind": rng.choice(["a", "b", "c"], n, p=[0.9 - often, 0.1, often]),
                "fixed": 1.0,
            }
        )

    monitor = sparker.AnytimeMonitor.start(table(1500, 0.05))
    for _ in range(12):
        look = monitor.look(table(200, 0.3))
    assert look.alarm
    strange = table(50, 0.05)
    strange.loc[3, "fixed"] = 2.0
    with pytest.warns(sparker.DataWarning, match="fixed, which never varies"):
        monitor.look(strange)
    with pytest.raises(ValueError, match="no such column"):
        monitor.look(strange.rename(columns={"x": "y"}))
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        sparker.AnytimeMonitor.start(reference, alpha=1.5)
    with pytest.raises(ValueError, match="at least 100"):
        sparker.AnytimeMonitor.start(rows(0, 60))
    with pytest.raises(ValueError, match="makes no toys") as refused:
        sparker.AnytimeMonitor.start(reference, store="x", expected=5.0)
    assert "each of which counts as one" in str(refused.value)


@pytest.fixture
def at(tmp_path, monkeypatch, reference):
    monkeypatch.chdir(tmp_path)
    np.save("reference.npy", reference)
    for number in range(8):
        np.save(f"batch{number}.npy", rows(100 + number, 256, share=0.1 * (number > 3)))
    assert run("calibrate", "reference.npy", "monitor.sparker", "--anytime").exit_code == 0
    return tmp_path


def run(*arguments: str, **how):
    return CliRunner().invoke(main, list(arguments), **how)


def lines_of(result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


FILES = [f"batch{number}.npy" for number in range(8)]


def test_an_alarm_writes_a_report_once(at, monkeypatch):
    quick = {"n_toys": 20, "config": sparker.FitConfig(n_kernels=3)}
    quick |= {"widths": sparker.WidthConfig(steps=30, n_widths=3), "explain": False}
    explained = sparker.AnytimeMonitor.explain
    monkeypatch.setattr(
        sparker.AnytimeMonitor,
        "explain",
        lambda self, batch, **settings: explained(self, batch, **settings, **quick),
    )
    found = run("watch", "monitor.sparker", *FILES, "--reports", "alarms")
    reports = [line["report"] for line in lines_of(found) if "report" in line]
    assert len(reports) == 1
    assert sum(line["alarm"] for line in lines_of(found)) > 1
    assert "batch" in (at / reports[0]).read_text()
