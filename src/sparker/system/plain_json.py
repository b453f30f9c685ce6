"""JSON that we wrote, read back without trust: each key once, and neither deep nor huge."""

import json
from typing import Any

MAX_DEPTH = 32
"""Lists and objects inside each other; what sparker writes has fewer than ten."""

BYTES_A_CHARACTER = 32
"""Memory that a character of text can take once it is read: an empty list has two."""


def parse(text: bytes) -> Any:
    """The value of a text, or a ``ValueError`` that says what is wrong with it.

    >>> parse(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: it has the key 'a' twice
    """
    try:
        found = json.loads(text, object_pairs_hook=_each_key_once)
    except RecursionError:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep") from None
    _check_depth(found, MAX_DEPTH)
    return found


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it has the key {twice[:40]!r} twice")
    return found


def _check_depth(value: Any, left: int) -> None:
    if not isinstance(value, dict | list):
        return
    if left == 0:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    for item in value.values() if isinstance(value, dict) else value:
        _check_depth(item, left - 1)
