"""Fits whose rows are read in blocks, for more rows than fit into memory.

A fit needs only two things of its rows: sums over them, and a few rows that are drawn. ``Blocks``
makes each sum by a pass over all blocks, one step at a time. Toys come out as they would in memory,
up to rounding.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine.candidates import SHARED, inclusion_weights, landmark_count, random_key
from sparker.engine.compiled import compiled
from sparker.engine.config import FitConfig, Rates
from sparker.engine.distances import power_of_two_near
from sparker.engine.ensemble import Ensemble
from sparker.engine.fit import Fit, as_fit
from sparker.engine.memory import for_blocks, toys_by_labels
from sparker.engine.sample import AnyArray, TwoSample
from sparker.engine.scan import Seen
from sparker.engine.step import Evaluation, State, at_rest, placed, step
from sparker.engine.train import (
    OnPart,
    ReadOffs,
    finish,
    ignore,
    spans_of,
    stage,
    start,
    steps_of,
    whole,
)
from sparker.engine.widths import Schedule
from sparker.streaming.block_sums import Drawn, Passes
from sparker.streaming.labels import Labels
from sparker.streaming.passes import (
    block_evaluate,
    block_look,
    block_pull,
    draw_any,
    draw_data,
    draw_isolated,
)
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
    on_part: OnPart = ignore

    def watched(self, on_part: OnPart) -> "StreamedToys":
        """The same, with someone to hear of parts that are fitted."""
        return replace(self, on_part=on_part)

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
        for begin in range(0, len(numbers), chunk):
            now = numbers[begin : begin + chunk]
            labels = self.label(now)
            with jax.enable_x64(True):
                passes.label(labels)
                if candidates is None and len(schedule.explore):
                    candidates = choose(seed, passes, schedule, unit)
                done = _fit_chunk(
                    seed,
                    now,
                    labels,
                    passes,
                    candidates,
                    schedule,
                    unit,
                    config,
                    self.on_part,
                )
            yield now, as_fit(done, len(now), self.pool.origin, unit, schedule, config)


def choose(seed: int, passes: Passes, schedule: Schedule, unit: float) -> Candidates:
    """Where all toys look: the same choice as that of ``candidates.shared_candidates``."""
    n_rows = passes.pool.rows.shape[0]
    key = random_key(seed)
    landmarks = passes.best(draw_any, landmark_count(n_rows), key, n_rows)
    sigma = jnp.asarray(schedule.sigma[schedule.explore] / unit, passes.dtype)
    n_candidates = min(SHARED * passes.design.n_candidates, n_rows)
    n = min(n_candidates + 1, n_rows)
    drawn = passes.best(draw_isolated, n, key, n_rows, sigma, landmarks.point[0], landmarks.row[0])
    rows = np.asarray(drawn.row)[:, :n_candidates].astype(np.int64)
    return Candidates(rows, *_chosen(drawn, n=n_candidates))


@functools.partial(whole, static_argnames="n")
def _chosen(drawn: Drawn, *, n: int) -> tuple[Array, Array]:
    log_weight = jax.vmap(functools.partial(inclusion_weights, n=n))(drawn.value, drawn.around)
    return drawn.point[:, :n], log_weight


@whole
def _at(number: AnyArray, candidates: tuple[Array, Array]) -> tuple[Array, Array]:
    centres, log_weight = candidates
    return centres[number], log_weight[number]


class Stage(NamedTuple):
    """Where a chunk of B toys looks at a width, or at each of e widths."""

    centres: Array  # (C, d)
    is_one: Array  # (B, C) whether the row there takes part in the toy
    log_weight: Array  # (C,)


class Blocks(NamedTuple):
    """A ``Trainer`` of a chunk of toys whose rows are read in blocks: every sum is a pass."""

    passes: Passes
    per_event: Array  # (B,)
    clip: AnyArray

    def place(self, state: State, at: Stage, sigma: AnyArray) -> tuple[State, Array]:
        """Look at the candidates of a stage."""
        seen = self.passes.total(block_look, state.mu, state.a, sigma, at.centres)
        return _place(state, seen, sigma, *at, self.clip)

    def step(self, state: State, sigma: AnyArray, rates: Rates) -> State:
        """Step along the gradient of all rows."""
        pull = self.passes.total(block_pull, state.mu, state.a, sigma)
        return _advance(state, pull, sigma, self.per_event, rates)

    def evaluate(self, mu: Array, a: Array, sigma: AnyArray) -> Evaluation:
        """Evaluate all models read off."""
        return self.passes.total(block_evaluate, mu, a, sigma)


def one_by_one(
    begin: int,
    end: int,
    step: Callable[[Any, Any], Any],
    carry: Any,
    on_step: Callable[[], None],
) -> Any:
    """``jax.lax.fori_loop`` in Python, for steps that are passes over a file."""
    for t in range(begin, end):
        carry = step(t, carry)
        on_step()
    return carry


def _fit_chunk(
    seed: int,
    numbers: Sequence[int],
    labels: Labels,
    passes: Passes,
    candidates: Candidates | None,
    schedule: Schedule,
    unit: float,
    config: FitConfig,
    on_part: OnPart,
) -> ReadOffs:
    """The training of a chunk of toys, filled up with toys of no weight."""
    missing = passes.chunk - len(numbers)
    toys = jnp.asarray(np.pad(np.asarray(numbers, np.uint32), (0, missing)))
    keys = jax.vmap(functools.partial(jax.random.fold_in, random_key(seed)))(toys)
    n_kernels = config.n_kernels
    drawn = passes.best(draw_data, min(n_kernels, passes.pool.rows.shape[0]), keys)
    n_drawn = np.clip(np.pad(labels.n_data, (0, missing)), 1, drawn.row.shape[1])
    which = jnp.asarray(np.arange(n_kernels) % n_drawn[:, None])
    first = _start(drawn.point, which)
    expected = np.pad(labels.expected, (0, missing))
    per_event = jnp.asarray(1 / np.where(expected > 0, expected, 1), config.dtype)
    blocks = Blocks(passes, per_event, config.rates.clip)
    steps = steps_of(schedule, unit, config.dtype)
    of_toys = len(numbers) / (len(steps.sigma) + 1)  # the finish is one more step
    over_steps = functools.partial(one_by_one, on_step=functools.partial(on_part, of_toys))
    progress = start(first, len(steps.read_off))
    for number, (begin, end) in enumerate(spans_of(schedule)):
        at = None
        if candidates is not None:
            is_there = labels.there(candidates.rows[number])  # (B, C)
            is_one = jnp.asarray(np.pad(is_there, ((0, missing), (0, 0))))
            centres, log_weight = _at(number, candidates[1:])
            at = Stage(centres, is_one, log_weight)
        span = np.int64(begin), np.int64(end)
        progress = stage(blocks, progress, steps, span, at, config.rates, over_steps)
    return finish(blocks, progress, steps, scans=candidates is not None)


@compiled
def _start(drawn: Array, which: Array) -> State:  # (B, k, d), (B, M)
    mu = jnp.take_along_axis(drawn, which[..., None], 1)
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
    state: State,
    pull: tuple[Array, Array],
    sigma: Array,
    per_event: Array,
    rates: Rates,
) -> State:
    def one(state: State, pull: tuple[Array, Array], per_event: Array) -> State:
        return step(state, sigma, lambda model: pull, per_event, rates)

    single = (pull[0].astype(state.mu.dtype), pull[1].astype(state.a.dtype))
    return jax.vmap(one)(state, single, per_event)
