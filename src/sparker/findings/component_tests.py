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
    """Return the component tests of kernels by width; without kernels, all by their numbers."""
    kernels, lines = result.models is not None, []
    for family in result.families:
        if kernels and family not in FAMILIES:
            continue
        numbers = result.of_family(family)
        scales = np.array([result.component_tests[i].scale for i in numbers])
        x = scales if kernels else numbers.astype(float)
        lines.append(Line(family, numbers.tolist(), x, result.p_by_component_test[numbers]))
    return lines
