"""Toys with fresh data, from a function or a pool."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sparker.nulls.experiments import Arm, Draw, Experiments, Fitted, against, most_rows, toy_rng
from sparker.nulls.given import Samples
from sparker.sample import TwoSample, as_alike, as_points, check_columns, column_names, pad, stack

Rows = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Simulator:
    """Fresh anomaly-free data for every toy, against the one reference.

    ``source`` is a function ``(rng, n) -> rows`` that draws from the generator it is given and from
    nothing else, or a pool of anomaly-free rows, none of them in the reference, of which each toy
    takes n at random.
    """

    source: Callable[[np.random.Generator, int], ArrayLike] | ArrayLike

    @property
    def one_pool(self) -> bool:
        """Whether toys share rows that the data are not among."""
        return not callable(self.source)

    def fingerprint(self) -> np.ndarray:
        """Rows that two sources only share if they are the same."""
        if not callable(self.source):
            return np.asarray(self.source)
        rows = np.asarray(self.source(np.random.default_rng(0), 16), np.float64)
        return np.char.mod("%.6g", rows)  # other machines may round the last digits otherwise

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """Toys with data of their own, padded to a common size."""
        if observed.groups is not None:
            raise ValueError(
                "groups mean nothing to a simulator: let it draw rows that belong together"
            )
        names = column_names(self.source)
        check_columns("the simulator's pool", names, "reference", observed.columns)
        reference, data, expected = observed.reference, observed.data, observed.expected
        own = observed.own_weights
        simulate = self.rows(reference)
        _check_repeatable(simulate, seed, len(data))
        n_rows = len(reference) + most_rows(len(data), expected)

        def draw(transform: Fitted) -> Draw:
            fitted = transform(reference)

            def one(number: int) -> TwoSample:
                rows = data
                if number > 0:
                    rng = toy_rng(seed, number)
                    n = len(data) if expected is None else rng.poisson(expected)
                    rows = simulate(rng, n) if n else data[:0]
                sample = against(fitted, own, transform(rows), expected)
                return pad(sample, n_rows)

            return lambda numbers: stack([one(i) for i in numbers])

        arm = Arm(reference, draw)
        return Experiments(arm, arm)

    def rows(self, reference: np.ndarray) -> Rows:
        """The source as a function that is checked every time it draws."""
        source = self.source
        if callable(source):

            def draw(rng: np.random.Generator, n: int) -> np.ndarray:
                rows = as_points("the simulator's output", source(rng, n))
                if rows.shape != (n, reference.shape[1]):
                    raise ValueError(
                        f"the simulator was asked for {n} rows of {reference.shape[1]} features "
                        f"and gave shape {rows.shape}"
                    )
                return rows

            return draw
        pool, _ = as_alike("the simulator's pool", source, "reference", reference)
        _check_disjoint(pool, reference)

        def choose(rng: np.random.Generator, n: int) -> np.ndarray:
            if n > len(pool):
                raise ValueError(
                    f"the simulator's pool has {len(pool)} rows, a toy needs {n}; add rows"
                )
            return pool[rng.choice(len(pool), n, replace=False)]

        return choose


def _check_repeatable(simulate: Rows, seed: int, n: int) -> None:
    first, again = (simulate(toy_rng(seed, 2**32), n) for _ in range(2))  # of no toy's number
    if not np.array_equal(first, again):
        raise ValueError(
            "the simulator gave other rows for the same generator; it must draw from the rng it is "
            "given and from nothing else, or results cannot be repeated"
        )


def _check_disjoint(pool: np.ndarray, reference: np.ndarray) -> None:
    """Refuse a pool that holds the reference: its rows would face themselves."""
    keys = _row_keys(reference)
    shared = np.isin(keys, _row_keys(pool)).mean()
    repeats = 1 - len(np.unique(keys)) / len(reference)
    if shared > 0.5 > repeats:  # features with few values repeat by chance
        raise ValueError(
            f"{shared:.0%} of the reference rows are in the simulator's pool; null data must not "
            "be drawn from the reference of the same fit. Take them out of the pool, or use the "
            "resample scheme, which keeps the two disjoint"
        )


def _row_keys(points: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
    rows = np.ascontiguousarray(points, np.float64) + 0.0  # one zero, not two
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
