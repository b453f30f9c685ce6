"""Memory: what a chunk is planned to take is what the compiler then allocates, or less."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sparker
from sparker import batch, memory

GIB = 2**30
CIFAR = {"n_rows": 110_000, "n_features": 1000, "n_kernels": 5, "n_widths": 10, "itemsize": 4}


@pytest.mark.parametrize("competition", [sparker.softmax, sparker.independent])
@pytest.mark.parametrize(
    ("n_rows", "d", "n_kernels", "own"),
    [(9_000, 1, 5, False), (9_000, 4, 3, False), (5_000, 60, 8, False), (500, 400, 1, True)],
)
def test_the_plan_covers_what_the_compiler_allocates(n_rows, d, n_kernels, own, competition):
    n_toys, n_widths = 8, 10
    config = sparker.FitConfig(n_kernels=n_kernels, competition=competition)
    points = (n_toys, n_rows, d) if own else (n_rows, d)
    program = batch._train_chunk.lower(
        jax.random.key(0),
        np.arange(n_toys, dtype=np.uint32),
        sparker.TwoSample(
            *(jax.ShapeDtypeStruct(s, jnp.float32) for s in (points, *[(n_toys, n_rows)] * 2))
        ),
        jax.ShapeDtypeStruct((100,), jnp.float32),
        jax.ShapeDtypeStruct((n_widths,), jnp.int32),
        config.rates,
        design=config.design,
    ).compile()
    sizes = program.memory_analysis()
    allocated = sizes.temp_size_in_bytes + sizes.argument_size_in_bytes + sizes.output_size_in_bytes
    planned = n_toys * memory.toy_bytes(n_rows, d, n_kernels, n_widths, 4)
    planned += memory.points_bytes(n_rows, d, 4) * (n_toys if own else 1)
    assert allocated <= planned
    assert planned <= 3 * allocated  # a plan that is far too careful would waste the machine


@pytest.mark.parametrize("gib", [4, 24, 100])
@pytest.mark.parametrize("own_points", [False, True])
def test_three_hundred_large_toys_never_exceed_the_machine(gib, own_points):
    try:
        size = memory.toys_per_chunk(300, **CIFAR, own_points=own_points, free_bytes=gib * GIB)
    except MemoryError:
        assert own_points, "a shared pool of this size fits into 4 GiB"
        assert gib <= 4
        return
    toy = memory.toy_bytes(*CIFAR.values())
    points = memory.points_bytes(110_000, 1000, 4)
    total = size * (toy + 2 * points) if own_points else size * toy + points
    assert total <= gib * GIB


def test_too_little_memory_is_said_in_numbers():
    with pytest.raises(MemoryError, match=r"110000 rows .* need about \d\.\d GiB, 1\.0 GiB are"):
        memory.toys_per_chunk(300, **CIFAR, own_points=False, free_bytes=GIB)


@pytest.mark.parametrize(("n_toys", "size"), [(1, 2), (2, 2), (3, 4), (16, 16), (300, 16)])
def test_sizes_are_powers_of_two_that_fit_the_toys(n_toys, size):
    small = {"n_rows": 100, "n_features": 2, "n_kernels": 5, "n_widths": 10, "itemsize": 4}
    assert jax.default_backend() == "cpu"
    assert memory.toys_per_chunk(n_toys, **small, own_points=False) == size


def test_a_container_limits_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "_free_in_container", lambda: 12345.0)
    assert memory.free_memory() == 12345.0
