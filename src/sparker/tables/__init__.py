"""What the user brings: tables from files, one row an event, one column a feature.

May import: system. A module for each format declares its ``FORMATS``, by suffix. Every format is
opened as a ``Source``, which knows its columns and hands out pieces of them. So what is asked of a
table (which columns, are they numbers, is a value missing) is asked once, for all formats alike.
Nothing is ever unpickled.

    errors, cells -> source, format -> text -> delimited, json_lines
                                    -> stored -> numpy_files, hdf5
                                    -> parquet, root
                  -> files, which finds them, and columns -> table, info
"""

from sparker.tables.errors import FileError
from sparker.tables.info import Column, Info, describe
from sparker.tables.table import Table, read

__all__ = ["Column", "FileError", "Info", "Table", "describe", "read"]
