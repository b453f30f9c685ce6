"""How many toys fit into the memory there is.

The size is a power of two under a cap that memory rarely reaches, so that two runs on like machines
choose the same one: toys agree to the last bit within a chunk size and to rounding across sizes.
"""

from pathlib import Path

import jax
import psutil

from sparker.distances import MAX_DIRECT_FEATURES

MOST_TOYS = {"cpu": 16}
MOST_TOYS_ELSEWHERE = 256
"""Past these sizes a chunk gains no speed: caches overflow, or the accelerator is full already."""

FEWEST_TOYS = 2
"""A chunk of one is no cheaper than a chunk of two, and on CPUs slower: XLA's sums over a single
row are not vectorised."""

USABLE = 0.6
"""Share of the free memory that a chunk may plan with; the rest is for the allocator's slack."""


def toys_per_chunk(
    n_toys: int,
    *,
    n_rows: int,
    n_features: int,
    n_kernels: int,
    n_widths: int,
    itemsize: int,
    own_points: bool,
    free_bytes: float | None = None,
) -> int:
    """The number of toys to train at once."""
    toy = toy_bytes(n_rows, n_features, n_kernels, n_widths, itemsize)
    points = points_bytes(n_rows, n_features, itemsize)
    # Points of a toy's own also take room where they are drawn and centred.
    fixed, each = (0, toy + 2 * points) if own_points else (points, toy)
    free = free_memory() if free_bytes is None else free_bytes
    room = (USABLE * free - fixed) / each
    if room < FEWEST_TOYS:
        needed = (fixed + FEWEST_TOYS * each) / USABLE
        raise MemoryError(
            f"fits of {n_rows} rows with {n_features} features need about "
            f"{needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free; take fewer rows or a "
            "machine with more memory"
        )
    cap = MOST_TOYS.get(jax.default_backend(), MOST_TOYS_ELSEWHERE)
    return _power_of_two_below(min(room, cap, max(_power_of_two_from(n_toys), FEWEST_TOYS)))


def toy_bytes(n_rows: int, n_features: int, n_kernels: int, n_widths: int, itemsize: int) -> int:
    """What training one toy takes beside the points.

    For each kernel four arrays of N (distance, value, share, response) and either its differences
    in each feature or its product with the points; a few for the sample; and the models read off.
    What the compiler really allocates stays below; a test holds it to that.
    """
    for_distances = n_features if n_features <= MAX_DIRECT_FEATURES else 1
    rows = ((4 + for_distances) * n_kernels + 10) * n_rows
    models = (2 * n_widths + 10) * n_kernels * (n_features + 1)
    return (rows + models) * itemsize


def points_bytes(n_rows: int, n_features: int, itemsize: int) -> int:
    """What the points take: as given, feature by feature, and while their norms are summed."""
    return 4 * n_rows * n_features * itemsize


def free_memory() -> float:
    """Bytes free on the default device: its own memory, or the machine's within its container."""
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return stats["bytes_limit"] - stats["bytes_in_use"]
    return min(psutil.virtual_memory().available, _free_in_container())


def _free_in_container() -> float:
    """What a Linux control group leaves to this process; no limit where there is none."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = (group / "memory.current").read_text().strip()
        return float("inf") if limit == "max" else int(limit) - int(used)
    except (OSError, ValueError):
        return float("inf")


def _power_of_two_below(number: float) -> int:
    return 1 << (int(number).bit_length() - 1)


def _power_of_two_from(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()
