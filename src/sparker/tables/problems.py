"""What keeps a column from being compared, in plain words, and how to mend it."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparker.tables.cells import PERCENTAGE, is_number, out_of_range
from sparker.tables.identifiers import identifier
from sparker.tables.kinds import Kind, as_texts, is_missing, kind_of
from sparker.tables.rows import ERROR

NO_VALUES = "has no values"
A_TEXT = "text, "
MANY_NUMBERS = 20
"""A column of texts in which more different numbers stand was meant to be one of numbers."""


class Verdict(NamedTuple):
    """What becomes of a column."""

    kind: Kind
    left_out: str = ""
    """Why it is no part of a test, to follow "it"."""
    problem: str = ""
    """What keeps it from being compared, and how to mend it."""

    @property
    def to_embed(self) -> bool:
        """Whether it is texts, of which an embedder makes numbers."""
        return self.problem.startswith(A_TEXT)


def judged(
    name: str,
    parts: dict[str, np.ndarray],
    missing: str,
    *,
    own: Sequence[str],
    meant: bool = False,
    finite: bool = False,
) -> Verdict:
    """What a test makes of a column, and ``describe`` says of it.

    Args:
        name: of the column; "" if it has none.
        parts: its values in each table.
        missing: what is to be done where values are missing.
        own: the tables that were measured, which show whether it names their rows.
        meant: whether it is to be compared though it may look like an identifier.
        finite: whether all of it is known to be numbers.
    """
    if not finite and all(is_missing(part).all() for part in parts.values()):
        return Verdict(Kind.NUMBER, left_out=NO_VALUES)
    kind = kind_of(list(parts.values()))
    why = None if meant else identifier(name, [parts[of] for of in own])
    if why is not None:
        return Verdict(kind, left_out=why)
    return Verdict(kind, problem="" if finite else problem(kind, parts, missing))


def problem(kind: Kind, parts: dict[str, np.ndarray], missing: str) -> str:
    """What keeps a column from being compared, and how to mend it."""
    if missing == ERROR and (said_missing := missing_in(parts)):
        return said_missing
    if kind == Kind.NUMBER:
        said = (out_of_range(part, of) for of, part in parts.items())
        return next(filter(None, said), "")
    if kind in (Kind.BOOLEAN, Kind.TIME):
        return ""
    texts = {of: as_texts(part[~is_missing(part)]) for of, part in parts.items()}
    stray = _stray(texts, parts)
    if stray or kind == Kind.CATEGORY:
        return stray
    every = [text for some_texts in texts.values() for text in some_texts]
    if all(map(is_number, every)):
        written = {of: sum(isinstance(value, str) for value in part) for of, part in parts.items()}
        where = " and ".join(f"{n:,} in {of}" for of, n in written.items() if n)
        return f"numbers are written as texts ({where}); give them as numbers"
    return (
        f"{A_TEXT}{len(set(every)):,} different values in {len(every):,} rows; embed="
        "'tfidf' or another embedder makes numbers of it (--text, --embed)"
    )


def missing_in(parts: dict[str, np.ndarray]) -> str:
    """Where values are missing, if any are, and what to do."""
    gone = {of: np.flatnonzero(is_missing(part)) for of, part in parts.items()}
    lacking = [f"{len(rows)} in {of}, the first in row {rows[0]}"
               for of, rows in gone.items() if len(rows)]  # fmt: skip
    if not lacking:
        return ""
    return (
        f"values are missing ({'; '.join(lacking)}); missing='indicator' or 'drop' (--missing) "
        "goes on with them"
    )


def _stray(texts: dict[str, list[str]], parts: dict[str, np.ndarray]) -> str:
    """A few texts among many numbers are a mistake, and no category."""
    every = Counter(text for some_texts in texts.values() for text in some_texts)
    commas = sum(n for text, n in every.items() if re.fullmatch(r"\s*[+-]?\d+,\d+\s*%?\s*", text))
    numbers = [text for text in every if is_number(text)]
    shares = [text for text in every if PERCENTAGE.fullmatch(text)]
    n_numbers, n_shares = (sum(every[text] for text in some) for some in (numbers, shares))
    if n_numbers and n_shares and n_numbers + n_shares == every.total():
        return (
            f"{n_shares} cells are percentages, such as {shares[0]!r}, and {n_numbers} plain "
            "numbers; write all of them in one way"
        )
    if commas + n_numbers < every.total() / 2 or len(numbers) + commas <= MANY_NUMBERS:
        return ""
    if commas:
        return f"{commas} decimals are written with a comma; write them with a point"
    for of, part in parts.items():
        for row, value in enumerate(part):
            if isinstance(value, str) and not is_number(value):
                return (
                    f"{every.total() - n_numbers} cells are no numbers, while {n_numbers} are, the "
                    f"first {value!r} in row {row} of {of}; write a number there, or nothing if it "
                    "is not known"
                )
    return ""
