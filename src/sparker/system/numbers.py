"""Numbers that users and files give, and how they are said."""

from typing import Any


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, of any type and size.

    >>> [is_whole(value) for value in (3, 3.0, 10**30, 0.5, float("nan"), float("inf"), "3", None)]
    [True, True, True, False, False, False, False, False]
    """
    try:
        return bool(int(value) == value)
    except (TypeError, ValueError, OverflowError):
        return False


def counted(n: int, what: str) -> str:
    """So many things.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"
