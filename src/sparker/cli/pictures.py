"""``--images``: which picture belongs to which row, asked before anything takes long."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sparker.cli.terminal import BadInput

if TYPE_CHECKING:
    import numpy as np

    from sparker.tables import Table


def picture_column(images: str | None, data: str, key: str | None) -> str | None:
    """The column of the data that names the pictures; none where a folder holds them."""
    if images is None or not Path(images).is_dir():
        return images
    from sparker.tables.files import open_table

    with open_table(data, key) as source:  # a column may well be called as the folder is
        return images if images in source.every else None


def picture_folder(images: str | None) -> list[str]:
    """The folder of pictures, if that is what --images names."""
    return [images] if images and Path(images).is_dir() else []


def compared_pictures(column: str | None, *tables: "Table") -> list[Path]:
    """The files that a column of these tables names, whether they are there or not."""
    return [
        Path(table.folder or "", str(name))
        for table in tables
        if column in table.columns
        for name in table.column(table.columns.index(column))
    ]


def picture_files(
    images: str | None, column: str | None, data: str, table: "Table"
) -> list[Path] | None:
    """The pictures, one a row and all of them there."""
    if images is None:
        return None
    if column is None:
        folder = Path(images)
        files = _in_folder(folder, data, len(table.points))
    else:
        folder = Path(data).parent
        files = _by_name([str(name) for name in table.extra[column]], column, data)
    _check_inside(files, folder, data)
    for row, file in enumerate(files):
        _check(file, f"row {row} of {data}")
    return files


def of_rows(
    rows: "np.ndarray | None", table: "Table", images: list[Path] | None
) -> "tuple[Table, list[Path] | None]":
    """What belongs to these rows, where some were left out of the test."""
    if rows is None:
        return table, images
    return table.rows(rows), None if images is None else [images[row] for row in rows]


def _in_folder(folder: Path, data: str, n_rows: int) -> list[Path]:
    from sparker.tables.picture_files import in_folder

    files = in_folder(folder)
    if len(files) != n_rows:
        raise BadInput(
            f"{folder} holds {len(files)} pictures (.png, .jpg), {data} has {n_rows} rows; one a "
            "row is needed, in the order of their names"
        )
    return files


def _by_name(names: list[str], column: str, data: str) -> list[Path]:
    from sparker.tables.errors import short

    beside = Path(data).parent
    files = [beside / name for name in names]
    # Not file.is_file(), which raises where a name is too long for one.
    lost = [row for row, file in enumerate(files) if not os.path.isfile(file)]
    if lost:
        row = lost[0]
        name = short(names[row])
        what = f"the picture {name!r}, which is not there" if name else "no picture"
        others = f", and {len(lost) - 1} more rows are like it" if len(lost) > 1 else ""
        raise BadInput(
            f"row {row} of {data} names {what}{others}; {column} must hold the names of files, as "
            f"seen from {beside}"
        )
    return files


def _check_inside(files: list[Path], folder: Path, data: str) -> None:
    """Whoever wrote a table must not have other pictures of its reader's put into a report."""
    inside = os.path.join(os.path.realpath(folder), "")  # where links lead to counts
    outside = [
        row for row, file in enumerate(files) if not os.path.realpath(file).startswith(inside)
    ]
    if outside:
        row = outside[0]
        others = f", and {len(outside) - 1} more rows are like it" if len(outside) > 1 else ""
        raise BadInput(
            f"the picture of row {row} of {data} is {files[row]}, which lies outside of {folder}"
            f"{others}; only pictures inside that folder get into a report: move them there, or "
            "name their own folder by --images"
        )


def _check(file: Path, row: str) -> None:
    """That it is a picture; not all of it is looked at."""
    from sparker.embed.pictures import opened

    try:
        with opened(file) as picture:
            picture.verify()
    # A damaged file makes its reader stumble in any way, over a SyntaxError of its own for one.
    except Exception as error:
        raise BadInput(
            f"{file}, the picture of {row}, cannot be read as PNG or JPEG: {error}"
        ) from error
