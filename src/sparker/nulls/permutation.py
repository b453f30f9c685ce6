"""Toys that are the pooled rows with other labels."""

from dataclasses import dataclass

import numpy as np

from sparker.nulls.experiments import Experiments, Scheme, toy_rng
from sparker.nulls.inputs import Samples
from sparker.nulls.labels import DATA, REFERENCE, Labeller, exchanges_of
from sparker.nulls.pool import Pool
from sparker.nulls.unweighted import keep_by_weight, kept_note
from sparker.system.numbers import is_number


@dataclass(frozen=True)
class Permutation(Scheme):
    """Relabel the pooled rows: if data and reference are alike, all labellings are equally likely.

    With ``strata`` labels change places within strata only, and the reference is weighted to the
    data's number of rows in each. With ``groups`` whole groups change places, those that have the
    same number of rows. With ``expected`` the number of rows labelled data fluctuates as Poisson
    around it. With weights that data rows have too, a set of rows is labelled data with a
    probability proportional to the product of its weights; with weights of the reference alone, its
    rows are first kept with a probability proportional to theirs.
    """

    group_rows: int | None = None
    """Of larger groups only this many rows take part, drawn at random; left out, all rows do. It
    helps where groups have so many different sizes that few could change places."""

    def __post_init__(self) -> None:
        n = self.group_rows
        if n is not None and not is_number(n, least=1, whole=True):
            raise ValueError(f"group_rows must be a whole number from 1 on, got {n!r}")

    @property
    def features(self) -> frozenset[str]:
        """Whether groups are cut."""
        return frozenset() if self.group_rows is None else frozenset({"group_rows"})

    def experiments(self, observed: Samples, seed: int) -> Experiments:
        """One pool for the observed sample and all toys."""
        return self.pool(observed, seed).experiments()

    def pool(self, observed: Samples, seed: int) -> Pool:
        """The rows that may change places."""
        rng = toy_rng(seed, 0)
        n_reference, n_data = len(observed.reference), len(observed.data)
        notes = []
        of_data = observed.data_weights
        if of_data is not None and np.ptp(of_data) == 0 and len(of_data) > 1:
            notes.append(
                "reference_weights are the same for all data rows; they must be those that the "
                "rows would have as reference rows, not how much they count as data"
            )
        rows = np.arange(n_reference + n_data)
        if observed.weights is not None and observed.data_weights is None:
            is_kept = keep_by_weight(rng, observed.weights, n_data)
            rows = np.concatenate([np.flatnonzero(is_kept), rows[n_reference:]])
            notes.append(kept_note(is_kept))
        if observed.groups is not None:
            rows = self._cut(rng, np.concatenate(observed.groups))
            if len(rows) < n_reference + n_data:
                notes.append(
                    f"{len(rows)} of {n_reference + n_data} rows take part: at most "
                    f"{self.group_rows} of each group"
                )
        # Rounding depends on the order of rows, and so does which of two equally near rows is the
        # nearer: the order must not depend on which are data.
        rng.shuffle(rows)
        measure = _of_both((observed.weights, observed.data_weights), rows)
        labeller, more = _labeller(observed, rows, measure)
        strata = _of_both(observed.strata, rows)
        if strata is not None:
            _check_strata(strata, rows >= n_reference, measure)
        return Pool(
            np.concatenate([observed.reference, observed.data])[rows],
            labeller,
            seed,
            rows=rows,
            measure=measure,
            strata=strata,
            expected=observed.expected,
            tilt=None if observed.tilt is None else observed.tilt.of(rows),
            notes=(*notes, *more),
        )

    def _cut(self, rng: np.random.Generator, groups: np.ndarray) -> np.ndarray:
        """The rows that take part; of groups that are too large, random ones."""
        turn = rng.permutation(len(groups))
        if self.group_rows is None:
            return turn
        order = turn[np.argsort(groups[turn], kind="stable")]
        sizes = np.bincount(groups)
        place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return order[place < self.group_rows]


