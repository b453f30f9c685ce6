"""The report: says what the result says, opens offline, and runs nothing of what it is given."""

import contextlib
import csv
import dataclasses
import functools
import io
import json
import re
import shutil
import tempfile
import time
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from scipy.special import expit

import sparker
from sparker import report
from sparker.calibration.tail import fit_tail
from sparker.engine.ensemble import Ensemble

N_REFERENCE, N_DATA, N_PLANTED = 200, 60, 15
ONE = {"n_features": 1, "config": sparker.FitConfig(n_kernels=1)}
ALERT = "<script>alert(1)</script>"
HOSTILE = (
    ALERT,
    "</script><img src=x onerror=alert(2)>",
    "\"'><svg onload=alert(3)>",
    "$$\\href{javascript:alert(4)}{x}$$ @{row}{safe} {{ 7 * 7 }}",
    "]]>--><!-- \u2028 \ud800",
    "=1+1",
)


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


@functools.cache
def run(n_features=2, **options):
    rng = np.random.default_rng(0)
    reference, data = (rng.normal(size=(n, n_features)) for n in (N_REFERENCE, N_DATA))
    data[:N_PLANTED] = 3 + 0.1 * rng.normal(size=(N_PLANTED, n_features))
    if "statistic" not in options:
        options["widths"] = sparker.WidthConfig(steps=40, n_widths=3)
    return sparker.test(reference, data, n_toys=20, **options)


@pytest.fixture(scope="module")
def result():
    return run()


@pytest.fixture(scope="module")
def extras():
    """Something of everything, hostile wherever a string is."""
    rng = np.random.default_rng(1)
    return {
        "texts": [f"{HOSTILE[i % len(HOSTILE)]} text{i}" for i in range(N_DATA)],
        "names": [f"{HOSTILE[i % len(HOSTILE)]} name{i}" for i in range(N_DATA)],
        "images": list(rng.random((N_DATA, 8, 8))),
        "observables": {
            f"mass {ALERT}": np.arange(N_DATA) * 1.5,
            HOSTILE[3]: np.where(np.arange(N_DATA) % 7, rng.normal(size=N_DATA), np.nan),
        },
        "reference_observables": {f"mass {ALERT}": np.arange(N_REFERENCE) * 0.4},
        "title": HOSTILE[1] + HOSTILE[2],
        "command": f"sparker {ALERT}",
        "alpha": 0.05,
    }


@pytest.fixture(scope="module")
def hostile(result, extras):
    awkward = dataclasses.replace(
        result, columns=(HOSTILE[1], HOSTILE[3]), notes=(HOSTILE[0], HOSTILE[2])
    )
    return report.render(awkward, **extras)


