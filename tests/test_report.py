"""The report: says what the result says, opens offline, and runs nothing of what it is given."""

import base64
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
import pandas as pd
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from plain_encoding import plain_encoding
from tests.words import found as phrases

import sparker
from sparker import report
from sparker.calibration.tail import fit_tail
from sparker.engine.ensemble import Ensemble
from sparker.findings import text as texts
from sparker.findings.bound import AtLeast
from sparker.findings.decision import Level
from sparker.findings.regions import Condition
from sparker.report.histograms import Beside, View, histogram
from sparker.report.thumbnails import thumbnails
from sparker.tables.checks import Caution

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


def called(*names):
    """Columns of numbers by these names."""
    return plain_encoding(names, len(names))


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


def shift(rng, sample):
    """One number, however many columns."""
    return np.linalg.norm(mean_shift(rng, sample))


@functools.cache
def run(n_features=2, **options):
    rng = np.random.default_rng(0)
    reference, data = (rng.normal(size=(n, n_features)) for n in (N_REFERENCE, N_DATA))
    data[:N_PLANTED] = 3 + 0.1 * rng.normal(size=(N_PLANTED, n_features))
    if options.pop("in_groups", False):
        options["groups"] = np.arange(N_REFERENCE) // 2, 500 + np.arange(N_DATA) // 2
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
    }


