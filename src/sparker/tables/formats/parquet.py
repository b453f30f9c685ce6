"""Parquet, by way of Arrow."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparker.tables.cells import Cells, as_objects
from sparker.tables.errors import need
from sparker.tables.format import Format
from sparker.tables.source import Piece, Source, block_rows


@contextmanager
def open_parquet(path: Path, key: str | None) -> Iterator[Source]:
    """The table of a file, without the index that pandas may have put there."""
    parquet = need("pyarrow.parquet", "files")
    types = need("pyarrow.types", "files")
    with parquet.ParquetFile(path) as file:
        fields = [
            field
            for field in file.schema_arrow
            if not re.fullmatch(r"__index_level_\d+__", field.name)
        ]

        def pieces(wanted: tuple[str, ...], only_numbers: bool) -> Iterator[Piece]:
            start = 0
            for batch in file.iter_batches(block_rows(len(wanted)), columns=list(wanted)):
                for name in wanted:
                    yield name, start, _cells(batch.column(name))
                start += len(batch)

        yield Source(
            tuple(field.name for field in fields),
            pieces,
            n_rows=file.metadata.num_rows,
            lists={field.name for field in fields if types.is_nested(field.type)},
            single={
                field.name
                for field in fields
                if types.is_float32(field.type) or types.is_float16(field.type)
            },
        )


def _cells(column: Any) -> Cells:
    types, arrow = need("pyarrow.types", "files"), need("pyarrow", "files")
    if types.is_decimal(column.type) or (types.is_integer(column.type) and column.null_count):
        try:
            column = column.cast("float64")
        except arrow.ArrowInvalid:  # integers that are no floats, which Arrow does not round
            return as_objects(column.to_pylist())
    return column.to_numpy(zero_copy_only=False)


FORMATS = {
    ".parquet": Format("Parquet", open_parquet, apart=True, start=b"PAR1\x15", looks_like="Parquet")
}