class Page(HTMLParser):
    """The elements of a page, its text and its JSON."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.json = [], "", {}
        self.inside = None
        self.feed(text)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.text += " "
        self.elements.append((tag, attributes))
        if tag in ("script", "style"):
            self.inside = (attributes.get("id"), attributes.get("type"))

    def handle_endtag(self, tag):
        self.text += " "
        if tag in ("script", "style"):
            self.inside = None

    def handle_data(self, data):
        if self.inside is None:
            self.text += data
        elif self.inside[1] == "application/json":
            self.json[self.inside[0]] = json.loads(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


def column(page, label):
    labels = [column["label"] for column in page.json["rows"]["columns"]]
    return [row[labels.index(label)] for row in page.json["rows"]["rows"]]


def test_it_says_what_the_result_says(result):
    page = Page(report.render(result, alpha=0.06, command="sparker test a b"))
    assert result.above == 0
    assert "Anomaly at the level 0.06" in page.text
    assert "0 of 20 anomaly-free experiments look at least as different" in page.text
    low = result.significance_interval[0]
    assert f"Significance {result.significance:.2f} \u03c3 ({low:.2f} or more)" in page.text
    assert f"p-value {result.p_value:.3g}" in page.text
    assert f"Rows too many {result.effect_excess.events:.1f}" in page.text
    assert "sparker test a b" in page.text
    assert f"seed {result.seed}" in page.text
    assert result.versions["jax"] in page.text


@pytest.mark.parametrize(
    ("above", "headline"),
    [
        (0, "None of 20 anomaly-free experiments looks as different as the data"),
        (1, "1 of 20 anomaly-free experiments looks at least as different as the data"),
        (7, "7 of 20 anomaly-free experiments look at least as different as the data"),
    ],
)
def test_no_decision_without_a_level(result, above, headline):
    text = Page(report.render(dataclasses.replace(result, above=above))).text
    assert headline in text
    assert "No level was given" in text
    assert "Anomaly at" not in text
    assert "Compatible with" not in text


def test_a_level_beyond_the_toys_decides_nothing(result):
    text = Page(report.render(result, alpha=0.001)).text
    assert "Undecided at the level 0.001: too few experiments" in text
    assert "was out of reach" in text
    assert "Compatible" not in text
    assert "Anomaly at" not in text
    # Unless more of them would not help.
    fine = dataclasses.replace(result, p_value=0.6, above=12, interval=(0.3, 0.8))
    text = Page(report.render(fine, alpha=0.001)).text
    assert "Compatible with the reference at the level 0.001" in text
    assert "was out of reach" not in text


def test_only_what_may_be_chance_is_called_that(result):
    fine = dataclasses.replace(result, p_value=0.6, above=12, interval=(0.3, 0.8))
    chance = "what follows may all be chance"
    assert chance in Page(report.render(fine)).text
    assert chance in Page(report.render(fine, alpha=0.05)).text
    assert chance not in Page(report.render(result)).text
    assert chance not in Page(report.render(result, alpha=0.06)).text


def test_the_least_anomalous_sample_has_no_significance(result):
    least = dataclasses.replace(result, p_value=1.0, above=20, interval=(0.8, 1.0))
    text = Page(report.render(least)).text
    assert "Significance none" in text
    assert "about 100 % of samples" in text


def test_beyond_all_toys_an_extrapolation_is_given_and_called_that(result, monkeypatch):
    toys = np.random.default_rng(0).gumbel(size=(400, 3))
    fit = fit_tail(np.full(3, 12.0), toys, "minimum_and_product")
    assert fit.p_value < 1e-3
    assert result.above == 0
    assert "xtrapolated" not in Page(report.render(result)).text  # too few toys
    monkeypatch.setattr(sparker.TestResult, "tail_fit", lambda self: fit)
    p, high = (report.words.number(value, 2) for value in (fit.p_value, fit.interval[1]))
    text = report.render(result)
    assert fit.at_reach
    assert f"extrapolated</dt><dd>\u2264 {p} <small>(measured: below {high})</small>" in text
    assert f"Extrapolated, the p-value is \u2264 {p}, or \u2265 {fit.significance:.1f} " in text
    assert f"no more than that the p-value is below {high}." in text
    assert "This is not measured" in text
    assert f"fitted to the {fit.n_tail} most different" in text
    within = fit._replace(at_reach=False)
    monkeypatch.setattr(sparker.TestResult, "tail_fit", lambda self: within)
    assert f"Extrapolated, the p-value is {p}, or {fit.significance:.1f} " in report.render(result)
    among = dataclasses.replace(result, above=2)
    assert "xtrapolated" not in Page(report.render(among)).text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0123456, "0.0123"),
        (-4.5678, "\N{MINUS SIGN}4.57"),
        (999.6, "1,000"),
        (123456.7, "123,457"),
        (2.5e6, "2.5 \N{MULTIPLICATION SIGN} 10\u2076"),
        (-3.88e-157, "\N{MINUS SIGN}3.88 \N{MULTIPLICATION SIGN} 10\u207b\u00b9\u2075\u2077"),
    ],
)
def test_numbers_are_for_readers(value, text):
    assert report.words.number(value).replace("\N{NO-BREAK SPACE}", " ") == text


def test_failed_toys_and_notes_are_told(result):
    text = Page(report.render(dataclasses.replace(result, n_failed=3, notes=("a note",)))).text
    assert "3 anomaly-free experiments did not stay finite" in text
    assert "a note" in text


def test_the_table_has_every_row_most_anomalous_first(result):
    masses = np.arange(N_DATA) * 1.5
    page = Page(report.render(result, observables={"mass": masses}))
    rows = np.array(column(page, "row"))
    assert sorted(rows) == list(range(N_DATA))
    f = result.data_log_ratio[rows]
    assert np.all(np.diff(np.abs(f)) <= 0)
    np.testing.assert_allclose(column(page, "f"), f, atol=6e-4)
    np.testing.assert_allclose(column(page, "c"), expit(f), atol=6e-4)
    np.testing.assert_array_equal(column(page, "mass"), masses[rows])
    leading = np.argmax(np.abs(result.data_components), axis=1)
    np.testing.assert_array_equal(column(page, "kernel"), leading[rows])
    for kernel in range(result.data_components.shape[1]):
        expected = result.data_components[rows, kernel]
        np.testing.assert_allclose(column(page, f"f of kernel {kernel}"), expected, atol=6e-4)


def cards_of(found, **extras):
    known = report.rows.Extras(None, None, None, extras, {})
    return report.cards.cards(found, known, report.cards.claims(found))


def with_components(result, data, reference, amplitudes):
    """The result, as if its kernels had these components and amplitudes."""
    n = len(amplitudes)
    mu = np.zeros((len(result.widths), n, 2))
    models = Ensemble(mu, np.tile(amplitudes, (len(mu), 1)), result.models.sigma)
    plane = [np.zeros((len(rows), 2)) for rows in (data, reference)]
    return dataclasses.replace(
        result,
        models=models,
        data_components=np.array(data),
        reference_components=np.array(reference),
        data_plane=plane[0],
        reference_plane=plane[1],
    )


@pytest.fixture(scope="module")
def planted(result):
    """A result whose strongest kernel claims the planted rows."""
    data, reference = np.zeros((N_DATA, 2)), np.zeros((N_REFERENCE, 2))
    data[:N_PLANTED, 0] = np.linspace(2, 3, N_PLANTED)
    data[20:23, 1] = reference[:10, 1] = 1.0
    return with_components(result, data, reference, [3.0, 1.0])


def test_cards_are_in_the_users_units(result):
    named = dataclasses.replace(result, columns=("energy", "angle"))
    text = Page(report.render(named)).text.replace("\N{MINUS SIGN}", "-")
    told = [card for card in cards_of(named) if card.tells]
    assert told
    for card in told:
        energy, angle = result.locations[card.kernel]
        assert f"Sits at energy {energy:.3g} angle {angle:.3g}" in text


def test_a_card_counts_what_the_reference_has_in_the_same_place(result):
    data = np.zeros((100, 2))
    data[:30, 0] = 2.0
    reference = np.zeros((400, 2))
    reference[:20, 0] = 2.0
    found = with_components(result, data, reference, [3.0, 1.0])
    card, idle = cards_of(found)
    assert (card.says, card.claimed, card.expected) == ("many", 30, pytest.approx(5))
    assert idle.says == "idle"
    text = Page(report.render(found)).text
    assert "Kernel 0: too many data Claims 30 data rows where 5 are expected." in text
    assert "Kernel 1 is idle" in text
    found = with_components(result, data[:31], reference[20:], [3.0, 1.0])
    assert "Claims 30 data rows where no reference row lies." in Page(report.render(found)).text


def test_a_place_that_the_data_left_comes_first(result):
    """No data row is near the kernel that matters most."""
    data = np.zeros((100, 2))
    data[:10, 0] = 1.0
    reference = np.zeros((400, 2))
    reference[:40, 0], reference[40:100, 1] = 1.0, -4.0
    found = with_components(result, data, reference, [1.0, -5.0])
    first, second = cards_of(found)
    assert (first.kernel, first.says, first.claimed) == (1, "few", 0)
    assert first.expected == pytest.approx(15)
    assert first.rows == []
    assert (second.kernel, second.says) == (0, "many")
    page = Page(report.render(found))
    assert "Kernel 1: too few data Claims 0 data rows where 15 are expected" in page.text
    selected = [
        given["value"] for tag, given in page.elements if tag == "option" and "selected" in given
    ]
    assert selected == ["1", "0"]


def test_kernels_without_a_place_of_their_own_say_so(result):
    data, reference = np.zeros((100, 6)), np.zeros((400, 6))
    data[:20, 0] = data[:20, 1] = [3.0] * 20  # the same rows twice
    data[50:60, 2], reference[50:90, 2] = 2.0, 2.0  # and back again
    data[50:60, 3], reference[50:90, 3] = -1.9, -1.9
    data[:, 4], reference[:, 4] = np.linspace(0.6, 1, 100), 0.8  # all rows
    data[70:, 5] = 0.05
    found = with_components(result, data, reference, [3.0, 3.0, 2.0, -2.0, 1.0, 1.0])
    made = cards_of(found)
    assert report.cards.axes(made, [card.kernel for card in made]) == [0, 2]
    made = {card.kernel: (card.says, card.other) for card in made}
    assert made[0] == ("many", None)
    assert made[1] == ("same", 0)
    assert made[3] == ("balanced", 2)
    assert made[4] == ("broad", None)
    assert made[5] == ("idle", None)
    text = Page(report.render(found)).text
    assert "Kernel 1 claims the same rows as \u25cf kernel 0" in text
    assert "Kernel 3 is undone by others. Alone it would say that there are too few data" in text
    assert "Kernel 4: a trend Reaches nearly all rows, its f going from 0.6 to 1" in text


def test_a_kernel_that_works_against_no_other_is_not_called_undone(result):
    data, reference = np.zeros((100, 3)), np.zeros((400, 3))
    data[50:60, 0], reference[50:90, 0] = 2.0, 2.0
    data[50:60, 1], reference[50:90, 1] = -1.0, -1.0
    data[:20, 2] = 1.0
    made = {
        card.kernel: card.says
        for card in cards_of(with_components(result, data, reference, [2.0, -1.0, 1.0]))
    }
    assert made == {0: "many", 1: "balanced", 2: "many"}


def test_kernels_where_no_data_are_left_are_not_all_the_same(result):
    data, reference = np.zeros((100, 2)), np.zeros((400, 2))
    reference[:40, 0], reference[100:130, 1] = -3.0, -2.0
    made = cards_of(with_components(result, data, reference, [-3.0, -2.0]))
    assert [(card.kernel, card.says) for card in made] == [(0, "few"), (1, "few")]


def test_cards_show_rows_that_their_kernel_claims_and_no_others(planted):
    first, second = cards_of(planted)
    assert first.rows == list(range(N_PLANTED))[::-1][: report.cards.EXAMPLES]
    assert second.rows == [20, 21, 22]
    text = Page(report.render(planted)).text
    assert "12 of the rows it claims, most active first 14 13 12" in text
    assert "The rows it claims, most active first 20 21 22" in text


def test_cards_say_which_observables_a_kernel_picks_out(planted):
    is_planted = np.arange(N_DATA) < N_PLANTED
    observables = {"dull": np.tile([1.0, 2.0], N_DATA // 2), "planted": is_planted * 1.0}
    text = Page(report.render(planted, observables=observables)).text
    first = text[text.index("Observables, weighted") :]
    assert first.index("planted") < first.index("dull")
    shift = (1 - is_planted.mean()) / is_planted.std()
    assert f"planted 1 {is_planted.mean():.3g} +{shift:.2f}" in first


def test_of_many_observables_cards_show_the_telling(planted):
    rng = np.random.default_rng(0)
    noise = {f"noise {i}": rng.normal(size=N_DATA) for i in range(30)}
    telling = {
        f"planted {i}": (np.arange(N_DATA) < N_PLANTED) + rng.normal(0, 0.1, N_DATA)
        for i in range(2)
    }
    names = [name for name, *_ in cards_of(planted, **noise, **telling)[0].observables]
    assert set(names[:2]) == set(telling)
    assert report.cards.MIN_OBSERVABLES <= len(names) < report.cards.FEATURES


@pytest.fixture(scope="module")
def weighted_and_repeated(result):
    """A result with weights, and the one whose reference has its rows that many times."""
    times = np.random.default_rng(3).integers(0, 4, N_REFERENCE)
    # Rows without weight must not decide how far a kernel's claim reaches.
    times[np.argmax(np.abs(result.reference_components), axis=0)] = 0
    weighted = dataclasses.replace(result, reference_weights=0.3 * times)
    repeated = dataclasses.replace(
        result,
        reference_components=np.repeat(result.reference_components, times, axis=0),
        reference_plane=np.repeat(result.reference_plane, times, axis=0),
    )
    return weighted, repeated, times


def test_kernels_expect_of_weighted_rows_what_they_expect_of_repeated_ones(weighted_and_repeated):
    def expected(found):
        made = cards_of(found)
        return [
            (card.kernel, card.claimed, card.peak, pytest.approx(card.expected)) for card in made
        ]

    weighted, repeated, _ = weighted_and_repeated
    assert expected(weighted) == expected(repeated)
    assert expected(weighted) != expected(dataclasses.replace(weighted, reference_weights=None))
    twice = dataclasses.replace(weighted, expected=2.0 * N_DATA)
    for one, other in zip(expected(weighted), expected(twice), strict=True):
        assert other[3].expected == pytest.approx(2 * one[3].expected)


def test_observables_of_weighted_rows_are_drawn_as_of_repeated_ones(result):
    n_data, n_reference = 600, 3000
    many, rng = large(result, n_data, n_reference), np.random.default_rng(4)
    times = rng.integers(0, 4, n_reference)
    mass, beside = rng.standard_cauchy(n_data), rng.standard_cauchy(n_reference)
    mass[:60] = beside[::7] = np.nan

    claim = report.cards.Claim(np.arange(n_data) < 5, np.zeros(n_reference, bool), 1.0)

    def drawn(beside, weights):
        found = dataclasses.replace(
            many, reference_weights=weights, reference_plane=np.zeros((len(beside), 2))
        )
        of = report.histograms.Beside("mass", mass, beside)
        return report.histograms.histogram(found, of, 0, claim)

    def bars(beside, weights):
        of = drawn(beside, weights).renderers[0].data_source.data
        return np.array([of[name] for name in ("left", "right", "top")])

    found = bars(beside, 0.3 * times)
    np.testing.assert_allclose(found, bars(np.repeat(beside, times), None))
    assert found[2].sum() == pytest.approx(n_data - 60)
    alike = bars(beside, None)
    assert found.shape != alike.shape or np.abs(found - alike).max() > 0.1
    assert drawn(np.where(times, np.nan, beside), times) is None  # known of weightless rows only


def planes_of(found):
    claims = report.cards.claims(found)
    nothing = report.rows.Extras(None, None, None, {}, {})
    shown = report.rows.choose(found, nothing, list(claims), list(claims)[:2], [])
    return report.figures.planes(found, shown, claims, report.axes.plane(found))


def test_weights_are_said_and_drawn(result, weighted_and_repeated):
    weighted, _, times = weighted_and_repeated
    text = Page(report.render(weighted)).text
    telling = times.sum() ** 2 / (times**2).sum()
    assert f"200 weighted reference rows (as telling as {telling:.0f} unweighted)" in text
    assert "the larger it is drawn" in text
    assert "weigh" not in Page(report.render(result)).text.replace("weighted by |f|", "")
    for plot in planes_of(weighted).values():
        drawn = plot.select_one({"name": "reference"}).data["size"]
        np.testing.assert_allclose(drawn**2, 36 * times / times.mean(), rtol=1e-5)


def test_an_expected_number_of_rows_is_said(result):
    known = dataclasses.replace(result, expected=1234.5)
    assert (
        "60 data rows (1,234.5 expected) against 200 reference rows"
        in Page(report.render(known)).text
    )


def test_user_strings_stay_strings(result, hostile):
    page = Page(hostile)
    own = Page(report.render(result))
    assert page.count("script") == own.count("script")
    assert page.count("svg") == 0
    assert not [name for _, given in page.elements for name in given if name.startswith("on")]
    images = [given["src"] for tag, given in page.elements if tag == "img"]
    assert images
    assert all(source.startswith("data:image/png;base64,") for source in images)
    assert ALERT not in hostile
    assert ALERT in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert any(ALERT in text for text in column(page, "text"))


def test_no_user_string_gets_into_the_plots(hostile):
    plots = json.dumps(Page(hostile).json["plots"])
    for mark in ("alert", "text1", "name1", "mass", "href"):
        assert mark not in plots


def test_it_asks_for_nothing_from_elsewhere(hostile):
    page = Page(hostile)
    for tag, given in page.elements:
        assert tag not in ("iframe", "object", "embed", "base")
        for name in ("src", "href", "action", "srcset"):
            assert re.match(r"data:|#", given.get(name) or "#"), (tag, given)
    (policy,) = [given["content"] for _, given in page.elements if given.get("http-equiv")]
    assert policy.startswith("default-src 'none';")
    scripts = re.search(r"script-src ([^;]*);", policy)[1].split()
    assert all(re.fullmatch(r"'sha256-[\w+/]{43}='", source) for source in scripts)


def large(result, n_data, n_reference):
    """The same result, as if of many more rows."""
    rng = np.random.default_rng(0)
    data, reference = rng.integers(0, N_DATA, n_data), rng.integers(0, N_REFERENCE, n_reference)
    noise = rng.uniform(0.9, 1.1, (n_data, 1))
    return dataclasses.replace(
        result,
        data_components=result.data_components[data] * noise,
        reference_components=result.reference_components[reference],
        data_plane=result.data_plane[data] * noise,
        reference_plane=result.reference_plane[reference],
    )


def test_twenty_thousand_rows_stay_below_5_mb(result):
    n = 20_000
    many = large(result, n, 60_000)
    rng = np.random.default_rng(2)
    photos = list(rng.integers(0, 255, (40, 80, 120, 3)).astype(np.uint8))
    text = report.render(
        many,
        texts=["\u4e2d\u6587<&" * 300] * n,
        names=[f"name {i}" for i in range(n)],
        images=[photos[i % 40] for i in range(n)],
        observables={f"observable {i}": rng.normal(size=n) for i in range(30)},
        reference_observables={"observable 0": rng.normal(size=60_000)},
    )
    assert len(text.encode()) < 5_000_000
    page = Page(text)
    rows = column(page, "row")
    assert len(set(rows)) == len(rows) == 4000
    assert set(rows[:2000]) == set(np.argsort(-np.abs(many.data_log_ratio))[:2000].tolist())
    assert "Of 20,000 data rows, plots and table show the 2,000 with the largest |f|" in page.text
    assert "Pictures are kept for the" in page.text


def test_the_same_rows_are_drawn_every_time(result):
    many = large(result, 6000, 300)
    first, second = (column(Page(report.render(many)), "row") for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "options",
    [
        {"n_features": 1},
        {"config": sparker.FitConfig(n_kernels=1)},
        ONE,
    ],
    ids=["feature", "kernel", "both"],
)
def test_one_is_enough(options):
    page = Page(report.render(run(**options)))
    assert len(column(page, "row")) == N_DATA


def test_a_statistic_without_kernels_is_told_without_them():
    found = run(statistic=mean_shift)
    page = Page(report.render(found, texts=["a"] * N_DATA))
    assert f"p-value {found.p_value:.3g}" in page.text
    assert "fits no kernels" in page.text
    assert "rows" not in page.json
    assert page.count("article") == 0
    assert "Rows too many" not in page.text
    assert "show where to look" not in page.text


def samples(n_features):
    """What ``run`` tested."""
    rng = np.random.default_rng(0)
    reference, data = (rng.normal(size=(n, n_features)) for n in (N_REFERENCE, N_DATA))
    data[:N_PLANTED] = 3 + 0.1 * rng.normal(size=(N_PLANTED, n_features))
    return reference, data


@pytest.mark.parametrize("preprocess", [sparker.standardise, sparker.whiten, sparker.unchanged])
def test_two_features_are_drawn_as_they_are(preprocess):
    found = run(preprocess=preprocess)
    drawn = report.axes.plane(dataclasses.replace(found, columns=("energy", ALERT)))
    for rows, points in zip((drawn.reference, drawn.data), samples(2), strict=True):
        np.testing.assert_allclose(rows, points, atol=1e-5)
    assert drawn.labels == ("feature 0", "feature 1")
    assert drawn.notes == [f"across: energy, up: {ALERT}"]
    assert [name for name, *_ in drawn.features] == ["energy", ALERT]


def test_one_feature_is_drawn_with_its_score():
    found = run(n_features=1)
    drawn = report.axes.plane(dataclasses.replace(found, columns=("mass",)))
    np.testing.assert_allclose(drawn.data[:, 0], samples(1)[1][:, 0], atol=1e-5)
    np.testing.assert_array_equal(drawn.data[:, 1], found.data_log_ratio)
    np.testing.assert_array_equal(drawn.reference[:, 1], found.reference_log_ratio)
    assert drawn.labels == ("feature 0", "f")
    assert drawn.notes == ["across: mass, up: f"]


def test_columns_that_were_left_out_or_named_alike_do_not_confuse_the_axes():
    reference, data = samples(2)
    wide = [np.column_stack([np.ones(len(rows)), 1e7 * rows]) for rows in (reference, data)]
    found = sparker.test(*wide, n_toys=20, widths=sparker.WidthConfig(steps=40, n_widths=3))
    assert found.transform.dropped.tolist() == [0]
    drawn = report.axes.plane(dataclasses.replace(found, columns=("dull", "same", "same")))
    np.testing.assert_allclose(drawn.data, data, atol=1e-5)
    assert drawn.labels == ("feature 1 / 10\u2077", "feature 2 / 10\u2077")
    assert [name for name, *_ in drawn.features] == ["same", "same"]
    assert Page(report.render(dataclasses.replace(found, columns=("dull", "same", "same"))))


def test_principal_coordinates_are_explained_where_they_can_be():
    found = run(n_features=12, preprocess=sparker.standardise)
    assert report.axes.plane(found).features == []
    directions = np.zeros((12, 2))
    directions[[3, 7], 0] = 0.8, -0.6
    directions[:, 1] = 12**-0.5  # a bit of everything
    told = dataclasses.replace(found, directions=directions)
    notes = report.axes.plane(told).notes
    assert notes[1:] == ["across, mostly: 0.8 feature 3, \N{MINUS SIGN}0.6 feature 7"]
    assert notes[1] in Page(report.render(told)).text


@pytest.mark.parametrize(
    ("preprocess", "label"),
    [
        ("decorrelate", "kernel width, in units of the fit"),
        ("standardise", "kernel width, in standard deviations"),
        ("unchanged", "kernel width, in the features' units"),
        (ALERT, "kernel width"),
    ],
)
def test_widths_are_given_with_what_they_are_measured_in(result, preprocess, label):
    found = dataclasses.replace(result, preprocess=preprocess)
    plots = report.figures.across_widths(found)
    assert {plot.xaxis[0].axis_label for plot in plots.values()} == {label}


def draw(result, values, beside=None, claimed=()):
    of = report.histograms.Beside(
        "x", np.array(values), np.array(values if beside is None else beside)
    )
    n_data, n_reference = len(of.data), len(of.reference)
    found = dataclasses.replace(
        result,
        data_plane=np.zeros((n_data, 2)),
        reference_plane=np.zeros((n_reference, 2)),
        expected=None,
    )
    claim = report.cards.Claim(
        np.isin(np.arange(n_data), claimed), np.zeros(n_reference, bool), 1.0
    )
    return report.histograms.histogram(found, of, 0, claim)


def bins(plot, renderer=0):
    of = plot.renderers[renderer].data_source.data
    return np.array(of["left"]), np.array(of["right"]), np.array(of["top"])


def test_whole_numbers_lie_in_the_middle_of_their_bins(result):
    left, right, top = bins(draw(result, [0, 1, 1, 2, 4.0]))
    np.testing.assert_array_equal((left + right) / 2, [0, 1, 2, 3, 4])
    np.testing.assert_allclose(top, [1, 2, 1, 0, 1])
    left, right, _ = bins(draw(result, np.arange(1000.0)))
    assert np.all((right - left) % 1 == 0)
    assert np.all(left % 1 == 0.5)
    assert bins(draw(result, [5.0, 5.0]))[2].tolist() == [2]


@pytest.mark.parametrize(
    ("size", "label"), [(1e-9, "value / 10\u207b\u2079"), (1e9, "value / 10\u2079"), (1, "value")]
)
def test_axes_have_no_long_numbers(result, size, label):
    plot = draw(result, size * np.linspace(1.1, 2.9, 200))
    assert plot.xaxis[0].axis_label == label
    left, right, _ = bins(plot)
    np.testing.assert_allclose([left[0], right[-1]], [1.1, 2.9], rtol=0.02)


@pytest.mark.parametrize(
    "values", [[1e300, -1e300], [0.1 + 1e-17] * 3, [1e20, 1e20], [2.0**60, 2.0**61]]
)
def test_odd_numbers_are_drawn_too(result, values):
    left, right, top = bins(draw(result, values))
    assert np.all(right > left)
    assert np.all(np.isfinite(top))
    assert top.sum() == pytest.approx(len(values))


def test_few_rows_far_out_are_no_strays_if_a_kernel_claims_them(result):
    values = np.concatenate([np.linspace(0, 1, 5000), [50.0, 51.0, 52.0, 1e6]])
    assert bins(draw(result, values))[1][-1] < 2
    plot = draw(result, values, claimed=[5000, 5001, 5002])
    assert 51.5 < bins(plot)[1][-1] < 60
    assert bins(plot, 1)[2].sum() == pytest.approx(3)


def test_steep_distributions_have_a_logarithmic_scale(result):
    rng = np.random.default_rng(0)
    steep, flat = draw(result, rng.exponential(size=5000)), draw(result, rng.normal(size=5000))
    assert type(steep.y_scale).__name__ == "LogScale"
    assert type(flat.y_scale).__name__ == "LinearScale"
    assert min(steep.renderers[0].data_source.data["top"]) >= steep.y_range.start > 0


def test_of_many_observables_the_telling_are_drawn_and_the_rest_counted(planted):
    rng = np.random.default_rng(0)
    observables = {f"noise {i}": rng.normal(size=N_DATA) for i in range(29)}
    observables["planted"] = (np.arange(N_DATA) < N_PLANTED) * 1.0
    reference = {name: rng.normal(size=N_REFERENCE) for name in observables}
    page = Page(report.render(planted, observables=observables, reference_observables=reference))
    headings = [
        given["aria-label"] for _, given in page.elements if "observable" in given.get("id", "")
    ]
    assert len(headings) == report.histograms.HISTOGRAMS + 2  # features
    assert "Histogram of planted of data and reference" in headings
    assert "Of the 30 observables the 12 are drawn in which that kernel" in page.text


def test_few_features_are_drawn_beside_the_reference(result):
    named = dataclasses.replace(result, columns=("energy", "angle"))
    page = Page(
        report.render(
            named,
            observables={"m": np.ones(N_DATA)},
            reference_observables={"m": np.ones(N_REFERENCE)},
        )
    )
    assert "Features and observables beside the reference" in page.text
    for name in ("energy", "angle", "m"):
        assert any(
            given.get("aria-label") == f"Histogram of {name} of data and reference"
            for _, given in page.elements
        )
    assert "Features beside the reference" in Page(report.render(named)).text


def test_many_features_are_named_only_if_they_have_names(result):
    found = run(n_features=12)
    assert "Sits" not in Page(report.render(found)).text
    named = dataclasses.replace(found, columns=tuple(f"gene {i}" for i in range(12)))
    assert "Sits, in the features farthest from average, at gene" in Page(report.render(named)).text


def test_more_kernels_than_columns(result):
    n = result.data_components.shape[1]
    mu, a, sigma = result.models
    many = dataclasses.replace(
        result,
        models=Ensemble(np.tile(mu, (1, 6, 1)), np.tile(a, (1, 6)), sigma),
        data_components=np.tile(result.data_components, 6),
        reference_components=np.tile(result.reference_components, 6),
    )
    page = Page(report.render(many))
    others = re.findall(r"Kernel \d+ (?:is|claims)", page.text)
    assert page.count("article") + len(others) == report.cards.CARDS < 6 * n
    assert f"components of 8 of the {6 * n} kernels" in page.text


def test_pictures_of_all_kinds(result, tmp_path):
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (90, 200, 3)).astype(np.uint8)).save(tmp_path / "a.jpg")
    Image.new("P", (10, 10)).save(tmp_path / "b.png")
    kinds = [
        tmp_path / "a.jpg",
        str(tmp_path / "b.png"),
        np.zeros((5, 5), bool),
        np.full((5, 5, 1), np.nan),
        rng.random((300, 20, 4), np.float32),
        np.zeros((4, 4), np.uint8),
    ]
    page = Page(report.render(result, images=[kinds[i % 6] for i in range(N_DATA)]))
    assert all(picture.startswith("data:image/png;base64,") for picture in column(page, "image"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": ["a"]}, "texts has 1 entries, but there are 60 data rows"),
        ({"texts": "a" * N_DATA}, "texts must be a sequence"),
        ({"names": ["a"] * 61}, "names has 61 entries"),
        ({"images": []}, "images has 0 entries"),
        ({"images": ["nowhere.png"] * N_DATA}, r"images\[\d+\] cannot be shown.*nowhere"),
        ({"images": [np.zeros(3)] * N_DATA}, r"images\[\d+\] cannot be shown: its shape is \(3,\)"),
        ({"images": [np.zeros((3, 3), int)] * N_DATA}, "not uint8 or floats"),
        ({"observables": {"m": [1.0]}}, r"observables\['m'\] has 1 entries"),
        ({"observables": {"m": ["a"] * N_DATA}}, "must be numbers"),
        ({"observables": {"m": np.zeros((N_DATA, 2))}}, "must be 1-D"),
        ({"reference_observables": {"m": np.zeros(N_REFERENCE)}}, "not among the observables"),
        (
            {
                "observables": {"m": np.zeros(N_DATA)},
                "reference_observables": {"m": np.zeros(N_DATA)},
            },
            "but there are 200 reference rows",
        ),
        ({"alpha": 0.0}, "alpha must lie between 0 and 1"),
        ({"alpha": 5}, "alpha must lie between 0 and 1"),
    ],
)
def test_bad_input_is_named(result, options, message):
    with pytest.raises(ValueError, match=message):
        report.render(result, **options)


def test_files_are_written_whole_or_not_at_all(result, tmp_path):
    path = tmp_path / "re port.html"
    report.write(path, result, title="one")
    report.write(path, result, title="two")
    assert "<title>two</title>" in path.read_text(encoding="utf-8")
    (tmp_path / "folder").mkdir()
    for bad in (tmp_path / "folder", tmp_path / "none" / "a.html", path / "a.html"):
        with pytest.raises(ValueError, match="could not be written to"):
            report.write(bad, result)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "re port.html"]


# In a real browser

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
browser_only = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver not installed"),
]


@contextlib.contextmanager
def chromium():
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (
            "headless",
            "no-sandbox",
            "disable-gpu",
            "disable-quic",
            "no-first-run",
            "disable-background-networking",
            "disable-component-update",
            "disable-sync",
            f"user-data-dir={profile}",
        ):
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path=DRIVER)
        driver = webdriver.Chrome(options=options, service=service)
        try:
            yield driver
        finally:
            driver.quit()


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


@pytest.fixture
def opened(browser, result, extras, hostile, tmp_path):
    """The hostile report, open in a browser."""
    path = tmp_path / "report.html"
    path.write_text(hostile, encoding="utf-8")
    size(browser, 1280, 900)
    browser.get(path.as_uri())
    wait(lambda: browser.execute_script("return document.body.dataset.ready") == "yes")
    return browser


def size(browser, width, height):
    override = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", override)


def wait(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def first_column(browser):
    return [
        int(row)
        for row in browser.execute_script(
            "return [...document.querySelectorAll('#table tbody tr')]"
            ".map((line) => line.cells[0].textContent)"
        )
    ]


def text_of(browser, selector):
    return browser.execute_script(f"return document.querySelector('{selector}').textContent")


def on_screen(browser, plot, x, y):
    """Where the rows of the table lie in the window, from Bokeh's own view of the plot."""
    return browser.execute_script(
        """
        const [name, x, y] = arguments;
        const source = Bokeh.documents[0].get_model_by_name("data");
        const view = Object.values(Bokeh.index).find((view) => view.model.name === name)
          || [...Bokeh.index.roots].find((view) => view.model.name === name);
        view.el.scrollIntoView({block: "center"});
        const box = view.canvas_view.el.getBoundingClientRect();
        const xs = view.frame.x_scale.v_compute(source.data[x]);
        const ys = view.frame.y_scale.v_compute(source.data[y]);
        return Array.from(xs, (value, i) => [box.x + value, box.y + ys[i]]);
        """,
        plot,
        x,
        y,
    )


