"""A module for each format, which declares its ``FORMATS`` by suffix."""
