"""Passes over rows that are in a scratch file, block by block.

A pass gives every block to a function, together with the labels of all toys of a chunk. Then it
combines what the function returns: it adds up sums, or keeps the best of what was drawn. Where
there are several devices, each takes a part of every block.
"""

import functools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Split

from sparker.engine.compiled import compiled
from sparker.engine.config import Design, FitConfig
from sparker.engine.memory import block_of_rows, for_blocks, in_lanes
from sparker.engine.sample import TwoSample
from sparker.streaming.labels import Labels
from sparker.streaming.spool import StreamedPool
from sparker.system.machine import n_cores

ROWS = "rows"  # the axis along which devices share a block
SAME = Split()  # type: ignore[no-untyped-call]
T = TypeVar("T")


class Block(NamedTuple):
    """Some rows, and what they are in all toys of a chunk."""

    points: Array  # (n, d)
    rows: Array  # (n,) their numbers
    weights: Array  # (n,) reference weights, zero for rows that only fill up
    is_data: Array  # (B, n / 8) bits
    is_out: Array | None  # (B, n / 8) bits


PARTS = Block(
    Split(ROWS),  # type: ignore[arg-type, no-untyped-call]
    Split(ROWS),  # type: ignore[arg-type, no-untyped-call]
    Split(ROWS),  # type: ignore[arg-type, no-untyped-call]
    Split(None, ROWS),  # type: ignore[arg-type, no-untyped-call]
    Split(None, ROWS),  # type: ignore[arg-type, no-untyped-call]
)


class Chunk(NamedTuple):
    """What a pass knows of the toys beside their bits."""

    factor: Array  # (B,) what the reference weights are multiplied by

    def samples(self, block: Block) -> TwoSample:  # points (n, d), weights (B, n)
        """The toys' share in a block."""
        is_data = jnp.unpackbits(block.is_data, axis=-1).astype(bool)
        is_reference = ~is_data
        if block.is_out is not None:
            is_reference &= ~jnp.unpackbits(block.is_out, axis=-1).astype(bool)
        own = block.weights * self.factor[:, None]
        return TwoSample(
            block.points, jnp.where(is_reference, own, 0), is_data.astype(block.points.dtype)
        )


class Drawn(NamedTuple):
    """Rows that were drawn in each of g groups, the best first."""

    value: Array  # (g, k) what they are sorted by
    row: Array  # (g, k)
    point: Array  # (g, k, d)
    around: Array  # (g, k) how many rows are around them, where it matters


