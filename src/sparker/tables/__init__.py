"""What the user brings: tables from files and data frames, columns of any kind, as numbers.

May import: system. Every format of files (``formats``) is opened as a ``Source``, which knows its
columns and hands out pieces of them. Files, data frames and arrays all become a ``Table``. What its
columns hold is decided once, for all of them alike, and written down as an ``Encoding``. Nothing is
ever unpickled.

    errors, cells -> source, format -> text, stored -> formats -> files, columns -> table, info
    kinds, identifiers, checks -> encoding -> rows, which encodes a table; frames makes one;
    problems says what cannot be compared
"""

from sparker.tables.errors import FileError
from sparker.tables.info import Column, Info, describe
from sparker.tables.table import Table, read

__all__ = ["Column", "FileError", "Info", "Table", "describe", "read"]
