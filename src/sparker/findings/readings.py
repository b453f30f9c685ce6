"""The readings of a result as lines to be drawn: a family each, over the widths of kernels."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparker.engine.train import FAMILIES

if TYPE_CHECKING:
    from sparker.findings.result import Result


class Line(NamedTuple):
    """The readings of one family."""

    family: str
    readings: list[int]  # their numbers
    x: np.ndarray  # widths, or the numbers of the readings where there are no kernels
    p: np.ndarray


def across(result: "Result") -> list[Line]:
    """What kernels read off at each width; of a statistic without kernels, all its readings."""
    kernels = result.models is not None
    names = [name for name in result.families if not kernels or name in FAMILIES]
    return [line_of(result, name, by_scale=kernels) for name in names]


def line_of(result: "Result", family: str, *, by_scale: bool = True) -> Line:
    """The readings of one family by their scales, or by their numbers."""
    numbers = result.of_family(family)
    scales = np.array([result.readings[i].scale for i in numbers])
    x = scales if by_scale else numbers.astype(float)
    return Line(family, numbers.tolist(), x, result.p_by_reading[numbers])
