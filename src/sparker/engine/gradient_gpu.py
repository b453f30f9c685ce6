"""The same gradient on a GPU: one kernel that reads every point once.

XLA reads the points once for each sum, so the sums of five kernels are dozens of passes over
memory. Here one pass makes all sums, of the same ``gradient.terms`` that XLA compiles elsewhere. It
was measured to be two to three times faster (benchmarks/README.md).

Toys are the axis that ``vmap`` adds to the grid. Within a toy each program takes a part of the rows
and writes its sums to a place of its own, so that the order in which programs run changes nothing.
"""

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from sparker.engine.config import Design
from sparker.engine.distances import MAX_DIRECT_FEATURES, Features, sum_of
from sparker.engine.ensemble import Ensemble
from sparker.engine.gradient import Gradient, terms
from sparker.engine.sample import TwoSample

LANES = 256
"""Rows that a program works on at a time."""
WARPS = 4
"""Warps of a program."""
MAX_ROWS = 4096
"""Rows of one program, block after block: sums across lanes are taken once, at its end."""
MAX_SUMS = 64
"""With more sums than this a program runs out of registers."""


def pays(n_kernels: int, n_features: int, dtype: Any) -> bool:
    """Whether there is such a kernel for this device and shape."""
    each = n_features + 1 if n_features <= MAX_DIRECT_FEATURES else 2
    return (
        jax.default_backend() == "gpu"
        and dtype == jnp.float32
        and n_kernels * each <= MAX_SUMS
        and _has_triton()
    )


def _has_triton() -> bool:
    """JAX plans to remove it one day; GPUs then use XLA's passes."""
    try:
        return importlib.util.find_spec("jax.experimental.pallas.triton") is not None
    except ModuleNotFoundError:
        return False


class Rows(NamedTuple):
    """How the rows of a toy are divided among programs."""

    programs: int
    blocks: int  # of LANES rows, each program

    @property
    def each(self) -> int:
        """Rows of a program."""
        return self.blocks * LANES

    @property
    def total(self) -> int:
        """Rows of all, some of them padding."""
        return self.programs * self.each


