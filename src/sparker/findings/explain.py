"""How many, where, which rows, which columns: the answers beside the p-value."""

from typing import Annotated, NamedTuple

import numpy as np

from sparker.calibration.plan import PreparedToys
from sparker.findings import bound, regions, rows, rules
from sparker.findings.bound import AtLeast
from sparker.findings.columns import ColumnTest, column_tests
from sparker.findings.mixtures import Mixture, as_samples, hide
from sparker.findings.orders import orders
from sparker.findings.regions import Region
from sparker.findings.rules import Found
from sparker.nulls import Permutation, Samples
from sparker.nulls.experiments import relabelled
from sparker.nulls.pool import Pool
from sparker.statistics.contract import Statistic
from sparker.system.archive import ArraySpec
from sparker.system.machine import free_on_machine
from sparker.tables.encoding import Encoding

STREAM = 0x0A45
"""The random numbers of this module are nobody else's."""

LEVEL = 1 - bound.CONFIDENCE

COUNTED, AVERAGED = 1.0, 0.5
"""Hidden reference rows for each data row: of the mixture whose rows are counted, and of those
whose probabilities are averaged. The fewer are hidden, the more the data stand out; the more, the
better is known what is ordinary."""

N_AVERAGED = 15


BYTES_A_ROW, BYTES_A_VALUE = 8192, 64
"""Of memory, for each row and for each of its values: 199 relabellings, and what is sorted by."""

MAX_REFERENCE = 20_000, 10
"""More reference rows than this, and than so many for each data row, tell little more here: as many
of them are drawn."""


Probabilities = Annotated[np.ndarray, ArraySpec("N_D", low=0, high=1, finite=False)]
"""NaN where rows took no part."""


class UnexplainedError(ValueError):
    """Says why there are no answers beside the p-value."""


class Answers(NamedTuple):
    """What is said beside the p-value."""

    at_least: AtLeast | None
    """Lower bounds at 95 %, whatever the decision, see ``agreeing``; None where there are too few
    labellings for them."""
    probability: Probabilities
    """(N_D,) that a row is anomalous; NaN for rows that took no part."""
    score: Annotated[np.ndarray, ArraySpec("N_D", finite=False)]
    """(N_D,) what the probability comes from; it orders rows of the same probability."""
    row_p_values: Probabilities | None
    """(N_D,) valid for every ordinary row; None where rows do not stand for themselves."""
    regions: tuple[Region, ...]
    """The smallest p-value first."""
    columns: tuple[ColumnTest, ...]
    """The most different first."""

    @property
    def ranking(self) -> np.ndarray:  # (N_D,)
        """The data rows, the most anomalous first; rows that took no part come last."""
        return np.lexsort((-self.score, -np.nan_to_num(self.probability, nan=-1.0)))


def explain(
    observed: Samples,
    statistic: Statistic,
    prepared: PreparedToys,
    *,
    seed: int,
    chunk: int | None,
    group_rows: int | None,
    encoding: Encoding,
    numbers: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
) -> Answers:
    """Find all answers, by relabelling rows and by hiding reference rows among the data.

    ``encoding`` says which features make up a column, ``numbers`` are those of the user's rows,
    where some were left out.
    """
    rng = np.random.default_rng([seed, STREAM])
    # Nuisance parameters stay at the values that fit best, as if these were known.
    known, chosen = enough(observed._replace(tilt=None), rng)
    called = _Called(*numbers, chosen)
    _check_room(len(known.reference) + len(known.data), known.data.shape[1])
    try:
        pool = Permutation(group_rows).pool(known, seed)
    except ValueError as error:
        raise UnexplainedError(
            f"how many rows, where and which is not said, as rows cannot be relabelled: {error}"
        ) from error
    points = prepared.transform(pool.points)
    # Rows of a group do not stand for themselves, and rows of other weights are hidden more often:
    # these cannot be compared one by one.
    independent = known.groups is None and known.data_weights is None and known.strata is None
    n_toys = min(pool.experiments().n_toys or bound.MAX_TOYS, bound.MAX_TOYS)
    all_orders = list(orders(points, pool.points, rng, n_toys + 1))
    level = LEVEL / (2 if independent else 1)  # with so many bounds, of which the largest counts
    least = None
    if bound.can_tell(n_toys, level):
        toys = relabelled(points, (pool.weights(number) for number in range(n_toys + 1)))
        # Of strata, each would have a number of its own.
        given = known.expected is None and known.strata is None
        least = bound.at_least(toys, all_orders, level, given=given)
    unknown = np.full(len(known.data), np.nan)
    columns = column_tests(pool, rng, encoding, independent=independent)
    columns.sort(key=lambda one: (one.p_value, -one.distance))
    answers = Answers(least, unknown, unknown, None, (), tuple(columns))
    # Strata are not all as large beside the data: a search would find that, and no anomaly.
    shares = (COUNTED, *[AVERAGED] * N_AVERAGED) if known.strata is None else ()
    hidden = [hide(pool, rng, share) for share in shares]
    mixtures = [mixture for mixture in hidden if mixture is not None]
    if mixtures and len(mixtures) == len(hidden):
        samples = as_samples(points, mixtures)
        fitted = statistic.log_ratios(prepared.statistic, seed, samples, chunk)
        parts = rows.respects(
            fitted,
            rows.membership(mixtures, all_orders, len(points)),
            rows.crowds(mixtures, points, rng),
        )
        score = rows.scores(parts, rng)
        found = rules.search(pool.points, mixtures[0], all_orders, score[0])
        answers = _by_mixtures(
            answers, mixtures, score, found, pool, known, called, independent=independent
        )
        if least is not None and independent:
            first = [one[0] for one in (score, *parts)]
            by_scores = bound.by_scores(first, mixtures[0], rng, level)
            most = max(least.too_many, by_scores)
            answers = answers._replace(at_least=least._replace(too_many=most))
    return answers


