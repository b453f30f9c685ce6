"""The verdict in plain language: what a test found, and no more than it found."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sparker.calibration.pvalues import ends_in_sigmas
from sparker.calibration.tail import TailFit
from sparker.findings.result import Result
from sparker.system.numbers import counted

DIFFERENCE = (
    "A difference is not yet a discovery: a new phenomenon, a flaw of the reference and a change "
    "in how the data were taken look alike to this test."
)
NO_DIFFERENCE = (
    "This does not prove that the two are the same. It says that this test, with this many rows, "
    "sees nothing that anomaly-free samples would not show as well."
)
UNDECIDED = (
    "No level was given to decide at. A small p-value says that the two differ, not why: a new "
    "phenomenon, a flaw of the reference and a change in how the data were taken look alike here. "
    "A large one does not prove that they are the same."
)
CHANCE = (
    "With a p-value like this, what follows may all be chance: whoever looks for differences finds "
    "some in any sample."
)
MORE = "make more of them (n_toys, or --toys)"
SIGMA = "\N{GREEK SMALL LETTER SIGMA}"
MINUS = "\N{MINUS SIGN}"
AT_LEAST, AT_MOST = "\N{GREATER-THAN OR EQUAL TO} ", "\N{LESS-THAN OR EQUAL TO} "
TIMES = "\N{NO-BREAK SPACE}\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}"
USUAL_LEVEL = 0.05  # above it, and without a level given, a p-value is called unremarkable
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Verdict(NamedTuple):
    """What the first section of the report says."""

    headline: str
    kind: str
    """``"anomaly"``, ``"compatible"`` or, where nothing could be decided, ``"open"``."""
    significance: tuple[str, str] | None  # and its range; none where p = 1
    tail: tuple[str, str] | None  # an extrapolated p-value, and what is sure without it
    sentences: list[str]
    cautions: list[str]
    chance: str | None
    """A warning, where all that was found may well be chance."""


def verdict(result: Result, alpha: float | None) -> Verdict:
    """Put the result into words; ``alpha`` is the level to decide at, if there is one."""
    low, _ = result.interval
    out_of_reach = alpha is not None and low <= alpha < 1 / (result.n_toys + 1)
    kind, headline = "open", _bare_headline(result)
    if alpha is not None and out_of_reach:
        headline = f"Undecided at the level {alpha:g}: too few experiments"
    elif alpha is not None:
        found = result.p_value <= alpha
        kind = "anomaly" if found else "compatible"
        headline = (
            f"Anomaly at the level {alpha:g}"
            if found
            else f"Compatible with the reference at the level {alpha:g}"
        )
    tail = _tail(result)
    unremarkable = alpha is None and result.p_value > USUAL_LEVEL
    return Verdict(
        headline=headline,
        kind=kind,
        significance=_significance(result),
        tail=None if tail is None else (_estimate(tail), number(tail.interval[1], 2)),
        sentences=_sentences(result, kind, alpha, tail),
        cautions=_cautions(result, alpha, kind),
        chance=CHANCE if kind == "compatible" or unremarkable else None,
    )


def as_sentence(text: str) -> str:
    """A line of the terminal as a sentence of the page.

    >>> as_sentence("where: x above 3")
    'Where: x above 3.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def number(value: float, digits: int = 3) -> str:
    """A number as a reader wants it: few digits, no computer's exponent, a minus sign that is one.

    >>> number(0.00498), number(1234.6)
    ('0.00498', '1,235')
    """
    text = f"{value:.{digits}g}"
    if "e" in text:
        if 1 <= abs(value) < 1e6:
            text = f"{value:,.0f}"
        else:
            mantissa, exponent = text.split("e")
            text = f"{mantissa}{TIMES}{power(int(exponent))}"
    return text.replace("-", MINUS)


def digits_for(values: ArrayLike, least: int) -> int:
    """So many digits that numbers which lie close together still differ.

    >>> digits_for([0.1, 0.9], 4), digits_for([1600000000.0, 1600050000.0], 4)
    (4, 8)
    """
    given = np.asarray(values, np.float64)
    finite = given[np.isfinite(given)]
    spread = float(np.ptp(finite)) if len(finite) else 0.0
    if not 0 < spread < math.inf:
        return least
    largest = float(np.abs(finite).max())
    return min(15, max(least, least + math.floor(math.log10(largest / spread))))


