"""Numbers that users and files give, and how they are said."""

from typing import Any

import numpy as np


def is_number(
    value: Any,
    *,
    above: float = -np.inf,
    least: float = -np.inf,
    most: float = np.inf,
    below: float = np.inf,
    whole: bool = False,
) -> bool:
    """Whether it is one finite number, of any type and size, within these bounds.

    True and False are no numbers, and neither are texts.

    >>> [is_number(value, above=0) for value in (3, 0.5, 10**400, np.float32(1), 0, -1, np.inf)]
    [True, True, True, True, False, False, False]
    >>> [is_number(value, whole=True) for value in (3, 3.0, 10**30, 0.5, np.nan, "3", True, None)]
    [True, True, True, False, False, False, False, False]
    """
    if not isinstance(value, int) or isinstance(value, bool):
        try:
            array = np.asarray(value)
        except Exception:  # of objects that refuse to become one
            return False
        if array.ndim or array.dtype.kind not in "iuf" or not np.isfinite(array):
            return False
        value = array.item()
    return above < value < below and least <= value <= most and (not whole or int(value) == value)


def check_whole(name: str, value: Any, least: int = 1) -> None:
    """Refuse a setting that is not a whole number."""
    if not isinstance(value, int | np.integer) or not is_number(value, least=least):
        raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")


def check_positive(name: str, value: Any) -> None:
    """Refuse a setting that is not a positive number."""
    if not is_number(value, above=0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


def counted(n: int, what: str) -> str:
    """So many things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def finite(value: float) -> float | None:
    """A number as JSON knows it."""
    return value if np.isfinite(value) else None


def span(ends: tuple[float, float], confidence: float) -> dict[str, float | None]:
    """An interval as JSON knows it."""
    return {"low": finite(ends[0]), "high": finite(ends[1]), "confidence": confidence}
