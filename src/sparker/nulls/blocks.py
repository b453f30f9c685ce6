"""Relabelling a pool that is read in blocks: labels as bits, points in a scratch file.

Toys have the same distribution as those of ``Permutation``. Which rows are data is drawn block by
block and kept as bits; with weights of both samples some 250 bytes a row are needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparker.nulls.experiments import Experiments, Fitted, ToySource, toy_rng
from sparker.nulls.inputs import Samples
from sparker.nulls.odds import ConditionalBernoulli
from sparker.nulls.unweighted import keep_by_weight, kept_note
from sparker.streaming.fits import StreamedToys
from sparker.streaming.labels import Labels
from sparker.streaming.reference import Reference, n_kept
from sparker.streaming.spool import Spool, StreamedPool

LABELLED = 2**16
"""Rows that are labelled at a time, a multiple of eight."""


@dataclass(frozen=True, eq=False)
class BlockLabeller:
    """Draws which rows of a scratch file are data."""

    n_rows: int
    data_rows: np.ndarray  # (n,) where in there the data are
    weights: np.ndarray | None  # (N,) reference weights; None for ones
    by_odds: ConditionalBernoulli | None  # draws the data rows, where weights decide
    expected: float | None
    seed: int

    def __call__(self, numbers: Sequence[int]) -> Labels:
        """The labels of these toys."""
        one_by_one = [self._observed() if i == 0 else self._toy(i) for i in numbers]
        is_data, is_out, counts = zip(*one_by_one, strict=True)
        n_data = np.array(counts)
        expected = n_data if self.expected is None else np.full(len(n_data), self.expected)
        out = None
        if self.expected is not None:
            nobody = np.zeros_like(is_data[0])
            out = np.stack([nobody if bits is None else bits for bits in is_out])
        totals = np.array([self._total(*one) for one in zip(is_data, is_out, strict=True)], float)
        expected = np.asarray(expected, float)
        return Labels(np.stack(is_data), out, expected / totals, n_data, expected, self.weights)

    @property
    def n_data(self) -> int:
        """How many rows the data have."""
        return len(self.data_rows)

    def _observed(self) -> tuple[np.ndarray, None, int]:
        return self._bits(self.data_rows), None, self.n_data

    def _bits(self, rows: np.ndarray) -> np.ndarray:  # (n,) -> (N / 8,)
        chosen = np.zeros(self.n_rows, bool)
        chosen[rows] = True
        return np.packbits(chosen)

    def _toy(self, number: int) -> tuple[np.ndarray, np.ndarray | None, int]:
        rng = toy_rng(self.seed, number)
        if self.by_odds is not None:
            return self._bits(self.by_odds(rng)), None, self.n_data
        if self.expected is None:
            return *bits_of(rng, self.n_rows, self.n_data, self.n_data), self.n_data
        n_chosen = int(rng.poisson(self.expected))
        # As in memory: a toy with fewer data rows than observed leaves the spare rows out.
        n_taken = max(n_chosen, self.n_data)
        return *bits_of(rng, self.n_rows, n_taken, n_chosen), n_chosen

    def _total(self, is_data: np.ndarray, is_out: np.ndarray | None) -> float:
        """The sum of the reference weights before they are scaled."""
        taken = is_data if is_out is None else is_data | is_out
        if self.weights is None:
            return self.n_rows - int(np.bitwise_count(taken).sum())
        is_taken = np.unpackbits(taken, count=self.n_rows).astype(bool)
        return float(np.where(is_taken, 0, self.weights).sum(dtype=np.float64))


def bits_of(
    rng: np.random.Generator, n_rows: int, n_taken: int, n_data: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Random rows to take out of all, and among them those that are data: as bits, both.

    First it is drawn how many come from each block (hypergeometric), then which ones. Every choice
    of so many rows is then equally likely.
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
    reference, data = observed.reference, observed.data
    own, of_data = observed.weights, observed.data_weights
    rng = toy_rng(seed, 0)
    notes: tuple[str, ...] = ()
    is_kept = None
    n_reference, n_data = len(reference), len(data)
    if own is not None and of_data is None:
        is_kept = keep_by_weight(rng, own, n_data)
        notes = (kept_note(is_kept),)
        n_reference = int(is_kept.sum())
    n_rows = n_reference + n_data
    # Data rows are put at random places: rounding of sums must not depend on which rows are data.
    data_rows = np.sort(rng.choice(n_rows, n_data, replace=False))
    before = data_rows - np.arange(n_data)  # the reference row that follows each of them
    weights = by_odds = None
    if of_data is not None:
        assert own is not None
        largest = max(own.max(), of_data.max())  # a factor changes nothing, single precision may
        weights = (np.insert(own, before, of_data) / largest).astype(np.float32)
        by_odds = ConditionalBernoulli(weights.astype(float), n_data)
    # In the precision that both samples have been brought to.
    basis = some_of_both(reference, is_kept, data)

    def toys(transform: Fitted) -> StreamedToys:
        fitted = transform(basis)
        origin = fitted.mean(0, np.float64, keepdims=True).astype(fitted.dtype)
        pool = Spool(n_rows, fitted.shape[1])

        def near(rows: np.ndarray) -> np.ndarray:
            return transform(rows.astype(basis.dtype, copy=False)) - origin

        own_rows = near(data)
        n_done = n_of_data = 0  # of the reference, and of the data
        for start, rows in reference.blocks():
            if is_kept is not None:
                rows = rows[is_kept[start : start + len(rows)]]
            end = n_done + len(rows)
            last = int(np.searchsorted(before, end)) if end < n_reference else n_data
            here = slice(n_of_data, last)
            block = np.insert(near(rows), before[here] - n_done, own_rows[here], axis=0)
            pool.write(n_done + n_of_data, block)
            n_done, n_of_data = end, last
        return StreamedToys(
            StreamedPool(pool, origin, weights, reference.memory),
            BlockLabeller(n_rows, data_rows, weights, by_odds, observed.expected, seed),
        )

    return Experiments(ToySource(basis, toys, n_rows), notes=notes)


def some_of_both(
    reference: Reference, is_kept: np.ndarray | None, data: np.ndarray
) -> np.ndarray:  # (n, d)
    """Random rows of both samples, to decide on what all toys share."""
    rng = toy_rng(0, 2**32 - 1)  # does not depend on the seed
    shown, n_reference = reference.shown, len(reference)
    if is_kept is not None:
        shown, n_reference = shown[is_kept[reference.shown_rows]], int(is_kept.sum())
    n_rows = n_reference + len(data)
    n_some = min(n_rows, n_kept(data.shape[1]))
    if len(shown) < n_reference:  # no more than there are, with room for fluctuations
        n_some = min(n_some, int(0.9 * len(shown) * n_rows / n_reference))
    n_of_data = int(rng.hypergeometric(len(data), n_reference, n_some))
    some, others = (
        rows[np.sort(rng.choice(len(rows), min(n, len(rows)), replace=False))]
        for rows, n in ((shown, n_some - n_of_data), (data, n_of_data))
    )
    return np.concatenate([some, others])
