"""Figures: what is drawn is what the result says, and stays readable whatever that is."""

import dataclasses
import functools
import io
import itertools
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.cbook import is_math_text
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.special import expit

import sparker
from sparker import plots
from sparker.calibration import store, toys
from sparker.calibration.pvalues import clopper_pearson, graded_score
from sparker.engine import Fit
from sparker.engine.ensemble import Ensemble
from sparker.findings.interpret import _score_counts
from sparker.findings.power import Power, PowerStudy
from sparker.monitor import Look
from sparker.plots.style import kernel_style
from sparker.statistics import Component, kernels

N_REFERENCE, N_DATA, N_TOYS = 200, 50, 11
HOSTILE = [
    "m_{12} $\\frac{1}$ 5",
    "$",
    "\\$x$",
    "_hidden",
    "a\nb\tc\x00\ud800",
    "{} %s {0}",
    "a_very_long_column_name_" * 40,
]


@pytest.fixture(autouse=True)
def no_global_state(monkeypatch):
    """Neither pyplot nor its settings."""
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    before = matplotlib.rcParams.copy()
    yield
    assert matplotlib.rcParams.copy() == before


def samples():
    rng = np.random.default_rng(0)
    reference, data = rng.normal(size=(N_REFERENCE, 2)), rng.normal(size=(N_DATA, 2))
    data[:12] = 3 + 0.1 * rng.normal(size=(12, 2))
    return reference, data


def mean_shift(rng, sample):
    means = [weight @ sample.points / weight.sum() for weight in sample[1:]]
    return np.abs(means[1] - means[0])


FEW_STEPS = {
    "config": sparker.FitConfig(n_kernels=3),
    "widths": sparker.WidthConfig(steps=20, n_widths=3),
    "chunk": 4,
}


@functools.cache
def run(**options):
    return sparker.test(*samples(), n_toys=N_TOYS, **options)


@pytest.fixture(scope="module")
def result():
    return run(**FEW_STEPS)


@pytest.fixture(scope="module")
def without_kernels():
    return run(statistic=mean_shift)


@pytest.fixture(scope="module")
def smallest(result):
    """The same with one width, one kernel and one feature."""
    one = slice(0, 1)
    flat = [plane * [1, 0] for plane in (result.data_plane, result.reference_plane)]
    mu, a, sigma = result.models
    return dataclasses.replace(
        result,
        widths=result.widths[one],
        component_tests=result.component_tests[one],
        p_by_component_test=result.p_by_component_test[one],
        p_by_family=result.p_by_component_test[one],
        statistics=result.statistics[one],
        null_statistics=result.null_statistics[:, one],
        best=0,
        best_component_test=0,
        models=Ensemble(mu[one, one, one], a[one, one], sigma[one]),
        data_components=result.data_components[:, one],
        reference_components=result.reference_components[:, one],
        data_plane=flat[0],
        reference_plane=flat[1],
    )


def study(found=(4, 1, 9), fractions=(0.1, 0.0, 0.2), alpha=0.05):
    return PowerStudy(
        alpha=alpha,
        points=tuple(
            Power(f, np.zeros(10), k / 10, clopper_pearson(k, 10), 1.0)
            for f, k in zip(fractions, found, strict=True)
        ),
        settings={},
        versions={},
    )


OF_A_RESULT = {
    "null_distribution": plots.null_distribution,
    "p_across_widths": plots.p_across_widths,
    "p_by_family": plots.p_by_family,
    "score_distribution": plots.score_distribution,
    "activation_pattern": plots.activation_pattern,
    "component_plane": plots.component_plane,
    "principal_plane": plots.principal_plane,
    "trajectories": plots.trajectories,
    "component_against": lambda result, **options: plots.component_against(
        result, np.arange(len(result.data_plane)), **options
    ),
}
OTHERS = {
    "power_curve": lambda result, **options: plots.power_curve(study(), **options),
    "samples_1d": lambda result, **options: plots.samples_1d(*samples(), N_DATA, **options),
    "log_ratio_1d": lambda result, **options: plots.log_ratio_1d(
        Ensemble(np.array([[0.0], [2.0]]), np.array([1.0, -2.0]), np.array(0.5)),
        np.linspace(-1, 4, 50),
        **options,
    ),
}
ALL = OF_A_RESULT | OTHERS
NAMED = ("component_against", "trajectories", "samples_1d", "log_ratio_1d")
WITH_KERNELS = [
    name for name in OF_A_RESULT
    if name not in ("null_distribution", "p_across_widths", "p_by_family", "principal_plane")
]  # fmt: skip


