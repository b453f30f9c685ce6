"""Every sentence and label that people read of a result: plain functions ``result -> str``.

The terminal, notebooks and the report have the same words from here.
"""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparker.calibration.pvalues import ends_in_sigmas
from sparker.calibration.tail import TailFit
from sparker.engine.train import FAMILIES
from sparker.findings.bound import CONFIDENCE
from sparker.findings.decision import NOT_SIGNIFICANT, SIGNIFICANT, TOO_FEW_TOYS
from sparker.findings.regions import Region
from sparker.nulls import Pull
from sparker.system.numbers import counted
from sparker.tables.encoding import Feature

if TYPE_CHECKING:
    from sparker.findings.result import Result

FDR = 0.2
"""The false discovery rate of the flagged rows, where no other is asked for."""

N_NAMED, N_COMPARED = 6, 10
"""Columns that a sentence names, and that the first line does."""

N_ROWS = 5
N_REGIONS = 3
"""Rows and regions in the summary."""

WIDTH, INDENT = 100, 11
"""Characters of a line of the summary, and of its labels."""

NOT_ALONE = "rows come in groups, in strata, or with weights of their own"
PERCENT = f"{CONFIDENCE:.0%}".replace("%", " %")
K_NEAREST = ("k-NN counts", "k-NN distance")
"""Families whose scale is a number of neighbours."""

ABOUT = {
    "kernels": "SparKer's trained kernels together",
    "isolated events": "one trained kernel at a time",
    "excess scan": "the largest excess in one place",
    "shape scan": "the largest excess or deficit in one place",
    "k-NN counts": "data rows among the k nearest rows of each row",
    "k-NN distance": "data rows among the rows furthest from their k nearest rows",
    "marginal tails": "data rows at the ends of each column",
    "mean and variance shift": "means and variances of all columns",
}
"""What each family of component tests compares."""

CAUSES = (
    "A significant difference can have three causes: a new signal, a mismodelled reference, or a "
    "change in data taking."
)
BY_CHANCE = "Without a significant difference, what is shown here can be due to chance."
NOT_ASKED = (
    "Made without answers (explain=False, --no-explain): test again without this option to see how "
    "many rows are anomalous, and which."
)
NO_PROOF = (
    "This does not prove that the distributions are equal: a difference too small for this test "
    "and these numbers of rows is possible."
)


def summary(result: "Result", *, warnings: bool = True) -> str:
    """Return what was compared, the decision, and what a person asks next."""
    lines = [_wrapped(compared(result))]
    if warnings:
        lines += [_line("Warning", one.text) for one in result.warnings if not one.is_finding]
    lines.append(_wrapped(decision(result)))
    lines += [_line(label, text) for label, text in answers(result)]
    lines += [_line("Nuisance", pull(one)) for one in result.nuisances]
    lines += [_line("New", one.text) for one in result.warnings if one.is_finding]
    return "\n".join([*lines, *(_line("Note", text) for text in notes(result))])


def compared(result: "Result") -> str:
    """Return what was compared: rows and columns.

    Few columns are named, so that a label or an identifier among them is noticed.
    """
    expected = "" if result.expected is None else f" ({result.expected:,.6g} expected)"
    weighted = "" if result.reference_weights is None else "weighted "
    rows = (
        f"{counted(len(result.data), 'data row')}{expected} and "
        f"{counted(result.n_reference, f'{weighted}reference row')}"
    )
    used, n_all = result.used_columns, len(result.encoding.columns) + len(result.encoding.left_out)
    of = "" if len(used) == n_all else f" of {n_all:,}"
    named = result.encoding.named and len(used) <= N_COMPARED
    names = f": {', '.join(used)}" if named else ""
    return f"{rows}, {len(used):,}{of} column{'s' * (n_all != 1)}{names}"


def outcome(result: "Result") -> str:
    """Return the outcome in fixed words, as a headline."""
    found = result.decision.outcome
    alone = " by itself" if result.level.by_itself and found != TOO_FEW_TOYS else ""
    return f"{found[:1].upper()}{found[1:]}{alone}"


