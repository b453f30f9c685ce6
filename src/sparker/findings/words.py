"""The answers in words, the same on the terminal, in notebooks and in reports; and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparker.engine.train import FAMILIES
from sparker.findings import regions
from sparker.findings.bound import CONFIDENCE
from sparker.findings.regions import Region
from sparker.nulls import Pull
from sparker.system.numbers import finite
from sparker.tables.encoding import Feature

if TYPE_CHECKING:
    from sparker.findings.result import Result

READINGS = {
    "all kernels": "all kernels together",
    "isolated": "isolated rows",
    "bump": "rows that crowd in one place",
    "shape": "rows that crowd or spread in one place",
    "neighbours": "rows whose nearest rows are data",
    "lonely": "rows far from all others",
    "edges": "rows at the edge of a column",
    "shifts": "shifted means or spreads of columns",
    "statistic": "the statistic",
}
"""The families of statistics, as people may call them."""

OF_NEIGHBOURS = ("neighbours", "lonely")
"""Those whose scale is a number of neighbours."""

FDR = 0.2
"""The false discovery rate of the list of rows, where no other is asked for."""

LEVEL = 0.05
"""Above it, a p-value is no reason to speak of anomalous rows."""

N_COLUMNS = 5
"""Columns named in a sentence."""

NOT_ALONE = "rows come in groups, in strata, or with weights of their own"

PERCENT = f"{CONFIDENCE:.0%}".replace("%", " %")


def sentences(result: "Result") -> list[str]:
    """How many, where, which rows, which columns."""
    return [
        sentence
        for sentence in (
            how_many(result),
            *where(result),
            which_rows(result),
            which_columns(result),
        )
        if sentence
    ]


def seen_by(result: "Result") -> str:
    """Which reading decided; nothing where there is nothing to see, or no kernels."""
    if result.models is None or result.p_value > LEVEL:
        return ""
    return f"seen most clearly by {reading(result)}"


def reading(result: "Result") -> str:
    """The reading that decided, as people may call it."""
    family, scale = result.decided
    name = READINGS.get(family, family)
    if family in FAMILIES:
        widths = result.widths  # none where no models were kept
        span = f" of {widths[0]:.3g} to {widths[-1]:.3g}" if len(widths) else ""
        return f"{name} at width {scale:.3g}{span}"
    if family in OF_NEIGHBOURS:
        return f"{name}, by {scale:.0f} neighbour{'s' * (scale != 1)}"
    return name


def how_many(result: "Result") -> str:
    """The lower bounds."""
    n, missing, n_data = result.at_least, result.missing_at_least, len(result.data)
    if n is None:
        return ""
    if not n and not missing:
        return f"no row is anomalous for certain (at {PERCENT} confidence)"
    said = []
    if n:
        said.append(f"at least {n:,} of the {n_data:,} data rows {_are(n)} anomalous")
    if missing:
        said.append(f"at least {missing:,} {_rows(missing)} {_are(missing)} missing from the data")
    return f"{' and '.join(said)} ({PERCENT} confidence; how many at most cannot be known)"


def held(result: "Result") -> list[Region]:
    """The regions that may be spoken of."""
    assert result.answers is not None
    return regions.held(result.answers.regions, result.p_value)


def sees_something(result: "Result") -> bool:
    """Whether there is a reason to speak of anomalous rows."""
    return result.p_value <= LEVEL or bool(held(result))


def where(result: "Result") -> list[str]:
    """The regions that hold, in words."""
    assert result.answers is not None
    found, features = held(result), result.features
    if found:
        alone = "" if result.p_value <= LEVEL else "; the test as a whole does not see it"
        return [f"where: {in_words(one, features)}{alone}" for one in found]
    if result.p_value > LEVEL or not result.answers.regions:
        return []
    if result.answers.row_p_values is None:
        first = in_words(result.answers.regions[0], features)
        return [f"where: most likely {first}; not confirmed, as {NOT_ALONE}"]
    return ["where: no region holds on rows that were not used to find it"]


def in_words(region: Region, features: Sequence[Feature]) -> str:
    """A region, and what was counted there."""
    expected = f"{region.expected:.1f}"
    text = (
        f"{region.rule(features)}: {region.n_data:,} data {_rows(region.n_data)} where {expected} "
    )
    text += f"{'is' if expected == '1.0' else 'are'} expected"
    if region.least is not None:
        text += f", at least {region.least:.0f} {'missing' if region.lack else 'too many'}"
    if region.p_value is not None:
        text += f" (p {region.p_value:.2g}{'' if region.confirmed else ', not confirmed'})"
    return text


def which_rows(result: "Result") -> str:
    """The list of rows, or the first of all."""
    assert result.answers is not None
    if not sees_something(result) or np.isnan(result.answers.probability).all():
        return ""
    order, numbers = result.ranking, result.row_numbers
    first = ", ".join(str(row) for row in numbers[order[:5]])
    if result.answers.row_p_values is None:
        return f"which rows: most anomalous {first}; no list of them can be sure, as {NOT_ALONE}"
    in_list = result.listed(FDR)
    n = int(in_list.sum())
    if n:
        first = ", ".join(str(row) for row in numbers[order[in_list[order]][:5]])
        return f"which rows: {n:,} {_rows(n)} flagged at FDR <= {FDR:g}; most anomalous: {first}"
    return f"which rows: most anomalous {first}; too few for a list that is sure to be mostly right"


def which_columns(result: "Result") -> str:
    """Whether the columns show it one by one."""
    assert result.answers is not None
    tested = result.answers.columns
    differ = [one for one in tested if one.differs]
    if not tested:
        return ""
    if not differ:
        shows = "shows it" if sees_something(result) else "differs"
        return f"column by column: no single column {shows}"
    labels = result.tested_labels
    named = ", ".join(labels[one.column] for one in differ[:N_COLUMNS])
    more = ", ..." if len(differ) > N_COLUMNS else ""
    alone = "" if sees_something(result) else "; the test as a whole does not see it"
    differ_alone = f"{len(differ)} of {len(tested)} differ on their own"
    return f"column by column: {differ_alone}: {named}{more}{alone}"


def in_json(result: "Result") -> dict[str, Any]:
    """The answers as JSON knows them; the rows are those of the list, or the ten first."""
    assert result.answers is not None
    found, labels, numbers = result.answers, result.tested_labels, result.row_numbers
    bound = found.at_least
    is_listed = (
        np.zeros(len(result.data), bool) if found.row_p_values is None else result.listed(FDR)
    )
    return {
        "how_many": None
        if bound is None
        else {
            "at_least": bound.too_many,
            "missing_at_least": bound.missing,
            "confidence": CONFIDENCE,
        },
        "regions": [region.to_dict(result.features, numbers) for region in found.regions],
        "rows": {
            "fdr": None if found.row_p_values is None else FDR,
            "listed": [int(numbers[row]) for row in result.ranking if is_listed[row]],
            "most_anomalous": [
                {"row": int(numbers[row]), "probability": finite(float(found.probability[row]))}
                for row in result.ranking[:10]
            ],
        },
        "columns_alone": [
            {
                "column": labels[one.column],
                "test": one.test,
                "distance": one.distance,
                "p_value": one.p_value,
                "differs": one.differs,
                "reference_quartiles": _listed(one.reference_quartiles),
                "data_quartiles": _listed(one.data_quartiles),
            }
            for one in found.columns
        ],
    }


def pulls(result: "Result") -> list[str]:
    """How far the data pull each nuisance parameter, in units of its prior."""
    return [
        f"nuisance parameter {one.name}: pulled to {one.value:+.2f} of its standard deviations, "
        f"{constrained(one)}"
        for one in result.nuisances
    ]


def constrained(one: Pull) -> str:
    """What the data tell of a nuisance parameter beyond its prior."""
    if one.error > 0.95:
        return f"with an error of {one.error:.2f}: the data do not constrain it"
    return f"and constrained by the data to {one.error:.2f} of them"


def _listed(values: tuple[float, ...] | None) -> list[float] | None:
    return None if values is None else list(values)


def _rows(n: int) -> str:
    return "row" if n == 1 else "rows"


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
