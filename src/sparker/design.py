"""What a fit is made of and run with, as the compiled program sees it."""

from typing import NamedTuple

import jax

from sparker.ensemble import Competition
from sparker.losses import Loss
from sparker.sample import AnyArray


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
