"""The answers as the page shows them: sentences, regions, the rows to mark, columns one by one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparker.findings import words
from sparker.findings.columns import ColumnTest
from sparker.findings.regions import Region
from sparker.findings.result import Result
from sparker.findings.rules import Condition
from sparker.report.words import as_sentence, clip, digits_for, number
from sparker.tables.encoding import OTHER, TIME, Feature

CERTAIN = "confirmed"
OPEN = "not confirmed: it may be chance"
UNKNOWN = "cannot be confirmed"
QUARTILE_DIGITS = 3  # at least
N_SHARES = 3  # values of a category, those whose shares differ most
OTHERS = "other values"
LONG_NAME = 20  # characters of such a value
FEW_DAYS = 3  # between quartiles: up to them, times are told with hours and minutes
LIKELY = 0.5  # where there is no list, rows of at least this probability are marked

NOT_ASKED = (
    "How many rows, where and which columns was not asked for: the test was made with "
    "explain=False. Without it these answers are there."
)
NO_BOUND = (
    "How many rows are anomalous at least is not known: there are too few ways to relabel the rows."
)
NO_LIST = (
    f"There is no list of rows with a known share of ordinary ones: {words.NOT_ALONE}, so that "
    "they cannot be compared one by one."
)


class Place(NamedTuple):
    """A region, to be chosen on the page."""

    number: int  # from 1 on, as in ``Result.region_of_row``
    rule: str
    lack: bool
    n_data: int
    expected: str
    range: str | None
    """At least so many rows are too many there, or missing, at 95 %."""
    p_value: str | None
    status: str
    rows: np.ndarray
    conditions: tuple[Condition, ...]

    @property
    def confirmed(self) -> bool:
        """Whether it holds on rows that were not used to find it."""
        return self.status == CERTAIN


class Line(NamedTuple):
    """What one column shows by itself."""

    name: str
    distance: str
    p_value: str
    differs: bool
    reference: tuple[str, ...]  # quartiles
    data: tuple[str, ...]
    test: str


class Told(NamedTuple):
    """All answers of a result, ready for the page."""

    sentences: list[str]
    not_said: list[str]
    """What could not be answered, and why."""
    places: list[Place]
    marked: np.ndarray  # of data rows: those in the list, or the likely ones
    marked_as: str
    listed: np.ndarray | None  # (N_D,) of bool; None where there is no list, or nothing in it
    columns: list[Line]


def tell(result: Result) -> Told:
    """Put the answers together. Where the test sees nothing, there is no list of rows."""
    found = result.answers
    if found is None:
        return Told([], [NOT_ASKED], [], np.empty(0, int), "", None, [])
    said = [as_sentence(sentence) for sentence in words.sentences(result)]
    missing = [NO_BOUND] * (found.at_least is None)
    if not words.sees_something(result):
        return Told(said, missing, [], np.empty(0, int), "", None, _columns(result))
    listed = None
    if found.row_p_values is None:
        missing.append(NO_LIST)
    elif (rows := result.listed(words.FDR)).any():
        listed = rows
    if listed is not None:
        marked, marked_as = listed, "in the list"
    else:
        marked = np.nan_to_num(found.probability) >= LIKELY
        marked_as = "that are more likely anomalous than not"
    # Where no region holds, the first of all, marked so.
    shown = words.held(result) or found.regions[:1]
    return Told(
        said,
        missing,
        [_place(result, i, region) for i, region in enumerate(shown, 1)],
        np.flatnonzero(marked),
        marked_as,
        listed,
        _columns(result),
    )


def _place(result: Result, i: int, region: Region) -> Place:
    status = CERTAIN if region.confirmed else OPEN if region.p_value is not None else UNKNOWN
    return Place(
        number=i,
        rule=region.rule(result.features),
        lack=region.lack,
        n_data=region.n_data,
        expected=f"{region.expected:,.1f}",
        range=None if region.least is None else f"{region.least:,.0f} or more",
        p_value=None if region.p_value is None else number(region.p_value, 2),
        status=status,
        rows=np.array(region.rows, int),
        conditions=region.conditions,
    )


def _sides(
    result: Result, one: ColumnTest, features: Sequence[Feature], block: Sequence[int]
) -> list[tuple[str, ...]]:
    """What a column has in the reference and in the data: its quartiles, or its values' shares."""
    feature = features[one.column]
    if feature.is_flag:
        shares = [rows[:, block].mean(0) for rows in (result.reference, result.data)]
        told = np.argsort(-np.abs(shares[0] - shares[1]), kind="stable")[:N_SHARES]
        flags = [features[block[i]] for i in told]
        names = [OTHERS if flag.kind == OTHER else flag.level or "yes" for flag in flags]
        return [
            tuple(
                f"{clip(name, LONG_NAME)} {share[i]:.1%}".replace("%", " %")
                for i, name in zip(told, names, strict=True)
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
                one.differs,
                before,
                after,
                one.test,
            )
        )
    return lines