@pytest.fixture(scope="module")
def hostile(result, extras):
    # One row of the first region is not flagged, so that the two differ.
    p_values = result.answers.row_p_values.copy()
    p_values[result.answers.regions[0].rows[0]] = 1.0
    awkward = dataclasses.replace(
        result,
        answers=result.answers._replace(row_p_values=p_values),
        encoding=called(HOSTILE[1], f"{HOSTILE[3]} column"),
        notes=(HOSTILE[0], HOSTILE[2]),
        files=(HOSTILE[0], HOSTILE[2]),
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


def of_level(result, alpha):
    return dataclasses.replace(result, level=Level.of(alpha))


def test_it_says_what_the_result_says(result):
    page = Page(report.render(of_level(result, 0.06), command="sparker test a b"))
    assert result.above == 0
    p = f"{result.p_value:.2g}"
    sigmas = f"{result.significance:.1f} sigma"
    assert "Significant difference 60 data rows and 200 reference rows, 2 columns " in page.text
    assert f"p = {p} <= alpha = 0.06, {sigmas}; 20 toys How many at least" in page.text
    assert "0 of 20 toys have a test statistic at least as large as the data" in page.text
    low = result.significance_interval[0]
    assert f"p would be between 0 and {result.interval[1]:.2g}, significance {low:.2f} or more" in (
        page.text
    )
    assert f"{texts.component_test(result)} has the smallest p-value" in page.text
    assert "sparker test a b" in page.text
    assert f"seed {result.seed}" in page.text
    assert result.versions["jax"] in page.text


@pytest.fixture(scope="module")
def fine(result):
    """The same, if nothing stood out: its regions are chance, and its bounds nothing."""
    found = result.answers
    regions = tuple(region._replace(p_value=0.4) for region in found.regions)
    columns = tuple(one._replace(p_value=0.4) for one in found.columns)
    answers = found._replace(at_least=AtLeast(0, 0), regions=regions, columns=columns)
    return dataclasses.replace(result, p_value=0.6, above=12, interval=(0.3, 0.8), answers=answers)


@pytest.fixture(scope="module")
def few(result):
    return of_level(dataclasses.replace(result, p_value=0.1, above=1, interval=(0.0, 0.2)), 0.01)


def test_its_sentences_are_those_of_the_terminal(result, fine, few):
    in_groups = run(statistic=mean_shift, in_groups=True)
    for found in (result, fine, few, run(statistic=mean_shift), in_groups):
        text = Page(report.render(found)).text
        summary = " ".join(found.summary().split())
        said = [texts.outcome(found), texts.because(found), texts.compared(found)]
        answers = [text for label, text in texts.answers(found) if label != "Strongest"]
        for sentence in [*said, *answers, *texts.notes(found)]:
            assert sentence in summary
        head = dict(reversed([*texts.answers(found)]))
        shown = [head[label] for label in ("How many", "Where", "Region", "Rows") if label in head]
        assert len(shown) >= (3 if found.is_significant else 0)
        for sentence in [*said, *texts.next_steps(found), *shown]:
            assert sentence.casefold() in text.casefold()
        for label, sentence in texts.how_sure(found):
            assert f"{label} {sentence}" in text


def test_the_three_outcomes_have_a_head_each(result, fine, few):
    suspects = ("How many", "most anomalous:", "anomalous (95", "missing from the data")
    for found, headline, step in (
        (result, "Significant difference", "Confirm it on new rows"),
        (fine, "No significant difference", "This does not prove"),
        (few, "Too few toys to decide at this alpha", "at least 99 for alpha = 0.01"),
    ):
        page = Page(report.render(found))
        before, _, after = page.text.partition("What to do now")
        assert headline in before
        assert step in after
        assert any(text in page.text for text in suspects) == (found is result)
        assert (texts.BY_CHANCE in page.text) == (found is not result)
        shown = "least 99 toys are needed" in before, "<= alpha" in before
        assert shown == (found is few, found is result)


def test_one_p_value_stands_outside_of_how_sure(result):
    found = dataclasses.replace(result, answers=None, p_value=0.0321, level=Level(0.04, True))
    text = Page(report.render(found)).text
    before, _, after = text.rpartition("How sure Toys")
    assert before.count("0.032") == 1
    assert "p = 0.032" in after


def test_pages_are_in_the_words_of_the_field(result, fine, few):
    for found in (result, fine, few, dataclasses.replace(result, answers=None)):
        # All but the name of a setting.
        text = Page(report.render(found)).text.replace("'lonely':", "")
        assert [*phrases(text)] == []


def test_the_head_has_one_picture(result, fine, extras):
    def head(found, **options):
        page = report.render(found, **options)
        before = page.partition('aria-label="Sections"')[0]
        shown = ["null_scores" in before, 'id="region"' in before, "most anomalous rows" in before]
        assert page.count('id="null_scores"') == 1
        return shown, Page(before)

    assert head(result)[0] == [True, True, False]
    assert head(fine)[0] == head(fine, images=extras["images"])[0] == [True, False, False]
    shown, page = head(result, images=extras["images"])
    assert shown == [False, False, True]
    rows = [f"row {row}" for row in result.ranking[: report.PICTURES]]
    assert [given["alt"] for tag, given in page.elements if tag == "img"] == rows
    shown, page = head(result, texts=[f"text {i} " + 50 * "long " for i in range(N_DATA)])
    assert shown == [False, False, True]
    first = result.ranking[: report.TEXTS]
    assert all(f"row {row} text {row} long" in page.text for row in first)
    assert page.text.count(" text ") == len(first)


def test_warnings_stand_before_the_decision_and_notes_after(result):
    found = dataclasses.replace(
        result,
        warnings=(Caution("order", "rows are sorted"), Caution("unseen values", "red is new")),
        notes=("a note",),
        n_failed=3,
    )
    text = Page(report.render(found)).text
    order = [
        text.index(one)
        for one in (
            "Warning: rows are sorted",
            "Significant difference 60 data rows",
            "What to do now",
            "New: red is new",
            "Note: a note",
            "Note: 3 toys had no finite test statistic",
        )
    ]
    assert order == sorted(order)


def test_the_head_says_what_was_tested(result):
    named = dataclasses.replace(result, files=("old.csv", "new.csv"), made="2030-01-02T03:04:05")
    text = Page(report.render(named)).text
    assert "new.csv against the reference old.csv : 60 data rows and 200 reference rows" in text
    assert "Made 2030-01-02 03:04" in text
    assert f"with sparker {result.versions['sparker']}" in text
    assert ".csv" not in Page(report.render(result)).text


def test_there_is_no_zero_beside_a_difference(result, fine):
    def text(found, bound):
        answers = found.answers._replace(at_least=bound)
        return Page(report.render(dataclasses.replace(found, answers=answers))).text

    zero = r"\b0 or more|at least 0\b"
    for bound in (AtLeast(3, 0), AtLeast(0, 3), AtLeast(2, 2)):
        assert not re.search(zero, text(result, bound), re.IGNORECASE)
    missing = text(result, AtLeast(0, 3))
    assert "How many at least 3 rows are missing from the data (95 % confidence)" in missing
    assert "data rows are anomalous" not in missing
    for found in (of_level(fine, 0.7), fine):
        nothing = text(found, AtLeast(0, 0))
        assert ("no lower bound above 0" in nothing) == found.is_significant
        assert not re.search(zero, nothing, re.IGNORECASE)
    assert "no bound is given" in text(result, None)


def views_of(page):
    return [given for tag, given in page.elements if given.get("name") == "view"]


def test_significant_regions_can_be_chosen(result):
    region = result.answers.regions[0]
    assert region in result.significant_regions
    page = Page(report.render(result))
    assert len(views_of(page)) == 1 + len(result.significant_regions)
    rule, p = region.rule(result.features), texts.p_text(region.p_value)
    assert f"Region 1: {rule} significant (p = {p})" in page.text
    assert f"{region.n_data} data rows {texts.expected(region)}" in page.text
    assert f"excess of at least {region.interval[0]:.0f} rows" in page.text
    rows = page.json["rows"]
    assert {rows["rows"][i][0] for i in rows["views"][1]} == set(region.rows)
    flagged = {rows["rows"][i][0] for i in rows["views"][0]}
    assert flagged == set(np.flatnonzero(result.listed(0.2)).tolist())


def with_regions(result, *regions):
    return dataclasses.replace(result, answers=result.answers._replace(regions=regions))


def test_regions_that_are_not_significant_are_not_shown(result):
    held = result.answers.regions[0]
    open_one = held._replace(p_value=0.3)
    text = Page(report.render(with_regions(result, held, open_one))).text
    assert "not significant" not in text
    page = Page(report.render(with_regions(result, open_one, open_one)))
    assert views_of(page) == []
    assert "no region is significant" in page.text
    lack = held._replace(lack=True, n_data=1, expected=9.0, too_many=-8, interval=(-12.0, -3.0))
    page = Page(report.render(with_regions(result, lack)))
    assert "1 data row 9.0 expected deficit of at least 3 rows" in page.text
    # Rows that are there are not missing.
    assert "region" not in [one["label"] for one in page.json["rows"]["columns"]]


def test_without_a_significant_difference_no_region_and_no_row_is_marked(fine):
    page = Page(report.render(fine))
    assert views_of(page) == []
    assert "Region 1" not in page.text
    assert "lagged" not in page.text.rpartition("Glossary")[0]
    assert page.json["rows"]["views"] == [[]]
    assert len(column(page, "probability")) == N_DATA


def test_a_region_alone_is_one_line(fine):
    first = fine.answers.regions[0]._replace(p_value=0.0004)
    page = Page(report.render(with_regions(fine, first, first)))
    line = texts.region_alone(fine, first)
    assert page.text.count("though the test as a whole is not significant") == 1
    assert f"Region {line}" in page.text
    assert len(views_of(page)) == 2
    assert not page.json["rows"]["views"][0]


def test_rows_in_groups_have_regions_without_p_values_and_none_is_flagged():
    found = of_level(run(statistic=mean_shift, in_groups=True), 0.99)
    assert found.answers.row_p_values is None
    assert found.is_significant
    page = Page(report.render(found))
    assert "none is flagged at an FDR, since rows come in groups" in page.text
    assert page.text.count("no p-value") >= 1
    assert "flagged" not in [one["label"] for one in page.json["rows"]["columns"]]


def test_without_answers_it_says_so(result):
    page = Page(report.render(dataclasses.replace(result, answers=None)))
    assert texts.NOT_ASKED in page.text
    assert "How many" not in page.text
    assert views_of(page) == []
    rows = column(page, "row")
    assert np.all(np.diff(result.data_log_ratio[rows]) <= 0)
    neither = dataclasses.replace(run(statistic=mean_shift), answers=None)
    page = Page(report.render(neither))
    assert texts.NOT_ASKED in page.text
    assert "rows" not in page.json
    assert page.json["bars"]["columns"]


def test_numbers_far_from_zero_keep_the_digits_in_which_they_differ(result):
    late = dataclasses.replace(
        result, data=result.data + np.array([1.6e9, 0]), encoding=called("time", "x")
    )
    shown = column(Page(report.render(late)), "time")
    np.testing.assert_allclose(np.array(shown) - 1.6e9, result.data[result.ranking, 0], atol=1e-3)


def test_single_columns_are_shown_the_most_different_first(result):
    named = dataclasses.replace(result, encoding=called("energy", "angle"))
    tests = sorted(result.answers.columns, key=lambda one: (one.p_value, -one.distance))
    text = Page(report.render(named)).text
    places = []
    for one in tests:
        name = ("energy", "angle")[one.column]
        number = report.numbers.number(one.p_value, 2)
        is_significant = "yes" if one.p_value <= result.answer_level else "no"
        line = f"{name} {one.distance:.3f} {number} {is_significant}"
        places.append(text.index(" ".join(line.split())))
    assert places == sorted(places)


def test_the_least_anomalous_sample_has_no_significance(result):
    least = dataclasses.replace(result, p_value=1.0, above=20, interval=(0.8, 1.0))
    text = Page(report.render(least)).text
    assert "p = 1 > alpha = 0.05 (default); 20 toys" in text
    assert "20 of 20 toys have a test statistic at least as large" in text
    assert "-inf" not in text
    nearly = dataclasses.replace(result, p_value=0.9, above=18, interval=(0.8, 1.0))
    assert "significance -0.84 or less" in Page(report.render(nearly)).text


def test_an_interval_that_contains_alpha_is_said_to(result):
    change = "more toys could change the decision"
    low, high = result.interval
    assert low < 0.05 < high
    assert change in Page(report.render(result)).text
    sure = dataclasses.replace(result, interval=(0.0, 0.04))
    assert change not in Page(report.render(sure)).text


def test_beyond_all_toys_an_extrapolation_is_given_and_called_that(result, monkeypatch):
    toys = np.random.default_rng(0).gumbel(size=(400, 3))
    fit = fit_tail(np.full(3, 12.0), toys, "minimum_and_product")
    assert fit.p_value < 1e-3
    assert result.above == 0
    assert "xtrapolated" not in Page(report.render(result)).text  # too few toys
    monkeypatch.setattr(sparker.TestResult, "tail_fit", lambda self: fit)
    text = Page(report.render(result)).text
    assert fit.at_reach
    head, _, sure = text.rpartition("How sure Toys")
    assert "xtrapolat" not in head
    p = f"{fit.p_value:.2g}"
    assert f"Extrapolated p <= {p}, >= {fit.significance:.1f} sigma. This is an extrap" in sure
    assert f"to the {fit.n_tail} largest test statistics of the toys, not a measurement" in sure
    within = fit._replace(at_reach=False)
    monkeypatch.setattr(sparker.TestResult, "tail_fit", lambda self: within)
    text = Page(report.render(result)).text
    assert f"Extrapolated p = {p}, {fit.significance:.1f} sigma" in text
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
    assert report.numbers.number(value).replace("\N{NO-BREAK SPACE}", " ") == text


def test_the_table_has_every_row_most_anomalous_first(result):
    masses = np.arange(N_DATA) * 1.5
    page = Page(report.render(result, observables={"mass": masses}))
    rows = np.array(column(page, "row"))
    np.testing.assert_array_equal(rows, result.ranking)
    np.testing.assert_allclose(column(page, "f"), result.data_log_ratio[rows], atol=6e-4)
    probability = result.answers.probability[rows]
    np.testing.assert_allclose(column(page, "probability"), probability, atol=6e-4)
    assert np.all(np.diff(probability) <= 0)
    np.testing.assert_array_equal(column(page, "mass"), masses[rows])
    for i in range(2):
        np.testing.assert_allclose(column(page, f"column {i}"), result.data[rows, i], rtol=1e-5)
    assert [bool(yes) for yes in column(page, "flagged")] == result.listed(0.2)[rows].tolist()
    n, numbers = len(result.significant_regions), result.region_of_row[rows]
    assert column(page, "region") == [int(i) if 0 < i <= n else None for i in numbers]


def test_rows_that_took_no_part_have_no_probability(result):
    probability = result.answers.probability.copy()
    probability[7] = np.nan
    answers = result.answers._replace(probability=probability)
    page = Page(report.render(dataclasses.replace(result, answers=answers)))
    assert column(page, "probability")[-1] is None
    assert column(page, "row")[-1] == 7


def test_kernels_are_shown_without_counts(result):
    named = dataclasses.replace(result, encoding=called("energy", "angle"))
    text = Page(report.render(named)).text.replace("\N{MINUS SIGN}", "-")
    found = report.kernels.table(named)
    assert len(found) == len(result.model.a)
    for kernel in found:
        energy, angle = result.locations[kernel.number]
        assert f"energy {energy:.3g}, angle {angle:.3g}" in text
        assert (kernel.effect == "excess") <= (result.model.a[kernel.number] > 0)


def test_a_place_that_the_data_left_comes_first(result):
    """No data row is near the kernel that matters most; rows that weigh nothing are none."""
    data, reference = np.zeros((N_DATA, 2)), np.zeros((N_REFERENCE, 2))
    data[:10, 0], reference[40:60, 1], reference[0, 0] = 1.0, -4.0, 9.0
    weights = np.ones(N_REFERENCE)
    weights[0] = 0
    found = dataclasses.replace(
        result,
        models=Ensemble(np.zeros((3, 2, 2)), np.tile([1.0, -5.0], (3, 1)), result.models.sigma),
        data_components=data,
        reference_components=reference,
        reference_weights=weights,
    )
    shown = report.kernels.table(found)
    assert [(one.number, one.effect) for one in shown] == [(1, "deficit"), (0, "excess")]
    page = Page(report.render(found))
    chosen = [given["value"] for tag, given in page.elements
              if tag == "option" and "selected" in given]  # fmt: skip
    assert chosen[2:] == ["k1", "k0"]


NO_ROWS = np.empty(0, int)


def bars_of(data, beside, weights=None, views=None, column=None):
    """The histogram of some numbers, and how much its views differ."""
    views = [View(NO_ROWS)] if views is None else views
    data, beside = np.array(data, float), np.array(beside, float)
    own = np.ones(len(beside)) if weights is None else weights
    return histogram(Beside("x", data, beside, own * (len(data) / own.sum()), (column,)), views)


def test_weighted_rows_are_drawn_as_repeated_ones():
    rng = np.random.default_rng(4)
    n_data, n_reference = 600, 3000
    times = rng.integers(0, 4, n_reference)
    mass, beside = rng.standard_cauchy(n_data), rng.standard_cauchy(n_reference)
    mass[:60] = beside[::7] = np.nan
    found, _ = bars_of(mass, beside, 0.3 * times)
    again, _ = bars_of(mass, np.repeat(beside, times))
    assert {**found, "beyond": ""} == {**again, "beyond": ""}
    assert sum(found["reference"]) == pytest.approx(n_data - 60, rel=1e-2)
    assert bars_of(mass, beside)[0]["reference"] != found["reference"]


def test_unknown_values_are_not_drawn(result):
    unknown = np.full(N_REFERENCE, np.nan)
    page = Page(
        report.render(
            result,
            observables={"m": np.ones(N_DATA)},
            reference_observables={"m": unknown},
        )
    )
    assert [one["name"] for one in page.json["bars"]["columns"]] == ["column 0", "column 1"]


def planes_of(found):
    nothing = report.rows.Extras(None, None, None, {}, {})
    shown = report.rows.choose(found, nothing, report.answers.collect(found), [0, 1])
    coordinates = report.axes.axes(found, [0, 1])
    pairs = report.axes.first(coordinates, [])
    return report.planes.planes(found, shown, coordinates, pairs)


def test_weights_are_said_and_drawn(result):
    times = np.random.default_rng(3).integers(0, 4, N_REFERENCE)
    weighted = dataclasses.replace(result, reference_weights=0.3 * times)
    text = Page(report.render(weighted)).text
    effective = times.sum() ** 2 / (times**2).sum()
    assert "60 data rows and 200 weighted reference rows" in text
    assert f"Weights the weighted reference rows count as much as {effective:.0f} unwei" in text
    assert "the larger it is drawn" in text
    assert "weigh" not in Page(report.render(result)).text
    for plot in planes_of(weighted).values():
        drawn = plot.select_one({"name": "reference"}).data["size"]
        np.testing.assert_allclose(drawn**2, 36 * times / times.mean(), rtol=1e-5)


def test_an_expected_number_of_rows_is_said(result):
    known = dataclasses.replace(result, expected=1234.5)
    text = Page(report.render(known)).text
    assert "60 data rows (1,234.5 expected) and 200 reference rows" in text


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
    found = result.answers
    return dataclasses.replace(
        result,
        data=result.data[data] * noise,
        reference=result.reference[reference],
        reference_rows=np.arange(n_reference),
        n_reference=n_reference,
        data_components=result.data_components[data] * noise,
        reference_components=result.reference_components[reference],
        data_plane=result.data_plane[data] * noise,
        reference_plane=result.reference_plane[reference],
        answers=found._replace(
            probability=found.probability[data],
            score=found.score[data] * noise[:, 0],
            row_p_values=found.row_p_values[data],
            regions=tuple(
                one._replace(rows=tuple(np.flatnonzero(np.isin(data, one.rows)).tolist()))
                for one in found.regions
            ),
        ),
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
    assert rows[:2000] == many.ranking[:2000].tolist()
    assert "Of 20,000 data rows, planes and table show the 2,000 most anomalous" in page.text
    assert "Pictures are kept for the" in page.text


def test_the_same_rows_are_drawn_every_time(result):
    many = large(result, 6000, 300)
    first, second = (column(Page(report.render(many)), "row") for _ in range(2))
    assert first == second


@pytest.fixture(scope="module")
def wide():
    """Two hundred columns, with hostile names."""
    names = tuple(f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(200))
    return dataclasses.replace(run(n_features=200, statistic=shift), encoding=called(*names))


def test_two_hundred_columns_stay_a_small_file(wide):
    text = report.render(wide)
    assert len(text.encode()) < 2_500_000
    page = Page(text)
    assert len(page.json["bars"]["columns"]) == 200
    assert len(page.json["rows"]["columns"]) <= 30
    assert "Of 200 columns the table has the 20 in which" in page.text
    assert "Show all 200 columns" in page.text
    assert ALERT not in text


def test_one_column_and_one_kernel_are_enough():
    found = run(**ONE)
    page = Page(report.render(found))
    assert len(column(page, "row")) == N_DATA
    across, up = report.axes.first(report.axes.axes(found, [0]), [])[0]
    np.testing.assert_allclose(across.data, found.data[:, 0])
    np.testing.assert_array_equal(up.data, found.data_log_ratio)
    np.testing.assert_array_equal(up.reference, found.reference_log_ratio)


def test_a_statistic_without_kernels_is_shown_without_them():
    found = run(statistic=mean_shift)
    page = Page(report.render(found, texts=["a"] * N_DATA))
    assert texts.because(found) in page.text
    assert column(page, "row") == found.ranking.tolist()
    assert "h-kernels" not in report.render(found)
    assert "f" not in [one["label"] for one in page.json["rows"]["columns"]]
    assert page.json["axes"]["labels"] == {"c0": "column 0", "c1": "column 1"}


def samples(n_features):
    """What ``run`` tested."""
    rng = np.random.default_rng(0)
    reference, data = (rng.normal(size=(n, n_features)) for n in (N_REFERENCE, N_DATA))
    data[:N_PLANTED] = 3 + 0.1 * rng.normal(size=(N_PLANTED, n_features))
    return reference, data


def test_columns_are_drawn_as_they_are(result):
    named = dataclasses.replace(result, encoding=called("energy", ALERT))
    drawn = report.axes.axes(named, [1, 0])
    reference, data = samples(2)
    for axis, i in zip(drawn[:2], (1, 0), strict=True):
        np.testing.assert_allclose(axis.data, data[:, i])
        np.testing.assert_allclose(axis.reference, reference[:, i])
        np.testing.assert_allclose(axis.kernels, result.locations[:, i])
        assert axis.label == "the column chosen above"
        assert axis.name == ("energy", ALERT)[i]


def test_columns_that_were_left_out_do_not_confuse_the_axes():
    reference, data = samples(2)
    wide = [np.column_stack([np.ones(len(rows)), 1e7 * rows]) for rows in (reference, data)]
    found = sparker.test(*wide, n_toys=20, statistic=shift)
    found = dataclasses.replace(found, encoding=called("dull", "one", "other"))
    assert found.transform.dropped.tolist() == [0]
    drawn = report.axes.axes(found, [1, 2])
    np.testing.assert_allclose(drawn[0].data, data[:, 0])
    assert [axis.label for axis in drawn] == 2 * ["the column chosen above / 10\u2077"]
    page = Page(report.render(found))
    assert "2 of 3 columns: one, other" in page.text
    assert [one["column"] for one in page.json["bars"]["columns"]] == [1, 2]
    for box in page.json["axes"]["boxes"][1:]:
        assert all(-100 < end < 100 for ends in box.values() for end in ends)


def test_principal_coordinates_are_explained_where_they_can_be():
    found = run(n_features=12, statistic=shift, preprocess=sparker.standardise)
    directions = np.zeros((12, 2))
    directions[[3, 7], 0] = 0.8, -0.6
    directions[:, 1] = 12**-0.5  # a bit of everything
    told = dataclasses.replace(found, directions=directions)
    note = "The first principal coordinate is mostly 0.8 column 3, \N{MINUS SIGN}0.6 column 7."
    assert report.axes.directions(told) == [note]
    assert note in Page(report.render(told)).text


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
    found = dataclasses.replace(result, preprocess=preprocess, best_component_test=0)
    assert report.figures.p_by_scale(found).xaxis[0].axis_label == label


def middles(of):
    edges = np.linspace(of["low"], of["high"], len(of["data"]) + 1)
    return (edges[:-1] + edges[1:]) / 2


def test_whole_numbers_lie_in_the_middle_of_their_bins():
    values = [0, 1, 1, 2, 4.0]
    of, _ = bars_of(values, values)
    np.testing.assert_allclose(middles(of), [0, 1, 2, 3, 4])
    assert of["data"] == [1, 2, 1, 0, 1]
    np.testing.assert_allclose(of["reference"], [1, 2, 1, 0, 1])
    of, _ = bars_of(np.arange(1000.0), np.arange(1000.0))
    assert of["low"] % 1 == 0.5
    assert bars_of([5.0, 5.0], [5.0])[0]["data"] == [2]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (-1.2, 1.2, ["\N{MINUS SIGN}1.0", "\N{MINUS SIGN}0.5", "0.0", "0.5", "1.0"]),
        (0.0, 90.0, ["0", "20", "40", "60", "80"]),
        (1600000010.0, 1600099990.0, ["1.60002 \u00d7 10\u2079", "1.60006 \u00d7 10\u2079"]),
        (0.1, 0.4, ["0.1", "0.2", "0.3", "0.4"]),
        (123456.2, 123459.9, ["123,457", "123,458", "123,459"]),
        (0, 4e9, ["0", "1 \u00d7 10\u2079", "2 \u00d7 10\u2079", "3 \u00d7 10\u2079",
                  "4 \u00d7 10\u2079"]),
    ],
)  # fmt: skip
def test_axes_have_few_and_round_numbers(low, high, texts):
    ticks = report.ticks.labelled(low, high)
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for _, text in ticks] == texts
    assert all(0 <= share <= 1 for share, _ in ticks)


