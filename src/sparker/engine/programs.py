"""The compiled programs of a fit: a chunk of toys at a time, on each device of a mesh."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Split

from sparker.engine.candidates import Candidates, own_candidates, shared_candidates
from sparker.engine.compiled import compiled
from sparker.engine.config import Design, Rates
from sparker.engine.fit import Fit
from sparker.engine.memory import scan_block
from sparker.engine.sample import TwoSample
from sparker.engine.step import init
from sparker.engine.train import Progress, Steps, finish, stages, start

TOYS = "toys"  # the axis along which devices share the work
EACH, SAME = Split(TOYS), Split()  # type: ignore[no-untyped-call]


@functools.partial(compiled, static_argnames="design")
def choose_shared(key: Array, points: Array, sigma: Array, *, design: Design) -> Candidates:
    """Where all toys of a pool look."""
    return shared_candidates(key, points, sigma, design, scan_block(len(points)))


@functools.partial(compiled, static_argnames=("part", "design", "mesh"))
def run_part(
    each: Any, samples: TwoSample, shared: Any, *, part: Any, design: Design, mesh: Mesh
) -> Any:
    """A part of the training, of a chunk on each device of the mesh.

    ``each`` has the toys' axis in front, what is ``shared`` has none.
    """
    one = functools.partial(part, design=design)
    if mesh.size == 1:
        return one(each, samples, shared)
    points = EACH if samples.points.ndim == 3 else SAME
    split = (EACH, TwoSample(points, EACH, EACH), SAME)  # type: ignore[arg-type]
    many = jax.shard_map(one, mesh=mesh, in_specs=split, out_specs=EACH, check_vma=False)
    return many(each, samples, shared)


def start_chunk(
    toys: Array,  # (B,)
    samples: TwoSample,
    shared: tuple[Array, Steps, Array],
    *,
    design: Design,
) -> tuple[Progress, Candidates | None]:
    """Kernels at rest on data points, and where toys with points of their own look."""
    key, steps, explored = shared
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(toys)
    over = _over(samples)

    def begin(key: Array, sample: TwoSample) -> Progress:
        return start(init(key, sample, design.n_kernels), len(steps.read_off))

    progress = jax.vmap(begin, (0, over))(keys, samples)
    candidates = None
    if samples.points.ndim == 3 and len(explored):
        choose = functools.partial(own_candidates, design=design, block=_block(samples))
        sigma = jnp.asarray(steps.sigma)[explored]
        candidates = jax.vmap(choose, (0, 0, None))(keys, samples, sigma)
    return progress, candidates


def run_stages(
    each: tuple[Progress, Candidates | None],
    samples: TwoSample,
    shared: tuple[Steps, Array, Array, Candidates | None, Rates],
    *,
    design: Design,
) -> Progress:
    """Some stages of the training, from one number to another, of the ``spans`` of steps."""
    progress, own = each
    steps, spans, numbers, pool, rates = shared

    def one(progress: Progress, sample: TwoSample, candidates: Candidates | None) -> Progress:
        return stages(
            progress, sample, candidates, steps, spans, numbers, rates, design, _block(samples)
        )

    over = (0, _over(samples), None if own is None else 0)
    return jax.vmap(one, over)(progress, samples, pool if own is None else own)


def finish_chunk(
    progress: Progress,
    samples: TwoSample,
    shared: tuple[Steps, Array],
    *,
    design: Design,
) -> Fit:
    """What the models read off say."""
    steps, explored = shared

    def one(progress: Progress, sample: TwoSample) -> Fit:
        return finish(sample, progress, steps, design, scans=len(explored) > 0)

    return jax.vmap(one, (0, _over(samples)))(progress, samples)


def _over(samples: TwoSample) -> TwoSample:
    """Which axes are the toys'."""
    return TwoSample(0 if samples.points.ndim == 3 else None, 0, 0)  # type: ignore[arg-type]


def _block(samples: TwoSample) -> int:
    """Candidates looked at at a time; of a pool, their kernel values serve all toys."""
    n_rows = samples.points.shape[-2]
    own = samples.points.ndim == 3
    return scan_block(n_rows * len(samples.data_weight) if own else n_rows)
