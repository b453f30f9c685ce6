"""Training a chunk of toys: their points on the device, its programs one after the other."""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from queue import SimpleQueue
from threading import Event
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding

from sparker.engine.candidates import SHARED, Candidates, random_key
from sparker.engine.config import FitConfig
from sparker.engine.distances import power_of_two_near
from sparker.engine.fit import Fit, as_fit
from sparker.engine.programs import (
    EACH,
    SAME,
    choose_shared,
    finish_chunk,
    run_part,
    run_stages,
    start_chunk,
)
from sparker.engine.sample import AnyArray, TwoSample
from sparker.engine.train import OnPart, spans_of, steps_of
from sparker.engine.widths import Schedule

TICK = 0.2
"""Seconds after which the thread that waits looks again how far the others are."""


class Pace:
    """How many stages to train at a time, so that it shows about once a second that it goes on."""

    SECONDS = 1.0

    def __init__(self) -> None:
        self._n = 1

    def parts(self, n_stages: int) -> Iterator[tuple[int, int]]:
        """Parts of so many stages, by their numbers, as large as the time of the last allows."""
        done = 0
        while done < n_stages:
            end, began = min(done + self._n, n_stages), time.perf_counter()
            yield done, end
            each = (time.perf_counter() - began) / (end - done)
            done, self._n = end, max(1, int(self.SECONDS / max(each, 1e-6)))


class Placed(NamedTuple):
    """Points on the device, relative to an origin among them and in a unit of their size.

    The fit does not depend on where zero is, nor on a unit that all features share. But rounding
    does: an offset uses up digits, and the square of a very small or large number underflows or
    overflows. The unit is a power of two, so dividing by it is exact.
    """

    points: Array  # (N, d), the same on every device, or (B, N, d) per toy
    origin: np.ndarray  # (1, d), or (B, 1, d) per toy
    unit: float
    candidates: Candidates | None
    """Where all toys of a pool look; none yet where toys have points of their own."""


def place(
    seed: int, batch: TwoSample, n_toys: int, schedule: Schedule, config: FitConfig, mesh: Mesh
) -> Placed:
    """Bring the points of a batch to the devices."""
    points = np.asarray(batch.points)
    own = points.ndim == 3
    # From the points alone: the weights of the toys in a chunk must not matter.
    origin = points.mean(-2, np.float64, keepdims=True).astype(points.dtype)
    unit = power_of_two_near(schedule.sigma[0])
    near = points - origin
    near /= points.dtype.type(unit)
    near = np.asarray(lengthen(near, n_toys) if own else near, config.dtype)
    there = jax.device_put(near, NamedSharding(mesh, EACH if own else SAME))
    n_widths, n_points, candidates = len(schedule.explore), points.shape[-2], None
    if n_widths and not own and n_points <= SHARED * config.n_candidates:
        # Everywhere: nothing to choose or to compile.
        rows = np.broadcast_to(np.arange(n_points, dtype=np.int32), (n_widths, n_points))
        candidates = Candidates(rows, np.zeros(rows.shape, config.dtype))
    elif n_widths and not own:
        sigma = jnp.asarray(schedule.sigma[schedule.explore] / unit, config.dtype)
        design = config.design_for(schedule)
        candidates = choose_shared(random_key(seed), there, sigma, design=design)
    return Placed(there, origin, unit, candidates)


def fit_chunk(
    seed: int,
    numbers: Sequence[int],
    batch: TwoSample,
    placed: Placed,
    chunk: int,
    at_once: int,
    mesh: Mesh,
    schedule: Schedule,
    config: FitConfig,
    pace: Pace,
    on_part: OnPart,
) -> Fit:
    """Train ``at_once`` toys in chunks, side by side; a last one is filled up with no weight."""
    shared_out = NamedSharding(mesh, EACH)
    toys = lengthen(np.asarray(numbers, np.uint32), at_once)
    both = [lengthen(weight, at_once).astype(config.dtype) for weight in batch[1:]]
    steps = jax.tree.map(jnp.asarray, steps_of(schedule, placed.unit, config.dtype))
    explored = np.asarray(schedule.explore, np.int32)
    spans = jnp.asarray(spans_of(schedule), jnp.int32)
    rates = config.rates
    run = functools.partial(run_part, design=config.design_for(schedule), mesh=mesh)
    stop = Event()

    def trained(part: slice, on_part: OnPart) -> Fit:
        with jax.enable_x64(True):  # every thread has a switch of its own
            n_toys = len(numbers[part])  # without those that only fill up
            points = placed.points[part] if placed.points.ndim == 3 else placed.points
            of_toys, *weights = (jax.device_put(array[part], shared_out) for array in (toys, *both))
            samples = TwoSample(points, *weights)
            shared: Any = (random_key(seed), steps, explored)
            progress, own = run(of_toys, samples, shared, part=start_chunk)
            for stages in pace.parts(len(spans)):
                if stop.is_set():
                    raise InterruptedError("another chunk was stopped")
                shared = (steps, spans, jnp.asarray(stages, jnp.int32), placed.candidates, rates)
                progress = run((progress, own), samples, shared, part=run_stages)
                jax.block_until_ready(progress)  # type: ignore[no-untyped-call]
                # The finish is one more stage: a toy is done when it comes back.
                on_part(n_toys * (stages[1] - stages[0]) / (len(spans) + 1))
            done = run(progress, samples, (steps, explored), part=finish_chunk)
            return jax.block_until_ready(done)  # type: ignore[no-untyped-call]

    if mesh.size > 1 or at_once == chunk:
        done = trained(slice(None), on_part)
    else:
        slices = [slice(begin, begin + chunk) for begin in range(0, len(numbers), chunk)]
        each = side_by_side(trained, slices, stop, on_part)
        done = jax.tree.map(lambda *arrays: np.concatenate(arrays), *each)
    return as_fit(done, len(numbers), placed.origin, placed.unit, schedule)


def side_by_side(
    trained: Callable[[slice, OnPart], Fit],
    slices: Sequence[slice],
    stop: Event,
    on_part: OnPart,
) -> list[Fit]:
    """Chunks in threads of their own, while this one waits.

    So it can be interrupted, and then stops the others after the part they are at; and whoever
    wants to know how far they are hears it from this thread alone.
    """
    done: SimpleQueue[float] = SimpleQueue()
    with ThreadPoolExecutor(len(slices)) as cores:
        futures = [cores.submit(trained, part, done.put) for part in slices]
        try:
            while waiting := wait(futures, timeout=TICK, return_when=FIRST_EXCEPTION).not_done:
                for future in set(futures) - waiting:
                    future.result()  # or its error, before the others have finished
                while not done.empty():
                    on_part(done.get())
            return [future.result() for future in futures]
        finally:
            stop.set()  # where all are done already, nobody looks


def lengthen(array: AnyArray, length: int) -> np.ndarray:
    """Fill up the last chunk with toys of no weight, so that all chunks run the same program."""
    if len(array) == length:
        return np.asarray(array)
    return np.pad(array, [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1))