class _Called(NamedTuple):
    """What the user calls the rows: their numbers before any were left out."""

    reference: np.ndarray | None
    data: np.ndarray | None
    chosen: np.ndarray  # (n,) of the reference rows, those that are looked at

    def row(self, of_data: int, of_reference: int) -> str:
        """A row that is one of the data, if its number there is not negative."""
        if of_data >= 0:
            return f"data row {of_data if self.data is None else self.data[of_data]}"
        number = self.chosen[of_reference]
        return f"reference row {number if self.reference is None else self.reference[number]}"


def _check_room(n_rows: int, n_columns: int) -> None:
    """Refuse what would take more memory than there is: the system would end the process."""
    needed, free = n_rows * (BYTES_A_ROW + BYTES_A_VALUE * n_columns), free_on_machine()
    if needed > free:
        raise UnexplainedError(
            f"how many rows, where and which is not said, as for {n_rows:,} rows this takes about "
            f"{needed / 2**30:.2g} GB of memory and {free / 2**30:.2g} GB are free; test a part of "
            "the data for it"
        )


def enough(observed: Samples, rng: np.random.Generator) -> tuple[Samples, np.ndarray]:  # (n,)
    """The samples with as many reference rows as are needed, and which these are.

    All of them where they come in groups, whose sizes must stay as they are.
    """
    n_reference = len(observed.reference)
    most = max(MAX_REFERENCE[0], MAX_REFERENCE[1] * len(observed.data))
    if n_reference <= most or observed.groups is not None:
        return observed, np.arange(n_reference)
    rows = np.sort(rng.choice(n_reference, most, replace=False))
    return observed.with_reference_rows(rows), rows


def _by_mixtures(
    answers: Answers,
    mixtures: list[Mixture],
    score: np.ndarray,  # (J, N)
    found: list[Found],
    pool: Pool,
    observed: Samples,
    called: "_Called",
    *,
    independent: bool,
) -> Answers:
    """Add what hidden reference rows tell: which rows, and where.

    The first mixture is for what is counted: every ordinary data row is as likely to be anywhere
    as its hidden rows are. Probabilities are averaged over the others, which hide fewer rows.
    """
    counted, *averaged = mixtures
    probability = [rows.probability(s, one) for s, one in zip(score[1:], averaged, strict=True)]
    assert pool.rows is not None
    place = pool.rows[counted.is_data] - len(observed.reference)

    def by_row(values: np.ndarray) -> np.ndarray:
        all_rows = np.full(len(observed.data), np.nan)
        all_rows[place] = values
        return all_rows

    return answers._replace(
        probability=by_row(np.mean(probability, axis=0)),
        score=by_row(score[1:, counted.is_data].mean(0)),
        row_p_values=by_row(rows.p_values(score[0], counted)) if independent else None,
        regions=_counted(found, counted, pool, observed, called, independent=independent),
    )


def agreeing(found: AtLeast, p_value: float, *, fewer: bool) -> AtLeast:
    """Return the bounds beside a significant difference, which the test may show better than they.

    Args:
        found: The bounds by themselves.
        p_value: That of the test. At 5 % it shows that at least one row is not as it should be,
            with the confidence of the bounds.
        fewer: True where there are fewer data rows than expected.
    """
    if found.too_many or found.missing or p_value > LEVEL:
        return found
    return AtLeast(0, 1) if fewer else AtLeast(1, 0)


def _counted(
    found: list[Found],
    mixture: Mixture,
    pool: Pool,
    observed: Samples,
    called: "_Called",
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
            like = called.row(int(place[one.centre]), int(pool.rows[one.centre]))
            around = f"the {int(one.inside.sum())} rows nearest to {like}"
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
    return tuple(sorted(counted, key=_how_sure))


def _how_sure(region: Region) -> tuple[float, float]:
    """What comes first: the smaller p-value; where there is none, the clearer difference."""
    error = np.sqrt(region.n_data + region.expected + 1)
    return 1.0 if region.p_value is None else region.p_value, -abs(region.too_many) / error
