"""The rows in the report: the table behind plots and CSV."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sparker.findings.result import Result
from sparker.report.answers import ReportAnswers
from sparker.report.numbers import clip, digits_for
from sparker.report.thumbnails import Picture, thumbnails

STRONGEST = 2000  # the most anomalous rows, all of which are shown
OTHERS = 2000  # of the rest, drawn at random
REFERENCE = 2000  # reference rows in the plots, drawn at random
TEXT_BUDGET, NAME_BUDGET = 800_000, 300_000  # bytes of all texts, of all names
CLIPS = (400, 200, 100, 50, 25)  # characters of a text: the most that stays within the budget
VALUES = 20  # columns of the data in the table, and as many observables
DIGITS, DECIMALS = 6, 3  # of values at least, of probabilities and f
LONG_VALUE = 60  # characters of a value of a column
LONG = 20  # characters of a text that needs a wide column

MARKUP = re.compile("[<>&'\"\\\\\n]")


class Extras(NamedTuple):
    """Texts, names, pictures and observables of the rows."""

    texts: Sequence[str] | None
    names: Sequence[str] | None
    images: Sequence[Picture] | None
    observables: dict[str, np.ndarray]
    reference_observables: dict[str, np.ndarray]


def check_extras(
    result: Result,
    texts: Sequence[str] | None,
    names: Sequence[str] | None,
    images: Sequence[Picture] | None,
    observables: Mapping[str, ArrayLike] | None,
    reference_observables: Mapping[str, ArrayLike] | None,
) -> Extras:
    """One of everything per row, or a ``ValueError`` that says what is wrong."""
    n_data, n_reference = len(result.data_plane), len(result.reference_plane)
    for what, given in (("texts", texts), ("names", names), ("images", images)):
        if isinstance(given, str | os.PathLike):
            raise ValueError(
                f"{what} must be a sequence with one entry per data row, not a {given!r}"
            )
        if given is not None:
            _check_length(what, len(given), n_data, "data")
    numbers = _numbers("observables", observables, n_data, "data")
    reference = _numbers("reference_observables", reference_observables, n_reference, "reference")
    unknown = [name for name in reference if name not in numbers]
    if unknown:
        raise ValueError(
            f"reference_observables has {unknown[0]!r}, which is not among the observables "
            f"{list(numbers)}; give it for the data as well"
        )
    return Extras(
        None if texts is None else [_text(text) for text in texts],
        None if names is None else [_text(name) for name in names],
        images,
        numbers,
        reference,
    )


def _numbers(
    what: str, given: Mapping[str, ArrayLike] | None, n: int, sample: str
) -> dict[str, np.ndarray]:
    found = {}
    for name, values in (given or {}).items():
        try:
            array = np.asarray(values, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what}[{name!r}] must be numbers: {error}") from error
        if array.ndim != 1:
            raise ValueError(f"{what}[{name!r}] must be 1-D, got shape {array.shape}")
        _check_length(f"{what}[{name!r}]", len(array), n, sample)
        found[_text(name)] = array
    return found


def _text(value: object) -> str:
    """A string without halves of surrogate pairs, which no file can hold."""
    return str(value).encode(errors="replace").decode()


def _check_length(what: str, got: int, n: int, sample: str) -> None:
    if got != n:
        raise ValueError(
            f"{what} has {got} entries, but there are {n} {sample} rows; give one each"
        )


class Shown(NamedTuple):
    """The data rows in the report, most anomalous first, and a sample of the reference."""

    rows: np.ndarray  # (n,) of data rows
    reference: np.ndarray  # places in ``Result.reference``
    images: dict[int, str]
    texts: dict[int, str]
    columns: list[dict[str, Any]]
    cells: list[list[Any]]
    views: list[list[int]]
    """For each choice on the page, the places of its rows in the table; all rows come first."""
    remarks: list[str]
    """What was left out, if anything."""


def ranked(result: Result) -> np.ndarray | None:  # (N_D,)
    """The rows, the most anomalous first; None where nothing is known of that."""
    known = result.answers is not None or result.data_log_ratio is not None
    return result.ranking if known else None


def choose(result: Result, extras: Extras, answers: ReportAnswers, telling: Sequence[int]) -> Shown:
    """Choose the rows to show and fill the table; ``telling`` are columns, most telling first."""
    rng = np.random.default_rng(0)  # the same rows every time
    order = ranked(result)
    if order is None:
        order = np.arange(len(result.data))
    strongest, rest = order[:STRONGEST], order[STRONGEST:]
    if len(rest) > OTHERS:
        rest = rest[np.sort(rng.choice(len(rest), OTHERS, replace=False))]
    rows = np.concatenate([strongest, rest])
    reference = np.arange(len(result.reference))
    if len(reference) > REFERENCE:
        reference = np.sort(rng.choice(len(reference), REFERENCE, replace=False))
    wanted = rows.tolist()
    images = dict(result.pictures)
    if extras.images is not None:
        images = thumbnails(extras.images, wanted)
    texts = {} if extras.texts is None else _clipped(extras.texts, wanted, TEXT_BUDGET)
    names = {} if extras.names is None else _clipped(extras.names, wanted, NAME_BUDGET)
    # The user's own columns, of those that the telling features come from.
    of_feature = [feature.column for feature in result.encoding.features]
    chosen = list(dict.fromkeys(of_feature[i] for i in telling))[:VALUES]
    if len(result.values) <= VALUES:
        chosen = list(result.values)
    columns, cells = _table(result, extras, answers, rows, chosen, images, texts, names)
    place = {row: i for i, row in enumerate(wanted)}
    marked = [answers.marked, *(one.rows for one in answers.places)]
    return Shown(
        rows,
        reference,
        images,
        texts,
        columns,
        cells,
        [sorted(place[int(row)] for row in some if int(row) in place) for some in marked],
        _remarks(result, extras, rows, reference, images, texts, len(chosen)),
    )


def _table(
    result: Result,
    extras: Extras,
    answers: ReportAnswers,
    rows: np.ndarray,
    chosen: Sequence[str],
    images: dict[int, str],
    texts: dict[int, str],
    names: dict[int, str],
) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """The columns of the table with what they are, and the cells of every row."""
    parts: list[tuple[dict[str, Any], list[Any]]] = []

    def add(label: str, kind: str, cells: list[Any], **more: Any) -> None:
        parts.append(({"label": label, "kind": kind, **more}, cells))

    def text(label: str, of: Sequence[str], cells: dict[int, str]) -> None:
        is_long = any(len(one) > LONG for one in of)
        add(label, "text", [cells[int(row)] for row in rows], role=label, long=is_long)

    add("row", "number", result.row_numbers[rows].tolist())
    if extras.names is not None:
        text("name", extras.names, names)
    if images:
        add("image", "image", [images.get(int(row)) for row in rows])
    if result.answers is not None:
        add("probability", "number", _decimals(result.answers.probability[rows]), digits=DECIMALS)
    if any(not place.lack for place in answers.places):
        regions = result.region_of_row[rows].tolist()  # those on the page are the first of all
        add("region", "number", [i if 0 < i <= len(answers.places) else None for i in regions])
    if answers.flagged is not None:
        add("flagged", "text", ["yes" if answers.flagged[row] else "" for row in rows])
    if extras.texts is not None:
        text("text", extras.texts, texts)
    given, shown_already = result.values, _column_of_texts(result, extras)
    for name in chosen:
        if name == shown_already:
            continue
        label = " ".join(_text(name).split()) or "no name"
        if given[name].dtype.kind == "f":
            add(label, "number", _rounded(given[name][rows]), value=True)
        else:
            add(label, "text", _plain(given[name][rows]), value=True)
    for name, values in list(extras.observables.items())[:VALUES]:
        add(name, "number", _rounded(values[rows]), value=True)
    if result.data_log_ratio is not None:
        add("f", "number", _decimals(result.data_log_ratio[rows]), digits=DECIMALS)
    cells = [list(line) for line in zip(*(cells for _, cells in parts), strict=True)]
    return [column for column, _ in parts], cells


def _column_of_texts(result: Result, extras: Extras) -> str | None:
    """The column that the texts of the page are those of."""
    own, texts = result.encoding.embedded, result.texts
    if own is None or texts is None or extras.texts != [_text(text) for text in texts]:
        return None
    return own.name


def _plain(column: np.ndarray) -> list[str]:
    """Texts, times, yes and no; nothing where a value is missing."""
    if column.dtype.kind == "M":
        times = np.char.replace(column.astype("datetime64[s]").astype(str), "T", " ")
        return ["" if time == "NaT" else str(time) for time in times]
    return ["" if value is None else clip(_text(value), LONG_VALUE) for value in column]


def _decimals(values: np.ndarray) -> list[float | None]:
    """Logarithms and shares: what is far below one is nothing."""
    rounded = np.round(values.astype(np.float64), DECIMALS) + 0.0
    return [float(value) if np.isfinite(value) else None for value in rounded]


def _rounded(values: np.ndarray) -> list[float | None]:
    """Numbers as short as they may be; whole ones stay whole, and JSON has no NaN."""
    digits = digits_for(values, DIGITS)

    def short(value: float) -> float | None:
        if not np.isfinite(value):
            return None
        if value == round(value) and abs(value) < 2**53:
            return int(value)
        return float(f"{value:.{digits}g}")

    return [short(float(value)) for value in values]


def _clipped(texts: Sequence[str], rows: Sequence[int], budget: int) -> dict[int, str]:
    """The rows' texts, as much of each as fits into the budget."""
    found: dict[int, str] = {}
    for most in CLIPS:
        found = {row: clip(texts[row], most) for row in rows}
        # JSON in a page writes each of these with five more.
        if (
            sum(len(text.encode()) + 5 * len(MARKUP.findall(text)) for text in found.values())
            <= budget
        ):
            break
    return found