@pytest.mark.parametrize(
    "values", [[1e300, -1e300], [0.1 + 1e-17] * 3, [1e20, 1e20], [2.0**60, 2.0**61]]
)
def test_odd_numbers_are_drawn_too(values):
    of, _ = bars_of(values, values)
    assert of["high"] > of["low"]
    assert sum(of["data"]) == len(values)
    assert sum(of["reference"]) == pytest.approx(len(values))


def test_nothing_is_cut_off_without_saying_so():
    values = np.concatenate([np.linspace(0, 1, 5000), [50.0, 51.0, 52.0, 1e6]])
    of, _ = bars_of(values, values)
    assert of["high"] < 2
    assert of["beyond"].startswith("4 data rows and 4 reference rows lie further out")
    assert sum(of["data"]) == 5004
    # Rows that are looked at are no strays, few as they may be.
    of, _ = bars_of(values, values, views=[View(np.array([5000, 5001, 5002]))])
    assert 51.5 < of["high"] < 60
    assert sum(of["picked"][0]) == 3
    assert of["beyond"].startswith("1 data row and 1 reference row lie further out")
    near = np.append(np.linspace(0, 1, 5000), 1.4)
    of, _ = bars_of(near, near)
    assert of["high"] == pytest.approx(1.4)
    assert of["beyond"] == ""


