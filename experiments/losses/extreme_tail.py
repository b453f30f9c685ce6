"""The paper's bump in the extreme tail of an exponential: what its ablations are measured on.

A unit exponential with 20,000 reference and Poisson(2,000) data events, and five expected signal
events at 9 with a width of 0.16. Three ways to fit it:

* **paper**: ``sparker.presets.paper("jets")``, clip 100, read off at equal numbers of steps. The
  paper does not state clip, L2 coefficient or steps of its toys, so these are of one application;
* **annealed**: ``sparker.presets.annealed()``, the same training with clip 5 and read off at equal
  ratios of the width;
* **default**: kernels and scans, whose verdict rests on more statistics than ``t``: the first four
  families of what ``sparker.test`` does, not all of it.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from experiments.power.problems import Problem, toy
from experiments.power.run import Setting, Verdict, everything, judge, some
from experiments.toys import exponential

from sparker import FitConfig, minimum_and_product
from sparker.calibration.settings import plain
from sparker.engine import Competition, Ensemble, Loss, TwoSample, fit_many
from sparker.engine.widths import Schedule
from sparker.presets import annealed, paper

SEED = 0
SIGNAL = "extreme tail"
STEPS = 1000
N_TOYS = (400, 200, 200)
"""Experiments that calibrate, that measure the level, and with a signal."""
EXPECTED = 2_000
QUICK_STEPS, QUICK, QUICK_EXPECTED = 50, (20, 5, 5), 200

PAPER, ANNEALED, DEFAULT = "paper", "annealed", "default"
COMPARED = "t, paper's combination"
"""What stands beside the paper's number."""
LABELS = {PAPER: "paper's settings", ANNEALED: "annealed", DEFAULT: "kernels and scans"}


def settings(quick: bool) -> dict[str, Setting]:
    """The ways to fit; a quick run shortens the annealed ones and leaves the default out."""
    steps = QUICK_STEPS if quick else STEPS
    ours = annealed()
    ours["widths"] = dataclasses.replace(ours["widths"], steps=steps)
    ways = {PAPER: Setting(**paper("jets", steps=steps)), ANNEALED: Setting(**ours)}
    return ways if quick else ways | {DEFAULT: Setting()}


def problem(quick: bool) -> Problem:
    """The one-dimensional toys with this signal only; a quick run has a tenth of the events."""
    whole = toy("1-D", exponential, QUICK_EXPECTED if quick else EXPECTED)
    return dataclasses.replace(whole, signals=(SIGNAL,))


@functools.partial(jax.jit, static_argnames=("loss", "competition"))
def gain(models: Ensemble, samples: TwoSample, loss: Loss, competition: Competition) -> Any:
    """``2 (L[0] - L[f])``, twice what the model gains in a loss: (B, m), one number a width.

    For the Neyman-Pearson loss, which is 0 at f = 0, this is the paper's ``t``.
    """

    def one(model: Ensemble, sample: TwoSample) -> Any:
        squared = [jnp.sum((sample.points - mu) ** 2, -1) for mu in model.mu]
        k = [jnp.exp(-0.5 * r2 / model.sigma**2) for r2 in squared]
        parts = zip(model.a, competition.activation(k), k, strict=True)
        f = sum(a_i * p_i * k_i for a_i, p_i, k_i in parts)
        return 2 * (loss(jnp.zeros_like(f), sample) - loss(f, sample))

    of_widths = jax.vmap(one, (0, None))
    return jax.lax.map(lambda toy: of_widths(*toy), (models, samples))


NOT_STATED = [
    "Clip, L2 coefficient, steps, rates, optimiser, number of toys and of kernels of the "
    "paper's table are not stated; five kernels are those of its applications.",
    "Steps are a thousand, not a hundred thousand as in its applications.",
]
"""Of the paper's ablations."""


