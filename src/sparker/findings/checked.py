"""Whether what a file says can be the result of a test: kinds, shapes, ranges, and the verdict.

The verdict is made anew of the statistics beside it: no file can say that p is 0.5 where its toys
say 0.02.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from sparker.calibration.chunk_file import models_fit
from sparker.calibration.combine import RULES
from sparker.calibration.pvalues import Ranked, rank
from sparker.calibration.sequential import Sequential
from sparker.findings.explain import Answers
from sparker.statistics.contract import families_of

WHOLE, NUMBER = (int,), (int, float)
TEXT, TEXTS, NAME = (str,), (dict,), (str, dict)
MAYBE = type(None)

PLAIN: dict[str, tuple[type, ...]] = {
    "p_value": NUMBER,
    "above": WHOLE,
    "n_toys": WHOLE,
    "n_failed": WHOLE,
    "combined_score": NUMBER,
    "best_reading": WHOLE,
    "best": WHOLE,
    "frame": (*TEXT, MAYBE),
    "preprocess": NAME,
    "combine": NAME,
    "competition": (*NAME, MAYBE),
    "expected": (*NUMBER, MAYBE),
    "n_reference": WHOLE,
    "n_labellings": (*WHOLE, MAYBE),
    "settings": TEXTS,
    "seed": WHOLE,
    "versions": TEXTS,
    "timings": TEXTS,
    "made": TEXT,
}
"""What JSON must have made of each field that is a plain value."""

ARRAYS = {
    "widths": "f",
    "statistics": "f",
    "null_statistics": "f",
    "score_counts": "f",
    "p_by_reading": "f",
    "p_by_family": "f",
    "null_combined_score": "f",
    "data_components": "f",
    "reference_components": "f",
    "data_plane": "f",
    "reference_plane": "f",
    "directions": "f",
    "reference_weights": "f",
    "data": "f",
    "reference": "f",
    "reference_rows": "iu",
    "data_rows": "iu",
}
"""The fields that are arrays, and what they hold, as NumPy calls it."""

OPTIONAL = (
    "score_counts", "data_components", "reference_components", "reference_weights", "data_rows",
)  # fmt: skip
COLUMNS = "biufmMUS"
"""What a column of the user's may hold, beside objects."""

MAX_ROWS = 1e15
"""More than any sample has."""

PNG = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=]*")

UNCHECKED = "statistics", "null_statistics", "null_combined_score", "low", "high"
"""Arrays of floats that may hold values that are not finite."""


def check(values: Mapping[str, Any]) -> None:
    """Refuse fields that cannot be those of a result; one error says all that was found."""
    for look in (_kinds, _shapes, _ranges, _verdict):  # each relies on those before it
        if problems := list(look(values)):
            raise ValueError("; ".join(problems))


def _kinds(values: Mapping[str, Any]) -> Iterator[str]:
    for name, kinds in PLAIN.items():
        value = values[name]
        if not isinstance(value, kinds) or isinstance(value, bool):
            yield f"{name} is {_short(value)}"
    for name, held in ARRAYS.items():
        array = values[name]
        if array is None and name in OPTIONAL:
            continue
        if not isinstance(array, np.ndarray) or array.dtype.kind not in held:
            yield f"{name} does not hold numbers as it should"
    for name, array in values["transform"]._asdict().items():
        if np.asarray(array).dtype.kind not in ("iu" if name == "kept" else "f"):
            yield f"{name} of its transform does not hold numbers as it should"
    for name, column in values["given"].items():
        if column.dtype != object and column.dtype.kind not in COLUMNS:
            yield f"column {name} holds {column.dtype}"
    if any(not isinstance(version, str) for version in values["versions"].values()):
        yield "versions are no texts"
    if "sparker" not in values["versions"]:
        yield "it does not say which version made it"
    if any(not isinstance(seconds, NUMBER) for seconds in values["timings"].values()):
        yield "timings are no numbers"
    libraries = {one.name.lower() for one in nw.Implementation}
    if values["frame"] is not None and values["frame"] not in libraries:
        yield f"frame is {_short(values['frame'])}, which is no library of data frames"