def test_counts_are_logarithmic_where_one_row_would_vanish():
    rng = np.random.default_rng(0)
    many, few = (bars_of(*[rng.normal(size=n)] * 2)[0] for n in (5000, 100))
    assert many["least"] > 0
    assert few["least"] == 0


def test_views_have_their_rows_and_the_rule_its_band():
    data, reference = np.append(np.linspace(0, 1, 90), [0.9] * 10), np.linspace(0, 1, 500)
    rows = np.arange(90, 100)
    views = [View(NO_ROWS), View(rows, (Condition(3, 0.8, None),))]
    of, told = bars_of(data, reference, views=views, column=3)
    assert sum(of["picked"][0]) == 0
    assert sum(of["picked"][1]) == 10
    assert of["bands"][0] is None
    np.testing.assert_allclose(of["bands"][1], [0.8, 1])
    assert told[1] > 0.8 > told[0]
    assert bars_of(data, reference, views=views, column=2)[0]["bands"] == [None, None]


def test_the_columns_of_a_rule_come_first_then_the_telling(result):
    rng = np.random.default_rng(0)
    given = [
        Beside(f"c{i}", rng.normal(size=100), rng.normal(size=300), np.full(300, 1 / 3), (i,))
        for i in range(20)
    ]
    given[7].data[:10] += 5
    rows, rule = np.arange(10), (Condition(11, 0.0, None),)
    drawn = report.histograms.draw(given, [View(rows), View(rows, rule)])
    names = [one["column"] for one in drawn["columns"]]
    assert names[drawn["order"][0][0]] == 7
    assert [names[i] for i in drawn["order"][1][:2]] == [11, 7]