def png(figure):
    """Draw it all: what cannot be drawn fails or warns here."""
    file = io.BytesIO()
    figure.savefig(file, dpi=50, format="png")
    return file.getvalue()


def figure_of(drawn):
    return drawn[0].figure


def draws(draw, *arguments, **options):
    """Whether it can be drawn, in a figure without a layout, which is quick."""
    return png(figure_of(draw(*arguments, ax=Figure(figsize=(4, 3)).subplots(), **options)))


def points_of(artist):
    """The coordinates of a line or of a cloud of points."""
    return artist.get_xydata() if isinstance(artist, Line2D) else np.asarray(artist.get_offsets())


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# Every figure.


@pytest.mark.parametrize("name", ALL)
def test_axes_are_used_when_given_and_made_when_not(name, result):
    figure = Figure()
    ax, other = figure.subplots(1, 2)
    drawn = ALL[name](result, ax=ax)
    assert isinstance(drawn, list)
    assert all(isinstance(artist, Artist) and artist.axes is ax for artist in drawn)
    assert not other.has_data()
    again = ALL[name](result)
    assert figure_of(again) is not figure
    assert figure_of(again) is not figure_of(ALL[name](result))
    assert png(figure_of(again)).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ALL)
def test_axes_have_labels(name, result):
    ax = ALL[name](result)[0].axes
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("name", OF_A_RESULT)
def test_one_kernel_one_width_one_feature(name, smallest):
    assert draws(OF_A_RESULT[name], smallest)


@pytest.mark.parametrize("name", WITH_KERNELS)
def test_where_there_are_no_kernels_it_is_said(name, without_kernels):
    with pytest.raises(ValueError, match="fits no kernels: there is nothing to draw"):
        OF_A_RESULT[name](without_kernels)


@pytest.mark.parametrize("name", ["null_distribution", "p_across_widths", "score_distribution"])
def test_toys_that_failed_are_no_hindrance(name, result):
    for failed in (slice(2), slice(None)):
        statistics = result.null_statistics.astype(float)
        score = result.null_combined_score.astype(float)
        statistics[failed] = np.nan
        score[failed] = np.inf
        lost = dataclasses.replace(
            result, null_statistics=statistics,
            combined_scores=np.append(result.combined_score, score),
            score_counts=np.delete(result.score_counts, 1 + np.arange(N_TOYS)[failed], axis=0),
        )  # fmt: skip
        assert draws(OF_A_RESULT[name], lost)


@pytest.mark.parametrize("name", ["activation_pattern", "component_plane", "component_against"])
@pytest.mark.parametrize("value", [0.0, np.nan])
def test_components_without_content(name, value, result):
    same = {
        field: np.full_like(getattr(result, field), value)
        for field in ("data_components", "reference_components")
    }
    assert draws(OF_A_RESULT[name], dataclasses.replace(result, **same))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", NAMED)
def test_names_are_drawn_as_they_are_and_never_as_formulas(name, text, result):
    label = ALL[name](result, name=text)[0].axes.xaxis.label
    assert not is_math_text(label.get_text())
    shown = label.get_text().replace("\\$", "$").strip()
    kept = "".join(c if c.isprintable() else " " for c in text).strip()
    assert shown == (kept if len(kept) <= 60 else kept[:57] + "...")


@pytest.mark.parametrize("text", HOSTILE)
def test_names_fit_into_the_figure(text, result):
    drawn = plots.component_against(result, np.zeros(N_DATA), name=text)
    assert png(figure_of(drawn))
    box = drawn[0].axes.xaxis.label.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure_of(drawn).bbox.width


