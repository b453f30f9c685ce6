"""The decision at a level alpha, and the level of the answers beside it."""

from typing import Annotated, NamedTuple

from msgspec import Meta

DEFAULT_ALPHA = 0.05
"""The level where none is given, and said to be the default."""

SURE = 0.001
"""A region or column with a p-value no larger is reported even where the test as a whole is not
significant."""

SIGNIFICANT = "significant difference"
NOT_SIGNIFICANT = "no significant difference"
TOO_FEW_TOYS = "too few toys to decide at this alpha"


class Level(NamedTuple):
    """The level at which a result is decided."""

    alpha: Annotated[float, Meta(gt=0, lt=1)] = DEFAULT_ALPHA
    given: bool = False
    """True where the user gave it, False for the default."""
    by_itself: bool = False
    """True for one of several samples, which are decided together at a false discovery rate."""

    @classmethod
    def of(cls, alpha: float | None) -> "Level":
        """Return the level given, or the default."""
        return cls() if alpha is None else cls(float(alpha), given=True)


class Decision(NamedTuple):
    """The outcome of a test at its level."""

    alpha: float
    given: bool
    outcome: str
    """``"significant difference"``, ``"no significant difference"``, or ``"too few toys to decide
    at this alpha"`` where no p-value that is possible could be significant."""


def decide(p_value: float, smallest: float, level: Level) -> Decision:
    """Return the decision.

    Args:
        p_value: The p-value of the test.
        smallest: The smallest one that is possible with the toys asked for.
        level: The level.
    """
    if p_value <= level.alpha:
        outcome = SIGNIFICANT
    else:
        outcome = TOO_FEW_TOYS if smallest > level.alpha else NOT_SIGNIFICANT
    return Decision(level.alpha, level.given, outcome)
