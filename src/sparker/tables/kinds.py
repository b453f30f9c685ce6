"""What a column holds: numbers, yes or no, one of a few values, times, texts, names of pictures.

A column comes as an array of numbers with NaN for those that are missing, of times (``datetime64``
with NaT), or of objects: strings, True and False, None. Both tables of a test are looked at
together, and nothing depends on which row is in which of them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np


class Kind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    CATEGORY = "category"
    TIME = "time"
    TEXT = "text"
    IMAGE = "image"


MAX_LEVELS = 20
"""A category has a feature for each of its most frequent values, up to so many."""

MIN_ROWS, MIN_SHARE = 3, 0.005
"""A value has a feature of its own if at least so many rows, and this share of them, have it."""

COVERED = 0.5
"""If values of their own features have a smaller share of the rows, the column is a text."""

LONG = 60
"""Characters: what is longer on average is a text."""

TRUTH = {"true": True, "false": False}
MICROSECONDS = "datetime64[us]"


def kind_of(parts: Sequence[np.ndarray]) -> Kind:
    """What a column holds, of its rows in all tables."""
    if all(part.dtype.kind == "f" for part in parts):
        return Kind.NUMBER
    known = [part[~is_missing(part)] for part in parts]
    known = [part for part in known if len(part)]
    if all(part.dtype.kind == "f" for part in known):
        return Kind.NUMBER
    if _are(as_truths, known):
        return Kind.BOOLEAN
    if _are(as_times, known):
        return Kind.TIME
    texts = [text for part in known for text in as_texts(part)]
    if np.mean([len(text) for text in texts]) > LONG:
        return Kind.TEXT
    counts = Counter(texts)
    covered = sum(counts[level] for level in own_levels(counts))
    return Kind.CATEGORY if covered >= COVERED * len(texts) else Kind.TEXT


def is_missing(part: np.ndarray) -> np.ndarray:  # (N,)
    """Which cells have no value."""
    if part.dtype.kind == "f":
        return np.isnan(part)
    if part.dtype.kind == "M":
        return np.isnat(part)
    return np.array([value is None for value in part], bool)


def own_levels(counts: Counter[str]) -> list[str]:
    """The values that have a feature of their own, the most frequent first."""
    least = max(MIN_ROWS, MIN_SHARE * counts.total())
    frequent = sorted(counts, key=lambda level: (-counts[level], level))[:MAX_LEVELS]
    return [level for level in frequent if counts[level] >= least]


def as_texts(part: np.ndarray) -> list[str]:
    """Cells that are not missing as strings, numbers as short as they can be."""
    if part.dtype.kind == "f":
        return [f"{value:.15g}" for value in part]
    return [str(value) for value in part]


def _are(how: Callable[[np.ndarray], np.ndarray], parts: Sequence[np.ndarray]) -> bool:
    """Whether all cells can be read in this way."""
    with suppress(KeyError, ValueError):
        for part in parts:
            how(part)
        return True
    return False


def as_truths(part: np.ndarray) -> np.ndarray:
    """Cells that are not missing as True and False; a ``KeyError`` where one is neither."""
    if part.dtype.kind == "f":  # a table beside this one says True and False
        return np.array([{0.0: False, 1.0: True}[value] for value in part.tolist()], bool)
    return np.array([TRUTH[str(value).strip().lower()] for value in part], bool)


def as_times(part: np.ndarray) -> np.ndarray:
    """Cells that are not missing as times in UTC; a ``ValueError`` where one is none."""
    if part.dtype.kind == "M" or not len(part):
        return part.astype(MICROSECONDS)
    if part.dtype.kind == "f":
        raise ValueError("numbers are no times")
    return np.array([_time(str(value)) for value in part], MICROSECONDS)


def _time(text: str) -> np.datetime64:
    # fromisoformat also takes 20240501, which is a number for most.
    if "-" not in text:
        raise ValueError(f"{text} is no time")
    time = datetime.fromisoformat(text.strip())
    if time.tzinfo is not None:
        try:
            time = time.astimezone(UTC).replace(tzinfo=None)
        except OverflowError as error:  # in the year 1 or 9999
            raise ValueError(f"{text} is no time in UTC") from error
    return np.datetime64(time, "us")
