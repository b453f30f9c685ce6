"""How surprising the data's share of some rows is: what all component tests that count rows share.

A *set* of rows is chosen without knowing which are data: the rows nearest to some point, those
furthest out in some column. If nothing is wrong, the data's share of it is that of the whole
sample, give or take a binomial fluctuation. The surprise is twice the log-likelihood that is gained
by a share of its own, the deviance of Wilks: about the square of a normal number.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import logsumexp

LEAST = 1e-30


class Counts(NamedTuple):
    """B experiments as numbers of rows: weights in units of a typical row of their sample."""

    data: Array  # (N, B)
    both: Array  # (N, B) data and reference
    share: Array  # (B,) of the data in rows that are alike

    @property
    def side_by_side(self) -> Array:  # (N, 2 B)
        """In single precision, in which numbers of rows are exact."""
        return jnp.concatenate([self.data, self.both], 1).astype(jnp.float32)


def counts_of(reference: Array, data: Array) -> Counts:  # (B, N) twice
    """From weights; only those of rows that take part are above zero.

    Weights w of a sample count as ``w / (sum w^2 / sum w)`` rows, which fluctuate like so many. The
    reference's weights add up to the number of data rows expected: so their unit, beside that of
    the data, says which share of all rows should be data.
    """
    of_reference, of_data = (_unit(weight) for weight in (reference, data))
    rows = data / of_data[:, None]
    both = rows + reference / of_reference[:, None]
    return Counts(rows.T, both.T, of_reference / (of_reference + of_data))


def _unit(weight: Array) -> Array:  # (B, N) -> (B,)
    """The weight of a typical row; one where there is none at all."""
    total = jnp.sum(weight, 1)
    return jnp.where(total > 0, jnp.sum(weight**2, 1) / jnp.where(total > 0, total, 1), 1)


def surprise(data: Array, both: Array, share: Array) -> Array:
    """Twice the log-likelihood gained if data have a share of their own, negative if it is less.

    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> found = surprise(jnp.array([4.0, 8.0, 0.0]), jnp.array(20.0), jnp.array(0.2))
    >>> np.asarray(found, float).round(2).tolist()
    [0.0, 4.19, -8.93]
    """
    rest = jnp.maximum(both - data, 0)
    gained = 2 * (_part(data, both * share) + _part(rest, both * (1 - share)))
    return jnp.sign(data - both * share) * jnp.maximum(gained, 0)


def _part(seen: Array, expected: Array) -> Array:
    return seen * (jnp.log(jnp.maximum(seen, LEAST)) - jnp.log(jnp.maximum(expected, LEAST)))


def cuts_of(n_rows: int, at_most: int) -> np.ndarray:
    """Numbers of rows from 1 to half of all, about two for each factor of two; no more than most.

    >>> cuts_of(30, 30).tolist()
    [1, 2, 3, 4, 6, 8, 11]
    """
    powers = np.arange(0, max(2 * np.log2(max(n_rows, 2) / 2), 1))
    return np.minimum(np.unique(np.round(2 ** (powers / 2)).astype(int)), at_most)


def tail(counts: Counts, values: Array, thresholds: Array) -> Array:  # (N,), (cuts,) -> (B,)
    """How surprisingly many of the rows whose value reaches a threshold are data.

    The values know nothing of labels. Equal ones are on the same side of a threshold, so that no
    order decides between them; rows of -inf are in no tail.
    """
    member = (values >= thresholds[:, None]).astype(jnp.float32)  # (cuts, N)
    found = jnp.matmul(member, counts.side_by_side, precision=jax.lax.Precision.HIGHEST)
    data, both = jnp.split(found.astype(counts.data.dtype), 2, axis=1)
    return averaged(jnp.maximum(surprise(data, both, counts.share), 0), 0)


def averaged(surprises: Array, axis: int, among: Array | None = None) -> Array:
    """Twice the log of the mean likelihood ratio: one large surprise, or many of medium size."""
    weight = jnp.ones_like(surprises) if among is None else jnp.broadcast_to(among, surprises.shape)
    total = logsumexp(surprises / 2, axis=axis, b=weight)
    return 2 * (total - jnp.log(jnp.sum(weight, axis)))
