"""What a stretch of the stream shows: kernels where it has more or fewer rows, and where it moved.

The scan of ``engine.scan`` without the training that follows it there: at each width, how many rows
of the stretch and of the reference a kernel at each candidate sees, and what an ensemble of the
best places would gain. It takes milliseconds, and a bet needs no more.
"""

from typing import NamedTuple

import numpy as np

from sparker.betting.witnesses import N_KERNELS, Witness, edge, far, kernels, shift
from sparker.engine.widths import resolvable_range

N_CANDIDATES = 192, 64
"""Rows of the stretch, and of the reference, at which kernels are tried."""

MAX_WIDTHS = 10
"""Each is half as wide as the one before."""

FEWEST = 1
"""Reference rows beside a row under the narrowest kernel, about: a crowd of the stream's stands out
the more."""

APART = 2.0
"""Widths between two kernels of an ensemble."""

CLIP = 5.0
"""The largest amplitude, a log density ratio, as in ``FitConfig``."""

PRIOR = 0.5
"""Rows that are added to what a kernel sees, so that none seen is no infinite ratio."""


LEAST = 1e-9
"""What a kernel is at least, next to nothing: to calculate with much smaller numbers takes long."""


class Ground(NamedTuple):
    """The reference rows that stretches are compared with, and what depends on them alone."""

    points: np.ndarray  # (N, d)
    widths: np.ndarray  # (m,)
    tails: tuple[Witness, ...]
    """Of rows far out, and of either side of every column."""
    expected_payoffs: np.ndarray  # (2, tails) their means, and standard deviations


def ground(points: np.ndarray, widths: np.ndarray | None = None) -> Ground:
    """Choose the widths: from half of the whole down to where rows are alone under a kernel."""
    if widths is None:
        first, last = resolvable_range(points, fewest=FEWEST)
        n = int(np.clip(np.ceil(np.log2(first / 2 / last)) + 1, 1, MAX_WIDTHS))
        widths = first / 2 * 0.5 ** np.arange(n)
    sides = np.concatenate([np.eye(points.shape[1]), -np.eye(points.shape[1])])
    tails = (far(points), *(edge(side, points) for side in sides))
    paid = np.stack([witness.payoffs(points) for witness in tails])
    moments = np.stack([paid.mean(1), paid.std(1) + np.finfo(float).tiny])
    return Ground(points, widths, tails, moments)


def look_for_kernels(stretch: np.ndarray, beside: Ground) -> Witness:  # (n, d)
    """The ensemble of one width that explains most."""
    own, others = (
        _some(rows, n) for rows, n in zip((stretch, beside.points), N_CANDIDATES, strict=True)
    )
    tried, n_own = np.concatenate([own, others]), len(own)
    rate = len(stretch) / len(beside.points)
    both = [_kernel(rows, tried, beside.widths[0]) for rows in (stretch, beside.points)]
    best, most = kernels(tried[:1], np.zeros(1), 1.0), 0.0
    for i, width in enumerate(beside.widths):
        if i:
            _halve_width(both)
        seen, expected = ((np.ones(len(k), k.dtype) @ k).astype(float) for k in both)
        seen[:n_own] -= 1  # a candidate does not speak for itself
        expected[n_own:] -= 1
        expected *= rate
        seen, expected = np.maximum(seen, 0), np.maximum(expected, 0)
        amplitude = np.clip(np.log((seen + PRIOR) / (expected + PRIOR)), -CLIP, CLIP)
        gain = amplitude * seen - np.expm1(amplitude) * expected
        chosen = _apart(tried, gain, APART * width)
        total = float(gain[chosen].sum())
        if total > most:
            best, most = kernels(tried[chosen], amplitude[chosen], float(width)), total
    return best


def look_for_shift(stretch: np.ndarray, beside: Ground) -> Witness:
    """The direction in which the mean has moved; features have about the same spread."""
    moved = stretch.mean(0) - beside.points.mean(0)
    length = float(np.linalg.norm(moved))
    return shift(moved / length if length > 0 else np.eye(len(moved))[0], beside.points)


def look_for_tail(stretch: np.ndarray, beside: Ground) -> Witness:
    """That of which the stretch has most, in standard errors of what is expected."""
    seen = [witness.counts(stretch) @ witness.values for witness in beside.tails]
    means, errors = beside.expected_payoffs
    return beside.tails[int(np.argmax((np.array(seen) / len(stretch) - means) / errors))]


LOOKS = (look_for_kernels, look_for_shift, look_for_tail)
"""All that is looked for in a stretch."""


def _some(rows: np.ndarray, n: int) -> np.ndarray:
    """Evenly spread over them."""
    return rows[np.linspace(0, len(rows) - 1, min(n, len(rows))).astype(int)]


def _kernel(rows: np.ndarray, centres: np.ndarray, width: float) -> np.ndarray:  # (N, C)
    """In single precision and one product: x c - x^2 / 2 - c^2 / 2 is the exponent."""
    x, c = (np.asarray(points / width, np.float32) for points in (rows, centres))
    one, half = (np.ones((len(x), 1), np.float32), np.full((len(c), 1), -0.5, np.float32))
    x2, c2 = (np.einsum("nd,nd->n", points, points)[:, None] for points in (x, c))
    k = np.hstack([x, x2, one]) @ np.hstack([c, half, -c2 / 2]).T
    np.clip(k, np.float32(np.log(LEAST)), 0, out=k)
    return np.asarray(np.exp(k, out=k))


def _halve_width(kernels: list[np.ndarray]) -> None:
    """At half the width, a kernel is the fourth power of what it was."""
    for k in kernels:
        np.square(k, out=k)
        np.square(k, out=k)
        np.maximum(k, LEAST, out=k)


def _apart(places: np.ndarray, gain: np.ndarray, least: float) -> list[int]:
    """The best places, none within ``least`` of another."""
    left, chosen = gain.copy(), []
    for _ in range(N_KERNELS):
        best = int(np.argmax(left))
        if not left[best] > 0:
            break
        chosen.append(best)
        left[((places - places[best]) ** 2).sum(1) < least**2] = -np.inf
        left[best] = -np.inf
    return chosen
