"""Which columns number or name the rows, and so are no features.

A row number, an event id or a time stamp tells the two files apart perfectly, and tells nothing of
what was measured. But a measurement whose values merely differ is the anomaly one looks for. So a
column has to be more than different: it has to count, to be without repeats where a measurement
would repeat, or to be named for what it is.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparker.tables.kinds import Kind, kind_of

MIN_ROWS = 20
"""Fewer rows do not show what a column does, unless its name says it."""
MAX_OVERLAP = 0.05
"""Share of the values of a file within the range of the other, if ranges hardly overlap."""
MIN_DISTINCT = 0.95
"""Share of the rows with a value of their own, if almost every row has one."""
MIN_REPEATS = 20
"""A column without repeats is telling where a measurement would have so many pairs of them."""
HEAD = 100
"""The first rows, which show most columns to be measurements."""
MAX_LENGTH = 80
"""Of a text that names a row: a hash of 64 digits and what stands before it."""

ROW = (
    "event|run|row|record|sample|item|object|obj|source|user|customer|client|account|patient|"
    "subject|order|session|transaction|trans|ticket|case|entry|line|product|device|file|study"
)
"""What a row may be, in names such as ``event number``, ``runNumber`` or ``customerid``."""
NUMBERED = re.compile(
    r"(.* )?(id|ids|idx|uuid|guid|pk|rowid|rownum)( .*)?|(unnamed|index level) \d+|run|event|"
    rf"luminosity block|(.* )?({ROW}) ?(id|ids|idx|index|no|nr|num|number)"
)
"""Names of numbers that stand for a row. They are whole: ``ID`` is an inner diameter, too."""
CLOCK = re.compile(
    r"(.* )?(timestamp|datetime|date|unixtime)( .*)?|epoch|mjd|"
    r"(.* )?(event|gps|unix|utc|epoch) time|(.* )?(created|updated|modified|recorded) (at|on)"
)
"""Names of what a clock shows. ``response time`` is a measurement; ``time`` may be either."""
PERHAPS = re.compile(r"index|(.* )?serial( (no|nr|num|number))?|(.* )?ts( .*)?")
"""Names of both kinds, though ``refractive index`` is not among them: how values go decides."""

CODE = re.compile(r"[\w.:#{}-]+=*")
"""A text without blanks, as codes are. Formulas, paths and addresses have other signs."""
DAY = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?Z?")
"""A day, or a day and an hour, as ISO 8601 writes them."""
QUANTITY = re.compile(r"[+-]?([^\W\d]{0,3}\d{1,12}\.\d+|\d{1,12})([eE][+-]?\d+)?[^\W\d]{0,4}")
"""A number, perhaps with its unit: 12.5kg, 1e-3."""


NUMBERS = "has no name and numbers the rows, as the index that pandas writes"
"""Why a first column without a name is left out, to follow "it"."""


class _Name(NamedTuple):
    """What the name of a column says it is."""

    there: bool  # arrays have columns without names
    numbered: bool = False
    clock: bool = False
    perhaps: bool = False
    time: bool = False  # just that


class _Files(NamedTuple):
    """A column as numbers, without what is missing."""

    values: list[np.ndarray]  # of each file, in the order of its rows
    whole: bool  # all of them, and small enough that not every double is whole
    time: bool = False


def identifier(name: str, parts: Sequence[np.ndarray]) -> str | None:
    """Why a column looks like an identifier, to follow "column x was left out: it"; None if not.

    Args:
        name: of the column; "" if it has none, and then the values have to say more.
        parts: its values in each file, one or two, in the order of the rows: numbers with NaN,
            datetime64 with NaT, or objects that are str or None.

    >>> identifier("event_id", [np.arange(100.0), np.arange(100.0, 150.0)])
    'counts the rows of each file'
    >>> identifier("energy", [np.linspace(1, 2, 100), np.linspace(5, 6, 50)])
    """
    called = _called(name)
    few = all(len(part) < MIN_ROWS and part.dtype.kind in "fiu" for part in parts)
    if not any(called[1:]) and (few or any(map(_has_fractions, parts))):
        return None  # most columns of numbers: there is no need to look at all of them
    texts = [_texts(part) for part in parts]
    if not any(text is not None for text in texts):
        files = _numbers(parts)
    elif any(text is None for text in texts):
        return None  # text here, numbers there: nothing that either rule knows
    else:
        strings = [text for text in texts if text is not None]
        if _almost_all_differ(called, strings):
            return "has another text in almost every row"
        if called.numbered and _are_codes(strings) and _are_many(strings, parts):
            return "is named like an identifier and has more texts than a category can have"
        files = _read(strings)
    if files is None or not all(map(len, files.values)):
        return None
    return _counting(called, files) or _rising(called, files) or _named(called, files)


def numbers_rows(values: np.ndarray) -> bool:
    """Whether a first column without a name is an index: whole numbers, each of them once.

    >>> numbers_rows(np.array([0, 2, 1])), numbers_rows(np.array([0, 1, 1]))
    (True, False)
    """
    whole = bool(np.all(np.isfinite(values))) and bool(np.all(values == np.rint(values)))
    return whole and len(np.unique(values)) == len(values)


def _has_fractions(part: np.ndarray) -> bool:
    """Whether its first numbers are no whole ones, as those that count or name rows are."""
    head = part[:HEAD]
    return head.dtype.kind == "f" and bool(np.any(head[np.isfinite(head)] % 1))


def _called(name: str) -> _Name:
    """The name in lower case, ``runNumber`` and ``run_number`` both as "run number"."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    words = " ".join(re.findall(r"[^\W_]+", apart)).lower()
    matches = (bool(pattern.fullmatch(words)) for pattern in (NUMBERED, CLOCK, PERHAPS))
    numbered, clock, perhaps = matches
    return _Name(bool(words), numbered, clock, perhaps, words == "time")


