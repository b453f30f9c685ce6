"""What else trained kernels can be asked, once they are where they are.

Arrays are of one experiment: m widths, M kernels, N points. Each reading is (m,) or (m, r) numbers
that are larger where the samples differ more. ``phi_i = p_i k_i`` is what kernel i adds to the
log-ratio for an amplitude of one; ``z`` is one at data and minus the reference's weight elsewhere,
so that ``phi z`` is the excess under a kernel, and ``w sum phi^2`` its variance when labels are
exchanged.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Readings = dict[str, np.ndarray]
Ask = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, "Labels"], Readings]
CLIP, FAR_CLIP = 5.0, 20.0
"""The amplitudes' clip: the default's, and the one that the scan's *isolated* has."""

MAX_LOG_RATIO = 20.0
TINY = 1e-9
N_NEWTON = 8
FRACTIONS = np.array([1, 0.5, 0.2, 0.05, 0], np.float32)
RIDGE = 1e-4
"""Of the information on an amplitude, added to it: kernels at one place have the same."""

MAX_SHAPED = 20
"""With more features kernels stay round: there are fewer rows under them than features."""


class Labels(NamedTuple):
    """Who is data, and what a reference row counts."""

    is_data: np.ndarray  # (N,)
    weight: float

    @property
    def signs(self) -> np.ndarray:  # (N,)
        """One for data, minus its weight for a reference row."""
        return np.where(self.is_data, 1, -self.weight).astype(np.float32)


