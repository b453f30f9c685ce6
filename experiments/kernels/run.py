"""Whether trained kernels see more when they are asked or trained otherwise.

    python -m experiments.kernels.run --data DIR --keep FOLDER [--samples A:B] [--seconds S]
    python -m experiments.kernels.run --keep FOLDER --summarise        # result.json

A comparison of many ways on few machines. Of every sample the labels are exchanged only
``N_RELABELLED`` times, and each of its eight labellings is read relative to the median of the other
seven: this takes out what depends on the rows, and treats all labellings alike. An observed
labelling is then ranked among the exchanged ones of all samples of its problem. Without anomalies
it is one more of them, so the level holds; the power is not quite that of ``sparker.test``, and is
meant to be compared.

Samples that are in the folder are not measured again.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from experiments.answers.problems import Draw, problems
from experiments.kernels.readings import Ask, Labels, all_readings, main_readings
from experiments.kernels.summary import summary
from experiments.power.product import numbers
from experiments.power.product_summary import as_text

from sparker.config import TestConfig
from sparker.detect import prepare
from sparker.engine.batch import fit_chunks
from sparker.engine.config import FitConfig
from sparker.engine.toys import Toys
from sparker.engine.widths import Schedule, stairs

RESULT = Path(__file__).parent / "result.json"
N_REFERENCE, N_DATA, N_RELABELLED = 2000, 500, 7
PLANTED = {
    "1-D bulk": 35,
    "2-D cluster": 20,
    "LIGO sine-Gaussian": 18,
    "cover": 15,
    "jets": 22,
    "magic": 45,
    "mammography": 16,
    "pageblocks": 18,
    "pendigits": 14,
}
"""Rows planted among the data: so many that some samples are found and some are not."""

LABELLINGS = range(N_RELABELLED + 1)
Models = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of a labelling in front: mu (B, m, M, d), a (B, m, M), and what was read off, (B, m, r)."""


def trained(toys: Toys, seed: int, plan: Schedule, config: FitConfig) -> Models:
    """As the default does it."""
    ((_, fit),) = fit_chunks(seed, toys.draw, LABELLINGS, plan, config, chunk=len(LABELLINGS))
    return np.asarray(fit.models.mu), np.asarray(fit.models.a), np.asarray(fit.statistics)


def afresh(toys: Toys, seed: int, plan: Schedule, config: FitConfig) -> Models:
    """Every width by itself: all kernels start from the best places of its own scan."""
    steps = len(plan.sigma) // len(plan.widths)
    each = [
        trained(toys, seed, stairs(width, width, steps=steps, n_widths=1), config)
        for width in plan.widths
    ]
    return tuple(np.concatenate(arrays, 1) for arrays in zip(*each, strict=True))  # type: ignore[return-value]


FITS: dict[str, tuple[Callable[..., Models], Ask]] = {
    "trained": (trained, all_readings),
    "afresh at every width": (afresh, main_readings),
}


def measured(draw: Draw, n_planted: int, number: int) -> dict[str, np.ndarray]:
    """All readings of a sample, (B, r) each, the observed labelling first."""
    rng = np.random.default_rng([number, n_planted])
    reference, data = draw(rng, N_REFERENCE, N_DATA, n_planted)
    config = TestConfig(n_toys=N_RELABELLED, seed=number, explain=False, progress=False)
    _, statistic, toys = prepare(reference, data, config).plan.prepared
    kernels: Any = statistic.kernels  # type: ignore[attr-defined]
    batch = toys.draw(LABELLINGS)
    points, sigma = (np.asarray(array, np.float32) for array in (batch.points, kernels.widths))
    found: dict[str, np.ndarray] = {}
    for name, (fit, ask) in FITS.items():
        mu, a, read = fit(toys, number, kernels.schedule, kernels.config)
        each = [
            ask(points, mu[i].astype(np.float32), a[i], sigma, _labels(batch, i))
            for i in LABELLINGS
        ]
        for reading in each[0]:
            rows = np.stack([one[reading] for one in each])
            found[f"{name}: {reading}"] = rows.reshape(len(rows), -1)
        if fit is trained:
            company = [
                one.start(number, len(LABELLINGS))(LABELLINGS, batch)
                for one in statistic.company  # type: ignore[attr-defined]
            ]
            found["default"] = np.concatenate([read.reshape(len(read), -1), *company], 1)
    return found | {"families": np.array([one.family for one in statistic.component_tests])}


def _labels(batch: Any, labelling: int) -> Labels:
    is_data = np.asarray(batch.data_weight[labelling]) > 0
    return Labels(is_data, float(np.max(batch.reference_weight[labelling])))


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, int, Path]]:
    """Samples that are missing, one of every problem before the next."""
    for number in options.samples:
        for name in PLANTED:
            path = options.keep / f"{name}; {number}.npz"
            if not path.exists():
                yield name, number, path


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, or sum up what is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, required=True, help="folder of what was measured")
    parser.add_argument("--data", type=Path, help="folder of the real tables")
    parser.add_argument("--samples", type=numbers, default=range(40), metavar="A:B")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--summarise", action="store_true", help="write --output, measure nothing")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    if options.summarise:
        options.output.write_text(as_text(summary(options.keep, PLANTED)))
        return
    if options.data is None:
        parser.error("measuring needs --data DIR, the real tables")
    draws, until = problems(options.data), time.time() + options.seconds
    options.keep.mkdir(parents=True, exist_ok=True)
    for name, number, path in wanted(options):
        if time.time() > until:
            break
        began = time.perf_counter()
        np.savez(path, **measured(draws[name], PLANTED[name], number))
        print(f"{name}, sample {number}: {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
