"""Memory: what a chunk is planned to take is what the compiler then allocates, or less."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sparker
from sparker.engine import batch, memory, programs, train
from sparker.engine.candidates import SHARED, Candidates
from sparker.system import machine

GIB = 2**30
CIFAR = {"n_rows": 110_000, "n_features": 1000, "n_kernels": 5, "n_widths": 10, "itemsize": 4}


@pytest.mark.parametrize(
    ("n_rows", "d", "n_kernels", "own", "competition", "n_explored"),
    [
        (9_000, 1, 5, False, sparker.engine.softmax, 0),
        (9_000, 1, 5, False, sparker.engine.softmax, 10),
        (9_000, 4, 3, False, sparker.engine.independent, 0),
        (9_000, 4, 3, True, sparker.engine.softmax, 10),
        (5_000, 60, 8, False, sparker.engine.softmax, 0),
        (5_000, 60, 8, False, sparker.engine.independent, 10),
        (500, 400, 1, True, sparker.engine.softmax, 0),
        (500, 400, 1, True, sparker.engine.softmax, 10),
    ],
)
def test_the_plan_covers_what_the_compiler_allocates(
    n_rows, d, n_kernels, own, competition, n_explored
):
    n_toys, n_widths = 8, 10
    config = sparker.FitConfig(n_kernels=n_kernels, competition=competition)
    allocated = max(allocations(config, n_toys, n_rows, d, n_widths, n_explored, own))
    planned = n_toys * memory.toy_bytes(n_rows, d, n_kernels, n_widths, 4)
    planned += memory.points_bytes(n_rows, d, 4) * (n_toys if own else 1)
    if n_explored:
        planned += n_toys * memory.scan_bytes(n_rows, d, config.n_candidates, 4, own)
        planned += memory.SCAN_ARRAYS * memory.SCAN_VALUES["cpu"] * 4
    assert allocated <= planned
    assert planned <= 4 * allocated  # a plan that is far too careful would waste the machine


def allocations(config, n_toys, n_rows, d, n_widths, n_explored, own):
    """What each of a fit's programs allocates, in bytes."""
    shape = jax.ShapeDtypeStruct
    points = (n_toys, n_rows, d) if own else (n_rows, d)
    samples = sparker.engine.TwoSample(
        *(shape(s, jnp.float32) for s in (points, *[(n_toys, n_rows)] * 2))
    )
    n_steps = 100
    steps = train.Steps(
        shape((n_steps,), jnp.float32), shape((n_widths,), jnp.int32), shape((n_steps,), jnp.int32)
    )
    explored = shape((n_explored,), jnp.int32)
    spans = shape((n_explored or train.N_STAGES, 2), jnp.int32)
    n_looked_at = config.n_candidates if own else SHARED * config.n_candidates
    candidates = None
    if n_explored:
        each = (n_toys, n_explored) if own else (n_explored,)
        looked_at = (*each, min(n_rows, n_looked_at))
        candidates = Candidates(shape(looked_at, jnp.int32), shape(looked_at, jnp.float32))
    key, toys = jax.random.key(0), np.arange(n_toys, dtype=np.uint32)
    one_of = {True: (candidates, None), False: (None, candidates)}[own]
    with jax.enable_x64(True):
        start = functools.partial(programs.start_chunk, design=config.design)
        progress, _ = jax.eval_shape(start, toys, samples, (key, steps, explored))
        numbers = shape((2,), jnp.int32)
        for part, each, shared in (
            (programs.start_chunk, toys, (key, steps, explored)),
            (
                programs.run_stages,
                (progress, one_of[0]),
                (steps, spans, numbers, one_of[1], config.rates),
            ),
            (programs.finish_chunk, progress, (steps, explored)),
        ):
            sizes = (
                programs.run_part.lower(
                    each, samples, shared, part=part, design=config.design, mesh=batch._mesh(1)
                )
                .compile()
                .memory_analysis()
            )
            yield (
                sizes.temp_size_in_bytes + sizes.argument_size_in_bytes + sizes.output_size_in_bytes
            )


def like(n_rows, n_features, *, n_kernels=5, n_widths=10, itemsize=4, own=False):
    """A batch of this shape that takes no memory, and how it is fitted."""
    shape = (1, n_rows, n_features) if own else (n_rows, n_features)
    points, weight = (np.broadcast_to(np.float32(0), s) for s in (shape, (1, n_rows)))
    assert itemsize == points.itemsize
    plan = sparker.engine.schedule(2.0, 1.0, n_widths=n_widths)
    config = sparker.FitConfig(n_kernels=n_kernels)
    return sparker.engine.TwoSample(points, weight, weight), plan, config


def chunk_size(n_toys, **shape):
    sample, plan, config = like(**shape)
    return memory.chunk_size(sample, n_toys, plan, config)


