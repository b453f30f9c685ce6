"""A line of JSON as rows: one row or several, of numbers alone or with the names of columns."""

from typing import Any

from sparker.system.plain_json import parse


def rows_of(line: bytes) -> Any:
    """What a line of JSON holds: rows of numbers as they are, rows with names as columns.

    >>> rows_of(b"[1.5, 2]"), rows_of(b'[{"x": 1}, {"x": 2}]')
    ([[1.5, 2]], {'x': [1, 2]})
    """
    try:
        found = parse(line)
    except ValueError as error:
        raise ValueError(f"the line is no JSON: {error}") from error
    rows = found if isinstance(found, list) and not (found and _is_row(found)) else [found]
    if rows and all(isinstance(row, dict) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}
    if rows and all(_is_row(row) for row in rows) and len({len(row) for row in rows}) == 1:
        return [[float("nan") if value is None else value for value in row] for row in rows]
    raise ValueError(
        "a line must hold a row, a list of numbers or an object with the names of columns, or a "
        "list of such rows, all alike"
    )


def _is_row(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, int | float | None) for v in value)