def test_observables_of_both_samples_are_drawn_too(result):
    named = dataclasses.replace(result, encoding=called("energy", "angle"))
    page = Page(
        report.render(
            named,
            observables={"m": np.ones(N_DATA), "only data": np.ones(N_DATA)},
            reference_observables={"m": np.ones(N_REFERENCE)},
        )
    )
    assert [one["name"] for one in page.json["bars"]["columns"]] == ["energy", "angle", "m"]


def test_more_kernels_than_can_be_chosen(result):
    n = result.data_components.shape[1]
    mu, a, sigma = result.models
    many = dataclasses.replace(
        result,
        models=Ensemble(np.tile(mu, (1, 6, 1)), np.tile(a, (1, 6)), sigma),
        data_components=np.tile(result.data_components, 6),
        reference_components=np.tile(result.reference_components, 6),
    )
    page = Page(report.render(many))
    labels = page.json["axes"]["labels"]
    assert sum(label.startswith("f of kernel") for label in labels.values()) == 8
    assert len(report.kernels.table(many)) == min(6 * n, report.kernels.KERNELS)


def test_nothing_but_pixels_of_a_picture_gets_into_the_report(result, tmp_path):
    """Not the colour profile, nor a comment, nor what was written behind the picture."""
    secret = b"<script>alert('behind')</script>"
    comment = PngInfo()
    comment.add_text("Comment", "<script>alert('comment')</script>")
    exif = Image.Exif()
    exif[0x010E] = "<script>alert('exif')</script>"
    picture = Image.new("RGB", (8, 8), "red")
    picture.save(tmp_path / "a.png", pnginfo=comment, icc_profile=secret, exif=exif)
    picture.save(tmp_path / "b.jpg", icc_profile=secret, exif=exif, comment=secret)
    for name in ("a.png", "b.jpg"):
        with (tmp_path / name).open("ab") as file:
            file.write(secret)
    for uri in thumbnails([tmp_path / "a.png", str(tmp_path / "b.jpg")], [0, 1]).values():
        content = base64.b64decode(uri.partition(",")[2])
        assert b"script" not in content
        assert Image.open(io.BytesIO(content)).info == {}


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_read(result, tmp_path, monkeypatch):
    Image.new("1", (9000, 9000)).save(tmp_path / "large.png")
    monkeypatch.setattr(Image.Image, "thumbnail", None)
    with pytest.raises(ValueError, match=r"images\[0\] cannot be shown: it has 9000 x 9000 pixels"):
        thumbnails([tmp_path / "large.png"], [0])


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
            "document.querySelectorAll('details').forEach((one) => { one.open = true; });"
            "return [...document.querySelectorAll('.plot')]"
            ".filter((plot) => plot.children.length !== 1 || plot.offsetHeight < 200)"
            ".map((plot) => plot.id)"
        )
        assert empty == []

    def test_hostile_strings_stay_inert(self, opened):
        from selenium.common.exceptions import NoAlertPresentException

        with pytest.raises(NoAlertPresentException):
            _ = opened.switch_to.alert
        bad = (
            "document.querySelectorAll("
            "'svg:not(.histogram), [onerror], [onload], img:not([src^=data])')"
        )
        assert opened.execute_script(f"return {bad}.length") == 0
        assert opened.execute_script("return document.scripts.length") == 8
        assert ALERT in text_of(opened, "#table tbody")
        # Even markup that got into the page by some other way could do nothing.
        opened.execute_script(
            "document.querySelector('main').insertAdjacentHTML('beforeend',"
            " '<img src=x onerror=\"window.ran = true\">')"
        )
        time.sleep(0.2)
        assert opened.execute_script("return window.ran") is None

    @pytest.mark.parametrize(("plot", "x", "y"), [("plane1", "u", "v"), ("plane0", "x", "y")])
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
        labels = [column["label"] for column in Page(hostile).json["rows"]["columns"]]
        of = dict(zip(labels, rows[isolated], strict=True))
        image = of["image"]
        assert of["name"] in shown
        assert of["text"] in shown
        assert f"mass {ALERT}{of[f'mass {ALERT}']}" in shown
        assert opened.execute_script("return document.querySelector('#pointed img').src") == image

    def test_a_box_in_one_plot_filters_the_table(self, opened, hostile):
        rows = [row[0] for row in Page(hostile).json["rows"]["rows"]]
        places = np.array(on_screen(opened, "plane0", "x", "y"))
        planted = places[np.isin(rows, np.arange(N_PLANTED))]
        low, high = planted.min(0) - 6, planted.max(0) + 6
        inside = np.all((places > low) & (places < high), axis=1)
        assert N_PLANTED <= inside.sum() < N_DATA
        drag(opened, low.tolist(), high.tolist())
        expected = [row for row, kept in zip(rows, inside, strict=True) if kept]
        wait(lambda: first_column(opened) == expected[:10])
        assert text_of(opened, "#count") == f"{inside.sum()} rows selected,"
        assert "of the selection" in text_of(opened, "#found")
        opened.execute_script("document.querySelector('.controls .unselect').click()")
        assert first_column(opened) == rows[:10]
        selected = "return Bokeh.documents[0].get_model_by_name('data').selected.indices.length"
        assert opened.execute_script(selected) == 0

    def test_a_tap_selects_one_row(self, opened, hostile):
        rows = [row[0] for row in Page(hostile).json["rows"]["rows"]]
        places = np.array(on_screen(opened, "plane0", "x", "y"))
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
        assert first_column(opened) == list(range(N_DATA - 1, N_DATA - 11, -1))
        opened.execute_script(click.format(1))
        assert first_column(opened) == list(range(10))
        sort = "return document.querySelector('#table th').getAttribute('aria-sort')"
        assert opened.execute_script(sort) == "ascending"
        opened.execute_script("document.getElementById('next').click()")
        assert first_column(opened) == list(range(10, 20))

        box = opened.find_element("id", "filter")
        box.send_keys("TEXT7")
        assert first_column(opened) == [7]
        box.clear()
        box.send_keys("no such thing")
        assert first_column(opened) == []
        box.clear()
        box.send_keys("text1")
        assert first_column(opened) == [1, *range(10, 19)]
        assert "11 rows" in text_of(opened, "#found")

        # Rows without a value come last, whichever way the others are sorted.
        labels = [column["label"] for column in table["columns"]]
        place = labels.index(HOSTILE[3])
        known = {row[0]: row[place] for row in table["rows"]}
        for _ in range(2):
            opened.execute_script(click.format(place + 1))
            opened.execute_script("document.getElementById('next').click()")
            assert [known[row] for row in first_column(opened)] == [None]

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

    def test_other_coordinates_can_be_drawn(self, opened):
        before = on_screen(opened, "plane1", "u", "v")
        opened.execute_script(
            "const choice = document.querySelectorAll('select.axis')[3]; choice.value = 'c0';"
            "choice.dispatchEvent(new Event('change'))"
        )
        same = (
            "const d = Bokeh.documents[0];"
            "return ['data', 'reference', 'kernels'].every((name) => {"
            "const s = d.get_model_by_name(name).data;"
            "return s.v.every((value, i) => value === s.c0[i])})"
        )
        assert opened.execute_script(same)
        wait(lambda: on_screen(opened, "plane1", "u", "v") != before)
        label = "return Bokeh.documents[0].get_model_by_name('plane1').left[0].axis_label"
        assert opened.execute_script(label) == "the column chosen above"

    def test_a_region_changes_table_histograms_and_planes(self, opened, hostile, result):
        rows = Page(hostile).json["rows"]
        drawn = (
            "return [...document.querySelectorAll('#histograms .picked')]"
            ".map((bar) => bar.getAttribute('x') + ' ' + bar.getAttribute('height')).join()"
        )
        marked = (
            "return Array.from(Bokeh.documents[0].get_model_by_name('data').data.picked)"
            ".flatMap((size, i) => size ? [i] : [])"
        )
        bands = "return document.querySelectorAll('#histograms rect.band').length"
        box = "return Bokeh.documents[0].get_model_by_name('box0').visible"
        before = opened.execute_script(drawn)
        assert opened.execute_script(marked) == rows["views"][0]
        assert opened.execute_script(bands) == 0
        assert not opened.execute_script(box)
        opened.execute_script("document.querySelector('input[name=view][value=\"1\"]').click()")
        expected = [rows["rows"][i][0] for i in rows["views"][1]]
        assert first_column(opened) == expected[:10]
        assert "of region 1" in text_of(opened, "#found")
        assert opened.execute_script(drawn) != before
        assert opened.execute_script(bands) == len(result.answers.regions[0].conditions)
        assert opened.execute_script(marked) == rows["views"][1]
        assert opened.execute_script(box)
        chosen = "return [...document.querySelectorAll('select.view')].map((one) => one.value)"
        assert set(opened.execute_script(chosen)) == {"1"}
        # Any of the choices leads back.
        opened.execute_script(
            "const one = document.getElementById('view-histograms'); one.value = '0';"
            "one.dispatchEvent(new Event('change'))"
        )
        assert opened.execute_script(drawn) == before
        assert len(first_column(opened)) == 10

    def test_regions_and_table_work_by_keyboard(self, opened, hostile):
        from selenium.webdriver.common.keys import Keys

        rows = Page(hostile).json["rows"]
        opened.find_element("css selector", "input[name=view]").send_keys(Keys.ARROW_DOWN)
        assert first_column(opened) == [rows["rows"][i][0] for i in rows["views"][1]][:10]
        opened.find_element("css selector", "input[name=view]:checked").send_keys(Keys.ARROW_UP)
        assert len(first_column(opened)) == 10
        opened.find_element("css selector", "#table th button").send_keys(Keys.ENTER)
        assert first_column(opened) == list(range(N_DATA - 1, N_DATA - 11, -1))
        opened.find_element("id", "next").send_keys(Keys.SPACE)
        assert first_column(opened)[0] == N_DATA - 11
        reached = opened.execute_script(
            "const one = document.querySelector('.scroll'); one.focus();"
            "return document.activeElement === one"
        )
        assert reached

    def test_two_hundred_columns_are_drawn_when_asked_for(self, browser, wide, tmp_path):
        path = tmp_path / "report.html"
        report.write(path, wide)
        browser.get_log("browser")
        browser.get(path.as_uri())
        wait(lambda: browser.execute_script("return document.body.dataset.ready") == "yes")
        n = "return document.querySelectorAll('#histograms svg').length"
        lines = (
            "return [...document.querySelectorAll('#columns tbody tr')]"
            ".filter((line) => line.offsetHeight > 0).length"
        )
        assert browser.execute_script(n) == 4
        assert browser.execute_script(lines) == 10
        browser.execute_script("document.getElementById('all-histograms').click()")
        browser.execute_script("document.querySelector('button.all').click()")
        assert browser.execute_script(n) == 200
        assert browser.execute_script(lines) == 200
        browser.find_element("id", "search").send_keys("=1+1 17")
        names = "return [...document.querySelectorAll('#histograms h4')].map((h) => h.textContent)"
        expected = {name for name in wide.names if "=1+1 17" in name}
        assert set(browser.execute_script(names)) == expected != set()
        assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []

    @pytest.mark.parametrize("width", [320, 375, 1280])
    def test_the_page_never_scrolls_sideways(self, opened, width):
        size(opened, width, 800)
        opened.execute_script(
            "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
        )
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
            "return [...document.querySelectorAll('.region, .verdict, .beside')].flatMap((card) =>"
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
            for plot in ("plane0", "plane1"):
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

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_all_text_stands_out_from_what_is_behind_it(self, opened, theme):
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        try:
            ink = "return getComputedStyle(document.body).color"
            dark = "rgb(230, 237, 243)"
            wait(lambda: (opened.execute_script(ink) == dark) is (theme == "dark"))
            opened.execute_script(
                "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
            )
            texts = opened.execute_script(TEXTS)
            assert len(texts) > 200
            faint = [line for line in texts if contrast(*line[1:]) < 4.5]
            assert faint == []
            page = opened.execute_script("return getComputedStyle(document.body).backgroundColor")
            inks = opened.execute_script(INKS)
            assert len(inks) > 10
            assert [ink for ink in inks if contrast(ink, [page]) < 4.5] == []
        finally:
            opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    @pytest.mark.parametrize("options", [ONE, {"statistic": mean_shift}], ids=["one", "no"])
    def test_with_one_kernel_or_none_there_are_still_plots(self, browser, tmp_path, options):
        path = tmp_path / "report.html"
        report.write(path, run(**options))
        browser.get_log("browser")
        browser.get(path.as_uri())
        wait(lambda: browser.execute_script("return document.body.dataset.ready") == "yes")
        plots = 7 if options is ONE else 4
        drawn = "return document.querySelectorAll('.plot > *').length"
        assert browser.execute_script(drawn) == plots
        histograms = "return document.querySelectorAll('#histograms svg').length"
        assert browser.execute_script(histograms) == (1 if options is ONE else 2)
        assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []

    def test_without_answers_there_are_plots_and_no_errors(self, browser, result, tmp_path):
        for found in (result, run(statistic=mean_shift)):
            path = tmp_path / "report.html"
            report.write(path, dataclasses.replace(found, answers=None))
            browser.get_log("browser")
            browser.get(path.as_uri())
            wait(lambda: browser.execute_script("return document.body.dataset.ready") == "yes")
            histograms = "return document.querySelectorAll('#histograms svg').length"
            assert browser.execute_script(histograms) == 2
            assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []


TEXTS = """
const found = [];
for (const one of document.body.querySelectorAll("*")) {
  const own = [...one.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
  const style = getComputedStyle(one);
  if (!own.length || ["SCRIPT", "STYLE", "OPTION"].includes(one.tagName) || one.disabled) continue;
  if (!one.getClientRects().length || style.visibility === "hidden") continue;
  const behind = [];
  for (let at = one; at; at = at.parentElement) behind.push(getComputedStyle(at).backgroundColor);
  found.push([own[0].data.trim().slice(0, 40),
    one instanceof SVGElement ? style.fill : style.color, behind]);
}
return found;
"""
"""What every visible text is written in, and what is behind it, from the nearest on."""

INKS = """
return Bokeh.documents[0].roots().flatMap((plot) => [
  ...[...plot.below, ...plot.left].flatMap((axis) => [axis.axis_label_text_color,
    axis.major_label_text_color]),
  ...[...plot.above, ...plot.center].filter((one) => one.type === "Legend")
    .map((one) => one.label_text_color)]);
"""
"""What the texts within plots are written in."""


def rgba(text):
    if text.startswith("#"):
        return [int(text[i : i + 2], 16) for i in (1, 3, 5)] + [1.0]
    numbers = [float(x) for x in re.findall(r"[\d.]+", text)]
    return numbers if len(numbers) == 4 else [*numbers, 1.0]