def mouse(browser, kind, at, **options):
    event = {"type": kind, "x": at[0], "y": at[1], **options}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def drag(browser, start, end):
    held = {"button": "left", "buttons": 1}
    mouse(browser, "mouseMoved", start)
    mouse(browser, "mousePressed", start, clickCount=1, **held)
    for share in (0.3, 0.6, 1.0):
        at = [a + (b - a) * share for a, b in zip(start, end, strict=True)]
        mouse(browser, "mouseMoved", at, **held)
        time.sleep(0.05)
    mouse(browser, "mouseReleased", end, clickCount=1, button="left")


class TestInABrowser:
    pytestmark = browser_only

    def test_it_opens_without_errors_or_requests(self, opened):
        opened.get_log("performance")  # the browser's own start page
        opened.refresh()
        wait(lambda: opened.execute_script("return document.body.dataset.ready") == "yes")
        logged = opened.get_log("browser")
        assert [line["message"] for line in logged if line["level"] != "INFO"] == []
        asked = [
            message["params"]["request"]["url"]
            for line in opened.get_log("performance")
            if (message := json.loads(line["message"])["message"])["method"]
            == "Network.requestWillBeSent"
        ]
        assert asked
        allowed = r"file:.*/report\.html$|data:|blob:"
        assert [url for url in asked if not re.match(allowed, url)] == []

    def test_every_plot_is_drawn(self, opened):
        empty = opened.execute_script(
            "return [...document.querySelectorAll('.plot')]"
            ".filter((plot) => plot.children.length !== 1 || plot.offsetHeight < 200)"
            ".map((plot) => plot.id)"
        )
        assert empty == []

    def test_hostile_strings_stay_inert(self, opened):
        from selenium.common.exceptions import NoAlertPresentException

        with pytest.raises(NoAlertPresentException):
            _ = opened.switch_to.alert
        bad = "document.querySelectorAll('main svg, [onerror], [onload], img:not([src^=data])')"
        assert opened.execute_script(f"return {bad}.length") == 0
        assert opened.execute_script("return document.scripts.length") == 5
        assert ALERT in text_of(opened, "#table tbody")
        # Even markup that got into the page by some other way could do nothing.
        opened.execute_script(
            "document.querySelector('main').insertAdjacentHTML('beforeend',"
            " '<img src=x onerror=\"window.ran = true\">')"
        )
        time.sleep(0.2)
        assert opened.execute_script("return window.ran") is None

    @pytest.mark.parametrize(("plot", "x", "y"), [("components", "u", "v"), ("plane", "x", "y")])
    def test_pointing_shows_the_row(self, opened, hostile, plot, x, y):
        rows = Page(hostile).json["rows"]["rows"]
        places = np.array(on_screen(opened, plot, x, y))
        # The row with the most space around it, so that no other is pointed at.
        apart = np.linalg.norm(places[:, None] - places, axis=2)
        np.fill_diagonal(apart, np.inf)
        isolated = int(np.argmax(apart[1:].min(1))) + 1
        mouse(opened, "mouseMoved", [10, 10])
        mouse(opened, "mouseMoved", places[isolated].tolist())
        wait(lambda: text_of(opened, "#pointed").startswith(f"row{rows[isolated][0]}name"))
        shown = text_of(opened, "#pointed")
        name, image, text = rows[isolated][1], rows[isolated][2], rows[isolated][6]
        assert name in shown
        assert text in shown
        assert f"mass {ALERT}{rows[isolated][7]}" in shown
        assert opened.execute_script("return document.querySelector('#pointed img').src") == image

    def test_a_box_in_one_plot_filters_the_table(self, opened, hostile):
        rows = [row[0] for row in Page(hostile).json["rows"]["rows"]]
        places = np.array(on_screen(opened, "plane", "x", "y"))
        planted = places[np.isin(rows, np.arange(N_PLANTED))]
        low, high = planted.min(0) - 6, planted.max(0) + 6
        inside = np.all((places > low) & (places < high), axis=1)
        assert N_PLANTED <= inside.sum() < N_DATA
        drag(opened, low.tolist(), high.tolist())
        expected = [row for row, kept in zip(rows, inside, strict=True) if kept]
        wait(lambda: first_column(opened) == expected)
        assert text_of(opened, "#count") == f"{inside.sum()} rows selected,"
        assert "of the selection" in text_of(opened, "#found")
        opened.execute_script("document.querySelector('.controls .unselect').click()")
        assert first_column(opened) == rows[:25]
        selected = "return Bokeh.documents[0].get_model_by_name('data').selected.indices.length"
        assert opened.execute_script(selected) == 0

    def test_a_tap_selects_one_row(self, opened, hostile):
        rows = [row[0] for row in Page(hostile).json["rows"]["rows"]]
        places = np.array(on_screen(opened, "plane", "x", "y"))
        apart = np.linalg.norm(places[:, None] - places, axis=2)
        np.fill_diagonal(apart, np.inf)
        isolated = int(np.argmax(apart.min(1)))
        at = places[isolated].tolist()
        mouse(opened, "mousePressed", at, clickCount=1, button="left", buttons=1)
        mouse(opened, "mouseReleased", at, clickCount=1, button="left")
        wait(lambda: first_column(opened) == [rows[isolated]])

    def test_headings_sort_and_the_filter_filters(self, opened, hostile):
        table = Page(hostile).json["rows"]
        click = "document.querySelector('#table th:nth-child({}) button').click()"
        opened.execute_script(click.format(1))
        assert first_column(opened) == list(range(N_DATA - 1, N_DATA - 26, -1))
        opened.execute_script(click.format(1))
        assert first_column(opened) == list(range(25))
        sort = "return document.querySelector('#table th').getAttribute('aria-sort')"
        assert opened.execute_script(sort) == "ascending"
        opened.execute_script("document.getElementById('next').click()")
        assert first_column(opened) == list(range(25, 50))

        box = opened.find_element("id", "filter")
        box.send_keys("TEXT7")
        assert first_column(opened) == [7]
        box.clear()
        box.send_keys("no such thing")
        assert first_column(opened) == []
        box.clear()
        box.send_keys("text1")
        assert first_column(opened) == [1, *range(10, 20)]

        # Rows without a value come last, whichever way the others are sorted.
        labels = [column["label"] for column in table["columns"]]
        place = labels.index(HOSTILE[3])
        known = {row[0]: row[place] for row in table["rows"]}
        for _ in range(2):
            opened.execute_script(click.format(place + 1))
            assert known[first_column(opened)[-1]] is None

    def test_the_download_is_the_table_as_shown(self, opened, hostile):
        opened.find_element("id", "filter").send_keys("text5")
        opened.execute_script(
            "URL.createObjectURL = (blob) => { blob.text().then((t) => { window.csv = t; });"
            " return '#'; }; document.getElementById('download').click()"
        )
        wait(lambda: opened.execute_script("return window.csv"))
        content = opened.execute_script("return window.csv")
        lines = list(csv.DictReader(io.StringIO(content.lstrip("\ufeff"), newline="")))
        assert sorted(int(line["row"]) for line in lines) == [5, *range(50, 60)]
        # Row 5's text starts like a formula: a spreadsheet must not run it.
        (five,) = [line for line in lines if line["row"] == "5"]
        assert five["text"] == "'=1+1 text5"
        assert "image" not in five

    def test_other_kernels_can_be_drawn(self, opened):
        before = on_screen(opened, "components", "u", "v")
        opened.execute_script(
            "const choice = document.querySelectorAll('select.axis')[1]; choice.value ="
            " choice.options[2].value; choice.dispatchEvent(new Event('change'))"
        )
        same = (
            "const s = Bokeh.documents[0].get_model_by_name('data').data;"
            "const k = document.querySelectorAll('select.axis')[1].value;"
            "return s.v.every((value, i) => value === s['k' + k][i])"
        )
        assert opened.execute_script(same)
        wait(lambda: on_screen(opened, "components", "u", "v") != before)

    @pytest.mark.parametrize("width", [320, 375, 1280])
    def test_the_page_never_scrolls_sideways(self, opened, width):
        size(opened, width, 800)
        needed = "return document.documentElement.scrollWidth"
        wait(lambda: opened.execute_script(needed) <= width)
        wide = (
            "return [...document.querySelectorAll('.plot > *')]"
            ".filter((plot) => plot.getBoundingClientRect().right > innerWidth).length"
        )
        wait(lambda: opened.execute_script(wide) == 0)

    @pytest.mark.parametrize("width", [320, 1280])
    def test_nothing_sticks_out_of_its_card(self, opened, width):
        size(opened, width, 800)
        out = (
            "return [...document.querySelectorAll('.card, .verdict, .beside')].flatMap((card) =>"
            "[...card.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right >"
            "card.getBoundingClientRect().right + 1).map((one) => one.outerHTML))"
        )
        wait(lambda: opened.execute_script(out) == [])

    def test_paper_gets_what_is_folded_away(self, opened):
        unfolded = "return document.querySelector('details').open"
        assert not opened.execute_script(unfolded)
        opened.get_log("browser")  # of what came before
        opened.execute_cdp_cmd("Page.printToPDF", {})
        assert opened.execute_script(unfolded)
        logged = opened.get_log("browser")
        assert [line["message"] for line in logged if line["level"] != "INFO"] == []

    @pytest.mark.parametrize("touch", [True, False])
    def test_a_finger_scrolls_the_page_until_a_tool_is_chosen(self, opened, touch):
        opened.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": touch})
        try:
            opened.refresh()
            wait(lambda: opened.execute_script("return document.body.dataset.ready") == "yes")
            active = (
                "return Bokeh.documents[0].get_model_by_name(arguments[0]).toolbar.tools"
                ".filter((tool) => tool.active).map((tool) => tool.type)"
            )
            for plot in ("components", "plane"):
                tools = opened.execute_script(active, plot)
                assert ("BoxSelectTool" in tools) is not touch
                assert "TapTool" in tools
        finally:
            opened.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})

    def test_dark_and_light_ink(self, opened):
        ink = (
            "return Bokeh.documents[0].roots()[0].below[0].axis_label_text_color"
            " + getComputedStyle(document.body).color"
        )
        for theme, axis, text in (
            ("dark", "#e6edf3", "rgb(230, 237, 243)"),
            ("light", "#1f2328", "rgb(31, 35, 40)"),
        ):
            media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            wait(lambda axis=axis, text=text: opened.execute_script(ink) == axis + text)

    @pytest.mark.parametrize("options", [ONE, {"statistic": mean_shift}], ids=["one", "no"])
    def test_with_one_kernel_or_none_there_are_still_plots(self, browser, tmp_path, options):
        path = tmp_path / "report.html"
        report.write(path, run(**options))
        browser.get_log("browser")
        browser.get(path.as_uri())
        wait(lambda: browser.execute_script("return document.body.dataset.ready") == "yes")
        plots = 7 if options is ONE else 3
        drawn = "return document.querySelectorAll('.plot > *').length"
        assert browser.execute_script(drawn) == plots
        assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []
