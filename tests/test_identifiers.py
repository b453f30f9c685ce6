"""Columns that name the rows are found; measurements that merely differ are not."""

import hashlib
import uuid

import numpy as np
import pytest

from sparker.tables.identifiers import identifier

pytestmark = pytest.mark.unit

rng = np.random.default_rng(0)


def objects(values) -> np.ndarray:
    return np.array(list(values), dtype=object)


def sorted_cents(n, low=120_000, high=990_000, seed=1):
    """Prices, all different, as a shop lists them."""
    return np.sort(np.random.default_rng(seed).choice(np.arange(low, high), n, replace=False)) * 1.0


COUNTERS = {
    "from 0 in both": [np.arange(300.0), np.arange(80.0)],
    "goes on": [np.arange(300.0), np.arange(300.0, 380.0)],
    "down": [np.arange(300.0)[::-1], np.arange(80.0)[::-1]],
    "one file": [np.arange(1.0, 301.0)],
    "one data row": [np.arange(300.0), np.array([300.0])],
    "by tens": [np.arange(300.0) * 10, np.arange(80.0) * 10],
    "integers": [np.arange(300), np.arange(80)],
    "float32": [np.arange(300, dtype=np.float32), np.arange(80, dtype=np.float32)],
    "a row dropped here and there": [np.delete(np.arange(300.0), [5, 60, 61, 200])],
    "two files put together": [np.r_[np.arange(200.0), np.arange(150.0)], np.arange(80.0)],
    "missing": [np.where(np.arange(300) % 50 == 7, np.nan, np.arange(300.0))],
    "texts": [objects(str(i) for i in range(300)), objects(str(i) for i in range(80))],
    "zeros in front": [objects(f"{i:06d}" for i in range(300))],
}


@pytest.mark.parametrize("parts", COUNTERS.values(), ids=COUNTERS)
@pytest.mark.parametrize("name", ["", "x", "event_id"])
def test_numbers_of_rows_are_found_under_any_name(name, parts):
    assert identifier(name, parts) is not None


def test_the_reason_completes_the_sentence():
    both = [np.arange(100.0), np.arange(100.0, 150.0)]
    assert identifier("n", both) == "counts the rows of each file"
    assert identifier("n", both[:1]) == "counts the rows"
    kept = [np.sort(rng.permutation(4000)[:1000]) + start for start in (0.0, 4000.0)]
    assert identifier("n", kept) == "never repeats and goes up along the rows of each file"
    assert identifier("run_number", [np.repeat([1.0, 2.0], 40), np.repeat(3.0, 30)]) == (
        "has ranges in the two files that hardly overlap, and is named like an identifier"
    )
    assert identifier("key", [objects(uuid.UUID(int=i).hex for i in range(50))]) == (
        "has another text in almost every row"
    )
    times = np.datetime64("2024-03-01T12:00") + rng.integers(0, 50, 40)
    assert identifier("x", [times, times + np.timedelta64(3, "D")]) == (
        "has ranges in the two files that hardly overlap, and is a time"
    )


MEASUREMENTS = {
    "shifted": [rng.normal(size=300), rng.normal(50, 1, size=80)],
    "shifted and sorted": [np.sort(rng.normal(size=300)), np.sort(rng.normal(50, 1, size=80))],
    "even steps": [np.linspace(0.05, 1, 300), np.linspace(2.05, 3, 80)],
    "whole and shifted": [rng.integers(0, 10**6, 300) * 1.0, rng.integers(2e6, 3e6, 80) * 1.0],
    "sorted prices": [sorted_cents(300), sorted_cents(80)],
    "sorted prices, other range": [sorted_cents(300), sorted_cents(80, 10**6, 2 * 10**6)],
    "more sorted prices": [sorted_cents(4000), sorted_cents(500)],
    "sorted counts": [np.sort(rng.poisson(200, 300)) * 1.0, np.sort(rng.poisson(900, 80)) * 1.0],
    "hours": [np.arange(480.0) % 24, np.arange(240.0) % 24],
    "days of the year": [np.arange(3650.0) % 365],
    "constant": [np.zeros(300), np.ones(80)],
    "large steps": [np.arange(300) * 2.0**60, np.arange(80) * 2.0**60],
    "large": [rng.normal(size=300) * 1e20, rng.normal(size=80) * 1e20 + 1e22],
    "flags": [rng.integers(0, 2, 300) * 1.0, rng.integers(0, 2, 80) * 1.0],
    "few rows": [np.arange(5.0), np.arange(5.0)],
    "one row": [np.array([1.0]), np.array([7.0])],
    "all missing": [np.full(300, np.nan), np.arange(80.0)],
    "nothing": [np.empty(0), np.empty(0)],
}


