"""What rounding does to a test: matrix precision, float type and chunk size.

The same toys are fitted several ways. A thousand steps of Adam amplify rounding, so single toys
drift apart; what must not move is their distribution. Compared with double precision are the
statistic of each toy, the null quantiles and the power at 5 %, width by width.
"""

import time
from typing import NamedTuple

import jax
import numpy as np
from common import save
from experiments.toys import EXPECTED, exponential
from scipy.spatial.distance import cdist
from scipy.stats import beta

from sparker import FitConfig
from sparker.engine import TwoSample, fit_many, schedule, stack, two_sample, width_range

ON_CPU = jax.default_backend() == "cpu"
N_NULL, N_SIGNAL = (48, 32) if ON_CPU else (400, 200)
CHUNKS = (16, 32) if ON_CPU else (128, 256)
ALPHA = 0.05
Precision = jax.lax.Precision


class Way(NamedTuple):
    """One way to compute the same fits."""

    name: str
    config: FitConfig
    chunk: int


WAYS = (
    Way("float64", FitConfig(dtype=np.float64), CHUNKS[0]),
    Way("float32", FitConfig(precision=Precision.HIGHEST), CHUNKS[0]),
    Way("float32, other chunk", FitConfig(precision=Precision.HIGHEST), CHUNKS[1]),
    Way("TF32", FitConfig(precision=Precision.HIGH), CHUNKS[0]),
    Way("default", FitConfig(), CHUNKS[0]),
)


def toys_1d(rng) -> TwoSample:
    """The paper's exponential, null toys first, then the bump in the extreme tail."""
    signals = [None] * N_NULL + ["extreme tail"] * N_SIGNAL
    drawn = (exponential.draw(rng, signal)[:2] for signal in signals)
    return stack([two_sample(*samples, expected=EXPECTED) for samples in drawn])


def toys_384d(rng) -> TwoSample:
    """A pool of a correlated 384-d mixture; signal toys hold 4 % of a narrow cluster in it."""
    n, n_data, n_anomalies, d = 11_000, 1_000, 40, 384
    mixing = rng.normal(size=(4, d, d)) / np.sqrt(d) * (0.9 ** (np.arange(d) / 8))
    parts = np.array_split(rng.normal(size=(n, d)), len(mixing))
    points = np.concatenate([part @ matrix for part, matrix in zip(parts, mixing, strict=True)])
    points += 0.3 * rng.normal(size=(n, d))
    anomalies = points[:1] + 0.6 * (points[1 : 1 + 400] - points[:1])
    pool = np.concatenate([points, anomalies]).astype(np.float32)
    reference = np.zeros((N_NULL + N_SIGNAL, len(pool)), np.float32)
    data = np.zeros_like(reference)
    for toy, (r, w) in enumerate(zip(reference, data, strict=True)):
        rows = rng.permutation(n)
        extra = n + rng.choice(400, n_anomalies, replace=False) if toy >= N_NULL else []
        w[rows[: n_data - len(extra)]] = 1
        w[np.asarray(extra, int)] = 1
        r[rows[n_data:]] = n_data / (n - n_data)
    return TwoSample(pool, reference, data)


def interval(found, n, level=0.68):
    """The Clopper-Pearson interval of a proportion."""
    tail = (1 - level) / 2
    low = beta.ppf(tail, found, n - found + 1) if found else 0.0
    high = beta.ppf(1 - tail, found + 1, n - found) if found < n else 1.0
    return round(float(low), 3), round(float(high), 3)


def spread_of_quantile(t, q, rng):
    """Bootstrap 68 % interval of a quantile."""
    draws = np.quantile(rng.choice(t, (400, len(t))), q, axis=1)
    return [round(float(v), 2) for v in np.quantile(draws, [0.16, 0.84])]


def statistic_error(samples, result, toy):
    """Largest error of a toy's t at any width, relative to t in double precision."""
    points = samples.points if samples.points.ndim == 2 else samples.points[toy]
    errors = []
    for mu, a, sigma, t in zip(
        *(array[toy].astype(float) for array in (*result.models, result.t)), strict=True
    ):
        k = np.exp(-cdist(points, mu, "sqeuclidean") / (2 * sigma**2))
        f = (k**2 / (k.sum(1, keepdims=True) + 1e-300)) @ a
        exact = 2 * (samples.data_weight[toy] @ f - samples.reference_weight[toy] @ np.expm1(f))
        errors.append(abs(t - exact) / max(abs(exact), 1))
    return max(errors)


def main():
    out = {}
    for shape, draw in {"1-d": toys_1d, "384-d": toys_384d}.items():
        rng = np.random.default_rng(1)
        samples = draw(rng)
        own = samples.points.ndim == 3
        widths = schedule(*width_range(samples.points[0] if own else samples.points))
        out[shape] = {}
        exact = None
        for way in WAYS[:3] if own else WAYS:  # no products in 1-D, so no other precision either
            start = time.perf_counter()
            result = fit_many(0, samples, widths, way.config, chunk=way.chunk)
            seconds = time.perf_counter() - start
            assert result.finite.all()
            t = np.asarray(result.t, np.float64)
            exact = t if exact is None else exact
            null, signal = t[:N_NULL], t[N_NULL:]
            threshold = np.quantile(null, 1 - ALPHA, axis=0)
            found = (signal > threshold).sum(0)
            spread = np.subtract(*np.quantile(exact[:N_NULL], [0.84, 0.16], axis=0)) / 2
            drift = np.abs(t - exact)[:N_NULL] / spread
            out[shape][way.name] = {
                "null_median": np.median(null, 0).round(2).tolist(),
                "null_median_68": [spread_of_quantile(c, 0.5, rng) for c in null.T],
                "null_95": threshold.round(2).tolist(),
                "null_95_68": [spread_of_quantile(c, 0.95, rng) for c in null.T],
                "power": (found / N_SIGNAL).round(3).tolist(),
                "power_68": [interval(k, N_SIGNAL) for k in found],
                "drift_median": np.median(drift, 0).round(4).tolist(),
                "drift_95": np.quantile(drift, 0.95, axis=0).round(4).tolist(),
                "error_of_t": max(statistic_error(samples, result, toy) for toy in range(8)),
                "seconds_with_compilation": round(seconds, 1),
            }
            error = out[shape][way.name]["error_of_t"]
            print(f"\n{shape} {way.name} ({seconds:.0f} s), relative error of t {error:.1e}")
            for key in ("null_median", "null_95", "power", "drift_median", "drift_95"):
                print(f"  {key:14}", *(f"{v:8.2f}" for v in out[shape][way.name][key]), flush=True)
    save("precision", n_null=N_NULL, n_signal=N_SIGNAL, chunks=CHUNKS, shapes=out)


if __name__ == "__main__":
    main()
