"""Two tests that know means and covariances only, weighted and in double precision.

* Mahalanobis: the mean squared distance of the data from the reference's mean, in units of the
  reference's covariance. Data that lie further out make it large; data that lie closer in do not.
* Frechet: ``|m_D - m_R|^2 + tr(C_D + C_R - 2 (C_R C_D)^(1/2))``, the squared distance of two normal
  distributions with these moments. Dowson and Landau, J. Multivar. Anal. 12, 450 (1982).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sparker.engine.memory import Need
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import PreparedBatches, on_device
from sparker.statistics.contract import Statistic
from sparker.statistics.nystrom import EXACT


class _Moments(NamedTuple):
    mean: Array  # (d,)
    covariance: Array  # (d, d)


def _moments(points: Array, weight: Array) -> _Moments:  # (N, d), (N,)
    share = weight / jnp.sum(weight)
    mean = share @ points
    centred = points - mean
    return _Moments(mean, jnp.matmul(centred.T * share, centred, precision=EXACT))


def _mahalanobis(reference: _Moments, data: _Moments) -> Array:
    """``tr(C_R^-1 C_D) + (m_D - m_R) C_R^-1 (m_D - m_R)``.

    Directions in which the reference does not vary have no unit and are left out.
    """
    variance, axes = jnp.linalg.eigh(reference.covariance)
    shift = axes.T @ (data.mean - reference.mean)
    square = jnp.sum(axes * (data.covariance @ axes), 0) + shift**2
    varies = variance > len(variance) * np.finfo(variance.dtype).eps * variance[-1]
    return jnp.sum(jnp.where(varies, square / jnp.where(varies, variance, 1), 0))


def _frechet(reference: _Moments, data: _Moments) -> Array:
    """By eigenvalues of ``C_R^(1/2) C_D C_R^(1/2)``, which are those of C_R C_D, and real."""
    variance, axes = jnp.linalg.eigh(reference.covariance)
    root = (axes * jnp.sqrt(jnp.maximum(variance, 0))) @ axes.T
    product = jnp.linalg.eigvalsh(root @ data.covariance @ root)
    return (
        jnp.sum((data.mean - reference.mean) ** 2)
        + jnp.trace(data.covariance)
        + jnp.trace(reference.covariance)
        - 2 * jnp.sum(jnp.sqrt(jnp.maximum(product, 0)))
    )


class _OfMoments(NamedTuple):
    distance: Callable[[_Moments, _Moments], Array]

    def place(self, key: Array, points: Array, used: Array, widths: Array) -> Array:
        """Rows in as few directions as they have: no rotation changes either test.

        Of more columns than rows, the covariance would be all pairs of columns.
        """
        n, d = points.shape
        return jnp.linalg.qr(points.T, mode="r").T if n < d else points

    def evaluate(self, points: Array, reference: Array, data: Array, widths: Array) -> Array:
        def one(weights: tuple[Array, Array]) -> Array:
            return self.distance(*(_moments(points, weight) for weight in weights))

        return jax.lax.map(one, (reference, data))[:, None]


def _prepared(name: str, distance: Callable[[_Moments, _Moments], Array]) -> PreparedBatches:
    design = _OfMoments(distance)
    return PreparedBatches(
        settings={"moments": name}, start=on_device(lambda batch: design, np.empty(0)), room=_room
    )


def _room(sample: TwoSample) -> Need:
    n, d = sample.points.shape[-2:]
    return Need(8 * (4 * n * d + 12 * min(n, d) ** 2), 80 * n)  # toys go one after the other


@dataclass(frozen=True, kw_only=True)
class Mahalanobis(Statistic):
    """The mean squared Mahalanobis distance of the data from the reference."""

    name: ClassVar[str] = "mahalanobis"

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Nothing depends on the points."""
        return _prepared("mahalanobis", _mahalanobis)


@dataclass(frozen=True, kw_only=True)
class Frechet(Statistic):
    """The squared Frechet distance of normal distributions with the samples' moments."""

    name: ClassVar[str] = "frechet"

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Nothing depends on the points."""
        return _prepared("frechet", _frechet)
