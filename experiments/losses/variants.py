"""Where the distance to the paper's power may come from: one setting changed at a time.

    python -m experiments.losses.variants [--quick] [--only NAME ...] [--output FILE]

The paper has a power of 0.86 for the bump in the extreme tail, ours with annealed kernels 0.76. The
paper does not state clip, steps, rates, number of kernels or read-offs of its toys. Each variant
changes one of them in ``sparker.presets.annealed()`` and fits the same experiments. Adds to
``variants.json``, variant by variant: a run that is interrupted goes on where it was.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.losses.extreme_tail import COMPARED, Readings, best_width
from experiments.power.run import Setting

from sparker.engine.widths import geometric
from sparker.presets import annealed
from sparker.system.versions import versions

RESULT = Path(__file__).parent / "variants.json"
QUICK_STEPS = 50


def variants() -> dict[str, Setting]:
    """The annealed kernels, and what is tried instead."""
    base = annealed()

    def fit(**change: Any) -> Setting:
        return Setting(replace(base["config"], **change), base["widths"])

    def widths(**change: Any) -> Setting:
        return Setting(base["config"], replace(base["widths"], **change))

    return {
        "annealed": fit(),
        **{f"clip {clip}": fit(clip=float(clip)) for clip in (1, 2, 3, 10, 20, 100)},
        **{f"{n} kernels": fit(n_kernels=n) for n in (1, 2, 3, 10, 20)},
        **{f"location rate {rate}": fit(location_rate=rate) for rate in (0.001, 0.003, 0.03)},
        **{f"amplitude rate {rate}": fit(amplitude_rate=rate) for rate in (0.005, 0.02, 0.2)},
        **{f"L2 {l2}": fit(l2=l2) for l2 in (1e-3, 0.1, 1.0)},
        **{f"{steps:,} steps": widths(steps=steps) for steps in (300, 3_000, 10_000, 100_000)},
        "geometric annealing": widths(annealing=geometric),
        "read off at equal numbers of steps": widths(evenly=True),
        **{f"{n} read-offs": widths(n_widths=n) for n in (5, 20)},
        **{f"last width {width}": widths(last=width) for width in (0.02, 0.05, 0.1, 0.2)},
        **{f"first width {width}": widths(first=width) for width in (1.0, 3.0)},
    }


def measured(readings: Readings, setting: Setting) -> dict[str, Any]:
    """The powers of one variant."""
    found = readings.power(setting, setting.config)
    return {
        "paper's combination": found[COMPARED],
        "our combination": found["t, our combination"],
        "best width": best_width(found),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing."""
    every = variants()
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
    readings = Readings(options.quick)
    for name in options.only:
        if name in record["power"]:
            continue
        setting = every[name]
        if options.quick:
            setting = setting._replace(widths=replace(setting.widths, steps=QUICK_STEPS))
        record["power"][name] = measured(readings, setting)
        options.output.write_text(json.dumps(record, indent=1) + "\n")
        shown = {of: share["power"] for of, share in record["power"][name].items()}
        print(name, shown, flush=True)


if __name__ == "__main__":
    main()
