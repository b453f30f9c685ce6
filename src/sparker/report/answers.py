"""The answers as the page shows them: regions, the rows to mark, columns one by one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparker.findings import text
from sparker.findings.columns import ColumnTest
from sparker.findings.regions import Region
from sparker.findings.result import Result
from sparker.findings.rules import Condition
from sparker.report.numbers import clip, digits_for, number
from sparker.system.numbers import counted
from sparker.tables.encoding import OTHER, TIME, Feature

QUARTILE_DIGITS = 3  # at least
N_SHARES = 3  # values of a category, those whose shares differ most
OTHERS = "other values"
LONG_NAME = 20  # characters of such a value
FEW_DAYS = 3  # between quartiles: up to them, times have hours and minutes
FLAGGED = f"flagged at FDR <= {text.FDR:g}"
LIKELY = 0.5  # where no row is flagged, rows of at least this probability are marked
PROBABLE = f"with a probability of at least {LIKELY:g}"


class Place(NamedTuple):
    """A region, to be chosen on the page."""

    number: int  # from 1 on, as in ``Result.region_of_row``
    rule: str
    status: str
    is_significant: bool
    lack: bool
    counts: tuple[str, ...]
    """Observed, expected, and the lower bound on their difference."""
    rows: np.ndarray
    conditions: tuple[Condition, ...]


class Line(NamedTuple):
    """A single column, tested by itself."""

    name: str
    distance: str
    p_value: str
    is_significant: bool
    reference: tuple[str, ...]  # quartiles
    data: tuple[str, ...]
    test: str


class ReportAnswers(NamedTuple):
    """All answers of a result, ready for the page."""

    places: list[Place]
    marked: np.ndarray  # of data rows: those flagged, or the likely ones
    marked_as: str
    flagged: np.ndarray | None  # (N_D,) of bool; None where none is
    columns: list[Line]


def collect(result: Result) -> ReportAnswers:
    """Return the answers; no row is marked where the test is not significant."""
    found, nothing = result.answers, np.empty(0, int)
    if found is None:
        return ReportAnswers([], nothing, "", None, [])
    shown, columns = result.significant_regions, _columns(result)
    if not result.is_significant:
        return ReportAnswers(_places(result, shown[:1]), nothing, "", None, columns)
    # Regions without p-values are shown by the first of them.
    first = found.regions[:1] if found.row_p_values is None else ()
    places = _places(result, shown or first)
    flagged = None if found.row_p_values is None else result.listed(text.FDR)
    if flagged is not None and flagged.any():
        return ReportAnswers(places, np.flatnonzero(flagged), FLAGGED, flagged, columns)
    likely = np.flatnonzero(np.nan_to_num(found.probability) >= LIKELY)
    return ReportAnswers(places, likely, PROBABLE, None, columns)


def _places(result: Result, regions: Sequence[Region]) -> list[Place]:
    return [
        Place(
            number=i,
            rule=one.rule(result.features),
            status=text.status(result, one),
            is_significant=one.is_significant(result.answer_level),
            lack=one.lack,
            counts=(counted(one.n_data, "data row"), text.expected(one), text.excess(one)),
            rows=np.array(one.rows, int),
            conditions=one.conditions,
        )
        for i, one in enumerate(regions, 1)
    ]


def _sides(
    result: Result, one: ColumnTest, features: Sequence[Feature], block: Sequence[int]
) -> list[tuple[str, ...]]:
    """Return a column's quartiles, or its values' shares, in the reference and in the data."""
    feature = features[one.column]
    if feature.is_flag:
        shares = [rows[:, block].mean(0) for rows in (result.reference, result.data)]
        most = np.argsort(-np.abs(shares[0] - shares[1]), kind="stable")[:N_SHARES]
        flags = [features[block[i]] for i in most]
        names = [OTHERS if flag.kind == OTHER else flag.level or "yes" for flag in flags]
        return [
            tuple(
                f"{clip(name, LONG_NAME)} {share[i]:.1%}".replace("%", " %")
                for i, name in zip(most, names, strict=True)
            )
            for share in shares
        ]
    quartiles = [one.reference_quartiles or (), one.data_quartiles or ()]
    values = [value for some in quartiles for value in some]
    if feature.kind == TIME:
        days = np.ptp(values) > FEW_DAYS * 86400
        return [tuple(feature.value(v)[: 10 if days else 16] for v in own) for own in quartiles]
    digits = digits_for(values, QUARTILE_DIGITS)
    return [tuple(number(value, digits) for value in own) for own in quartiles]


def _columns(result: Result) -> list[Line]:
    assert result.answers is not None
    labels, features = result.tested_labels, result.encoding.features
    blocks = {block[0]: block for block in result.encoding.blocks}
    lines = []
    for one in result.answers.columns:
        before, after = _sides(result, one, features, blocks[one.column])
        lines.append(
            Line(
                labels[one.column],
                f"{one.distance:.3f}",
                number(one.p_value, 2),
                one.is_significant(result.answer_level),
                before,
                after,
                one.test,
            )
        )
    return lines
