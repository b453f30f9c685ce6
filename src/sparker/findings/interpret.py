"""From the table of toys to an answer: which width, which rows, what to know of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from sparker.calibration.plan import PreparedToys
from sparker.calibration.pvalues import Ranked
from sparker.calibration.settings import plain
from sparker.calibration.toys import Table, check_finite
from sparker.engine.ensemble import Ensemble, components, softmax
from sparker.engine.preprocess import Transform
from sparker.engine.train import FAMILIES
from sparker.nulls import Samples
from sparker.statistics.contract import Component, Statistic, families_of, scales
from sparker.tables.encoding import called


def interpret(
    observed: Samples,
    statistic: Statistic,
    prepared: PreparedToys,
    table: Table,
    ranked: Ranked,
    n_made: int,
    labels: Sequence[str],  # of the columns
) -> dict[str, Any]:
    """What the observed row of the table says beside its toys: most of a ``Result``."""
    transform = prepared.transform
    data, reference = transform(observed.data), transform(observed.reference)
    statistics = table.first(n_made)
    check_finite(statistics[0])
    component_tests = prepared.statistic.component_tests or scales(np.arange(statistics.shape[1]))
    spreads = _spreads(statistics)
    best_component_test = decided(component_tests, ranked, spreads)
    # A fit to the data that did not stay finite has left no models.
    widths = np.asarray(prepared.statistic.widths)[: None if table.models is not None else 0]
    best = _width_shown(component_tests, widths, ranked.p_by_column, spreads, best_component_test)
    data_components = reference_components = None
    if table.models is not None:
        model = Ensemble(*(array[best] for array in table.models))
        data_components, reference_components = (
            components(model, rows, statistic.competition or softmax) for rows in (data, reference)
        )
    failed = ~np.any(np.isfinite(statistics[1:]), axis=1)
    return {
        "p_value": ranked.p_value,
        "interval": ranked.interval,
        "above": ranked.above,
        "n_toys": ranked.n_toys,
        "n_failed": int(failed.sum()),
        "widths": widths,
        "component_tests": component_tests,
        "statistics": statistics[0],
        "null_statistics": statistics[1:],
        "score_counts": _score_counts(table, statistics[:, 0], best),
        "p_by_component_test": ranked.p_by_column,
        "p_by_family": ranked.p_by_family,
        "combined_scores": ranked.score,
        "best": best,
        "best_component_test": best_component_test,
        "models": table.models,
        "transform": transform,
        "data_components": data_components,
        "reference_components": reference_components,
        **_plane(transform, data, reference, observed.weights),
        "reference_weights": observed.weights,
        **_kept(observed),
        "competition": plain(statistic.competition),
        "expected": observed.expected,
        "n_reference": len(observed.reference),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "notes": (
            *_silent(component_tests, statistics),
            *_notes(transform, observed, labels),
            *_too_alike(ranked),
        ),
    }


def _score_counts(table: Table, t: np.ndarray, best: int) -> np.ndarray | None:  # (1 + n, bins)
    """Data rows by anomaly score at the width shown: the data's, and those of the first toys.

    Toys whose fit did not stay finite are left out.
    """
    if table.models is None or 0 not in table.score_counts:
        return None
    kept = sorted(i for i in table.score_counts if i < len(t) and np.isfinite(t[i]))
    return np.stack([table.score_counts[i][best] for i in kept])


def decided(component_tests: Sequence[Component], ranked: Ranked, spreads: np.ndarray) -> int:
    """The reading that decided: the clearest of the family that stands out most.

    Of several with the same p-value, the one furthest out in spreads of the toys.
    """
    names = families_of(component_tests)
    families = list(dict.fromkeys(names))
    of_family = np.array([families.index(name) for name in names])
    first = ranked.p_by_family == ranked.p_by_family.min()
    return _clearest(ranked.p_by_column, spreads, first[of_family])


def _clearest(p: np.ndarray, spreads: np.ndarray, among: np.ndarray) -> int:  # (K,) each
    smallest = among & (p == p[among].min())
    return int(np.argmax(np.where(smallest, spreads, -np.inf)))


def _spreads(statistics: np.ndarray) -> np.ndarray:  # (n, K) -> (K,)
    """How far out the first row is, in spreads of the others; nowhere, if it is not finite."""
    toys = np.where(np.isfinite(statistics[1:]), statistics[1:], np.nan)
    # No toy there: it says nothing.
    toys = np.where(np.isnan(toys).all(0), np.nan_to_num(statistics[0]), toys)
    spread = np.nanstd(toys, axis=0)
    found = (statistics[0] - np.nanmean(toys, axis=0)) / np.where(spread > 0, spread, 1)
    return np.where(np.isfinite(found), found, -np.inf)


def _width_shown(
    component_tests: Sequence[Component],
    widths: np.ndarray,  # (m,)
    p: np.ndarray,  # (K,)
    spreads: np.ndarray,  # (K,)
    best_component_test: int,
) -> int:
    """The width whose model is shown: of the reading that decided, or the clearest of kernels."""
    if not len(widths):
        return 0
    of_kernels = np.array([reading.family in FAMILIES for reading in component_tests])
    if not of_kernels[best_component_test]:
        best_component_test = _clearest(p, spreads, of_kernels)
    return int(np.argmin(np.abs(widths - component_tests[best_component_test].scale)))


MAX_FOR_PLANE = 20_000
"""Rows that decide in which plane all are drawn."""


def _plane(
    transform: Transform, data: np.ndarray, reference: np.ndarray, weights: np.ndarray | None
) -> dict[str, np.ndarray]:
    """The rows in the plane in which the reference varies most, to draw them in."""
    some = np.arange(len(reference))
    if len(some) > MAX_FOR_PLANE:
        some = np.random.default_rng(0).choice(len(some), MAX_FOR_PLANE, replace=False)
    directions = transform.principal(reference[some], 2, None if weights is None else weights[some])
    return {
        "data_plane": data @ directions,
        "reference_plane": reference @ directions,
        "directions": directions,
    }


MAX_KEPT = 2**23
"""Values of reference rows that a result keeps."""


def _kept(observed: Samples) -> dict[str, np.ndarray]:
    """The rows as they were given; of very many reference rows, some."""
    reference = observed.reference
    kept = np.arange(len(reference))
    most = max(1000, MAX_KEPT // reference.shape[1])
    if len(reference) > most:
        kept = np.sort(np.random.default_rng(0).choice(len(reference), most, replace=False))
    return {"data": observed.data, "reference": reference[kept], "reference_rows": kept}


def _silent(component_tests: Sequence[Component], statistics: np.ndarray) -> list[str]:
    """Which families had component tests that were not finite while others were, and where."""
    lost = ~np.isfinite(statistics)
    lost[lost.all(axis=1)] = False  # such a toy is counted elsewhere
    names = np.array(families_of(component_tests))
    found: dict[str, list[str]] = {}
    for family in dict.fromkeys(names.tolist()):
        of_data, *of_toys = lost[:, names == family].any(axis=1).tolist()
        where = ["the data"] * of_data
        where += [f"{sum(of_toys)} of {len(of_toys)} toys"] * any(of_toys)
        if where:
            found.setdefault(" and in ".join(where), []).append(family)
    return [
        f"not finite in {where}: {', '.join(families)}; there this counts as no difference, in "
        "data and toys alike, and the other component tests decide"
        for where, families in found.items()
    ]


def _notes(transform: Transform, observed: Samples, labels: Sequence[str]) -> tuple[str, ...]:
    notes = []
    dropped = [labels[i] for i in transform.dropped]
    if dropped:
        *others, last = dropped
        names = f"{', '.join(others)} and {last}" if others else last
        notes.append(f"{names} {'are' if others else 'is'} constant and not used")
        for name, n in zip(dropped, transform.strays(observed.data), strict=True):
            if n:
                notes.append(
                    f"{called(name)} never varies in the reference, but {n} data rows differ "
                    "from it there: an anomaly that this test cannot find"
                )
    return tuple(notes)


RARE = 1e-3


def _too_alike(ranked: Ranked) -> list[str]:
    """Note a sample that is more like the reference than all of many toys."""
    chance = 1 / (ranked.n_toys + 1)
    # Ties are no sign: of few values, or few rows, they are common.
    if chance > RARE or not np.all(ranked.score[1:] > ranked.score[0]):
        return []
    return [
        f"p is 1: all {ranked.n_toys:,} toys have a larger test statistic than the data, which has "
        f"a chance of {chance:.2g} where toys and data are alike. Toys may differ from the "
        "reference (a pool of another density, wrong weights), or the reference may have been "
        "fitted to the data"
    ]
