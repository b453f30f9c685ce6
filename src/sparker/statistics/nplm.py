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
from jax.scipy.linalg import cho_factor, cho_solve

from sparker.engine.losses import statistic
from sparker.engine.memory import scan_block
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches, Room, check_whole, on_device
from sparker.statistics.contract import Statistic, rounded
from sparker.statistics.nystrom import (
    EXACT,
    choose_centres,
    distance_quantiles,
    in_blocks,
    to_centres,
    whitening,
)

MAX_STEPS = 60
"""Newton steps; who has not converged by then has no statistic. Usually there are four to ten."""

MAX_PRODUCTS = 200
"""Conjugate-gradient iterations within a step; usually ten to thirty."""

CLOSE = 0.03
"""How far, relative to where it starts, the residual of a step's linear system goes down."""

HALVINGS = 10
"""Of a step, until the loss falls."""


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
    the loss, is below; one more step is made then."""

    def __post_init__(self) -> None:
        check_whole("n_centres", self.n_centres)
        check_whole("n_bandwidths", self.n_bandwidths)
        for name in ("ridge", "tolerance"):
            value = getattr(self, name)
            if not 0 < value < np.inf:
                raise ValueError(f"{name} must be positive and finite, got {value}")

    def prepare(self, points: np.ndarray, n_rows: int) -> PreparedBatches:
        """Choose the bandwidths."""
        shares = np.linspace(0.01, 0.99, self.n_bandwidths) if self.n_bandwidths > 1 else 0.5
        widths = np.atleast_1d(distance_quantiles(points, shares))
        design = _Regression(int(self.n_centres), float(self.ridge), float(self.tolerance))
        return PreparedBatches(
            settings={"nplm": self, "bandwidths": rounded(widths)},
            start=on_device(lambda batch: design, widths),
            room=self._room,
            columns=widths,
        )

    def _room(self, sample: TwoSample) -> Room:
        n, d = sample.points.shape[-2:]
        m = min(self.n_centres, n)
        # The features and copies; factors of each bandwidth and their making; blocks of values.
        fixed = 12 * m * n + m * m * (12 * self.n_bandwidths + 48) + 24 * n * d + 32 * scan_block(1)
        return Room(fixed, 120 * n + 80 * m)


class _Placed(NamedTuple):
    """What the toys of a pool share; the features of one bandwidth are made when it is its turn."""

    points: Array  # (N, d)
    centres: Array  # (M, d)
    real: Array  # (M,) whether it is one; a toy may have fewer rows than centres
    whitening: Array  # (bandwidths, M, M)
    inverse: Array  # (bandwidths, M, M) of the Hessian at f = 0, for weights that add up to 1


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
            return white, self._inverse_hessian(phi, used)

        return _Placed(points, centres, real, *jax.lax.map(factors, widths))

    def _inverse_hessian(self, phi: Array, used: Array) -> Array:  # (M, N) -> (M, M)
        """Of the loss at f = 0 if all rows in use had the same weight: no label decides on it."""
        within = phi * used.astype(phi.dtype)
        gram = jnp.matmul(within, phi.T, precision=EXACT).astype(jnp.float64)
        eye = jnp.eye(len(phi))
        hessian = gram / (4 * jnp.sum(used)) + self.ridge * eye
        return cho_solve(cho_factor(hessian), eye).astype(jnp.float32)

    def evaluate(self, placed: _Placed, reference: Array, data: Array, widths: Array) -> Array:
        def one(at: tuple[Array, Array, Array]) -> Array:  # -> (B,)
            width, white, inverse = at
            phi = _features(placed.points, placed.centres, placed.real, white, width)
            _, f = self.fit(phi, inverse, reference, data)
            return jax.vmap(lambda *toy: statistic(toy[0], TwoSample(placed.points, *toy[1:])))(
                f.astype(jnp.float64), reference, data
            )

        # One bandwidth after the other: the features are the largest thing in memory.
        return jax.lax.map(one, (widths, placed.whitening, placed.inverse)).T

    def fit(
        self, phi: Array, inverse: Array, reference: Array, data: Array
    ) -> tuple[Array, Array]:  # (M, N), (M, M), (B, N) twice -> (B, M), (B, N)
        """Damped Newton for all toys at once: coefficients and f, NaN where it did not converge.

        A toy that has converged stays as it is, whatever its company still does.
        """
        total = jnp.sum(reference + data, 1)
        ridge = (self.ridge * total)[:, None].astype(phi.dtype)
        r, d = reference.astype(phi.dtype), data.astype(phi.dtype)
        scale = total[:, None].astype(phi.dtype)

        def project(values: Array) -> Array:  # (B, N) -> (B, M)
            return jnp.matmul(values, phi.T, precision=EXACT)

        def spread(coefficients: Array) -> Array:  # (B, M) -> (B, N)
            return jnp.matmul(coefficients, phi, precision=EXACT)

        def loss(beta: Array, f: Array) -> Array:  # -> (B,)
            terms = reference * softplus(f) + data * softplus(-f)
            return jnp.sum(terms, 1) + 0.5 * self.ridge * total * jnp.sum(beta**2, 1)

        def step(state: _State) -> _State:
            gradient = project(r * sigmoid(state.f) - d * sigmoid(-state.f)) + ridge * state.beta
            curvature = (r + d) * sigmoid(state.f) * sigmoid(-state.f)
            direction = _solve(
                lambda v: project(curvature * spread(v)) + ridge * v,
                lambda v: jnp.matmul(v, inverse, precision=EXACT) / scale,
                -gradient,
            )
            beta, f = state.beta.astype(jnp.float64), state.f.astype(jnp.float64)
            towards = spread(direction)
            now = loss(beta, f)
            sizes = 0.5 ** jnp.arange(HALVINGS)
            falls = jax.lax.map(
                lambda size: loss(beta + size * direction, f + size * towards) <= now, sizes
            )  # (HALVINGS, B)
            size = sizes[jnp.where(falls.any(0), jnp.argmax(falls, 0), HALVINGS - 1)]
            decrement = -jnp.sum(gradient * direction, 1)  # squared
            size = jnp.where(state.active, size, 0)[:, None].astype(phi.dtype)
            # NaN stays active to the end.
            active = state.active & ~(decrement <= self.tolerance)
            return _State(
                state.beta + size * direction, state.f + size * towards, active, state.n + 1
            )

        n_toys = len(data)
        end = jax.lax.while_loop(
            lambda state: state.active.any() & (state.n < MAX_STEPS),
            step,
            _State(
                jnp.zeros((n_toys, len(phi)), phi.dtype),
                jnp.zeros(data.shape, phi.dtype),
                jnp.ones(n_toys, bool),
                0,
            ),
        )
        failed = end.active[:, None]
        return jnp.where(failed, jnp.nan, end.beta), jnp.where(failed, jnp.nan, end.f)


class _State(NamedTuple):
    beta: Array  # (B, M)
    f: Array  # (B, N)
    active: Array  # (B,)
    n: Any


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
    apply: Callable[[Array], Array], precondition: Callable[[Array], Array], wanted: Array
) -> Array:  # (B, M) -> (B, M)
    """Preconditioned conjugate gradients for each toy, until its residual is CLOSE."""

    def dot(a: Array, b: Array) -> Array:
        return jnp.sum(a * b, 1, keepdims=True)

    first = precondition(wanted)
    enough = CLOSE**2 * dot(wanted, first)

    def iterate(state: _Iterate) -> _Iterate:
        x, residual, p, size, n = state
        active = size > enough
        image = apply(p)
        rate = jnp.where(active, size / dot(p, image), 0)
        x, residual = x + rate * p, residual - rate * image
        z = precondition(residual)
        after = dot(residual, z)
        p = jnp.where(active, z + after / size * p, p)
        return x, residual, p, jnp.where(active, after, size), n + 1

    start = (jnp.zeros_like(wanted), wanted, first, dot(wanted, first), jnp.asarray(0))
    return jax.lax.while_loop(
        lambda state: (state[3] > enough).any() & (state[4] < MAX_PRODUCTS), iterate, start
    )[0]
