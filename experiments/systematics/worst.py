"""The level where it is hardest to hold: a statistic that sees nothing but the nuisance parameter.

    python -m experiments.systematics.worst [--tests 100]

The difference of means of exponential samples whose density the parameter tilts by exp(s nu x). The
ratio of densities is known, so what is measured is the construction alone: toys at fitted values,
fitted again in each. The step s decides how well the data constrain the parameter. True values are
fixed, or drawn from the prior.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from sparker.nulls import Permutation, samples
from sparker.nulls.labels import DATA, REFERENCE
from sparker.nulls.tilt import Tilt
from sparker.system.atomic import whole_file

RESULT = Path(__file__).parent / "worst.json"
N_REFERENCE, N_DATA, N_TOYS = 600, 200, 19
STEPS = {"well": 0.3, "somewhat": 0.1, "hardly": 0.04}
"""How well the data constrain the parameter, and what one standard deviation of it does."""
VALUES: tuple[float | None, ...] = (0.0, 1.5, None)  # None: drawn from the prior
ALPHA = 0.05


def p_value(rng: np.random.Generator, step: float, nu: float, seed: int, *, around: bool) -> Any:
    """The p-value of one sample, at the best value or the largest around it; and the error."""
    reference = rng.exponential(size=(N_REFERENCE, 1))
    data = rng.exponential(1 / (1 - step * nu), size=(N_DATA, 1))
    slope = step * np.concatenate([reference, data])
    one = np.ones(1)

    def tilt(base: float) -> Tilt:
        return Tilt(slope, 0 * slope, base * one, one, None, seed)

    roles = np.repeat([REFERENCE, DATA], [N_REFERENCE, N_DATA])
    best = tilt(0.0).best(roles, None, 0 * one)
    error = float(np.sqrt(best.covariance[0, 0]))
    found = []
    for shift in (-2, -1, 0, 1, 2) if around else (0,):
        base = float(best.values[0]) + shift * error
        measure = np.exp(slope[:, 0] * base)
        there = samples(reference, data)._replace(
            weights=measure[:N_REFERENCE], data_weights=measure[N_REFERENCE:], tilt=tilt(base)
        )
        pool = Permutation().pool(there, seed)
        weights = (pool.weights(number) for number in range(N_TOYS + 1))
        t = np.array([abs(pool.points[:, 0] @ (new - own)) for own, new in weights])
        found.append(float(np.mean(t >= t[0])))
    return max(found), error


def main() -> None:
    """Measure all cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=100)
    n_tests = parser.parse_args().tests
    record: dict[str, Any] = {"command": "python -m experiments.systematics.worst", "cells": []}
    for name, step in STEPS.items():
        for nu in VALUES:
            for around in (False, True) if nu == 1.5 else (False,):
                rows = []
                for test in range(n_tests):
                    rng = np.random.default_rng([test, round(100 * step), round(10 * (nu or 9))])
                    true = float(np.clip(rng.normal(), -3, 3)) if nu is None else nu
                    rows.append(p_value(rng, step, true, test, around=around))
                p, error = np.array(rows).T
                record["cells"].append(
                    {
                        "constrained": name,
                        "error": round(float(error.mean()), 2),
                        "nu": nu,
                        "maximised": around,
                        "small": int(np.sum(p <= ALPHA)),
                        "tests": n_tests,
                    }
                )
                print(record["cells"][-1], flush=True)
    with whole_file(RESULT) as file:
        file.write((json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
