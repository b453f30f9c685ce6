"""A user's own embedder: any function of a list, or an object with ``encode``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from sparker.embed.contract import TEXT, Embedder
from sparker.embed.normalise import AS_IT_IS
from sparker.embed.pictures import NOTHING, picture

PROBE = "A text that tells one embedder from another."
N_PROBED, CLOSE = 8, 1e-3
"""Numbers of the probe that are kept, and how much another machine or batch may change them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Function(Embedder):
    """A function f(list) -> (n, d), or an object with ``encode``.

    Texts come as they are, pictures as ``PIL.Image`` in RGB. Code cannot be told from other code,
    so that what it gives is kept between runs only if a ``version`` vouches for it. It is not
    written to files either: a loaded monitor needs ``embed`` once more, and looks whether it gives
    the same numbers for the same probe.
    """

    normalises: ClassVar[bool] = False
    function: Any = field(repr=False)
    of: str = TEXT  # type: ignore[misc]
    version: str | None = None
    """Say another one whenever the function gives other numbers."""
    called: str = ""
    """Its name; that of the function if left out."""
    probe: tuple[float, ...] = ()
    n: int = 0

    @property
    def name(self) -> str:  # type: ignore[override]
        """What it is called."""
        if self.called:
            return self.called
        own = self.function if hasattr(self.function, "__qualname__") else type(self.function)
        return f"{own.__module__}:{own.__qualname__}"

    @property
    def identity(self) -> dict[str, Any]:
        """What is known of a function."""
        return {
            "embedder": self.name,
            "of": self.of,
            "version": self.version,
            "normalisation": AS_IT_IS,
            "width": self.n,
            "probe": list(self.probe),
        }

    @property
    def cached(self) -> bool:
        """Only where a version vouches for it."""
        return self.version is not None

    def fitted(self, things: Sequence[Any]) -> "Function":
        """Ask it once, to know what it gives."""
        from sparker.embed.run import checked

        one: Any = PROBE if self.of == TEXT else picture(NOTHING)
        other: Any = "Another one." if self.of == TEXT else Image.new("RGB", (48, 64))
        first = checked(self, self.batch([one]), 1)[0]
        beside = checked(self, self.batch([other, one]), 2)[1]
        if beside.shape != first.shape or not _close(beside, first):
            raise ValueError(
                f"{self.name} gives other numbers for the same thing if another one comes beside "
                "it: it learns from what it is given, and the two samples would be embedded in "
                "two ways. Let it learn before, from rows that are used nowhere else; "
                "embed='tfidf' learns from both samples together"
            )
        return replace(self, n=len(first), probe=tuple(map(float, first[:N_PROBED])))

    def batch(self, things: list[Any]) -> Any:
        """Whatever the function makes of them."""
        how: Callable[[list[Any]], Any] = getattr(self.function, "encode", self.function)
        return how(things)

    def refuse(self, found: Mapping[str, Any]) -> str:
        """Names and shapes must be the same, and the probe's numbers close."""
        ready = self if self.n else self.fitted(())
        differ = Embedder.refuse(replace(ready, probe=()), {**found, "probe": []})
        before = np.asarray(found.get("probe", ()), np.float64)
        if not differ and (
            before.shape != np.shape(ready.probe) or not _close(before, ready.probe)
        ):
            return "it gives other numbers for the same probe"
        return differ


def _close(one: Any, other: Any) -> bool:
    return np.allclose(one, other, CLOSE, CLOSE * np.abs(one).max(initial=0))
