"""Columns of any kind as numbers, column by column, in a way that can be applied to further rows.

Fitted on the rows of both samples together, without labels, or a permutation would not be exact.
What scikit-learn's ``OneHotEncoder`` and skrub's ``TableVectorizer`` do is much the same; what they
have learned could only be kept by pickling them, and here it is a few plain values.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.stats import poisson

from sparker.system.archive import Count
from sparker.tables.kinds import (
    MICROSECONDS,
    Kind,
    as_texts,
    as_times,
    as_truths,
    is_missing,
    own_levels,
)

IS, OTHER, MISSING, TIME, HOUR, WEEKDAY = "is", "other", "missing", "time", "hour", "weekday"
NUMBER, EMBEDDED = "number", "embedded"

RARELY = 0.01
"""What happens less often is no chance."""
NOTHING = ""
"""In place of a text, or of the name of a picture, that is missing."""
DAYS = "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"


class Feature(NamedTuple):
    """One number of each row, and which of the user's columns it comes from."""

    column: str
    kind: str = NUMBER
    level: str = ""

    @property
    def label(self) -> str:
        """What it is called in tables and pictures."""
        return self._said("is")

    def _said(self, verb: str) -> str:
        name, level = " ".join(self.column.split()), self.level
        if self.kind == NUMBER:  # of which there may be a million
            return name
        if not level.isprintable() or level != level.strip() or not level:
            level = repr(level)
        return {
            IS: f"{name} {verb} {level}",
            OTHER: f"{name} {verb} another value",
            MISSING: f"{name} {verb} missing",
            HOUR: f"hour of {name}",
            WEEKDAY: f"weekday of {name}",
            EMBEDDED: f"{level} of {name}",
        }.get(self.kind, name)

    @property
    def is_flag(self) -> bool:
        """Whether it is 1 or 0, for yes or no."""
        return self.kind in (IS, OTHER, MISSING)

    def text(self, above: float | None, at_most: float | None) -> str:
        """Return a condition: values above one bound and no larger than another.

        >>> Feature("size").text(1.5, 3.0), Feature("colour", "is", "red").text(None, 0.0)
        ('1.5 < size <= 3', 'colour is not red')
        """
        if self.is_flag:
            return self._said("is" if above is not None else "is not")
        if self.kind == WEEKDAY:
            first = 0 if above is None else int(np.floor(above)) + 1
            last = 6 if at_most is None else int(np.floor(at_most))
            days = DAYS[first] if first == last else f"{DAYS[first]} to {DAYS[last]}"
            return f"{self.label} {days}"
        if at_most is None:
            return f"{self.label} > {self.value(above)}"
        low = "" if above is None else f"{self.value(above)} < "
        return f"{low}{self.label} <= {self.value(at_most)}"

    def value(self, number: float | None) -> str:
        """A number of this feature as people read it, with all digits that count."""
        assert number is not None
        if self.kind == TIME:
            return when(number)
        if number and not 1e-4 <= abs(number) < 1e16:
            return repr(number)
        return np.format_float_positional(number, trim="-")


def when(seconds: float) -> str:
    """A time of the calendar, as short as it can be said.

    >>> when(1.7e9), when(86400.0 * 19000)
    ('2023-11-14 22:13:20', '2022-01-08')
    """
    text = str(np.datetime64(round(seconds * 1e6), "us")).replace("T", " ")
    return text.removesuffix(".000000").removesuffix(" 00:00:00")


def called(name: str) -> str:
    """A column as sentences call it; columns without names have numbers.

    >>> called("size"), called("column 3")
    ('column size', 'column 3')
    """
    return f"column {name.removeprefix('column ')}"


@runtime_checkable
class Embeds(Protocol):
    """What texts and pictures need to become numbers; the room ``embed`` has some."""

    @property
    def width(self) -> int:
        """How many numbers a thing becomes."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What these are called; empty where they have no names."""

    @property
    def identity(self) -> dict[str, Any]:
        """Plain values that tell it from any other."""

    def saved(self) -> Any:
        """What a file has of it."""

    @property
    def said(self) -> str:
        """What it does, in words."""

    def encode(self, things: Sequence[Any]) -> np.ndarray:
        """The numbers of each."""


