"""Other ways to draw the experiments with the bump in the extreme tail."""

from dataclasses import dataclass, replace

import numpy as np
from experiments.losses.extreme_tail import EXPECTED, QUICK_EXPECTED, SIGNAL
from experiments.power.problems import Problem, toy
from experiments.toys import N_REFERENCE, Benchmark, exponential

N_REFERENCES = 10
FIVE = "five signal events in every sample, 2,000 others on average"

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Counted(Benchmark):
    """The number of signal events does not fluctuate, nor that of the others if so asked."""

    others_fluctuate: bool

    def draw(
        self,
        rng: np.random.Generator,
        signal: str | None = None,
        *,
        expected: int = EXPECTED,
        n_reference: int = N_REFERENCE,
    ) -> Drawn:
        """As many as are expected."""
        n_others = rng.poisson(expected) if self.others_fluctuate else expected
        data = self.draw_background(rng, n_others)
        if signal is not None:
            chosen = self.signals[signal]
            assert chosen.fraction is not None
            data = np.concatenate([data, chosen.draw(rng, round(chosen.fraction * expected))])
        return self.draw_background(rng, n_reference), data, np.arange(len(data)) >= n_others


@dataclass(frozen=True)
class OneReference(Benchmark):
    """The same reference in all experiments."""

    seed: int

    def draw(
        self,
        rng: np.random.Generator,
        signal: str | None = None,
        *,
        expected: int,
        n_reference: int,
    ) -> Drawn:
        """Data alone are new."""
        drawn = super().draw(rng, signal, expected=expected, n_reference=1)
        own = np.random.default_rng([1, self.seed])
        return self.draw_background(own, n_reference), *drawn[1:]


def drawings(quick: bool) -> dict[str, Problem]:
    """What is tried."""
    parts = (exponential.draw_background, exponential.log_density, exponential.signals)
    benchmarks = {
        FIVE: Counted(*parts, True),
        "five signal events in every sample, 2,000 others": Counted(*parts, False),
        **{
            f"one reference for all, number {i}": OneReference(*parts, i)
            for i in range(N_REFERENCES)
        },
    }
    expected = QUICK_EXPECTED if quick else EXPECTED
    return {
        name: replace(toy("1-D", benchmark, expected), signals=(SIGNAL,))
        for name, benchmark in benchmarks.items()
    }
