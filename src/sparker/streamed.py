"""Fits whose rows pass by in blocks, for more of them than fit into memory.

All that a fit needs of its rows are sums over them, and a few that are drawn. So the steps of
``train`` are taken here one at a time, each after a pass over all blocks, by the same functions:
toys come out as they would in memory, up to rounding.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker import explore
from sparker.batch import Fit, as_fit, compiled
from sparker.design import Design, FitConfig, Rates
from sparker.distances import features_of, power_of_two_near
from sparker.ensemble import Ensemble
from sparker.explore import SHARED, Seen, random_key
from sparker.memory import for_blocks, scan_block, toys_by_labels
from sparker.nulls.blocks import Labels, StreamedToys
from sparker.passes import Block, Chunk, Drawn, Passes, first
from sparker.sample import TwoSample
from sparker.train import (
    Evaluation,
    ReadOffs,
    State,
    at_rest,
    evaluate,
    gradient_of,
    placed,
    slowed,
    step,
)
from sparker.widths import Schedule


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
                now = slowed(rates, np.asarray((end - t) / (end - begin), config.dtype))
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
    return first(tickets, block, jnp.zeros(tickets.shape, block.points.dtype), n)


def _draw_any(chunk: Chunk, block: Block, design: Design, n: int, key: Array, n_rows: int) -> Drawn:
    """Rows that stand for all."""
    tickets = explore.tickets(key, block.rows, block.rows < n_rows)[None]
    return first(tickets, block, jnp.zeros(tickets.shape, block.points.dtype), n)


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
