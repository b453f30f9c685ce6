"""The maximum mean discrepancy at several bandwidths, fused into one statistic.

Gretton et al., JMLR 13, 723 (2012). The fusion: Biggs, Schrab and Gretton, "MMD-FUSE", NeurIPS
2023, arXiv:2306.08777, Definition 1. Nystrom's approximation in tests: Chatalic et al.,
arXiv:2502.13570.

Of a kernel k, with weights d of the data and r of the reference that each add up to 1,

    U = sum_{i != j} d_i d_j k_ij / (1 - sum d^2) + the same of r - 2 sum_ij d_i r_j k_ij

which for equal weights is the unbiased estimate of the squared discrepancy. With weights that
depend on the point it is a ratio of unbiased estimates. It is normalised by the pooled rows alone:

    z = n (n - 1) U / sqrt(S),    S = sum_{i != j} k_ij^2 over all rows in use

where n is the (effective) size of the smaller sample; the fused statistic is the log of the mean of
e^z over bandwidths. This is the paper's, whose lambda is sqrt(n (n - 1)) and whose N_k is
S / (n (n - 1)), times lambda.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.nn import logsumexp

from sparker.engine.memory import Need, scan_block
from sparker.engine.preprocess import Transform
from sparker.engine.sample import TwoSample
from sparker.statistics.batched import Design, PreparedBatches, on_device
from sparker.statistics.contract import Statistic, rounded, scales
from sparker.statistics.nystrom import (
    EXACT,
    choose_centres,
    distance_quantiles,
    effective_size,
    gaussian,
    in_blocks,
    squared_distances,
    to_centres,
    whitening,
)
from sparker.system.numbers import check_positive, check_whole

EXACT_ROWS = 20_000
"""Up to so many rows of a toy every pair of them is looked at, if not told otherwise."""

AT_ONCE = 256
"""Toys of a chunk: kernel values are computed once for all of them."""

JITTER = 1e-6
"""Of the centres' kernel matrix: more would bias U, less amplify the rounding of its sums."""

CENTRES = 1000
"""Beyond, this many centres stand for them."""


@dataclass(frozen=True, kw_only=True)
class MMD(Statistic):
    """The unbiased squared MMD with Gaussian kernels, fused over bandwidths as in MMD-FUSE."""

    name: ClassVar[str] = "mmd"
    n_bandwidths: int = 10
    """From half the 5 % quantile of the distances between points to twice the 95 % quantile."""
    n_centres: int | None = None
    """Centres of Nystrom's approximation; None: all pairs up to EXACT_ROWS rows, else CENTRES."""
    fused: bool = True
    """One column; or one for each bandwidth, left to the rule that combines columns."""
    sharpness: float = 1.0
    """Factor of the paper's lambda: the larger, the more the clearest bandwidth alone decides."""

    def __post_init__(self) -> None:
        check_whole("n_bandwidths", self.n_bandwidths)
        if self.n_centres is not None:
            check_whole("n_centres", self.n_centres)
        check_positive("sharpness", self.sharpness)

    def prepare(self, points: np.ndarray, transform: Transform | None = None) -> PreparedBatches:
        """Choose the bandwidths."""
        low, middle, high = distance_quantiles(points, [0.05, 0.5, 0.95])
        widths = np.array([middle])
        if self.n_bandwidths > 1:
            widths = np.linspace(low / 2, 2 * high, self.n_bandwidths)
        return PreparedBatches(
            settings={
                "mmd": self,
                "bandwidths": rounded(widths),
                "all_pairs_up_to": EXACT_ROWS,
                "centres_beyond": CENTRES,
            },
            start=on_device(self._design, widths),
            room=self._room,
            most=AT_ONCE,
            component_tests=() if self.fused else scales(widths),
        )

    def _n_centres(self, sample: TwoSample) -> int | None:
        """By the rows that all toys have room for: the same for each, whatever its company."""
        if self.n_centres is not None:
            return int(self.n_centres)
        return None if sample.points.shape[-2] <= EXACT_ROWS else CENTRES

    def _design(self, sample: TwoSample) -> Design:
        combination = _Combination(self.fused, float(self.sharpness))
        n_centres = self._n_centres(sample)
        if n_centres is not None:
            return _Nystrom(n_centres, combination)
        used = (sample.reference_weight > 0) | (sample.data_weight > 0)
        return _AllPairs(bool(np.all(used)), combination)

    def _room(self, sample: TwoSample) -> Need:
        n, d = sample.points.shape[-2:]
        centres = min(self._n_centres(sample) or 0, n)
        blocks = 16 * max(n, centres, scan_block(1))
        factors = 8 * centres * centres * (self.n_bandwidths + 6) + 4 * n * self.n_bandwidths
        return Need(blocks + factors + 24 * n * d, 60 * n + 80 * centres)