def contrast(ink, behind):
    """The ratio of WCAG 2, of a colour over those behind it; the page's own is opaque."""
    back = np.array([255.0, 255, 255])
    for layer in reversed(behind):
        *colour, alpha = rgba(layer)
        back = alpha * np.array(colour) + (1 - alpha) * back
    *colour, alpha = rgba(ink)
    front = alpha * np.array(colour) + (1 - alpha) * back

    def luminance(colour):
        share = colour / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted([luminance(front), luminance(back)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("ink", "behind", "ratio"),
    [
        ("#000000", ["rgb(255, 255, 255)"], 21),
        ("rgb(119, 119, 119)", ["rgba(0, 0, 0, 0)", "rgb(255, 255, 255)"], 4.48),
        ("#ffffff", ["rgba(0, 0, 0, 1)", "rgb(255, 255, 255)"], 21),
    ],
)
def test_contrast_is_measured_as_it_is_defined(ink, behind, ratio):
    assert contrast(ink, behind) == pytest.approx(ratio, abs=0.01)


@pytest.fixture(scope="module")
def mixed():
    """A table of columns of all kinds, in which red rows are too many; and its page."""
    rng = np.random.default_rng(0)

    def table(n, start, n_red):
        colour = rng.choice(["green", "blue"], n).astype(object)
        colour[:n_red] = "red"
        when = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 40 * 86400, n), "s")
        size = rng.normal(size=n)
        size[rng.random(n) < 0.1] = np.nan
        columns = {"size": size, "colour": colour, "sold": rng.random(n) < 0.5, "when": when}
        return pd.DataFrame({"row_id": np.arange(start, start + n), **columns})

    found = sparker.test(table(300, 0, 3), table(60, 300, 25), n_toys=20, statistic=shift)
    return found, Page(report.render(found))


