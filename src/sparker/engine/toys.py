"""Experiments by number, ready to be measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparker.engine.sample import TwoSample
from sparker.engine.train import OnPart, ignore


@dataclass(frozen=True)
class Toys:
    """Experiments that are drawn as batches of rows: number 0 the observed one, others toys."""

    draw: Callable[[Sequence[int]], TwoSample]
    on_part: OnPart = ignore
    """Hears of parts that are fitted, in toys."""