def decision(result: "Result") -> str:
    """Return the decision with the p-value and the level it rests on."""
    return f"{outcome(result)} ({because(result)})"


def because(result: "Result") -> str:
    """Return the p-value beside the level, the significance, and the number of toys."""
    alpha, given, found = result.decision
    level = f"{alpha:g}{'' if given else ' (default)'}"
    if found == TOO_FEW_TOYS:
        return f"p = {p_text(result.p_value)}, alpha = {level}, but {remedy(result)}"
    sign = "<=" if found == SIGNIFICANT else ">"
    text = f"p = {p_text(result.p_value, alpha)} {sign} alpha = {level}"
    if found == SIGNIFICANT and math.isfinite(result.significance):
        text += f", {result.significance:.1f} sigma"
    text += f"; {counted(result.n_toys, 'toy')}"
    if result.n_toys < result.n_toys_asked:
        text += f" of {result.n_toys_asked:,}, stopped early"
    return text


def remedy(result: "Result") -> str:
    """Return the smallest possible p-value, and what would allow a decision at this level."""
    n, smallest = result.n_labellings, result.smallest_p_value
    if n is not None:
        made, more = counted(n, "labelling"), "more rows or groups"
    else:
        made, more = counted(result.n_toys_asked, "toy"), f"at least {fewest_toys(result):,} toys"
    return f"with {made} no p-value is smaller than {smallest:.2g}; {more} are needed"


def fewest_toys(result: "Result") -> int:
    """Return the smallest number of toys with which a p-value can be as small as alpha."""
    return math.ceil(1 / result.decision.alpha - 1e-9) - 1


def p_text(p: float, alpha: float = 0.0) -> str:
    """Return a p-value with two digits, or as many as keep it on its side of the level.

    >>> p_text(0.004975), p_text(0.0504, 0.05), p_text(1.0)
    ('0.005', '0.0504', '1')
    """
    for digits in range(2, 17):
        text = f"{p:.{digits}g}"
        if (float(text) <= alpha) == (p <= alpha):
            return text
    return repr(p)


def answers(result: "Result") -> Iterator[tuple[str, str]]:
    """Yield each answer with its label: how many, where, rows, columns, and what is strongest."""
    if result.answers is not None and result.is_significant:
        yield from (("How many", text) for text in [how_many(result)] if text)
        yield from (("Where", text) for text in where(result)[:N_REGIONS])
        yield from (("Rows", text) for text in [rows(result)] if text)
        yield from (("Columns", text) for text in [columns(result)] if text)
    elif result.answers is not None:
        yield from (("Region", region_alone(result, one)) for one in result.significant_regions[:1])
    if result.is_significant and (text := strongest(result)):
        yield "Strongest", text


def how_many(result: "Result") -> str:
    """Return the lower bounds on the numbers of anomalous and of missing rows."""
    n, missing, n_data = result.at_least, result.missing_at_least, len(result.data)
    if n is None:
        return "no bound is given: there are too few ways to relabel the rows"
    found = []
    if n:
        of = f"{n:,} of {n_data:,} data rows {'is' if n == 1 else 'are'}"
        found.append(f"at least {of} anomalous")
    if missing:
        is_or_are = "is" if missing == 1 else "are"
        found.append(f"at least {counted(missing, 'row')} {is_or_are} missing from the data")
    if not found:
        return f"no lower bound above 0 ({PERCENT} confidence)"
    return f"{' and '.join(found)} ({PERCENT} confidence)"


def where(result: "Result") -> list[str]:
    """Return the significant regions; where there are none, what can be said instead."""
    assert result.answers is not None
    found, features = result.significant_regions, result.features
    if found:
        return [region(one, features) for one in found]
    if result.answers.regions and result.answers.row_p_values is None:
        first = region(result.answers.regions[0], features)
        return [f"{first}; no p-value, since {NOT_ALONE}"]
    return ["no region is significant"]


