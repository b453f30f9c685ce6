"""JSON lines: an object, or a list, in every line."""

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparker.tables.errors import FileError
from sparker.tables.format import Format
from sparker.tables.source import Source, block_rows, check_width
from sparker.tables.text import Block, block_of, open_lines, text_source


@contextmanager
def open_json_lines(path: Path, key: str | None) -> Iterator[Source]:
    """A table of records; the first tells the names of all."""
    with open_lines(path) as lines:
        filled = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
        number, first = next(filled, (0, ""))
        if not first:
            raise FileError("is blank; a test needs some rows")
        record = _parsed(number, first)
        check_width(len(record))  # before each of its values has a name
        named = isinstance(record, dict)
        columns = record if named else {str(i): value for i, value in enumerate(record)}
        names = list(columns)
        rest = itertools.chain([first], lines)
        yield text_source(
            names,
            lambda only_numbers: _blocks(rest, number - 1, names, named),
            named=named,
            lists={name for name, value in columns.items() if isinstance(value, list | dict)},
        )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise KeyError(Counter(name for name, _ in pairs).most_common(1)[0][0])
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


def _check_characters(record: Any) -> None:
    """Refuse halves of characters, which JSON can name and no text can be written with."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{error.object[error.start]!r} is half a character") from error


def _parsed(number: int, line: str) -> Any:
    try:
        record = _DECODER.decode(line)
        if r"\u" in line:
            _check_characters(record)
    except KeyError as error:
        raise FileError(
            f"has {error.args[0]!r} twice in line {number}; give each of its values a name of "
            "its own"
        ) from error
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"has no JSON in line {number} ({error}); put one object or one list in every line"
        ) from error
    if not isinstance(record, dict | list):
        raise FileError(
            f"has neither an object nor a list in line {number}; put one of them in every line"
        )
    return record


def _blocks(lines: Iterator[str], n_before: int, names: list[str], named: bool) -> Iterator[Block]:
    """Blocks of rows from the lines after the first ``n_before``."""
    known = {*names}
    while block := block_of(lines, block_rows(len(names))):
        numbers = [n for n, line in enumerate(block, n_before + 1) if line.strip()]
        rows = [_row(n, _parsed(n, block[n - n_before - 1]), names, known, named) for n in numbers]
        n_before += len(block)
        if rows:
            yield list(zip(*rows, strict=True))


def _row(number: int, record: Any, names: list[str], known: set[str], named: bool) -> Sequence[Any]:
    if isinstance(record, dict) != named:
        raise FileError(
            f"has {'a list' if named else 'an object'} in line {number}, unlike the first line; "
            "put the same in every line"
        )
    if not named:
        if len(record) != len(names):
            raise FileError(
                f"has {len(record)} values in line {number}, but {len(names)} in the first; give "
                "every line the same"
            )
        return record
    if list(record) == names:
        return list(record.values())
    new = next((name for name in record if name not in known), None)
    if new is not None:
        raise FileError(
            f"has {new!r} in line {number}, but not in the first; give every line the same names"
        )
    return [record.get(name) for name in names]


FORMATS = {
    suffix: Format("JSON lines", open_json_lines, is_text=True) for suffix in (".jsonl", ".ndjson")
}