class Readings:
    """Fits of the same experiments in different ways: what they say at each width."""

    def __init__(self, quick: bool, own: Problem | None = None):
        self.n = QUICK if quick else N_TOYS
        self.problem = own or problem(quick)
        n_null, n_level, n_signal = self.n
        self.n_free = n_null + n_level
        free = self.problem.draw(None, range(self.n_free))
        found = self.problem.draw(SIGNAL, range(n_signal))
        # One batch, without the signal first: one program, compiled once.
        self.samples = TwoSample(*map(np.concatenate, zip(free, found, strict=True)))

    def powers(
        self, quick: bool, field: str, choices: dict[str, Any]
    ) -> dict[str, dict[str, dict[str, Any]]]:
        """In each way to fit, the power of each choice for one field of its settings."""
        return {
            name: {
                choice: self.power(way, dataclasses.replace(way.config, **{field: value}))
                for choice, value in choices.items()
            }
            for name, way in settings(quick).items()
        }

    def power(self, setting: Setting, config: FitConfig) -> dict[str, Any]:
        """Power and level of each width and of their combinations, by ``t`` and by the own loss."""
        plan = setting.widths.schedule(self.problem.basis)

        fits = fit_many(SEED, self.samples, plan, config)
        with jax.enable_x64(True):
            own = np.asarray(gain(fits.models, self.samples, config.loss, config.competition))
        values = np.concatenate([fits.statistics, own[..., None]], -1)
        return self.judged(np.where(fits.finite[:, None, None], values, np.nan), plan, setting)

    def judged(self, values: np.ndarray, plan: Schedule, setting: Setting) -> dict[str, Any]:
        """Power and level, of statistics (n, m, r): the first is ``t``, the last the own loss."""

        def run(signal: str | None, _: range) -> np.ndarray:  # (n, m, r)
            return values[self.n_free :] if signal else values[: self.n_free]

        found = judge(self.problem, run, self.verdicts(len(plan.read_off), setting), self.n)
        widths = plan.widths.tolist()
        by_width = [
            {"width": float(f"{width:.4g}"), **found.pop(f"width {i}")[SIGNAL]}
            for i, width in enumerate(widths)
        ]
        return {
            **{
                name: {**shares[SIGNAL], "level": shares["none"]["power"]}
                for name, shares in found.items()
            },
            "t at one width": by_width,
        }

    @staticmethod
    def verdicts(n_widths: int, setting: Setting) -> dict[str, Verdict]:
        """What is made of the statistics: the last is the own loss, the first ``t``."""
        combine = minimum_and_product

        def width(i: int) -> Verdict:
            return Verdict(lambda values: values[:, i, :1], graded=False)

        found = {
            COMPARED: Verdict(some(0), combine, graded=False),
            "t, our combination": Verdict(some(0)),
            "own loss, paper's combination": Verdict(some(-1), combine, graded=False),
        }
        if setting.widths.annealing is None:  # more was read off
            found["all readings"] = Verdict(lambda values: everything(values[..., :-1]))
        return found | {f"width {i}": width(i) for i in range(n_widths)}


def plain_settings(quick: bool) -> dict[str, Any]:
    """All of them, as JSON knows them."""
    return {
        "experiments that calibrate, for the level, with the signal": QUICK if quick else N_TOYS,
        "expected": QUICK_EXPECTED if quick else EXPECTED,
        "ways to fit": {name: plain(way._asdict()) for name, way in settings(quick).items()},
    }


def shown(found: dict[str, Any]) -> str:
    """A power."""
    return f"{found['power']:.2f}"


def interval(found: dict[str, Any]) -> str:
    """And its interval."""
    return f"[{found['low']:.2f}, {found['high']:.2f}]"


def summary(powers: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """Our powers for the table, and the intervals of the first of them."""

    def all_of(way: str, shares: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
        return " / ".join(shown(shares(found)) for found in powers[way].values())

    text = f"{all_of(ANNEALED, lambda found: found[COMPARED])} annealed "
    text += f"(best single width {all_of(ANNEALED, best_width)}), "
    text += f"{all_of(PAPER, lambda found: found[COMPARED])} with the paper's clip and read-offs"
    if DEFAULT in powers:
        text += f"; kernels and scans {all_of(DEFAULT, lambda found: found['all readings'])}"
    return text, ", ".join(interval(found[COMPARED]) for found in powers[ANNEALED].values())


def best_width(found: dict[str, Any]) -> dict[str, Any]:
    """The width with the largest power: chosen with hindsight, an upper limit."""
    return max(found["t at one width"], key=lambda share: share["power"])


def compared(
    powers: dict[str, dict[str, Any]], published: dict[str, float]
) -> dict[str, dict[str, Any]]:
    """Ours beside the paper's numbers, by setting, and whether these lie in our intervals."""
    return {
        setting: {
            name: {
                "paper": published[name],
                "ours": found["power"],
                "interval": [found["low"], found["high"]],
                "paper's within": bool(found["low"] <= published[name] <= found["high"]),
            }
            for name, found in ((name, by[COMPARED]) for name, by in of_setting.items())
        }
        for setting, of_setting in powers.items()
    }


def figure(result: dict[str, Any], title: str) -> Any:
    """Left: the powers beside the paper's. Right: the power of single widths."""
    from matplotlib.figure import Figure

    from sparker.plots.style import KERNELS, MARKERS

    picture = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = picture.subplots(1, 2, sharey=True)
    variants = list(result["published"])
    for i, variant in enumerate(variants):
        published = result["published"][variant]
        left.bar(i, published, 0.8, color="0.88", label=None if i else "published")
        for j, (name, powers) in enumerate(result["power"].items()):
            found = powers[variant]["all readings" if name == DEFAULT else COMPARED]
            p = found["power"]
            left.errorbar(
                i + 0.2 * (j - 1),
                p,
                [[p - found["low"]], [found["high"] - p]],
                fmt=MARKERS[j],
                color=KERNELS[j],
                capsize=3,
                label=None if i else LABELS[name],
            )
        widths = result["power"][ANNEALED][variant]["t at one width"]
        x, p, low, high = ([w[key] for w in widths] for key in ("width", "power", "low", "high"))
        right.fill_between(x, low, high, color=KERNELS[i], alpha=0.2)
        right.plot(x, p, marker=MARKERS[i], color=KERNELS[i], label=variant)
    left.set_xticks(range(len(variants)), variants)
    left.set(ylim=(0, 1.15), ylabel="power at 5 %", title=title)
    left.legend(fontsize=8.5, ncols=4, loc="upper center", columnspacing=1, handletextpad=0.4)
    right.set(xscale="log", xlabel=r"width $\sigma$", title="one width alone (annealed)")
    right.legend(fontsize=9, loc="upper left")
    return picture
