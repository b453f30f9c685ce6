"""What an embedder is: things in, a row of numbers for each out, and all that tells it from others.

The same thing must always become the same numbers, whatever comes beside it: rows are embedded in
blocks, each different one once, and those that were embedded before are not embedded again.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import numpy as np

from sparker.embed.normalise import AS_IT_IS, plain_text

TEXT, IMAGES = "text", "images"


class SavedEmbedder(msgspec.Struct, forbid_unknown_fields=True):
    """An embedder as a file has it."""

    identity: dict[str, Any]
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Embedder(ABC):
    """Texts, or pictures, as numbers."""

    name: ClassVar[str]
    """What ``embed`` takes."""
    of: ClassVar[str] = TEXT
    """What it is for: texts, or pictures."""
    normalises: ClassVar[bool] = True
    """Whether texts are brought to one way of writing first."""
    progress: bool | None = field(default=None, repr=False)
    """Whether to draw a bar while it works; where stderr is a terminal, if left out."""

    @classmethod
    def of_identity(cls, identity: Mapping[str, Any]) -> "Embedder":
        """The one that has this identity, or one that does not if there is none."""
        return cls()

    @property
    def width(self) -> int:
        """How many numbers a thing becomes."""
        return int(self.identity["width"])

    @property
    def labels(self) -> tuple[str, ...]:
        """What these are called, each by a name of its own; empty where they have no names."""
        return ()

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Plain values that tell it from any other: two with the same ones give the same numbers.

        ``embedder`` (its name), ``of``, ``width``, ``normalisation``, and the model with its
        version and the hash of its weights, as far as these are known.
        """

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What it has learned, to be kept beside ``identity``."""
        return {}

    def saved(self) -> SavedEmbedder:
        """Return what a file has of it."""
        return SavedEmbedder(self.identity, self.arrays)

    @property
    def learns(self) -> bool:
        """Whether it has yet to learn from rows: those of both samples together."""
        return False

    @property
    def cached(self) -> bool:
        """Whether what it gives is kept between runs; only where ``identity`` says all."""
        return True

    def fitted(self, things: Sequence[Any]) -> "Embedder":
        """The same, ready to be used; what it learns must not depend on the order of the things."""
        return self

    def normalised(self, thing: str) -> str:
        """A text as the model gets it."""
        return plain_text(thing) if self.normalises else thing

    @abstractmethod
    def batch(self, things: list[Any]) -> Any:  # n -> (n, d)
        """The numbers of some things: texts as normalised, or pictures (``PIL.Image``, RGB)."""

    def encode(self, things: Sequence[Any]) -> np.ndarray:  # N -> (N, d)
        """The numbers of texts, or of the pictures in these files."""
        from sparker.embed.run import encoded

        return encoded(self, things)

    def refuse(self, found: Mapping[str, Any]) -> str:
        """Why this is not the embedder that ``found`` is the identity of; nothing if it is."""
        own = self.identity
        differ = [
            f"{key} was {found.get(key)!r:.60}, now {own.get(key)!r:.60}"
            for key in {**own, **found}
            if own.get(key) != found.get(key)
        ]
        return "; ".join(differ)

    @property
    def said(self) -> str:
        """What is done to a column, in words."""
        identity = self.identity
        parts = [f"{identity['width']} numbers by {identity['embedder']}"]
        model = identity.get("model")
        if model and model != identity["embedder"]:
            version = f" {identity['version']}" if identity.get("version") else ""
            parts.append(f"{model}{version}")
        if identity.get("hash"):
            parts.append(f"sha256 {str(identity['hash'])[:12]}")
        normalised = identity.get("normalisation", AS_IT_IS)
        if identity["of"] == TEXT:
            as_is = normalised == AS_IT_IS
            parts.append("texts as they are" if as_is else f"texts in {normalised}")
        return ", ".join(parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Embedder):
            return NotImplemented
        return self.identity == other.identity

    __hash__ = None  # type: ignore[assignment]