@pytest.mark.parametrize("parts", MEASUREMENTS.values(), ids=MEASUREMENTS)
@pytest.mark.parametrize(
    "name",
    ["", "x", "response_time", "humidity", "acid", "paid", "valid", "grid", "width", "ideal",
     "refractive_index", "serialCorrelation", "n_events", "price", "lifetime", "update"],
)  # fmt: skip
def test_measurements_stay_however_they_differ(name, parts):
    assert identifier(name, parts) is None


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "event_id", "eventId", "EventID", "customerid", "user id", "ids", "row_idx",
     "Unnamed: 0", "eventNumber", "event_number", "run number", "RunNo", "uuid", "pk", "rowid",
     "luminosityBlock", "run", "event", "timestamp", "time_stamp_date", "DateTime", "date",
     "created_at", "gps_time", "time", "epoch"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["own", "repeated"])
def test_names_and_ranges_together_make_an_identifier(name, kind):
    shuffled = np.repeat(rng.permutation(500), 1 if kind == "own" else 3) * 977.0
    reference, data = shuffled[shuffled < 400 * 977], shuffled[shuffled >= 399 * 977]
    assert "hardly overlap" in identifier(name, [reference, data])
    assert identifier("amount", [reference, data]) is None
    apart = [shuffled[shuffled < 300 * 977], shuffled[shuffled >= 260 * 977]]
    assert "hardly overlap" not in (identifier(name, apart) or "")
    if kind == "repeated":  # a category, for all one knows
        assert identifier(name, [shuffled[::2], shuffled[1::2]]) is None


def test_names_that_may_be_measurements_need_more():
    inner = [rng.normal(10, 1, 200), rng.normal(20, 1, 100)]
    assert identifier("ID", inner) is None  # an inner diameter is no whole number
    points = [rng.integers(5000, 6000, 300) * 1.0, rng.integers(7000, 8000, 300) * 1.0]
    assert identifier("stock_index", points) is None
    assert identifier("index", [rng.permutation(300) * 1.0, 300.0 + rng.permutation(80)])
    assert identifier("ts", [1.7e9 + rng.permutation(10**6)[:300], 1.72e9 + np.arange(80) * 7])
    survival = [np.sort(rng.exponential(size=300)), np.sort(rng.exponential(size=80))]
    assert identifier("time", survival) is None  # sorted, but in one range


def test_numbers_of_their_own_and_the_name_are_enough_in_one_file():
    values = rng.choice(10**12, 500) * 1.0
    assert "almost every row" in identifier("customer_id", [values])
    assert identifier("customer_id", [values * 1e5])  # beyond 2**53
    assert identifier("customer", [values]) is None
    assert identifier("sensor_id", [rng.integers(0, 30, 500) * 1.0]) is None
    assert identifier("id", [np.array([3.0, 4.0, 5.0])])
    assert identifier("x", [np.array([3.0, 4.0, 5.0])]) is None


def test_whole_numbers_without_the_repeats_of_chance_are_counters():
    # 1000 of 4000: a measurement would repeat about 125 times.
    kept = np.sort(rng.permutation(4000)[:1000]) * 1.0
    assert identifier("x", [kept])
    assert identifier("x", [rng.permutation(kept)]) is None  # without order the name must say it
    assert identifier("x", [np.sort(rng.integers(0, 4000, 1000)) * 1.0]) is None


def test_sorted_measurements_are_hardly_ever_taken_for_counters():
    for seed in range(200):
        draw = np.random.default_rng(seed)
        scale = 10 ** draw.uniform(1, 7)
        reference = np.sort(np.rint(draw.lognormal(0, 0.5, draw.integers(20, 3000)) * scale))
        data = np.sort(np.rint(draw.lognormal(3, 0.5, 200) * scale))
        assert identifier("x", [reference, data]) is None
        assert identifier("", [reference]) is None


