"""HDF5: datasets in groups, read by the chunk.

A file may send its reader to other files: by external links, by datasets that are put together of
others', or whose bytes lie elsewhere. Nobody named those, so none is opened. (If they are missing,
HDF5 reads zeros.)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparker.tables.errors import FileError, need
from sparker.tables.format import Format
from sparker.tables.source import Source
from sparker.tables.stored import Stored, is_within, pick, stored_source

MAX_OBJECTS, MAX_DEPTH = 50_000, 100
"""Groups and datasets that are looked at, and groups within groups."""


@contextmanager
def open_hdf5(path: Path, key: str | None) -> Iterator[Source]:
    """A dataset, or the datasets of a group."""
    h5py = need("h5py", "files")
    with h5py.File(path, "r") as file:
        arrays: dict[str, Stored] = {}
        elsewhere: list[str] = []
        for name, item in _items(h5py, file):
            if _is_elsewhere(h5py, item):
                elsewhere.append(name)
                continue
            if "pandas_type" in item.attrs:
                raise FileError(
                    f"has {name!r} in the layout of pandas' to_hdf, which only pandas reads; "
                    "save it with to_parquet"
                )
            if isinstance(item, h5py.Dataset) and item.shape:
                arrays[name] = _stored(h5py, item)
        meant = next((name for name in elsewhere if is_within(name, key)), None)
        if meant is not None:
            raise FileError(
                f"has {meant!r} in another file, and no file is read that was not named; copy its "
                "values into this one"
            )
        yield stored_source(arrays, pick(arrays, key))


def _items(h5py: Any, file: Any) -> Iterator[tuple[str, Any]]:
    """Everything that lies in the file, and the links that lead out of it, each by its name."""
    seen = {_address(h5py, file)}
    groups = [("", file)]
    while groups:
        prefix, group = groups.pop()
        inner = []
        for own in group:
            link, name = group.get(own, getlink=True), f"{prefix}{own}"
            if isinstance(link, h5py.ExternalLink):
                yield name, link
            if not isinstance(link, h5py.HardLink):
                continue
            item = group[own]
            if (address := _address(h5py, item)) in seen:
                continue
            seen.add(address)
            if len(seen) > MAX_OBJECTS or name.count("/") > MAX_DEPTH:
                raise FileError(
                    f"has more than {MAX_OBJECTS} groups and datasets, or more than {MAX_DEPTH} "
                    "groups within each other; copy the table into a file of its own"
                )
            yield name, item
            if isinstance(item, h5py.Group):
                inner.append((f"{name}/", item))
        groups += reversed(inner)


def _address(h5py: Any, item: Any) -> int:
    return int(h5py.h5o.get_info(item.id).addr)


def _is_elsewhere(h5py: Any, item: Any) -> bool:
    if isinstance(item, h5py.ExternalLink):
        return True
    if not isinstance(item, h5py.Dataset):
        return False
    how = item.id.get_create_plist()
    return how.get_layout() == h5py.h5d.VIRTUAL or how.get_external_count() > 0


def _stored(h5py: Any, dataset: Any) -> Stored:
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    readable = dataset.asstr(errors="replace") if is_text else dataset
    return Stored(
        dataset.shape,
        dataset.dtype,
        lambda lo, hi: readable[lo:hi],
        step=dataset.chunks[0] if dataset.chunks else 1,  # half a chunk costs as much as all of it
        is_text=is_text,
        is_there=dataset.id.get_storage_size() > 0,
    )


FORMATS = {
    suffix: Format(
        "HDF5", open_hdf5, has_keys=True, apart=True, start=b"\x89HDF", looks_like="HDF5"
    )
    for suffix in (".h5", ".hdf5")
}
