"""Fits whose rows pass by in blocks, for more of them than fit into memory.

All that a fit needs of its rows are sums over them, and a few that are drawn. So the steps of
``train`` are taken here one at a time, each after a pass over all blocks, by the same functions:
toys come out as they would in memory, up to rounding. Where there are several devices, each takes a
part of every block, and what they find is added up.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Split

from sparker import explore
from sparker.batch import Fit, as_fit, compiled
from sparker.design import Design, FitConfig, Rates
from sparker.distances import features_of, power_of_two_near
from sparker.ensemble import Ensemble
from sparker.explore import SHARED, Seen, random_key
from sparker.memory import block_of_rows, for_blocks, scan_block, toys_by_labels
from sparker.nulls.blocks import Labels, StreamedToys
from sparker.sample import TwoSample
from sparker.train import ADAM, Evaluation, ReadOffs, State, evaluate, gradient_of, placed, step
from sparker.widths import Schedule

ROWS = "rows"  # the axis along which devices share a block
SAME = Split()  # type: ignore[no-untyped-call]
T = TypeVar("T")


class Block(NamedTuple):
    """Some rows, and what they are in all toys of a chunk."""

    points: Array  # (n, d)
    rows: Array  # (n,) their numbers
    weights: Array  # (kinds, n) reference weights, zero for rows that only fill up
    is_data: Array  # (B, n / 8) bits
    is_out: Array | None  # (B, n / 8) bits


PARTS = Block(
    Split(ROWS),  # type: ignore[arg-type, no-untyped-call]
    Split(ROWS),  # type: ignore[arg-type, no-untyped-call]
    Split(None, ROWS),  # type: ignore[arg-type, no-untyped-call]
    Split(None, ROWS),  # type: ignore[arg-type, no-untyped-call]
    Split(None, ROWS),  # type: ignore[arg-type, no-untyped-call]
)


class Chunk(NamedTuple):
    """What a pass knows of the toys beside their bits."""

    kind: Array  # (B,) which of the reference weights
    factor: Array  # (B,) what these are multiplied by

    def samples(self, block: Block) -> TwoSample:  # points (n, d), weights (B, n)
        """The toys' share in a block."""
        is_data = jnp.unpackbits(block.is_data, axis=-1).astype(bool)
        is_reference = ~is_data
        if block.is_out is not None:
            is_reference &= ~jnp.unpackbits(block.is_out, axis=-1).astype(bool)
        own = block.weights[self.kind] * self.factor[:, None]
        return TwoSample(
            block.points, jnp.where(is_reference, own, 0), is_data.astype(block.points.dtype)
        )


class Drawn(NamedTuple):
    """Rows that were drawn, of g groups, the best first."""

    value: Array  # (g, k) by which they are
    row: Array  # (g, k)
    point: Array  # (g, k, d)
    around: Array  # (g, k) the crowd around them, where it matters


class Candidates(NamedTuple):
    """Where to look at each of e widths, with the points that are there."""

    rows: np.ndarray  # (e, C)
    centres: Array  # (e, C, d)
    log_weight: Array  # (e, C)


def chunk_size(toys: StreamedToys, n_toys: int) -> int:
    """How many toys are trained at once."""
    return toys_by_labels(n_toys, toys.pool.shape[0], for_blocks(toys.memory))


def fit_chunks(
    seed: int,
    toys: StreamedToys,
    numbers: Sequence[int],
    schedule: Schedule,
    config: FitConfig,
    *,
    chunk: int,
) -> Iterator[tuple[Sequence[int], Fit]]:
    """``batch.fit_chunks`` for toys whose rows are in a scratch file."""
    unit = power_of_two_near(schedule.sigma[0])
    passes = Passes(toys, chunk, unit, config, config.design_for(schedule))
    candidates = None
    for start in range(0, len(numbers), chunk):
        now = numbers[start : start + chunk]
        labels = toys(now)
        with jax.enable_x64(True):
            passes.label(labels)
            if candidates is None and len(schedule.explore):
                candidates = choose(seed, passes, schedule, unit)
            done = _fit_chunk(seed, now, labels, passes, candidates, schedule, unit, config)
        yield now, as_fit(done, len(now), toys.origin, unit, schedule, config)


