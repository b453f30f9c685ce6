"""What keeps a column from being compared, in plain words, and how to mend it."""

import re
from collections import Counter

import numpy as np

from sparker.tables.cells import is_number, out_of_range
from sparker.tables.kinds import Kind, as_texts, is_missing
from sparker.tables.rows import ERROR

MANY_NUMBERS = 20
"""A column of texts in which more different numbers stand was meant to be one of numbers."""


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
        f"text, {len(set(every)):,} different values in {len(every):,} rows; embed="
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
    commas = sum(n for text, n in every.items() if re.fullmatch(r"\s*[+-]?\d+,\d+\s*", text))
    numbers = [text for text in every if is_number(text)]
    n_numbers = sum(every[text] for text in numbers)
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
