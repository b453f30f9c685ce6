"""Anomaly-free samples for every scheme, of the sizes at which a mistake would show.

If a p-value is right, it lies below alpha in a share alpha of such tests, for every alpha; or less
often, where values tie or few labellings exist.
"""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from experiments.levels.mistakes import (
    AnySize,
    Ignoring,
    OwnReference,
    PoolApart,
    Splits,
    WeightsAsChances,
)
from experiments.levels.populations import POPULATIONS, STEEP, Population, in_groups
from experiments.levels.statistics import NAMES, Plain

import sparker
from sparker import Permutation, Simulator, unchanged

CONFIG = sparker.FitConfig(n_kernels=3)
WIDTHS = sparker.WidthConfig(steps=60, n_widths=4)
"""Small fits: a level does not depend on how good they are, only on whether all are alike."""

N_TOYS = 99
EARLY = sparker.Sequential(exceedances=5, first=20)

Arguments = dict[str, Any]
Make = Callable[[np.random.Generator, Population], Arguments]
"""One anomaly-free sample, as arguments of ``sparker.test``."""


def two(n_reference: int, n_data: int, **settings: Any) -> Make:
    """Both samples from one population, of fixed sizes."""

    def make(rng: np.random.Generator, population: Population) -> Arguments:
        rows = population.draw(rng, n_reference + n_data)
        while np.ptp(rows[:, 0]) == 0:  # a few coins may all show the same, and are no sample
            rows = population.draw(rng, n_reference + n_data)
        return {"reference": rows[:n_reference], "data": rows[n_reference:], **settings}

    return make


def counted(n_reference: int, expected: int, null: Callable[[Population], Any]) -> Make:
    """A Poisson number of data rows around a known expectation."""
    return lambda rng, population: {
        "reference": population.draw(rng, n_reference),
        "data": population.draw(rng, max(3, rng.poisson(expected))),
        "expected": expected,
        "null": null(population),
    }


def simulated(rng: np.random.Generator, population: Population) -> Arguments:
    """Toys from a function."""
    return two(100, 60, null=Simulator(population.draw))(rng, population)


def pooled(n_pool: int, *, counts: bool = False, weights: bool = False) -> Make:
    """Toys from a pool of rows."""

    def make(rng: np.random.Generator, population: Population) -> Arguments:
        reference = population.tilted(STEEP)(rng, 150) if weights else population.draw(rng, 150)
        return {
            "reference": reference,
            "data": population.draw(rng, max(3, rng.poisson(60)) if counts else 60),
            "null": Simulator(population.draw(rng, n_pool), pool_weights=1 if weights else None),
            "expected": 60.0 if counts else None,
            "reference_weights": untilting(population, STEEP) if weights else None,
        }

    return make


def untilting(population: Population, strength: float) -> Callable[[np.ndarray], np.ndarray]:
    """Weights that undo the tilt of a reference with far too many rows in its upper tail."""
    return lambda rows: np.exp(-strength * population.height(rows))


def weighted(
    *, known: bool = True, counts: bool = False, strength: float = STEEP, null: Any = "permutation"
) -> Make:
    """A reference with an oversampled upper tail; the weights of data rows are known or not."""

    def make(rng: np.random.Generator, population: Population) -> Arguments:
        reference = population.tilted(strength)(rng, 600)
        weights = untilting(population, strength)
        return {
            "reference": reference,
            "data": population.draw(rng, max(3, rng.poisson(40)) if counts else 40),
            "expected": 40.0 if counts else None,
            "reference_weights": weights if known else weights(reference),
            "null": null,
        }

    return make


def two_processes(rng: np.random.Generator, population: Population) -> Arguments:
    """A reference of two processes, whose weights the rows do not tell: one was simulated less."""
    draws = population.tilted(1.5), population.tilted(-1.5)
    shares = {"reference": 0.8, "data": 0.3}

    def rows(n: int, share: float) -> tuple[np.ndarray, np.ndarray]:
        is_first = rng.random(n) < share
        both = [draw(rng, n) for draw in draws]
        return np.where(is_first[:, None], *both), is_first

    reference, is_first = rows(600, shares["reference"])
    weights = np.where(is_first, 0.3 / 0.8, 0.7 / 0.2)
    data, _ = rows(40, shares["data"])
    return {"reference": reference, "data": data, "reference_weights": weights}


def stratified(*, weights: bool = False, null: Any = "permutation") -> Make:
    """Three periods that differ, of which the data have other shares than the reference."""
    sizes = np.array([150, 100, 50]), np.array([10, 20, 30])

    def make(rng: np.random.Generator, population: Population) -> Arguments:
        tilts = (-1.5, 0.0, 1.5)
        reference, data = (
            np.concatenate([population.tilted(t)(rng, n) for t, n in zip(tilts, part, strict=True)])
            for part in sizes
        )
        settings: Arguments = {"null": null}
        if weights:  # within strata, the reference has been tilted once more
            more = [population.tilted(t + 1)(rng, n) for t, n in zip(tilts, sizes[0], strict=True)]
            reference = np.concatenate(more)
            settings["reference_weights"] = untilting(population, 1.0)
        strata = tuple(np.repeat(np.arange(3), part) for part in sizes)
        return {"reference": reference, "data": data, "strata": strata, **settings}

    return make