def test_times():
    day = np.datetime64("2024-03-01")
    days = day + np.sort(rng.integers(0, 90, 300))
    assert identifier("x", [days]) == "goes up along the rows, and is a time"
    assert identifier("x", [rng.permutation(days)]) is None
    mixed = rng.permutation(days)
    assert identifier("x", [mixed[:200], mixed[200:]]) is None  # the same days in both
    missing = np.r_[days, [np.datetime64("NaT")]]
    assert identifier("x", [missing, missing + np.timedelta64(200, "D")])
    texts = objects(str(one) for one in mixed)
    assert identifier("x", [texts, objects(str(one + 200) for one in mixed)])
    assert identifier("x", [objects(f"{one}T10:00:00.5Z" for one in np.sort(mixed))])
    minutes = day + rng.permutation(500).astype("timedelta64[m]")
    assert identifier("x", [objects(str(one) for one in minutes)]) is None  # times, but no order
    assert identifier("x", [objects(["2024-02-31"] * 30)]) is None  # there is no such day


HASHES = [hashlib.sha256(bytes([i])).hexdigest() for i in range(100)]
WORDS = [h.translate(str.maketrans("0123456789", "ghijklmnop")) for h in HASHES]


@pytest.mark.parametrize(
    ("name", "texts", "found"),
    [
        ("key", HASHES, True),
        ("", HASHES, True),
        ("key", [f"sha256:{h}" for h in HASHES], True),
        ("key", [str(uuid.UUID(h[:32])) for h in HASHES], True),
        ("ticket", [f"SUP-{i * 37}" for i in range(100)], True),
        ("x", [f"{i * 7919 % 100_000:06d}" for i in range(100)], True),
        ("x", [str(10**18 + i * i) for i in range(100)], True),
        ("user_id", WORDS, True),
        ("word", WORDS, False),
        ("key", HASHES[:19], False),
        ("key", HASHES[:25] * 4, False),
        ("user_id", HASHES[:25] * 4, True),
        ("key", HASHES[:97] + HASHES[:3], True),
        ("comment", [f"{h[:6]} was seen {i} times today" for i, h in enumerate(HASHES)], False),
        ("text", [h * 4 for h in HASHES], False),
        ("user_id", [f"{h} {h}" for h in HASHES], False),
        ("weight", [f"{i * 1.37:.2f}kg" for i in range(100)], False),
        ("weight", [f"{i * 13}g" for i in range(100)], False),
        ("price", [f"USD{i * 1.37:.2f}" for i in range(100)], False),
        ("price", [str(i * 7919 % 100_000) for i in range(100)], False),
        ("x", [f"{i * 1.37e-5:.4e}" for i in range(100)], False),
        ("url", [f"https://example.org/{i}" for i in range(100)], False),
        ("smiles", [f"CC(=O)Oc1ccccc{i}" for i in range(100)], False),
        ("colour", ["red", "green", "blue"] * 40, False),
        ("key", [None, *HASHES, ""], True),
        ("key", [None] * 50, False),
    ],
)
def test_texts(name, texts, found):
    assert (identifier(name, [objects(texts)]) is not None) == found
    half = len(texts) // 2
    assert (identifier(name, [objects(texts[:half]), objects(texts[half:])]) is not None) == found


def test_those_who_return_in_the_second_file_are_named_in_both():
    """Of one file, ``describe`` says the same."""
    for name in ("key", "user_id"):
        one, other = objects(HASHES[:80]), objects(HASHES[60:100])
        said = identifier(name, [one, other])
        assert said == identifier(name, [one]) == "has another text in almost every row"


def test_those_who_return_within_a_file_are_named_as_well():
    short = [text[:12] for text in HASHES]
    one, other = objects(short[:80]), objects(short[:8] * 50)  # together, they are a category
    assert identifier("key", [one, other]) is None
    said = identifier("user_id", [one, other])
    assert said == "is named like an identifier and has more texts than a category can have"
    assert identifier("user_id", [objects(short[:8] * 10), other]) is None


def test_kinds_that_do_not_go_together_are_nobodys_identifier():
    assert identifier("id", [np.arange(50.0), objects(HASHES)]) is None
    assert identifier("id", [np.zeros(50, bool), np.zeros(50, bool)]) is None
    assert identifier("id", [objects([("a",)] * 30)]) is None