def test_columns_of_all_kinds_are_shown_as_users_know_them(mixed):
    found, page = mixed
    assert [one.code for one in found.warnings] == ["identifier"]
    assert "column row_id was left out: it counts the rows of each file" in page.text
    assert "4 of 5 columns: size, colour, sold, when" in page.text
    assert "Encoding of the columns" in page.text
    assert "row_id left out: it counts the rows of each file" in page.text
    assert "a feature for each of 3 values" in page.text
    bars = {one["name"]: one for one in page.json["bars"]["columns"]}
    assert {"size", "colour", "sold is true", "when", "size is missing"} <= {*bars}
    ticks = [label for _, label in bars["colour"]["ticks"]]
    assert sorted(ticks) == ["blue", "green", "red"]
    assert bars["colour"]["data"][ticks.index("red")] == 25
    assert sum(bars["size"]["data"]) == 60 - int(found.data[:, 1].sum())  # those that have one
    assert all(label.startswith("2026-") for _, label in bars["when"]["ticks"])
    assert bars["weekday of when"]["ticks"][0][1] == "Mon"
    red = [line for line in report.answers.collect(found).columns if line.name == "colour"]
    assert any(text.startswith("red 41.7") for text in red[0].data)
    labels = [column["label"] for column in page.json["rows"]["columns"]]
    assert labels[-5:] == ["row_id", "size", "colour", "sold", "when"]


def test_values_of_a_category_that_share_a_feature_are_called_others():
    rng = np.random.default_rng(0)

    def table(n, rare):
        colour = rng.choice(["green", "blue"], n).astype(object)
        colour[: len(rare)] = rare
        return pd.DataFrame({"colour": colour, "size": rng.normal(size=n)})

    tables = table(300, ["grey"]), table(60, list("abcdefghijklmnop"))
    found = sparker.test(*tables, n_toys=20, statistic=shift)
    (line,) = (one for one in report.answers.collect(found).columns if one.name == "colour")
    assert line.data[0] == "other values 26.7 %"
    assert {text.rpartition(" ")[0].rpartition(" ")[0] for text in line.data} == {
        "other values",
        "green",
        "blue",
    }


def test_a_table_of_numbers_needs_no_list_of_its_encoding(result):
    assert "Encoding of the columns" not in Page(report.render(result)).text