def test_names_of_studies_are_in_the_legend_as_they_are():
    drawn = plots.power_curve({text: study() for text in HOSTILE})
    png(figure_of(drawn))
    shown = legend_of(drawn[0].axes)
    assert len(shown) == len(HOSTILE) + 1
    assert not any(map(is_math_text, shown))
    assert any(text.strip().startswith("_hidden") for text in shown)


def test_what_overlaps_differs_without_colour_too(result):
    styles = [kernel_style(i) for i in range(35)]
    assert len({(str(style["linestyle"]), style["marker"]) for style in styles}) == 35
    lines = plots.trajectories(result)
    assert len({line.get_linestyle() for line in lines}) == 3
    assert len({line.get_marker() for line in lines}) == 3
    shown = dataclasses.replace(result, best_component_test=1)
    each, *_, clearest, together, _ = plots.p_across_widths(shown)
    assert (each.get_linestyle(), together.get_linestyle()) == ("-", "--")
    assert each.get_markersize() < clearest.get_markersize()
    assert clearest.get_markerfacecolor() == "none"
    reference, data, rings = plots.principal_plane(result)
    paths = [artist.get_paths()[0].vertices.tolist() for artist in (reference, data)]
    assert paths[0] != paths[1]
    assert len(rings.get_facecolors()) == 0
    _, band, mean = plots.score_distribution(result)
    assert (band.get_fill(), mean.get_fill()) == (True, False)
    two = plots.power_curve({"one": study(), "two": study()})
    curves = [line for line in two if isinstance(line, Line2D) and len(line.get_xdata()) == 3]
    curves = [line for line in curves if line.get_linestyle() != "None"]
    assert len({(line.get_linestyle(), line.get_marker()) for line in curves}) == 2


def test_more_kernels_than_colours(result):
    n = 12
    mu = np.random.default_rng(0).normal(size=(3, n, 2))
    many = dataclasses.replace(
        result,
        models=Ensemble(mu, np.ones((3, n)), result.models.sigma),
        data_components=np.tile(result.data_components, 4),
        reference_components=np.tile(result.reference_components, 4),
    )
    assert draws(plots.activation_pattern, many)
    assert len(legend_of(plots.trajectories(many)[0].axes)) == n


# What each of them shows.


def test_null_distribution(result):
    bars, line = plots.null_distribution(result, bins=7)
    counts, edges, _ = bars.get_data()
    assert len(counts) == 7
    assert counts.sum() == N_TOYS
    for i, n in enumerate(counts):
        inside = (result.null_combined_score >= edges[i]) & (
            result.null_combined_score < edges[i + 1]
        )
        if i == 6:
            inside |= result.null_combined_score == edges[7]
        assert inside.sum() == n
    statistics = np.concatenate([result.statistics[None], result.null_statistics])
    families = [reading.family for reading in result.component_tests]
    score = graded_score(sparker.harmonic, statistics, families)[0]
    np.testing.assert_allclose(line.get_xdata(), score)
    ax = bars.axes
    low, high = ax.get_xlim()
    assert low <= min(result.null_combined_score.min(), score)
    assert max(result.null_combined_score.max(), score) <= high
    png(ax.figure)
    box = ax.get_legend().get_window_extent()
    x, y = ax.transData.transform((score, counts.max()))
    assert not box.x0 <= x <= box.x1
    assert y < box.y0
    assert legend_of(ax) == [
        f"{N_TOYS} toys",
        f"the data: p = {result.p_value:.2g}, {result.significance:.2f} sigma",
    ]


def test_null_distribution_where_something_is_missing_or_all_the_same(result):
    lost = result.combined_scores.copy()
    lost[1:4] = np.inf
    bars, _ = plots.null_distribution(dataclasses.replace(result, combined_scores=lost))
    assert bars.get_data().values.sum() == N_TOYS - 3
    assert legend_of(bars.axes)[0] == "8 toys, 3 more without a finite statistic"
    for score in (0.0, -3.0, 1e20):
        same = dataclasses.replace(result, combined_scores=np.full(1 + N_TOYS, score), p_value=1.0)
        assert draws(plots.null_distribution, same)
        bars, _ = plots.null_distribution(same)
        assert bars.get_data().values.sum() == N_TOYS
        assert np.all(np.diff(bars.get_data().edges) > 0)  # wide enough to be seen
        assert legend_of(bars.axes)[1] == "the data: p = 1"
    lower = np.append(-70.0, result.null_combined_score - 50)
    far = dataclasses.replace(result, combined_scores=lower)
    bars, _ = plots.null_distribution(far)  # a rule of the user's may give negative scores
    assert bars.get_data().values.sum() == N_TOYS
    low, high = bars.axes.get_xlim()
    assert low <= -70 < high