@pytest.mark.parametrize(("gib", "own_points"), [(8, False), (24, False), (40, True), (200, True)])
def test_three_hundred_large_toys_never_exceed_the_machine(gib, own_points, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda n: gib * GIB)
    size = chunk_size(300, **CIFAR, own=own_points)
    toy = memory.toy_bytes(*CIFAR.values())
    points = memory.points_bytes(110_000, 1000, 4)
    drawn = 110_000 * 1000 * 4
    total = size * (toy + points + 2 * drawn) if own_points else size * toy + points + drawn
    assert total <= gib * GIB


def test_too_little_memory_is_said_in_numbers(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda n: GIB)
    message = r"need about \d\.\d GiB for the 110,000 rows .* 1\.0 GiB are free; take a uniform"
    with pytest.raises(MemoryError, match=message) as caught:
        chunk_size(300, **CIFAR)
    found = re.search(r"so that both have ([\d,]+) together", str(caught.value))
    fit = int(found[1].replace(",", ""))
    assert chunk_size(300, **CIFAR | {"n_rows": fit}) == 2
    more = CIFAR | {"n_rows": int(1.02 * fit)}
    with pytest.raises(MemoryError):
        chunk_size(300, **more)


@pytest.mark.parametrize(("n_toys", "size"), [(1, 2), (2, 2), (3, 4), (16, 16), (300, 64)])
def test_sizes_are_powers_of_two_that_fit_the_toys(n_toys, size, monkeypatch):
    monkeypatch.setattr(memory, "n_cores", lambda: 1)
    small = {"n_rows": 100, "n_features": 2, "n_kernels": 5, "n_widths": 10, "itemsize": 4}
    assert jax.default_backend() == "cpu"
    assert chunk_size(n_toys, **small) == size


@pytest.mark.parametrize(
    ("n_rows", "n_features", "size"),
    [(1_000, 8, 64), (22_000, 8, 8), (110_000, 8, 2), (22_000, 2, 32), (110_000, 2, 8)],
)
def test_long_toys_are_trained_few_at_a_time(n_rows, n_features, size):
    shape = {"n_features": n_features, "n_kernels": 5, "n_widths": 10, "itemsize": 4}
    assert chunk_size(300, n_rows=n_rows, **shape) == size


def test_cores_share_memory_and_none_is_needed_that_does_not_fit(monkeypatch):
    shape = {"n_rows": 500_000, "n_features": 4, "n_kernels": 5, "n_widths": 10, "itemsize": 4}
    need = memory.chunk_need(*like(**shape), shape["n_rows"])
    monkeypatch.setattr(memory, "n_cores", lambda: 64)
    for toys, lanes in ((7, 3), (2.5, 1), (1000, 64)):
        free = (need.fixed + toys * need.each) / memory.USABLE
        monkeypatch.setattr(memory, "free_memory", lambda n=1, free=free: free / n)
        assert memory.n_lanes(need, 4) == lanes
        size = chunk_size(300, **shape)
        assert size * lanes <= toys
        assert memory.n_lanes(need, 4, size) == lanes
    assert memory.n_lanes(need, 4, chunk=256) == 3
    assert memory.n_lanes(need, 8) == 1  # with more features a chunk has all cores
    monkeypatch.setattr(memory, "free_memory", lambda n=1: need.fixed)
    with pytest.raises(MemoryError, match="500,000 rows"):
        chunk_size(300, **shape)


@pytest.mark.parametrize(
    ("membership", "files", "free"),
    [
        (
            "0::/\n",
            {
                "memory.max": "1000\n",
                "memory.current": "700\n",
                "memory.stat": "anon 500\ninactive_file 150\n",
            },
            450,
        ),
        (
            "0::/job/step\n",
            {
                "job/memory.max": "1000",
                "job/memory.current": "400",
                "job/memory.stat": "inactive_file 0",
                "job/step/memory.max": "max",
            },
            600,
        ),
        (
            "3:cpu:/box\n4:memory:/box\n",
            {
                "memory/box/memory.limit_in_bytes": "900",
                "memory/box/memory.usage_in_bytes": "200",
                "memory/box/memory.stat": "total_inactive_file 50",
            },
            750,
        ),
    ],
    ids=["container", "limit further up", "version 1"],
)
def test_control_groups_limit_what_is_free(tmp_path, membership, files, free):
    groups, mount = tmp_path / "cgroup", tmp_path / "fs"
    groups.write_text(membership)
    for name, content in files.items():
        path = mount / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert machine.free_in_container(groups, mount) == free


def test_no_container_no_limit(tmp_path):
    assert machine.free_in_container(tmp_path / "none", tmp_path) == float("inf")
