"""HDF5: datasets in groups, read by the chunk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparker.tables.errors import FileError, need
from sparker.tables.format import Format
from sparker.tables.source import Source
from sparker.tables.stored import Stored, pick, stored_source


@contextmanager
def open_hdf5(path: Path, key: str | None) -> Iterator[Source]:
    """A dataset, or the datasets of a group."""
    h5py = need("h5py", "files")
    with h5py.File(path, "r") as file:
        arrays: dict[str, Stored] = {}
        by_pandas: list[str] = []

        def visit(name: str, item: Any) -> None:
            if "pandas_type" in item.attrs:
                by_pandas.append(name)
            if isinstance(item, h5py.Dataset) and item.shape:
                arrays[name] = _stored(h5py, item)

        file.visititems(visit)
        if by_pandas:
            raise FileError(
                f"has {by_pandas[0]!r} in the layout of pandas' to_hdf, which only pandas reads; "
                "save it with to_parquet"
            )
        yield stored_source(arrays, pick(arrays, key))


def _stored(h5py: Any, dataset: Any) -> Stored:
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    readable = dataset.asstr(errors="replace") if is_text else dataset
    return Stored(
        dataset.shape,
        dataset.dtype,
        lambda lo, hi: readable[lo:hi],
        step=dataset.chunks[0] if dataset.chunks else 1,  # half a chunk costs as much as all of it
        is_text=is_text,
    )


FORMATS = {
    suffix: Format(
        "HDF5", open_hdf5, has_keys=True, apart=True, start=b"\x89HDF", looks_like="HDF5"
    )
    for suffix in (".h5", ".hdf5")
}