def test_p_across_widths(result):
    of_kernels = 5  # the shape at the second of three widths, say
    result = dataclasses.replace(result, best_component_test=of_kernels)
    *families, clearest, together, floor = plots.p_across_widths(result)
    each = families[0]
    above = np.sum(result.null_statistics >= result.statistics, axis=0)
    p = (1 + above[:12].reshape(3, 4)) / (N_TOYS + 1)
    assert [line.get_label() for line in families] == list(sparker.engine.FAMILIES)
    assert len({line.get_marker() for line in families}) == 4
    for i, line in enumerate(families):
        np.testing.assert_allclose(line.get_xydata(), np.transpose([result.models.sigma, p[:, i]]))
    assert clearest.get_xydata().tolist() == [[result.widths[1], p[1, 1]]]
    assert set(together.get_ydata()) == {result.p_value}
    assert floor.get_y() + floor.get_height() == pytest.approx(1 / (N_TOYS + 1))
    ax = each.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    low, high = ax.get_ylim()
    assert low < 1 / (N_TOYS + 1)
    assert high > 1
    png(each.figure)
    assert any(label.get_text() for label in ax.get_xticklabels())


def test_every_family_has_its_p_value(result):
    _, dots, together = plots.p_by_family(result)
    assert dots.get_xdata().tolist() == result.p_by_family.tolist()
    assert [label.get_text() for label in dots.axes.get_yticklabels()] == list(result.families)
    assert set(together.get_xdata()) == {result.p_value}
    assert dots.axes.get_xscale() == "log"


def test_columns_of_another_statistic_are_all_shown(without_kernels):
    each, *_ = plots.p_across_widths(without_kernels)
    ax = each.axes
    assert each.get_xdata().tolist() == [0, 1]  # which a logarithmic axis would not show
    assert ax.get_xscale() == "linear"
    assert ax.get_xlabel() == "component test"


@pytest.mark.parametrize("widths", [[0.3], [0.3, 0.4], [3.1, 7.0], [0.02, 0.7], [1e-4, 20.0]])
def test_widths_are_labelled_whatever_their_range(widths, result):
    n = len(widths)
    some = dataclasses.replace(
        result, widths=np.array(widths), p_by_component_test=np.full(n, 0.5), best=0,
        best_component_test=0,
        component_tests=tuple(Component("kernels", width) for width in widths),
        p_by_family=np.full(1, 0.5),
        models=Ensemble(np.zeros((n, 1, 1)), np.zeros((n, 1)), np.array(widths)),
    )  # fmt: skip
    for axis in (
        plots.p_across_widths(some)[0].axes.xaxis,
        plots.trajectories(some)[0].axes.yaxis,
    ):
        figure = axis.get_figure()
        png(figure)
        low, high = sorted(axis.get_view_interval())
        boxes = [
            (label.get_window_extent().x0, label.get_window_extent().x1)
            for tick, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            if low <= tick <= high and label.get_text()
        ]
        assert boxes
        if axis.axis_name == "x":
            assert all(end < start for (_, end), (start, _) in itertools.pairwise(boxes))


