"""What a fit is made of and run with: as a user sets it, and as the compiled program sees it."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from sparker.engine.ensemble import Competition, softmax
from sparker.engine.losses import Loss, neyman_pearson
from sparker.engine.sample import AnyArray
from sparker.engine.widths import Schedule
from sparker.system.numbers import check_positive, check_whole, is_number

MAX_ROUNDED = 32
"""The largest ratio of widths at which points may be rounded to bfloat16. Rounding moves a point by
about a six-hundredth of its distance from the middle, and that distance is at most about the
largest width. With this ratio, a point moves by at most a twentieth of the smallest width."""


class Design(NamedTuple):
    """What shapes the program: a change here compiles anew."""

    n_kernels: int
    loss: Loss
    competition: Competition
    precision: jax.lax.Precision  # of the matrix products in training
    n_candidates: int = 0  # data points looked at in an exploration
    rounded: bool = False  # whether training may multiply points in bfloat16


class Rates(NamedTuple):
    """The numbers of a fit: these may change without compiling anew."""

    clip: AnyArray
    l2: AnyArray
    location: AnyArray
    amplitude: AnyArray


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """The settings of a fit, beside its width schedule."""

    n_kernels: int = 5
    clip: float = 5.0
    """Largest amplitude of a kernel, which is a log density ratio."""
    l2: float = 0.0
    """Coefficient of the sum of squared amplitudes that is added to the loss."""
    location_rate: float = 0.01
    """Step size of the locations, in widths."""
    amplitude_rate: float = 0.1
    """Step size of the amplitudes."""
    n_candidates: int = 512
    """Points that a scan looks at: so many data points, where toys have points of their own;
    ``candidates.SHARED`` times as many points of both samples, where toys share them."""
    loss: Loss = neyman_pearson
    competition: Competition = softmax
    dtype: type[np.floating] = np.float32
    precision: jax.lax.Precision = jax.lax.Precision.DEFAULT
    """Of the matrix products in training, which are used where there are many features. The default
    is the fastest that the device has. On NVIDIA GPUs that is bfloat16 in the steps of
    ``gradient_gpu``, if all widths of the schedule span less than ``MAX_ROUNDED``, and TF32
    elsewhere. HIGH is TF32, HIGHEST is single precision. The statistic is always evaluated in
    double precision."""

    def __post_init__(self) -> None:
        for name in ("n_kernels", "n_candidates"):
            check_whole(name, getattr(self, name))
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {np.dtype(self.dtype)}")
        for name in ("clip", "location_rate", "amplitude_rate"):
            check_positive(name, getattr(self, name))
        if not is_number(self.l2, least=0):
            raise ValueError(f"l2 must be at least 0 and finite, got {self.l2!r}")

    @property
    def design(self) -> Design:
        """The part that shapes the compiled program."""
        return Design(
            self.n_kernels, self.loss, self.competition, self.precision, self.n_candidates
        )

    def design_for(self, schedule: Schedule) -> Design:
        """The same, with products rounded where these widths allow it."""
        fastest = self.precision == jax.lax.Precision.DEFAULT
        harmless = schedule.sigma.max() <= MAX_ROUNDED * schedule.sigma.min()
        return self.design._replace(rounded=bool(fastest and harmless))

    @property
    def rates(self) -> Rates:
        """The numbers it is run with."""
        return Rates(
            *(
                np.asarray(rate, self.dtype)
                for rate in (self.clip, self.l2, self.location_rate, self.amplitude_rate)
            )
        )
