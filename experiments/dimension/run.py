"""How the power depends on the dimension of the representation: jets, by PCA to 2, 4, ..., 128.

    python -m experiments.dimension.run --data DIR [--quick] [--draw] [--output DIR]

DIR holds ``jets_particlenet_169d.npz`` with ``reference_pool`` (n, 169), jets of known kinds
through a trained network, and ``anomaly`` (k, 169), jets of a Higgs boson; no pickles. Drawing
alone needs no data.

The paper's figure "Impact of latent space size in particle jets discovery": power at 5 % with 1 %
of anomalies against the size of the latent space, of SparKer, Falkon, MMD, Mahalanobis and Frechet
tests. All but Mahalanobis keep their power, which loses it as dimensions are added.

Here: one network and principal components of its output, where the paper trains a network for each
size. Columns are standardised, directions are found on nominal rows alone, and each component is
then brought to unit variance, as ``sparker.test`` does unless told otherwise: all directions count
alike, and noise is not told from signal by its variance. (Mahalanobis does not depend on scales.)
All methods see the same experiments: random splits of the nominal rows, some data rows replaced.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments import record
from experiments.power.problems import Kind, Problem, embedded, on_pool
from experiments.power.run import ALPHA, Verdict, by_family, everything, power

from sparker import standardise
from sparker.calibration.settings import plain
from sparker.engine import Toys, TwoSample
from sparker.engine.preprocess import principal_directions
from sparker.statistics import MMD, Frechet, Mahalanobis
from sparker.statistics.contract import Statistic
from sparker.statistics.kernels import KernelStatistic

SEED = 0
FILE = "jets_particlenet_169d.npz"
DIMENSIONS = (2, 4, 8, 16, 32, 64, 128)
FRACTIONS = (0.02, 0.05)
N_REFERENCE, N_DATA = 6_000, 1_000
N_EXPERIMENTS = (200, 100, 100)
"""Experiments that calibrate, that measure the level, and of each signal."""
QUICK_DIMENSIONS, QUICK_EXPERIMENTS = (2, 16), (20, 6, 6)
QUICK_REFERENCE, QUICK_DATA = 400, 200

SPARKER = "sparker"
METHODS: dict[str, Statistic] = {
    SPARKER: KernelStatistic(),
    "MMD": MMD(),
    "Frechet": Frechet(),
    "Mahalanobis": Mahalanobis(),
}

Draw = Callable[[Sequence[Kind]], TwoSample]


def load(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Nominal and anomalous rows."""
    with np.load(folder / FILE, allow_pickle=False) as file:
        return tuple(file[name].astype(np.float32) for name in ("reference_pool", "anomaly"))