def region(one: Region, features: Sequence[Feature]) -> str:
    """Return a region as conditions, with its observed and expected rows."""
    text = f"{one.rule(features)}: {counted(one.n_data, 'data row')}, {expected(one)}"
    return text if one.p_value is None else f"{text} (p = {p_text(one.p_value)})"


def expected(one: Region) -> str:
    """Return how many rows are expected in a region; never a bare 0.0."""
    if one.expected >= 0.05:
        return f"{one.expected:,.1f} expected"
    if one.interval is None or one.lack:
        return "no reference row"
    return f"at most {one.n_data - one.interval[0]:,.0f} expected at {PERCENT} confidence"


def region_alone(result: "Result", one: Region) -> str:
    """Return a region that is significant where the test as a whole is not."""
    is_open = result.decision.outcome == TOO_FEW_TOYS
    whole = "undecided" if is_open else "not significant"
    return f"{region(one, result.features)}, though the test as a whole is {whole}"


def rows(result: "Result") -> str:
    """Return how many rows are flagged, and the most anomalous ones."""
    assert result.answers is not None
    if np.isnan(result.answers.probability).all():
        return ""
    order, numbers = result.ranking, result.row_numbers
    if result.answers.row_p_values is None:
        first = ", ".join(str(row) for row in numbers[order[:N_ROWS]])
        return f"most anomalous: {first}; none is flagged at an FDR, since {NOT_ALONE}"
    flagged = result.listed(FDR)
    n = int(flagged.sum())
    if n:
        order = order[flagged[order]]
    first = ", ".join(str(row) for row in numbers[order[:N_ROWS]])
    return f"{f'{n:,}' if n else 'none'} flagged at FDR <= {FDR:g}; most anomalous: {first}"


def columns(result: "Result") -> str:
    """Return which single columns differ significantly."""
    assert result.answers is not None
    tested, labels = result.answers.columns, result.tested_labels
    found = [labels[one.column] for one in tested if one.is_significant(result.answer_level)]
    if not tested:
        return ""
    if not found:
        return "no single column differs significantly"
    *others, last = found
    if len(found) > N_NAMED:
        return f"{len(found):,} differ significantly: {', '.join(found[:N_NAMED])}, ..."
    if others:
        return f"{', '.join(others)} and {last} differ significantly"
    return f"{last} differs significantly"


def strongest(result: "Result") -> str:
    """Return the most significant component test, where there are several families."""
    n = len(result.families)
    return f"{component_test(result)}, one of {n} families" if n > 1 else ""


def component_test(result: "Result") -> str:
    """Return the name of the most significant component test, with its scale."""
    family, scale = result.decided
    if family in FAMILIES:
        return f"{family} (width {scale:.3g})"
    return f"{family} (k = {scale:.0f})" if family in K_NEAREST else family


def pull(one: Pull) -> str:
    """Return how far the data pull a nuisance parameter, in units of its prior."""
    free = ", not constrained by the data" if one.error > 0.95 else ""
    return f"{one.name}: pull {one.value:+.2f} +- {one.error:.2f} (prior: 0 +- 1){free}"


def notes(result: "Result") -> list[str]:
    """Return what to know of the result beside the answers."""
    found = list(result.notes)
    if result.n_failed:
        found.append(
            f"{counted(result.n_failed, 'toy')} had no finite test statistic and "
            f"{'counts' if result.n_failed == 1 else 'count'} as more extreme than the data, which "
            "makes the p-value larger"
        )
    return found


