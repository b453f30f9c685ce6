"""The looks of a monitor, one line of history each, and which batches were tested before."""

import hashlib
import os
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec

from sparker.system.archive import Count
from sparker.tables.table import Table

MIN_DIFFERENT = 20
"""Different rows that two files do not share by chance."""

Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class FileVersion(NamedTuple):
    """A file as it was when it was read."""

    digest: Digest
    """The SHA-256 of its content."""
    inode: Count
    modified: int
    """Nanoseconds since 1970."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> "FileVersion":
        """Read a file to its end.

        Args:
            path: an ordinary file.

        Returns:
            Its digest, inode and time of modification.

        Raises:
            OSError: if it cannot be read.
        """
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(digest, found.st_ino, found.st_mtime_ns)


class LookRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One look, as the file of a monitor keeps it."""

    number: Annotated[int, msgspec.Meta(ge=1)]
    rows: Count
    p_value: Annotated[float, msgspec.Meta(gt=0, le=1)]
    alarm: bool
    wealth: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """The wealth after it, where rows are bet on."""
    key: str | None = None
    """What the caller named the batch by."""
    file: FileVersion | None = None
    """The file that the batch was read from."""


def tested_before(
    history: Sequence[LookRecord], rows: Table, key: str | None, file: FileVersion | None
) -> LookRecord | None:
    """Return the look at which a batch was tested already, if there was one.

    Files are the same batch if they have the same inode and time of modification, or the same
    content and at least ``MIN_DIFFERENT`` different rows: small batches repeat by chance.

    Args:
        history: the looks so far.
        rows: the batch.
        key: what the caller names the batch by.
        file: the file it was read from.
    """
    for look in history:
        if key is not None and look.key == key:
            return look
        if file is None or look.file is None:
            continue
        if look.file[1:] == file[1:]:
            return look
        if look.file.digest == file.digest and _has_different_rows(rows):
            return look
    return None


def _has_different_rows(table: Table) -> bool:
    """Return whether a table has at least ``MIN_DIFFERENT`` different rows."""
    found = set()
    for i, row in enumerate(table.points):
        found.add((row.tobytes(), *(str(column[i]) for column in table.others.values())))
        if len(found) >= MIN_DIFFERENT:
            return True
    return False