class ColumnEncoding(NamedTuple):
    """How one column becomes features."""

    name: str
    place: Count
    """Where the column is in the reference, where columns have no names."""
    kind: Kind
    missing: bool = False
    """Whether a feature says that a value is missing."""
    fill: tuple[float, ...] = ()
    """What stands for a missing value, for each feature that is no flag: the median."""
    levels: tuple[str, ...] = ()
    """Of a category, the values that have a feature of their own."""
    rare: tuple[str, ...] = ()
    """Of a category, further values, which share a feature."""
    n_rows: Count = 0
    """Of a category, the rows it was fitted on that have a value."""
    n_single: Count = 0
    """Values that only one of them has."""
    parts: tuple[str, ...] = ()
    """Of times, what is looked at beside the time itself: the hour, the weekday."""
    embedder: Embeds | None = None
    """Of texts and pictures, what makes numbers of them."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """What the column becomes."""
        found: list[Feature] = []
        if self.embedder is not None:
            numbers = range(1, 1 + self.embedder.width)
            labels = self.embedder.labels or [f"direction {number}" for number in numbers]
            found += [Feature(self.name, EMBEDDED, label) for label in labels]
        elif self.kind == Kind.NUMBER:
            found.append(Feature(self.name))
        elif self.kind == Kind.BOOLEAN:
            found.append(Feature(self.name, IS, "true"))
        elif self.kind == Kind.CATEGORY:
            found += [Feature(self.name, IS, level) for level in self.levels]
            found += [Feature(self.name, OTHER)] * bool(self.rare)
        else:
            found += [Feature(self.name, part) for part in (TIME, *self.parts)]
        return (*found, *[Feature(self.name, MISSING)] * self.missing)

    @property
    def done(self) -> str:
        """What was done to the column, in words."""
        if self.embedder is not None:
            said = self.embedder.said
        elif self.kind == Kind.NUMBER:
            said = "as it is"
        elif self.kind == Kind.BOOLEAN:
            said = "1 for true, 0 for false"
        elif self.kind == Kind.CATEGORY:
            said = f"a feature for each of {len(self.levels)} values"
            if self.rare:
                n = len(self.rare)
                said += f" and one for {n} rarer {'value' if n == 1 else 'values'}"
        else:
            said = " and ".join(
                ["time", *({HOUR: "hour of the day"}.get(p, p) for p in self.parts)]
            )
        if self.missing:
            said += ", and a feature that says where it is missing"
            if self.fill:
                middle = float(f"{self.fill[0]:.6g}") if self.kind == Kind.NUMBER else self.fill[0]
                said += f" ({self.features[0].value(middle)}, the median, stands there)"
        return said

    def encode(self, part: np.ndarray) -> np.ndarray:  # (N,) -> (N, k)
        """The features of these rows."""
        gone = is_missing(part)
        known = part[~gone]
        found = np.zeros((len(part), len(self.features)))
        if self.missing:
            found[gone, -1] = 1
        if self.embedder is not None:
            things = np.full(len(part), NOTHING, object)  # a missing text is an empty one
            things[~gone] = as_texts(known)
            found[:, : self.embedder.width] = self.embedder.encode(things.tolist())
        elif self.kind == Kind.CATEGORY:
            place = {level: i for i, level in enumerate(self.levels)}
            # A value that was not known: among the rare ones, or none of all.
            other = len(self.levels) if self.rare else -1
            codes = np.array([place.get(text, other) for text in as_texts(known)], int)
            rows = np.flatnonzero(~gone)[codes >= 0]
            found[rows, codes[codes >= 0]] = 1
        elif self.kind == Kind.BOOLEAN:
            found[~gone, 0] = self._read(as_truths, known)
        elif self.kind == Kind.TIME:
            times = self._read(as_times, known)
            found[:, : 1 + len(self.parts)] = self.fill
            found[~gone, : 1 + len(self.parts)] = clock(times, self.parts)
        else:
            found[:, 0] = self.fill[0]
            found[~gone, 0] = self._read(np.asarray, known)
        return found

    def _read(self, how: Any, known: np.ndarray) -> np.ndarray:
        try:
            if self.kind == Kind.NUMBER and known.dtype.kind != "f":
                known = np.array([float(value) for value in known], np.float64)
                if not np.isfinite(known).all():
                    raise ValueError("infinite values")
            return np.asarray(how(known))
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(f"it held {self.kind}s, and now others ({error})") from error

    def unseen(self, part: np.ndarray) -> Counter[str]:
        """Values that the rows it was fitted on never have, if chance does not explain them.

        Each with its number of rows. Where many values are rare, further rows have new ones all
        the time: about as large a share as that of values seen once (Good, Biometrika 40, 237).
        """
        if self.kind != Kind.CATEGORY:
            return Counter()
        known = {*self.levels, *self.rare}
        texts = as_texts(part[~is_missing(part)])
        new = Counter(text for text in texts if text not in known)
        by_chance = len(texts) * self.n_single / max(self.n_rows, 1)
        # None of so many rows has a value that is as frequent as this, except by chance.
        share = len(texts) / max(len(texts) + self.n_rows, 1)
        often = {text: n for text, n in new.items() if (len(known) + 1) * share**n <= RARELY}
        return new if poisson.sf(new.total() - 1, by_chance) <= RARELY else Counter(often)

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "column": self.name,
            "place": self.place,
            "kind": str(self.kind),
            "done": self.done,
            "missing": self.missing,
            "fill": list(self.fill),
            "levels": list(self.levels),
            "rare_levels": list(self.rare),
            "rows": self.n_rows,
            "single": self.n_single,
            "parts": list(self.parts),
            "embedder": None if self.embedder is None else self.embedder.identity,
        }


def clock(times: np.ndarray, parts: Sequence[str]) -> np.ndarray:  # (N,) -> (N, 1 + parts)
    """Seconds since 1970, and what is asked for beside them."""
    seconds = times.astype(MICROSECONDS).astype(np.int64) / 1e6
    found = {TIME: seconds, HOUR: seconds % 86400 / 3600, WEEKDAY: (seconds // 86400 + 3) % 7}
    return np.column_stack([found[part] for part in (TIME, *parts)])


def fit(
    name: str,
    place: int,
    kind: Kind,
    parts: Sequence[np.ndarray],
    embedder: Embeds | None = None,
) -> ColumnEncoding:
    """How to encode a column, of its rows in all tables."""
    gone = [is_missing(part) for part in parts]
    missing = any(lost.any() for lost in gone)
    if embedder is not None:
        return ColumnEncoding(name, place, kind, missing, embedder=embedder)
    known = [part[~lost] for part, lost in zip(parts, gone, strict=True)] if missing else parts
    if kind == Kind.NUMBER:
        # Rows that are still to come may lack what these never do.
        middle = float(np.median(np.concatenate([part.astype(np.float64) for part in known])))
        return ColumnEncoding(name, place, kind, missing, (middle,))
    if kind == Kind.BOOLEAN:
        return ColumnEncoding(name, place, kind, missing)
    if kind == Kind.CATEGORY:
        counts = Counter(text for part in known for text in as_texts(part))
        levels = tuple(own_levels(counts))
        rare = tuple(sorted(counts.keys() - {*levels}))
        n_single = sum(n == 1 for n in counts.values())
        return ColumnEncoding(
            name, place, kind, missing, (), levels, rare, counts.total(), n_single
        )
    times = np.concatenate([as_times(part) for part in known])
    values = clock(times, (HOUR, WEEKDAY))
    beside = tuple(part for part, own in zip((HOUR, WEEKDAY), values.T[1:], strict=True)
                   if np.ptp(own) > 0)  # fmt: skip
    fill = tuple(float(np.median(own)) for own in clock(times, beside).T)
    return ColumnEncoding(name, place, kind, missing, fill, parts=beside)


def which(flags: np.ndarray) -> np.ndarray:  # (N, k) -> (N,)
    """Which of the values of a category each row has; k where none of them."""
    return np.where(flags.any(1), flags.argmax(1), flags.shape[1])


class LeftOut(NamedTuple):
    """A column that is no part of the test, and why."""

    name: str
    why: str


class Encoding(NamedTuple):
    """How a table becomes numbers."""

    columns: tuple[ColumnEncoding, ...]
    left_out: tuple[LeftOut, ...] = ()
    named: bool = True
    """Whether columns go by their names; otherwise by their places."""
    n_columns: int = 0
    """Columns of the reference, those included that are no part of the test."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """Of all columns."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def labels(self) -> list[str]:
        """What the features are called, each by a name of its own."""
        return [feature.label for feature in self.told_apart]

    @property
    def names(self) -> list[str]:
        """The same, to follow the word "column"."""
        return [label.removeprefix("column ") for label in self.labels]

    @property
    def told_apart(self) -> tuple[Feature, ...]:
        """The features, with the places of their columns where they would be called alike."""
        found = [(one, column.place) for column in self.columns for one in column.features]
        labels = [one.label for one, _ in found]
        alike = Counter(labels)
        return tuple(
            one._replace(column=f"{one.column} (column {place})".strip())
            if alike[label] > 1 or not one.column.strip()
            else one
            for (one, place), label in zip(found, labels, strict=True)
        )

    @property
    def plain(self) -> bool:
        """Whether all columns are numbers that stay as they are."""
        return all(one.kind == Kind.NUMBER and not one.missing for one in self.columns)

    @property
    def is_numeric(self) -> np.ndarray:  # (features,)
        """Which features are numbers or times, not flags or coordinates of an embedding."""
        return np.array([not (one.is_flag or one.kind == EMBEDDED) for one in self.features], bool)

    @property
    def blocks(self) -> list[list[int]]:
        """The features that are looked at together, column by column: the values of a category."""
        found: list[list[int]] = []
        position = 0
        for column in self.columns:
            n = len(column.features)
            together = n - column.missing if column.kind == Kind.CATEGORY else 1
            found.append(list(range(position, position + together)))
            found += [[i] for i in range(position + together, position + n)]
            position += n
        return [block for block in found if block]

    @property
    def lacking(self) -> dict[int, int]:
        """For features with a feature that says where they are missing, which one that is."""
        found: dict[int, int] = {}
        position = 0
        for column in self.columns:
            last = position + len(column.features) - 1
            if column.missing:
                found |= dict.fromkeys(range(position, last), last)
            position = last + 1
        return found

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "columns": [column.to_dict() for column in self.columns],
            "left_out": [one._asdict() for one in self.left_out],
            "named": self.named,
            "n_columns": self.n_columns,
        }

    @property
    def embedded(self) -> ColumnEncoding | None:
        """The column of texts or pictures, if there is one."""
        return next((one for one in self.columns if one.embedder is not None), None)

    def saved(self) -> "Encoding":
        """Return what a file has: in place of an embedder, what is known of it."""
        return self._replace(
            columns=tuple(
                one if one.embedder is None else one._replace(embedder=one.embedder.saved())
                for one in self.columns
            )
        )

    def check(self) -> None:
        """Refuse an encoding from a file whose parts do not fit together.

        Raises:
            ValueError: if a column lacks its embedder or what it is filled with.
        """
        for column in self.columns:
            if (column.kind in (Kind.TEXT, Kind.IMAGE)) != (column.embedder is not None):
                raise ValueError(f"the encoding of {called(column.name)} lacks its embedder")
            n_filled = {Kind.NUMBER: 1, Kind.TIME: 1 + len(column.parts)}.get(column.kind, 0)
            if len(column.fill) != n_filled or not {*column.parts} <= {HOUR, WEEKDAY}:
                raise ValueError(f"the encoding of {called(column.name)} does not fit together")