def next_steps(result: "Result") -> list[str]:
    """Return three things to do now, by the outcome."""
    found, alpha = result.decision.outcome, result.decision.alpha
    if found == TOO_FEW_TOYS:
        more = (
            "Collect more rows or groups: all labellings were used already."
            if result.n_labellings is not None
            else f"Repeat the test with more toys (--toys, n_toys=): at least "
            f"{fewest_toys(result):,} for alpha = {alpha:g}, and more for a precise p-value."
        )
        return [
            more,
            "Choose the number of toys before the test, not by the p-value that comes out.",
            "A larger alpha is a remedy only if it was justified before this result was known.",
        ]
    if found == NOT_SIGNIFICANT:
        return [
            NO_PROOF,
            "To see how small an anomaly would be found with these samples, run a power study "
            "(sparker power, sparker.power_study).",
            "Do not repeat the test with other settings until p is small; fix them beforehand.",
        ]
    known = result.answers
    if known is None:
        first = "Repeat the test with explain=True (without --no-explain) to see where it differs."
    else:
        flagged = known.row_p_values is not None and result.listed(FDR).any()
        which = "flagged" if flagged else "most anomalous"
        first = f"Look at the {which} rows first: what do they share that the reference lacks?"
    region_found = known is not None and result.significant_regions
    fixed = "the region found here" if region_found else "one hypothesis"
    return [
        first,
        f"{CAUSES} Rule out the last two before you claim the first. By chance alone, a share of "
        f"{alpha:g} of all tests without a difference is significant.",
        f"Confirm it on new rows, with {fixed} fixed in advance.",
    ]


def how_sure(result: "Result") -> Iterator[tuple[str, str]]:
    """Yield what the p-value rests on, each with its label."""
    above, n, alpha = result.above, result.n_toys, result.decision.alpha
    yield (
        "Toys",
        f"{above:,} of {counted(n, 'toy')} {'has' if above == 1 else 'have'} a test statistic at "
        f"least as large as the data (p = {p_text(result.p_value, alpha)})",
    )
    low, high = result.interval
    if result.n_labellings is not None:
        yield "Limit", "all labellings were used: only more rows or groups allow a smaller p-value"
    elif not above:
        yield "Limit", f"no p-value is smaller than 1/{n + 1:,} with {counted(n, 'toy')}"
    if result.decision.outcome != TOO_FEW_TOYS:
        change = "; more toys could change the decision" if low <= alpha < high else ""
        yield (
            "Interval",
            f"with infinitely many toys, p would be between {low:.2g} and {high:.2g}, "
            f"significance {ends_in_sigmas(result.interval)} ({PERCENT} confidence; the toys are "
            f"counted, and put the component tests on one scale){change}",
        )
    if (fit := tail(result)) is not None:
        least, most = (">= ", "<= ") if fit.at_reach else ("", "")
        yield (
            "Extrapolated",
            f"p {most or '= '}{fit.p_value:.2g}, {least}{fit.significance:.1f} sigma. This is an "
            f"extrapolation from a fit to the {fit.n_tail:,} largest test statistics of the toys, "
            "not a measurement; the decision does not use it",
        )
    if result.is_significant:
        yield "Strongest", f"{component_test(result)} has the smallest p-value"
    if result.reference_weights is not None:
        yield (
            "Weights",
            f"the weighted reference rows count as much as {effective_rows(result):,.0f} "
            "unweighted ones",
        )


def tail(result: "Result") -> TailFit | None:
    """Return the extrapolated p-value; None where toys reach the data or the fit is bad."""
    if result.above:
        return None
    try:
        return result.tail_fit()
    except ValueError:
        return None


def effective_rows(result: "Result") -> float:
    """Return how many unweighted reference rows vary as little as the weighted ones."""
    counts = result.reference_counts
    return float(counts.sum() ** 2 / (counts @ counts) * result.n_reference / len(counts))


def status(result: "Result", one: Region) -> str:
    """Return that a region is significant, with its p-value, where it has one."""
    if one.p_value is None:
        return "no p-value"
    return f"significant (p = {p_text(one.p_value, result.answer_level)})"


def excess(one: Region) -> str:
    """Return the lower bound on an excess or deficit."""
    least = round(one.least or 0)
    return f"{one.kind} of at least {counted(least, 'row')}" if least else one.kind


def _line(label: str, text: str) -> str:
    return _wrapped(f"{label:<{INDENT}}{text}")


def _wrapped(text: str) -> str:
    """Return a line of the summary, wrapped under its label, with no break inside ``p = ...``."""
    whole = textwrap.fill(
        text.replace("p = ", "p\xa0=\xa0"),
        WIDTH,
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return whole.replace("\xa0", " ")
