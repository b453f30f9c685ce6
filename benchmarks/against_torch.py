"""The engine against a plain PyTorch loop on the same CPU: time per toy and training step.

The loop is what one writes first: autograd, ``torch.optim.Adam``, one toy at a time. It is given
the faster of the two ways to write the distances. Both sides are timed in turn, several times, and
the ratio of the best times is what counts.
"""

import time

import numpy as np
import torch
from common import random_pool, save

from sparker.engine import fit_many, schedule, width_range

M = 5
ROUNDS = 4
#         rows, data rows, features, toys sharing the pool, steps of a fit
SHAPES = {"22,000 x 1": (22_000, 2_000, 1, 16, 400), "11,000 x 512": (11_000, 1_000, 512, 16, 100)}


def differences(x, mu):
    return ((x[:, None] - mu) ** 2).sum(-1)


def products(x, mu):
    return (x**2).sum(-1)[:, None] - 2 * x @ mu.T + (mu**2).sum(-1)


def torch_loop(distances, reference, data, sigmas):
    """Fit one toy; w_R and the SoftMax competition as in the paper."""
    weight = len(data) / len(reference)
    mu = data[:M].clone().requires_grad_()
    a = torch.zeros(M, requires_grad=True)
    optimizer = torch.optim.Adam([mu, a], lr=1e-3)

    def log_ratio(x, sigma):
        log_k = -distances(x, mu) / (2 * sigma**2)
        return (torch.softmax(log_k, -1) * torch.exp(log_k)) @ a

    for sigma in sigmas:
        optimizer.zero_grad()
        loss = weight * torch.expm1(log_ratio(reference, sigma)).sum()
        loss = loss - log_ratio(data, sigma).sum()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            a.clamp_(-5, 5)


def seconds(work, *args, **settings):
    start = time.perf_counter()
    work(*args, **settings)
    return time.perf_counter() - start


def main():
    rows = []
    for shape, (n, n_data, d, n_toys, steps) in SHAPES.items():
        samples = random_pool(np.random.default_rng(0), n, n_data, d, n_toys)
        widths = schedule(*width_range(samples.points), steps=steps)
        x = torch.tensor(np.asarray(samples.points))
        is_data = torch.tensor(np.asarray(samples.data_weight[0], bool))
        few = widths.sigma[:20]
        first = seconds(fit_many, 0, samples, widths)
        times = {"sparker": [], "torch, differences": [], "torch, products": []}
        for _ in range(ROUNDS):
            ours = seconds(fit_many, 1, samples, widths)
            times["sparker"].append(ours / steps / n_toys)
            for form in (differences, products):
                loop = seconds(torch_loop, form, x[~is_data], x[is_data], few)
                times[f"torch, {form.__name__}"].append(loop / len(few))
        best = {name: min(values) * 1e3 for name, values in times.items()}
        ratio = min(best["torch, differences"], best["torch, products"]) / best["sparker"]
        print(shape, {name: round(ms, 3) for name, ms in best.items()}, f"ratio {ratio:.1f}")
        rows.append(
            {
                "shape": shape,
                "toys": n_toys,
                "ms_per_toy_step": {name: round(ms, 3) for name, ms in best.items()},
                "ratio": round(ratio, 1),
                "first_call_seconds": round(first, 1),
            }
        )
    save("against_torch", torch=torch.__version__, threads=torch.get_num_threads(), rows=rows)


if __name__ == "__main__":
    main()