class _Sums(NamedTuple):
    """Over pairs of different rows, of each bandwidth and each toy: all of (m, B)."""

    data: Array  # sum d_i d_j k_ij
    reference: Array  # sum r_i r_j k_ij
    cross: Array  # sum d_i r_j k_ij
    square: Array  # sum k_ij^2 of the rows in use


class _Combination(NamedTuple):
    fused: bool
    sharpness: float

    def __call__(self, sums: _Sums, reference: Array, data: Array) -> Array:  # -> (B, m) or (B, 1)
        size_r, size_d = effective_size(reference), effective_size(data)
        u = sums.data / (1 - 1 / size_d) + sums.reference / (1 - 1 / size_r) - 2 * sums.cross
        n = jnp.minimum(size_r, size_d)
        z = (n * (n - 1) * u / jnp.sqrt(sums.square)).T  # (B, m)
        if not self.fused:
            return z
        return logsumexp(self.sharpness * z, axis=1, keepdims=True) - jnp.log(z.shape[1])


def _shares(reference: Array, data: Array) -> tuple[Array, Array, Array]:
    """Weights that add up to 1, and which rows are in use."""
    used = (reference > 0) | (data > 0)
    return (
        data / jnp.sum(data, 1, keepdims=True),
        reference / jnp.sum(reference, 1, keepdims=True),
        used.astype(jnp.float32),
    )


def _dot(a: Array, b: Array) -> Array:  # (B, n) twice -> (B,)
    return jnp.sum(a.astype(jnp.float64) * b.astype(jnp.float64), -1)


class _AllPairs(NamedTuple):
    """Every pair of rows, a block of the kernel matrix at a time."""

    whole: bool  # whether every toy uses every row: then they share the sum of squares
    combination: _Combination

    def place(self, key: Array, points: Array, used: Array, widths: Array) -> Array:
        return points.astype(jnp.float32)

    def evaluate(self, points: Array, reference: Array, data: Array, widths: Array) -> Array:
        d, r, used = _shares(reference, data)
        used = used[:1] if self.whole else used
        both = jnp.concatenate([d, r]).astype(jnp.float32)  # (2 B, N)
        n_rows, n_toys = len(points), len(d)
        block = min(scan_block(n_rows), n_rows)
        numbers = jnp.arange(n_rows)

        def add(sums: _Sums, rows: tuple[Array, ...]) -> tuple[_Sums, None]:
            x, number, own_both, own_used = rows
            squared = squared_distances(points, x.T)  # (block, N)
            other = numbers != number[:, None]

            def at(width: Array) -> _Sums:
                kernel = jnp.where(other, gaussian(squared, width), 0)
                seen = jnp.matmul(both, kernel.T, precision=EXACT)  # (2 B, block)
                squares = jnp.matmul(used, (kernel**2).T, precision=EXACT)
                return _Sums(
                    _dot(seen[:n_toys], own_both[:n_toys]),
                    _dot(seen[n_toys:], own_both[n_toys:]),
                    _dot(seen[:n_toys], own_both[n_toys:]),
                    _dot(squares, own_used),
                )

            return jax.tree.map(jnp.add, sums, jax.lax.map(at, widths)), None

        zero = jnp.zeros((len(widths), n_toys))
        start = _Sums(zero, zero, zero, jnp.zeros((len(widths), len(used))))
        # Rows that fill up the last block weigh nothing.
        blocks = tuple(in_blocks(a, block) for a in (points.T, numbers, both, used))
        return self.combination(jax.lax.scan(add, start, blocks)[0], reference, data)