def kernels(points: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:  # (m, M, N)
    """Round ones of one width."""
    n_widths, n_kernels, n_features = mu.shape
    middle = points.mean(0)
    x, centres = points - middle, mu.reshape(-1, n_features) - middle
    squared = (x**2).sum(1) + (centres**2).sum(1)[:, None] - 2 * centres @ x.T
    squared = np.maximum(squared, 0).reshape(n_widths, n_kernels, -1)
    return np.exp(-0.5 * squared / sigma[:, None, None] ** 2)


def shaped_kernels(
    points: np.ndarray, mu: np.ndarray, sigma: np.ndarray, labels: Labels
) -> np.ndarray:  # (m, M, N)
    """Kernels of the same volume, with the covariance of the data that they are responsible for.

    It is shrunk to a round one as far as there are fewer such data than features.
    """
    phi = shared(kernels(points, mu, sigma))
    n_features = points.shape[1]
    round_one = np.eye(n_features)
    found = np.empty(phi.shape)
    for place in np.ndindex(*phi.shape[:2]):
        responsible = phi[place] * labels.is_data
        total = responsible.sum() + TINY
        n_rows = total**2 / ((responsible**2).sum() + TINY**2)
        away = points - mu[place]
        covariance = (away * responsible[:, None]).T @ away / total
        shrink = n_features / (n_features + n_rows)
        mean = np.trace(covariance) / n_features + 1e-6 * sigma[place[0]] ** 2
        covariance = (1 - shrink) * covariance + shrink * mean * round_one
        volume = np.exp(np.linalg.slogdet(covariance)[1] / n_features)
        root = np.linalg.cholesky(covariance / volume + 1e-6 * round_one)
        squared = (np.linalg.solve(root, away.T) ** 2).sum(0) / sigma[place[0]] ** 2
        found[place] = np.exp(-0.5 * squared)
    return found


def shared(k: np.ndarray) -> np.ndarray:  # (..., M, N) -> (..., M, N)
    """``p_i k_i`` with the SoftMax's ``p_i = k_i / sum_j k_j``."""
    return k**2 / (k.sum(-2, keepdims=True) + np.finfo(k.dtype).tiny)


def mixed(a: np.ndarray, phi: np.ndarray) -> np.ndarray:  # (..., M), (..., M, N) -> (..., N)
    """The log-ratio."""
    return np.matmul(a[..., None, :], phi)[..., 0, :]


def gained(f: np.ndarray, labels: Labels) -> np.ndarray:  # (..., N) -> (...)
    """``t = -2 L_NP``."""
    expected = np.maximum(-labels.signs, 0)
    return 2 * (f @ labels.is_data - np.expm1(np.minimum(f, MAX_LOG_RATIO)) @ expected)


def best_amplitudes(
    phi: np.ndarray, a: np.ndarray, labels: Labels, clip: float
) -> np.ndarray:  # (m, M, N), (m, M) -> (m, M)
    """Newton's amplitudes for kernels that stay: the largest ``t`` within the clip.

    The loss is convex in them. Amplitudes at the clip that want to pass it are held. Of the whole
    step and its ``FRACTIONS`` the best is taken, or none.
    """
    expected = np.maximum(-labels.signs, 0)
    now = np.clip(a, -clip, clip)
    identity = np.eye(a.shape[-1], dtype=phi.dtype)
    for _ in range(N_NEWTON):
        tilted = expected * np.exp(np.minimum(mixed(now, phi), MAX_LOG_RATIO))  # (m, N)
        slope = np.matmul(phi, (tilted - labels.is_data)[..., None])[..., 0]
        free = ~(((now >= clip) & (slope < 0)) | ((now <= -clip) & (slope > 0)))
        curved = np.matmul(phi * tilted[:, None], phi.swapaxes(-1, -2))
        curved *= free[..., None] & free[..., None, :]
        own = np.einsum("...ii->...i", curved)
        curved = curved + np.where(free, RIDGE * (own + RIDGE), 1)[..., None] * identity
        step = np.linalg.solve(curved, np.where(free, slope, 0)[..., None])[..., 0].astype(
            phi.dtype
        )
        tried = np.clip(now - FRACTIONS[:, None, None] * step, -clip, clip)  # (s, m, M)
        best = np.argmax(gained(mixed(tried, phi), labels), 0)
        now = np.take_along_axis(tried, best[None, :, None], 0)[0]
    return now


def chi_squared(phi: np.ndarray, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Of all excesses together, (m,), and of each alone, (m, M): nothing is fitted."""
    excess = np.matmul(phi, labels.signs)
    around = phi - phi.mean(-1, keepdims=True)
    variance = labels.weight * np.matmul(around, around.swapaxes(-1, -2))
    own = np.einsum("...ii->...i", variance) + TINY
    ridged = variance + (RIDGE * own)[..., None] * np.eye(own.shape[-1])
    together = np.linalg.solve(ridged, excess[..., None])[..., 0]
    return np.einsum("...i,...i->...", excess, together), excess**2 / own


def averaged(q: np.ndarray) -> np.ndarray:  # (m, M) -> (m,)
    """``2 log mean e^(q/2)``: the average likelihood ratio."""
    most = q.max(-1, keepdims=True)
    return most[..., 0] + 2 * np.log(np.mean(np.exp((q - most) / 2), -1))


def main_readings(
    points: np.ndarray, mu: np.ndarray, a: np.ndarray, sigma: np.ndarray, labels: Labels
) -> Readings:
    """Those that are of interest where the training differs, too."""
    phi = shared(kernels(points, mu, sigma))
    return {
        "t": gained(mixed(a, phi), labels),
        "Newton": gained(mixed(best_amplitudes(phi, a, labels, CLIP), phi), labels),
        "chi-squared": chi_squared(phi, labels)[0],
    }


def all_readings(
    points: np.ndarray, mu: np.ndarray, a: np.ndarray, sigma: np.ndarray, labels: Labels
) -> Readings:
    """All of them, of an ensemble at each of m widths."""
    phi = shared(kernels(points, mu, sigma))
    f = mixed(a, phi)
    t = gained(f, labels)
    own = gained(a[..., None] * phi, labels)  # (m, M)
    newton, far = (best_amplitudes(phi, a, labels, clip) for clip in (CLIP, FAR_CLIP))
    together, alone = chi_squared(phi, labels)
    share = labels.is_data.mean()
    off = f - f.mean(-1, keepdims=True)
    spread = np.sqrt(labels.weight * (off**2).sum(-1)) + TINY
    found = {
        "t": t,
        "strongest kernel": own.max(-1),
        "strongest one to five": np.cumsum(-np.sort(-own, -1), -1),
        "average over kernels": averaged(own),
        "kernels of excess only": np.where(a > 0, own, 0).sum(-1),
        "t per active kernel": t / np.maximum((np.abs(a) > 0.1).sum(-1), 1),
        "t of three widths": np.convolve(t, np.ones(3), "same"),
        "t of all widths": t.sum(keepdims=True),
        "Newton": gained(mixed(newton, phi), labels),
        "Newton, strongest kernel": gained(newton[..., None] * phi, labels).max(-1),
        "Newton, clip 20": gained(mixed(far, phi), labels),
        "chi-squared": together,
        "chi-squared, strongest kernel": alone.max(-1),
        "chi-squared, average over kernels": averaged(alone),
        "excess of f in its spread": f @ labels.signs / spread,
        "likelihood of labels": 2
        * (f @ labels.is_data - np.log(share * np.exp(f) + 1 - share).sum(-1)),
    }
    if points.shape[1] > MAX_SHAPED:
        same = {"anisotropic, Newton": "Newton", "anisotropic, chi-squared": "chi-squared"}
        return found | {name: found[round_one] for name, round_one in same.items()}
    shaped = shared(shaped_kernels(points, mu, sigma, labels))
    amplitudes = best_amplitudes(shaped, a, labels, CLIP)
    found["anisotropic, Newton"] = gained(mixed(amplitudes, shaped), labels)
    found["anisotropic, chi-squared"] = chi_squared(shaped, labels)[0]
    return found