def power(exponent: int) -> str:
    """A power of ten, written out."""
    return "10" + str(exponent).translate(SUPERSCRIPT)


def _estimate(tail: TailFit) -> str:
    return f"{AT_MOST * tail.at_reach}{number(tail.p_value, 2)}"


def _bare_headline(result: Result) -> str:
    above, n = result.above, counted(result.n_toys, "anomaly-free experiment")
    if above == 0:
        return f"None of {n} looks as different as the data"
    look = "looks" if above == 1 else "look"
    return f"{above:,} of {n} {look} at least as different as the data"


def _significance(result: Result) -> tuple[str, str] | None:
    if not math.isfinite(result.significance):
        return None
    z = f"{result.significance:.2f} {SIGMA}"
    return z.replace("-", MINUS), ends_in_sigmas(result.interval).replace("-", MINUS)


def _tail(result: Result) -> TailFit | None:
    """The extrapolated p-value, where no experiment reaches the data and the tail is a good one."""
    if result.above:
        return None
    try:
        return result.tail_fit()
    except ValueError:
        return None


def _sentences(result: Result, kind: str, alpha: float | None, tail: TailFit | None) -> list[str]:
    above, n, p = result.above, result.n_toys, result.p_value
    sentences = []
    if alpha is not None:  # or the headline says so
        look = "looks" if above == 1 else "look"
        sentences.append(
            f"{above:,} of {counted(n, 'anomaly-free experiment')} {look} at least as different "
            "from the reference as the data do."
        )
    if above == 0 and result.n_labellings is not None:
        sentences.append(
            "These are all the ways to give the labels: only more rows, or more groups of them, "
            "would allow a smaller p-value."
        )
    elif above == 0:
        sentences.append(
            f"With {counted(n, 'experiment')} the p-value cannot fall below 1/{n + 1:,}: the data "
            "may be further out than these experiments can tell, and more of them would show it."
        )
    else:
        sentences.append(
            "If the data came from the same distribution as the reference, about "
            f"{number(100 * p, 2)} % of samples would look this different by chance."
        )
    if tail is not None:
        sentences.append(
            f"Extrapolated, the p-value is {_estimate(tail)}, or {AT_LEAST * tail.at_reach}"
            f"{tail.significance:.1f} {SIGMA}. This is not measured: it continues a curve fitted "
            f"to the {tail.n_tail:,} most different of the experiments, and their tail may go on "
            "differently. Without it the experiments say no more than that the p-value is below "
            f"{number(tail.interval[1], 2)}. The verdict makes no use of it."
        )
    if kind == "anomaly":
        sentences.append(DIFFERENCE)
    elif kind == "compatible":
        sentences.append(NO_DIFFERENCE)
    elif alpha is None:
        sentences.append(UNDECIDED)
    return sentences


def _cautions(result: Result, alpha: float | None, kind: str) -> list[str]:
    cautions = [*(one.text for one in result.warnings), *result.notes]
    if result.n_failed:
        cautions.append(
            f"{counted(result.n_failed, 'anomaly-free experiment')} did not stay finite and "
            f"{'counts' if result.n_failed == 1 else 'count'} as more extreme than the data, which "
            "makes the p-value larger, never smaller."
        )
    if alpha is not None:
        low, high = result.interval
        if kind == "open":
            cautions.append(
                f"{counted(result.n_toys, 'experiment')} cannot give a p-value below "
                f"{number(1 / (result.n_toys + 1))}, so the level {alpha:g} was out of reach; "
                f"{MORE}."
            )
        elif low <= alpha < high:
            cautions.append(
                f"The range of the p-value contains the level {alpha:g}, so more experiments could "
                f"change the decision; {MORE}."
            )
    return cautions


def clip(text: str, most: int) -> str:
    """The beginning of a text, with a sign that it goes on."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
