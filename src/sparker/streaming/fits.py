"""Fits whose rows pass by in blocks, for more of them than fit into memory.

All that a fit needs of its rows are sums over them, and a few that are drawn. ``Blocks`` sums by
passes over all blocks, and ``train`` takes its steps one at a time: toys come out as they would in
memory, up to rounding.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine import scan
from sparker.engine.batch import Fit, as_fit
from sparker.engine.compiled import compiled
from sparker.engine.config import Design, FitConfig, Rates
from sparker.engine.distances import features_of, power_of_two_near
from sparker.engine.ensemble import Ensemble
from sparker.engine.memory import for_blocks, scan_block, toys_by_labels
from sparker.engine.sample import AnyArray, TwoSample
from sparker.engine.scan import SHARED, Seen, random_key
from sparker.engine.train import (
    Evaluation,
    Loops,
    ReadOffs,
    State,
    at_rest,
    evaluate,
    gradient_of,
    placed,
    step,
    train,
)
from sparker.engine.widths import Schedule
from sparker.streaming.block_sums import Block, Chunk, Drawn, Passes, first
from sparker.streaming.labels import Labels
from sparker.streaming.spool import StreamedPool


class Candidates(NamedTuple):
    """Where to look at each of e widths, with the points that are there."""

    rows: np.ndarray  # (e, C)
    centres: Array  # (e, C, d)
    log_weight: Array  # (e, C)


@dataclass(frozen=True, eq=False)
class StreamedToys:
    """Experiments whose rows are in a scratch file, and differ by their labels."""

    pool: StreamedPool
    label: Callable[[Sequence[int]], Labels]

    def draw(self, numbers: Sequence[int]) -> TwoSample:
        """Refused: the rows are streamed because they do not fit into memory."""
        raise TypeError("only statistics that stream take these toys")

    def check(self, number: int) -> None:
        """Label its rows."""
        self.label([number])

    def chunk_size(self, number: int, n_toys: int, schedule: Schedule, config: FitConfig) -> int:
        """As many as there is room for labels."""
        return toys_by_labels(n_toys, self.pool.rows.shape[0], for_blocks(self.pool.memory))

    def fit_chunks(
        self,
        seed: int,
        numbers: Sequence[int],
        schedule: Schedule,
        config: FitConfig,
        *,
        chunk: int,
    ) -> Iterator[tuple[Sequence[int], Fit]]:
        """Fit them, one pass over all rows a step."""
        unit = power_of_two_near(schedule.sigma[0])
        passes = Passes(self.pool, chunk, unit, config, config.design_for(schedule))
        candidates = None
        for start in range(0, len(numbers), chunk):
            now = numbers[start : start + chunk]
            labels = self.label(now)
            with jax.enable_x64(True):
                passes.label(labels)
                if candidates is None and len(schedule.explore):
                    candidates = choose(seed, passes, schedule, unit)
                done = _fit_chunk(seed, now, labels, passes, candidates, schedule, unit, config)
            yield now, as_fit(done, len(now), self.pool.origin, unit, schedule, config)


def choose(seed: int, passes: Passes, schedule: Schedule, unit: float) -> Candidates:
    """Where all toys look, as ``scan.shared_candidates`` has it."""
    n_rows = passes.pool.rows.shape[0]
    key = random_key(seed)
    landmarks = passes.best(_draw_any, scan.landmark_count(n_rows), key, n_rows)
    sigma = jnp.asarray(schedule.sigma[schedule.explore] / unit, passes.dtype)
    n_candidates = min(SHARED * passes.design.n_candidates, n_rows)
    n = min(n_candidates + 1, n_rows)
    drawn = passes.best(_draw_isolated, n, key, n_rows, sigma, landmarks.point[0], landmarks.row[0])
    log_weight = jax.vmap(functools.partial(scan.inclusion_weights, n=n_candidates))(
        drawn.value, drawn.around
    )
    rows = np.asarray(drawn.row)[:, :n_candidates].astype(np.int64)
    return Candidates(rows, drawn.point[:, :n_candidates], log_weight)


class Stage(NamedTuple):
    """Where a chunk of B toys looks at a width, or at each of e widths."""

    centres: Array  # (C, d)
    is_one: Array  # (B, C) whether the row there takes part in the toy
    log_weight: Array  # (C,)


class Blocks(NamedTuple):
    """A ``Trainer`` of a chunk of toys whose rows pass by: every sum is a pass."""

    passes: Passes
    per_event: Array  # (B,)
    clip: AnyArray

    def place(self, state: State, stage: Stage, sigma: Array) -> tuple[State, Array]:
        """Look at the candidates of a stage."""
        seen = self.passes.total(_look, state.mu, state.a, sigma, stage.centres)
        return _place(state, seen, sigma, *stage, self.clip)

    def step(self, state: State, sigma: Array, rates: Rates) -> State:
        """Step along the gradient of all rows."""
        pull = self.passes.total(_pull, state.mu, state.a, sigma)
        return _advance(state, pull, sigma, self.per_event, rates)

    def evaluate(self, mu: Array, a: Array, sigma: AnyArray) -> Evaluation:
        """Evaluate all models read off."""
        return self.passes.total(_evaluate, mu, a, sigma)


def _each_stage(
    stage: Callable[[Any, Any], tuple[Any, None]], carry: Any, spans: Any
) -> tuple[Any, None]:
    for i in range(len(spans[0])):
        carry, _ = stage(carry, jax.tree.map(lambda array, i=i: array[i], spans))
    return carry, None


def _each_step(begin: Array, end: Array, step: Callable[[Any, Any], Any], carry: Any) -> Any:
    for t in range(int(begin), int(end)):
        carry = step(t, carry)
    return carry


ONE_BY_ONE = Loops(_each_stage, _each_step)


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
    """``train`` of a chunk of toys, filled up with toys of no weight."""
    missing = passes.chunk - len(numbers)
    toys = jnp.asarray(np.pad(np.asarray(numbers, np.uint32), (0, missing)))
    keys = jax.vmap(functools.partial(jax.random.fold_in, random_key(seed)))(toys)
    n_kernels = config.n_kernels
    drawn = passes.best(_draw_data, min(n_kernels, passes.pool.rows.shape[0]), keys)
    n_drawn = np.clip(np.pad(labels.n_data, (0, missing)), 1, drawn.row.shape[1])
    which = jnp.asarray(np.arange(n_kernels) % n_drawn[:, None])
    first = _start(jnp.take_along_axis(drawn.point, which[..., None], 1))
    expected = np.pad(labels.expected, (0, missing))
    per_event = jnp.asarray(1 / np.where(expected > 0, expected, 1), config.dtype)
    stages = None
    if candidates is not None:
        is_there = np.moveaxis(labels.there(candidates.rows), 1, 0)  # (e, B, C)
        is_one = jnp.asarray(np.pad(is_there, ((0, 0), (0, missing), (0, 0))))
        stages = Stage(candidates.centres, is_one, candidates.log_weight)
    return train(
        Blocks(passes, per_event, config.rates.clip),
        first,
        np.asarray(schedule.sigma / unit, config.dtype),
        schedule.read_off,
        schedule.explore,
        stages,
        config.rates,
        ONE_BY_ONE,
    )


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
        return scan.look(Ensemble(mu, a, sigma), centres, sample, features, design, at_once)

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
    random_priorities = jax.vmap(scan.random_priorities, (0, None, 0))(keys, block.rows, is_data)
    return first(
        random_priorities, block, jnp.zeros(random_priorities.shape, block.points.dtype), n
    )


def _draw_any(chunk: Chunk, block: Block, design: Design, n: int, key: Array, n_rows: int) -> Drawn:
    """Rows that stand for all."""
    random_priorities = scan.random_priorities(key, block.rows, block.rows < n_rows)[None]
    return first(
        random_priorities, block, jnp.zeros(random_priorities.shape, block.points.dtype), n
    )


def _draw_isolated(
    chunk: Chunk,
    block: Block,
    design: Design,
    n: int,
    key: Array,
    n_rows: int,
    sigma: Array,  # (e,)
    landmarks: Array,  # (P, d)
    landmark_rows: Array,  # (P,)
) -> Drawn:
    """Rows with few others around, at each width."""
    near = features_of(landmarks)
    itself = jnp.isin(block.rows, landmark_rows).astype(block.points.dtype)
    at_once = max(1, scan_block(len(landmarks)))
    there = block.rows < n_rows

    def at_width(width: tuple[Array, Array]) -> tuple[Array, Array]:
        sigma, number = width
        around = scan.count_around(block.points, near, itself, sigma, n_rows, design, at_once)
        turn = jax.random.fold_in(key, number)
        return -scan.race_times(turn, block.rows, there, around), around

    values, around = jax.lax.map(at_width, (sigma, jnp.arange(len(sigma))))
    return first(values, block, around, n)


@compiled
def _start(mu: Array) -> State:  # (B, M, d)
    return jax.vmap(at_rest)(mu, jnp.zeros(mu.shape[:-1], mu.dtype))


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
