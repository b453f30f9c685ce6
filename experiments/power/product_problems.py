"""All problems of the study of the product: the paper's toys, real tables, and unseen ones."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from experiments.answers.problems import Draw, Table
from experiments.power.product_problem import Problem, Sample, planted
from experiments.power.product_unseen import unseen
from experiments.toys import EXPECTED, N_REFERENCE, Benchmark, exponential, four_gaussians

from sparker.nulls import Simulator


class Real(NamedTuple):
    """A real table, and how much of what is hidden in it."""

    files: tuple[str, ...]
    anomalies: tuple[str, str]
    """File and array."""
    n_reference: int
    n_data: int
    share: float


def _adbench(name: str, n_reference: int, n_data: int, share: float) -> Real:
    return Real((f"adbench_{name}",), (f"adbench_{name}", "anomaly"), n_reference, n_data, share)


def _ligo(kind: str, share: float) -> Real:
    return Real(("gw_ligo_gwak4d",), ("gw_ligo_gwak4d", f"anomaly_{kind}"), 6_000, 1_000, share)


def _jets(share: float) -> Real:
    name = "jets_particlenet_169d"
    return Real((name,), (name, "anomaly"), 6_000, 1_000, share)


def _images(name: str, kind: str, share: float) -> Real:
    file = f"{name}_mobilenet_logits"
    other = f"{file}_{kind.split('_')[0]}"  # one file has both kinds of stripes
    return Real((file,), (other, f"anomaly_{kind}"), 2_200, 600, share)


def _dante(kind: str) -> Real:
    parts = tuple(f"dante_{part}" for part in ("inferno", "purgatorio", "paradiso"))
    return Real(parts, ("dante_anomalies_machine", f"anomaly_{kind}"), 10_000, 1_500, 0.1)


TWELVE = {
    "magic 2 %": _adbench("magic_gamma_10d", 10_000, 2_000, 0.02),
    "LIGO sine-Gaussian 2 %": _ligo("sg", 0.02),
    "LIGO burst 2 %": _ligo("wnb", 0.02),
    "pageblocks 2 %": _adbench("pageblocks_10d", 3_500, 1_000, 0.02),
    "cover 1.3 %": _adbench("cover_10d", 6_000, 1_000, 0.013),
    "mammography 2 %": _adbench("mammography_6d", 6_000, 1_000, 0.02),
    "mnist 2 %": _adbench("mnist_100d", 5_000, 1_000, 0.02),
    "pendigits 1.3 %": _adbench("pendigits_16d", 5_000, 1_000, 0.013),
    "satellite 1.3 %": _adbench("satellite_36d", 3_200, 1_000, 0.013),
    "pure stripes 2 %": _images("imagenet", "striped", 0.02),
    "stripe overlay 5 %": _images("imagenet", "striped_overlay", 0.05),
    "jets 2 %": _jets(0.02),
}
FURTHER = {
    "magic 5 %": _adbench("magic_gamma_10d", 10_000, 2_000, 0.05),
    "LIGO sine-Gaussian 5 %": _ligo("sg", 0.05),
    "LIGO burst 5 %": _ligo("wnb", 0.05),
    "pure stripes 5 %": _images("imagenet", "striped", 0.05),
    "jets 5 %": _jets(0.05),
    "CIFAR 5 %": _images("cifar10", "corrupt", 0.05),
    "Dante, llm 10 %": _dante("llm"),
    "Dante, char5 10 %": _dante("char5"),
    "Dante, word1 10 %": _dante("word1"),
}
NEAR_NULL = ("Dante, char5 10 %", "Dante, word1 10 %")


@cache
def problems(folder: Path | None = None) -> dict[str, Problem]:
    """All by name; those of files can be drawn only if their folder is given."""
    everything = [*_real(folder), *unseen(), *_paper(), *_simulated()]
    return {problem.name: problem for problem in everything}


def _real(folder: Path | None) -> Iterator[Problem]:
    for name, real in (TWELVE | FURTHER).items():
        yield Problem(
            name=name,
            table="twelve" if name in TWELVE else "rest",
            n_reference=real.n_reference,
            n_data=real.n_data,
            draw=partial(_from_files, folder, real),
            needs_files=True,
            near_null=name in NEAR_NULL,
        )


def _from_files(folder: Path | None, real: Real, rng: np.random.Generator) -> Sample:
    assert folder is not None, "real tables need --data DIR"
    draw = _read(folder, real.files, *real.anomalies)
    return planted(draw, real.n_reference, real.n_data, real.share)(rng)


@cache
def _read(folder: Path, files: tuple[str, ...], other: str, kind: str) -> Draw:
    def array(file: str, key: str) -> np.ndarray:
        with np.load(folder / f"{file}.npz", allow_pickle=False) as arrays:
            return arrays[key].astype(np.float32)

    nominal = np.concatenate([array(file, "reference_pool") for file in files])
    return Table(nominal, array(other, kind))


def _paper() -> Iterator[Problem]:
    for dimension, benchmark in (("1-D", exponential), ("2-D", four_gaussians)):
        for signal in benchmark.signals:
            yield Problem(
                name=f"{dimension} {signal}",
                table="toys",
                n_reference=N_REFERENCE,
                n_data=EXPECTED,
                draw=partial(_benchmark, benchmark, signal),
                one_column=dimension == "1-D",
            )


def _simulated() -> Iterator[Problem]:
    """The same as a physicist tests them who has a generator and knows how many events to expect.

    Then the number of events tells something too; it fluctuates around 2,000, signal added.
    """
    for dimension, benchmark in (("1-D", exponential), ("2-D", four_gaussians)):
        for signal in (*benchmark.signals, None):
            yield Problem(
                name=f"{dimension} {signal or 'nothing'}, simulator",
                table="simulated",
                n_reference=N_REFERENCE,
                n_data=EXPECTED,
                draw=partial(_counted, benchmark, signal),
                one_column=dimension == "1-D",
                near_null=signal is None,
                settings={"null": Simulator(benchmark.draw_background), "expected": EXPECTED},
            )


def _counted(benchmark: Benchmark, signal: str | None, rng: np.random.Generator) -> Sample:
    reference, data, _ = benchmark.draw(rng, signal)
    return reference, rng.permutation(data)


def _benchmark(benchmark: Benchmark, signal: str, rng: np.random.Generator) -> Sample:
    """Always 2,000 data rows, of which a random number is signal.

    Each row is signal or background as chance decides: what a Poisson number of events is, given
    that there are 2,000 of them. Relabelling cannot see the number of rows anyway, and with
    another number each time every sample would have to be compiled for.
    """
    reference = benchmark.draw_background(rng, N_REFERENCE)
    chosen = benchmark.signals[signal]
    share = 1.0 if chosen.fraction is None else chosen.fraction / (1 + chosen.fraction)
    n_signal = rng.binomial(EXPECTED, share)
    background = benchmark.draw_background(rng, EXPECTED - n_signal)
    data = np.concatenate([background, chosen.draw(rng, n_signal)])
    return reference, rng.permutation(data)