def _shapes(values: Mapping[str, Any]) -> Iterator[str]:
    transform, models, answers = values["transform"], values["models"], values["answers"]
    n_widths, n_readings = len(values["widths"]), len(values["readings"])
    n_families = len({reading.family for reading in values["readings"]})
    n_data, n_shown = len(values["data_plane"]), len(values["reference_plane"])
    n_null = len(values["null_statistics"])
    n_columns, n_kept = len(transform.centre), len(transform.kept)
    n_fitted = np.shape(transform.matrix)[-1]
    matrices = {(n_kept,), (n_kept, n_fitted)}
    wanted: dict[str, tuple[Any, tuple[int, ...]]] = {
        "widths": (values["widths"], (n_widths,)),
        "p_by_reading": (values["p_by_reading"], (n_readings,)),
        "p_by_family": (values["p_by_family"], (n_families,)),
        "statistics": (values["statistics"], (n_readings,)),
        "null_statistics": (values["null_statistics"], (n_null, n_readings)),
        "null_combined_score": (values["null_combined_score"], (values["n_toys"],)),
        "data": (values["data"], (n_data, n_columns)),
        "reference": (values["reference"], (len(values["reference_rows"]), n_columns)),
        "reference_rows": (values["reference_rows"], (len(values["reference_rows"]),)),
        "data_plane": (values["data_plane"], (n_data, 2)),
        "reference_plane": (values["reference_plane"], (n_shown, 2)),
        "directions": (values["directions"], (n_fitted, 2)),
        "low": (transform.low, (n_columns,)),
        "high": (transform.high, (n_columns,)),
        "centre": (transform.centre, (n_columns,)),
        "kept": (transform.kept, (n_kept,)),
        "back": (transform.back, np.shape(transform.matrix)[::-1]),
        **{f"column {name}": (column, (n_data,)) for name, column in values["given"].items()},
    }
    if models is not None:
        n_kernels = np.shape(models.a)[-1]
        wanted["mu"] = models.mu, (n_widths, n_kernels, n_fitted)
        for name, n in (("data_components", n_data), ("reference_components", n_shown)):
            wanted[name] = values[name], (n, n_kernels)
    if values["data_rows"] is not None:
        wanted["data_rows"] = values["data_rows"], (n_data,)
    if answers is not None:
        wanted["probability"] = answers.probability, (n_data,)
        wanted["score"] = answers.score, (n_data,)
        if answers.row_p_values is not None:
            wanted["row_p_values"] = answers.row_p_values, (n_data,)
    for name, (array, shape) in wanted.items():
        if np.shape(array) != shape:
            yield f"{name} has shape {np.shape(array)}, not {shape}"
    if np.shape(transform.matrix) not in matrices:
        yield f"the matrix of its transform has shape {np.shape(transform.matrix)}"
    if models is not None and not models_fit(models, n_widths):
        yield "its models are none"
    if (models is None) != (n_widths == 0):
        yield "it has widths without models, or models without widths"
    if len(values["encoding"].features) != n_columns:
        yield "its encoding is of other columns"
    if 0 in (n_data, n_shown, n_readings, n_null, len(values["reference_rows"])):
        yield "it has no rows, no statistics or no toys"


def _ranges(values: Mapping[str, Any]) -> Iterator[str]:
    transform = values["transform"]
    low, high = values["interval"]
    if not 0 < values["p_value"] <= 1:
        yield f"its p-value is {values['p_value']}"
    if not 0 <= low <= high <= 1:
        yield f"the interval of its p-value is {low} to {high}"
    for name in ("p_by_reading", "p_by_family"):
        if not np.all((values[name] > 0) & (values[name] <= 1)):
            yield f"{name} are no p-values"
    for name, end in (("best", max(len(values["widths"]), 1)), ("best_reading", None)):
        if not 0 <= values[name] < (end or len(values["readings"])):
            yield f"{name} is {values[name]}"
    floats = {name: values[name] for name, held in ARRAYS.items() if held == "f"}
    floats |= transform._asdict()
    for name, array in floats.items():
        if array is not None and name not in UNCHECKED and not np.isfinite(array).all():
            yield f"{name} has values that are not finite"
    if not np.isfinite(values["statistics"]).any():
        yield "none of its statistics is finite"
    counts = values["score_counts"]
    if counts is not None and not (
        counts.ndim == 2 and counts.size and np.all((counts >= 0) & (counts <= MAX_ROWS))
    ):
        yield "its rows by score are no counts"
    try:
        said = values["settings"], values["timings"], values["encoding"].to_dict()
        json.dumps(said, allow_nan=False)
    except ValueError:
        yield "its settings, timings or encoding have numbers that are not finite"
    if not np.all(np.isfinite([scale for _, scale in values["readings"]])):
        yield "a scale is not finite"
    for name, value, error, prior in values["nuisances"]:
        if not (np.isfinite([value, error, prior]).all() and error >= 0 and prior > 0):
            yield f"the nuisance parameter {_short(name)} has no value, error and prior"
    if np.any(values["widths"] <= 0):
        yield "a width is not positive"
    expected = values["expected"]
    if expected is not None and not 0 < expected < np.inf:
        yield f"expected is {expected}"
    n_shown = len(values["reference_plane"])
    if not _are_rows(values["reference_rows"], n_shown):
        yield "reference_rows are not rows of the reference"
    if not _are_rows(transform.kept, len(transform.centre)):
        yield "its transform keeps columns that are not there"
    if values["data_rows"] is not None and not _are_rows(values["data_rows"], 2**62):
        yield "data_rows are no numbers of rows"
    if values["n_reference"] < n_shown:
        yield f"n_reference is {values['n_reference']}, and {n_shown} rows are shown"
    own = values["encoding"].embedded
    if own is not None and own.name not in values["given"]:
        yield f"it lacks the column {own.name}, which was embedded"
    n_data = len(values["data"])
    if any(not 0 <= row < n_data or not PNG.fullmatch(uri) for row, uri in values["pictures"]):
        yield "its pictures are none"
    if values["answers"] is not None:
        yield from _answers(values["answers"], len(values["data"]), len(transform.centre))