class Passes:
    """Passes over all rows, in blocks of one size that are kept on the device if there is room."""

    def __init__(
        self, pool: StreamedPool, chunk: int, unit: float, config: FitConfig, design: Design
    ) -> None:
        self.pool, self.chunk, self.unit, self.dtype, self.design = (
            pool, chunk, unit, config.dtype, design,
        )  # fmt: skip
        self.mesh = Mesh(np.array(jax.local_devices()), (ROWS,))
        n_rows, n_features = pool.rows.shape
        # With few features a block keeps only one core of a CPU busy.
        self.lanes = n_cores() if self.mesh.size == 1 and in_lanes(n_features) else 1
        memory = for_blocks(pool.memory) / self.lanes
        size = block_of_rows(n_rows, n_features, chunk, config.n_kernels, memory)
        self.size = -(-size // (8 * self.mesh.size)) * 8 * self.mesh.size
        self.at_hand: dict[int, tuple[Array, ...]] | None = {} if self.keeps() else None

    def keeps(self) -> bool:
        """Whether all points fit on the device, beside what the work on a block needs."""
        n_rows, n_features = self.pool.rows.shape
        values = n_rows * (n_features + 2)  # and the numbers of the rows, and their weights
        return values * np.dtype(self.dtype).itemsize < for_blocks(self.pool.memory) / 4

    def label(self, labels: Labels) -> None:
        """Set the labels of a chunk of toys; toys that a last chunk lacks get no weight."""
        missing = self.chunk - len(labels.factor)

        def longer(array: np.ndarray | None) -> np.ndarray | None:
            return array if array is None or not missing else np.pad(array, ((0, missing), (0, 0)))

        self.is_data, self.is_out = longer(labels.is_data), longer(labels.is_out)
        self.of_toys = Chunk(jnp.asarray(np.pad(labels.factor, (0, missing)), self.dtype))

    def total(self, function: Callable[..., T], *parameters: Any) -> T:
        """The sum over all blocks of what a function finds in each, in double precision."""

        def of_block(block: Block) -> Any:
            with jax.enable_x64(True):  # every thread has a switch of its own
                return _finished(
                    _summed(
                        self.of_toys, block, parameters,
                        function=function, design=self.design, mesh=self.mesh,
                    )
                )  # fmt: skip

        so_far = None
        for new in self._side_by_side(of_block):
            so_far = new if so_far is None else _add(so_far, new)
        return so_far  # type: ignore[return-value]

    def _side_by_side(self, function: Callable[[Block], T]) -> Iterator[T]:
        """A function of each block, in order; the next block is read at the same time."""
        waiting: deque[Future[T]] = deque()
        with ThreadPoolExecutor(self.lanes) as cores:
            for block in self:
                waiting.append(cores.submit(function, block))
                if len(waiting) == self.lanes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def best(self, function: Callable[..., Drawn], n: int, *parameters: Any) -> Drawn:
        """The n best of what a function draws from each of all blocks."""
        so_far = None
        for block in self:
            new = _drawn(
                self.of_toys, block, parameters,
                function=function, n=n, design=self.design, mesh=self.mesh,
            )  # fmt: skip
            so_far = _finished(_better(so_far, new, n=n))
        assert so_far is not None
        return so_far

    def __iter__(self) -> Iterator[Block]:
        starts = iter(range(0, self.pool.rows.shape[0], self.size))
        with ThreadPoolExecutor(1) as reader:

            def read_next() -> Any:
                start = next(starts, None)
                return None if start is None else reader.submit(self._read, start)

            coming = read_next()
            while coming is not None:
                block = coming.result()
                coming = read_next()
                yield block

    def _read(self, start: int) -> Block:
        n_rows = self.pool.rows.shape[0]
        stop = min(start + self.size, n_rows)
        missing = self.size - (stop - start)
        if self.at_hand is None or start not in self.at_hand:
            points = self.pool.rows.read(start, stop).astype(self.dtype) / self.dtype(self.unit)
            weights = np.ones(stop - start, self.dtype)
            if self.pool.weights is not None:
                weights = self.pool.weights[start:stop].astype(self.dtype)
            there = (
                np.pad(points, ((0, missing), (0, 0))),
                np.arange(start, start + self.size, dtype=np.uint32),
                np.pad(weights, (0, missing)),
            )
            on_device = tuple(map(self._put, there, PARTS))
            if self.at_hand is not None:
                self.at_hand[start] = on_device
        else:
            on_device = self.at_hand[start]
        first, last = start // 8, start // 8 + self.size // 8

        def bits(of_all: np.ndarray | None) -> Array | None:
            if of_all is None:
                return None
            here = of_all[:, first:last]
            return self._put(np.pad(here, ((0, 0), (0, last - first - here.shape[1]))), PARTS[3])

        return Block._make([*on_device, bits(self.is_data), bits(self.is_out)])

    def _put(self, array: np.ndarray, part: Any) -> Array:
        with jax.enable_x64(True):  # every thread has a switch of its own
            return jax.device_put(array, NamedSharding(self.mesh, part))


def first(values: Array, block: Block, around: Array, n: int) -> Drawn:  # (g, n_block)
    """The best of a block."""
    value, order = _top(values, min(n, values.shape[1]))
    of_group = jnp.take_along_axis(around, order, 1)
    return Drawn(value, block.rows[order], block.points[order], of_group)


FEW = 16


def _top(values: Array, n: int) -> tuple[Array, Array]:  # (g, N) -> (g, n), (g, n)
    """``top_k``, which sorts all values on some devices, where a few maxima would do."""
    if n > FEW:
        found = jax.lax.top_k(values, n)
        return found[0], found[1]
    least = -jnp.inf if jnp.issubdtype(values.dtype, jnp.floating) else np.iinfo(np.int32).min
    groups = jnp.arange(len(values))
    value, order = [], []
    for _ in range(n):
        order += [jnp.argmax(values, 1)]
        value += [values[groups, order[-1]]]
        values = values.at[groups, order[-1]].set(least)
    return jnp.stack(value, 1), jnp.stack(order, 1)


@functools.partial(compiled, static_argnames=("function", "design", "mesh"))
def _summed(
    chunk: Chunk, block: Block, parameters: Any, *, function: Any, design: Design, mesh: Mesh
) -> Any:
    """What a function finds in a block, over all devices, in double precision."""

    def part(chunk: Chunk, block: Block, parameters: Any) -> Any:
        found = function(chunk, block, design, *parameters)
        found = jax.tree.map(lambda array: array.astype(jnp.float64), found)
        return found if mesh.size == 1 else jax.lax.psum(found, ROWS)  # type: ignore[no-untyped-call]

    return _by_rows(part, mesh, SAME)(chunk, block, parameters)


@functools.partial(compiled, static_argnames=("function", "n", "design", "mesh"))
def _drawn(
    chunk: Chunk,
    block: Block,
    parameters: Any,
    *,
    function: Any,
    n: int,
    design: Design,
    mesh: Mesh,
) -> Drawn:
    """What a function draws from a block, on each device."""

    def part(chunk: Chunk, block: Block, parameters: Any) -> Drawn:
        found: Drawn = function(chunk, block, design, n, *parameters)
        return found

    return _by_rows(part, mesh, PARTS.is_data)(chunk, block, parameters)


def _by_rows(function: Callable[..., T], mesh: Mesh, out: Any) -> Callable[..., T]:
    if mesh.size == 1:
        return function
    return jax.shard_map(
        function, mesh=mesh, in_specs=(SAME, PARTS, SAME), out_specs=out, check_vma=False
    )


def _finished(found: T) -> T:
    return jax.block_until_ready(found)  # type: ignore[no-untyped-call]


@compiled
def _add(total: Any, new: Any) -> Any:
    return jax.tree.map(jnp.add, total, new)


@functools.partial(compiled, static_argnames="n")
def _better(so_far: Drawn | None, new: Drawn, *, n: int) -> Drawn:
    """The best of both."""
    both = new if so_far is None else jax.tree.map(lambda *a: jnp.concatenate(a, 1), so_far, new)
    value, order = jax.lax.top_k(both.value, min(n, both.value.shape[1]))
    row, around = (jnp.take_along_axis(a, order, 1) for a in (both.row, both.around))
    return Drawn(value, row, jnp.take_along_axis(both.point, order[..., None], 1), around)
