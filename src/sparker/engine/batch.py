"""Fits, one or thousands: NumPy arrays in and out, a compiled chunk of toys at a time.

A single fit is a chunk of one. With several local devices each takes chunks of its own: the same
toys come out, up to rounding. Batches, devices and dtypes are known here and in ``chunk`` alone.
"""

from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np
from jax.sharding import Mesh

from sparker.engine.chunk import Pace, fit_chunk, place
from sparker.engine.compiled import limit_programs
from sparker.engine.config import FitConfig
from sparker.engine.fit import Fit
from sparker.engine.memory import chunk_need, chunk_size, n_lanes
from sparker.engine.programs import TOYS
from sparker.engine.sample import TwoSample
from sparker.engine.train import OnPart, ignore
from sparker.engine.widths import Schedule, check_schedule
from sparker.system.machine import check_process


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
    number alone. ``chunk`` toys are trained at a time, by default as many as fit into memory and
    make it faster. With the same chunk on the same hardware a toy comes out the same to the last
    bit, whatever its place and the toys beside it; across chunk sizes it agrees up to rounding.
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
    on_part: OnPart = ignore,
) -> Iterator[tuple[Sequence[int], Fit]]:
    """Fit toys that are drawn when they are needed, and yield them when they are done.

    ``draw(numbers)`` makes the batch of these toys. It must depend on the numbers alone and always
    give the same number of rows: ``pad`` toys of fluctuating size to a common one. It is called for
    one toy first, which shows their shape, and then for as many chunks at a time as there are
    devices, or cores that take one each (few features on a CPU). The points of a pool go to the
    device once, as long as ``draw`` returns the very same array every time (see ``as_points``).
    ``on_part`` hears of every part of a toy's training that is done.
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed must be between 0 and 2**32 - 1, got {seed}")
    if any(int(number) != number or not 0 <= number < 2**32 for number in toys):
        raise ValueError("toys must be whole numbers between 0 and 2**32 - 1")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be at least 1, got {chunk}")
    check_schedule(schedule)
    check_process()
    limit_programs()

    def results() -> Iterator[tuple[Sequence[int], Fit]]:
        if not len(toys):
            return
        one = draw(toys[:1])
        size = chunk or chunk_size(one, len(toys), schedule, config)
        n_chunks = -(-len(toys) // size)
        mesh = _mesh(n_chunks)
        # Devices, or the cores of the one there is, work side by side.
        side_by_side = mesh.size
        if len(jax.local_devices()) == 1:
            n_rows, n_features = one.points.shape[-2:]
            side_by_side = n_lanes(chunk_need(one, schedule, config, n_rows), n_features, size)
        at_once = size * min(side_by_side, n_chunks)
        pool = placed = shape = None
        pace = Pace()
        for begin in range(0, len(toys), at_once):
            numbers = toys[begin : begin + at_once]
            batch = draw(numbers)
            shape = shape or batch.points.shape[-2:]
            _check_drawn(batch, len(numbers), shape)
            # Double precision is for the statistic; the training keeps to config.dtype.
            with jax.enable_x64(True):
                if placed is None or batch.points is not pool or batch.points.ndim == 3:
                    pool, placed = batch.points, place(seed, batch, at_once, schedule, config, mesh)
                done = fit_chunk(
                    seed, numbers, batch, placed, size, at_once, mesh, schedule, config,
                    pace, on_part,
                )  # fmt: skip
            # Chunk by chunk, so that a store keeps the same files for any number of cores.
            each = at_once if mesh.size > 1 else size
            for first in range(0, len(numbers), each):
                part = slice(first, first + each)
                yield numbers[part], jax.tree.map(lambda array, part=part: array[part], done)

    return results()


def _mesh(n_chunks: int) -> Mesh:
    """As many local devices as there are chunks, at most."""
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
