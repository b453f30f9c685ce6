"""Relabelling a pool that is read in blocks: labels as bits, points in a scratch file.

Toys are those of ``Permutation`` in distribution. Who is data is drawn block by block and kept as
bits; with weights some 50 bytes a row are needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparker.nulls.experiments import Arm, Draw, Experiments, Fitted, toy_rng
from sparker.nulls.given import Samples
from sparker.nulls.labels import Labeller
from sparker.rows import Rows, Spool, n_kept

LABELLED = 2**16
"""Rows that are labelled at a time, a multiple of eight."""


class Labels(NamedTuple):
    """Who is data, and who neither, in each of B toys."""

    is_data: np.ndarray  # (B, N / 8) bits
    is_out: np.ndarray | None  # likewise; None where all rows take part in all toys
    kind: np.ndarray  # (B,) which reference weights
    factor: np.ndarray  # (B,) what these are multiplied by
    n_data: np.ndarray  # (B,)
    expected: np.ndarray  # (B,) the sum of the reference weights
    toys: "StreamedToys"  # whose labels these are

    def there(self, rows: np.ndarray) -> np.ndarray:  # (...) -> (B, ...)
        """Which of these rows take part in each toy."""
        there = np.ones((len(self.kind), *rows.shape), bool)
        if self.is_out is not None:
            there &= ~_read_bits(self.is_out, rows)
        if self.toys.weights is not None:
            there &= (self.toys.weights[:, rows] > 0)[self.kind] | _read_bits(self.is_data, rows)
        return there


def _read_bits(bits: np.ndarray, rows: np.ndarray) -> np.ndarray:  # (B, N / 8), (...) -> (B, ...)
    return (bits[:, rows // 8] >> (7 - rows % 8)) & 1 == 1


@dataclass(frozen=True, eq=False)
class StreamedToys:
    """Draws labels for a pool of rows in a scratch file."""

    pool: Spool
    origin: np.ndarray  # (1, d) of the coordinates in there
    weights: np.ndarray | None  # (2, N) reference weights, observed and relabelled; None for ones
    labeller: Labeller | None  # who is data, where weights decide
    n_data: int
    expected: float | None
    memory: float | None
    seed: int

    def __call__(self, numbers: Sequence[int]) -> Labels:
        """The labels of these toys."""
        one_by_one = [self._observed() if i == 0 else self._toy(i) for i in numbers]
        is_data, is_out, counts = zip(*one_by_one, strict=True)
        n_data = np.array(counts)
        kind = np.array([int(i > 0 and self.weights is not None) for i in numbers])
        expected = n_data if self.expected is None else np.full(len(n_data), self.expected)
        out = None
        if self.expected is not None:
            nobody = np.zeros_like(is_data[0])
            out = np.stack([nobody if bits is None else bits for bits in is_out])
        totals = np.array(
            [self._total(*one) for one in zip(is_data, is_out, kind, strict=True)], float
        )
        expected = np.asarray(expected, float)
        return Labels(np.stack(is_data), out, kind, expected / totals, n_data, expected, self)

    def _observed(self) -> tuple[np.ndarray, None, int]:
        is_data = np.ones(self.pool.shape[0], bool)
        is_data[: -self.n_data] = False
        return np.packbits(is_data), None, self.n_data

    def _toy(self, number: int) -> tuple[np.ndarray, np.ndarray | None, int]:
        rng = toy_rng(self.seed, number)
        if self.labeller is not None:
            _, data = self.labeller(rng)
            return np.packbits(data > 0), None, self.n_data
        if self.expected is None:
            return *bits_of(rng, self.pool.shape[0], self.n_data, self.n_data), self.n_data
        n_chosen = int(rng.poisson(self.expected))
        # As in memory: room for the observed number is kept in toys that fluctuate below it.
        n_taken = max(n_chosen, self.n_data)
        return *bits_of(rng, self.pool.shape[0], n_taken, n_chosen), n_chosen

    def _total(self, is_data: np.ndarray, is_out: np.ndarray | None, kind: int) -> float:
        """The sum of the reference weights before they are scaled."""
        taken = is_data if is_out is None else is_data | is_out
        if self.weights is None:
            return self.pool.shape[0] - int(np.bitwise_count(taken).sum())
        is_taken = np.unpackbits(taken, count=self.pool.shape[0]).astype(bool)
        return float(np.where(is_taken, 0, self.weights[kind]).sum(dtype=np.float64))


def bits_of(
    rng: np.random.Generator, n_rows: int, n_taken: int, n_data: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Random rows to take out of all, and among them those that are data: as bits, both.

    How many come from each block is drawn first (hypergeometric), then which ones: together every
    choice of so many rows is as likely as any other.
    """
    if n_taken >= n_rows:
        raise ValueError(
            f"a toy with {n_data} data rows leaves no reference in a pool of {n_rows}; use a "
            "larger reference, or a simulator"
        )
    starts = np.arange(0, n_rows, LABELLED)
    sizes = np.minimum(n_rows - starts, LABELLED)
    taken = rng.multivariate_hypergeometric(sizes, n_taken, method="marginals")
    data = taken
    if n_data < n_taken:
        data = rng.multivariate_hypergeometric(taken, n_data, method="marginals")
    is_data, is_out = np.zeros((2, n_rows), bool)
    for start, size, n_here, n_data_here in zip(starts, sizes, taken, data, strict=True):
        rows = start + rng.choice(size, n_here, replace=False)
        is_data[rows[:n_data_here]] = True
        is_out[rows[n_data_here:]] = True
    return np.packbits(is_data), np.packbits(is_out) if n_data < n_taken else None


def relabelled_rows(observed: Samples, seed: int) -> Experiments:
    """The observed sample and its relabellings, for a reference that is streamed."""
    reference, data = observed.rows, observed.data
    assert reference is not None
    n_rows, n_data = len(reference) + len(data), len(data)
    weights = labeller = None
    if observed.row_weights is not None:
        own = observed.row_weights
        measure = np.concatenate([own * (own.sum() / np.sum(own**2)), np.ones(n_data)])
        labeller = Labeller(measure, np.arange(n_rows), n_data, None)
        stays = 1 - n_data * measure / measure.sum()
        weights = np.stack([measure, measure / stays]).astype(np.float32)
    basis = some_of_both(reference, data)  # in the precision of both, which all rows are brought to

    def draw(transform: Fitted) -> Draw:
        fitted = transform(basis)
        origin = fitted.mean(0, np.float64, keepdims=True).astype(fitted.dtype)
        pool = Spool(n_rows, fitted.shape[1])
        for start, rows in reference.blocks():
            pool.write(start, transform(rows.astype(basis.dtype, copy=False)) - origin)
        pool.write(len(reference), transform(data.astype(basis.dtype, copy=False)) - origin)
        return StreamedToys(
            pool, origin, weights, labeller, n_data, observed.expected, reference.memory, seed
        )

    arm = Arm(basis, draw, n_rows)
    return Experiments(arm, arm)


def some_of_both(reference: Rows, data: np.ndarray) -> np.ndarray:  # (n, d)
    """Random rows of the pool, whoever they belong to, to decide on what toys share."""
    rng = np.random.default_rng(1)
    shown = reference.survey.points
    n_some = min(len(reference) + len(data), n_kept(data.shape[1]))
    n_of_data = int(rng.hypergeometric(len(data), len(reference), n_some))
    some, others = (
        rows[np.sort(rng.choice(len(rows), n, replace=False))]
        for rows, n in ((shown, n_some - n_of_data), (data, n_of_data))
    )
    return np.concatenate([some, others])
