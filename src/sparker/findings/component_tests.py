"""The component tests of a result as lines to draw: one per family, over the kernel widths."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparker.engine.train import FAMILIES

if TYPE_CHECKING:
    from sparker.findings.result import Result


class Line(NamedTuple):
    """The component tests of one family."""

    family: str
    component_tests: list[int]  # their numbers
    x: np.ndarray  # widths, or the numbers of the component tests where there are no kernels
    p: np.ndarray


def across(result: "Result") -> list[Line]:
    """The component tests of kernels by width; without kernels, all component tests."""
    kernels = result.models is not None
    names = [name for name in result.families if not kernels or name in FAMILIES]
    return [line_of(result, name, by_scale=kernels) for name in names]


def line_of(result: "Result", family: str, *, by_scale: bool = True) -> Line:
    """The component tests of one family by their scales, or by their numbers."""
    numbers = result.of_family(family)
    scales = np.array([result.component_tests[i].scale for i in numbers])
    x = scales if by_scale else numbers.astype(float)
    return Line(family, numbers.tolist(), x, result.p_by_component_test[numbers])
