"""One pass over the points, the heart of a training step: our kernel against XLA's fusions.

The gradient of 256 toys (or of one) on a shared pool, stepped a few hundred times with a plain
update, so that nothing else is timed. On a CPU there is only XLA's.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from common import random_pool, save
from compute_table import SHAPES

from sparker import FitConfig
from sparker.engine import Ensemble, TwoSample, gradient_gpu
from sparker.engine.compiled import COMPILER_OPTIONS
from sparker.engine.distances import features_of
from sparker.engine.gradient import gradient

STEPS = 50, 250
TOYS = 256, 1


def xla(sample, features, design):
    return lambda model: gradient(model, sample, features, design)


def microseconds(gradient_of, samples, design):
    """Per toy and step: what the longer run takes longer."""
    n_toys, d = len(samples.data_weight), samples.points.shape[1]
    mu = jnp.broadcast_to(jnp.asarray(samples.points[:5]), (n_toys, 5, d))
    a = jnp.ones((n_toys, 5), jnp.float32)

    def one(mu, a, reference, data, points, n_steps):
        sample, features = TwoSample(points, reference, data), features_of(points)
        of = gradient_of(sample, features, design)

        def step(_, state):
            mu, a = state
            d_mu, d_a = of(Ensemble(mu, a, np.float32(d**0.5)))
            return mu - 1e-6 * d_mu, a - 1e-6 * d_a

        return jax.lax.fori_loop(0, n_steps, step, (mu, a))

    many = jax.jit(jax.vmap(one, (0, 0, 0, 0, None, None)), compiler_options=COMPILER_OPTIONS)
    points, *weights = (jnp.asarray(array) for array in samples)

    def seconds(n_steps):
        began = time.perf_counter()
        jax.block_until_ready(many(mu, a, *weights, points, n_steps))
        return time.perf_counter() - began

    seconds(1)
    few, lots = (min(seconds(n) for _ in range(3)) for n in STEPS)
    return (lots - few) * 1e6 / (STEPS[1] - STEPS[0]) / n_toys


def main():
    rows = []
    for name, (n, n_data, d, *_) in SHAPES.items():
        for n_toys in TOYS:
            samples = random_pool(np.random.default_rng(0), n, n_data, d, n_toys)
            ways = {"XLA": (xla, False)}
            if jax.default_backend() == "gpu":
                ways |= {"fused, bfloat16": (gradient_gpu.gradient_of, True)}
                ways |= {"fused, TF32": (gradient_gpu.gradient_of, False)}
            for way, (of, rounded) in ways.items():
                design = FitConfig().design._replace(rounded=rounded)
                us = microseconds(of, samples, design)
                row = {"application": name, "toys": n_toys, "way": way, "us": round(us, 3)}
                print(row, file=sys.stderr, flush=True)
                rows.append(row)
                save("gradient_pass", rows=rows)


if __name__ == "__main__":
    main()
