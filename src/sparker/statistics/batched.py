"""What statistics of batches share once their settings are fixed: memory, chunks, the device."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine.compiled import compiled
from sparker.engine.memory import Need, check_rows, most_toys, toys_that_fit
from sparker.engine.sample import TwoSample
from sparker.engine.toys import Toys
from sparker.statistics.contract import Chunk, Component, Evaluate, value_chunks
from sparker.system.machine import free_memory


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedBatches:
    """A statistic of batches whose settings are fixed."""

    settings: dict[str, Any]
    start: Callable[[int, int], Evaluate]
    """From the seed and the chunk size, what evaluates one chunk after the other."""
    room: Callable[[TwoSample], Need]
    """The memory that toys like those of a batch take, in bytes."""
    most: int | None = None
    """Toys of a chunk; as many as are good for SparKer's kernels if left out."""
    component_tests: tuple[Component, ...] = ()
    widths: np.ndarray = field(default_factory=lambda: np.empty(0))

    def chunk_size(self, toys: Toys, number: int, n_toys: int) -> int:
        """As many toys as fit into memory, a power of two."""
        sample, free = toys.draw([number]), free_memory()

        def need_of(n_rows: int) -> Need:
            points, *weights = sample
            some = TwoSample(points[..., :n_rows, :], *(w[..., :n_rows] for w in weights))
            need = self.room(some)
            if points.ndim == 2:
                return need
            # As drawn, and as double precision on the device.
            return need._replace(each=need.each + 3 * 8 * some.points[0].size)

        n_rows = sample.points.shape[-2]
        check_rows(need_of, n_rows, free, "toys of this statistic")
        return toys_that_fit(n_toys, need_of(n_rows), most=self.most or most_toys(), free=free)

    def chunks(self, seed: int, toys: Toys, numbers: Sequence[int], chunk: int) -> Iterator[Chunk]:
        """Evaluate the experiments of these numbers, a chunk at a time."""
        return value_chunks(toys, numbers, chunk, self.start(seed, chunk))


class Design(Protocol):
    """A method as the compiled program sees it; hashable, since each compiles its own."""

    def place(self, key: Array, points: Array, used: Array, widths: Array) -> Any:
        """What toys with these points (N, d) share; ``used`` (N,) are the rows that count."""

    def evaluate(self, placed: Any, reference: Array, data: Array, widths: Array) -> Array:
        """The statistic (B, m) of toys by their weights (B, N)."""


def on_device(
    choose: Callable[[TwoSample], Design], widths: np.ndarray
) -> Callable[[int, int], Evaluate]:
    """A ``start`` for methods that run on the device.

    Toys on a pool are evaluated together, after what they share was computed once. Toys with points
    of their own go one after the other through the same functions: they share nothing.
    """

    def start(seed: int, chunk: int) -> Evaluate:
        pool: Any = None
        placed: Any = None
        placed_for: Any = None

        def evaluate(numbers: Sequence[int], batch: TwoSample) -> np.ndarray:
            nonlocal pool, placed, placed_for
            design = choose(batch)
            # A last chunk is filled up with toys it has: all chunks run the same program.
            fill = np.arange(chunk) % len(numbers)
            # Double precision is for small matrices and for sums; what is large stays single.
            with jax.enable_x64(True):
                key, sigma = jax.random.key(seed), np.asarray(widths)
                weights = [np.asarray(w, np.float64)[fill] for w in batch[1:]]
                if batch.points.ndim == 3:
                    toys = np.asarray(numbers, np.uint32)[fill]
                    points = _centred(batch.points)[fill]
                    t = _own(key, toys, points, *weights, sigma, design=design)
                else:
                    if batch.points is not pool or design != placed_for:
                        pool, placed_for = batch.points, design
                        placed = _placed(key, _centred(pool), sigma, design=design)
                    t = _shared(placed, *weights, sigma, design=design)
                return np.asarray(t)[: len(numbers)]

        return evaluate

    return start


Place = Callable[[np.random.Generator, np.ndarray, np.ndarray, bool], Any]
"""From points (N, d), which of them are used (N,), and whether one toy alone has them, to all that
can be known of them without labels."""


def each_pool(
    place: Place, evaluate: Callable[[Any, Array, Array], Array]
) -> Callable[[int, int], Evaluate]:
    """A ``start`` for methods that find on the host what the toys of a pool share.

    Toys with points of their own go one after the other through the same functions.
    """

    def start(seed: int, chunk: int) -> Evaluate:
        pool: Any = None
        placed: Any = None

        def values(numbers: Sequence[int], batch: TwoSample) -> np.ndarray:
            nonlocal pool, placed
            shared = np.ndim(batch.points) == 2
            n_toys, size, found = len(batch.data_weight), chunk if shared else 1, []
            with jax.enable_x64(True):
                weights = [jax.device_put(weight.astype(np.float64)) for weight in batch[1:]]
                for first in range(0, n_toys, size):
                    some = np.arange(first, min(first + size, n_toys))
                    # The last are filled up with toys there are: all run the same program.
                    reference, data = _chosen(weights, np.resize(some, size))
                    if not shared:
                        used = np.asarray((reference > 0) | (data > 0))[0]
                        rng = np.random.default_rng([seed, numbers[first], 2])
                        pool, points = None, np.asarray(batch.points[first])
                        placed = place(rng, points, used, True)
                    elif batch.points is not pool:
                        pool, points = batch.points, np.asarray(batch.points)
                        rng = np.random.default_rng([seed, 0, 2])
                        placed = place(rng, points, np.ones(len(points), bool), False)
                    found.append(np.asarray(evaluate(placed, reference, data))[: len(some)])
                return np.concatenate(found)

        return values

    return start


def _centred(points: Any) -> np.ndarray:
    """An offset would use up the digits of single precision; no method here cares about it."""
    x = np.asarray(points, np.float64)
    return x - x.mean(-2, keepdims=True)


@compiled
def _chosen(weights: list[Array], rows: Array) -> list[Array]:
    return [weight[rows] for weight in weights]


@functools.partial(compiled, static_argnames="design")
def _placed(key: Array, points: Array, widths: Array, *, design: Any) -> Any:
    return design.place(key, points, jnp.ones(len(points), bool), widths)


@functools.partial(compiled, static_argnames="design")
def _shared(placed: Any, reference: Array, data: Array, widths: Array, *, design: Any) -> Array:
    return design.evaluate(placed, reference, data, widths)


@functools.partial(compiled, static_argnames="design")
def _own(
    key: Array, toys: Array, points: Array, reference: Array, data: Array, widths: Array,
    *, design: Any,
) -> Array:  # fmt: skip
    def one(toy: tuple[Array, ...]) -> Array:
        number, x, r, d = toy
        placed = design.place(jax.random.fold_in(key, number), x, (r > 0) | (d > 0), widths)
        return design.evaluate(placed, r[None], d[None], widths)[0]

    return jax.lax.map(one, (toys, points, reference, data))
