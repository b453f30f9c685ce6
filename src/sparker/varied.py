"""Systematic uncertainties as users bring them, in the numbers of the test."""

from collections.abc import Callable, Mapping, Sequence
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
from sparker.tables.supports import beyond_edges, in_words
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


GIVE_ROWS = (
    "Give the rows of the reference themselves, moved (paired=True; moved: on the command line), "
    "or a function of the parameter"
)


def nuisances(
    systematics: Sequence[Systematic],
    normalisation: float | None,
    at: Mapping[str, float],
    encoded: dict[str, Encoded],
    points: dict[str, np.ndarray],
    names: Sequence[str],
    weights: Any,  # (N_R,) of the reference, a pair, or None
    column: Callable[[Any], np.ndarray],
    functioned: Callable[[dict[str, float]], np.ndarray],
    seed: int,
) -> Nuisances | None:
    """All of them, or None where there are none; those in ``at`` are fixed at these values.

    ``points`` are the rows of all samples by name, ``names`` their columns. ``column`` gives the
    weights of the reference rows by the name of a column, or those of all rows cut to the rows that
    are left, ``functioned`` the reference rows as functions move them.
    """
    _check_paired([one for one in systematics if one.paired], encoded)
    reference = points["reference"]
    own = weights[0] if isinstance(weights, tuple | list) and np.ndim(weights[0]) else weights
    if own is not None:
        own = as_weights("reference_weights", own, len(reference)).astype(float)
    nominal = Weighted(reference, own)
    found: list[Variation] = []
    steps: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    notes, cautions, problems = [], [], []
    for one in systematics:
        prior = float(one.prior)
        up, down = (points.get(_called(one, way)) for way in ("up", "down"))
        if one.function is not None:
            found.append(Moved(one.name, prior))
        elif up is None:
            found.append(weighted := _weighted(one, nominal, column, seed))
            cautions += _cautions(weighted, names)
        elif one.paired or (one.paired is None and _recognised(one, encoded)):
            further = up.astype(float) - reference
            steps[one.name] = further, -further if down is None else down.astype(float) - reference
            found.append(Moved(one.name, prior))
            notes += [] if one.paired else [f"systematic {one.name}: {RECOGNISED}"]
        else:
            ends = Weighted(up), None if down is None else Weighted(down)
            found.append(other := Sampled(one.name, prior, nominal, *ends, (0.0, 0.0), seed))
            wrong = _wrong(other, names)
            problems += wrong
            cautions += [] if wrong else _cautions(other, names)
    if problems:
        raise ValueError(f"{'; '.join(problems)}. {GIVE_ROWS}")
    if normalisation is not None:
        found.append(Scaled("normalisation", 1.0, float(normalisation)))
    if not found:
        return None

    def moved(values: dict[str, float]) -> np.ndarray:  # (N_R, d)
        rows = functioned(values).astype(float)
        for name, (further, back) in steps.items():
            rows = rows + abs(values[name]) * (further if values[name] >= 0 else back)
        return rows.astype(reference.dtype, copy=False)

    moving = {one.name: one.prior for one in found if one.moves}
    if moving:
        cautions += _check(moved, moving, nominal, names)
    fixed = {name: float(value) for name, value in at.items()}
    if fixed:
        values = ", ".join(f"{name} = {value:g}" for name, value in fixed.items())
        notes.append(f"nuisance parameters at fixed values, not fitted: {values}")
    return Nuisances(tuple(found), moved if moving else None, fixed, tuple(notes), tuple(cautions))


def _wrong(other: Sampled, names: Sequence[str]) -> list[str]:
    """Why other rows cannot be learned from, if they cannot."""
    if min(len(end.rows) for end in other.ends.values()) < MIN_ROWS:
        why = f"samples at +1 and -1 must have {MIN_ROWS} rows or more to learn from"
    elif beyond := _beyond(other.nominal, other.ends, names):
        why = (
            f"{beyond}. Weights of the reference rows, which is what other samples tell, move no "
            "edge, and p would be too small"
        )
    elif not other.fits:
        why = (
            "weighting the rows of the reference does not make them what up and down are, and what "
            "is left over would be called an anomaly"
        )
    else:
        return []
    return [f"systematic {other.name}: {why}"]


def _cautions(weighted: Sampled, names: Sequence[str]) -> list[str]:
    """What weights of the reference rows cannot do."""
    found = []
    if beyond := _beyond(weighted.nominal, weighted.ends, names):
        found.append(
            f"systematic {weighted.name}: {beyond}; weights move no edge, and p is too small if "
            "the parameter does"
        )
    if said := weighted.caution():
        found.append(said)
    return [f"{one}. {GIVE_ROWS}" for one in found]


def _beyond(nominal: Weighted, ends: Mapping[str, Weighted], names: Sequence[str]) -> str:
    """Where rows of the reference lie beyond those of an end, or the other way; in words."""
    found = []
    for name, end in ends.items():
        both = {"the reference": nominal, name: end}
        found += beyond_edges({of: one.rows[one.own > 0] for of, one in both.items()})
    return in_words(sorted(found, key=lambda one: -one.n_rows), names)


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
    nominal: Weighted,
    names: Sequence[str],
) -> list[str]:
    """Refuse functions that change the nominal rows, do nothing, or draw random numbers.

    Cautions tell of edges that move.
    """
    zero = dict.fromkeys(moving, 0.0)
    rows = nominal.rows
    spread = rows.std(0, np.float64) + np.finfo(rows.dtype).tiny
    problems, cautions = [], []
    for name, prior in moving.items():
        alone = moved(zero)
        if np.any(np.abs(alone - rows) > SAME * spread + SAME * np.abs(rows)):
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
        back = moved({**zero, name: -prior})
        ends = {f"it at {sign}{prior:g}": Weighted(there, nominal.weights)
                for sign, there in (("+", first), ("-", back))}  # fmt: skip
        if beyond := _beyond(nominal, ends, names):
            cautions.append(
                f"systematic {name}: {beyond}, so that an edge moves with the rows. If rows are "
                "selected by a cut there, the edge of the data does not move, and p is too small; "
                "then give other samples at +1 and -1, selected after the shift (up, down; files: "
                "on the command line)"
            )
    if problems:
        raise ColumnsError("; ".join(problems))
    return cautions


def _called(one: Systematic, way: str) -> str:
    return f"{VARIED}{one.name} {way}"
