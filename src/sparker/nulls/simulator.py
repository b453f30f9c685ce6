"""Toys with other data and the same reference: from a function, or from a pool of rows."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sparker.engine.sample import (
    TwoSample,
    as_alike,
    as_points,
    in_one_precision,
    pad,
    stack,
)
from sparker.engine.toys import Toys
from sparker.nulls.experiments import (
    Experiments,
    Fitted,
    Scheme,
    ToySource,
    against,
    most_rows,
    toy_rng,
)
from sparker.nulls.inputs import Samples
from sparker.nulls.labels import DATA, OUT, REFERENCE, Labeller, exchanges_of
from sparker.nulls.pool import Pool
from sparker.nulls.repeats import MIN_DRAWN, check_disjoint, check_fresh

Rows = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Simulator(Scheme):
    """Other anomaly-free data for every toy, against the one reference.

    ``source`` is a function ``(rng, n) -> rows`` that draws new rows from the generator it is given
    and from nothing else. Or it is a pool of anomaly-free rows, none of them in the reference or in
    the data; these change places with the data rows, so a toy's data are n rows of both together.
    """

    source: Callable[[np.random.Generator, int], ArrayLike] | ArrayLike

    @property
    def features(self) -> frozenset[str]:
        """Its own."""
        return frozenset({"simulator"})

    def fingerprint(self) -> np.ndarray:
        """Rows by which sources differ: the pool, or some that the function draws."""
        if not callable(self.source):
            return np.asarray(self.source)
        rows = np.asarray(self.source(np.random.default_rng(0), 16), np.float64)
        return np.char.mod("%.6g", rows)  # other machines may round the last digits otherwise

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """Toys with data of their own, or relabelled with those of a pool."""
        if callable(self.source):
            return self._simulated(observed, seed)
        return self._relabelled(self.source, observed, seed)

    def by_number(self, reference: np.ndarray, seed: int) -> Callable[[int, int], np.ndarray]:
        """What a function draws for toy ``number``, if it has so many rows; the same every time."""
        simulate = self._rows(reference.shape[1])
        _repeatable(simulate, seed, MIN_DRAWN)
        half = max(1, len(reference) // 2)  # no row of a half is in the other one
        check_fresh(simulate, seed, reference[half:], reference[:half])
        return lambda number, n: simulate(toy_rng(seed, number), n)

    def _simulated(self, observed: Samples, seed: int) -> Experiments:
        expected, own = observed.expected, observed.own_weights
        simulate = self._rows(observed.data.shape[1])
        drawn = _repeatable(simulate, seed, len(observed.data))
        reference, data, _ = in_one_precision(
            {"reference": observed.reference, "data": observed.data, "the simulator": drawn}
        )
        check_fresh(simulate, seed, reference, data, weighted=observed.weights is not None)
        n_rows = len(reference) + most_rows(len(data), expected)

        def toys(transform: Fitted) -> Toys:
            fitted = transform(reference)

            def one(number: int) -> TwoSample:
                rows = data
                if number > 0:
                    rng = toy_rng(seed, number)
                    n = len(data) if expected is None else rng.poisson(expected)
                    rows = simulate(rng, n).astype(data.dtype) if n else data[:0]
                sample = against(fitted, own, transform(rows), expected)
                return pad(sample, n_rows)

            return Toys(lambda numbers: stack([one(i) for i in numbers]))

        return Experiments(ToySource(reference, toys))

    def _relabelled(self, source: ArrayLike, observed: Samples, seed: int) -> Experiments:
        """Relabel pool and data, which are alike if there is no anomaly, and keep the reference."""
        expected = observed.expected
        pool, reference = as_alike("the simulator's pool", source, "reference", observed.reference)
        pool, reference, data = in_one_precision(
            {"the simulator's pool": pool, "reference": reference, "data": observed.data}
        )
        for name, rows in (("reference", reference), ("data", data)):
            check_disjoint("the simulator's pool", pool, name, rows)
        rng = toy_rng(seed, 0)
        if expected is not None:
            # The number of rows that toys draw from must not depend on the number of data rows.
            if len(pool) < most_rows(len(data), expected):
                raise ValueError(
                    f"the simulator's pool has {len(pool)} rows, a toy needs up to "
                    f"{most_rows(len(data), expected)}; add rows"
                )
            pool = pool[rng.choice(len(pool), len(pool) - len(data), replace=False)]
        n_reference, n_others = len(reference), len(pool) + len(data)
        order = rng.permutation(n_others)  # rounding must not depend on which are data
        is_data = np.concatenate([np.zeros(n_reference, bool), order >= len(pool)])
        may_be = np.arange(n_reference + n_others) >= n_reference
        labeller = Labeller(
            np.arange(n_reference + n_others),
            np.where(is_data, DATA, np.where(may_be, OUT, REFERENCE)).astype(np.int8),
            exchanges_of(may_be.astype(int), is_data),
            rest=OUT,
        )
        measure = None
        if observed.weights is not None:
            measure = np.concatenate([observed.weights, np.ones(n_others)])
        return Pool(
            np.concatenate([reference, np.concatenate([pool, data])[order]]),
            labeller,
            seed,
            measure=measure,
            expected=expected,
            keep_reference=False,
        ).experiments()

    def _rows(self, n_features: int) -> Rows:
        """The source as a function that is checked every time it draws."""
        source = self.source
        assert callable(source)

        def draw(rng: np.random.Generator, n: int) -> np.ndarray:
            rows = as_points("the simulator's output", source(rng, n))
            if rows.shape != (n, n_features):
                raise ValueError(
                    f"the simulator was asked for {n} rows of {n_features} features and gave shape "
                    f"{rows.shape}"
                )
            return rows

        return draw


def _repeatable(simulate: Rows, seed: int, n: int) -> np.ndarray:
    """Rows that are drawn twice in the same way."""
    first, again = (simulate(toy_rng(seed, 2**32), n) for _ in range(2))  # of no toy's number
    if not np.array_equal(first, again):
        raise ValueError(
            "the simulator gave other rows for the same generator; it must draw from the rng it is "
            "given and from nothing else, or results cannot be repeated"
        )
    return first
