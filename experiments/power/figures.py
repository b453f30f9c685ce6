"""The figures of the powers, from result.json: bars for the toys, curves for the embeddings.

python -m experiments.power.figures
"""

import json
import re
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from experiments.power.run import ALPHA, DEFAULT, HERE, PEERS

COLOURS = {
    DEFAULT: "#c1272d",
    "1 kernel": "#e58b6c",
    "10 kernels": "#7d1a1f",
    "annealed": "#f2c14e",
    **dict(
        zip(
            PEERS,
            (
                "#0b6e99",
                "#3b4cc0",
                "#58a4b0",
                "#5b8c5a",
                "#a3b18a",
                "#8d6a9f",
                "#c8a2c8",
                "#8a8a8a",
                "#4d4d4d",
            ),
            strict=True,
        )
    ),
    "oracle": "#d0d0d0",
}


def bars(problems: dict[str, Any]) -> None:
    """Power of every test for every signal of the toys."""
    toys = [name for name in problems if name[1:].startswith("-D")]
    figure, axes = plt.subplots(len(toys), 1, figsize=(9, 2.6 * len(toys)), layout="constrained")
    for axis, name in zip(axes, toys, strict=True):
        power = problems[name]["power"]
        ways = [way for way in COLOURS if way in power]
        signals = [signal for signal in power[DEFAULT] if signal != "none"]
        width = 0.85 / len(ways)
        for i, way in enumerate(ways):
            share = [power[way][signal] for signal in signals]
            value = np.array([one["power"] for one in share])
            error = [value - [one["low"] for one in share], [one["high"] for one in share] - value]
            place = np.arange(len(signals)) + (i - (len(ways) - 1) / 2) * width
            axis.bar(place, value, width, color=COLOURS[way], label=way)
            axis.errorbar(place, value, error, fmt="none", ecolor="#333333", elinewidth=0.8)
        axis.axhline(ALPHA, color="black", lw=0.8, ls=":")
        axis.set(title=name, ylabel=f"power at {ALPHA:.0%}", ylim=(0, 1.05))
        axis.set_xticks(range(len(signals)), signals)
        axis.spines[["top", "right"]].set_visible(False)
    handles = {}
    for axis in axes:
        handles |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(handles.values(), handles, loc="outside right upper", frameon=False, fontsize=8)
    figure.savefig(HERE / "toys.png", dpi=90)


def curves(problems: dict[str, Any]) -> None:
    """Power against the share of anomalies in each real data set."""
    kinds = [
        (name, kind)
        for name, found in problems.items()
        for kind in dict.fromkeys(
            signal.rsplit(" ", 1)[0] for signal in found["power"][DEFAULT] if "%" in signal
        )
        if sum(signal.startswith(f"{kind} ") for signal in found["power"][DEFAULT]) > 1
    ]
    columns = 4
    n_rows = -(-len(kinds) // columns)
    figure, axes = plt.subplots(
        n_rows, columns, figsize=(11, 2.6 * n_rows), sharey=True, layout="constrained"
    )
    for axis in axes.flat[len(kinds) :]:
        axis.set_visible(False)
    handles: dict[str, Any] = {}
    for axis, (name, kind) in zip(axes.flat, kinds, strict=False):
        power = problems[name]["power"]
        for way in (way for way in COLOURS if way in power):
            share = {
                float(match[1]): value
                for signal, value in power[way].items()
                if (match := re.fullmatch(rf"{re.escape(kind)} (\d+)%", signal))
            }
            x = list(share)
            (line,) = axis.plot(x, [s["power"] for s in share.values()], color=COLOURS[way])
            low, high = ([s[end] for s in share.values()] for end in ("low", "high"))
            axis.fill_between(x, low, high, color=COLOURS[way], alpha=0.2, lw=0)
            handles[way] = line
        axis.axhline(ALPHA, color="black", lw=0.8, ls=":")
        axis.set(title=f"{name}: {kind}" if kind != "anomaly" else name, ylim=(0, 1.03))
        axis.set_xlabel("anomalies, %")
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel(f"power at {ALPHA:.0%}")
    figure.legend(handles.values(), handles, loc="outside right upper", frameon=False, fontsize=8)
    figure.savefig(HERE / "embeddings.png", dpi=90)


def main() -> None:
    """Draw both."""
    problems = json.loads((HERE / "result.json").read_text())["problems"]
    bars(problems)
    curves(problems)


if __name__ == "__main__":
    main()
