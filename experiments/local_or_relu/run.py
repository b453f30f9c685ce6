"""Local against linear units: two learned log-ratios of the same sample, with few units and more.

    python -m experiments.local_or_relu.run [--quick] [--draw] [--output DIR]

The paper's figure "Local layers enable geometric interpretation of activation patterns": the log
density ratio of a sample with injected anomalies in two dimensions, learned by one layer of ReLU
units and by Gaussian kernels under several sparsity constraints. Kernels pick out convex regions,
ReLU units must conspire to make one.

Here: sparsity is the number of units. Both are trained on the same sample with the same loss
(Neyman-Pearson) and, where they have any in common, the same steps and rates: the kernels by
``sparker.engine.fit`` with an annealed width, read off at the width where ``t`` is largest; the
layer ``f(x) = sum_i a_i ReLU(w_i . x + b_i)`` by Adam. The paper states neither the sample nor how
sparsity was constrained. Locality is the share of ``|f|``, summed over the reference, that lies
more than three spreads away from every anomaly; the truth has none there.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from experiments import record
from jax import Array
from scipy.special import logsumexp
from scipy.stats import norm

from sparker import FitConfig
from sparker.calibration.settings import plain
from sparker.engine import (
    TwoSample,
    fit,
    log_ratio,
    neyman_pearson,
    schedule,
    two_sample,
    width_range,
)
from sparker.presets import annealed

SEED = 0
PLACES = np.array([[-1.5, 1.0], [1.2, -1.2]])
SPREAD, FRACTION = 0.25, 0.03
"""Of each anomaly: its width, and its events for each one expected."""
BACKGROUND = 2.0
EXPECTED, N_REFERENCE = 2_000, 10_000
UNITS = (2, 5, 10, 30)
STEPS = 10_000
QUICK_STEPS, QUICK_UNITS = 500, (2, 5)
RATE = annealed()["config"].amplitude_rate
CONFIG = FitConfig(amplitude_rate=RATE)
LAYER_RATE = 0.01
EDGE, N_PIXELS = 5.0, 41
FAR = 3 * SPREAD

Layer = dict[str, Array]


def draw_sample() -> tuple[np.ndarray, np.ndarray]:
    """Reference and data: a wide Gaussian, and in the data two small clusters."""
    rng = np.random.default_rng(SEED)
    reference = BACKGROUND * rng.normal(size=(N_REFERENCE, 2))
    n_signal = rng.poisson(FRACTION * EXPECTED, size=len(PLACES))
    signal = np.repeat(PLACES, n_signal, 0) + SPREAD * rng.normal(size=(n_signal.sum(), 2))
    background = BACKGROUND * rng.normal(size=(rng.poisson(EXPECTED), 2))
    return reference, np.concatenate([background, signal])


def truth(x: np.ndarray) -> np.ndarray:  # (n, 2) -> (n,)
    """The log ratio of the true densities, numbers of events included."""
    background = norm.logpdf(x, 0, BACKGROUND).sum(1)
    signals = [np.log(FRACTION) + norm.logpdf(x, place, SPREAD).sum(1) for place in PLACES]
    return logsumexp([background, *signals], axis=0) - background


def layer(parameters: Layer, x: Array) -> Array:  # (n, 2) -> (n,)
    """One layer of ReLU units, added up."""
    return jax.nn.relu(x @ parameters["w"] + parameters["b"]) @ parameters["a"]


def fit_layer(sample: TwoSample, n_units: int, steps: int) -> Layer:
    """Adam on the loss per expected event, from random directions and no output."""
    points, reference, data = (jnp.asarray(array, jnp.float32) for array in sample)
    rng = np.random.default_rng(SEED)
    parameters = {
        "w": jnp.asarray(rng.normal(size=(2, n_units)), jnp.float32),
        "b": jnp.asarray(rng.normal(size=n_units), jnp.float32),
        "a": jnp.zeros(n_units, jnp.float32),
    }
    optimizer = optax.adam(LAYER_RATE)

    def loss(parameters: Layer) -> Array:
        here = TwoSample(points, reference, data)
        return neyman_pearson(layer(parameters, points), here) / EXPECTED

    def step(carry: Any, _: None) -> tuple[Any, None]:
        parameters, state = carry
        updates, state = optimizer.update(jax.grad(loss)(parameters), state)
        return (optax.apply_updates(parameters, updates), state), None

    start = (parameters, optimizer.init(parameters))
    return jax.jit(lambda start: jax.lax.scan(step, start, length=steps))(start)[0][0]


def fit_kernels(sample: TwoSample, n_units: int, steps: int) -> Any:
    """The ensemble at the width where its statistic is largest."""
    settings = dataclasses.replace(CONFIG, n_kernels=n_units)
    fitted = fit(SEED, sample, schedule(*width_range(sample.points), steps=steps), settings)
    return fitted.at(int(np.argmax(fitted.t)))


def quality(f: np.ndarray, x: np.ndarray) -> record.Result:
    """How local a log-ratio is, and how close to the true one, on anomaly-free points x."""
    away = np.min(np.linalg.norm(x[:, None] - PLACES, axis=-1), 1) > FAR
    size = np.abs(f)
    return {
        "share of |f| far from the anomalies": round(float(size[away].sum() / size.sum()), 3),
        "mean |f| far from them": round(float(size[away].mean()), 4),
        "rms error": round(float(np.sqrt(np.mean((f - truth(x)) ** 2))), 4),
    }


def measure(quick: bool) -> record.Result:
    """Fit both kinds with every number of units, on one sample."""
    steps, units = (QUICK_STEPS, QUICK_UNITS) if quick else (STEPS, UNITS)
    reference, data = draw_sample()
    sample = two_sample(reference, data, expected=EXPECTED)
    fresh = BACKGROUND * np.random.default_rng(SEED + 1).normal(size=(20_000, 2))
    axis = np.linspace(-EDGE, EDGE, N_PIXELS)
    pixels = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    maps: dict[str, dict[str, Any]] = {"ReLU": {}, "Gaussian kernels": {}}
    qualities: dict[str, dict[str, Any]] = {"ReLU": {}, "Gaussian kernels": {}}
    for n in units:
        parameters, ensemble = fit_layer(sample, n, steps), fit_kernels(sample, n, steps)
        values = {
            "ReLU": lambda x, p=parameters: np.asarray(layer(p, jnp.asarray(x, jnp.float32))),
            "Gaussian kernels": lambda x, e=ensemble: log_ratio(e, x),
        }
        for kind, of in values.items():
            maps[kind][str(n)] = record.rounded(of(pixels).reshape(N_PIXELS, N_PIXELS), 3)
            qualities[kind][str(n)] = quality(of(fresh), fresh)
        qualities["Gaussian kernels"][str(n)]["width"] = record.rounded(float(ensemble.sigma), 3)
    name = "share of |f| far from the anomalies"
    shares = {
        kind: " / ".join(f"{found[name]:.2f}" for found in by.values())
        for kind, by in qualities.items()
    }
    counts = ", ".join(map(str, units))
    return {
        "settings": {
            "places": PLACES.tolist(),
            "spread": SPREAD,
            "fraction each": FRACTION,
            "background spread": BACKGROUND,
            "expected": EXPECTED,
            "reference": N_REFERENCE,
            "units": units,
            "steps": steps,
            "config": plain(CONFIG),
            "rate of the ReLU layer": LAYER_RATE,
            "far": FAR,
        },
        "row": {
            "experiment": f"local or ReLU units, {counts} of them: share of \\|f\\| far from the "
            "anomalies",
            "paper": "kernels select convex regions, ReLU units do not (a picture)",
            "ours": f"ReLU {shares['ReLU']}; kernels {shares['Gaussian kernels']}",
            "68 % interval": "one sample",
        },
        "quality": qualities,
        "truth": quality(truth(fresh), fresh),
        "deviation": [
            "The paper does not state its sample, nor how sparsity was constrained; here it is "
            "the number of units.",
        ],
        "edge": EDGE,
        "maps": maps | {"truth": record.rounded(truth(pixels).reshape(N_PIXELS, N_PIXELS), 3)},
        "data": record.rounded(data, 3),
    }


def draw(result: record.Result) -> Any:
    """A row of maps for each kind, and beside them the truth and the data."""
    from matplotlib.figure import Figure

    maps, edge = result["maps"], result["edge"]
    kinds = ("ReLU", "Gaussian kernels")
    units = list(maps["ReLU"])
    figure = Figure(figsize=(2.1 * (len(units) + 1), 4.6), layout="constrained")
    axes = figure.subplots(2, len(units) + 1, sharex=True, sharey=True)
    look = {
        "origin": "lower",
        "extent": (-edge, edge, -edge, edge),
        "cmap": "RdBu_r",
        "vmin": -2.5,
        "vmax": 2.5,
        "interpolation": "nearest",
    }
    name = "share of |f| far from the anomalies"
    for row, kind in zip(axes, kinds, strict=True):
        for ax, n in zip(row, units, strict=False):
            image = ax.imshow(np.array(maps[kind][n]), **look)
            far = result["quality"][kind][n][name]
            ax.set_title(
                f"{n} {'units' if kind == 'ReLU' else 'kernels'}, {far:.0%} far", fontsize=9
            )
        row[0].set_ylabel(kind)
    axes[0][-1].imshow(np.array(maps["truth"]), **look)
    axes[0][-1].set_title("truth", fontsize=9)
    axes[1][-1].plot(*np.array(result["data"]).T, ",", color="black", alpha=0.6)
    axes[1][-1].set(title="data", xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal")
    axes[1][-1].title.set_fontsize(9)
    figure.colorbar(image, ax=axes, label="log density ratio $f$", shrink=0.8)
    return figure


main = partial(record.run, __file__, __doc__, measure, draw)


if __name__ == "__main__":
    main()
