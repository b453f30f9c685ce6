"""Toys with other data and the same reference: from a function, or from a pool of rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparker.engine.sample import (
    TwoSample,
    as_alike,
    as_points,
    as_weights,
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
from sparker.nulls.inputs import Samples, Weights
from sparker.nulls.labels import DATA, OUT, REFERENCE, Labeller, exchanges_of
from sparker.nulls.pool import Pool
from sparker.nulls.repeats import check_disjoint, check_fresh
from sparker.nulls.unweighted import POOL, keep_by_weight, kept_note

Rows = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Simulator(Scheme):
    """Other anomaly-free data for every toy, against the one reference.

    Args:
        source: a function ``(rng, n) -> rows`` that draws new rows from the generator it is given
            and from nothing else. Or a pool of anomaly-free rows, none of them in the reference or
            in the data; these change places with the data rows, so a toy's data are n rows of both
            together.
        pool_weights: weights of the pool's rows: an array, a column of the pool, or a function of
            rows. Each row of the pool is kept with a probability proportional to its weight, once;
            those that are left are the pool.
        weights: weights of the reference rows, in place of the test's ``reference_weights``.

    If pool or reference has weights, so must the other: ``pool_weights=1`` or ``weights=1`` where
    its rows have the density of the data as they are.
    """

    source: Callable[[np.random.Generator, int], ArrayLike] | ArrayLike
    pool_weights: Weights | str | None = None
    weights: Weights | str | None = None

    @property
    def features(self) -> frozenset[str]:
        """Its own."""
        weighted = self.weights is not None or self.pool_weights is not None
        return frozenset({"simulator", *["simulator weights"] * weighted})

    def problems(self, reference_weights: Any) -> list[str]:
        """All that is wrong with the weights of reference and pool, in words."""
        own, of_pool = self.weights, self.pool_weights
        if reference_weights is not None and own is not None:
            return ["reference_weights and Simulator(weights=...) are the same; give one of them"]
        if callable(self.source):
            without = "pool_weights belong to rows, but the source of the Simulator is a function"
            return [] if of_pool is None else [f"{without}; leave them out"]
        of_reference = own if reference_weights is None else reference_weights
        known = "rows have the density of the data as they are"
        if of_pool is None and of_reference is not None and not is_one(of_reference):
            return [
                "the reference has weights, but the pool of the Simulator has none; give "
                f"Simulator(rows, pool_weights=...), or pool_weights=1 if its {known}"
            ]
        if of_reference is None and of_pool is not None and not is_one(of_pool):
            return [
                "the pool of the Simulator has weights, but the reference has none; give "
                f"Simulator(rows, pool_weights=..., weights=...), or weights=1 if its {known}"
            ]
        return []

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
        rng, notes = toy_rng(seed, 0), []
        check_disjoint("the simulator's pool", pool, "reference", reference)
        if self.pool_weights is not None and not is_one(self.pool_weights):
            weights = as_weights("pool_weights", self.pool_weights, len(pool))  # type: ignore[arg-type]
            if np.ptp(weights) > 0:
                is_kept = keep_by_weight(rng, weights, expected or len(data), POOL)
                pool = pool[is_kept]
                notes.append(kept_note(is_kept, POOL))
        check_disjoint("the simulator's pool", pool, "data", data)
        if expected is not None:
            # The number of rows that toys draw from must not depend on the number of data rows.
            if len(pool) < most_rows(len(data), expected):
                left = " left, kept by their weights" if notes else ""
                raise ValueError(
                    f"the simulator's pool has {len(pool)} rows{left}, a toy needs up to "
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
            notes=tuple(notes),
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


def is_one(weights: Any) -> bool:
    """Tell whether rows were said to need no weights."""
    return bool(np.ndim(weights) == 0 and weights == 1)


def _repeatable(simulate: Rows, seed: int, n: int) -> np.ndarray:
    """Rows that are drawn twice in the same way."""
    first, again = (simulate(toy_rng(seed, 2**32), n) for _ in range(2))  # of no toy's number
    if not np.array_equal(first, again):
        raise ValueError(
            "the simulator gave other rows for the same generator; it must draw from the rng it is "
            "given and from nothing else, or results cannot be repeated"
        )
    return first
