"""Systematic uncertainties as users bring them, in the numbers of the test."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparker.engine.sample import as_weights
from sparker.nulls import Nuisances, Systematic
from sparker.nulls.density_ratio import Weighted
from sparker.nulls.systematics import Moved, Sampled, Scaled, Variation
from sparker.tables.encoding import Encoding
from sparker.tables.errors import ColumnsError
from sparker.tables.frames import as_table, is_frame
from sparker.tables.rows import Encoded, more_rows
from sparker.tables.table import Table

VARIED = "systematic "
"""How the names of their samples begin."""

SAME = 1e-5
"""Rows that a function gives for the nominal value may differ by this, in spreads of a column."""


def varied_tables(systematics: Sequence[Systematic]) -> dict[str, Table]:
    """The samples that up and down are, where they are rows."""
    return {
        _called(one, way): as_table(_called(one, way), given)
        for one in systematics
        if one.up is not None and not one.by_weights
        for way, given in (("up", one.up), ("down", one.down))
        if given is not None
    }


def varied_columns(systematics: Sequence[Systematic]) -> list[str]:
    """The columns of the reference that hold weights."""
    given = [end for one in systematics for end in (one.up, one.down)]
    return list(dict.fromkeys(end for end in given if isinstance(end, str)))


ALIKE = 0.1
"""Rows are those of the reference, moved, if in every column they are closer to the reference row
of their number than to another one, by this factor in the mean square."""


def recognised(
    systematics: Sequence[Systematic], encoded: dict[str, Encoded]
) -> tuple[Systematic, ...]:
    """The same, with rows that are clearly those of the reference declared as paired."""

    def agrees(name: str) -> bool:
        there, own = encoded.get(name), encoded["reference"]
        return there is None or (_in_order(there, own) and _alike(there.points, own.points))

    return tuple(
        replace(one, paired=agrees(_called(one, "up")) and agrees(_called(one, "down")))
        if one.paired is None and _called(one, "up") in encoded
        else one
        for one in systematics
    )


def _alike(moved: np.ndarray, own: np.ndarray) -> bool:  # (N, d), (N, d)
    other = np.roll(own, len(own) // 2, axis=0)
    to_own, to_other = (((moved - one) ** 2).mean(0, np.float64) for one in (own, other))
    return bool(np.all(to_own <= ALIKE * to_other))


def nuisances(
    systematics: Sequence[Systematic],
    normalisation: float | None,
    points: dict[str, np.ndarray],
    weights: Any,  # (N_R,) of the reference, a pair, or None
    column: Callable[[Any], np.ndarray],
    moved: Callable[[dict[str, float]], np.ndarray],
    seed: int,
    unsaid: Collection[str] = (),
) -> Nuisances | None:
    """All of them, or None where there are none.

    ``points`` are the rows of all samples by name. ``column`` gives the weights of the reference
    rows by the name of a column, or those of all rows cut to the rows that are left. ``unsaid``
    are the systematics whose rows were recognised.
    """
    reference = points["reference"]
    own = weights[0] if isinstance(weights, tuple | list) and np.ndim(weights[0]) else weights
    if own is not None:
        own = as_weights("reference_weights", own, len(reference)).astype(float)
    nominal = Weighted(reference, own)
    found: list[Variation] = []
    for one in systematics:
        prior = float(one.prior)
        if one.function is not None or one.paired:
            found.append(Moved(one.name, prior, recognised=one.name in unsaid))
            continue
        ends, rates = [], []
        for way, given in (("up", one.up), ("down", one.down)):
            if given is None:
                continue
            if one.by_weights:
                name = f"the weights of {_called(one, way)}"
                varied = as_weights(name, column(given), len(reference)).astype(float)
                ends.append(Weighted(reference, varied))
                rates.append(float(np.log(varied.sum() / nominal.own.sum())))
            else:
                ends.append(Weighted(points[_called(one, way)]))
                rates.append(0.0)
        up, down = ends[0], ends[1] if len(ends) > 1 else None
        both = rates[0], rates[1] if down is not None else -rates[0]
        found.append(Sampled(one.name, prior, nominal, up, down, both, seed))
    if normalisation is not None:
        found.append(Scaled("normalisation", 1.0, float(normalisation)))
    if not found:
        return None
    return Nuisances(tuple(found), moved if any(one.moves for one in found) else None)


def mover(
    systematics: Sequence[Systematic],
    given: Any,
    table: Table,
    encoding: Encoding,
    missing: str,
    encoded: dict[str, Encoded],
    points: dict[str, np.ndarray],
) -> Callable[[dict[str, float]], np.ndarray]:
    """The reference rows at some values of the parameters, by name, as numbers of the test.

    Functions get the rows as the user brought them, of a file its numbers. Paired rows are moved
    after that.
    """
    functions = [one for one in systematics if one.function is not None]
    paired = [one for one in systematics if one.paired]
    _check_paired(paired, encoded)
    nominal = points["reference"]
    rows = given if is_frame(given) or isinstance(given, np.ndarray) else table.points

    def along(one: Systematic, value: float) -> np.ndarray:  # (N_R, d)
        """How far a parameter moves paired rows."""
        way = "down" if value < 0 and one.down is not None else "up"
        step = points[_called(one, way)].astype(float) - nominal
        return step * (-value if way == "down" else value)

    def moved(values: dict[str, float]) -> np.ndarray:
        further = sum((along(one, values[one.name]) for one in paired), np.zeros(nominal.shape))
        by_functions = functioned(values) if functions else nominal
        return (by_functions + further).astype(nominal.dtype, copy=False)

    def functioned(values: dict[str, float]) -> np.ndarray:
        found = rows
        for one in functions:
            assert one.function is not None
            found = one.function(found, values[one.name])
        name = f"the reference as moved by {' and '.join(one.name for one in functions)}"
        encoded, _ = more_rows(name, found, encoding, missing)
        if encoded.points.shape != nominal.shape:
            raise ValueError(
                f"{name} has shape {encoded.points.shape}, the reference {nominal.shape}; a "
                "function must move rows, and neither add nor drop any"
            )
        if not np.isfinite(encoded.points).all():
            raise ValueError(f"{name} has values that are not finite; mend the function")
        return encoded.points.astype(nominal.dtype, copy=False)

    if functions or paired:
        _check(moved, [*functions, *paired], nominal)
    return moved


def _check_paired(paired: Sequence[Systematic], encoded: dict[str, Encoded]) -> None:
    """Refuse rows that cannot be those of the reference."""
    problems = []
    own = encoded["reference"]
    for one in paired:
        for way in ("up", "down"):
            there = encoded.get(_called(one, way))
            if there is None:
                continue
            n, n_own = len(there.points), len(own.points)
            if n != n_own:
                problems.append(
                    f"{_called(one, way)} has {n} rows and the reference {n_own}; paired rows are "
                    "those of the reference, moved, and in its order"
                )
            elif not _in_order(there, own):
                problems.append(
                    f"{_called(one, way)} lacks values in other rows than the reference; paired "
                    "rows must be left out of all of them"
                )
    if problems:
        raise ColumnsError("; ".join(problems))


def _in_order(there: Encoded, own: Encoded) -> bool:
    """Whether rows of both have the same numbers, before any were left out."""

    def numbers(one: Encoded) -> np.ndarray:  # (N,)
        return np.arange(len(one.points)) if one.rows is None else one.rows

    return np.array_equal(numbers(there), numbers(own))


def _check(
    moved: Callable[[dict[str, float]], np.ndarray],
    functions: Sequence[Systematic],
    nominal: np.ndarray,
) -> None:
    """Refuse functions that change the nominal rows, do nothing, or draw random numbers."""
    zero = {one.name: 0.0 for one in functions}
    spread = nominal.std(0, np.float64) + np.finfo(nominal.dtype).tiny
    problems = []
    for one in functions:
        alone = moved(zero)
        if np.any(np.abs(alone - nominal) > SAME * spread + SAME * np.abs(nominal)):
            raise ColumnsError(
                f"at 0 the functions of the systematics {', '.join(zero)} must give the reference "
                "rows as they are; they give others"
            )
        there = {**zero, one.name: float(one.prior)}
        first = moved(there)
        if not np.array_equal(first, moved(there)):
            problems.append(f"systematic {one.name} gives other rows for the same value; it must "
                            "draw no random numbers, or the same for each row")  # fmt: skip
        elif np.array_equal(first, alone):
            problems.append(f"systematic {one.name} moves no column that is compared")
    if problems:
        raise ColumnsError("; ".join(problems))


def _called(one: Systematic, way: str) -> str:
    return f"{VARIED}{one.name} {way}"
