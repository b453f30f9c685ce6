"""The reference as a user brings it: held in memory, or read in blocks.

Both have the same methods (``Reference``). ``stream`` takes whatever can be sliced: a memory-mapped
array, an HDF5 dataset. It is read twice: once to check it and to set some rows aside, and once to
write all rows, preprocessed, into a scratch file. Every step of every fit then reads that file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sparker.engine.memory import USABLE, points_bytes
from sparker.engine.sample import as_alike, as_points, check_columns, column_names, in_one_precision
from sparker.system.digest import Digest, digest
from sparker.system.machine import free_memory
from sparker.system.memmap import copied

BLOCK_BYTES = 2**25
"""How much of the source is read at a time."""

MAX_SHOWN = 100_000
MAX_SHOWN_VALUES = 2**23
"""Rows, and values in them, that stand for all in pictures and where settings are chosen."""

MAX_STREAMED = 10**9
"""Fewer rows than this can be relabelled: the limit of NumPy's hypergeometric numbers."""


class Reference(Protocol):
    """A reference, wherever its rows are."""

    @property
    def streamed(self) -> bool:
        """Whether its rows are never all in memory."""

    @property
    def memory(self) -> float | None:
        """Bytes that passes over a streamed one may take."""

    def __len__(self) -> int: ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, where it has any."""

    @property
    def shown(self) -> np.ndarray:
        """(n, d) the rows that are kept to be shown: all, or some of those streamed."""

    @property
    def shown_rows(self) -> np.ndarray | slice:
        """Which they are, as an index."""

    @property
    def digest(self) -> str:
        """What tells all rows from others."""

    def beside(self, data: ArrayLike) -> "tuple[Reference, np.ndarray]":
        """Both samples, checked and in one precision."""

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """All rows in order, block by block, each with the number of its first row."""


@dataclass(frozen=True, eq=False)
class Held:
    """A reference in memory."""

    given: Any
    """As it came: an array, or a data frame."""
    points: np.ndarray | None = None
    """(N, d) checked."""
    streamed: ClassVar[bool] = False
    memory: ClassVar[None] = None

    def __len__(self) -> int:
        return len(self.shown)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, where it has any."""
        return column_names(self.given)

    @property
    def shown(self) -> np.ndarray:
        """All rows."""
        return as_points("reference", self.given) if self.points is None else self.points

    @property
    def shown_rows(self) -> slice:
        """All of them."""
        return slice(None)

    @property
    def digest(self) -> str:
        """Of all rows."""
        return digest(self.shown)

    def beside(self, data: ArrayLike) -> "tuple[Held, np.ndarray]":
        """Both samples, checked and in one precision."""
        points, data_points = as_alike("reference", self.given, "data", data)
        return Held(self.given, points), data_points

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """All rows at once, as they came."""
        yield 0, np.asarray(self.given) if isinstance(self.given, list) else self.given


class Survey(NamedTuple):
    """What one pass over all rows has shown."""

    rows: np.ndarray  # (n,) numbers of some rows, at random and in order
    points: np.ndarray  # (n, d) these rows
    digest: str  # of all


