"""The page with Algorithm 1 gives what the package gives."""

import ast
from pathlib import Path

import numpy as np
import pytest

import sparker
from sparker import algorithm
from sparker.algorithm import algorithm_1
from sparker.calibration.combine import minimum_and_product
from sparker.calibration.pvalues import p_values
from sparker.engine import FitConfig, WidthConfig
from sparker.engine.widths import linear, width_range
from sparker.nulls.experiments import toy_rng

N_TOYS, STEPS, N_WIDTHS, SEED = 9, 60, 6, 3
CONFIG = FitConfig(n_kernels=5, clip=100.0, l2=1e-3, amplitude_rate=0.05, dtype=np.float64)


def draw(rng, n):
    return rng.normal(size=(n, 2))


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    reference, data = draw(rng, 300), draw(rng, 60)
    data[:8] = [2, 2] + 0.1 * data[:8]
    return reference, data


def test_the_page_and_the_package_have_the_same_statistics_and_p_value(samples):
    reference, data = samples
    toys = [draw(toy_rng(SEED, number), len(data)) for number in range(1, N_TOYS + 1)]
    page = algorithm_1(
        reference, data, toys, config=CONFIG, steps=STEPS, n_widths=N_WIDTHS, seed=SEED
    )
    first, last = width_range(reference)
    widths = WidthConfig(
        steps=STEPS, n_widths=N_WIDTHS, annealing=linear, evenly=True, first=first, last=last
    )
    result = sparker.test(
        reference, data, null=sparker.Simulator(draw), preprocess=sparker.unchanged, config=CONFIG,
        widths=widths, combine=minimum_and_product, n_toys=N_TOYS, seed=SEED, explain=False,
    )  # fmt: skip
    table = np.vstack([result.t, result.null_t])
    np.testing.assert_allclose(page.t, table, rtol=1e-9)
    np.testing.assert_allclose(page.models.mu, result.models.mu, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(page.models.a, result.models.a, rtol=1e-9, atol=1e-9)
    assert page.p_value == p_values(minimum_and_product(p_values(table)))[0]


def test_the_statistic_is_minus_twice_the_loss_of_the_paper(samples):
    reference, data = samples
    page = algorithm_1(reference, data, [], config=CONFIG, steps=20, n_widths=2)
    for i in range(2):
        model = type(page.models)(*(np.asarray(array[i]) for array in page.models))
        f_r, f_d = (sparker.engine.log_ratio(model, rows) for rows in samples)
        loss = len(data) / len(reference) * np.expm1(f_r).sum() - f_d.sum()
        assert page.t[0, i] == pytest.approx(-2 * loss, rel=1e-9)
    assert page.p_value == 1  # without toys


@pytest.mark.unit
def test_the_page_is_short():
    source = Path(algorithm.__file__).read_text()
    assert len(source.splitlines()) <= 120
    assert "Paper:" in source
    assert ast.get_docstring(ast.parse(source))
