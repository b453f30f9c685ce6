"""How many toys fit into memory.

The size of a chunk is a power of two, and its upper limit usually fits into memory. So two runs on
similar machines choose the same size. This matters: with one chunk size toys agree to the last bit,
with different ones only up to rounding.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from sparker.engine.candidates import LANDMARKS, MAX_DATA, SHARED
from sparker.engine.config import FitConfig
from sparker.engine.distances import MAX_DIRECT_FEATURES
from sparker.engine.sample import TwoSample
from sparker.engine.widths import Schedule
from sparker.system.machine import free_memory, n_cores

MAX_TOYS = {"cpu": 64}
MAX_TOYS_ELSEWHERE = 256
"""Past these sizes a chunk gains no speed: the processor, or the accelerator, is full already."""

MAX_ROWS = {"cpu": 200_000}
MAX_ROWS_IN_LANES = 2**20
"""Rows of all toys of a chunk together: with more, arrays do not stay in the caches. Where steps
take few rows at a time anyway, the limit is larger, since toys of a chunk share the kernel values
of a scan."""

MIN_TOYS = 2
"""A chunk of one is no cheaper than a chunk of two, and on CPUs slower: XLA's sums over a single
row are not vectorised."""

SCAN_VALUES = {"cpu": 2**21}
SCAN_VALUES_ELSEWHERE = 2**26
"""Kernel values that a scan holds at once, of all toys of a chunk together."""

SCAN_ARRAYS = 6
"""Arrays that a block of the scan needs: distances, two kernels and their products."""

USABLE = 0.6
"""Share of the free memory that a chunk may use; the rest is left for the allocator."""


def in_lanes(n_features: int) -> bool:
    """Whether a chunk keeps one core busy, and not all of them: few features on a CPU."""
    return jax.default_backend() == "cpu" and n_features <= MAX_DIRECT_FEATURES


class Need(NamedTuple):
    """The bytes that a chunk takes: a fixed part, and a part for each toy."""

    fixed: float
    each: float

    def room(self, free: float) -> float:
        """How many toys fit."""
        return (USABLE * free - self.fixed) / self.each


def n_lanes(need: Need, n_features: int, chunk: int = MIN_TOYS) -> int:
    """How many chunks of so many toys run side by side on one CPU: one a core, if they fit."""
    if not in_lanes(n_features):
        return 1
    return max(1, min(n_cores(), int(need.room(free_memory()) // chunk)))


def chunk_need(sample: TwoSample, schedule: Schedule, config: FitConfig, n_rows: int) -> Need:
    """What a chunk takes, of toys like this sample with so many rows."""
    n_features, own_points = sample.points.shape[-1], sample.points.ndim == 3
    itemsize = np.dtype(config.dtype).itemsize
    each = toy_bytes(n_rows, n_features, config.n_kernels, len(schedule.read_off), itemsize)
    points = points_bytes(n_rows, n_features, itemsize)
    centred = n_rows * n_features * sample.points.dtype.itemsize
    fixed = points + centred
    if own_points:  # which also take memory where they are drawn
        fixed, each = 0, each + points + 2 * centred
    if len(schedule.explore):
        each += scan_bytes(n_rows, n_features, config.n_candidates, itemsize, own_points)
        fixed += SCAN_ARRAYS * max(n_rows, _scan_values()) * itemsize
    return Need(fixed, each)


def chunk_size(sample: TwoSample, n_toys: int, schedule: Schedule, config: FitConfig) -> int:
    """How many toys like this sample to train at once on each device, or each core of a CPU."""
    n_rows, n_features = sample.points.shape[-2:]
    n_devices = len(jax.local_devices())
    free = free_memory(n_devices)
    need_of = functools.partial(chunk_need, sample, schedule, config)
    check_rows(need_of, n_rows, free, f"fits with {n_features} features")
    need = need_of(n_rows)
    lanes = n_lanes(need, n_features) if n_devices == 1 else 1
    most = most_toys()
    if jax.default_backend() in MAX_ROWS:
        rows = MAX_ROWS_IN_LANES if in_lanes(n_features) else MAX_ROWS[jax.default_backend()]
        most = max(min(most, rows // n_rows), MIN_TOYS)
    need = need._replace(each=need.each * lanes)
    return toys_that_fit(-(-n_toys // (n_devices * lanes)), need, most=most, free=free)


def most_toys() -> int:
    """The largest number of toys of a chunk on this device."""
    return MAX_TOYS.get(jax.default_backend(), MAX_TOYS_ELSEWHERE)


def toys_that_fit(n_toys: int, need: Need, *, most: int, free: float) -> int:
    """The largest power of two of toys that fits."""
    wanted = max(1 << (n_toys - 1).bit_length(), MIN_TOYS)
    return 1 << (int(min(need.room(free), most, wanted)).bit_length() - 1)


def check_rows(need_of: Callable[[int], Need], n_rows: int, free: float, what: str) -> None:
    """Refuse more rows than the fewest toys of a chunk have room for; say how many fit."""
    need = need_of(n_rows)
    if need.room(free) >= MIN_TOYS:
        return
    fit = n_rows
    while fit and need_of(fit).room(free) < MIN_TOYS:
        fit = int(0.99 * fit)
    needed = (need.fixed + MIN_TOYS * need.each) / USABLE
    remedy = f"take a uniform random sample of the larger one, so that both have {fit:,} together"
    raise MemoryError(
        f"{what} need about {needed / 2**30:.1f} GiB for the {n_rows:,} rows of both samples, and "
        f"{free / 2**30:.1f} GiB are free; {remedy if fit else 'take a machine with more memory'}"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the machine, or the device, has no memory left."""
    on_device = isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)
    return on_device or isinstance(error, MemoryError)


def toy_bytes(n_rows: int, n_features: int, n_kernels: int, n_widths: int, itemsize: int) -> int:
    """What training one toy takes beside the points.

    For each kernel four arrays of N (distance, value, activation, response), its component in
    double precision, and either its differences in each feature or its product with the points; a
    few for the sample; and the models read off. A test checks that the compiler allocates no more.
    """
    for_distances = n_features if n_features <= MAX_DIRECT_FEATURES else 1
    rows = ((6 + for_distances) * n_kernels + 10) * n_rows
    models = (2 * n_widths + 10) * n_kernels * (n_features + 1)
    return (rows + models) * itemsize


def scan_bytes(
    n_rows: int, n_features: int, n_candidates: int, itemsize: int, own_points: bool
) -> int:
    """What a scan takes beside the block of kernel values: sums, candidates, landmarks."""
    looked_at = n_candidates if own_points else SHARED * n_candidates
    numbers = 16 * n_rows + looked_at * (n_features + 32)
    if own_points:
        numbers += min(MAX_DATA, n_rows) * (n_features + 8) + LANDMARKS[0] * n_features
        numbers += SCAN_ARRAYS * n_rows  # at least one candidate at a time
    return numbers * itemsize


def scan_block(n_rows: int) -> int:
    """How many candidates are looked at at a time, if each has so many kernel values."""
    return max(1, _scan_values() // n_rows)


def _scan_values() -> int:
    return SCAN_VALUES.get(jax.default_backend(), SCAN_VALUES_ELSEWHERE)


def points_bytes(n_rows: int, n_features: int, itemsize: int) -> int:
    """What the points take in training and again, in double precision, in the evaluation.

    Each time as given, feature by feature, and while their norms are summed.
    """
    return 3 * n_rows * n_features * (itemsize + 8)
