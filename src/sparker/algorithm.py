"""Algorithm 1 of the SparKer paper, to be read.

Numbers on the right are its lines, symbols are the paper's, "Paper:" marks a departure.
``sparker.test`` trains all toys at once and gives the same t (``tests/test_algorithm.py``).
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.calibration.combine import minimum_and_product
from sparker.calibration.pvalues import p_values
from sparker.engine.candidates import random_key
from sparker.engine.compiled import compiled
from sparker.engine.config import FitConfig
from sparker.engine.distances import features_of
from sparker.engine.ensemble import Ensemble
from sparker.engine.sample import TwoSample, two_sample
from sparker.engine.step import State, evaluate, gradient_of, init, step
from sparker.engine.widths import linear, width_range


class Algorithm1Result(NamedTuple):
    """What Algorithm 1 returns for B toys and m widths."""

    p_value: float
    """The global P."""
    score: np.ndarray  # (1 + B,)
    """The combined test statistic of the data and of each toy."""
    t: np.ndarray  # (1 + B, m)
    """The Neyman-Pearson test statistics."""
    models: Ensemble  # (m, ...)
    """The configurations stored for the data, one at each width."""


def algorithm_1(
    reference: np.ndarray,
    data: np.ndarray,
    null_samples: Sequence[np.ndarray],
    *,
    config: FitConfig | None = None,
    steps: int = 100_000,
    n_widths: int = 10,
    seed: int = 0,
) -> Algorithm1Result:
    """Test data against a reference at m widths, calibrated by null samples.

    Args:
        reference: (N_R, d) rows without anomalies.
        data: (N_D, d) rows to test.
        null_samples: S_0, toys of shape (N_D, d) that follow the distribution of the reference.
        config: Kernels and their training (default: five kernels, clip 100, L2 0.001).
        steps: T, the number of training steps; a multiple of ``n_widths``.
        n_widths: m, the number of widths at which the model is stored.
        seed: Decides the first locations of the kernels.

    Returns:
        The global p-value and what it comes from.

    >>> rng = np.random.default_rng(0)
    >>> reference, data = rng.normal(size=(200, 1)), rng.normal(size=(40, 1))
    >>> toys = [rng.normal(size=(40, 1)) for _ in range(3)]
    >>> algorithm_1(reference, data, toys, steps=20, n_widths=2).t.shape
    (4, 2)
    """
    config = config or FitConfig(n_kernels=5, clip=100.0, l2=1e-3)
    # Appendix "Model initialization": from twice the 99 % to half the 1 % percentile of distances.
    sigma = linear(*width_range(reference), steps).reshape(n_widths, -1)  # (m, T / m)
    t, models = [], []
    with jax.enable_x64(True):
        for number, sample in enumerate([data, *null_samples]):  # 2-3, 7, 16; number 0 is the data
            both = two_sample(reference, sample)  # w_R = N_D / N_R
            key = jax.random.fold_in(random_key(seed), np.uint32(number))
            models.append(train(key, both, sigma, config))  # 4-5, 17-18
            t.append(np_test(models[-1], both, config))  # 8-9, 19-20
    # Paper: ranks toys among toys (10), data among toys (21), prints 1 - EDF, and P without + 1.
    # Here all rows of one table are ranked alike, as in the appendix: so P is exact, and never 0.
    table = np.stack([np.asarray(each) for each in t])
    score = minimum_and_product(p_values(table))  # 10, 12, 14, 21, 23; grows with the anomaly
    return Algorithm1Result(float(p_values(score)[0]), score, table, models[0])  # 24


@partial(compiled, static_argnames="config")
def train(key: Array, both: TwoSample, sigma: Array, config: FitConfig) -> Ensemble:
    """Minimise L_NP under linear sigma-annealing; store m intermediate configurations.

    Args:
        key: Random key of this sample.
        both: Reference and data, N rows with their weights.
        sigma: (m, T / m) width of each step; a model is stored at the end of each row.
        config: Kernels and their training.

    Returns:
        (m, ...) the stored configurations.
    """
    gradient = gradient_of(both, features_of(both.points), config.design)  # of L_NP, by formula
    per_event = 1 / jnp.sum(both.reference_weight)

    def epoch(state: State, width: Array) -> tuple[State, None]:
        # Paper: names no optimiser. Adam on (L_NP + l2 |a|^2) / N_D, locations in units of the
        # width; |a| <= clip after each step.
        return step(state, width, gradient, per_event, config.rates), None

    def leg(state: State, widths: Array) -> tuple[State, Ensemble]:  # the epochs between two stores
        state, _ = jax.lax.scan(epoch, state, widths)
        return state, Ensemble(state.mu, state.a, widths[-1])

    start = init(key, both, config.n_kernels)  # a = 0, mu on random data points
    return jax.lax.scan(leg, start, sigma)[1]


@partial(compiled, static_argnames="config")
def np_test(models: Ensemble, both: TwoSample, config: FitConfig) -> Array:
    """Return t_NP = -2 L_NP = -2 [ w_R sum_R (e^f - 1) - sum_D f ] of each model."""
    return evaluate(models, both, config.design)[0]
