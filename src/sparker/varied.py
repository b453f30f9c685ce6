"""Systematic uncertainties as users bring them, in the numbers of the test."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparker.engine.sample import as_weights
from sparker.nulls import Nuisances, Systematic
from sparker.nulls.density_ratio import Weighted
from sparker.nulls.morphing import Ends, Steps, redrawn
from sparker.nulls.systematics import Moved, Sampled, Scaled, Variation, shifted
from sparker.tables.encoding import Encoding
from sparker.tables.errors import ColumnsError
from sparker.tables.frames import as_table, is_frame
from sparker.tables.rows import Encoded, more_rows
from sparker.tables.table import Table

VARIED = "systematic "
"""How the names of their samples begin."""

SAME = 1e-5
"""Rows that a function gives for the nominal value may differ by this, in spreads of a column."""

ALIKE = 0.1
"""Rows are those of the reference, moved, if in every column they are closer to the reference row
of their number than to another one, by this factor in the mean square."""

RECOGNISED = (
    "up and down agree with the reference row by row and were taken for its rows, moved "
    "(paired=False in Python denies it)"
)

MIN_ROWS = 50
"""Of other samples; fewer tell nothing that could be checked."""


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


def _recognised(one: Systematic, encoded: dict[str, Encoded]) -> bool:
    """Whether rows are clearly those of the reference."""
    own = encoded["reference"]
    ends = (encoded.get(_called(one, way)) for way in ("up", "down"))
    return all(
        _in_order(end, own) and _alike(end.points, own.points) for end in ends if end is not None
    )


def _alike(moved: np.ndarray, own: np.ndarray) -> bool:  # (N, d), (N, d)
    other = np.roll(own, len(own) // 2, axis=0)
    to_own, to_other = (((moved - one) ** 2).mean(0, np.float64) for one in (own, other))
    return bool(np.all(to_own <= ALIKE * to_other))


def nuisances(
    systematics: Sequence[Systematic],
    normalisation: float | None,
    encoded: dict[str, Encoded],
    points: dict[str, np.ndarray],
    weights: Any,  # (N_R,) of the reference, a pair, or None
    column: Callable[[Any], np.ndarray],
    functioned: Callable[[dict[str, float]], np.ndarray],
    seed: int,
) -> Nuisances | None:
    """All of them, or None where there are none.

    ``points`` are the rows of all samples by name. ``column`` gives the weights of the reference
    rows by the name of a column, or those of all rows cut to the rows that are left, ``functioned``
    the reference rows as functions move them.
    """
    _check_paired([one for one in systematics if one.paired], encoded)
    reference = points["reference"]
    own = weights[0] if isinstance(weights, tuple | list) and np.ndim(weights[0]) else weights
    if own is not None:
        own = as_weights("reference_weights", own, len(reference)).astype(float)
    nominal = Weighted(reference, own)
    found: list[Variation] = []
    steps: dict[str, Steps] = {}
    morphed: dict[str, Ends] = {}
    left_over: list[str] = []
    too_few: list[str] = []
    for one in systematics:
        prior = float(one.prior)
        up, down = (points.get(_called(one, way)) for way in ("up", "down"))
        if one.function is not None:
            found.append(Moved(one.name, prior))
        elif up is None:
            found.append(_weighted(one, nominal, column, seed))
        elif one.paired or (one.paired is None and _recognised(one, encoded)):
            said = None if one.paired else RECOGNISED
            further = up.astype(float) - reference
            back = -further if down is None else down.astype(float) - reference
            steps[one.name] = Steps(further, back)
            found.append(Moved(one.name, prior, said))
        elif min(len(end) for end in (up, down) if end is not None) < MIN_ROWS:
            too_few.append(one.name)
        else:
            ends = Weighted(up), None if down is None else Weighted(down)
            n_rows = _as_good_as(len(reference), len(points["data"]))
            variation, there, fits = shifted(one.name, prior, nominal, *ends, seed, n_rows)
            found.append(variation)
            if there is not None:
                steps[one.name] = there
                morphed[one.name] = up, down
            left_over += [] if fits else [one.name]
    if too_few:
        raise ValueError(
            f"samples at +1 and -1 must have {MIN_ROWS} rows or more to learn from, those of "
            f"systematic {', '.join(too_few)} have fewer"
        )
    if left_over:
        raise ValueError(
            f"of systematic {', '.join(left_over)}: neither moving nor weighting the rows of the "
            "reference makes them what up and down are, and what is left over would be called an "
            "anomaly. Give the rows of the reference themselves, moved (paired=True; moved: on the "
            "command line), weights of its rows, or a function of the parameter"
        )
    if normalisation is not None:
        found.append(Scaled("normalisation", 1.0, float(normalisation)))
    if not found:
        return None
    moving = {one.name: one.prior for one in found if one.moves}
    if not moving:
        return Nuisances(tuple(found))

    def moved(values: dict[str, float]) -> np.ndarray:  # (N_R, d)
        rows = functioned(values).astype(float)
        for name, there in steps.items():
            rows = there.moved(rows, values[name])
        return rows.astype(reference.dtype, copy=False)

    def unsure(number: int, values: dict[str, float]) -> np.ndarray:  # (N_R, d)
        off = np.zeros(reference.shape)
        for name, ends in morphed.items():
            other = redrawn(number, steps[name], reference, nominal.own, ends, seed)
            for sign, one in ((1, other), (-1, steps[name])):
                off += sign * one.moved(reference.astype(float), values[name])
        return off

    _check(moved, moving, reference)
    return Nuisances(tuple(found), moved, unsure if morphed else None)


def _as_good_as(n_reference: int, n_data: int) -> float:
    """So many rows, half of them data, tell two densities apart as well as these do."""
    return 4 * n_reference * n_data / (n_reference + n_data)


def _weighted(
    one: Systematic, nominal: Weighted, column: Callable[[Any], np.ndarray], seed: int
) -> Sampled:
    """Other weights of the reference rows."""
    ends, rates = [], []
    for way, given in (("up", one.up), ("down", one.down)):
        if given is not None:
            name = f"the weights of {_called(one, way)}"
            varied = as_weights(name, column(given), len(nominal.rows)).astype(float)
            ends.append(Weighted(nominal.rows, varied))
            rates.append(float(np.log(varied.sum() / nominal.own.sum())))
    up, down = ends[0], ends[1] if len(ends) > 1 else None
    both = rates[0], rates[1] if down is not None else -rates[0]
    return Sampled(one.name, float(one.prior), nominal, up, down, both, seed)


def mover(
    systematics: Sequence[Systematic],
    given: Any,
    table: Table,
    encoding: Encoding,
    missing: str,
    nominal: np.ndarray,
) -> Callable[[dict[str, float]], np.ndarray]:
    """The reference rows as functions move them to some values of the parameters, by name.

    Functions get the rows as the user brought them, of a file its numbers.
    """
    functions = [one for one in systematics if one.function is not None]
    rows = given if is_frame(given) or isinstance(given, np.ndarray) else table.points

    def functioned(values: dict[str, float]) -> np.ndarray:
        if not functions:
            return nominal
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

    return functioned


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
    moving: dict[str, float],  # and the priors
    nominal: np.ndarray,
) -> None:
    """Refuse functions that change the nominal rows, do nothing, or draw random numbers."""
    zero = dict.fromkeys(moving, 0.0)
    spread = nominal.std(0, np.float64) + np.finfo(nominal.dtype).tiny
    problems = []
    for name, prior in moving.items():
        alone = moved(zero)
        if np.any(np.abs(alone - nominal) > SAME * spread + SAME * np.abs(nominal)):
            raise ColumnsError(
                f"at 0 the systematics {', '.join(zero)} must give the reference "
                "rows as they are; they give others"
            )
        there = {**zero, name: prior}
        first = moved(there)
        if not np.array_equal(first, moved(there)):
            problems.append(f"systematic {name} gives other rows for the same value; it must "
                            "draw no random numbers, or the same for each row")  # fmt: skip
        elif np.array_equal(first, alone):
            problems.append(f"systematic {name} moves no column that is compared")
    if problems:
        raise ColumnsError("; ".join(problems))


def _called(one: Systematic, way: str) -> str:
    return f"{VARIED}{one.name} {way}"
