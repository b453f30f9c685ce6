"""Where the distance to the paper's power may come from: one thing changed at a time.

    python -m experiments.losses.variants [--quick] [--only NAME ...] [--output FILE]

The paper has a power of 0.86 for the bump in the extreme tail, ours with annealed kernels 0.76. It
does not state clip, steps, rates, optimiser, number of kernels or read-offs of its toys, nor
whether all have one reference. Each variant changes one of them in ``presets.annealed()``: a
setting, the way to train (``training``) or the way to draw experiments (``drawing``). All but the
last fit the same experiments. Adds to ``variants.json``, variant by variant: a run that is
interrupted goes on where it was. ``python -m experiments.losses.tables`` makes the table of
docs/reproduction.md.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments.losses.drawing import FIVE, drawings
from experiments.losses.extreme_tail import COMPARED, Readings, best_width
from experiments.losses.training import Training, statistics, trained, ways
from experiments.power.run import Setting

from sparker.engine import binary_cross_entropy, independent, mean_squared_error
from sparker.engine.widths import geometric
from sparker.presets import annealed
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "variants.json"
QUICK_STEPS = 50

Measure = Callable[[bool], dict[str, Any]]
"""The powers of one variant; of a quick run, or not."""

readings = cache(Readings)


def ours(quick: bool) -> Setting:
    """What is varied."""
    made = Setting(**annealed())
    return shortened(made) if quick else made


def shortened(setting: Setting) -> Setting:
    """For a quick run."""
    return setting._replace(widths=replace(setting.widths, steps=QUICK_STEPS))


def by_setting(setting: Setting, quick: bool) -> dict[str, Any]:
    """Another setting of the engine."""
    return readings(quick).power(shortened(setting) if quick else setting, setting.config)


def by_training(way: Training, quick: bool, steps: int | None = None) -> dict[str, Any]:
    """Another way to train."""
    setting = ours(quick)
    if steps is not None and not quick:
        setting = setting._replace(widths=replace(setting.widths, steps=steps))
    drawn = readings(quick)
    plan = setting.widths.schedule(drawn.problem.basis)
    t = statistics(drawn.samples, plan, way, *trained(drawn.samples, plan, way))
    return drawn.judged(np.stack([t, t], -1), plan, setting)


@cache
def drawn_otherwise(name: str, quick: bool) -> Readings:
    """Other experiments."""
    return Readings(quick, drawings(quick)[name])


def by_drawing(name: str, quick: bool, **change: Any) -> dict[str, Any]:
    """The same kernels on other experiments, or kernels that differ in a setting."""
    setting = ours(quick)
    return drawn_otherwise(name, quick).power(setting, replace(setting.config, **change))


def variants() -> dict[str, dict[str, Measure]]:
    """What is tried, by what is changed."""
    base = annealed()

    def fit(**change: Any) -> Measure:
        return partial(by_setting, Setting(replace(base["config"], **change), base["widths"]))

    def widths(**change: Any) -> Measure:
        return partial(by_setting, Setting(base["config"], replace(base["widths"], **change)))

    slow = ways()["one rate for all in the data's units, 0.001"]
    return {
        "settings": {
            "annealed, as it is": fit(),
            **{f"clip {clip}": fit(clip=float(clip)) for clip in (1, 2, 3, 10, 20, 100)},
            **{f"{n} kernels": fit(n_kernels=n) for n in (1, 2, 3, 10, 20)},
            **{f"location rate {rate}": fit(location_rate=rate) for rate in (0.001, 0.003, 0.03)},
            **{f"amplitude rate {rate}": fit(amplitude_rate=rate) for rate in (0.005, 0.02, 0.2)},
            **{f"L2 {l2}": fit(l2=l2) for l2 in (1e-3, 0.1, 1.0)},
            **{f"{steps:,} steps": widths(steps=steps) for steps in (300, 3_000, 10_000)},
            "geometric annealing": widths(annealing=geometric),
            "read off at equal numbers of steps": widths(evenly=True),
            **{f"{n} read-offs": widths(n_widths=n) for n in (5, 20)},
            **{f"last width {width}": widths(last=width) for width in (0.02, 0.05, 0.1, 0.2)},
            **{f"first width {width}": widths(first=width) for width in (1.0, 3.0)},
        },
        "training": {
            **{name: partial(by_training, way) for name, way in ways().items()},
            "one rate for all in the data's units, 0.001, 10,000 steps": partial(
                by_training, slow, steps=10_000
            ),
        },
        "experiments": {name: partial(by_drawing, name) for name in drawings(quick=True)},
        "five signal events": {
            "BCE": partial(by_drawing, FIVE, loss=binary_cross_entropy),
            "MSE": partial(by_drawing, FIVE, loss=mean_squared_error),
            "no SoftMax": partial(by_drawing, FIVE, competition=independent),
        },
    }


def shown(found: dict[str, Any]) -> dict[str, Any]:
    """What is kept of the powers of a variant."""
    return {
        "paper's combination": found[COMPARED],
        "our combination": found["t, our combination"],
        "best width": best_width(found),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing."""
    every = {name: measure for group in variants().values() for name, measure in group.items()}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few events, toys and steps")
    parser.add_argument("--only", nargs="+", choices=list(every), default=list(every))
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {
        "command": "python -m experiments.losses.variants",
        "versions": versions(),
        "published": 0.86,
        "power": {},
    }
    if options.output.exists():
        record["power"] = json.loads(options.output.read_text())["power"]
    for name in options.only:
        if name in record["power"]:
            continue
        record["power"][name] = shown(every[name](options.quick))
        options.output.write_text(json.dumps(record, indent=1) + "\n")
        powers = {of: share["power"] for of, share in record["power"][name].items()}
        print(name, powers, flush=True)


if __name__ == "__main__":
    main()