def test_score_distribution(result):
    points, band, mean = plots.score_distribution(result)
    bins = np.minimum((expit(result.data_log_ratio) * 20).astype(int), 19)
    counts = np.array([np.sum(bins == i) for i in range(20)])
    assert counts.sum() == N_DATA
    x, y = points.get_xydata().T
    np.testing.assert_allclose(x, (np.flatnonzero(counts) + 0.5) / 20)
    np.testing.assert_array_equal(y, counts[counts > 0])
    toys = result.score_counts[1:]
    assert len(toys) == N_TOYS
    middle = sum(toys) / N_TOYS
    spread = np.sqrt(sum((toys - middle) ** 2) / N_TOYS)
    high, edges, low = band.get_data()
    np.testing.assert_allclose(edges, np.arange(21) / 20)
    np.testing.assert_allclose(high, middle + spread)
    np.testing.assert_allclose(low, np.clip(middle - spread, 0, None))
    np.testing.assert_allclose(mean.get_data().values, middle)
    assert spread.max() > 0
    assert points.axes.get_yscale() == "log"


def test_scores_are_kept_of_the_first_toys_only(result, monkeypatch, tmp_path):
    for module in (kernels, toys, store):
        monkeypatch.setattr(module, "COUNTED", 5)  # in the midst of a chunk
    settings = {**FEW_STEPS, "n_toys": N_TOYS, "explain": False, "store": tmp_path}
    made, stored = (sparker.test(*samples(), **settings) for _ in range(2))
    np.testing.assert_array_equal(made.score_counts, result.score_counts[:6])
    np.testing.assert_array_equal(stored.score_counts, made.score_counts)


def test_scores_of_toys_whose_fit_failed_are_left_out():
    counts = {i: np.full((2, 20), i) for i in range(5)}
    table = toys.Table(models=Ensemble(*np.zeros((3, 1))), score_counts=counts)
    kept = _score_counts(table, np.array([1, 2, np.nan, 3]), 1)
    np.testing.assert_array_equal(kept[:, 0], [0, 1, 3])


def test_score_distribution_of_data_alone_has_no_band(result):
    none = dataclasses.replace(result, score_counts=result.score_counts[:1])
    assert len(plots.score_distribution(none)) == 1


def test_activation_pattern(result):
    image, dashes = plots.activation_pattern(result, n_rows=15)
    own = sparker.engine.components(result.model, result.transform(samples()[1]))
    shown = image.get_array()
    np.testing.assert_allclose(shown, own[result.ranking[:15]].T, rtol=1e-6)
    by_f = sorted(range(N_DATA), key=lambda row: -own[row].sum())[:15]
    unexplained = dataclasses.replace(result, answers=None)
    again = plots.activation_pattern(unexplained, n_rows=15)[0].get_array()
    np.testing.assert_allclose(again, own[by_f].T, rtol=1e-6)
    assert image.get_extent() == [0.5, 15.5, 2.5, -0.5]  # cells stand at 1 to 15 and 0 to 2
    low, high = image.get_clim()
    assert -low == high == np.abs(shown).max()
    assert image.colorbar.ax.get_ylabel()
    assert np.all(np.asarray(shown)[tuple((dashes.get_offsets() - [1, 0]).astype(int).T[::-1])] < 0)
    assert len(plots.activation_pattern(result, n_rows=10**6)[0].get_array()[0]) == N_DATA


def test_negative_components_are_marked_one_by_one(result):
    components = np.zeros((N_DATA, 3))
    components[:, 0] = np.arange(N_DATA)
    components[[49, 47], [1, 2]] = -5.0
    some = dataclasses.replace(result, data_components=components, answers=None)
    _, dashes = plots.activation_pattern(some, n_rows=10)
    # By the sum of a row: 48, 46, 45, 44, then 44 = 49 - 5, 43, 42, and then 42 = 47 - 5.
    assert dashes.get_offsets().tolist() == [[5.0, 1.0], [8.0, 2.0]]


