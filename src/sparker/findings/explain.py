"""How many, where, which rows, which columns: the answers beside the p-value."""

from typing import NamedTuple

import numpy as np

from sparker.calibration.plan import PreparedToys
from sparker.findings import bound, regions, rows
from sparker.findings.bound import AtLeast
from sparker.findings.columns import ColumnTest, column_tests
from sparker.findings.mixtures import Mixture, as_samples, hide
from sparker.findings.orders import orders
from sparker.findings.regions import Found, Region
from sparker.nulls import Permutation, Samples
from sparker.nulls.experiments import relabelled
from sparker.nulls.pool import Pool
from sparker.statistics.contract import Statistic

STREAM = 0x0A45
"""The random numbers of this module are nobody else's."""

LEVEL = 1 - bound.CONFIDENCE

COUNTED, AVERAGED = 1.0, 0.5
"""Hidden reference rows for each data row: of the mixture whose rows are counted, and of those
whose probabilities are averaged. The fewer are hidden, the more the data stand out; the more, the
better is known what is ordinary."""

N_AVERAGED = 15


class Answers(NamedTuple):
    """What is said beside the p-value."""

    at_least: AtLeast | None
    """Lower bounds at 95 %; None where there are too few labellings for them."""
    probability: np.ndarray
    """(N_D,) that a row is anomalous; NaN for rows that took no part."""
    score: np.ndarray
    """(N_D,) what the probability comes from; it orders rows of the same probability."""
    row_p_values: np.ndarray | None
    """(N_D,) valid for every ordinary row; None where rows do not stand for themselves."""
    regions: tuple[Region, ...]
    columns: tuple[ColumnTest, ...]


def explain(
    observed: Samples,
    statistic: Statistic,
    prepared: PreparedToys,
    p_value: float,
    *,
    seed: int,
    chunk: int | None,
    group_rows: int | None,
) -> Answers:
    """Find all answers, by relabelling rows and by hiding reference rows among the data."""
    known = observed.shown
    pool = Permutation(group_rows).pool(known, seed)
    points = prepared.transform(pool.points)
    rng = np.random.default_rng([seed, STREAM])
    independent = known.groups is None and known.data_weights is None
    n_toys = min(pool.experiments().n_toys or bound.MAX_TOYS, bound.MAX_TOYS)
    all_orders = list(orders(points, pool.points, rng, n_toys + 1))
    mixtures = [hide(pool, rng, share) for share in (COUNTED, *[AVERAGED] * N_AVERAGED)]
    fitted = statistic.log_ratios(
        prepared.statistic, seed, as_samples(points, mixtures, pool), chunk
    )
    member = rows.membership(mixtures, all_orders, len(points))
    score = rows.scores(fitted, member, rng)
    counted, *averaged = mixtures
    probability = np.mean(
        [rows.probability(s, mixture) for s, mixture in zip(score[1:], averaged, strict=True)], 0
    )
    found = regions.search(pool.points, counted, all_orders, score[0])
    place = _data_rows(pool, known)
    at_least = None
    parts = 3 if independent else 1
    if bound.can_tell(n_toys, LEVEL / parts):
        toys = relabelled(points, (pool.weights(number) for number in range(n_toys + 1)))
        at_least = bound.at_least(toys, all_orders, LEVEL / parts)
        if independent:
            others = bound.by_score(score[0], counted, rng, LEVEL / parts), _there(found, counted)
            at_least = at_least._replace(too_many=max(at_least.too_many, *others))
        at_least = agreeing(at_least, p_value, known)
    return Answers(
        at_least,
        _spread(probability, place, known),
        _spread(score[1:, counted.is_data].mean(0), place, known),
        _spread(rows.p_values(score[0], counted), place, known) if independent else None,
        _counted(found, counted, pool, known, independent=independent),
        tuple(column_tests(pool, rng, independent=independent)),
    )


def _there(found: list[Found], mixture: Mixture) -> int:
    """At least so many rows too many in the region that the search found best."""
    best = max((one for one in found if not one.lack), key=lambda one: one.worth, default=None)
    if best is None:
        return 0
    n_data, n_hidden = (
        int(np.sum(best.inside & some)) for some in (mixture.is_data, mixture.hidden)
    )
    share = mixture.odds / (1 + mixture.odds)
    _, most = regions.ordinary(n_hidden, share, 2 * LEVEL / 3)  # only one of its ends counts here
    return max(0, n_data - most)


def agreeing(found: AtLeast, p_value: float, observed: Samples) -> AtLeast:
    """Bounds that agree with the test, which is more powerful than they are.

    Where the test sees nothing at 5 %, they are 0: then they are above the truth of 0 in no more
    samples than the test is. Where it does, at least one row is not as it should be.
    """
    if p_value > LEVEL:
        return AtLeast(0, 0)
    if found.too_many or found.missing:
        return found
    fewer = observed.expected is not None and len(observed.data) < observed.expected
    return AtLeast(0, 1) if fewer else AtLeast(1, 0)


def _data_rows(pool: Pool, observed: Samples) -> np.ndarray:
    """Which data rows the pool's are, in its order."""
    assert pool.rows is not None
    numbers = pool.rows - len(observed.reference)
    return numbers[numbers >= 0]


def _spread(values: np.ndarray, place: np.ndarray, observed: Samples) -> np.ndarray:
    found = np.full(len(observed.data), np.nan)
    found[place] = values
    return found


def _counted(
    found: list[Found],
    mixture: Mixture,
    pool: Pool,
    observed: Samples,
    *,
    independent: bool,
) -> tuple[Region, ...]:
    """The regions with what is in them, the surest first."""
    assert pool.rows is not None
    place = pool.rows - len(observed.reference)
    counted = []
    for one in found:
        n_data, expected, interval, p = regions.confirm(
            one, mixture, len(found), observed.expected, independent=independent
        )
        inside = np.sort(place[one.inside & mixture.is_data])
        around = None
        if one.centre is not None:
            number = int(place[one.centre])
            like = f"data row {number}" if number >= 0 else f"reference row {pool.rows[one.centre]}"
            around = f"the {int(one.inside.sum())} rows most like {like}"
        counted.append(
            Region(
                one.conditions,
                around,
                one.lack,
                n_data,
                float(expected),
                float(n_data - expected),
                interval,
                p,
                tuple(int(row) for row in inside),
            )
        )
    return tuple(sorted(counted, key=lambda one: 1.0 if one.p_value is None else one.p_value))