def _numbers(parts: Sequence[np.ndarray]) -> _Files | None:
    """Numbers and times as doubles."""
    kinds = {np.asarray(part).dtype.kind for part in parts}
    if kinds == {"M"}:
        times = [part[~np.isnat(part)].astype("datetime64[us]") for part in parts]
        return _Files([part.astype(np.int64).astype(float) for part in times], False, True)
    if not kinds <= set("fiu"):
        return None
    doubles = [np.asarray(part, float) for part in parts]
    values = [part[np.isfinite(part)] for part in doubles]
    whole = all(bool(np.all((x == np.rint(x)) & (np.abs(x) < 2**53))) for x in values)
    return _Files(values, whole)


def _texts(part: np.ndarray) -> list[str] | None:
    """The texts that are there; None for anything else."""
    if np.asarray(part).dtype.kind not in "OU":
        return None
    there = [text for text in part.tolist() if text is not None and text == text and text != ""]
    return there if all(isinstance(text, str) for text in there) else None


def _read(texts: list[list[str]]) -> _Files | None:
    """Texts that are digits or days, as numbers."""
    every = [text for part in texts for text in part]
    if all(text.isascii() and text.isdigit() and len(text) < 16 for text in every):
        return _Files([np.array(part, np.int64).astype(float) for part in texts], True)
    if all(map(DAY.fullmatch, every)):
        try:
            days = [np.array([text.rstrip("Z") for text in part], "datetime64") for part in texts]
        except ValueError:  # the 31st of April
            return None
        return _numbers(days)
    return None


def _counting(called: _Name, files: _Files) -> str | None:
    """Whether the values are the numbers of the rows."""
    longest = max(files.values, key=len)
    share, enough = (0.95, MIN_ROWS) if called.there else (0.99, 3 * MIN_ROWS)
    if not files.whole or len(longest) < (3 if called.numbered else enough):
        return None
    # A few steps are others where rows were dropped, or files put together.
    if not all(_equal_steps(x, share) for x in files.values):
        return None
    # Hours of a day go up by one, too, but come again and again.
    if not called.numbered and len(np.unique(longest)) < len(longest) / 4:
        return None
    return "counts the rows" + _of_each(files)


def _rising(called: _Name, files: _Files) -> str | None:
    """Whether the values go up along the rows, and are named so or lack the repeats of chance."""
    up = all(_goes(x, 1) for x in files.values)
    if not up and not all(_goes(x, -1) for x in files.values):
        return None
    way = f"goes {'up' if up else 'down'} along the rows{_of_each(files)}"
    longest = max(files.values, key=len)
    if files.whole and _no_repeats(longest, MIN_REPEATS if called.there else 5 * MIN_REPEATS):
        return f"never repeats and {way}"
    named = (called.numbered and files.whole) or called.clock or files.time
    if named and len(np.unique(longest)) >= 10:
        return f"{way}, and {_kind(files)}"
    return None