class _Placed(NamedTuple):
    """What the toys of a pool share."""

    points: Array  # (N, d)
    rows: Array  # (M,) which of them are centres
    real: Array  # (M,)
    whitening: Array  # (m, M, M)
    norms: Array  # (m, N) the approximate k(x, x)


class _Nystrom(NamedTuple):
    """All pairs by Nystrom's kernel; the sum of squares by pairs of a row and a centre."""

    n_centres: int
    combination: _Combination

    def place(self, key: Array, points: Array, used: Array, widths: Array) -> _Placed:
        rows = choose_centres(key, used, self.n_centres)
        real = used[rows]
        single = points.astype(jnp.float32)
        blocks = in_blocks(single.T, self._block(points))

        def of(width: Array) -> tuple[Array, Array]:
            white = whitening(points[rows], real, width, JITTER)

            def norms(x: Array) -> Array:  # (d, block) -> (block,)
                kernel = to_centres(x.T, single[rows], real, width)
                phi = jnp.matmul(white.astype(jnp.float32), kernel, precision=EXACT)
                return jnp.sum(phi**2, 0)

            return white, jax.lax.map(norms, blocks).ravel()[: len(points)]

        return _Placed(single, rows, real, *jax.lax.map(of, widths))

    def evaluate(self, placed: _Placed, reference: Array, data: Array, widths: Array) -> Array:
        d, r, used = _shares(reference, data)
        both = jnp.concatenate([d, r]).astype(jnp.float32)
        n_toys = len(d)
        points, rows = placed.points, placed.rows
        centres, used_centres = points[rows], used[:, rows] * placed.real
        block = self._block(points)
        # Rows that fill up the last block weigh nothing.
        blocks = tuple(in_blocks(a, block) for a in (points.T, jnp.arange(len(points)), both, used))

        def at(one: tuple[Array, Array, Array]) -> _Sums:
            width, white, norms = one

            def add(seen: tuple[Array, Array], of: tuple[Array, ...]) -> tuple[Any, None]:
                x, number, own_both, own_used = of
                kernel = to_centres(x.T, centres, placed.real, width)  # (M, block)
                others = jnp.where(number != rows[:, None], kernel**2, 0)
                sums = jnp.matmul(own_both, kernel.T, precision=EXACT)
                squares = jnp.matmul(own_used, others.T, precision=EXACT)
                return (seen[0] + sums, seen[1] + squares), None

            zero = jnp.zeros((n_toys, len(rows)))
            start = jnp.zeros((2 * n_toys, len(rows))), zero
            (sums, squares), _ = jax.lax.scan(add, start, blocks)
            mean_d, mean_r = jnp.split(jnp.matmul(sums, white.T, precision=EXACT), 2)  # (B, M)
            return _Sums(
                _dot(mean_d, mean_d) - _dot(d**2, norms),
                _dot(mean_r, mean_r) - _dot(r**2, norms),
                _dot(mean_d, mean_r),
                # Centres are rows like any: as many pairs in proportion as they are fewer.
                _dot(squares, used_centres) * jnp.sum(used, 1) / jnp.sum(used_centres, 1),
            )

        sums = jax.lax.map(at, (widths, placed.whitening, placed.norms))
        return self.combination(sums, reference, data)

    def _block(self, points: Array) -> int:
        return min(scan_block(min(self.n_centres, len(points))), len(points))
