"""One kernel, one anomalous point: an annealed width against fixed ones.

    python -m experiments.annealing.run [--quick] [--draw] [--output DIR]

The paper's figure "Scale annealing overcomes the vanishing gradient": the background is two unit
Gaussians at -3 and 3 without fluctuations, one anomalous point lies at -10, and the distance of a
single kernel from it is shown over training. Widths of 5 (too wide) and of 0.5 and 0.05 (too
narrow) do not localise it, 1 does, and annealing does with ever finer resolution.

Here: the same with several starts on random data points, as the paper initialises kernels; all
configurations share them. The paper does not state its start, steps, rates or optimiser. Ours is
Adam (see docs/algorithm.md), at the smaller of the numbers of steps in its table of training
details, on gradients in double precision: they span forty orders of magnitude. Shorter trainings
were tried first, and what they find is in the result too.
"""

from functools import partial
from typing import Any

import numpy as np
from experiments import record
from experiments.annealing.problem import repeated, without_fluctuations

from sparker import FitConfig
from sparker.calibration.settings import plain
from sparker.engine import Schedule, fit_many, schedule, width_range
from sparker.presets import annealed

SEED = 0
ANOMALY = -10.0
EXPECTED = 2000
FIXED = (5.0, 1.0, 0.5, 0.05)
CONFIG = FitConfig(
    n_kernels=1, amplitude_rate=annealed()["config"].amplitude_rate, dtype=np.float64
)
STEPS, N_STARTS = 40_000, 10
SHORTER = (1_000, 10_000)
"""Trainings tried as well: the number of steps was settled with their outcome known."""
QUICK_STEPS, QUICK_SHORTER, QUICK_STARTS = 2_000, (500,), 4
N_READ = 100
NEAR = 0.1
"""At the end of training no further away than this: found."""


def measure(quick: bool) -> record.Result:
    """The distances over training, of every start and width."""
    steps, n_starts = (QUICK_STEPS, QUICK_STARTS) if quick else (STEPS, N_STARTS)
    sample = without_fluctuations([ANOMALY], EXPECTED)
    first, last = width_range(sample.points)

    def plans_of(steps: int) -> dict[str, Schedule]:
        plans = {"annealed": schedule(first, last, steps=steps)}
        return plans | {f"fixed {width:g}": schedule(width, width, steps=steps) for width in FIXED}

    def distances(plan: Schedule) -> np.ndarray:  # (starts, reads)
        n_steps = len(plan.sigma) // N_READ
        fits = fit_many(SEED, repeated(sample, n_starts), plan.every(n_steps), CONFIG)
        return np.abs(fits.models.mu[..., 0, 0] - ANOMALY)

    plans = plans_of(steps)
    found = {name: distances(plan) for name, plan in plans.items()}
    # Fixed narrow widths do not move: their first distances are those of the starts.
    starts = found[f"fixed {FIXED[-1]:g}"][:, 0]
    near_side = starts < -ANOMALY
    shares = {
        name: {
            "all starts": record.share(int(np.sum(d[:, -1] < NEAR)), n_starts),
            "starts on the anomaly's side": record.share(
                int(np.sum(d[near_side, -1] < NEAR)), int(near_side.sum())
            ),
            "last distances": record.rounded(d[:, -1], 3),
        }
        for name, d in found.items()
    }
    shorter = {
        f"{fewer:,} steps": {
            name: record.share(
                int(np.sum(distances(plan)[near_side, -1] < NEAR)), int(near_side.sum())
            )
            for name, plan in plans_of(fewer).items()
        }
        for fewer in (QUICK_SHORTER if quick else SHORTER)
    }
    side = {name: share["starts on the anomaly's side"] for name, share in shares.items()}
    return {
        "settings": {
            "anomaly": ANOMALY,
            "expected": EXPECTED,
            "steps": steps,
            "starts": n_starts,
            "annealed widths": record.rounded([first, last]),
            "fixed widths": FIXED,
            "config": plain(CONFIG),
            "found within": NEAR,
        },
        "row": {
            "experiment": "annealing against fixed widths, one kernel, anomaly at -10",
            "paper": "annealed and 1 localise it; 5, 0.5 and 0.05 do not",
            "ours": "found from the anomaly's side, "
            + ", ".join(f"{name} {share['k']}/{share['n']}" for name, share in side.items()),
            "68 % interval": ", ".join(
                f"[{share['low']:.2f}, {share['high']:.2f}]" for share in side.values()
            ),
        },
        "found": shares,
        "found from the anomaly's side in shorter trainings": shorter,
        "deviation": [
            "The paper does not say where its kernel starts. From the far side of the background "
            "no width finds the anomaly, annealed or not: the wide kernel is pushed away from the "
            "background, to the side it stands on.",
            "Width 1 localises within the steps only if it starts close enough to feel the "
            "anomaly; from the other starts it is pushed into the gap between the Gaussians.",
            "The number of steps is not stated in the paper and was settled after shorter "
            "trainings had been looked at; see what is found in these.",
            "An annealed kernel that arrives first leaves for 40 to the left, while it is wider "
            "than the whole sample, and comes back as it narrows.",
        ],
        "starts": record.rounded(ANOMALY + starts),
        "step": (plans["annealed"].every(steps // N_READ).read_off + 1).tolist(),
        "distance": {name: record.rounded(d) for name, d in found.items()},
    }


def draw(result: record.Result) -> Any:
    """Distance over training: of one start, and of all."""
    from matplotlib.figure import Figure

    from sparker.plots.style import DASHES, KERNELS

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    step = np.array(result["step"]) / 1000
    starts = np.array(result["starts"])
    shown = int(np.argmax(starts < 0))
    for i, (name, distance) in enumerate(result["distance"].items()):
        d = np.maximum(distance, 1e-4)
        style = {"color": KERNELS[i], "linestyle": DASHES[i % len(DASHES)]}
        label = name if name == "annealed" else rf"$\sigma = {name.removeprefix('fixed ')}$"
        left.plot(step, d[shown], lw=2.5, label=label, **style)
        right.plot(step, d.T, lw=1, alpha=0.7, **style)
    last = result["settings"]["annealed widths"][1]
    for ax in (left, right):
        ax.axhline(last, color="grey", lw=0.8, ls=":")
        ax.set(yscale="log", xlabel="training step / 1,000", ylim=(7e-5, 100))
    left.text(0.3 * step[-1], last * 1.2, "last annealed width", fontsize=8, color="grey")
    left.set(
        ylabel="distance of the kernel from the anomaly",
        title=f"from the first start on its side, {starts[shown]:.1f}",
    )
    far = int(np.sum(starts > 0))
    right.set(title=f"from all {len(starts)} starts, {far} of them on the other side")
    left.legend(loc="center", fontsize=9, bbox_to_anchor=(0.52, 0.61))
    return figure


main = partial(record.run, __file__, __doc__, measure, draw)


if __name__ == "__main__":
    main()
