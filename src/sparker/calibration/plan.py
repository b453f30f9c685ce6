"""What all toys share, decided before any of them is made."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparker.calibration.settings import OPTIONS, fingerprint, plain
from sparker.engine.compiled import limit_programs
from sparker.engine.preprocess import Preprocess, Transform
from sparker.engine.toys import Toys
from sparker.nulls import Samples, Scheme, ToySource
from sparker.nulls.tilt import Tilt
from sparker.statistics.contract import Prepared, Statistic
from sparker.system.digest import digest
from sparker.system.machine import check_process
from sparker.system.versions import versions

FORMAT = 10
"""The format of a store; one of another format is not continued."""


class PreparedToys(NamedTuple):
    """Experiments, with everything fixed that is not fitted again in each of them."""

    transform: Transform
    statistic: Prepared
    toys: Toys


class Plan(NamedTuple):
    """All experiments of a test, ready to run."""

    prepared: PreparedToys
    n_toys: int | None = None  # how many different toys there are, where they are few
    notes: tuple[str, ...] = ()  # what became of the samples


def prepare(source: ToySource, preprocess: Preprocess, statistic: Statistic) -> PreparedToys:
    """Fix the preprocessing and the statistic's settings, on rows without labels."""
    check_process()
    limit_programs()
    transform = preprocess(source.basis)
    fitted = transform(source.basis)

    def once(rows: np.ndarray) -> np.ndarray:
        return fitted if rows is source.basis else transform(rows)

    prepared = statistic.prepare(fitted, transform)
    return PreparedToys(transform, prepared, source.toys(once))


@dataclass(frozen=True)
class Recipe:
    """All that a plan is made from, to be sent to other processes."""

    observed: Samples
    scheme: Scheme
    preprocess: Preprocess
    statistic: Statistic
    seed: int

    def plan(self) -> Plan:
        """Make all experiments ready."""
        source, n_toys, notes = self.scheme.experiments(self.observed, self.seed)
        return Plan(prepare(source, self.preprocess, self.statistic), n_toys, notes)


def describe(
    prepared: PreparedToys,
    observed: Samples,
    preprocess: Preprocess,
    seed: int,
    scheme: Scheme | None = None,
) -> dict[str, Any]:
    """All that decides what a toy is: toys that agree in it belong to the same test."""
    source = None if scheme is None else scheme.fingerprint()
    own = plain(preprocess) not in OPTIONS  # names do not tell what functions of one's own do
    return {
        "format": FORMAT,
        "sparker": versions()["sparker"],
        "seed": seed,
        "null": plain(scheme),
        "null_source": _digest(source),
        "statistic": plain(prepared.statistic.settings),
        "preprocess": plain(preprocess),
        "preprocess_values": fingerprint(*prepared.transform) if own else None,
        "expected": observed.expected,
        "reference": digest(observed.reference),
        "reference_rows": len(observed.reference),
        "reference_weights": _digest(observed.weights),
        "data": digest(observed.data),
        "groups": None if observed.groups is None else digest(*observed.groups),
        "strata": None if observed.strata is None else digest(*observed.strata),
        "data_weights": _digest(observed.data_weights),
        "nuisances": _nuisances(observed.tilt),
    }


def _nuisances(tilt: Tilt | None) -> str | None:
    """What tells nuisance parameters from others, and where they are."""
    if tilt is None:
        return None
    motion = np.empty(0) if tilt.motion is None else tilt.motion
    return digest(tilt.slope, tilt.bend, tilt.base, tilt.prior, motion)


def _digest(array: np.ndarray | None) -> str | None:
    return None if array is None else digest(array)