def test_planes_side_by_side(result):
    drawn = plots.planes(result, n_rows=12)
    left, right = figure_of(drawn).axes
    assert [artist.axes for artist in drawn] == [left] * 3 + [right] * 3
    reference, data = (
        sparker.engine.components(result.model, result.transform(x)) for x in samples()
    )
    x, y = (int(ax().split()[-1]) for ax in (left.get_xlabel, left.get_ylabel))
    assert x != y
    np.testing.assert_allclose(points_of(drawn[0]), reference[:, [x, y]], atol=1e-6)
    np.testing.assert_allclose(points_of(drawn[1]), data[:, [x, y]], atol=1e-6)
    planted = result.ranking[:12]
    assert np.sum(planted < 12) >= 11
    for rings, plane in ((drawn[2], data[:, [x, y]]), (drawn[5], result.data_plane)):
        order = np.lexsort(points_of(rings).T)
        expected = plane[planted]
        np.testing.assert_allclose(
            points_of(rings)[order], expected[np.lexsort(expected.T)], atol=1e-6
        )
    np.testing.assert_array_equal(points_of(drawn[3]), result.reference_plane)
    np.testing.assert_array_equal(points_of(drawn[4]), result.data_plane)
    mine = Figure().subplots(2, 1)
    assert {artist.axes for artist in plots.planes(result, axes=mine)} == set(mine)


def test_the_kernel_that_sees_the_anomaly_leads(result):
    components = np.zeros((N_DATA, 3))
    components[:20, 2] = 1.0  # few rows, and the only ones that are anomalous
    components[20:, 0], components[20:, 1] = 4.0, -4.5  # many, that cancel each other
    some = dataclasses.replace(result, data_components=components, answers=None)
    ax = plots.component_plane(some)[0].axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component of kernel 2", "component of kernel 1")
    assert plots.component_against(some, np.arange(N_DATA))[0].axes.get_ylabel().endswith(" 2")
    ax = plots.component_plane(some, (1, 0))[0].axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("component of kernel 1", "component of kernel 0")


def test_without_a_plane_there_is_something_to_see(smallest, without_kernels):
    reference, data, _ = plots.component_plane(smallest)
    assert reference.axes.get_ylabel() == "first principal coordinate"
    np.testing.assert_array_equal(points_of(data)[:, 1], smallest.data_plane[:, 0])
    np.testing.assert_array_equal(points_of(data)[:, 0], smallest.data_components[:, 0])
    reference, data, _ = plots.principal_plane(smallest)
    assert reference.axes.get_ylabel() == "log-ratio f"
    np.testing.assert_array_equal(points_of(reference)[:, 1], smallest.reference_log_ratio)
    np.testing.assert_array_equal(points_of(data)[:, 1], smallest.data_log_ratio)
    _, data, rings = plots.principal_plane(without_kernels, n_rows=7)
    np.testing.assert_array_equal(points_of(data), without_kernels.data_plane)
    top = without_kernels.data_plane[without_kernels.ranking[:7]]
    np.testing.assert_allclose(points_of(rings), top)
    neither = dataclasses.replace(without_kernels, answers=None)
    assert len(plots.principal_plane(neither)) == 2  # nothing says which, so no rings


def test_reference_rows_are_drawn_by_their_weight(result):
    weights = np.ones(N_REFERENCE)
    weights[:10] = 4.0
    some = dataclasses.replace(result, reference_weights=weights)
    area = plots.principal_plane(some)[0].get_sizes()
    np.testing.assert_allclose(area[:10] / area[10], 4)
    assert len(set(plots.principal_plane(result)[0].get_sizes())) == 1


def test_component_against(result):
    observable = np.linspace(-5, 5, N_DATA)
    own = sparker.engine.components(result.model, result.transform(samples()[1]))
    for kernel in range(3):
        (points,) = plots.component_against(result, observable.tolist(), kernel, name="mass")
        np.testing.assert_allclose(
            points_of(points), np.transpose([observable, own[:, kernel]]), atol=1e-6
        )
        assert points.axes.get_xlabel() == "mass"
        assert points.axes.get_ylabel() == f"component of kernel {kernel}"
    observable[[3, 4]] = np.nan, np.inf
    (points,) = plots.component_against(result, observable, 1)
    assert len(points_of(points)) == N_DATA - 2
    assert draws(plots.component_against, result, np.full(N_DATA, np.nan))