def rows_of(n_rows: int) -> Rows:
    """Programs of one size, with as little padding as whole blocks allow."""
    programs = -(-n_rows // MAX_ROWS)
    return Rows(programs, -(-n_rows // (programs * LANES)))


def gradient_of(sample: TwoSample, features: Features, design: Design) -> Gradient:
    """``gradient.gradient`` of this sample, as a function of the model."""
    rows = rows_of(features.x.shape[1])
    missing = rows.total - features.x.shape[1]
    x = jnp.pad(features.x, ((0, 0), (0, missing)))
    reference, data = (jnp.pad(jnp.asarray(weight), (0, missing)) for weight in sample[1:])
    if len(x) <= MAX_DIRECT_FEATURES:
        return lambda model: _direct(model, x, reference, data, rows, design)
    if design.rounded:
        x = x.astype(jnp.bfloat16)
    # The norms of the rounded points: a distance is then that of slightly moved points, and not a
    # difference of rounded and exact numbers.
    norms = jnp.sum(x.astype(jnp.float32) ** 2, 0)
    return lambda model: _by_products(model, x, norms, reference, data, rows, design)


def _direct(
    model: Ensemble, x: Array, reference: Array, data: Array, rows: Rows, design: Design
) -> tuple[Array, Array]:
    n_kernels, d = model.mu.shape

    def block(
        at: Any, mu: Any, a: Any, sigma: Any, x: Any, reference: Any, data: Any
    ) -> list[Array]:
        columns = [x[j, at] for j in range(d)]
        away = [[columns[j] - mu[i, j] for j in range(d)] for i in range(n_kernels)]
        squared = [sum_of(r**2 for r in away_i) for away_i in away]
        sample = TwoSample(columns[0], reference[at], data[at])
        d_a, pull = terms(a, squared, sigma[0], sample, design)
        return [*d_a, *(w * r for w, away_i in zip(pull, away, strict=True) for r in away_i)]

    points = (x, reference, data)
    _, sums = _pass(block, _parameters(model, model.mu), points, n_kernels * (d + 1), rows)
    d_a, d_mu = sums[:n_kernels], sums[n_kernels:].reshape(n_kernels, d)
    return d_mu / model.sigma**2, d_a


def _by_products(
    model: Ensemble,
    x: Array,  # (d, N)
    norms: Array,
    reference: Array,
    data: Array,
    rows: Rows,
    design: Design,
) -> tuple[Array, Array]:
    n_kernels = len(model.mu)
    mu = jnp.asarray(model.mu).astype(x.dtype)
    exact = mu.astype(jnp.float32)

    def multiply(left: Array, right: Array) -> Array:
        return jnp.matmul(
            left, right, precision=design.precision, preferred_element_type=jnp.float32
        )

    def block(at: Any, *inside: Any) -> list[Array]:
        mu_norms, a, sigma, product, norms, reference, data, out = inside
        here = norms[at]
        squared = [
            jnp.maximum(here - 2 * product[i, at] + mu_norms[i], 0) for i in range(n_kernels)
        ]
        sample = TwoSample(here, reference[at], data[at])
        d_a, pull = terms(a, squared, sigma[0], sample, design)
        rounded = [w.astype(x.dtype) for w in pull]
        for i, w in enumerate(rounded):
            out[i, at] = w
        return [*d_a, *(w.astype(jnp.float32) for w in rounded)]

    points = (multiply(mu, x), norms, reference, data)
    pull_like = _array(n_kernels, rows.total, dtype=x.dtype)
    parameters = _parameters(model, jnp.sum(exact**2, -1))
    (pull,), sums = _pass(block, parameters, points, 2 * n_kernels, rows, (pull_like,))
    d_a, total = sums.reshape(2, n_kernels)
    d_mu = (multiply(pull, x.T) - exact * total[:, None]) / model.sigma**2
    return d_mu, d_a


def _parameters(model: Ensemble, mu: Any) -> tuple[Array, Array, Array]:
    return jnp.asarray(mu), jnp.asarray(model.a), jnp.asarray(model.sigma)[None]


def _array(*shape: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def _pass(
    block: Callable[..., list[Array]],
    parameters: tuple[Array, ...],
    points: tuple[Array, ...],  # of (..., N)
    n_sums: int,
    rows: Rows,
    written: tuple[Any, ...] = (),  # shapes and types of arrays (..., N) that ``block`` writes
) -> tuple[list[Array], Array]:
    """One pass over the rows: what ``block`` writes, and the sums of the terms that it returns."""
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton  # both slow to import, and for GPUs only

    def program(*references: Any) -> None:
        *inside, sums = references

        def add(number: Array, so_far: list[Array]) -> list[Array]:
            new = block(pl.ds(number * LANES, LANES), *inside)
            return [total + term for total, term in zip(so_far, new, strict=True)]

        nothing = [jnp.zeros(LANES, jnp.float32) for _ in range(n_sums)]
        for i, total in enumerate(jax.lax.fori_loop(0, rows.blocks, add, nothing)):
            sums[i] = jnp.sum(total)

    def whole(array: Array) -> pl.BlockSpec:
        return pl.BlockSpec(array.shape, lambda number: (0,) * array.ndim)

    def share(array: Any) -> pl.BlockSpec:
        *before, _ = array.shape
        return pl.BlockSpec((*before, rows.each), lambda number: (*(0 for _ in before), number))

    *out, sums = pl.pallas_call(
        program,
        out_shape=(*written, _array(rows.programs, n_sums)),
        grid=(rows.programs,),
        in_specs=[*map(whole, parameters), *map(share, points)],
        out_specs=(
            *map(share, written),
            pl.BlockSpec((None, n_sums), lambda number: (number, 0)),
        ),
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=2),
        interpret=jax.default_backend() != "gpu",
    )(*parameters, *points)
    return out, jnp.sum(sums, 0)
