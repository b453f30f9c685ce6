"""What the power of a test is judged on: the paper's toys, and real embeddings where at hand.

A problem draws experiments by number: the same number gives the same rows to every method.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from experiments.toys import Benchmark, exponential, four_gaussians

from sparker import decorrelate
from sparker.engine import TwoSample, pad, stack, two_sample
from sparker.engine.preprocess import Transform

Fraction = tuple[str, float]  # a kind of anomaly, and how much of the data it makes up


@dataclass(frozen=True, eq=False)
class Problem:
    """Experiments of one kind, with or without a signal."""

    name: str
    signals: tuple[str, ...]
    draw: Callable[[str | None, Sequence[int]], TwoSample]
    """Of a signal, or None, the batch of experiments with these numbers."""
    basis: np.ndarray  # (N, d) anomaly-free points that fix the widths
    oracle: Callable[[str, Sequence[int]], tuple[np.ndarray, np.ndarray]] | None = None
    """Of a signal: the best statistic there is, without and with it."""
    rows: Callable[[str | None, int], np.ndarray] | None = None
    """Which of ``points`` an experiment consists of, where all draw on the same."""
    points: np.ndarray | None = None
    n_data: int = 0
    """How many of these rows, the first, are data."""
    transform: Transform | None = None
    """How the points came from a table's columns."""


Kind = tuple[str | None, int]  # a signal or none, and the number of the experiment


def on_pool(problem: Problem, kinds: Sequence[Kind]) -> TwoSample:
    """Experiments as weights of all points there are: quicker where a test can share them."""
    assert problem.points is not None
    assert problem.rows is not None
    n_data = problem.n_data
    weights = np.zeros((2, len(kinds), len(problem.points)), np.float32)
    for i, kind in enumerate(kinds):
        rows = problem.rows(*kind)
        weights[0, i, rows[n_data:]] = n_data / (len(rows) - n_data)
        weights[1, i, rows[:n_data]] = 1
    return TwoSample(problem.points, *weights)


def toy(name: str, benchmark: Benchmark, expected: int) -> Problem:
    """A benchmark with ten times as many reference rows as are expected in the data."""
    signals = tuple(benchmark.signals)
    n_reference = 10 * expected
    n_rows = n_reference + int(1.06 * expected + 8 * expected**0.5)

    basis = benchmark.draw_background(np.random.default_rng(0), n_reference)

    def one(signal: str | None, number: int) -> tuple[np.ndarray, np.ndarray]:
        kind = 0 if signal is None else 1 + signals.index(signal)
        rng = np.random.default_rng([expected, basis.shape[1], kind, number])
        return benchmark.draw(rng, signal, expected=expected, n_reference=n_reference)[:2]

    def draw(signal: str | None, numbers: Sequence[int]) -> TwoSample:
        drawn = (two_sample(*one(signal, number), expected=expected) for number in numbers)
        return stack([pad(sample, n_rows) for sample in drawn])

    def oracle(signal: str, numbers: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        def values(kind: str | None) -> np.ndarray:
            drawn = (one(kind, number)[1] for number in numbers)
            return np.array([benchmark.oracle(data, signal, expected=expected) for data in drawn])

        return values(None), values(signal)

    return Problem(name, signals, draw, basis, oracle)


def toys() -> list[Problem]:
    """The paper's benchmarks; in two dimensions also with five times the events."""
    return [
        toy("1-D", exponential, 2_000),
        toy("2-D", four_gaussians, 2_000),
        toy("2-D, five times the events", four_gaussians, 10_000),
    ]


def embedded(
    name: str,
    nominal: np.ndarray,
    anomalies: dict[str, np.ndarray],
    fractions: Sequence[Fraction],
    n_reference: int,
    n_data: int,
) -> Problem:
    """Random disjoint splits of nominal rows, some data rows replaced by anomalies."""
    transform = decorrelate(nominal.astype(np.float32))
    kinds = list(anomalies)
    points = transform(np.concatenate([nominal, *anomalies.values()]).astype(np.float32))
    starts = np.cumsum([len(nominal), *(len(rows) for rows in anomalies.values())])
    signals = {f"{kind} {fraction:.0%}": (kind, fraction) for kind, fraction in fractions}
    order = list(signals)

    def rows(signal: str | None, number: int) -> np.ndarray:
        """The data rows, planted ones first, then the reference rows."""
        rng = np.random.default_rng([1 + order.index(signal) if signal else 0, number])
        planted = np.empty(0, int)
        if signal is not None:
            kind, fraction = signals[signal]
            planted = rng.choice(len(anomalies[kind]), round(fraction * n_data), replace=False)
            planted = planted + starts[kinds.index(kind)]
        n_nominal = n_data + n_reference - len(planted)
        return np.concatenate([planted, rng.permutation(len(nominal))[:n_nominal]])

    is_data = np.arange(n_data + n_reference) < n_data
    weights = np.stack([np.where(is_data, 0, n_data / n_reference), is_data]).astype(np.float32)

    def draw(signal: str | None, numbers: Sequence[int]) -> TwoSample:
        chosen = np.stack([rows(signal, number) for number in numbers])
        repeated = np.broadcast_to(weights[:, None], (2, *chosen.shape))
        return TwoSample(points[chosen], *repeated)

    basis = points[: len(nominal)]
    return Problem(
        name,
        tuple(order),
        draw,
        basis,
        rows=rows,
        points=points,
        n_data=n_data,
        transform=transform,
    )


def embeddings(folder: Path) -> list[Problem]:
    """The data sets of a folder of .npz files, see README.md beside this file."""

    def load(name: str) -> dict[str, np.ndarray]:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    def anomalies(file: dict[str, np.ndarray], nominal: np.ndarray) -> dict[str, np.ndarray]:
        return {
            key.removeprefix("anomaly_"): rows
            for key, rows in file.items()
            if key.startswith("anomaly") and rows.shape[1:] == nominal.shape[1:]
        }

    def rare(
        name: str, file: str, other: str, at: Sequence[float], n_reference: int, n_data: int
    ) -> Problem:
        nominal = load(file)["reference_pool"]
        kinds = anomalies(load(other), nominal)
        wanted = [(kind, share) for kind in kinds for share in at]
        return embedded(name, nominal, kinds, wanted, n_reference, n_data)

    jets, ligo, magic = "jets_particlenet_169d", "gw_ligo_gwak4d", "adbench_magic_gamma_10d"
    images, small = "imagenet_mobilenet_logits", "cifar10_mobilenet_logits"
    shares = (0.02, 0.05, 0.1)
    parts = ("inferno", "purgatorio", "paradiso")
    dante = np.concatenate([load(f"dante_{part}")["reference_pool"] for part in parts])
    lines = anomalies(load("dante_anomalies_machine"), dante)
    planted = [("llm", 0.05), ("llm", 0.1), ("char3", 0.1), ("char5", 0.1), ("word1", 0.1)]
    return [
        rare("jets", jets, jets, shares, 6_000, 1_000),
        rare("stripes", images, f"{images}_striped", shares, 2_200, 600),
        rare("LIGO", ligo, ligo, shares, 6_000, 1_000),
        rare("MAGIC", magic, magic, (0.02, 0.03, 0.05, 0.1), 10_000, 2_000),
        embedded("Dante", dante, lines, planted, 10_000, 1_500),
        rare("CIFAR", small, f"{small}_corrupt", shares, 2_200, 600),
    ]