@pytest.mark.parametrize(
    ("observable", "kernel", "message"),
    [
        (np.zeros(N_DATA + 1), None, r"must have shape \(50,\), one a data row, got \(51,\)"),
        (np.zeros((N_DATA, 1)), None, "must have shape"),
        (["a"] * N_DATA, None, "the observable must be numbers"),
        (np.zeros(N_DATA), 3, "numbers 0 to 2, got 3"),
        (np.zeros(N_DATA), -1, "numbers 0 to 2, got -1"),
    ],
)
def test_what_cannot_be_drawn_against_is_said(observable, kernel, message, result):
    with pytest.raises(ValueError, match=message):
        plots.component_against(result, observable, kernel)


def test_trajectories(result):
    fit = Fit(result.models, result.t[:, None], result.score_counts, np.bool_(True))
    for feature in range(2):
        lines = plots.trajectories(fit, feature)
        for i, line in enumerate(lines):
            np.testing.assert_array_equal(line.get_xdata(), result.models.mu[:, i, feature])
            np.testing.assert_array_equal(line.get_ydata(), result.widths)
            assert line.get_label() == f"kernel {i}"
            assert line.get_markevery() == [-1]
        assert np.all(np.diff(lines[0].get_ydata()) < 0)  # so that the last is the narrowest
        assert lines[0].axes.get_yscale() == "log"
        assert lines[0].axes.get_xlabel() == f"feature {feature} of the fit"
    lost = result.models.mu.copy()
    lost[2] = np.nan
    assert draws(plots.trajectories, fit._replace(models=result.models._replace(mu=lost)))
    with pytest.raises(ValueError, match="feature must lie between 0 and 1, got 2"):
        plots.trajectories(fit, 2)
    batch = fit._replace(models=Ensemble(*(array[None] for array in result.models)))
    with pytest.raises(ValueError, match=r"holds 1 fits; choose one first, with \.toy"):
        plots.trajectories(batch)


def test_log_ratio_1d():
    mu, a, sigma = np.array([[0.0], [2.0]]), np.array([1.5, -2.0]), 0.7
    x = np.linspace(-2, 5, 40)
    curve, *marks = plots.log_ratio_1d(Ensemble(mu, a, np.array(sigma)), x)
    k = np.exp(-((x - mu) ** 2) / (2 * sigma**2))  # (2, 40)
    f = np.sum(a[:, None] * k * k / k.sum(0), 0)
    np.testing.assert_allclose(curve.get_xydata(), np.transpose([x, f]), atol=1e-6)
    assert [points_of(mark).tolist() for mark in marks] == [[[0.0, 1.5]], [[2.0, -2.0]]]


@pytest.mark.parametrize("weights", [None, np.tile([1.0, 3.0], 100)])
def test_samples_1d(weights):
    reference, data = (x[:, 0] for x in samples())
    expectation, points, *bars = plots.samples_1d(
        reference, data, 47.5, reference_weights=weights, bins=13
    )
    scaled, edges, _ = expectation.get_data()
    own = np.ones(N_REFERENCE) if weights is None else weights
    place = np.clip(np.digitize(reference, edges) - 1, 0, 12)
    expected = [47.5 * own[place == i].sum() / own.sum() for i in range(13)]
    np.testing.assert_allclose(scaled, expected)
    place = np.clip(np.digitize(data, edges) - 1, 0, 12)
    counts = np.array([np.sum(place == i) for i in range(13)])
    some = counts > 0
    middles = [(edges[i] + edges[i + 1]) / 2 for i in range(13)]
    np.testing.assert_allclose(
        points.get_xydata(), np.transpose([middles, counts])[some], atol=1e-12
    )
    (segments,) = [bar.get_segments() for bar in bars if isinstance(bar, LineCollection)]
    for n, segment in zip(counts[some], segments, strict=True):
        np.testing.assert_allclose(segment[:, 1], [n - np.sqrt(n), n + np.sqrt(n)])
    assert expectation.axes.get_ylabel() == f"events / {edges[1] - edges[0]:.2g}"


def test_samples_that_hardly_are_any():
    same = np.full(20, 3.0), np.full(4, 3.0), 4.0
    assert draws(plots.samples_1d, *same)
    drawn = plots.samples_1d(*same)
    assert drawn[0].get_data().values.sum() == pytest.approx(4)
    gaps = [1.0, np.nan, 2.0], [np.inf, 1.5], 2.0
    assert draws(plots.samples_1d, *gaps)
    drawn = plots.samples_1d(*gaps)
    assert drawn[1].get_ydata().tolist() == [1]