def _remarks(
    result: Result,
    extras: Extras,
    rows: np.ndarray,
    reference: np.ndarray,
    images: dict[int, str],
    texts: dict[int, str],
    n_columns: int,
) -> list[str]:
    n_data, n_reference = len(result.data), result.n_reference
    remarks = []
    if len(rows) < n_data:
        remarks.append(
            f"Of {n_data:,} data rows, planes and table show the {STRONGEST:,} most anomalous and "
            f"a random {len(rows) - STRONGEST:,} of the others; all numbers are of all rows."
        )
    if len(reference) < n_reference:
        remarks.append(
            f"Of {n_reference:,} reference rows, a random {len(reference):,} are in the planes."
        )
    if result.reference_weights is not None:
        remarks.append(
            "The more a reference row weighs, the larger it is drawn, up to nine times the area of "
            "an average one; all numbers count it by its weight."
        )
    if (extras.images is not None or images) and len(images) < len(rows):
        remarks.append(f"Pictures are kept for the {len(images):,} most anomalous rows.")
    if extras.texts is not None and any(texts[row] != extras.texts[row] for row in texts):
        remarks.append("Long texts are cut short.")
    if n_columns < len(result.values):
        remarks.append(
            f"Of {len(result.values):,} columns the table has the {n_columns} in which the rows "
            "above differ most."
        )
    if len(extras.observables) > VALUES:
        remarks.append(f"The table has the first {VALUES} observables.")
    return remarks
