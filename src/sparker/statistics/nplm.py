"""NPLM with kernel logistic regression: what the paper calls Falkon.

A log density ratio ``f(x) = sum_m alpha_m k(x, c_m)`` with centres among the points minimises

    sum_R w_R log(1 + e^f) + sum_D log(1 + e^-f) + ridge / 2 * W |f|^2

where W is the sum of all weights and |f| the norm of the kernel's function space. The statistic is
``t = -2 L_NP(f)``, which sees the total count as well, at each of several bandwidths.

Letizia et al., Eur. Phys. J. C 82, 879 (2022), arXiv:2204.02317; several bandwidths: Grosso and
Letizia, arXiv:2408.12296; Falkon: Rudi, Carratino and Rosasco, arXiv:1705.10958, and for the
logistic loss Marteau-Ferey, Bach and Rudi, arXiv:1907.01771.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import sigmoid, softplus
from jax.scipy.linalg import solve_triangular

from sparker.engine.losses import statistic
from sparker.engine.memory import Need, scan_block
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches, on_device
from sparker.statistics.contract import Statistic, rounded, scales
from sparker.statistics.nystrom import (
    EXACT,
    choose_centres,
    distance_quantiles,
    in_blocks,
    to_centres,
    whitening,
)
from sparker.system.numbers import check_positive, check_whole

MAX_STEPS = 200
"""Newton steps. Usually there are four to ten, and some thirty where the samples come apart."""

MAX_PRODUCTS = 200
"""Conjugate-gradient iterations within a step; usually ten to thirty."""

CLOSE = 0.03
"""How far, relative to where it starts, the residual of a step's linear system goes down."""

HALVINGS = 20
"""Of a step, until the loss falls."""

SHARE = 0.1
"""Of what the gradient promises, which a step has to gain; near the minimum it gains half of it."""

NEAR = 0.1
"""While f moves less than that, the loss is a parabola and only a gradient that is mere rounding
leads to a step that gains nothing: no shorter one is tried."""