def _are_rows(numbers: np.ndarray, end: int) -> bool:
    """Whether they are rising numbers from 0 on, below the end."""
    return (
        numbers.dtype.kind in "iu"
        and bool(np.all(numbers[1:] > numbers[:-1]))
        and (not len(numbers) or 0 <= int(numbers[0]) <= int(numbers[-1]) < end)
    )


def _answers(answers: Answers, n_data: int, n_columns: int) -> Iterator[str]:
    for name in ("probability", "row_p_values"):
        array = getattr(answers, name)
        if array is not None and not _are_probabilities(array):
            yield f"{name} has values that are no probabilities"
    if answers.score.dtype.kind != "f":
        yield "the scores of its rows are no numbers"
    if answers.at_least is not None and min(answers.at_least) < 0:
        yield f"at_least is {tuple(answers.at_least)}"
    for region in answers.regions:
        if any(not 0 <= row < n_data for row in region.rows):
            yield "a region has rows that are not there"
        if not np.isfinite([region.n_data, region.expected, region.too_many]).all():
            yield "the counts of a region are not finite"
        if region.p_value is not None and not 0 <= region.p_value <= 1:
            yield f"the p-value of a region is {region.p_value}"
        for one in region.conditions:
            bounds = [bound for bound in one[1:] if bound is not None]
            if any(not isinstance(bound, NUMBER) for bound in bounds) or not bounds:
                yield f"a region has the condition {_short(one[1:])}"
    if any(not 0 <= one.p_value <= 1 for one in answers.columns):
        yield "the p-value of a column is none"
    used = [one.column for region in answers.regions for one in region.conditions]
    used += [one.column for one in answers.columns]
    if any(not 0 <= column < n_columns for column in used):
        yield "an answer is about a column that is not there"


def _are_probabilities(array: np.ndarray) -> bool:
    """Whether all are, but for those of rows that took no part."""
    return array.dtype.kind == "f" and bool(np.all(np.isnan(array) | ((array >= 0) & (array <= 1))))


def _verdict(values: Mapping[str, Any]) -> Iterator[str]:
    """What the toys say, where that can be said again."""
    null = values["null_statistics"]
    n_failed = int(np.sum(~np.isfinite(null).any(axis=1)))
    if values["n_failed"] != n_failed:
        yield f"n_failed is {values['n_failed']}, and {n_failed} toys have no finite reading"
    ranked = _ranked(values)
    if ranked is None:
        above = int(np.sum(values["null_combined_score"] >= values["combined_score"]))
        p_value = (above + 1) / (values["n_toys"] + 1)
        if values["above"] != above or values["p_value"] != p_value:
            yield f"its p-value is {values['p_value']}, and its scores give {p_value:.6g}"
        return
    for name, said, found in (
        ("p_value", values["p_value"], ranked.p_value),
        ("above", values["above"], ranked.above),
        ("n_toys", values["n_toys"], ranked.n_toys),
        ("p_by_reading", values["p_by_reading"], ranked.p_by_column),
        ("p_by_family", values["p_by_family"], ranked.p_by_family),
        ("combined_score", values["combined_score"], ranked.score[0]),
        ("null_combined_score", values["null_combined_score"], ranked.score[1:]),
    ):
        if np.shape(said) != np.shape(found) or not np.allclose(said, found, rtol=1e-6, atol=0):
            shown = "" if np.ndim(said) else f" is {said:.6g}, and its toys give {found:.6g}"
            yield f"{name}{shown or ' is not what its toys give'}"


def _ranked(values: Mapping[str, Any]) -> Ranked | None:
    """The table ranked once more; None where that takes a rule of the user's own."""
    rules = {rule.__name__: rule for rule in RULES}
    rule = rules.get(values["combine"]) if isinstance(values["combine"], str) else None
    if rule is None:
        return None
    table = np.concatenate([values["statistics"][None], values["null_statistics"]])
    families, stop = families_of(values["readings"]), values["settings"]["stop"]
    if stop is None:
        return rank(table, rule, families)
    sequential = Sequential(exceedances=int(stop["exceedances"]), first=int(stop["first"]))
    return sequential.rank(table, rule, complete=True, families=families)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
