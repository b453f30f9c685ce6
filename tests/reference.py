"""SparKer as the paper writes it, in NumPy and double precision: slow, and checked by eye.

Shares no code with the package. Names match its public ones, so that a test can put the two side by
side. Points ``x`` have shape (..., d), values per kernel (..., M). The model and the losses also
take ``xp=jax.numpy``, which makes them definitions that ``jax.grad`` can differentiate.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

MAX_LOG_RATIO = 20.0  # where exp(f) on reference points goes on as its tangent


class Model(NamedTuple):
    mu: np.ndarray  # (M, d)
    a: np.ndarray  # (M,)
    sigma: float


# The model: f(x) = sum_i a_i p_i(x) k_i(x)


def log_kernels(model, x, xp=np):
    return -xp.sum((x[..., None, :] - model.mu) ** 2, -1) / (2 * model.sigma**2)


def softmax(log_k, xp=np):
    e = xp.exp(log_k - xp.max(log_k, -1, keepdims=True))
    return e / xp.sum(e, -1, keepdims=True)


def independent(log_k, xp=np):
    return xp.ones_like(log_k)


def components(model, x, competition, xp=np):
    log_k = log_kernels(model, x, xp)
    return model.a * competition(log_k, xp) * xp.exp(log_k)


def log_ratio(model, x, competition, xp=np):
    return xp.sum(components(model, x, competition, xp), -1)


def anomaly_score(model, x, competition):
    return sigmoid(log_ratio(model, x, competition))


# The losses: sum_R w_R reference(f) + sum_D data(f), and the slopes in the paper's table


class Loss(NamedTuple):
    reference: Callable
    data: Callable
    reference_slope: Callable
    data_slope: Callable


def sigmoid(f, xp=np):
    return 1 / (1 + xp.exp(-f))


def exp_then_tangent(f, xp=np):
    edge = np.exp(MAX_LOG_RATIO)
    return xp.exp(xp.minimum(f, MAX_LOG_RATIO)) + edge * xp.maximum(f - MAX_LOG_RATIO, 0)


neyman_pearson = Loss(
    reference=lambda f, xp=np: exp_then_tangent(f, xp) - 1,
    data=lambda f, xp=np: -f,
    reference_slope=lambda f: np.where(f < MAX_LOG_RATIO, np.exp(f), np.exp(MAX_LOG_RATIO)),
    data_slope=lambda f: -1 + 0 * f,
)
binary_cross_entropy = Loss(
    reference=lambda f, xp=np: xp.logaddexp(0, f),  # -log(1 - c)
    data=lambda f, xp=np: xp.logaddexp(0, -f),  # -log c
    reference_slope=lambda f: sigmoid(f),
    data_slope=lambda f: -(1 - sigmoid(f)),
)
mean_squared_error = Loss(
    reference=lambda f, xp=np: sigmoid(f, xp) ** 2,
    data=lambda f, xp=np: (1 - sigmoid(f, xp)) ** 2,
    reference_slope=lambda f: 2 * sigmoid(f) ** 2 * (1 - sigmoid(f)),
    data_slope=lambda f: -2 * sigmoid(f) * (1 - sigmoid(f)) ** 2,
)


def loss_of(loss, f, w_reference, w_data, xp=np):
    return xp.sum(w_reference * loss.reference(f, xp)) + xp.sum(w_data * loss.data(f, xp))


def statistic(model, x, w_reference, w_data, competition):
    f = log_ratio(model, x, competition)
    return -2 * loss_of(neyman_pearson, f, w_reference, w_data)


# The gradients: df/da_i = p_i k_i and df/dmu_i = A_i r_i


def charge(model, x, competition):
    """``A_i sigma^2``: the paper's ``[2 a_i k_i - f] p_i``, and ``a_i k_i`` without SoftMax."""
    log_k = log_kernels(model, x)
    k, p = np.exp(log_k), competition(log_k)
    if competition is independent:
        return model.a * k
    return (2 * model.a * k - log_ratio(model, x, competition)[..., None]) * p


def gradient(model, x, w_reference, w_data, loss, competition):  # (N, d) -> (M, d), (M,)
    log_k = log_kernels(model, x)
    f = log_ratio(model, x, competition)
    slope = w_reference * loss.reference_slope(f) + w_data * loss.data_slope(f)
    df_da = competition(log_k) * np.exp(log_k)  # (N, M)
    r = x[:, None] - model.mu  # (N, M, d)
    df_dmu = charge(model, x, competition)[..., None] * r / model.sigma**2
    return np.tensordot(slope, df_dmu, 1), slope @ df_da


# The training


class Adam:
    """Kingma & Ba's algorithm 1, for one array of parameters; gives the step to subtract."""

    def __init__(self, b1=0.9, b2=0.999, eps=1e-12):
        self.b1, self.b2, self.eps = b1, b2, eps
        self.m = self.v = self.t = 0

    def __call__(self, g):
        self.t += 1
        self.m = self.b1 * self.m + (1 - self.b1) * g
        self.v = self.b2 * self.v + (1 - self.b2) * g**2
        m_hat = self.m / (1 - self.b1**self.t)
        v_hat = self.v / (1 - self.b2**self.t)
        return m_hat / (np.sqrt(v_hat) + self.eps)


def fit(
    x, w_reference, w_data, start, widths, read_off, loss, competition,
    clip=5.0, l2=0.0, location_rate=0.01, amplitude_rate=0.05,
):  # fmt: skip
    """The models read off and their statistics, from kernels that start at ``start`` (M, d)."""
    mu, a = start, np.zeros(len(start))
    adam_mu, adam_a = Adam(), Adam()
    expected = w_reference.sum()
    models = []
    for step, sigma in enumerate(widths):
        d_mu, d_a = gradient(Model(mu, a, sigma), x, w_reference, w_data, loss, competition)
        # Per expected event, and locations in units of the width.
        mu = mu - location_rate * sigma * adam_mu(d_mu * sigma / expected)
        a = a - amplitude_rate * adam_a((d_a + 2 * l2 * a) / expected)
        a = np.clip(a, -clip, clip)
        if step in read_off:
            models.append(Model(mu, a, sigma))
    return models, [statistic(model, x, w_reference, w_data, competition) for model in models]
