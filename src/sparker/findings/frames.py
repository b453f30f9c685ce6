"""Tables given back in the kind that the samples came in."""

from collections.abc import Container, Mapping, Sequence
from typing import Any, cast

import narwhals as nw
import numpy as np

Frame = Any
"""A data frame of the library that the samples came from; of arrays, a structured NumPy array."""


def as_frame(table: Mapping[str, Sequence[Any] | np.ndarray], kind: str | None) -> Frame:
    """Columns as a data frame of this kind.

    >>> as_frame({"row": [3, 1], "p_value": [0.5, 0.25]}, None)["p_value"].tolist()
    [0.5, 0.25]
    """
    columns = {name: np.asarray(values) for name, values in table.items()}
    if kind is None:
        # NumPy has no fields without a name.
        columns = {name or free_name("_", columns): values for name, values in columns.items()}
        dtype = [(name, values.dtype) for name, values in columns.items()]
        found = np.empty(len(next(iter(columns.values()))), dtype)
        for name, values in columns.items():
            found[name] = values
        return found
    plain = {name: v.tolist() if v.dtype == object else v for name, v in columns.items()}
    try:
        return nw.from_dict(plain, backend=cast(Any, kind)).to_native()
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the samples came as data frames of {kind}, which is not installed here; install it"
        ) from error


def free_name(name: str, others: Container[str]) -> str:
    """A name that none of the others has."""
    while name in others:
        name += "_"
    return name