def _of_both(
    given: tuple[np.ndarray | None, np.ndarray | None] | None, rows: np.ndarray
) -> np.ndarray | None:
    """The values of these rows, if both reference and data have any."""
    parts = [part for part in given or () if part is not None]
    return np.concatenate(parts)[rows] if len(parts) == 2 else None


def _labeller(
    observed: Samples, rows: np.ndarray, odds: np.ndarray | None
) -> tuple[Labeller, list[str]]:
    """What may change places, and notes on what cannot."""
    is_data = rows >= len(observed.reference)
    units, first = np.arange(len(rows)), np.arange(len(rows))
    classes = np.zeros(len(rows), int)
    if observed.groups is not None:
        groups = np.concatenate(observed.groups)[rows]
        _, first, units = np.unique(groups, return_index=True, return_inverse=True)
        classes = np.bincount(units)  # by size: a toy then has as many rows as the data
    if observed.strata is not None:
        strata = np.concatenate(observed.strata)[rows][first]
        classes = strata * (classes.max() + 1) + classes
    classes = np.unique(classes, return_inverse=True)[1]
    of_data = is_data[first]
    labeller = Labeller(
        units,
        np.where(of_data, DATA, REFERENCE).astype(np.int8),
        exchanges_of(classes, of_data, odds),
    )
    return labeller, _fixed(observed, classes, of_data)


def _check_strata(strata: np.ndarray, is_data: np.ndarray, measure: np.ndarray | None) -> None:
    """Refuse strata that weights have left without a reference."""
    weight = np.ones(len(strata)) if measure is None else measure
    n_data, total = (np.bincount(strata, some) for some in (is_data, np.where(is_data, 0, weight)))
    n_bare = int(np.sum((n_data > 0) & (total == 0)))
    if n_bare:
        raise ValueError(
            f"{n_bare} strata have data rows, but no reference row of any weight is left in them; "
            "use coarser strata, or larger weights there"
        )


def _fixed(observed: Samples, classes: np.ndarray, is_data: np.ndarray) -> list[str]:
    """Refuse samples in which nothing can change places; note which data cannot."""
    n_all, n_data = (np.bincount(classes, some) for some in (None, is_data))
    alone = (n_data > 0) & (n_data == n_all)
    if observed.groups is not None and not np.any((n_data > 0) & ~alone):
        common = _common_size(observed)
        raise ValueError(
            "no group of the data has as many rows as a group of the reference"
            f"{' of its stratum' if observed.strata is not None else ''}, so that none can change "
            "places with another; cut groups to a common size, null=Permutation(group_rows="
            f"{common}) for instance (--group-rows {common} on the command line)"
        )
    notes = []
    if observed.strata is not None:
        of_data, of_reference = map(np.unique, reversed(observed.strata))
        n_idle = len(np.setdiff1d(of_reference, of_data))
        if n_idle:
            notes.append(f"{n_idle} strata have no data rows; their reference rows are left out")
    n_alone = int(n_data[alone].sum())
    if observed.groups is not None and n_alone:
        notes.append(
            f"{n_alone} of {int(is_data.sum())} data groups have a number of rows that no group of "
            "the reference has, and stay data in all toys; group_rows cuts groups to a common size"
        )
    return notes


def _common_size(observed: Samples) -> int:
    """The size to cut groups to that lets the most data rows change places."""
    assert observed.groups is not None
    groups = np.concatenate(observed.groups)
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    is_data = first >= len(observed.reference)
    strata = np.zeros(len(first), int)
    if observed.strata is not None:
        strata = np.concatenate(observed.strata)[first]

    def n_exchanged(most: int) -> int:
        cut = np.minimum(sizes, most)
        classes = np.unique(np.stack([strata, cut]), axis=1, return_inverse=True)[1]
        has_reference = np.bincount(classes, ~is_data) > 0
        return int(np.sum(cut[is_data & has_reference[classes]]))

    return max(np.unique(sizes).tolist(), key=n_exchanged)
