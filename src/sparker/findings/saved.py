"""A result in a file: what is written part by part, and checked when it is read."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sparker.embed import choose, restored
from sparker.engine.ensemble import Ensemble
from sparker.engine.preprocess import Transform
from sparker.engine.sample import as_weights
from sparker.findings.bound import AtLeast
from sparker.findings.checked import check
from sparker.findings.columns import ColumnTest, Quartiles
from sparker.findings.explain import Answers
from sparker.findings.regions import Region
from sparker.findings.rules import Condition
from sparker.nulls import Pull
from sparker.statistics.contract import Reading
from sparker.tables.cells import as_objects
from sparker.tables.checks import Caution
from sparker.tables.encoding import Encoding

KIND = "test result"
ANSWERS = "answers"
ARRAYS = "probability", "score", "row_p_values"
"""Those of the answers that are written as arrays; the others are plain values."""


GIVEN = "given"

TUPLES = Ensemble | Transform
"""What is written to a file part by part."""


PARTS: dict[str, Any] = {
    "transform": Transform,
    "models": Ensemble,
}


def restore(
    names: Iterable[str], header: Mapping[str, Any], contents: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """The fields of a result by these names, all of them checked."""
    values: dict[str, Any] = {}
    for name in names:
        if name in contents:
            values[name] = contents[name]
        elif name == GIVEN:
            values[name] = _given(header[name], contents)
        elif name == "encoding":
            values[name] = Encoding.from_dict(header[name], restored, contents)
        elif name == ANSWERS:
            values[name] = _answers(header[name], contents)
        elif name in PARTS and f"{name}.{PARTS[name]._fields[0]}" in contents:
            kind = PARTS[name]
            values[name] = kind(*(contents[f"{name}.{part}"] for part in kind._fields))
        else:
            values[name] = header[name]
    values["pictures"] = tuple((int(row), str(uri)) for row, uri in values["pictures"])
    low, high = values["interval"]
    values["interval"] = float(low), float(high)
    values["warnings"] = tuple(Caution(str(code), str(text)) for code, text in values["warnings"])
    for name in ("notes", "files"):
        values[name] = tuple(str(item) for item in values[name])
    values["readings"] = tuple(
        Reading(str(family), float(scale)) for family, scale in values["readings"]
    )
    values["nuisances"] = tuple(
        Pull(str(name), *map(float, numbers)) for name, *numbers in values["nuisances"]
    )
    weights = values["reference_weights"]
    if weights is not None:
        n_reference = len(values["reference_plane"])
        values["reference_weights"] = as_weights("reference_weights", weights, n_reference)
    check(values)
    return values


def embedded_again(encoding: Encoding, embed: Any) -> Encoding:
    """An encoding with the embedder that its file could not hold, handed in once more."""
    own = encoding.embedded
    if own is None or own.embedder is None:
        raise ValueError("embed was given, but no column was embedded")
    chosen = choose(embed, own.embedder.identity["of"])
    return encoding.embedded_by(chosen if chosen.learns else chosen.fitted(()))


def given_parts(given: Mapping[str, np.ndarray]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Columns of any kind as plain values, and numbers and times as arrays."""
    plain = [
        [name, column.tolist() if column.dtype == object else None]
        for name, column in given.items()
    ]
    arrays = {
        f"{GIVEN}.{i}": column for i, column in enumerate(given.values()) if column.dtype != object
    }
    return plain, arrays


def _given(plain: Any, contents: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = {}
    for i, (name, cells) in enumerate(plain):
        if cells is None:
            found[str(name)] = contents[f"{GIVEN}.{i}"]
        else:
            plain_cells = [c if c is None or isinstance(c, bool) else str(c) for c in cells]
            found[str(name)] = as_objects(plain_cells)
    return found


def answers_parts(answers: Answers) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The answers as plain values and as arrays."""
    arrays = {f"{ANSWERS}.{name}": getattr(answers, name) for name in ARRAYS}
    return (
        {
            "at_least": answers.at_least,
            "regions": answers.regions,
            "columns": answers.columns,
        },
        {name: array for name, array in arrays.items() if array is not None},
    )


def _answers(plain: Mapping[str, Any] | None, contents: Mapping[str, np.ndarray]) -> Answers | None:
    if plain is None:
        return None
    arrays = {name: contents.get(f"{ANSWERS}.{name}") for name in ARRAYS}
    bound = plain["at_least"]
    return Answers(
        at_least=None if bound is None else AtLeast(*map(int, bound)),
        probability=arrays["probability"],  # type: ignore[arg-type]
        score=arrays["score"],  # type: ignore[arg-type]
        row_p_values=arrays["row_p_values"],
        regions=tuple(_region(*values) for values in plain["regions"]),
        columns=tuple(
            ColumnTest(int(i), str(test), float(distance), float(p), *map(_quartiles, quartiles))
            for i, test, distance, p, *quartiles in plain["columns"]
        ),
    )


def _quartiles(given: Any) -> Quartiles | None:
    if given is None:
        return None
    low, middle, high = map(float, given)
    return low, middle, high


def _region(
    conditions: Any,
    around: Any,
    lack: Any,
    n_data: Any,
    expected: Any,
    too_many: Any,
    interval: Any,
    p_value: Any,
    rows: Any,
) -> Region:
    return Region(
        tuple(Condition(int(column), *bounds) for column, *bounds in conditions),
        None if around is None else str(around),
        bool(lack),
        int(n_data),
        float(expected),
        float(too_many),
        None if interval is None else (float(interval[0]), float(interval[1])),
        None if p_value is None else float(p_value),
        tuple(int(row) for row in rows),
    )


def same(one: Any, other: Any) -> bool:
    """Whether two fields are equal to the bit."""
    if isinstance(one, Answers):
        return isinstance(other, Answers) and all(
            same(a, b) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, TUPLES):
        return isinstance(other, type(one)) and all(
            same(np.asarray(a), np.asarray(b)) for a, b in zip(one, other, strict=True)
        )
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and bool(
            one.dtype == other.dtype
            and np.array_equal(one, other, equal_nan=one.dtype.kind in "fcM")
        )
    return bool(one == other)