def paired(rng: np.random.Generator, population: Population) -> Arguments:
    """Forty pairs, each of a density of its own."""
    tilts = rng.uniform(-2, 2, 40)
    pairs = np.stack([population.tilted(tilt)(rng, 2) for tilt in tilts])
    numbers = np.arange(40)
    return {"reference": pairs[:, 0], "data": pairs[:, 1], "strata": (numbers, numbers)}


def grouped(
    of_reference: Callable[[np.random.Generator], np.ndarray],
    of_data: Callable[[np.random.Generator], np.ndarray],
    *,
    null: Any = "permutation",
    strata: bool = False,
) -> Make:
    """Rows in groups of these sizes."""

    def make(rng: np.random.Generator, population: Population) -> Arguments:
        sizes = of_reference(rng), of_data(rng)
        parts, periods = [], []
        for part in sizes:
            rows = in_groups(population.draw, part)(rng)
            if strata:  # the first half of the groups is of another period
                first = int(part[: len(part) // 2].sum())
                rows[:first] = in_groups(population.tilted(-1.5), part[: len(part) // 2])(rng)
                periods.append(np.arange(len(rows)) < first)
            parts.append(rows)
        names = [np.repeat(np.arange(len(part)), part) for part in sizes]
        return {
            "reference": parts[0],
            "data": parts[1],
            "groups": (names[0], 1000 + names[1]),
            "strata": tuple(periods) if strata else None,
            "null": null,
        }

    return make


def each(n_groups: int, n_rows: int) -> Callable[[np.random.Generator], np.ndarray]:
    """So many groups of so many rows."""
    return lambda rng: np.full(n_groups, n_rows)


def mixed(n_groups: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Groups of one to four rows."""
    return lambda rng: rng.integers(1, 5, n_groups)


CELLS: dict[str, Make] = {
    "permutation, 300 and 60": two(300, 60),
    "permutation, 300 and 9": two(300, 9),
    "permutation, 30 and 60": two(30, 60),
    "permutation, 12 and 4": two(12, 4),
    "permutation, stopped early": two(300, 60, stop=EARLY),
    "counts, 300 and 60": counted(300, 60, lambda _: "permutation"),
    "counts, 60 and 30": counted(60, 30, lambda _: "permutation"),
    "strata": stratified(),
    "pairs": paired,
    "groups of three": grouped(each(100, 3), each(20, 3)),
    "groups of one to four": grouped(mixed(80), mixed(25)),
    "groups of 3 and of 6, cut": grouped(each(50, 3), each(10, 6), null=Permutation(group_rows=3)),
    "groups of 2 and of 20, cut": grouped(
        each(100, 2), each(5, 20), null=Permutation(group_rows=2)
    ),
    "groups within strata": grouped(each(60, 3), each(20, 3), strata=True),
    "one group and five": grouped(each(5, 12), each(1, 12)),
    "weights, a function": weighted(),
    "weights, a function, and counts": weighted(counts=True),
    "weights within strata": stratified(weights=True),
    "weights of the reference alone": weighted(known=False, strength=0.75),
    "weights of two processes": two_processes,
    "simulator, a function": simulated,
    "simulator, a function, and counts": counted(100, 60, lambda p: Simulator(p.draw)),
    "simulator, 150 rows": pooled(150),
    "simulator, 30 rows": pooled(30),
    "simulator, 600 rows": pooled(600),
    "simulator, 300 rows, and counts": pooled(300, counts=True),
    "simulator, 150 rows, weights": pooled(150, weights=True),
}

MISTAKES: dict[str, Make] = {
    "null drawn from the reference": two(150, 60, null=OwnReference()),
    "a pool of 150 kept apart": lambda rng, population: two(
        150, 60, null=PoolApart(population.draw(rng, 150))
    )(rng, population),
    "splits of the reference": two(300, 60, null=Splits()),
    "groups of three, ignored": grouped(each(100, 3), each(20, 3), null=Ignoring()),
    "groups of 3 and of 6, alike": grouped(each(50, 3), each(10, 6), null=AnySize()),
    "groups of 2 and of 20, alike": grouped(each(100, 2), each(5, 20), null=AnySize()),
    "strata, ignored": stratified(null=Ignoring()),
    "weights, as chances": weighted(known=False, null=WeightsAsChances()),
}


def p_values(
    name: str, population: str, *, kernels: bool, numbers: range, n_toys: int = N_TOYS
) -> dict[str, np.ndarray]:
    """What tests of these numbers give, by statistic."""
    make = (CELLS | MISTAKES)[name]
    drawn = POPULATIONS[population]
    key = zlib.crc32(f"{name}; {population}; {kernels}".encode())
    plain = {"statistic": Plain(drawn.high), "preprocess": unchanged}
    small = {"config": CONFIG, "widths": WIDTHS}
    found: dict[str, list[float]] = {}
    for number in numbers:
        arguments = make(np.random.default_rng([key, number]), drawn)
        result = sparker.test(
            **arguments,
            **(small if kernels else plain),
            seed=number,
            n_toys=n_toys,
            progress=False,
            explain=False,
        )
        if kernels:
            one = {"kernels": result.p_value}
        else:
            one = {"all four": result.p_value}
            if "stop" not in arguments:
                one |= dict(zip(NAMES, result.p_by_component_test.tolist(), strict=True))
        for statistic, p in one.items():
            found.setdefault(statistic, []).append(p)
    return {statistic: np.array(p) for statistic, p in found.items()}
