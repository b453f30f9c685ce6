"""Fits, one or thousands: NumPy arrays in and out, a compiled chunk of toys at a time.

The only place that knows about batches, devices and dtypes. A single fit is a chunk of one. With
several local devices each takes chunks of its own: the same toys come out, up to rounding.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Split

from sparker.engine.compiled import compiled
from sparker.engine.config import Design, FitConfig, Rates
from sparker.engine.distances import power_of_two_near
from sparker.engine.ensemble import Ensemble
from sparker.engine.measured import Measured
from sparker.engine.memory import Need, chunk_need, n_lanes, scan_block, toys_per_chunk
from sparker.engine.sample import AnyArray, TwoSample
from sparker.engine.scan import SHARED, Candidates, own_candidates, random_key, shared_candidates
from sparker.engine.train import ReadOffs, train_rows
from sparker.engine.widths import Schedule, check_schedule


class Fit(NamedTuple):
    """What a fit leaves behind; a batch of fits has one more axis in front."""

    models: Ensemble  # mu (m, M, d), a (m, M), sigma (m,): the ensemble at each width read off
    measured: Measured  # of (m, ...), the families of train.FAMILIES
    finite: np.ndarray  # () whether all of it is

    @property
    def t(self) -> np.ndarray:  # (m,)
        """The test statistic of the whole model, in double precision."""
        return np.asarray(self.measured.t)

    def at(self, width: int) -> Ensemble:
        """The ensemble of a single fit at one of its widths, counted from the widest."""
        if self.t.ndim != 1:
            raise ValueError(f"this holds {len(self.t)} fits; choose one first, with .toy(i)")
        return Ensemble(*(array[width] for array in self.models))

    def toy(self, position: int) -> "Fit":
        """One fit of a batch."""
        if self.t.ndim != 2:
            raise ValueError("this is a single fit already")
        return jax.tree.map(lambda array: array[position], self)


def fit(
    seed: int,
    sample: TwoSample,
    schedule: Schedule,
    config: FitConfig = FitConfig(),
) -> Fit:
    """Fit one ensemble to one sample: toy 0 of this seed, alone.

    >>> import numpy as np
    >>> from sparker.engine import fit, schedule, two_sample, width_range
    >>> rng = np.random.default_rng(0)
    >>> reference, data = rng.normal(size=(5000, 2)), rng.normal(size=(500, 2))
    >>> data[:25] = [3, 3] + 0.1 * rng.normal(size=(25, 2))
    >>> sample = two_sample(reference, data)
    >>> result = fit(0, sample, schedule(*width_range(sample.points), steps=300))
    >>> best = np.argmax(result.t)
    >>> strongest = np.argmax(result.at(best).a)
    >>> result.at(best).mu[strongest].round().tolist()
    [3.0, 3.0]
    """
    if sample.is_batch:
        raise ValueError("sample holds a batch of toys; use fit_many")
    batch = TwoSample(sample.points, sample.reference_weight[None], sample.data_weight[None])
    return fit_many(seed, batch, schedule, config).toy(0)


def fit_many(
    seed: int,
    samples: TwoSample,
    schedule: Schedule,
    config: FitConfig = FitConfig(),
    *,
    toys: Sequence[int] | None = None,
    chunk: int | None = None,
) -> Fit:
    """Fit a batch of toys.

    ``toys`` numbers them, from 0 on if left out: a toy's start depends on the seed and on its
    number alone. ``chunk`` toys are trained at a time, by default as many as memory allows and
    speed rewards. With the same chunk on the same hardware a toy comes out the same to the last
    bit, whatever its place and company; across chunk sizes it agrees up to rounding.
    """
    if not samples.is_batch:
        raise ValueError("samples must be a batch of toys, see pool and stack; or use fit")
    n_toys = len(samples.data_weight)
    numbers = range(n_toys) if toys is None else list(toys)
    if n_toys == 0:
        raise ValueError("samples is an empty batch; fit_many needs at least one toy")
    if len(numbers) != n_toys or len(set(numbers)) != n_toys:
        raise ValueError(
            f"toys must number the {n_toys} toys of the batch, each once, got {len(numbers)}"
        )
    place = {number: position for position, number in enumerate(numbers)}
    chunks = fit_chunks(
        seed,
        lambda chosen: samples.toys([place[number] for number in chosen]),
        numbers,
        schedule,
        config,
        chunk=chunk,
    )
    done = [result for _, result in chunks]
    return done[0] if len(done) == 1 else jax.tree.map(lambda *a: np.concatenate(a), *done)


def fit_chunks(
    seed: int,
    draw: Callable[[Sequence[int]], TwoSample],
    toys: Sequence[int],
    schedule: Schedule,
    config: FitConfig = FitConfig(),
    *,
    chunk: int | None = None,
) -> Iterator[tuple[Sequence[int], Fit]]:
    """Fit toys that are drawn as they are needed, and give them out when they are done.

    ``draw(numbers)`` makes the batch of these toys. It must depend on the numbers alone and always
    give the same number of rows: ``pad`` toys of fluctuating size to a common one. First it is
    asked for one, to see what they are like, then for as many chunks as there are devices, or cores
    that take one each (few features on a CPU). A pool's points are taken to be the same for all
    chunks and go to the device once, as long as ``draw`` hands out the very same array (see
    ``as_points``).
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be between 0 and 2**32 - 1, got {seed}")
    if any(int(number) != number or not 0 <= number < 2**32 for number in toys):
        raise ValueError("toys must be whole numbers between 0 and 2**32 - 1")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be at least 1, got {chunk}")
    check_schedule(schedule)
    return _fit_chunks(seed, draw, toys, schedule, config, chunk)


