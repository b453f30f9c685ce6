"""The level where it is hardest to hold: a statistic that sees nothing but the nuisance parameter.

    python -m experiments.systematics.worst [--processes 2] [--seconds 600]

The difference of means of exponential samples whose density the parameter tilts by exp(s nu x). The
ratio of densities is known, so what is measured is the construction alone: toys at fitted values,
fitted again in each. The step s decides how well the data constrain the parameter. True values are
fixed, or drawn from the prior. Adds to ``worst.json``: a run that is interrupted goes on where it
was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from experiments import units

from sparker.nulls import Nuisances, Permutation, Samples, samples
from sparker.nulls.systematics import Curves, Place, Variation

RESULT = Path(__file__).parent / "worst.json"
MOST = 1000
N_REFERENCE, N_DATA, N_TOYS = 600, 200, 19
STEPS = {"well": 0.3, "somewhat": 0.1, "hardly": 0.04}
"""How well the data constrain the parameter, and what one standard deviation of it does."""
VALUES: tuple[float | None, ...] = (0.0, 1.0, 1.5, 2.0, None)  # None: drawn from the prior
ALPHA = 0.05
WAYS = ("data alone", "best")
"""Where toys are made: where the data alone suggest, as ``sparker.test`` does it; at the best
values."""


@dataclass(frozen=True, eq=False)
class Tilted(Variation):
    """A density exp(step nu x) times as large."""

    step: float

    def curves(self, place: Place) -> Curves:
        """They are known."""
        slope = self.step * place.rows[:, 0]
        return Curves(slope, 0 * slope)


def p_values(rng: np.random.Generator, step: float, nu: float, seed: int) -> dict[str, float]:
    """Those of one sample, in each of the ways; and the error of the parameter."""
    reference = rng.exponential(size=(N_REFERENCE, 1))
    data = rng.exponential(1 / (1 - step * nu), size=(N_DATA, 1))
    tilted = Nuisances((Tilted("tilt", 1.0, step),))
    found = tilted.best(samples(reference, data), seed)
    both = (p_value(there, seed) for there in (found.toys, found.samples))
    return dict(zip(WAYS, both, strict=True)) | {"error": float(found.error[0])}


def p_value(there: Samples, seed: int) -> float:
    """With toys made of these samples."""
    pool = Permutation().pool(there, seed)
    weights = (pool.weights(number) for number in range(N_TOYS + 1))
    t = np.array([abs(pool.points[:, 0] @ (new - own)) for own, new in weights])
    return float(np.mean(t >= t[0]))


def measured(name: str, nu: float | None, number: int) -> dict[str, float]:
    """One sample."""
    step = STEPS[name]
    rng = np.random.default_rng([number, round(100 * step), 99 if nu is None else round(10 * nu)])
    true = float(np.clip(rng.normal(), -3, 3)) if nu is None else nu
    found = p_values(rng, step, true, number)
    return {name: round(value, 4) for name, value in found.items()}


def samples_of_all() -> Iterator[units.Unit]:
    """One of each cell after the other."""
    for number in range(MOST):
        for name in STEPS:
            for nu in VALUES:
                yield name, nu, number


def main() -> None:
    """Measure what is missing."""
    options = units.options(__doc__, RESULT).parse_args()
    settings = {"rows": [N_REFERENCE, N_DATA], "toys": N_TOYS}
    command = "python -m experiments.systematics.worst"
    units.run(options, command, settings, samples_of_all(), measured)


if __name__ == "__main__":
    main()
