"""Embedders of results and monitors that were read from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sparker.embed.choose import NAMES, choose
from sparker.embed.contract import IMAGES, TEXT, Embedder, SavedEmbedder
from sparker.embed.tfidf import Tfidf


@dataclass(frozen=True, kw_only=True, eq=False)
class Absent(Embedder):
    """One that a file names, but that must be handed in before further rows can be embedded.

    A file of a stranger's may name any function; none is looked for.
    """

    known: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """As the file has it."""
        return str(self.known["embedder"])

    @property
    def of(self) -> str:  # type: ignore[override]
        """Texts, or pictures."""
        return str(self.known["of"])

    @property
    def identity(self) -> dict[str, Any]:
        """As the file has it."""
        return dict(self.known)

    @property
    def labels(self) -> tuple[str, ...]:
        """As the file has them, if it has one for each number."""
        found = self.known.get("labels")
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            return ()
        return tuple(found) if len({*found}) == self.width else ()

    def batch(self, things: list[Any]) -> NoReturn:
        """It is not here."""
        raise ValueError(
            f"rows were embedded by {self.name}, which a file cannot hold; load it with "
            "embed=... (--embed), the same as before"
        )


def restored(saved: SavedEmbedder) -> Embedder:
    """The embedder of this identity: sparker's own as it was, any other to be handed in."""
    identity, arrays = saved.identity, saved.arrays
    if (
        identity.get("of") not in (TEXT, IMAGES)
        or not isinstance(identity.get("width"), int)
        or not 1 <= identity["width"] <= MAX_WIDTH
        or not isinstance(identity.get("embedder"), str)
    ):
        raise ValueError("its embedder is none")
    name = identity["embedder"]
    found: Embedder | None = None
    if name == Tfidf.name:
        found = Tfidf.restored(identity, arrays)
        if found.refuse(identity):
            raise ValueError(f"its embedder is another one: {found.refuse(identity)}")
    elif name in NAMES:
        found = NAMES[name].of_identity(identity)
    if found is None or found.refuse(identity):
        return Absent(known=identity)
    return found


def handed_in(embed: Any, known: Embedder) -> Embedder:
    """The embedder that a user gives for one that a file names, ready to be used.

    Args:
        embed: what ``embed`` takes.
        known: the embedder in the file.

    Raises:
        ValueError: if it is another one.
    """
    chosen = choose(embed, known.of)
    ready = chosen if chosen.learns else chosen.fitted(())
    if differs := ready.refuse(known.identity):
        raise ValueError(f"embed is another one, and rows were embedded in another way: {differs}")
    return ready


MAX_WIDTH = 2**20
