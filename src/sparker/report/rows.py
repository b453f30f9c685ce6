"""Which rows the report shows, and all it says of each: the table behind plots, cards and CSV."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from sparker.findings.result import Result
from sparker.report.thumbnails import Picture, thumbnails

STRONGEST = 2000  # rows of the largest |f|, all of which are shown
OTHERS = 2000  # of the rest, drawn at random
REFERENCE = 2000  # reference rows in the plots, drawn at random
TEXT_BUDGET, NAME_BUDGET = 800_000, 300_000  # bytes of all texts, of all names
CLIPS = (400, 200, 100, 50, 25)  # characters of a text: the most that stays within the budget
COMPONENTS = 8  # kernels with a column of their own in the table
OBSERVABLES = 20  # observables with a column of their own
DIGITS, DECIMALS = 6, 3  # of observables, of f and c
LONG = 20  # characters of a text that needs a wide column

MARKUP = re.compile("[<>&'\"\\\\\n]")


class Extras(NamedTuple):
    """What the user knows of the rows beyond their features."""

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
    reference: np.ndarray  # of reference rows
    order: list[int]  # kernels, strongest first
    listed: list[int]  # those with a column of their own, the two that are drawn first
    leading: np.ndarray  # (N_D,) the kernel with the most to say about a row
    images: dict[int, str]
    texts: dict[int, str]
    names: dict[int, str]
    columns: list[dict[str, Any]]
    cells: list[list[Any]]
    remarks: list[str]
    """What was left out, if anything."""


def choose(
    result: Result,
    extras: Extras,
    order: list[int],
    axes: Sequence[int],
    priority: Sequence[int],
) -> Shown:
    """Choose the rows to show and fill the table.

    ``axes`` are the kernels that are drawn first; ``priority`` rows get their pictures first.
    """
    components, scores = result.data_components, result.data_log_ratio
    assert components is not None
    assert scores is not None
    rng = np.random.default_rng(0)  # the same rows every time
    by_size = np.argsort(-np.abs(scores), kind="stable")
    strongest, rest = by_size[:STRONGEST], by_size[STRONGEST:]
    if len(rest) > OTHERS:
        rest = np.sort(rng.choice(len(rest), OTHERS, replace=False))
        rest = by_size[STRONGEST:][rest]
    rows = np.concatenate([strongest, rest])
    n_reference = len(result.reference_plane)
    reference = np.arange(n_reference)
    if n_reference > REFERENCE:
        reference = np.sort(rng.choice(n_reference, REFERENCE, replace=False))
    listed = list(dict.fromkeys([*axes, *order]))[:COMPONENTS]
    wanted = list(dict.fromkeys([*priority, *rows.tolist()]))
    images = {} if extras.images is None else thumbnails(extras.images, wanted)
    texts = {} if extras.texts is None else _clipped(extras.texts, wanted, TEXT_BUDGET)
    names = {} if extras.names is None else _clipped(extras.names, wanted, NAME_BUDGET)
    leading = np.argmax(np.abs(components), axis=1)
    columns = _columns(extras, listed, bool(images))
    cells = _cells(result, extras, rows, listed, leading, images, texts, names)
    remarks = _remarks(result, extras, rows, reference, order, images, texts, wanted)
    return Shown(
        rows, reference, order, listed, leading, images, texts, names, columns, cells, remarks
    )


def _columns(extras: Extras, listed: list[int], images: bool) -> list[dict[str, Any]]:
    def text(label: str, texts: Sequence[str]) -> dict[str, Any]:
        return {"label": label, "kind": "text", "long": any(len(text) > LONG for text in texts)}

    columns: list[dict[str, Any]] = [{"label": "row", "kind": "number"}]
    if extras.names is not None:
        columns.append(text("name", extras.names))
    if images:
        columns.append({"label": "image", "kind": "image"})
    columns += [{"label": label, "kind": "number", "digits": DECIMALS} for label in ("f", "c")]
    columns.append({"label": "kernel", "kind": "number"})
    if extras.texts is not None:
        columns.append(text("text", extras.texts))
    columns += [
        {"label": name, "kind": "number", "observable": True}
        for name in list(extras.observables)[:OBSERVABLES]
    ]
    columns += [{"label": f"f of kernel {i}", "kind": "number", "digits": DECIMALS} for i in listed]
    return columns


def _cells(
    result: Result,
    extras: Extras,
    rows: np.ndarray,
    listed: list[int],
    leading: np.ndarray,
    images: dict[int, str],
    texts: dict[int, str],
    names: dict[int, str],
) -> list[list[Any]]:
    scores, components = result.data_log_ratio, result.data_components
    assert scores is not None
    assert components is not None
    parts: list[list[Any]] = [rows.tolist()]
    if extras.names is not None:
        parts.append([names[int(row)] for row in rows])
    if images:
        parts.append([images.get(int(row)) for row in rows])
    parts += [_decimals(scores[rows]), _decimals(expit(scores[rows])), leading[rows].tolist()]
    if extras.texts is not None:
        parts.append([texts[int(row)] for row in rows])
    parts += [_rounded(values[rows]) for values in list(extras.observables.values())[:OBSERVABLES]]
    parts += [_decimals(components[rows, i]) for i in listed]
    return [list(cells) for cells in zip(*parts, strict=True)]


def _decimals(values: np.ndarray) -> list[float]:
    """Logarithms and shares: what is far below one is nothing."""
    return [float(value) for value in np.round(values.astype(np.float64), DECIMALS) + 0.0]


def _rounded(values: np.ndarray) -> list[float | None]:
    """Numbers as short as they may be; whole ones stay whole, and JSON has no NaN."""

    def short(value: float) -> float | None:
        if not np.isfinite(value):
            return None
        if value == round(value) and abs(value) < 2**53:
            return int(value)
        return float(f"{value:.{DIGITS}g}")

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


def clip(text: str, most: int) -> str:
    """The beginning of a text, with a sign that it goes on."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _remarks(
    result: Result,
    extras: Extras,
    rows: np.ndarray,
    reference: np.ndarray,
    order: list[int],
    images: dict[int, str],
    texts: dict[int, str],
    wanted: Sequence[int],
) -> list[str]:
    n_data, n_reference = len(result.data_plane), result.n_reference
    remarks = []
    if len(rows) < n_data:
        remarks.append(
            f"Of {n_data:,} data rows, plots and table show the {STRONGEST:,} with the largest |f| "
            f"and a random {len(rows) - STRONGEST:,} of the others; all numbers are of all rows."
        )
    if len(reference) < n_reference:
        remarks.append(f"Of {n_reference:,} reference rows, a random {len(reference):,} are drawn.")
    if result.reference_weights is not None:
        remarks.append(
            "The more a reference row weighs, the larger it is drawn, up to nine times the area of "
            "an average one; all numbers count it by its weight."
        )
    if extras.images is not None and len(images) < len(wanted):
        remarks.append(f"Pictures are kept for the {len(images):,} most anomalous rows.")
    if extras.texts is not None and any(texts[row] != extras.texts[row] for row in wanted):
        remarks.append("Long texts are cut short.")
    if len(order) > COMPONENTS:
        remarks.append(f"The table has the components of {COMPONENTS} of the {len(order)} kernels.")
    if len(extras.observables) > OBSERVABLES:
        remarks.append(f"The table has the first {OBSERVABLES} observables.")
    return remarks