class Passes:
    """Passes over all rows, in blocks of one size that are kept on the device if there is room."""

    def __init__(
        self, toys: StreamedToys, chunk: int, unit: float, config: FitConfig, design: Design
    ) -> None:
        self.toys, self.chunk, self.unit, self.dtype, self.design = (
            toys, chunk, unit, config.dtype, design,
        )  # fmt: skip
        self.mesh = Mesh(np.array(jax.local_devices()), (ROWS,))
        n_rows, n_features = toys.pool.shape
        memory = for_blocks(toys.memory)
        size = block_of_rows(n_rows, n_features, chunk, config.n_kernels, memory)
        self.size = -(-size // (8 * self.mesh.size)) * 8 * self.mesh.size
        self.at_hand: dict[int, tuple[Array, ...]] | None = {} if self.keeps() else None

    def keeps(self) -> bool:
        """Whether all points have room on the device, beside what is done to a block of them."""
        n_rows, n_features = self.toys.pool.shape
        return 8 * n_rows * (n_features + 3) < for_blocks(self.toys.memory) / 4

    def label(self, labels: Labels) -> None:
        """Turn to the toys of a chunk; those missing from a last one have no weight."""
        missing = self.chunk - len(labels.kind)

        def longer(array: np.ndarray | None) -> np.ndarray | None:
            return array if array is None or not missing else np.pad(array, ((0, missing), (0, 0)))

        self.is_data, self.is_out = longer(labels.is_data), longer(labels.is_out)
        self.of_toys = Chunk(
            jnp.asarray(np.pad(labels.kind, (0, missing)), jnp.int32),
            jnp.asarray(np.pad(labels.factor, (0, missing)), self.dtype),
        )

    def total(self, function: Callable[..., T], *parameters: Any) -> T:
        """What a function of a block adds up to over all of them, in double precision."""
        so_far = None
        for block in self:
            new = _summed(
                self.of_toys, block, parameters,
                function=function, design=self.design, mesh=self.mesh,
            )  # fmt: skip
            # One block is worked on while the next is read: no more are in memory.
            so_far = _finished(new if so_far is None else _add(so_far, new))
        return so_far  # type: ignore[return-value]

    def best(self, function: Callable[..., Drawn], n: int, *parameters: Any) -> Drawn:
        """The n best of what a function of a block draws, of all blocks."""
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
        starts = iter(range(0, self.toys.pool.shape[0], self.size))
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
        n_rows = self.toys.pool.shape[0]
        stop = min(start + self.size, n_rows)
        missing = self.size - (stop - start)
        if self.at_hand is None or start not in self.at_hand:
            points = self.toys.pool.read(start, stop).astype(self.dtype) / self.dtype(self.unit)
            weights = np.ones((1, stop - start), self.dtype)
            if self.toys.weights is not None:
                weights = self.toys.weights[:, start:stop].astype(self.dtype)
            there = (
                np.pad(points, ((0, missing), (0, 0))),
                np.arange(start, start + self.size, dtype=np.uint32),
                np.pad(weights, ((0, 0), (0, missing))),
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


def choose(seed: int, passes: Passes, schedule: Schedule, unit: float) -> Candidates:
    """Where all toys look, as ``explore.shared_candidates`` has it."""
    n_rows = passes.toys.pool.shape[0]
    key = random_key(seed)
    crowd = passes.best(_draw_any, explore.crowd_size(n_rows), key, n_rows)
    sigma = jnp.asarray(schedule.sigma[schedule.explore] / unit, passes.dtype)
    n_candidates = min(SHARED * passes.design.n_candidates, n_rows)
    n = min(n_candidates + 1, n_rows)
    drawn = passes.best(_draw_lonely, n, key, n_rows, sigma, crowd.point[0], crowd.row[0])
    log_weight = jax.vmap(functools.partial(explore.winners, n=n_candidates))(
        drawn.value, drawn.around
    )
    rows = np.asarray(drawn.row)[:, :n_candidates].astype(np.int64)
    return Candidates(rows, drawn.point[:, :n_candidates], log_weight)


def _fit_chunk(
    seed: int,
    numbers: Sequence[int],
    labels: Labels,
    passes: Passes,
    candidates: Candidates | None,
    schedule: Schedule,
    unit: float,
    config: FitConfig,
) -> ReadOffs:
    """``train.train`` of a chunk of toys, one pass over the rows a step."""
    missing = passes.chunk - len(numbers)
    toys = jnp.asarray(np.pad(np.asarray(numbers, np.uint32), (0, missing)))
    keys = jax.vmap(functools.partial(jax.random.fold_in, random_key(seed)))(toys)
    sigma = np.asarray(schedule.sigma / unit, config.dtype)
    rates = config.rates
    expected = np.pad(labels.expected, (0, missing))
    per_event = jnp.asarray(1 / np.where(expected > 0, expected, 1), config.dtype)
    n_kernels = config.n_kernels
    drawn = passes.best(_draw_data, min(n_kernels, passes.toys.pool.shape[0]), keys)
    n_drawn = np.clip(np.pad(labels.n_data, (0, missing)), 1, drawn.row.shape[1])
    which = jnp.asarray(np.arange(n_kernels) % n_drawn[:, None])
    state = _start(jnp.take_along_axis(drawn.point, which[..., None], 1))
    begins = schedule.explore if candidates is not None else np.zeros(1, int)
    ends = np.append(begins[1:], len(sigma))
    read: list[State] = []
    slot = np.searchsorted(schedule.read_off, begins)
    scanned = np.zeros((passes.chunk, len(schedule.read_off), len(explore.EVIDENCE)))
    for stage, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if candidates is not None:
            centres = candidates.centres[stage]
            is_there = labels.there(candidates.rows[stage])
            is_one = jnp.asarray(np.pad(is_there, ((0, missing), (0, 0))))
            seen = passes.total(_look, state.mu, state.a, sigma[begin], centres)
            state, evidence = _place(
                state, seen, sigma[begin], centres, is_one, candidates.log_weight[stage], rates.clip
            )
            scanned[:, slot[stage]] = evidence
        for t in range(begin, end):
            now = rates
            if candidates is not None:
                left = np.asarray((end - t) / (end - begin), config.dtype)
                now = rates._replace(
                    location=rates.location * left, amplitude=rates.amplitude * left
                )
            pull = passes.total(_pull, state.mu, state.a, sigma[t])
            state = _advance(state, pull, sigma[t], per_event, now)
            if t in schedule.read_off:
                read += [state]
    mu, a = (jnp.stack([getattr(state, name) for state in read], 1) for name in ("mu", "a"))
    evaluation = passes.total(_evaluate, mu, a, sigma[schedule.read_off])
    evidence = evaluation.t[..., None]
    if candidates is not None:
        evidence = jnp.concatenate([evidence, scanned], -1)
    each = [
        jnp.all(jnp.isfinite(array).reshape(len(array), -1), 1)
        for array in (mu, a, evidence, *evaluation)
    ]
    return ReadOffs(mu, a, evidence, evaluation, jnp.all(jnp.stack(each), 0))


def _pull(
    chunk: Chunk, block: Block, design: Design, mu: Array, a: Array, sigma: Array
) -> tuple[Array, Array]:
    features = features_of(block.points)

    def one(mu: Array, a: Array, sample: TwoSample) -> tuple[Array, Array]:
        return gradient_of(sample, features, design)(Ensemble(mu, a, sigma))

    return jax.vmap(one, (0, 0, TwoSample(None, 0, 0)))(mu, a, chunk.samples(block))  # type: ignore[arg-type]


def _look(
    chunk: Chunk, block: Block, design: Design, mu: Array, a: Array, sigma: Array, centres: Array
) -> Seen:
    features = features_of(block.points)
    at_once = scan_block(len(block.points))

    def one(mu: Array, a: Array, sample: TwoSample) -> Seen:
        return explore.look(Ensemble(mu, a, sigma), centres, sample, features, design, at_once)

    return jax.vmap(one, (0, 0, TwoSample(None, 0, 0)))(mu, a, chunk.samples(block))  # type: ignore[arg-type]


def _evaluate(
    chunk: Chunk, block: Block, design: Design, mu: Array, a: Array, sigma: Array
) -> Evaluation:
    def one(mu: Array, a: Array, sample: TwoSample) -> Evaluation:
        return evaluate(Ensemble(mu, a, sigma), sample, design)

    return jax.vmap(one, (0, 0, TwoSample(None, 0, 0)))(mu, a, chunk.samples(block))  # type: ignore[arg-type]


def _draw_data(chunk: Chunk, block: Block, design: Design, n: int, keys: Array) -> Drawn:
    """The data rows that kernels start from, in each toy."""
    is_data = jnp.unpackbits(block.is_data, axis=-1).astype(bool)
    tickets = jax.vmap(explore.tickets, (0, None, 0))(keys, block.rows, is_data)
    return _first(tickets, block, jnp.zeros(tickets.shape, block.points.dtype), n)


def _draw_any(chunk: Chunk, block: Block, design: Design, n: int, key: Array, n_rows: int) -> Drawn:
    """Rows that stand for all."""
    tickets = explore.tickets(key, block.rows, block.rows < n_rows)[None]
    return _first(tickets, block, jnp.zeros(tickets.shape, block.points.dtype), n)


def _draw_lonely(
    chunk: Chunk,
    block: Block,
    design: Design,
    n: int,
    key: Array,
    n_rows: int,
    sigma: Array,  # (e,)
    crowd: Array,  # (P, d)
    crowd_rows: Array,  # (P,)
) -> Drawn:
    """Rows with few others around, at each width."""
    near = features_of(crowd)
    itself = jnp.isin(block.rows, crowd_rows).astype(block.points.dtype)
    at_once = max(1, scan_block(len(crowd)))
    there = block.rows < n_rows

    def at_width(width: tuple[Array, Array]) -> tuple[Array, Array]:
        sigma, number = width
        around = explore.crowd_around(block.points, near, itself, sigma, n_rows, design, at_once)
        turn = jax.random.fold_in(key, number)
        return -explore.arrival(turn, block.rows, there, around), around

    values, around = jax.lax.map(at_width, (sigma, jnp.arange(len(sigma))))
    return _first(values, block, around, n)


def _first(values: Array, block: Block, around: Array, n: int) -> Drawn:  # (g, n_block)
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


@compiled
def _start(mu: Array) -> State:  # (B, M, d)
    def one(mu: Array) -> State:
        a = jnp.zeros(len(mu), mu.dtype)
        return State(mu, a, ADAM.init((mu, a)))

    return jax.vmap(one)(mu)


@compiled
def _place(
    state: State,
    seen: Seen,
    sigma: Array,
    centres: Array,  # (C, d)
    is_one: Array,  # (B, C)
    log_weight: Array,  # (C,)
    clip: Array,
) -> tuple[State, Array]:
    def one(mu: Array, a: Array, seen: Seen, is_one: Array) -> tuple[State, Array]:
        model = Ensemble(mu, a, sigma)
        return placed(model, seen, centres, is_one, log_weight, clip)

    single = jax.tree.map(lambda array: array.astype(state.mu.dtype), seen)
    return jax.vmap(one)(state.mu, state.a, single, is_one)


@compiled
def _advance(
    state: State, pull: tuple[Array, Array], sigma: Array, per_event: Array, rates: Rates
) -> State:
    def one(state: State, pull: tuple[Array, Array], per_event: Array) -> State:
        return step(state, sigma, lambda model: pull, per_event, rates)

    single = (pull[0].astype(state.mu.dtype), pull[1].astype(state.a.dtype))
    return jax.vmap(one)(state, single, per_event)
