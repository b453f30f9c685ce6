"""What is summed over a block of rows, or drawn from it, for all toys of a chunk."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from sparker.engine import scan
from sparker.engine.candidates import count_around, race_times, random_priorities
from sparker.engine.config import Design
from sparker.engine.distances import features_of
from sparker.engine.ensemble import Ensemble
from sparker.engine.memory import scan_block
from sparker.engine.sample import TwoSample
from sparker.engine.scan import Seen
from sparker.engine.step import Evaluation, evaluate, gradient_of
from sparker.streaming.block_sums import Block, Chunk, Drawn, first

T = TypeVar("T")


def _each_toy(
    one: Callable[[Array, Array, TwoSample], T], chunk: Chunk, block: Block, mu: Array, a: Array
) -> T:
    """A function of a toy's kernels and of its sample in a block, for all toys."""
    over = (0, 0, TwoSample(None, 0, 0))  # type: ignore[arg-type]
    return jax.vmap(one, over)(mu, a, chunk.samples(block))


def _first(priorities: Array, block: Block, n: int) -> Drawn:
    """The rows of the first priorities; how many others are around them does not matter."""
    return first(priorities, block, jnp.zeros(priorities.shape, block.points.dtype), n)


def block_pull(
    chunk: Chunk, block: Block, design: Design, mu: Array, a: Array, sigma: Array
) -> tuple[Array, Array]:
    """The gradient's sums over a block."""
    features = features_of(block.points)

    def one(mu: Array, a: Array, sample: TwoSample) -> tuple[Array, Array]:
        return gradient_of(sample, features, design)(Ensemble(mu, a, sigma))

    return _each_toy(one, chunk, block, mu, a)


def block_look(
    chunk: Chunk,
    block: Block,
    design: Design,
    mu: Array,
    a: Array,
    sigma: Array,
    centres: Array,
) -> Seen:
    """What kernels at the candidates see of a block."""
    features = features_of(block.points)
    at_once = scan_block(len(block.points))

    def one(mu: Array, a: Array, sample: TwoSample) -> Seen:
        return scan.look(Ensemble(mu, a, sigma), centres, sample, features, design, at_once)

    return _each_toy(one, chunk, block, mu, a)


def block_evaluate(
    chunk: Chunk, block: Block, design: Design, mu: Array, a: Array, sigma: Array
) -> Evaluation:
    """What models say of a block."""

    def one(mu: Array, a: Array, sample: TwoSample) -> Evaluation:
        return evaluate(Ensemble(mu, a, sigma), sample, design)

    return _each_toy(one, chunk, block, mu, a)


def draw_data(chunk: Chunk, block: Block, design: Design, n: int, keys: Array) -> Drawn:
    """The data rows that kernels start from, in each toy."""
    is_data = jnp.unpackbits(block.is_data, axis=-1).astype(bool)
    priorities = jax.vmap(random_priorities, (0, None, 0))(keys, block.rows, is_data)
    return _first(priorities, block, n)


def draw_any(chunk: Chunk, block: Block, design: Design, n: int, key: Array, n_rows: int) -> Drawn:
    """Rows that stand for all."""
    priorities = random_priorities(key, block.rows, block.rows < n_rows)[None]
    return _first(priorities, block, n)


def draw_isolated(
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
        around = count_around(block.points, near, itself, sigma, n_rows, design, at_once)
        turn = jax.random.fold_in(key, number)
        return -race_times(turn, block.rows, there, around), around

    values, around = jax.lax.map(at_width, (sigma, jnp.arange(len(sigma))))
    return first(values, block, around, n)