def _fit_chunks(
    seed: int,
    draw: Callable[[Sequence[int]], TwoSample],
    toys: Sequence[int],
    schedule: Schedule,
    config: FitConfig,
    chunk: int | None,
) -> Iterator[tuple[Sequence[int], Fit]]:
    if not len(toys):
        return
    one = draw(toys[:1])
    if chunk is None:
        chunk = chunk_size(one, len(toys), schedule, config)
    n_chunks = -(-len(toys) // chunk)
    mesh = _mesh(n_chunks)
    # Devices, or the cores of the one there is, work side by side.
    side_by_side = mesh.size
    if len(jax.local_devices()) == 1:
        side_by_side = n_lanes(_need(one, schedule, config), one.points.shape[-1], chunk)
    at_once = chunk * min(side_by_side, n_chunks)
    pool = placed = shape = None
    candidates = NOWHERE
    for start in range(0, len(toys), at_once):
        numbers = toys[start : start + at_once]
        batch = draw(numbers)
        shape = shape or batch.points.shape[-2:]
        _check_drawn(batch, len(numbers), shape)
        # Double precision is for the statistic; the training keeps to config.dtype.
        with jax.enable_x64(True):
            if placed is None or batch.points is not pool or batch.points.ndim == 3:
                pool, placed = batch.points, _place(batch, at_once, schedule, config, mesh)
                candidates = _shared_candidates(seed, placed, schedule, config)
            done = _fit_chunk(
                seed, numbers, batch, placed, candidates, chunk, at_once, mesh, schedule, config
            )
        # One by one, so that what is kept of them is the same for any number of cores.
        each = at_once if mesh.size > 1 else chunk
        for first in range(0, len(numbers), each):
            part = slice(first, first + each)
            yield numbers[part], jax.tree.map(lambda array, part=part: array[part], done)


TOYS = "toys"  # the axis along which devices share the work
EACH, SAME = Split(TOYS), Split()  # type: ignore[no-untyped-call]


def _mesh(n_chunks: int) -> Mesh:
    """The local devices that so many chunks keep busy."""
    return Mesh(np.array(jax.local_devices()[:n_chunks]), (TOYS,))


def _check_drawn(batch: TwoSample, n_toys: int, shape: tuple[int, ...]) -> None:
    if not batch.is_batch or len(batch.data_weight) != n_toys:
        drawn = len(batch.data_weight) if batch.is_batch else "a single sample"
        raise ValueError(f"draw was asked for a batch of {n_toys} toys and gave {drawn}")
    if batch.points.shape[-2:] != shape:
        raise ValueError(
            f"draw gave toys of shape {batch.points.shape[-2:]} after {shape}; pad all to the same "
            "number of rows"
        )


class _Placed(NamedTuple):
    """Points on the device, relative to an origin among them and in a unit of their size.

    The fit does not care where zero is nor which unit all features share, but rounding does: an
    offset uses up the digits, and the square of a very small or large number has none. The unit
    is a power of two, so that it changes no other bit.
    """

    points: Array  # (N, d), the same on every device, or (B, N, d) per toy
    origin: np.ndarray  # (1, d), or (B, 1, d) per toy
    unit: float


def _place(
    batch: TwoSample, n_toys: int, schedule: Schedule, config: FitConfig, mesh: Mesh
) -> _Placed:
    points = np.asarray(batch.points)
    own = points.ndim == 3
    # Of the points alone, not of the weights of the toys that happen to share a chunk.
    origin = points.mean(-2, np.float64, keepdims=True).astype(points.dtype)
    unit = power_of_two_near(schedule.sigma[0])
    near = points - origin
    near /= points.dtype.type(unit)
    near = np.asarray(_lengthen(near, n_toys) if own else near, config.dtype)
    where = NamedSharding(mesh, EACH if own else SAME)
    return _Placed(jax.device_put(near, where), origin, unit)


NOWHERE = Candidates(*np.zeros((2, 0, 0)))


def _shared_candidates(
    seed: int, placed: _Placed, schedule: Schedule, config: FitConfig
) -> Candidates:
    """Where all toys of a pool look; nowhere yet where toys have points of their own."""
    if placed.points.ndim == 3 or not len(schedule.explore):
        return NOWHERE
    n_widths, n_points = len(schedule.explore), len(placed.points)
    if n_points <= SHARED * config.n_candidates:  # everywhere: nothing to choose or to compile
        rows = np.broadcast_to(np.arange(n_points, dtype=np.int32), (n_widths, n_points))
        return Candidates(rows, np.zeros(rows.shape, config.dtype))
    sigma = jnp.asarray(schedule.sigma[schedule.explore] / placed.unit, config.dtype)
    return _choose_shared(
        random_key(seed), placed.points, sigma, design=config.design_for(schedule)
    )


def _fit_chunk(
    seed: int,
    numbers: Sequence[int],
    batch: TwoSample,
    placed: _Placed,
    candidates: Candidates,
    chunk: int,
    at_once: int,
    mesh: Mesh,
    schedule: Schedule,
    config: FitConfig,
) -> Fit:
    shared_out = NamedSharding(mesh, EACH)
    toys, reference_weight, data_weight = (
        jax.device_put(_lengthen(array, at_once).astype(dtype), shared_out)
        for array, dtype in (
            (np.asarray(numbers), np.uint32),
            (batch.reference_weight, config.dtype),
            (batch.data_weight, config.dtype),
        )
    )
    others = (
        jnp.asarray(schedule.sigma / placed.unit, config.dtype),
        jnp.asarray(schedule.read_off, jnp.int32),
        jnp.asarray(schedule.explore, jnp.int32),
        candidates,
        config.rates,
    )

    def trained(part: slice) -> ReadOffs:
        with jax.enable_x64(True):  # every thread has a switch of its own
            points = placed.points[part] if placed.points.ndim == 3 else placed.points
            samples = TwoSample(points, reference_weight[part], data_weight[part])
            key, design = random_key(seed), config.design_for(schedule)
            done = _train_chunks(key, toys[part], samples, *others, design=design, mesh=mesh)
            return jax.block_until_ready(done)  # type: ignore[no-untyped-call]

    if mesh.size > 1 or at_once == chunk:
        done = trained(slice(None))
    else:
        parts = [slice(start, start + chunk) for start in range(0, len(numbers), chunk)]
        with ThreadPoolExecutor(len(parts)) as cores:
            done = jax.tree.map(lambda *arrays: np.concatenate(arrays), *cores.map(trained, parts))
    return as_fit(done, len(numbers), placed.origin, placed.unit, schedule, config)


def as_fit(
    done: ReadOffs,
    n_toys: int,
    origin: np.ndarray,
    unit: float,
    schedule: Schedule,
    config: FitConfig,
) -> Fit:
    """The first toys of a chunk, in the coordinates that their points came in."""
    mu, a, measured, finite = jax.tree.map(lambda array: np.asarray(array)[:n_toys], done)
    origin = np.expand_dims(origin, -3)
    dtype = np.result_type(origin, config.dtype)
    sigma = np.broadcast_to(schedule.widths.astype(dtype), a.shape[:-1])
    return Fit(Ensemble(mu * dtype.type(unit) + origin, a, sigma), measured, finite)


@functools.partial(compiled, static_argnames="design")
def _choose_shared(key: Array, points: Array, sigma: Array, *, design: Design) -> Candidates:
    return shared_candidates(key, points, sigma, design, scan_block(len(points)))


@functools.partial(compiled, static_argnames=("design", "mesh"))
def _train_chunks(
    key: Array, toys: Array, samples: TwoSample, *others: Any, design: Design, mesh: Mesh
) -> ReadOffs:
    """Train a chunk on each device of the mesh."""
    one = functools.partial(_train_chunk, design=design)
    if mesh.size == 1:
        return one(key, toys, samples, *others)
    points = EACH if samples.points.ndim == 3 else SAME
    split = (SAME, EACH, TwoSample(points, EACH, EACH), *(SAME for _ in others))  # type: ignore[arg-type]
    many = jax.shard_map(one, mesh=mesh, in_specs=split, out_specs=EACH, check_vma=False)
    return many(key, toys, samples, *others)


def _train_chunk(
    key: Array,
    toys: Array,  # (B,)
    samples: TwoSample,
    sigma: Array,
    read_off: Array,
    explored: Array,
    candidates: Candidates,  # of a pool
    rates: Rates,
    *,
    design: Design,
) -> ReadOffs:
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(toys)
    own = samples.points.ndim == 3
    n_rows = samples.points.shape[-2]
    # Of a pool, kernel values of a candidate are computed once for all toys.
    block = scan_block(n_rows * len(toys) if own else n_rows)
    if own and len(explored):
        choose = functools.partial(own_candidates, design=design, block=block)
        candidates = jax.vmap(choose, (0, 0, None))(keys, samples, sigma[explored])
    over = TwoSample(0 if own else None, 0, 0)  # type: ignore[arg-type]
    many = jax.vmap(
        functools.partial(train_rows, design=design, block=block),
        (0, over, None, None, None, 0 if candidates.rows.ndim == 3 else None, None),
    )
    return many(keys, samples, sigma, read_off, explored, candidates, rates)


def _lengthen(array: AnyArray, length: int) -> np.ndarray:
    """Fill a last chunk up with toys of no weight, so that all chunks run the same program."""
    if len(array) == length:
        return np.asarray(array)
    return np.pad(array, [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1))


def chunk_size(sample: TwoSample, n_toys: int, schedule: Schedule, config: FitConfig) -> int:
    """How many toys like this sample are trained at once, if so many are asked for."""
    n_rows, n_features = sample.points.shape[-2:]
    return toys_per_chunk(
        n_toys,
        _need(sample, schedule, config),
        n_rows=n_rows,
        n_features=n_features,
        n_devices=len(jax.local_devices()),
    )


def _need(sample: TwoSample, schedule: Schedule, config: FitConfig) -> Need:
    n_rows, n_features = sample.points.shape[-2:]
    return chunk_need(
        n_rows=n_rows,
        n_features=n_features,
        n_kernels=config.n_kernels,
        n_widths=len(schedule.read_off),
        n_candidates=config.n_candidates if len(schedule.explore) else 0,
        itemsize=np.dtype(config.dtype).itemsize,
        own_points=sample.points.ndim == 3,
        points_itemsize=sample.points.dtype.itemsize,
    )
