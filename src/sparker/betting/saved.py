"""What the file of a stream's bets holds: counts, witnesses, what was learned. No code."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparker.betting.process import LENGTHS, MAX_BETS, Bet, Process
from sparker.betting.scan import LOOKS, Ground
from sparker.betting.wealth import MAX_BET, N_LEVELS, Terms, opened
from sparker.betting.witnesses import KINDS, N_KERNELS, Witness

COUNTS = ("n_rows", "n_looks", "n_bets")
OF_BETS = ("number", "log_weight", "stream_bets", "reference_bets", "held_back", "stream")

MAX_COUNT = 2**53


def pack(process: Process) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of all that changes from look to look."""
    bets = process.bets
    arrays = {"usual": process.usual, "recent": process.recent}
    columns: dict[str, list[Any]] = {
        "number": [bet.number for bet in bets],
        "log_weight": [bet.log_weight for bet in bets],
        "stream_bets": [bet.terms.stream_bets for bet in bets],
        "reference_bets": [bet.terms.reference_bets for bet in bets],
        "held_back": [bet.held_back for bet in bets],
        "stream": [bet.stream for bet in bets],
        **{part: [getattr(bet.witness, part) for bet in bets] for part in Witness._fields},
    }
    arrays |= {f"bet_{name}": np.array(column) for name, column in columns.items()}
    header = {name: getattr(process, name) for name in COUNTS}
    return {**header, "spare": process.spare}, arrays


def unpack(
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    beside: Ground,
    held_back: np.ndarray,
    *,
    change: bool,
) -> Process:
    """The other way round; an error of ``archive.DAMAGE`` where it cannot have been one."""
    n_features = held_back.shape[1]
    counts = {name: header[name] for name in COUNTS}
    if not all(isinstance(n, int) and 0 <= n <= MAX_COUNT for n in counts.values()):
        raise ValueError("its counts are none")
    spare = header["spare"]
    if not isinstance(spare, int | float) or not 0 <= spare <= MAX_COUNT:
        raise ValueError(f"its spare weight is {spare!r:.40}")
    usual, recent = arrays["usual"], arrays["recent"]
    _check("usual", usual, (len(LENGTHS), len(LOOKS)))
    _check("recent", recent, (min(counts["n_rows"], LENGTHS[-1]), n_features))
    return Process(
        beside=beside,
        held_back=held_back,
        change=change,
        usual=usual.copy(),
        recent=recent,
        bets=_bets(arrays, len(held_back), n_features),
        spare=float(spare),
        **counts,
    )


def _bets(arrays: Mapping[str, np.ndarray], n_held_back: int, n_features: int) -> list[Bet]:
    found = {name: arrays[f"bet_{name}"] for name in (*OF_BETS, *Witness._fields)}
    n = len(found["number"])
    if n > MAX_BETS:
        raise ValueError(f"it has {n} bets, more than {MAX_BETS}")
    if not n:
        return []
    shapes = {
        **dict.fromkeys(("number", "log_weight", "kind", "width"), (n,)),
        **dict.fromkeys(("stream_bets", "reference_bets"), (n, 4)),
        **dict.fromkeys(("held_back", "stream", "values"), (n, N_LEVELS)),
        "centres": (n, N_KERNELS, n_features),
        "amplitudes": (n, N_KERNELS),
        "edges": (n, N_LEVELS - 1),
    }
    for name, shape in shapes.items():
        _check(name, found[name], shape)
    for name in ("number", "kind", "held_back", "stream"):
        if found[name].dtype.kind not in "iu" or found[name].min() < 0:
            raise ValueError(f"{name} holds no counts")
    for name, most in (("stream_bets", MAX_BET), ("reference_bets", MAX_BET), ("values", 1.0)):
        if found[name].min() < 0 or found[name].max() > most:
            raise ValueError(f"{name} are not between 0 and {most}")
    if found["kind"].max() >= len(KINDS) or np.any(found["held_back"].sum(1) != n_held_back):
        raise ValueError("its bets are on other rows")
    return [_bet({name: array[i] for name, array in found.items()}) for i in range(n)]


def _bet(part: Mapping[str, Any]) -> Bet:
    terms = Terms(part["values"], part["stream_bets"], part["reference_bets"])
    return Bet(
        int(part["number"]),
        float(part["log_weight"]),
        Witness(*(np.asarray(part[name]) for name in Witness._fields)),
        terms,
        part["held_back"],
        part["stream"],
        opened(terms, part["held_back"]),
    )


def _check(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise ValueError(f"{name} is not of {shape} finite numbers")
