"""Anomaly-free experiments: what the data would look like if they came from the reference.

A scheme makes experiments out of the two samples: number 0 is the observed one, the others are
toys. Toy i draws its rows or labels from ``default_rng([seed, i])`` and from nothing else. No
scheme ever draws null data from reference rows of the same fit: such data sit on top of the
reference and make kernels see signals that are not there.

| scheme | toys | what is not refitted in every toy comes from | the p-value is |
|---|---|---|---|
| ``Permutation`` | relabel the pooled rows | the pooled rows | exact |
| ``Simulator`` | fresh data, the same reference | the reference | exact |
| ``Resample`` | split an anomaly-free pool anew | each experiment's own rows | calibrated |

"Exact" is for unweighted references and fixed numbers of data rows; ``docs/calibration.md`` says
what Poisson counts and weights change, and has the measured levels of all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sparker.preprocess import Transform
from sparker.sample import (
    AnyArray,
    TwoSample,
    as_alike,
    as_points,
    as_weights,
    column_names,
    pad,
    stack,
)

Draw = Callable[[Sequence[int]], TwoSample]


class Samples(NamedTuple):
    """The two samples as given, checked."""

    reference: np.ndarray  # (N_R, d)
    data: np.ndarray  # (N_D, d)
    weights: np.ndarray | None  # (N_R,) of the reference rows
    expected: float | None  # data rows; None where only the shape is compared
    groups: tuple[np.ndarray, np.ndarray] | None  # (N_R,), (N_D,): numbers of the rows' groups
    columns: tuple[str, ...] = ()  # names, where the reference has any


def samples(
    reference: ArrayLike,
    data: ArrayLike,
    *,
    reference_weights: ArrayLike | None = None,
    expected: float | None = None,
    groups: tuple[ArrayLike, ArrayLike] | None = None,
) -> Samples:
    """Check everything a scheme starts from."""
    reference_points, data_points = as_alike("reference", reference, "data", data)
    weights = None
    if reference_weights is not None:
        weights = as_weights("reference_weights", reference_weights, len(reference_points))
        if np.all(weights == weights[0]):
            weights = None
    if expected is not None and not 0 < expected < np.inf:
        raise ValueError(f"expected must be a positive number of data rows, got {expected}")
    numbered = None
    if groups is not None:
        if expected is not None or weights is not None:
            raise ValueError(
                f"groups cannot be used with {'expected' if expected else 'reference_weights'}: "
                "rows that belong together neither count as Poisson nor carry weights of their own"
            )
        numbered = _numbered_groups(groups, len(reference_points), len(data_points))
    return Samples(
        reference_points,
        data_points,
        weights,
        None if expected is None else float(expected),
        numbered,
        column_names(reference),
    )


class Arm(NamedTuple):
    """Experiments that share whatever is not refitted in each of them."""

    basis: np.ndarray  # the rows that may decide on it
    draw: Callable[[Transform], Draw]  # the experiments, given the preprocessing


class Experiments(NamedTuple):
    """The observed experiment and the toys; for most schemes the same arm."""

    observed: Arm
    toys: Arm


class Scheme(Protocol):
    """What makes anomaly-free experiments."""

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """The experiments around these samples."""


@dataclass(frozen=True)
class Permutation:
    """Relabel the pooled rows: if data and reference are alike, any labelling is as likely.

    With ``groups`` whole groups are relabelled. With ``expected`` the number of rows labelled data
    fluctuates as Poisson around it. With weights a row is labelled data with a probability
    proportional to its weight and, where it stays reference, is weighted up by one over the
    probability of staying, so that the reference keeps describing the same density.
    """

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """One pool for the observed sample and all toys."""
        points = np.concatenate([observed.reference, observed.data])
        n_reference, n_data = len(observed.reference), len(observed.data)
        if observed.weights is None:
            measure = np.ones(len(points))
        else:
            # As many as the unweighted rows that would fluctuate as much.
            effective = observed.weights.sum() / np.sum(observed.weights**2)
            measure = np.concatenate([observed.weights * effective, np.ones(n_data)])
        units, n_units = _units(observed.groups, n_reference, n_data)
        labeller = _Labeller(measure, units, n_units, observed.expected, n_reference=None)
        first = _observed_weights(observed)

        def draw(transform: Transform) -> Draw:
            fitted = transform(points)

            def batch(numbers: Sequence[int]) -> TwoSample:
                weights = [first if i == 0 else labeller(_rng(seed, i)) for i in numbers]
                return TwoSample(fitted, *map(np.stack, zip(*weights, strict=True)))

            return batch

        arm = Arm(points, draw)
        return Experiments(arm, arm)


@dataclass(frozen=True)
class Resample:
    """Split the reference, an anomaly-free pool, into data and reference anew for every toy.

    Needs no data, so a calibration can be made before there are any. Toys differ from the observed
    experiment in nothing but whose rows are tested, yet they share one pool among each other, which
    exchangeable rows would not: the level is right up to that, and measured.
    """

    n_reference: int | None = None
    """Reference rows of each experiment; all that are not data if left out."""

    def __post_init__(self) -> None:
        n = self.n_reference
        if n is not None and (n < 1 or int(n) != n):
            raise ValueError(f"n_reference must be a whole number from 1 on, got {n}")

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """Toys from the pool, and the data against as many rows of it as a toy has."""
        n_units = len(observed.data) if observed.groups is None else _count(observed.groups[1])
        return Experiments(
            self.observed(observed, n_units, seed), self.toys(observed, n_units, seed)
        )

    def toys(self, observed: Samples, n_units: int, seed: int) -> Arm:
        """Toys with so many data rows, or groups of them; the data themselves are not needed."""
        pool = observed.reference
        labeller = self._labeller(observed, n_units)
        most = len(pool)
        if self.n_reference is not None and observed.groups is None:
            most = self.n_reference + most_rows(n_units, observed.expected)

        def draw(transform: Transform) -> Draw:
            fitted = transform(pool)

            def batch(numbers: Sequence[int]) -> TwoSample:
                weights = [labeller(_rng(seed, i)) for i in numbers]
                shared = TwoSample(fitted, *map(np.stack, zip(*weights, strict=True)))
                # Copies of the rows in use cost less than passing over all the others.
                return own_rows(shared, most) if most < len(pool) / 2 else shared

            return batch

        return Arm(pool, draw)

    def observed(self, observed: Samples, n_units: int, seed: int) -> Arm:
        """The data against what a toy of their size faces: the pool without as many rows."""
        pool, data = observed.reference, observed.data
        n_own = len(data) if observed.groups is None else _count(observed.groups[1])
        kept, _ = self._labeller(observed, n_units)(_rng(seed, 0), n_own)
        rest = np.flatnonzero(kept > 0)
        count = observed.expected or len(data)
        sample = TwoSample(
            np.concatenate([pool[rest], data]),
            np.concatenate([kept[rest] * (count / kept[rest].sum()), np.zeros(len(data))]),
            np.repeat([0.0, 1.0], [len(rest), len(data)]),
        )
        n_rows = len(sample.points)
        if observed.expected is not None:  # one compiled program for data sets of any size
            n_rows = max(n_rows, len(pool) - n_units + most_rows(n_units, observed.expected))

        def draw(transform: Transform) -> Draw:
            one = pad(sample._replace(points=transform(np.asarray(sample.points))), n_rows)
            return lambda numbers: stack([one])

        return Arm(np.asarray(sample.points), draw)

    def _labeller(self, observed: Samples, n_units: int) -> "_Labeller":
        pool = observed.reference
        measure = np.ones(len(pool)) if observed.weights is None else observed.weights
        units, kind = np.arange(len(pool)), "rows"
        if observed.groups is not None:
            units, kind = np.unique(observed.groups[0], return_inverse=True)[1], "groups"
        n_all = int(units.max()) + 1
        needed = n_units + (self.n_reference or 1)
        if n_all < needed:
            raise ValueError(
                f"resampling takes {n_units} {kind} out of the reference as data and needs "
                f"{needed} in all, the reference has {n_all}; take a larger one, or relabel "
                "with the permutation scheme"
            )
        return _Labeller(measure, units, n_units, observed.expected, n_reference=self.n_reference)


@dataclass(frozen=True)
class Simulator:
    """Fresh anomaly-free data for every toy, against the one reference.

    ``source`` is a function ``(rng, n) -> rows`` that draws from the generator it is given and from
    nothing else, or a pool of anomaly-free rows, none of them in the reference, of which each toy
    takes n at random.
    """

    source: Callable[[np.random.Generator, int], ArrayLike] | ArrayLike

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
        reference, data, weights, expected, _, columns = observed
        names = column_names(self.source)
        if names and columns and names != columns:
            raise ValueError(
                f"the simulator's pool has the columns {list(names)}, reference has "
                f"{list(columns)}; both must have the same, in the same order"
            )
        n_data = len(data)
        simulate = self.rows(reference)
        most = most_rows(n_data, expected)
        own = np.ones(len(reference)) if weights is None else weights
        _check_simulator(simulate, seed, n_data)

        def draw(transform: Transform) -> Draw:
            fitted_reference = transform(reference)

            def one(number: int) -> TwoSample:
                if number == 0:
                    rows = data
                else:
                    rng = _rng(seed, number)
                    n = n_data if expected is None else rng.poisson(expected)
                    rows = simulate(rng, n) if n else data[:0]
                w_reference = own * ((expected or len(rows)) / own.sum())
                both = np.concatenate([fitted_reference, transform(rows)])
                sample = TwoSample(
                    both,
                    np.concatenate([w_reference, np.zeros(len(rows))]),
                    np.repeat([0.0, 1.0], [len(reference), len(rows)]),
                )
                return pad(sample, len(reference) + most)

            return lambda numbers: stack([one(i) for i in numbers])

        arm = Arm(reference, draw)
        return Experiments(arm, arm)

    def rows(self, reference: np.ndarray) -> Callable[[np.random.Generator, int], np.ndarray]:
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


SCHEMES: dict[str, Callable[[], Scheme]] = {"permutation": Permutation, "resample": Resample}


def scheme(null: str | Scheme) -> Scheme:
    """A scheme by its name, or as it is."""
    if not isinstance(null, str):
        if not hasattr(null, "experiments"):
            raise ValueError(
                "null must be 'permutation', 'resample' or an object of sparker.nulls, got "
                f"{null!r}; a function that draws rows goes into Simulator(function)"
            )
        return null
    if null == "simulator":
        raise ValueError("a simulator needs something to draw from: null=Simulator(function)")
    if null not in SCHEMES:
        raise ValueError(
            f"null must be 'permutation', 'resample' or an object of sparker.nulls, got {null!r}"
        )
    return SCHEMES[null]()


def largest_toy(expected: float | None, n_toys: int, seed: int) -> int:
    """The number of the toy with the most data rows."""
    if expected is None:
        return 1
    counts = [_rng(seed, number).poisson(expected) for number in range(1, n_toys + 1)]
    return 1 + int(np.argmax(counts))


class _Labeller(NamedTuple):
    """Chooses the data rows of a toy out of a pool, and weights the rest."""

    measure: np.ndarray  # (N,) in proportion to which rows become data
    units: np.ndarray  # (N,) number of the group a row belongs to, or of the row itself
    n_units: int  # groups, or rows, that become data
    expected: float | None
    n_reference: int | None  # units that stay reference, if not all

    def __call__(
        self, rng: np.random.Generator, n_chosen: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:  # (N,), (N,): reference and data weights
        if n_chosen is None:
            n_chosen = self.n_units if self.expected is None else int(rng.poisson(self.expected))
        n_all = int(self.units.max()) + 1
        # Room for the observed number of data rows is kept in toys that fluctuate below it, so that
        # the reference does not grow.
        taken = max(n_chosen, self.n_units)
        if taken >= n_all:
            raise ValueError(
                f"a toy with {n_chosen} data rows leaves no reference in a pool of {n_all}; "
                "use a larger reference, or a simulator"
            )
        order, stays = _choose(rng, self._unit_measure(n_all), taken)
        role = np.zeros(n_all, np.int8)  # reference
        role[order[:taken]] = 2  # out
        role[rng.permutation(order[:taken])[:n_chosen]] = 1  # data
        if self.n_reference is not None:
            role[rng.permutation(order[taken:])[self.n_reference :]] = 2
        by_row = role[self.units]
        is_data = by_row == 1
        weight = np.where(by_row == 0, self.measure / stays[self.units], 0)
        weight *= (self.expected or is_data.sum()) / weight.sum()
        return weight, is_data.astype(float)

    def _unit_measure(self, n_all: int) -> np.ndarray:
        return self.measure if n_all == len(self.measure) else np.ones(n_all)


def _choose(
    rng: np.random.Generator, measure: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:  # (N,) rows, the chosen n first; (N,) chances to stay
    """Choose n rows without replacement, with probabilities in proportion to the measure.

    Rosen's Pareto sampling (J. Stat. Plan. Inference 62, 159, 1997): of fixed size, with these
    inclusion probabilities to a very good approximation, and for a uniform measure simple random
    sampling, exactly.
    """
    chance = n * measure / measure.sum()
    if np.ptp(measure) > 0 and chance.max() > 0.5:
        row = int(chance.argmax())
        raise ValueError(
            f"reference_weights are too uneven: row {row} alone stands for {chance[row]:.2g} of "
            f"the {n} data rows, and a relabelling needs many rows for each; merge or drop such "
            "rows, or use a simulator"
        )
    u = rng.random(len(measure))
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.ptp(measure) > 0:
            u = u / (1 - u) * (1 - chance) / chance  # rows without weight go last
    return np.argpartition(u, n), 1 - chance


def _observed_weights(observed: Samples) -> tuple[np.ndarray, np.ndarray]:
    n_reference, n_data = len(observed.reference), len(observed.data)
    own = np.ones(n_reference) if observed.weights is None else observed.weights
    scaled = own * ((observed.expected or n_data) / own.sum())
    return (
        np.concatenate([scaled, np.zeros(n_data)]),
        np.repeat([0.0, 1.0], [n_reference, n_data]),
    )


def most_rows(n_data: int, expected: float | None) -> int:
    """So many data rows that no toy in 10^15 has more."""
    return n_data if expected is None else max(n_data, int(expected + 8 * np.sqrt(expected) + 8))


def own_rows(batch: TwoSample, n_rows: int) -> TwoSample:
    """Every toy with a copy of the rows it uses and no others, padded to a common number."""
    return stack([pad(batch.alone(i), n_rows) for i in range(len(batch.data_weight))])


def _units(
    groups: tuple[AnyArray, AnyArray] | None, n_reference: int, n_data: int
) -> tuple[np.ndarray, int]:
    if groups is None:
        return np.arange(n_reference + n_data), n_data
    numbers = np.unique(np.concatenate(groups), return_inverse=True)[1]
    return numbers, _count(groups[1])


def _count(groups: AnyArray) -> int:
    return len(np.unique(groups))


def _numbered_groups(
    groups: tuple[ArrayLike, ArrayLike], n_reference: int, n_data: int
) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(groups, tuple | list) or len(groups) != 2:
        raise ValueError(
            "groups must be a pair: the groups of the reference rows and those of the data rows"
        )
    names = [np.asarray(part) for part in groups]
    for name, part, n_rows in zip(("reference", "data"), names, (n_reference, n_data), strict=True):
        if part.shape != (n_rows,):
            raise ValueError(
                f"the groups of {name} must have shape ({n_rows},), one a row, got {part.shape}"
            )
    if names[0].dtype.kind != names[1].dtype.kind:
        raise ValueError(
            f"groups must be of one kind, got {names[0].dtype} for reference and {names[1].dtype} "
            "for data"
        )
    shared = np.intersect1d(names[0], names[1])
    if len(shared):
        raise ValueError(
            f"group {shared[0]!s} has rows in both reference and data, as have {len(shared) - 1} "
            "others; a group is relabelled whole, so give groups of different samples different "
            "names"
        )
    numbers = np.unique(np.concatenate(names), return_inverse=True)[1]
    return numbers[:n_reference], numbers[n_reference:]


def _check_simulator(
    simulate: Callable[[np.random.Generator, int], np.ndarray], seed: int, n: int
) -> None:
    first, again = (simulate(_rng(seed, 2**32), n) for _ in range(2))
    if not np.array_equal(first, again):
        raise ValueError(
            "the simulator gave other rows for the same generator; it must draw from the rng it is "
            "given and from nothing else, or results cannot be repeated"
        )


def _check_disjoint(pool: np.ndarray, reference: np.ndarray) -> None:
    """Refuse a pool that holds the reference: its rows would face themselves."""
    shared = np.isin(_row_keys(reference), _row_keys(pool)).mean()
    repeats = 1 - len(np.unique(_row_keys(reference))) / len(reference)
    if shared > 0.5 > repeats:  # features with few values repeat by chance
        raise ValueError(
            f"{shared:.0%} of the reference rows are in the simulator's pool; null data must not "
            "be drawn from the reference of the same fit. Take them out of the pool, or use the "
            "resample scheme, which keeps the two disjoint"
        )


def _row_keys(points: np.ndarray) -> np.ndarray:  # (N, d) -> (N,)
    rows = np.ascontiguousarray(points, np.float64) + 0.0  # one zero, not two
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]


def _rng(seed: int, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, number])
