"""Which embedder an argument or a name means."""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sparker.embed.contract import Embedder
from sparker.embed.efficientnet import EfficientNet
from sparker.embed.function import Function
from sparker.embed.hub import SentenceTransformer, Timm
from sparker.embed.minilm import MiniLM
from sparker.embed.tfidf import Tfidf
from sparker.embed.wordllama import WordLlama

NAMES: dict[str, type[Embedder]] = {
    one.name: one for one in (Tfidf, MiniLM, WordLlama, EfficientNet)
}
"""Those that a name is enough for."""
HUBS: dict[str, Callable[..., Embedder]] = {"st": SentenceTransformer, "timm": Timm}
KNOWN = f"{', '.join(NAMES)}, st:NAME, timm:NAME or module:function"


def choose(given: Any, of: str, progress: Any = None) -> Embedder:
    """An embedder of texts, or of pictures: by its name, or a function, or an object."""
    found = given
    if isinstance(given, str):
        found = _named(given, of)
    elif not isinstance(given, Embedder):
        if not callable(given) and not callable(getattr(given, "encode", None)):
            raise ValueError(
                f"embed must be a name ({KNOWN}), a function of a list, or an object with encode, "
                f"got {given!r:.80}"
            )
        found = Function(function=given, of=of)
    if found.of != of:
        raise ValueError(
            f"{found.name} is an embedder of {found.of}, not of {of}; name the column of its "
            f"{found.of} by {found.of} (--{found.of})"
        )
    return replace(found, progress=progress if isinstance(progress, bool) else None)


def _named(name: str, of: str) -> Embedder:
    if name in NAMES:
        return NAMES[name]()
    head, colon, tail = name.partition(":")
    if colon and tail and head in HUBS:
        return HUBS[head](model=tail)
    if colon and tail:
        return Function(function=_function(head, tail), of=of, called=name)
    raise ValueError(f"there is no embedder {name!r}; there are {KNOWN}")


def _function(module: str, name: str) -> Any:
    """What the user names on the command line; a file is never asked."""
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"the embedder {module}:{name} cannot be imported: {error}; name a module that Python "
            "finds (PYTHONPATH) and a function in it"
        ) from error
    return found