def components(
    nominal: np.ndarray, anomalies: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # (N, n), (K, n), (n,)
    """Both in the nominal rows' first n principal components, and the share of variance of each."""
    transform = standardise(nominal)
    rows = transform(nominal)
    directions = principal_directions(rows, n)
    first = rows @ directions
    share = first.var(0) / rows.var(0).sum()
    return first, transform(anomalies) @ directions, share


def apart(problem: Problem, kinds: Sequence[Kind]) -> TwoSample:
    """A batch of experiments of any kinds, each with points of its own."""
    drawn = [problem.draw(signal, [number]) for signal, number in kinds]
    return TwoSample(*map(np.concatenate, zip(*drawn, strict=True)))


def measured(
    statistic: Statistic, basis: np.ndarray, draw: Draw, kinds: Sequence[Kind]
) -> np.ndarray:  # (n, m, r)
    """What a statistic says of each experiment; all go through one compiled program."""
    prepared = statistic.prepare(basis)

    def numbered(numbers: Sequence[int]) -> TwoSample:
        return draw([kinds[number] for number in numbers])

    experiments = Toys(numbered)
    chunk = prepared.chunk_size(experiments, 0, len(kinds))
    chunks = prepared.chunks(SEED, experiments, range(len(kinds)), chunk)
    return by_family(prepared, chunks)


def powers(problem: Problem, n: tuple[int, int, int]) -> dict[str, dict[str, dict[str, Any]]]:
    """Of each method on each signal; "none" is the measured level."""
    n_null, n_level, n_signal = n
    signals: list[str | None] = [None] * (n_null + n_level)
    numbers = [*range(n_null + n_level)]
    for signal in problem.signals:
        signals += [signal] * n_signal
        numbers += range(n_signal)
    kinds = list(zip(signals, numbers, strict=True))
    parts = np.cumsum([n_null, n_level, *(n_signal for _ in problem.signals)])[:-1]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, statistic in METHODS.items():
        # The default looks at points of toys that share them in another way than at their own.
        draw = partial(apart, problem) if name == SPARKER else partial(on_pool, problem)
        statistics = measured(statistic, problem.basis, draw, kinds)
        null, *tested = np.split(statistics, parts)
        found[name] = {
            signal: power(null, some, {name: Verdict(everything)})[name]
            for signal, some in zip(("none", *problem.signals), tested, strict=True)
        }
    return found


def measure(folder: Path | None, quick: bool) -> record.Result:
    """The power of each method at each dimension."""
    if folder is None:
        raise SystemExit(f"--data DIR is missing, a folder with {FILE}; see --help")
    dimensions = QUICK_DIMENSIONS if quick else DIMENSIONS
    n = QUICK_EXPERIMENTS if quick else N_EXPERIMENTS
    sizes = (QUICK_REFERENCE, QUICK_DATA) if quick else (N_REFERENCE, N_DATA)
    nominal, anomalies, share = components(*load(folder), max(dimensions))
    wanted = [("anomalies", fraction) for fraction in FRACTIONS]
    by_dimension = []
    for dimension in dimensions:
        kinds = {"anomalies": anomalies[:, :dimension]}
        problem = embedded("jets", nominal[:, :dimension], kinds, wanted, *sizes)
        found = powers(problem, n)
        shown = {name: [each["power"] for each in of.values()] for name, of in found.items()}
        print(dimension, shown, flush=True)
        variance = round(float(share[:dimension].sum()), 4)
        by_dimension.append({"dimension": dimension, "variance kept": variance, "power": found})
    return {
        "command": "python -m experiments.dimension.run --data DIR" + " --quick" * quick,
        "settings": {
            "seed": SEED,
            "alpha": ALPHA,
            "reference rows": sizes[0],
            "data rows": sizes[1],
            "fractions": list(FRACTIONS),
            "experiments that calibrate, for the level, of each signal": list(n),
            "components": "of standardised columns, from nominal rows, brought to unit variance",
            "methods": plain(METHODS),
        },
        "row": row(by_dimension, problem.signals[0]),
        "by dimension": by_dimension,
        "deviation": [
            "Principal components of one network's output; the paper trains a network a size.",
            f"{sizes[0]:,} reference and {sizes[1]:,} data rows, the paper has 100,000 and 20,000; "
            "so 2 % and 5 % of anomalies, not 1 %.",
            "Anomalies replace data rows and the number of rows is fixed; the paper's fluctuate.",
            "Components have unit variance each, whatever the variance they stand for.",
            "No Falkon; MMD looks at all pairs of rows, the paper's at Nystrom centres.",
        ],
    }


def row(by_dimension: list[dict[str, Any]], signal: str) -> dict[str, str]:
    """The line of the table: powers at every dimension, intervals of the first method."""
    powers = {name: [one["power"][name][signal] for one in by_dimension] for name in METHODS}
    label = {SPARKER: "kernels and scans"}  # not the default, which has more component tests
    shown = {name: ", ".join(f"{one['power']:.2f}" for one in of) for name, of in powers.items()}
    return {
        "experiment": f"jets by PCA, {percent(signal)} anomalies, power at 5 % in "
        f"{', '.join(str(one['dimension']) for one in by_dimension)} dimensions",
        "paper": "stable for all but Mahalanobis, which loses power (latent space by size)",
        "ours": "; ".join(f"{label.get(name, name)} {of}" for name, of in shown.items()),
        "68 % interval": ", ".join(
            f"[{one['low']:.2f}, {one['high']:.2f}]" for one in powers[SPARKER]
        )
        + f" of {label[SPARKER]}",
    }


def percent(signal: str) -> str:
    """How much of the data a signal makes up."""
    return signal.split()[1].replace("%", " %")


def draw(result: record.Result) -> Any:
    """Power against dimension, a panel a fraction, a line a method."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator

    from sparker.plots.style import kernel_style

    steps = result["by dimension"]
    dimensions = [step["dimension"] for step in steps]
    signals = [signal for signal in steps[0]["power"][SPARKER] if signal != "none"]
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    panels = figure.subplots(1, len(signals), sharey=True)
    for ax, signal in zip(panels, signals, strict=True):
        for i, name in enumerate(steps[0]["power"]):
            of = [step["power"][name][signal] for step in steps]
            low, middle, high = ([one[key] for one in of] for key in ("low", "power", "high"))
            style = kernel_style(i)
            ax.fill_between(dimensions, low, high, color=style["color"], alpha=0.15, lw=0)
            ax.plot(dimensions, middle, label=name, ms=5, lw=1.8, **style)
        ax.axhline(result["settings"]["alpha"], color="0.5", lw=1, ls=":")
        ax.set(
            xscale="log", ylim=(0, 1.03), xlabel="dimension", title=f"{percent(signal)} anomalies"
        )
        ax.xaxis.set_major_locator(FixedLocator(dimensions))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter("{x:.0f}")
    panels[0].set_ylabel("power at 5 %  (dotted: the level)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=len(labels),
        frameon=False,
        handlelength=3,
    )
    return figure


def main(arguments: Sequence[str] | None = None) -> Path:
    """Run as the options say."""
    return record.run_on_data(__file__, __doc__, measure, draw, arguments)


if __name__ == "__main__":
    main()
