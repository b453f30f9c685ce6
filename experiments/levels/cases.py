"""Anomaly-free samples of every kind, and the p-values that the test gives them.

If a p-value is right, it lies below alpha in a share alpha of such tests, for every alpha. Samples
and fits are small, so that a thousand tests take a minute or two: a level does not depend on how
good the fit is, only on whether data and toys are treated alike.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import sparker
from sparker.combine import RULES, minimum
from sparker.nulls import Arm, Experiments, Permutation, Resample, Samples, Simulator
from sparker.preprocess import whiten
from sparker.pvalues import rank
from sparker.toys import four_gaussians

N_REFERENCE = 300
N_DATA = 60
CONFIG = sparker.FitConfig(n_kernels=3)
WIDTHS = sparker.WidthConfig(steps=60, n_widths=4)

EARLY = sparker.Sequential()

Rows = Callable[[np.random.Generator, int], np.ndarray]


def exponential(rng: np.random.Generator, n: int) -> np.ndarray:  # (n, 1)
    """The paper's one-dimensional background."""
    return rng.exponential(size=(n, 1))


def correlated(rng: np.random.Generator, n: int) -> np.ndarray:  # (n, 64)
    """Two clusters in 64 dimensions, each with correlations of its own."""
    shape = np.random.default_rng(64)
    mixing = shape.normal(size=(2, 64, 64)) / 8
    centre = shape.normal(size=(2, 64))
    which = (rng.random(n) < 0.3).astype(int)
    return centre[which] + np.einsum("nij,nj->ni", mixing[which], rng.normal(size=(n, 64)))


def grouped(rng: np.random.Generator, n: int) -> np.ndarray:  # (n, 2)
    """Rows in groups of three that lie close together, like views of one image."""
    middle = np.repeat(rng.normal(size=(n // 3, 2)), 3, axis=0)
    return middle + 0.3 * rng.normal(size=middle.shape)


POPULATIONS: dict[str, Rows] = {
    "exponential, 1-D": exponential,
    "four Gaussians, 2-D": four_gaussians.draw_background,
    "correlated mixture, 64-D": correlated,
}


class FromOwnReference(NamedTuple):
    """The mistake: null data drawn from the very rows that are the reference of the same fit."""

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """Like a simulator that knows nothing but the reference."""
        rows = observed.reference

        def again(rng: np.random.Generator, n: int) -> np.ndarray:
            return rows[rng.choice(len(rows), n, replace=False)]

        arm: Arm = Simulator(again).experiments(observed, seed).toys
        return Experiments(arm, arm)


class ExploredSplits(Resample):
    """Another: splits of one pool, explored, though the data bring points that no split has."""

    one_pool = False


class Case(NamedTuple):
    """One way to make an anomaly-free sample and to test it."""

    draw: Callable[[np.random.Generator], dict[str, Any]]  # arguments of sparker.test
    set_aside: int = 0  # toys that are not compared with the data

    def p_values(self, number: int, n_calibration: int) -> dict[str, float]:
        """The p-values of test ``number``, by combination rule; one alone with early stopping."""
        arguments = self.draw(np.random.default_rng([11, number]))
        result = sparker.test(
            **{"config": CONFIG, "widths": WIDTHS} | arguments,
            seed=number,
            n_calibration=n_calibration,
            progress=False,
        )
        if "stop" in arguments:
            return {minimum.__name__: result.p_value}
        table = np.concatenate([result.evidence[None], result.null_evidence])
        readings = table.reshape(len(table), -1)
        return {rule.__name__: rank(readings, rule).p_value for rule in RULES}

    def many(self, n_tests: int, n_calibration: int, first: int = 0) -> dict[str, np.ndarray]:
        """The p-values of many tests, by combination rule."""
        found = [self.p_values(number, n_calibration) for number in range(first, first + n_tests)]
        return {rule: np.array([p[rule] for p in found]) for rule in found[0]}


def plain(population: Rows, null: Callable[[Rows], Any], **settings: Any) -> Case:
    """Both samples from one population, of fixed sizes."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "reference": population(rng, N_REFERENCE),
            "data": population(rng, N_DATA),
            "null": null(population),
            **settings,
        }

    return Case(draw)


def counted(null: Callable[[Rows], Any]) -> Case:
    """A Poisson number of data rows around a known expectation."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "reference": exponential(rng, N_REFERENCE),
            "data": exponential(rng, max(3, rng.poisson(N_DATA))),
            "expected": N_DATA,
            "null": null(exponential),
        }

    return Case(draw)


def weighted(null: Callable[[Rows], Any], *, counts: bool = False) -> Case:
    """A reference from a wider exponential, weighted to the data's; weights differ fivefold."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        reference = 1.5 * exponential(rng, N_REFERENCE)
        n_data = max(3, rng.poisson(N_DATA)) if counts else N_DATA
        return {
            "reference": reference,
            "data": exponential(rng, n_data),
            "reference_weights": np.exp(-reference[:, 0] * (1 - 1 / 1.5)),
            "expected": N_DATA if counts else None,
            "null": null(exponential),
        }

    return Case(draw)


def in_groups(null: Callable[[Rows], Any], *, told: bool = True) -> Case:
    """Rows that come three by three, and whether the test is told so."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        groups = np.arange(N_REFERENCE) // 3, -1 - np.arange(N_DATA) // 3
        return {
            "reference": grouped(rng, N_REFERENCE),
            "data": grouped(rng, N_DATA),
            "groups": groups if told else None,
            "null": null(grouped),
        }

    return Case(draw)


SCHEMES: dict[str, Callable[[Rows], Any]] = {
    "permutation": lambda population: Permutation(),
    "resample": lambda population: Resample(),
    "simulator": Simulator,
}

CASES: dict[str, Case] = {
    **{
        f"{scheme}; {name}": plain(population, null)
        for name, population in POPULATIONS.items()
        for scheme, null in SCHEMES.items()
    },
    **{
        f"{scheme}; correlated mixture, 64-D, whitened": plain(correlated, null, preprocess=whiten)
        for scheme, null in SCHEMES.items()
    },
    **{f"{scheme}; Poisson counts": counted(null) for scheme, null in SCHEMES.items()},
    **{f"{scheme}; weights": weighted(null) for scheme, null in SCHEMES.items()},
    "permutation; weights and Poisson counts": weighted(SCHEMES["permutation"], counts=True),
    **{f"{name}; groups": in_groups(SCHEMES[name]) for name in ("permutation", "resample")},
    "permutation, stopped early; exponential, 1-D": plain(
        exponential, SCHEMES["permutation"], stop=EARLY
    )._replace(set_aside=EARLY.table),
}

WRONG: dict[str, Case] = {
    **{
        f"null drawn from the fit's own reference; {name}": plain(
            population, lambda population: FromOwnReference()
        )
        for name, population in POPULATIONS.items()
    },
    "splits of one pool, explored; exponential, 1-D": plain(
        exponential, lambda population: ExploredSplits()
    ),
    "permutation of rows that belong together": in_groups(SCHEMES["permutation"], told=False),
}