def _named(called: _Name, files: _Files) -> str | None:
    """Whether a column with the name of an identifier also behaves like one."""
    if not any(called[1:]) and not files.time:
        return None
    pool = np.concatenate(files.values)
    # Large ids in floats are whole, too; all that large numbers cannot show is that they count.
    whole = bool(np.all(pool == np.rint(pool)))
    distinct = all(len(np.unique(x)) >= MIN_DISTINCT * len(x) for x in files.values)
    named = (called.numbered and whole) or called.clock or called.time or files.time
    if called.perhaps and whole and distinct and not named:
        # Rows in order, numbers without gaps, or seconds since 1970.
        in_order = any(all(_goes(x, way) for x in files.values) for way in (1, -1))
        longest = max(files.values, key=len)
        named = in_order or _no_repeats(longest, MIN_REPEATS) or pool.min() > 1e8
    if named and len(files.values) == 2 and _hardly_overlap(*files.values):
        return f"has ranges in the two files that hardly overlap, and {_kind(files)}"
    if called.numbered and whole and distinct and len(pool) >= MIN_ROWS:
        return f"has another number in almost every row, and {_kind(files)}"
    return None


def _of_each(files: _Files) -> str:
    return " of each file" if len(files.values) > 1 else ""


def _kind(files: _Files) -> str:
    return "is a time" if files.time else "is named like an identifier"


def _equal_steps(values: np.ndarray, share: float) -> bool:
    """Whether nearly all steps from row to row are the same, and not none."""
    steps = np.diff(values)
    if not len(steps):
        return True
    usual = np.median(steps)
    return bool(usual != 0 and np.mean(steps == usual) >= share)


def _goes(values: np.ndarray, way: int) -> bool:
    """Whether nearly all steps go this way, or nowhere."""
    return len(values) < 2 or bool(np.mean(way * np.diff(values) >= 0) >= 0.99)


def _no_repeats(values: np.ndarray, at_least: float) -> bool:
    """Whether whole numbers hardly repeat, though so close that drawn ones would.

    Of n numbers drawn from W possible ones W (1 - (1 - 1/W)^n) are distinct, on average, and fewer
    if not all are equally likely. So sorted prices in cents either repeat or lie far apart. A
    counter does neither, even if most of its rows were dropped.
    """
    n, width = len(values), np.ptp(values) + 1
    if width < 2:
        return False
    repeats = n + width * np.expm1(n * np.log1p(-1 / width))
    return bool(repeats >= at_least and n - len(np.unique(values)) <= repeats / 10)


def _hardly_overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether few values of either lie in the range of the other."""
    return all(
        np.mean((a >= b.min()) & (a <= b.max())) <= MAX_OVERLAP
        for a, b in ((one, other), (other, one))
    )


def _almost_all_differ(called: _Name, texts: list[list[str]]) -> bool:
    """Whether texts are codes, another one in almost every row: hashes, tickets, user names.

    Texts with blanks are texts. So are single words, unless the column's name says that they name
    the rows. Numbers are numbers, unless zeros in front make all of them equally long.
    """
    each = [[text.strip() for text in part] for part in texts]  # who returns is in both files
    every = [text for part in each for text in part]
    if len(every) < MIN_ROWS or not all(map(_differ, each)):
        return False
    if all(map(str.isdigit, every)):
        padded = any(text[0] == "0" for text in every) and len(set(map(len, every))) == 1
        return padded or len(every[0]) > 15
    if not _are_codes(each):
        return False
    some = _some(each)
    enough = MIN_DISTINCT * len(some)
    with_digits = sum(any(map(str.isdigit, text)) for text in some)
    quantities = sum(bool(QUANTITY.fullmatch(text)) for text in some)
    return called.numbered or (with_digits >= enough and quantities < len(some) / 2)


def _are_many(texts: list[list[str]], parts: Sequence[np.ndarray]) -> bool:
    """Whether they are no category, in one file or in all."""
    in_one = any(len(part) >= MIN_ROWS and _differ(part) for part in texts)
    return in_one or kind_of(parts) == Kind.TEXT


def _differ(texts: list[str]) -> bool:
    return len(set(texts)) >= MIN_DISTINCT * len(texts)


def _are_codes(texts: list[list[str]]) -> bool:
    """Whether nearly all are single words and not too long, and not all of them days."""
    some = _some(texts)
    codes = sum(len(text) <= MAX_LENGTH and bool(CODE.fullmatch(text)) for text in some)
    return codes >= MIN_DISTINCT * len(some) and not all(map(DAY.fullmatch, some))


def _some(texts: list[list[str]]) -> list[str]:
    """Enough of them to know what they look like."""
    every = [text.strip() for part in texts for text in part]
    return every[:: max(1, len(every) // 10_000)]