@dataclass(frozen=True, kw_only=True)
class NPLM(Statistic):
    """Nystrom kernel logistic regression and the extended likelihood ratio it implies."""

    name: ClassVar[str] = "nplm"
    n_centres: int = 1000
    """Kernels, or as many as there are rows."""
    n_bandwidths: int = 5
    """Quantiles of the distances between points, from 1 % to 99 %."""
    ridge: float = 1e-6
    tolerance: float = 1e-6
    """A toy has converged when the square of its Newton decrement, twice what is left to gain in
    the loss, is below; one more step is made then. Where rounding leaves the gradient larger than
    that, it has converged when no step lowers the loss."""

    def __post_init__(self) -> None:
        check_whole("n_centres", self.n_centres)
        check_whole("n_bandwidths", self.n_bandwidths)
        for name in ("ridge", "tolerance"):
            check_positive(name, getattr(self, name))

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Choose the bandwidths."""
        shares = np.linspace(0.01, 0.99, self.n_bandwidths) if self.n_bandwidths > 1 else 0.5
        widths = np.atleast_1d(distance_quantiles(points, shares))
        design = _Regression(int(self.n_centres), float(self.ridge), float(self.tolerance))
        return PreparedBatches(
            settings={"nplm": self, "bandwidths": rounded(widths)},
            start=on_device(lambda batch: design, widths),
            room=self._room,
            component_tests=scales(widths),
        )

    def _room(self, sample: TwoSample) -> Need:
        n, d = sample.points.shape[-2:]
        m = min(self.n_centres, n)
        # The features and copies; factors of each bandwidth and their making; blocks of values.
        fixed = 12 * m * n + m * m * (12 * self.n_bandwidths + 48) + 24 * n * d + 32 * scan_block(1)
        return Need(fixed, 140 * n + 120 * m)


class _Placed(NamedTuple):
    """What the toys of a pool share; the features of one bandwidth are made when it is its turn."""

    points: Array  # (N, d)
    centres: Array  # (M, d)
    real: Array  # (M,) whether it is one; a toy may have fewer rows than centres
    whitening: Array  # (bandwidths, M, M)
    root: Array  # (bandwidths, M, M) S, for weights that add up to 1


class _Regression(NamedTuple):
    n_centres: int
    ridge: float
    tolerance: float

    def place(self, key: Array, points: Array, used: Array, widths: Array) -> _Placed:
        rows = choose_centres(key, used, self.n_centres)
        centres, real = points[rows], used[rows]

        def factors(width: Array) -> tuple[Array, Array]:
            white = whitening(centres, real, width)
            phi = _features(points, centres, real, white, width)
            return white, self._root(phi, used)

        return _Placed(points, centres, real, *jax.lax.map(factors, widths))

    def _root(self, phi: Array, used: Array) -> Array:  # (M, N) -> (M, M)
        """S with ``S^T S`` the inverse Hessian at f = 0, if all rows in use had the same weight.

        No label decides on it. The inverse itself would not stay positive definite in single
        precision where the ridge is small.
        """
        within = phi * used.astype(phi.dtype)
        gram = jnp.matmul(within, phi.T, precision=EXACT).astype(jnp.float64)
        eye = jnp.eye(len(phi))
        factor = jnp.linalg.cholesky(gram / (4 * jnp.sum(used)) + self.ridge * eye)
        return solve_triangular(factor, eye, lower=True).astype(jnp.float32)

    def evaluate(self, placed: _Placed, reference: Array, data: Array, widths: Array) -> Array:
        def one(at: tuple[Array, Array, Array]) -> Array:  # -> (B,)
            width, white, root = at
            phi = _features(placed.points, placed.centres, placed.real, white, width)
            _, f = self.fit(phi, root, reference, data)
            return jax.vmap(lambda *toy: statistic(toy[0], TwoSample(placed.points, *toy[1:])))(
                f, reference, data
            )

        # One bandwidth after the other: the features are the largest thing in memory.
        return jax.lax.map(one, (widths, placed.whitening, placed.root)).T

    def fit(
        self, phi: Array, root: Array, reference: Array, data: Array
    ) -> tuple[Array, Array]:  # (M, N), (M, M), (B, N) twice -> (B, M), (B, N)
        """Damped Newton for all toys at once: coefficients and f, NaN where there is no loss.

        Products with the features are in single precision, which decides how well a step is known.
        What steps add up to, and whether the loss falls, is in double: each step can then correct
        the ones before, and a loss that no step lowers is as low as the products can tell.

        A toy that has converged stays as it is, whatever its company still does.
        """
        single = phi.dtype
        total = jnp.sum(reference + data, 1)
        ridge = (self.ridge * total)[:, None]
        scale = total[:, None].astype(single)

        def project(values: Array) -> Array:  # (B, N) -> (B, M)
            return jnp.matmul(values.astype(single), phi.T, precision=EXACT)

        def spread(coefficients: Array) -> Array:  # (B, M) -> (B, N)
            return jnp.matmul(coefficients, phi, precision=EXACT)

        def precondition(v: Array) -> Array:
            half = jnp.matmul(v, root.T, precision=EXACT)
            return jnp.matmul(half, root, precision=EXACT) / scale

        def loss(beta: Array, f: Array) -> Array:  # -> (B,)
            terms = reference * softplus(f) + data * softplus(-f)
            return jnp.sum(terms, 1) + 0.5 * ridge[:, 0] * jnp.sum(beta**2, 1)

        def step(state: _State) -> _State:
            beta, f, active, n = state
            above, below = sigmoid(f), sigmoid(-f)
            gradient = (project(reference * above - data * below) + ridge * beta).astype(single)
            curvature = ((reference + data) * above * below).astype(single)

            def bend(p: Array) -> tuple[Array, Array]:
                along = spread(p)
                # A sum of squares, which rounding does not make negative.
                square = jnp.sum(curvature * along**2, 1) + ridge[:, 0] * jnp.sum(p**2, 1)
                image = project(curvature * along) + ridge.astype(single) * p
                return image, square[:, None].astype(single)

            direction = _solve(bend, precondition, -gradient)
            towards = spread(direction)
            promised = -jnp.sum(gradient * direction, 1).astype(jnp.float64)  # decrement, squared
            now = loss(beta, f)
            tries = jnp.where(jnp.max(jnp.abs(towards), 1) < NEAR, 1, HALVINGS)

            def shorten(search: _Search) -> _Search:
                size, found, k = search
                there = size[:, None]
                after = loss(beta + there * direction, f + there * towards)
                found = found | ((after <= now - SHARE * size * promised) & (k < tries))
                return _Search(jnp.where(found, size, size / 2), found, k + 1)

            size, found, _ = jax.lax.while_loop(
                lambda search: (active & ~search.found & (search.k < tries)).any(),
                shorten,
                _Search(jnp.ones_like(now), jnp.zeros_like(active), 0),
            )
            lost = ~jnp.isfinite(now + promised)
            size = jnp.where(lost, jnp.nan, size)[:, None]
            moves = (active & (found | lost))[:, None]
            return _State(
                jnp.where(moves, beta + size * direction, beta),
                jnp.where(moves, f + size * towards, f),
                active & found & (promised > self.tolerance),
                n + 1,
            )

        start = _State(
            jnp.zeros((len(data), len(phi))),
            jnp.zeros(data.shape),
            jnp.ones(len(data), bool),
            0,
        )
        # Whoever runs out of steps keeps the lowest loss it has reached.
        end = jax.lax.while_loop(
            lambda state: state.active.any() & (state.n < MAX_STEPS), step, start
        )
        return end.beta, end.f


class _State(NamedTuple):
    beta: Array  # (B, M)
    f: Array  # (B, N)
    active: Array  # (B,)
    n: Any


class _Search(NamedTuple):
    size: Array  # (B,)
    found: Array  # (B,)
    k: Any


def _features(
    points: Array, centres: Array, real: Array, white: Array, width: Array
) -> Array:  # (N, d), (M, d), (M,), (M, M) -> (M, N)
    """Nystrom features: made in double precision, kept in single.

    Whitening subtracts kernel values that nearly agree. Their rounding would become a feature that
    the fit makes use of.
    """

    def some(x: Array) -> Array:  # (d, block) -> (M, block)
        kernel = to_centres(x.T, centres, real, width)
        return jnp.matmul(white, kernel, precision=EXACT).astype(jnp.float32)

    n_rows = len(points)
    blocks = in_blocks(points.T, min(scan_block(len(centres)), n_rows))
    whole = jnp.moveaxis(jax.lax.map(some, blocks), 0, 1)  # (M, blocks, block)
    return whole.reshape(len(centres), -1)[:, :n_rows]


_Iterate = tuple[Array, Array, Array, Array, Array]


def _solve(
    bend: Callable[[Array], tuple[Array, Array]],
    precondition: Callable[[Array], Array],
    wanted: Array,
) -> Array:  # (B, M) -> (B, M)
    """Preconditioned conjugate gradients for each toy, until its residual is CLOSE.

    ``bend`` gives the product of the matrix and p, and that of both with p.
    """

    def dot(a: Array, b: Array) -> Array:
        return jnp.sum(a * b, 1, keepdims=True)

    first = precondition(wanted)
    enough = CLOSE**2 * dot(wanted, first)

    def iterate(state: _Iterate) -> _Iterate:
        x, residual, p, size, n = state
        active = size > enough
        image, square = bend(p)
        rate = jnp.where(active, size / square, 0)
        x, residual = x + rate * p, residual - rate * image
        z = precondition(residual)
        after = dot(residual, z)
        p = jnp.where(active, z + after / size * p, p)
        return x, residual, p, jnp.where(active, after, size), n + 1

    start = (jnp.zeros_like(wanted), wanted, first, dot(wanted, first), jnp.asarray(0))
    return jax.lax.while_loop(
        lambda state: (state[3] > enough).any() & (state[4] < MAX_PRODUCTS), iterate, start
    )[0]
