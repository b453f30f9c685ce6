"""Anomaly-free experiments: what the data would look like if they came from the reference.

May import: engine, system.

A scheme makes experiments out of the two samples: number 0 is the observed one, the others are
toys. Toy i draws its rows or labels from ``toy_rng(seed, i)`` and from nothing else. No scheme
draws null data from reference rows of the same fit: such data lie exactly on reference points, and
kernels would see signals that are not there.

- ``Permutation``: toys relabel the pooled rows; what is not refitted in every toy comes from these.
- ``Simulator`` of a function: toys are new data against the same reference; the rest comes from it.
- ``Simulator`` of a pool of rows: toys relabel these and the data, against the same reference; the
  rest comes from all rows.

All three are exact, over samples and seeds, except for Poisson counts in a relabelled pool and for
weights of the reference alone. ``docs/calibration.md`` says what each assumes, and has the measured
levels of all.
"""

from sparker.nulls.experiments import (
    Experiments,
    Fitted,
    Scheme,
    ToySource,
    largest_toy,
    most_rows,
    own_rows,
    relabelled,
    toy_rng,
)
from sparker.nulls.inputs import Samples, Weights, samples
from sparker.nulls.nuisances import Nuisances, Profile, Pull
from sparker.nulls.permutation import Permutation
from sparker.nulls.simulator import Simulator
from sparker.nulls.systematics import Systematic

__all__ = [
    "Experiments",
    "Fitted",
    "Nuisances",
    "Permutation",
    "Profile",
    "Pull",
    "Samples",
    "Scheme",
    "Simulator",
    "Systematic",
    "ToySource",
    "Weights",
    "largest_toy",
    "most_rows",
    "own_rows",
    "relabelled",
    "samples",
    "scheme",
    "toy_rng",
]


def scheme(null: str | Scheme) -> Scheme:
    """A scheme by its name, or as it is."""
    choice = "null must be 'permutation', a Permutation or a Simulator"
    if not isinstance(null, str):
        if isinstance(null, type):
            raise ValueError(f"null is a class, make one of it: {null.__name__}()")
        if not isinstance(null, Scheme):
            raise ValueError(
                f"{choice}, got {null!r}; a function that draws rows goes into Simulator(function)"
            )
        return null
    if null == "simulator":
        raise ValueError("a simulator needs something to draw from: null=Simulator(function)")
    if null == "resample":
        raise ValueError(
            "toys that are splits of the reference do not hold the data's rows, which then stand "
            "out for being new; null='permutation' uses the same two samples and is exact"
        )
    if null != "permutation":
        raise ValueError(f"{choice}, got {null!r}")
    return Permutation()
