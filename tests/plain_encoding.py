"""Encodings that tests make by hand."""

from sparker.tables.encoding import ColumnEncoding, Encoding
from sparker.tables.kinds import Kind


def plain_encoding(names, n_columns):
    """Numbers that stay as they are; what later rows lack is taken for zero."""
    labels = names or [f"column {i}" for i in range(n_columns)]
    columns = (ColumnEncoding(name, i, Kind.NUMBER, fill=(0.0,)) for i, name in enumerate(labels))
    return Encoding(tuple(columns), named=bool(names), n_columns=n_columns)