class Streamed:
    """A reference whose rows are never all in memory."""

    streamed = True

    def __init__(self, source: Any, memory: float | None) -> None:
        shape = getattr(source, "shape", None)
        if shape is None or not hasattr(source, "__getitem__"):
            raise ValueError(
                "stream needs an array that can be sliced, such as np.load(file, mmap_mode='r') or "
                f"a dataset of an HDF5 file, got {type(source).__name__}"
            )
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"stream needs rows and features, at least one each, got {shape}")
        if memory is not None and not memory >= 2**20:
            raise ValueError(f"memory must be a number of bytes, at least 2**20, got {memory}")
        self.source = source
        self.shape: tuple[int, int] = tuple(shape)
        self.columns = column_names(source)
        self.memory = memory
        self._dtype: Any = None  # of both samples, once the data are known

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<streamed reference of shape {self.shape}>"

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise ValueError("only sparker.test takes a streamed reference; give an array here")

    @property
    def shown(self) -> np.ndarray:
        """Some rows, at random, in the precision of both samples."""
        return self.survey.points.astype(self._dtype or self.survey.points.dtype, copy=False)

    @property
    def shown_rows(self) -> np.ndarray:
        """Their numbers."""
        return self.survey.rows

    @property
    def digest(self) -> str:
        """Of all rows."""
        return self.survey.digest

    def beside(self, data: ArrayLike) -> "tuple[Streamed, np.ndarray]":
        """Both samples, checked and in one precision."""
        # First what can be checked without reading it all, which may take a while.
        nobody = np.zeros((1, self.shape[1]))
        data_points = as_alike("reference", nobody, "data", data)[1]
        check_columns("data", column_names(data), "reference", self.columns)
        n_rows = len(self) + len(data_points)
        if n_rows >= MAX_STREAMED:
            raise ValueError(
                f"reference and data have {n_rows:,} rows, and fewer than {MAX_STREAMED:,} can be "
                "relabelled; take a part of the reference, five to ten times the data tell as much"
            )
        both = {"reference": self.survey.points, "data": data_points}
        shown, data_points = in_one_precision(both)
        one = Streamed(self.source, self.memory)
        one.survey, one._dtype = self.survey, shown.dtype
        return one, data_points

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """All rows in order, block by block, checked, each with the number of its first row."""
        n_rows, n_features = self.shape
        size = max(1, BLOCK_BYTES // (8 * n_features))
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            if np.ma.isMaskedArray(self.source) and np.ma.is_masked(self.source[start:stop]):
                raise ValueError("reference has masked values; drop these rows or fill them")
            block = copied(self.source, start, stop)
            yield start, as_points(f"reference, from row {start} on,", block)

    @cached_property
    def survey(self) -> Survey:
        """Some rows of them, at random, and what tells them from others."""
        rng = np.random.default_rng([0, 0, 0x2095])  # no stream that a user would draw rows from
        n_shown = min(len(self), n_kept(self.shape[1]))
        chosen = np.sort(rng.choice(len(self), n_shown, replace=False, shuffle=False))
        whole = Digest()
        shown = []
        for start, block in self.blocks():
            whole.add(block)
            first, last = np.searchsorted(chosen, [start, start + len(block)])
            shown.append(block[chosen[first:last] - start])
        return Survey(chosen, np.concatenate(shown), str(whole))


def as_reference(given: Any, *, may_stream: bool = False) -> Reference:
    """A reference, streamed if it was given so, or if it is a mapped file too large to be held."""
    if isinstance(given, Held | Streamed):
        return given
    too_large = (
        may_stream
        and isinstance(given, np.memmap)
        and given.ndim == 2
        and needed(*given.shape) > USABLE * free_memory()
    )
    return Streamed(given, None) if too_large else Held(given)


def stream(source: Any, *, memory: float | None = None) -> Streamed:
    """A reference that is read in blocks instead of being held in memory, for ``sparker.test``.

    Args:
        source: an array that can be sliced: ``np.load(file, mmap_mode="r")``, an HDF5 dataset, or
            any array, if there is no room for what training needs beside it.
        memory: bytes that training may take; a quarter of what is free, and at most 4 GiB on CPUs,
            if left out.

    Only relabelling (``null="permutation"``) and SparKer's own statistic can be used with it, and
    the data must fit into memory. A scratch file of four bytes a value is written to the folder for
    temporary files (``TMPDIR``).

    >>> import numpy as np
    >>> import sparker
    >>> rng = np.random.default_rng(0)
    >>> reference, data = rng.normal(size=(3000, 2)), rng.normal(size=(200, 2))
    >>> data[:12] = [2, 2] + 0.1 * rng.normal(size=(12, 2))
    >>> result = sparker.test(sparker.stream(reference), data, n_toys=10, explain=False)
    >>> round(result.p_value, 4)
    0.0909
    """
    return Streamed(source, memory)


def n_kept(n_features: int) -> int:
    """How many rows may stand for all."""
    return min(MAX_SHOWN, max(1000, MAX_SHOWN_VALUES // n_features))


def needed(n_rows: int, n_features: int) -> float:
    """Bytes to hold a sample and train two toys on it, roughly."""
    return points_bytes(n_rows, n_features, 4) + 500 * n_rows
