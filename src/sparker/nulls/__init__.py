"""Anomaly-free experiments: what the data would look like if they came from the reference.

A scheme makes experiments out of the two samples: number 0 is the observed one, the others are
toys. Toy i draws its rows or labels from ``default_rng([seed, i])`` and from nothing else. No
scheme ever draws null data from reference rows of the same fit: such data sit on top of the
reference and make kernels see signals that are not there.

| scheme | toys | what is not refitted in every toy comes from | the p-value is |
|---|---|---|---|
| ``Permutation`` | relabel the pooled rows | the pooled rows | exact |
| ``Simulator`` | fresh data, the same reference | the reference | exact |
| ``Resample`` | split an anomaly-free pool anew | each experiment's own rows | calibrated |

"Exact" is for unweighted references and fixed numbers of data rows; ``docs/calibration.md`` says
what Poisson counts and weights change, and has the measured levels of all.
"""

from collections.abc import Callable

from sparker.nulls.experiments import (
    Arm,
    Draw,
    Experiments,
    Fitted,
    Scheme,
    largest_toy,
    most_rows,
    own_rows,
    relabelled,
)
from sparker.nulls.given import Samples, samples
from sparker.nulls.permutation import Permutation
from sparker.nulls.resample import Resample
from sparker.nulls.simulator import Simulator

__all__ = [
    "SCHEMES",
    "Arm",
    "Draw",
    "Experiments",
    "Fitted",
    "Permutation",
    "Resample",
    "Samples",
    "Scheme",
    "Simulator",
    "largest_toy",
    "most_rows",
    "own_rows",
    "relabelled",
    "samples",
    "scheme",
]

SCHEMES: dict[str, Callable[[], Scheme]] = {"permutation": Permutation, "resample": Resample}


def scheme(null: str | Scheme) -> Scheme:
    """A scheme by its name, or as it is."""
    choice = "null must be 'permutation', 'resample' or an object of sparker.nulls"
    if not isinstance(null, str):
        if not hasattr(null, "experiments"):
            raise ValueError(
                f"{choice}, got {null!r}; a function that draws rows goes into Simulator(function)"
            )
        return null
    if null == "simulator":
        raise ValueError("a simulator needs something to draw from: null=Simulator(function)")
    if null not in SCHEMES:
        raise ValueError(f"{choice}, got {null!r}")
    return SCHEMES[null]()