def test_power_curve():
    drawn = plots.power_curve(study())
    curve = drawn[0]
    expected = {0.0: 1, 0.1: 4, 0.2: 9}  # in order, whatever the study's
    np.testing.assert_allclose(curve.get_xydata(), [[x, k / 10] for x, k in expected.items()])
    (segments,) = [bar.get_segments() for bar in drawn if isinstance(bar, LineCollection)]
    for segment, (x, k) in zip(segments, expected.items(), strict=True):
        np.testing.assert_allclose(segment, [[x, end] for end in clopper_pearson(k, 10)])
    assert set(drawn[-1].get_ydata()) == {0.05}
    assert legend_of(curve.axes) == ["alpha = 0.05", "power, 95 % intervals"]


def test_power_curves_at_the_ends_of_what_is_possible():
    drawn = plots.power_curve(study((0, 10), (0.0, 1.0)))
    (segments,) = [bar.get_segments() for bar in drawn if isinstance(bar, LineCollection)]
    assert [segments[0][0, 1], segments[1][1, 1]] == [0, 1]
    low, high = drawn[0].axes.get_ylim()
    assert low < 0
    assert high > 1
    assert draws(plots.power_curve, study((3,), (0.1,)))
    two = plots.power_curve({"one": study(alpha=0.05), "two": study(alpha=0.01)})
    assert legend_of(two[0].axes)[:2] == ["alpha = 0.01", "alpha = 0.05"]


def test_overview(result, without_kernels, smallest):
    for one, n_axes in ((result, 7), (smallest, 7), (without_kernels, 2)):
        figure = one.plot()
        if one is not smallest:
            assert png(figure)
        assert len(figure.axes) == n_axes  # one of them the colours' key
        assert all(ax.has_data() for ax in figure.axes)


def lines_of_a_watch() -> list[dict]:
    """As ``sparker watch`` prints them: fine, an alarm, unreadable, fine."""
    return [
        {"look": 1, "p_value": 0.4, "alarm": False},
        {"look": 2, "p_value": 0.002, "alarm": True},
        {"look": 3, "error": "it is gone"},
        {"look": 4, "p_value": 0.7, "alarm": False},
    ]


def test_the_trend_has_a_point_a_batch_marks_alarms_and_leaves_gaps():
    line, alarms, gaps, level = plots.trend(lines_of_a_watch(), alpha=0.05, n_planned=10)
    x, y = line.get_data()
    np.testing.assert_array_equal(x, [1, 2, 3, 4])
    np.testing.assert_array_equal(y, [0.4, 0.002, np.nan, 0.7])  # not joined across the gap
    assert [list(part) for part in alarms.get_data()] == [[2], [0.002]]
    (segment,) = gaps.get_segments()
    assert segment[:, 0].tolist() == [3, 3]
    assert level.get_ydata()[0] == 0.005
    assert level.get_label() == "alpha = 0.05 / 10 batches"
    ax = line.axes
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[0] < 0.002


def test_looks_of_a_monitor_are_drawn_as_their_lines_are(result):
    looks = [Look(1, result, result.p_value, alarm) for alarm in (False, True)]
    lines = [{"p_value": result.p_value, "alarm": alarm} for alarm in (False, True)]
    for one, other in zip(plots.trend(looks), plots.trend(lines), strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
        assert one.get_label() == other.get_label()


@pytest.mark.parametrize("lines", [[], [{"error": "no file"}], lines_of_a_watch() * 500])
def test_any_number_of_looks_can_be_drawn(lines):
    line, *_, level = plots.trend(lines, alpha=0.01)
    assert len(line.get_xdata()) == len(lines)
    assert level.get_label() == "alpha = 0.01"
    line.axes.figure.savefig(io.BytesIO())


def test_what_is_no_look_is_refused():
    with pytest.raises(ValueError, match=r"a look has a p_value or an error, got the keys \['p'\]"):
        plots.trend([{"p": 0.1}])
