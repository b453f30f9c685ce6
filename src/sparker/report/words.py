"""The verdict in plain language: what a test found, and no more than it found."""

from typing import NamedTuple

from sparker.result import TestResult

DIFFERENCE = (
    "A difference is not yet a discovery: a new phenomenon, a flaw of the reference and a change "
    "in how the data were taken look alike to this test. The sections below show where to look."
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


class Verdict(NamedTuple):
    """What the first section of the report says."""

    headline: str
    kind: str
    """``"anomaly"``, ``"compatible"`` or, without a level to decide at, ``"open"``."""
    sentences: list[str]
    effects: list[tuple[str, str, str]]  # name, number of events, its range
    cautions: list[str]


def verdict(result: TestResult, alpha: float | None) -> Verdict:
    """Put the result into words; ``alpha`` is the level to decide at, if there is one."""
    kind, headline = "open", f"p-value {number(result.p_value)}"
    if alpha is not None:
        found = result.p_value <= alpha
        kind = "anomaly" if found else "compatible"
        headline = (
            f"Anomaly at the level {alpha:g}"
            if found
            else f"Compatible with the reference at the level {alpha:g}"
        )
    return Verdict(
        headline, kind, _sentences(result, kind), _effects(result), _cautions(result, alpha)
    )


def number(value: float) -> str:
    """A number as a reader wants it: few digits, and a minus sign that is one."""
    return f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def _sentences(result: TestResult, kind: str) -> list[str]:
    above, n, p = result.above, result.n_toys, result.p_value
    look = "looks" if above == 1 else "look"
    sentences = [
        f"{above} of {n} anomaly-free experiments {look} at least as different from the reference "
        "as the data do."
    ]
    if above == 0:
        sentences.append(
            f"With {n} experiments the p-value cannot fall below 1/{n + 1}, so the significance is "
            "a lower bound: the data may be further out than these experiments can tell."
        )
    else:
        sentences.append(
            "If the data came from the same distribution as the reference, about "
            f"{100 * p:.2g} % of samples would look this different by chance."
        )
    meaning = {"anomaly": DIFFERENCE, "compatible": NO_DIFFERENCE, "open": UNDECIDED}
    return [*sentences, meaning[kind]]


def _effects(result: TestResult) -> list[tuple[str, str, str]]:
    if result.models is None:
        return []
    found = []
    for name, effect in (
        ("Events too many", result.effect_excess),
        ("Events missing", result.effect_deficit),
    ):
        events, low, high = (f"{value:,.1f}" for value in effect)
        found.append((name, events, f"{low} to {high}"))
    return found


def _cautions(result: TestResult, alpha: float | None) -> list[str]:
    cautions = list(result.notes)
    if result.n_failed:
        cautions.append(
            f"{result.n_failed} anomaly-free experiments did not stay finite; they count as more "
            "extreme than the data, which makes the p-value larger, never smaller."
        )
    if alpha is not None:
        low, high = result.interval
        smallest = 1 / (result.n_toys + 1)
        if smallest > alpha:
            cautions.append(
                f"{result.n_toys} experiments cannot give a p-value below {number(smallest)}, so "
                f"the level {alpha:g} was out of reach; make more of them (n_calibration)."
            )
        elif low <= alpha < high:
            cautions.append(
                f"The range of the p-value contains the level {alpha:g}: more experiments "
                "(n_calibration) could change the decision."
            )
    return cautions
