"""An embedder that keeps the vectors of some rows, so that they are not embedded again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparker.embed.contract import Embedder

MARK = "\0"
"""Before the number of a kept row, which stands in place of its text or the name of its picture."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Remembered(Embedder):
    """Another embedder, which learns nothing, and the vectors that it gave for some rows."""

    own: Embedder
    vectors: np.ndarray = field(repr=False)  # (n, d)

    @staticmethod
    def places(n: int) -> list[str]:
        """Return what stands for the rows 0 to n - 1."""
        return [f"{MARK}{i}" for i in range(n)]

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the other embedder."""
        return self.own.name

    @property
    def of(self) -> str:  # type: ignore[override]
        """Texts, or pictures."""
        return self.own.of

    @property
    def identity(self) -> dict[str, Any]:
        """That of the other embedder."""
        return self.own.identity

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Those of the other embedder."""
        return self.own.arrays

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of the other embedder."""
        return self.own.labels

    def batch(self, things: list[Any]) -> Any:
        """Embed things that are not kept."""
        return self.own.batch(things)

    def encode(self, things: Sequence[Any]) -> np.ndarray:  # N -> (N, d)
        """Return the vectors of all things: kept ones, and new ones of those that are not."""
        numbers = {i: int(str(x)[1:]) for i, x in enumerate(things) if str(x).startswith(MARK)}
        new = [i for i in range(len(things)) if i not in numbers]
        found = np.empty((len(things), self.width), np.float32)
        found[list(numbers)] = self.vectors[list(numbers.values())]
        if new:
            found[new] = self.own.encode([things[i] for i in new])
        return found
